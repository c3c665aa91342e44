// Lanes with equal values find each other, and one of them adds for all of them.
__global__ void histogram(const int *data, int n, int *bins) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x, lane = threadIdx.x % 32;
    const unsigned int there = __ballot_sync(0xffffffff, i < n);
    if (i >= n) return;
    const unsigned int same = __match_any_sync(there, data[i]);
    if (__ffs(same) - 1 == lane) atomicAdd(&bins[data[i]], __popc(same));
}
