// A sum in one launch: the last block to finish adds the results of all blocks, after a fence.
__device__ unsigned int arrived = 0;

__global__ void reduce(const double *in, volatile double *partial, double *out, unsigned int n) {
    __shared__ double sums[128];
    __shared__ bool last;
    double sum = 0;
    for (unsigned int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) sum += in[i];
    sums[threadIdx.x] = sum;
    __syncthreads();
    for (unsigned int s = blockDim.x / 2; s > 0; s /= 2) {
        if (threadIdx.x < s) sums[threadIdx.x] += sums[threadIdx.x + s];
        __syncthreads();
    }
    if (threadIdx.x == 0) {
        partial[blockIdx.x] = sums[0];
        __threadfence();
        last = atomicInc(&arrived, gridDim.x) == gridDim.x - 1;
    }
    __syncthreads();
    if (!last) return;
    sum = 0;
    for (unsigned int i = threadIdx.x; i < gridDim.x; i += blockDim.x) sum += partial[i];
    sums[threadIdx.x] = sum;
    __syncthreads();
    if (threadIdx.x == 0) {
        double total = 0;
        for (unsigned int i = 0; i < blockDim.x; ++i) total += sums[i];
        *out = total;
        arrived = 0;
    }
}
