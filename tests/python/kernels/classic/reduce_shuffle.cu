// The sum of all elements: shuffles within a warp, then among the warps' sums, then an atomic addition.
__inline__ __device__ int warp_sum(int value) {
    for (int offset = warpSize / 2; offset > 0; offset /= 2) {
        value += __shfl_down_sync(0xffffffff, value, offset);
    }
    return value;
}

__inline__ __device__ int block_sum(int value) {
    static __shared__ int shared[32];
    const int lane = threadIdx.x % warpSize, warp = threadIdx.x / warpSize;
    value = warp_sum(value);
    if (lane == 0) shared[warp] = value;
    __syncthreads();
    value = threadIdx.x < blockDim.x / warpSize ? shared[lane] : 0;
    if (warp == 0) value = warp_sum(value);
    return value;
}

__global__ void sum(const int *in, int *out, int n) {
    int total = 0;
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += blockDim.x * gridDim.x) total += in[i];
    total = block_sum(total);
    if (threadIdx.x == 0) atomicAdd(out, total);
}
