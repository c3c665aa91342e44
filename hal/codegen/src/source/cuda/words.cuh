// State that blocks share without a barrier: words in global memory, and the numbers of tiles. Tiles
// are numbered in the order in which blocks take them, so that every tile that a block waits for is
// complete or in progress.

// AMD's compiler does not recognize a volatile access as an access of global memory.
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

// Sets the number of threads per block, and on NVIDIA the minimum number of blocks that share a
// multiprocessor, which limits the registers of a thread.
#if defined(__CUDA_ARCH__)
#define GPUARRAY_BOUNDS(blocks) __launch_bounds__(256, blocks)
#else
#define GPUARRAY_BOUNDS(blocks) __launch_bounds__(256)
#endif

// A block prefetches memory this many tiles ahead of its own, so that memory is busy while blocks
// wait for each other. The number is small enough that the cache keeps them.
constexpr u32 AHEAD = 128;

// Prefetches memory that a block will read soon, one cache line per thread.
DEVICE void prefetch(const char* from, u32 bytes) {
#if defined(__CUDA_ARCH__) && !defined(__GPUARRAY_HOST__)
    for (u32 at = threadIdx.x * 128; at < bytes; at += 256 * 128) {
        asm volatile("prefetch.global.L2 [%0];" ::"l"(from + at));
    }
#endif
}

// Clears the state; this needs a launch of its own.
DEVICE void clear_state(u64* state, u64 words) {
    const u64 step = (u64)gridDim.x * 256;
    for (u64 word = (u64)blockIdx.x * 256 + threadIdx.x; word < words; word += step) {
        state[word] = 0;
    }
}

// Takes the next tile. Returns false if there is none, or if there are enough blocks for one tile
// each.
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
