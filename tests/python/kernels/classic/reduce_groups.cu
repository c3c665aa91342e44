// Sums with cooperative groups: tiles of 32 and of 8, a library reduction, and coalesced threads.
#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>

namespace cg = cooperative_groups;

template <unsigned int SIZE> __device__ int tile_sum(const cg::thread_block_tile<SIZE> &tile, int value) {
    for (int offset = tile.size() / 2; offset > 0; offset /= 2) value += tile.shfl_down(value, offset);
    return value;
}

extern "C" __global__ void sums(const int *in, int *out) {
    __shared__ int total;
    cg::thread_block block = cg::this_thread_block();
    if (block.thread_rank() == 0) total = 0;
    block.sync();
    const int value = in[blockIdx.x * blockDim.x + block.thread_rank()];
    cg::thread_block_tile<32> warp = cg::tiled_partition<32>(block);
    const int sum = cg::reduce(warp, value, cg::plus<int>());
    if (warp.thread_rank() == 0) atomicAdd(&total, sum);
    cg::thread_block_tile<8> small = cg::tiled_partition<8>(block);
    const int part = tile_sum(small, value);
    if (small.thread_rank() == 0) {
        out[gridDim.x * 2 + blockIdx.x * (blockDim.x / 8) + small.meta_group_rank()] = part;
    }
    cg::sync(block);
    if (block.thread_rank() == 0) out[blockIdx.x] = total;
    // Threads with odd values count themselves: one addition for each coalesced group.
    if (block.thread_rank() == 0) out[gridDim.x + blockIdx.x] = 0;
    block.sync();
    if (value % 2 != 0) {
        cg::coalesced_group active = cg::coalesced_threads();
        if (active.thread_rank() == 0) atomicAdd(&out[gridDim.x + blockIdx.x], (int)active.size());
    }
}
