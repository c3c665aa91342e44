// The sum of each block, by repeated halving in dynamic shared memory.
__global__ void reduce(const float *in, float *out, int n) {
    extern __shared__ float sums[];
    const unsigned int t = threadIdx.x, i = blockIdx.x * blockDim.x * 2 + t;
    sums[t] = (i < n ? in[i] : 0) + (i + blockDim.x < n ? in[i + blockDim.x] : 0);
    __syncthreads();
    for (unsigned int s = blockDim.x / 2; s > 0; s >>= 1) {
        if (t < s) sums[t] += sums[t + s];
        __syncthreads();
    }
    if (t == 0) out[blockIdx.x] = sums[0];
}
