// Prefix sums of a block, alternating between two buffers (W. Hillis and G. Steele, 1986).
__global__ void scan(const int *in, int *out, int n) {
    extern __shared__ int buffers[];
    const int t = threadIdx.x;
    int into = 0, from = 1;
    buffers[into * n + t] = t > 0 ? in[blockIdx.x * n + t - 1] : 0;
    __syncthreads();
    for (int offset = 1; offset < n; offset *= 2) {
        into = 1 - into;
        from = 1 - from;
        buffers[into * n + t] = buffers[from * n + t] + (t >= offset ? buffers[from * n + t - offset] : 0);
        __syncthreads();
    }
    out[blockIdx.x * n + t] = buffers[into * n + t];
}
