// Cooperative groups: the block, the grid, tiles of a warp, and coalesced groups of lanes that reach a point
// of the program together.
#pragma once

extern "C++" {
namespace cooperative_groups {

namespace details {

typedef gpuarray_abi::Lanes Lanes;

// The lane of the thread with the given rank in a group of lanes.
static inline int lane_of(Lanes lanes, unsigned int rank) {
    for (; rank && lanes; --rank) lanes &= lanes - 1;
    return lanes ? __builtin_ctzll(lanes) : (int)gpuarray_abi::lane();
}
static inline unsigned int rank_in(Lanes lanes) {
    return (unsigned int)__builtin_popcountll(lanes & ((1ull << gpuarray_abi::lane()) - 1));
}
// Converts a mask of lanes into a mask of ranks.
static inline Lanes packed(Lanes bits, Lanes lanes) {
    Lanes result = 0;
    for (int rank = 0; lanes; lanes &= lanes - 1, ++rank) {
        result |= (bits >> __builtin_ctzll(lanes) & 1) << rank;
    }
    return result;
}

// The part that all groups within one warp have in common.
struct WarpGroup {
    Lanes lanes;

    unsigned int thread_rank() const { return rank_in(lanes); }
    unsigned int num_threads() const { return (unsigned int)__builtin_popcountll(lanes); }
    unsigned int size() const { return num_threads(); }
    void sync(GPUARRAY_PLACE) const { gpuarray_abi::rendezvous(lanes, nullptr, nullptr, file, line); }
    int any(int predicate, GPUARRAY_PLACE) const {
        return cuda_c::ballot(lanes, predicate != 0, file, line) != 0;
    }
    int all(int predicate, GPUARRAY_PLACE) const {
        return cuda_c::ballot(lanes, predicate == 0, file, line) == 0;
    }
    cuda_c::Mask ballot(int predicate, GPUARRAY_PLACE) const {
        return (cuda_c::Mask)packed(cuda_c::ballot(lanes, predicate != 0, file, line), lanes);
    }
    template <class T_> cuda_c::Mask match_any(T_ value, GPUARRAY_PLACE) const {
        return (cuda_c::Mask)packed(cuda_c::match(lanes, value, file, line).equal, lanes);
    }
    template <class T_> cuda_c::Mask match_all(T_ value, int& all, GPUARRAY_PLACE) const {
        const cuda_c::Match<T_> found = cuda_c::match(lanes, value, file, line);
        all = found.equal == found.present;
        return all ? (cuda_c::Mask)packed(found.equal, lanes) : 0;
    }
};

} // namespace details

// All threads of a block.
struct thread_block {
    static void sync(GPUARRAY_PLACE) { gpuarray_abi::barrier(file, line); }
    struct arrival_token {};
    arrival_token barrier_arrive() const { return {}; }
    void barrier_wait(arrival_token&&, GPUARRAY_PLACE) const { gpuarray_abi::barrier(file, line); }
    static unsigned int thread_rank() { return gpuarray_abi::thread(); }
    static unsigned int num_threads() { return blockDim.x * blockDim.y * blockDim.z; }
    static unsigned int size() { return num_threads(); }
    static dim3 group_index() { return dim3(blockIdx); }
    static dim3 thread_index() { return dim3(threadIdx); }
    static dim3 group_dim() { return blockDim; }
    static dim3 dim_threads() { return blockDim; }
};
static inline thread_block this_thread_block() { return {}; }
// Shared memory for tiles larger than a warp.
template <unsigned int THREADS_ = 1024> struct block_tile_memory { char unused_[1]; };
template <unsigned int THREADS_> static inline thread_block this_thread_block(block_tile_memory<THREADS_>&) { return {}; }

// All threads of a grid. They can synchronise only in a cooperative launch.
struct grid_group {
    bool is_valid() const { return gpuarray_abi::is_cooperative(); }
    void sync(GPUARRAY_PLACE) const { gpuarray_abi::grid_barrier(file, line); }
    struct arrival_token {};
    arrival_token barrier_arrive() const { return {}; }
    void barrier_wait(arrival_token&&, GPUARRAY_PLACE) const { gpuarray_abi::grid_barrier(file, line); }
    static unsigned long long block_rank() {
        return blockIdx.x + (unsigned long long)gridDim.x * (blockIdx.y + (unsigned long long)gridDim.y * blockIdx.z);
    }
    static unsigned long long num_blocks() { return (unsigned long long)gridDim.x * gridDim.y * gridDim.z; }
    static unsigned long long thread_rank() {
        return block_rank() * thread_block::num_threads() + gpuarray_abi::thread();
    }
    static unsigned long long num_threads() { return num_blocks() * thread_block::num_threads(); }
    static unsigned long long size() { return num_threads(); }
    static dim3 group_dim() { return gridDim; }
    static dim3 dim_blocks() { return gridDim; }
    static dim3 block_index() { return dim3(blockIdx); }
};
static inline grid_group this_grid() { return {}; }

// The lanes that reach a call of `coalesced_threads` together, or a part of another group.
struct coalesced_group : details::WarpGroup {
    unsigned int number = 0, count = 1; // among the parts of a group

    unsigned int meta_group_rank() const { return number; }
    unsigned int meta_group_size() const { return count; }
    template <class T_> T_ shfl(T_ value, unsigned int rank, GPUARRAY_PLACE) const {
        return cuda_c::shuffle(lanes, value, details::lane_of(lanes, rank % num_threads()), file, line);
    }
    template <class T_> T_ shfl_up(T_ value, unsigned int by, GPUARRAY_PLACE) const {
        const unsigned int rank = thread_rank(), from = rank < by ? rank : rank - by;
        return cuda_c::shuffle(lanes, value, details::lane_of(lanes, from), file, line);
    }
    template <class T_> T_ shfl_down(T_ value, unsigned int by, GPUARRAY_PLACE) const {
        const unsigned int rank = thread_rank(), from = by < num_threads() - rank ? rank + by : rank;
        return cuda_c::shuffle(lanes, value, details::lane_of(lanes, from), file, line);
    }
};
static inline __attribute__((always_inline)) coalesced_group coalesced_threads(GPUARRAY_PLACE) {
    coalesced_group group;
    group.lanes = cuda_c::active_lanes(file, line);
    return group;
}

// Tiles: groups of neighbouring threads whose size is a power of two.
template <unsigned int SIZE_, class Parent = void> struct thread_block_tile : details::WarpGroup {
    unsigned int number, count; // among the tiles of the parent

    static_assert(SIZE_ != 0 && (SIZE_ & (SIZE_ - 1)) == 0, "the size of a tile is a power of two");
    static_assert(SIZE_ <= GPUARRAY_WARP_SIZE, "tiles larger than a warp are not supported on the CPU");

    thread_block_tile() {
        const unsigned int first = gpuarray_abi::lane() & ~(SIZE_ - 1);
        lanes = (~0ull >> (64 - SIZE_)) << first;
        number = gpuarray_abi::thread() / SIZE_;
        count = (thread_block::num_threads() + SIZE_ - 1) / SIZE_;
    }
    static unsigned int thread_rank() { return gpuarray_abi::lane() & (SIZE_ - 1); }
    static constexpr unsigned int num_threads() { return SIZE_; }
    static constexpr unsigned int size() { return SIZE_; }
    unsigned int meta_group_rank() const { return number; }
    unsigned int meta_group_size() const { return count; }
    template <class T_> T_ shfl(T_ value, int rank, GPUARRAY_PLACE) const {
        return exchanged(value, cuda_c::lane_at((int)gpuarray_abi::lane(), rank, SIZE_), file, line);
    }
    template <class T_> T_ shfl_up(T_ value, unsigned int by, GPUARRAY_PLACE) const {
        return exchanged(value, cuda_c::lane_up((int)gpuarray_abi::lane(), by, SIZE_), file, line);
    }
    template <class T_> T_ shfl_down(T_ value, unsigned int by, GPUARRAY_PLACE) const {
        return exchanged(value, cuda_c::lane_down((int)gpuarray_abi::lane(), by, SIZE_), file, line);
    }
    template <class T_> T_ shfl_xor(T_ value, unsigned int bits, GPUARRAY_PLACE) const {
        return exchanged(value, cuda_c::lane_xor((int)gpuarray_abi::lane(), (int)bits, SIZE_), file, line);
    }
    template <unsigned int OTHER_, class P_> operator thread_block_tile<OTHER_, P_>() const {
        static_assert(OTHER_ == SIZE_, "tiles of one size");
        thread_block_tile<OTHER_, P_> tile;
        tile.number = number;
        tile.count = count;
        return tile;
    }

private:
    template <class T_> T_ exchanged(T_ value, int from, const char* file, unsigned line) const {
        return cuda_c::shuffle(lanes, value, from, file, line);
    }
};
template <unsigned int SIZE_, class Parent>
static inline thread_block_tile<SIZE_, Parent> tiled_partition(const Parent&) {
    return {};
}
template <unsigned int SIZE_, unsigned int OUTER_, class P_>
static inline thread_block_tile<SIZE_, thread_block_tile<OUTER_, P_>>
tiled_partition(const thread_block_tile<OUTER_, P_>&) {
    thread_block_tile<SIZE_, thread_block_tile<OUTER_, P_>> tile;
    tile.number %= OUTER_ / SIZE_;
    tile.count = OUTER_ / SIZE_;
    return tile;
}

// A group whose kind is only known at run time.
struct thread_group {
    enum Kind { BLOCK_, WARP_ } kind;
    details::WarpGroup part;

    thread_group(const thread_block&) : kind(BLOCK_), part{0} {}
    thread_group(const details::WarpGroup& group) : kind(WARP_), part(group) {}
    void sync(GPUARRAY_PLACE) const {
        if (kind == BLOCK_) {
            gpuarray_abi::barrier(file, line);
        } else {
            gpuarray_abi::rendezvous(part.lanes, nullptr, nullptr, file, line);
        }
    }
    unsigned int thread_rank() const {
        return kind == BLOCK_ ? thread_block::thread_rank() : part.thread_rank();
    }
    unsigned int num_threads() const {
        return kind == BLOCK_ ? thread_block::num_threads() : part.num_threads();
    }
    unsigned int size() const { return num_threads(); }
};
static inline thread_group tiled_partition(const thread_group& parent, unsigned int size, GPUARRAY_PLACE) {
    if (size == 0 || (size & (size - 1)) || size > GPUARRAY_WARP_SIZE) {
        gpuarray_abi::trap(gpuarray_abi::UNSUPPORTED,
                           "tiled_partition: the size of a tile is a power of two up to the warp's", file, line);
    }
    details::WarpGroup part;
    if (parent.kind == thread_group::BLOCK_) {
        part.lanes = (~0ull >> (64 - size)) << (gpuarray_abi::lane() & ~(size - 1));
    } else {
        const unsigned int first = parent.thread_rank() / size * size;
        part.lanes = 0;
        for (unsigned int rank = first; rank < first + size && rank < parent.num_threads(); ++rank) {
            part.lanes |= 1ull << details::lane_of(parent.part.lanes, rank);
        }
    }
    return part;
}

static inline coalesced_group tiled_partition(const coalesced_group& parent, unsigned int size, GPUARRAY_PLACE) {
    coalesced_group part;
    part.lanes = tiled_partition(thread_group(parent), size, file, line).part.lanes;
    part.number = parent.thread_rank() / size;
    part.count = (parent.num_threads() + size - 1) / size;
    return part;
}

// The part of a group whose threads have the same label. Parts count by their first threads.
template <class Group, class Label>
static inline coalesced_group labeled_partition(const Group& group, Label label, GPUARRAY_PLACE) {
    coalesced_group part;
    part.lanes = cuda_c::match(group.lanes, label, file, line).equal;
    const details::Lanes first = part.lanes & (0 - part.lanes);
    const details::Lanes firsts = cuda_c::ballot(group.lanes, first >> gpuarray_abi::lane() & 1, file, line);
    part.number = (unsigned int)__builtin_popcountll(firsts & (first - 1));
    part.count = (unsigned int)__builtin_popcountll(firsts);
    return part;
}
template <class Group>
static inline coalesced_group binary_partition(const Group& group, bool predicate, GPUARRAY_PLACE) {
    coalesced_group part = labeled_partition(group, (int)predicate, file, line);
    part.number = predicate ? 0 : 1;
    part.count = 2;
    return part;
}

template <class Group> static inline void sync(const Group& group, GPUARRAY_PLACE) { group.sync(file, line); }
template <class Group> static inline auto thread_rank(const Group& group) { return group.thread_rank(); }
template <class Group> static inline auto group_size(const Group& group) { return group.num_threads(); }
static inline void synchronize(thread_group group, GPUARRAY_PLACE) { group.sync(file, line); }

// Calls a function in one thread of the group.
template <class Group, class Function, class... A_>
static inline void invoke_one(const Group& group, Function&& function, A_&&... arguments) {
    if (group.thread_rank() == 0) static_cast<Function&&>(function)(static_cast<A_&&>(arguments)...);
}
template <class Group, class Function, class... A_>
static inline auto invoke_one_broadcast(const Group& group, Function&& function, A_&&... arguments)
    -> decltype(function(arguments...)) {
    decltype(function(arguments...)) result{};
    if (group.thread_rank() == 0) result = static_cast<Function&&>(function)(static_cast<A_&&>(arguments)...);
    return group.shfl(result, 0);
}

// Asynchronous copies. They are made immediately; waiting for them synchronises the group.
template <class Group, class To, class From>
static inline void memcpy_async(const Group& group, To* to, const From* from, size_t bytes) {
    const size_t count = (size_t)group.num_threads(), rank = (size_t)group.thread_rank();
    const size_t begin = bytes / count * rank + (rank < bytes % count ? rank : bytes % count);
    memcpy((char*)to + begin, (const char*)from + begin, bytes / count + (rank < bytes % count));
}
// The same of elements, as many as both places have.
template <class Group, class T_>
static inline void memcpy_async(const Group& group, T_* to, size_t room, const T_* from, size_t count) {
    memcpy_async(group, to, from, (room < count ? room : count) * sizeof(T_));
}
template <class Group> static inline void wait(const Group& group, GPUARRAY_PLACE) { group.sync(file, line); }
template <unsigned int PENDING_, class Group>
static inline void wait_prior(const Group& group, GPUARRAY_PLACE) {
    group.sync(file, line);
}

} // namespace cooperative_groups
} // extern "C++"
