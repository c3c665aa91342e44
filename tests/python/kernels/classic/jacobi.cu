// A sweep of Jacobi's method, and the largest change, as the bits of a nonnegative float.
__global__ void sweep(const float *now, float *then, int *largest, int n) {
    __shared__ int most;
    const int x = blockIdx.x * blockDim.x + threadIdx.x + 1, y = blockIdx.y * blockDim.y + threadIdx.y + 1;
    if (threadIdx.x == 0 && threadIdx.y == 0) most = 0;
    __syncthreads();
    if (x < n - 1 && y < n - 1) {
        const int i = y * n + x;
        then[i] = 0.25f * (now[i - 1] + now[i + 1] + now[i - n] + now[i + n]);
        atomicMax(&most, __float_as_int(fabsf(then[i] - now[i])));
    }
    __syncthreads();
    if (threadIdx.x == 0 && threadIdx.y == 0) atomicMax(largest, most);
}
