// What blocks share without a barrier: words in global memory, and the numbers of tiles. Tiles are
// numbered as blocks take them, so that every tile that a block waits for is done or under way.

// AMD's compiler takes no volatile access for one of global memory.
#if defined(__AMDGCN__)
template <class W>
DEVICE W fetch_add(W* to, W value) { return __atomic_fetch_add(to, value, __ATOMIC_RELAXED); }
template <class W>
DEVICE void publish(W* to, W word) { __atomic_store_n(to, word, __ATOMIC_RELAXED); }
template <class W>
DEVICE W published(const W* from) { return __atomic_load_n(from, __ATOMIC_RELAXED); }
#else
template <class W>
DEVICE W fetch_add(W* to, W value) { return atomicAdd(to, value); }
template <class W>
DEVICE void publish(W* to, W word) { *(volatile W*)to = word; }
template <class W>
DEVICE W published(const W* from) { return *(const volatile W*)from; }
#endif

// The threads of a block, and on NVIDIA how many blocks share a multiprocessor at least, which bounds
// the registers of a thread.
#if defined(__CUDA_ARCH__)
#define GPUARRAY_BOUNDS(blocks) __launch_bounds__(256, blocks)
#else
#define GPUARRAY_BOUNDS(blocks) __launch_bounds__(256)
#endif

// How many tiles ahead of its own a block has memory brought into the cache: so that the memory is
// busy while blocks wait for each other. It is few enough that the cache keeps them.
constexpr u32 AHEAD = 128;

// Asks for memory that a block will read soon, a line for each thread.
DEVICE void prefetch(const char* from, u32 bytes) {
#if defined(__CUDA_ARCH__) && !defined(__GPUARRAY_HOST__)
    for (u32 at = threadIdx.x * 128; at < bytes; at += 256 * 128) {
        asm volatile("prefetch.global.L2 [%0];" ::"l"(from + at));
    }
#endif
}

// Clears the state, which has to be another launch.
DEVICE void clear_state(u64* state, u64 words) {
    const u64 step = (u64)gridDim.x * 256;
    for (u64 word = (u64)blockIdx.x * 256 + threadIdx.x; word < words; word += step) {
        state[word] = 0;
    }
}

// Takes the next tile; false if there is none, or if each block has been meant for one.
DEVICE bool take_tile(u64* state, u64 tiles, bool first, u64* tile) {
    __shared__ u64 taken;
    if (!first && tiles <= gridDim.x) {
        return false;
    }
    if (threadIdx.x == 0) {
        taken = fetch_add(state, (u64)1);
    }
    __syncthreads();
    *tile = taken;
    return *tile < tiles;
}
