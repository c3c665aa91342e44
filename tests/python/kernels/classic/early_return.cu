// Threads return before barriers that other threads reach.
__global__ void sums(const int *in, int *out, int n) {
    __shared__ int total;
    if (threadIdx.x == 0) total = 0;
    __syncthreads();
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    atomicAdd(&total, in[i]);
    __syncthreads();
    if (in[i] % 2) return;
    out[i] = total;
    __syncthreads();
    out[i] += in[i];
}
