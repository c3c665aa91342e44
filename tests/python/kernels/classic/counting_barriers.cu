// Barriers that combine a condition of all threads.
__global__ void count(const int *in, int *out) {
    const int value = in[blockIdx.x * blockDim.x + threadIdx.x];
    const int odd = __syncthreads_count(value % 2);
    const int all = __syncthreads_and(value > 0), any = __syncthreads_or(value > 90);
    if (threadIdx.x == 0) {
        out[3 * blockIdx.x] = odd;
        out[3 * blockIdx.x + 1] = all != 0;
        out[3 * blockIdx.x + 2] = any != 0;
    }
}
