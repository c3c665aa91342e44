// Sorts a block's keys one bit at a time, with stable splits: zeros before ones.
__device__ unsigned int exclusive_scan(unsigned int value, unsigned int *warps) {
    const unsigned int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
    unsigned int sum = value;
    for (int offset = 1; offset < 32; offset <<= 1) {
        const unsigned int other = __shfl_up_sync(0xffffffff, sum, offset);
        if (lane >= offset) sum += other;
    }
    if (lane == 31) warps[warp] = sum;
    __syncthreads();
    unsigned int before = 0;
    for (unsigned int w = 0; w < warp; ++w) before += warps[w];
    __syncthreads();
    return before + sum - value;
}

__global__ void sort(unsigned int *keys) {
    __shared__ unsigned int shared[256], warps[8], zeros;
    keys += blockIdx.x * blockDim.x;
    unsigned int key = keys[threadIdx.x];
    for (int bit = 0; bit < 32; ++bit) {
        const unsigned int is_zero = !(key >> bit & 1);
        const unsigned int before = exclusive_scan(is_zero, warps);
        if (threadIdx.x == blockDim.x - 1) zeros = before + is_zero;
        __syncthreads();
        const unsigned int to = is_zero ? before : zeros + threadIdx.x - before;
        shared[to] = key;
        __syncthreads();
        key = shared[threadIdx.x];
    }
    keys[threadIdx.x] = key;
}
