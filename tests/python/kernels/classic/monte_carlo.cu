// Counts the points of a low-discrepancy sequence in the unit square that are inside a quarter circle.
__device__ double van_der_corput(unsigned int n) { return __brev(n) * (1.0 / 4294967296.0); }

__global__ void inside(unsigned long long *count, unsigned int n) {
    unsigned int own = 0;
    for (unsigned int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
        const double x = van_der_corput(i), y = (i + 0.5) / n;
        own += x * x + y * y <= 1;
    }
    atomicAdd(count, (unsigned long long)own);
}
