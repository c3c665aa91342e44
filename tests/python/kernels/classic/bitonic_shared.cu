// Sorts each block's keys together with their values (K. Batcher, 1968).
__device__ void order(int &ka, int &va, int &kb, int &vb, bool ascending) {
    if ((ka > kb) == ascending) {
        int t = ka;
        ka = kb;
        kb = t;
        t = va;
        va = vb;
        vb = t;
    }
}

__global__ void sort(int *keys, int *values, int n) {
    __shared__ int k[512], v[512];
    const int first = blockIdx.x * n;
    for (int i = threadIdx.x; i < n; i += blockDim.x) {
        k[i] = keys[first + i];
        v[i] = values[first + i];
    }
    for (int size = 2; size <= n; size *= 2) {
        const bool ascending = (threadIdx.x & (size / 2)) == 0 || size == n;
        for (int stride = size / 2; stride > 0; stride /= 2) {
            __syncthreads();
            const int at = 2 * threadIdx.x - (threadIdx.x & (stride - 1));
            order(k[at], v[at], k[at + stride], v[at + stride], ascending);
        }
    }
    __syncthreads();
    for (int i = threadIdx.x; i < n; i += blockDim.x) {
        keys[first + i] = k[i];
        values[first + i] = v[i];
    }
}
