// CUDA's cooperative groups for AMD's compilers: the block, the grid, tiles of a warp, and the lanes that are
// active at a point of the program.
//
// A warp is the caller's half of a 64-lane wavefront, or a whole 32-lane wavefront. A group of lanes is a mask of
// the 32 lanes of a warp. The lanes of a group must make a call together, from one place. Tiles have up to 32
// threads. Groups exchange values of any type word by word.
//
// The grid waits for all of its blocks through AMD's device library, in a cooperative launch only. In any other
// launch the kernel is stopped.
//
// From ROCm 6 on, hipRTC has HIP's groups built in. They lack much of this, and their tiles are parts of
// wavefronts. Therefore the namespace here has another name, and CUDA's name is a macro.

#ifndef PYGPU_COOPERATIVE_GROUPS_H
#define PYGPU_COOPERATIVE_GROUPS_H

#include <pygpu-cuda-warps.hpp>

// On the CPU lanes meet where the program's line is, not this file's. The headers of reductions and
// scans have the last two names from here.
#ifdef __GPUARRAY_HOST__
#define PYGPU_PLACE GPUARRAY_PLACE
#define PYGPU_PLACED file, line
#define PYGPU_GROUPS_AND_PLACE , GPUARRAY_PLACE
#define PYGPU_GROUPS_HERE , file, line
#else
#define PYGPU_PLACE
#define PYGPU_PLACED
#define PYGPU_GROUPS_AND_PLACE
#define PYGPU_GROUPS_HERE
extern "C" {
__device__ __attribute__((convergent)) void __ockl_grid_sync(void);
__device__ int __ockl_grid_is_valid(void);
}
#endif

extern "C++" {

namespace pygpu_groups {

namespace details {

// AMD's `threadIdx.x` is an object without members, and is taken for the number that it stands for.
template <class T_> struct IsEmpty {
    static constexpr bool value = __is_empty(T_);
};
template <class T_, bool is_empty = IsEmpty<T_>::value> struct Value {
    typedef T_ type;
};
template <class T_> struct Value<T_, true> {
    typedef decltype(pygpu_warps::value_of(pygpu_warps::any_of<T_>())) type;
};
#define PYGPU_VALUE typename details::Value<T_>::type

// The caller's lane in its warp.
__device__ inline unsigned int lane() { return __lane_id() & 31; }

// The lane of the nth thread of a group.
__device__ inline unsigned int lane_of(unsigned int lanes, unsigned int rank) {
    unsigned int found = 0;
    for (unsigned int half = 16; half > 0; half /= 2) {
        const unsigned int low = (unsigned int)__builtin_popcount(lanes & ((1u << half) - 1));
        const bool is_above = rank >= low;
        rank -= is_above ? low : 0;
        lanes >>= is_above ? half : 0;
        found += is_above ? half : 0;
    }
    return found;
}

// Converts bits of lanes to bits of ranks.
__device__ inline unsigned int packed(unsigned int bits, unsigned int lanes) {
    const unsigned int first = (unsigned int)__builtin_ctz(lanes), moved = lanes >> first;
    if ((moved & (moved + 1)) == 0) return bits >> first;
    unsigned int result = 0;
    for (unsigned int rank = 0; lanes != 0; lanes &= lanes - 1, ++rank) {
        result |= (bits >> __builtin_ctz(lanes) & 1) << rank;
    }
    return result;
}

// The value of a lane of the same warp.
template <class T_>
__device__ inline T_ shuffled(const T_& value, unsigned int from PYGPU_GROUPS_AND_PLACE) {
    unsigned int words[(sizeof(T_) + 3) / 4] = {};
    __builtin_memcpy(words, (const void*)&value, sizeof(T_));
    for (unsigned int& word : words) {
        word = (unsigned int)__shfl((int)word, (int)from, 32 PYGPU_GROUPS_HERE);
    }
    T_ result = value;
    __builtin_memcpy((void*)&result, words, sizeof(T_));
    return result;
}

// The base of groups of lanes of one warp. `number` and `count` are among the parts of the
// group that this one is a part of.
struct WarpGroup {
    unsigned int lanes, number, count;

    __device__ unsigned int thread_rank() const {
        return (unsigned int)__builtin_popcount(lanes & ((1u << lane()) - 1));
    }
    __device__ unsigned int num_threads() const { return (unsigned int)__builtin_popcount(lanes); }
    __device__ unsigned int size() const { return num_threads(); }
    __device__ unsigned int meta_group_rank() const { return number; }
    __device__ unsigned int meta_group_size() const { return count; }
    __device__ void sync(PYGPU_PLACE) const { pygpu_syncwarp(lanes PYGPU_GROUPS_HERE); }
    __device__ int any(int predicate PYGPU_GROUPS_AND_PLACE) const {
        return pygpu_any_sync(lanes, predicate PYGPU_GROUPS_HERE);
    }
    __device__ int all(int predicate PYGPU_GROUPS_AND_PLACE) const {
        return pygpu_all_sync(lanes, predicate PYGPU_GROUPS_HERE);
    }
    __device__ unsigned int ballot(int predicate PYGPU_GROUPS_AND_PLACE) const {
        return packed(pygpu_ballot_sync(lanes, predicate PYGPU_GROUPS_HERE), lanes);
    }
    template <class T_> __device__ unsigned int match_any(T_ value PYGPU_GROUPS_AND_PLACE) const {
        return packed(pygpu_match_any_sync(lanes, value PYGPU_GROUPS_HERE), lanes);
    }
    template <class T_>
    __device__ unsigned int match_all(T_ value, int& all PYGPU_GROUPS_AND_PLACE) const {
        const unsigned int equal = pygpu_match_all_sync(lanes, value, &all PYGPU_GROUPS_HERE);
        return all ? packed(equal, lanes) : 0;
    }
};

// The aligned run of threads with the caller in it; its size is a power of two.
__device__ inline unsigned int neighbours(unsigned int size) {
    return (~0u >> (32 - size)) << (lane() & ~(size - 1));
}

} // namespace details

// All threads of a block.
struct thread_block {
    static __device__ void sync(PYGPU_PLACE) { __syncthreads(PYGPU_PLACED); }
    struct arrival_token {};
    __device__ arrival_token barrier_arrive() const { return {}; }
    __device__ void barrier_wait(arrival_token&& PYGPU_GROUPS_AND_PLACE) const {
        __syncthreads(PYGPU_PLACED);
    }
    static __device__ unsigned int thread_rank() {
        return threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z);
    }
    static __device__ unsigned int num_threads() { return blockDim.x * blockDim.y * blockDim.z; }
    static __device__ unsigned int size() { return num_threads(); }
    static __device__ dim3 group_index() { return dim3(blockIdx.x, blockIdx.y, blockIdx.z); }
    static __device__ dim3 thread_index() { return dim3(threadIdx.x, threadIdx.y, threadIdx.z); }
    static __device__ dim3 group_dim() { return dim3(blockDim.x, blockDim.y, blockDim.z); }
    static __device__ dim3 dim_threads() { return group_dim(); }
};
__device__ inline thread_block this_thread_block() { return {}; }
// Shared memory for tiles larger than a warp.
template <unsigned int THREADS_ = 1024> struct block_tile_memory {
    char unused_[1];
};
template <unsigned int THREADS_>
__device__ inline thread_block this_thread_block(block_tile_memory<THREADS_>&) {
    return {};
}

// All threads of a grid.
struct grid_group {
    __device__ bool is_valid() const {
#ifdef __GPUARRAY_HOST__
        return gpuarray_abi::is_cooperative();
#else
        return __ockl_grid_is_valid() != 0;
#endif
    }
    __device__ void sync(PYGPU_PLACE) const {
#ifdef __GPUARRAY_HOST__
        gpuarray_abi::grid_barrier(file, line);
#else
        if (!is_valid()) __builtin_trap();
        __threadfence();
        __ockl_grid_sync();
        __threadfence();
#endif
    }
    struct arrival_token {};
    __device__ arrival_token barrier_arrive() const { return {}; }
    __device__ void barrier_wait(arrival_token&& PYGPU_GROUPS_AND_PLACE) const {
        sync(PYGPU_PLACED);
    }
    static __device__ unsigned long long block_rank() {
        const unsigned long long x = blockIdx.x, y = blockIdx.y, z = blockIdx.z;
        return x + gridDim.x * (y + gridDim.y * z);
    }
    static __device__ unsigned long long num_blocks() {
        const unsigned long long x = gridDim.x;
        return x * gridDim.y * gridDim.z;
    }
    static __device__ unsigned long long thread_rank() {
        return block_rank() * thread_block::num_threads() + thread_block::thread_rank();
    }
    static __device__ unsigned long long num_threads() {
        return num_blocks() * thread_block::num_threads();
    }
    static __device__ unsigned long long size() { return num_threads(); }
    static __device__ dim3 group_dim() { return dim3(gridDim.x, gridDim.y, gridDim.z); }
    static __device__ dim3 dim_blocks() { return group_dim(); }
    static __device__ dim3 block_index() { return dim3(blockIdx.x, blockIdx.y, blockIdx.z); }
};
__device__ inline grid_group this_grid() { return {}; }

// The lanes that are active at a call of `coalesced_threads`, or a part of another group.
struct coalesced_group : details::WarpGroup {
    __device__ explicit coalesced_group(const details::WarpGroup& group)
        : details::WarpGroup(group) {}

    template <class T_>
    __device__ PYGPU_VALUE shfl(T_ value, unsigned int rank PYGPU_GROUPS_AND_PLACE) const {
        return at<PYGPU_VALUE>(value, rank % num_threads() PYGPU_GROUPS_HERE);
    }
    template <class T_>
    __device__ PYGPU_VALUE shfl_up(T_ value, unsigned int by PYGPU_GROUPS_AND_PLACE) const {
        const unsigned int rank = thread_rank();
        return at<PYGPU_VALUE>(value, rank < by ? rank : rank - by PYGPU_GROUPS_HERE);
    }
    template <class T_>
    __device__ PYGPU_VALUE shfl_down(T_ value, unsigned int by PYGPU_GROUPS_AND_PLACE) const {
        const unsigned int rank = thread_rank(), is_in = by < num_threads() - rank;
        return at<PYGPU_VALUE>(value, is_in ? rank + by : rank PYGPU_GROUPS_HERE);
    }

private:
    template <class V_>
    __device__ V_ at(const V_& value, unsigned int rank PYGPU_GROUPS_AND_PLACE) const {
        return details::shuffled(value, details::lane_of(lanes, rank) PYGPU_GROUPS_HERE);
    }
};

namespace details {

// The active lanes of the caller's warp.
__device__ inline __attribute__((always_inline)) unsigned int lanes_here(PYGPU_PLACE) {
#ifdef __GPUARRAY_HOST__
    return pygpu_warps::Lanes<4>::of(cuda_c::active_lanes(file, line));
#else
    return pygpu_warps::Lanes<4>::of(pygpu_warps::active());
#endif
}

} // namespace details

__device__ inline __attribute__((always_inline)) coalesced_group coalesced_threads(PYGPU_PLACE) {
    const details::WarpGroup group = {details::lanes_here(PYGPU_PLACED), 0, 1};
    return coalesced_group(group);
}

// Tiles of a power of two of neighbouring threads. The parent counts for a tile's number among its
// neighbours; a function for tiles need not name it.
template <unsigned int SIZE_, class Parent = void> struct thread_block_tile;

template <unsigned int SIZE_> struct thread_block_tile<SIZE_, void> : details::WarpGroup {
    static_assert(SIZE_ != 0 && (SIZE_ & (SIZE_ - 1)) == 0, "the size of a tile is a power of two");
    static_assert(SIZE_ <= 32, "tiles larger than a warp are not supported on AMD's devices");

    __device__ explicit thread_block_tile(const details::WarpGroup& group)
        : details::WarpGroup(group) {}

    static __device__ unsigned int thread_rank() { return details::lane() & (SIZE_ - 1); }
    static constexpr __device__ unsigned int num_threads() { return SIZE_; }
    static constexpr __device__ unsigned int size() { return SIZE_; }
    template <class T_>
    __device__ PYGPU_VALUE shfl(T_ value, int rank PYGPU_GROUPS_AND_PLACE) const {
        return at<PYGPU_VALUE>(value, (unsigned int)rank & (SIZE_ - 1) PYGPU_GROUPS_HERE);
    }
    // Offsets count modulo the warp's size.
    template <class T_>
    __device__ PYGPU_VALUE shfl_up(T_ value, unsigned int by PYGPU_GROUPS_AND_PLACE) const {
        return at<PYGPU_VALUE>(value, thread_rank() - (by & 31) PYGPU_GROUPS_HERE);
    }
    template <class T_>
    __device__ PYGPU_VALUE shfl_down(T_ value, unsigned int by PYGPU_GROUPS_AND_PLACE) const {
        return at<PYGPU_VALUE>(value, thread_rank() + (by & 31) PYGPU_GROUPS_HERE);
    }
    template <class T_>
    __device__ PYGPU_VALUE shfl_xor(T_ value, unsigned int bits PYGPU_GROUPS_AND_PLACE) const {
        return at<PYGPU_VALUE>(value, thread_rank() ^ (bits & 31) PYGPU_GROUPS_HERE);
    }

private:
    // A lane beyond an end of the tile reads the caller's own value.
    template <class V_>
    __device__ V_ at(const V_& value, unsigned int rank PYGPU_GROUPS_AND_PLACE) const {
        const unsigned int own = details::lane(), first = own & ~(SIZE_ - 1);
        return details::shuffled(value, rank < SIZE_ ? first + rank : own PYGPU_GROUPS_HERE);
    }
};
template <unsigned int SIZE_, class Parent> struct thread_block_tile : thread_block_tile<SIZE_> {
    __device__ explicit thread_block_tile(const details::WarpGroup& group)
        : thread_block_tile<SIZE_>(group) {}
    template <class P_>
    __device__ thread_block_tile(const thread_block_tile<SIZE_, P_>& tile)
        : thread_block_tile<SIZE_>(tile) {}
};

namespace details {

// How many threads the tiles of a group have at most: 0 where it has none of a constant size.
template <class Parent> struct Most {
    static constexpr unsigned int threads = 0;
};
template <> struct Most<thread_block> {
    static constexpr unsigned int threads = 32;
};
template <unsigned int SIZE_, class P_> struct Most<thread_block_tile<SIZE_, P_>> {
    static constexpr unsigned int threads = SIZE_;
};

} // namespace details

template <unsigned int SIZE_, class Parent>
__device__ inline thread_block_tile<SIZE_, Parent> tiled_partition(const Parent& parent) {
    static_assert(details::Most<Parent>::threads != 0,
                  "tiles of a constant size are parts of a block or of a tile");
    static_assert(details::Most<Parent>::threads == 0 || SIZE_ <= details::Most<Parent>::threads ||
                      SIZE_ > 32,
                  "a tile is not larger than the one that it is a part of");
    const details::WarpGroup group = {details::neighbours(SIZE_), parent.thread_rank() / SIZE_,
                                      (parent.num_threads() + SIZE_ - 1) / SIZE_};
    return thread_block_tile<SIZE_, Parent>(group);
}

// A group whose kind is known when the program runs.
struct thread_group {
    bool is_block;
    details::WarpGroup part;

    __device__ thread_group(const thread_block&) : is_block(true), part() {}
    __device__ thread_group(const details::WarpGroup& group) : is_block(false), part(group) {}
    __device__ void sync(PYGPU_PLACE) const {
        if (is_block) {
            thread_block::sync(PYGPU_PLACED);
        } else {
            part.sync(PYGPU_PLACED);
        }
    }
    __device__ unsigned int thread_rank() const {
        return is_block ? thread_block::thread_rank() : part.thread_rank();
    }
    __device__ unsigned int num_threads() const {
        return is_block ? thread_block::num_threads() : part.num_threads();
    }
    __device__ unsigned int size() const { return num_threads(); }
};

namespace details {

// The part of a group with the caller in it, of so many threads; the last one may have fewer.
__device__ inline WarpGroup part_of(const thread_group& parent,
                                    unsigned int size PYGPU_GROUPS_AND_PLACE) {
    if (size == 0 || (size & (size - 1)) != 0 || size > 32) {
#ifdef __GPUARRAY_HOST__
        gpuarray_abi::trap(gpuarray_abi::UNSUPPORTED,
                           "tiled_partition: the size of a tile is a power of two up to the warp's",
                           file, line);
#else
        __builtin_trap();
#endif
    }
    const unsigned int rank = parent.thread_rank(), threads = parent.num_threads();
    WarpGroup part = {neighbours(size), rank / size, (threads + size - 1) / size};
    if (!parent.is_block) {
        const unsigned int all = parent.part.lanes, first = part.number * size;
        part.lanes = all & ~0u << lane_of(all, first);
        if (first + size < threads) part.lanes &= (1u << lane_of(all, first + size)) - 1;
    }
    return part;
}

} // namespace details

__device__ inline thread_group tiled_partition(const thread_group& parent,
                                               unsigned int size PYGPU_GROUPS_AND_PLACE) {
    return details::part_of(parent, size PYGPU_GROUPS_HERE);
}
__device__ inline coalesced_group tiled_partition(const coalesced_group& parent,
                                                  unsigned int size PYGPU_GROUPS_AND_PLACE) {
    return coalesced_group(details::part_of(parent, size PYGPU_GROUPS_HERE));
}

// The part of a group whose threads have the same label. Parts count by their first threads.
template <class Group, class Label>
__device__ inline coalesced_group labeled_partition(const Group& group,
                                                    Label label PYGPU_GROUPS_AND_PLACE) {
    const unsigned int lanes = pygpu_match_any_sync(group.lanes, label PYGPU_GROUPS_HERE);
    const unsigned int first = lanes & (0 - lanes), own = 1u << details::lane();
    const unsigned int firsts = pygpu_ballot_sync(group.lanes, first == own PYGPU_GROUPS_HERE);
    const details::WarpGroup part = {lanes, (unsigned int)__builtin_popcount(firsts & (first - 1)),
                                     (unsigned int)__builtin_popcount(firsts)};
    return coalesced_group(part);
}
template <class Group>
__device__ inline coalesced_group binary_partition(const Group& group,
                                                   bool predicate PYGPU_GROUPS_AND_PLACE) {
    const unsigned int with = pygpu_ballot_sync(group.lanes, predicate PYGPU_GROUPS_HERE);
    const details::WarpGroup part = {predicate ? with : group.lanes & ~with, predicate ? 0u : 1u,
                                     2};
    return coalesced_group(part);
}

template <class Group> __device__ inline void sync(const Group& group PYGPU_GROUPS_AND_PLACE) {
    group.sync(PYGPU_PLACED);
}
template <class Group> __device__ inline auto thread_rank(const Group& group) {
    return group.thread_rank();
}
template <class Group> __device__ inline auto group_size(const Group& group) {
    return group.num_threads();
}
template <class Group>
__device__ inline void synchronize(const Group& group PYGPU_GROUPS_AND_PLACE) {
    group.sync(PYGPU_PLACED);
}

// One thread of the group calls a function.
template <class Group, class Function, class... A_>
__device__ inline void invoke_one(const Group& group, Function&& function, A_&&... arguments) {
    if (group.thread_rank() == 0) {
        static_cast<Function&&>(function)(static_cast<A_&&>(arguments)...);
    }
}
template <class Group, class Function, class... A_>
__device__ inline auto invoke_one_broadcast(const Group& group, Function&& function,
                                            A_&&... arguments) -> decltype(function(arguments...)) {
    decltype(function(arguments...)) result{};
    if (group.thread_rank() == 0) {
        result = static_cast<Function&&>(function)(static_cast<A_&&>(arguments)...);
    }
    return group.shfl(result, 0);
}

namespace details {

template <class Word, class Group>
__device__ inline void copy(const Group& group, void* to, const void* from, size_t words) {
    for (size_t i = group.thread_rank(); i < words; i += group.num_threads()) {
        ((Word*)to)[i] = ((const Word*)from)[i];
    }
}

} // namespace details

// Copies of bytes are done immediately; waiting for them is a barrier of the group.
template <class Group, class To, class From>
__device__ inline void memcpy_async(const Group& group, To* to, const From* from, size_t bytes) {
    typedef unsigned int __attribute__((may_alias)) Word;
    if ((((size_t)to | (size_t)from | bytes) & (sizeof(Word) - 1)) == 0) {
        details::copy<Word>(group, to, from, bytes / sizeof(Word));
    } else {
        details::copy<unsigned char>(group, to, from, bytes);
    }
}
// The same of elements, as many as both places have.
template <class Group, class T_>
__device__ inline void memcpy_async(const Group& group, T_* to, size_t room, const T_* from,
                                    size_t count) {
    memcpy_async(group, to, from, (room < count ? room : count) * sizeof(T_));
}
template <class Group> __device__ inline void wait(const Group& group PYGPU_GROUPS_AND_PLACE) {
    group.sync(PYGPU_PLACED);
}
template <unsigned int PENDING_, class Group>
__device__ inline void wait_prior(const Group& group PYGPU_GROUPS_AND_PLACE) {
    group.sync(PYGPU_PLACED);
}

} // namespace pygpu_groups

} // extern "C++"

#undef PYGPU_PLACE
#undef PYGPU_PLACED
#undef PYGPU_VALUE

#define cooperative_groups pygpu_groups

#endif
