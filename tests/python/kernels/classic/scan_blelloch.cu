// Prefix sums of a block, up and down a tree (G. Blelloch, 1990), then of blocks: three kernels.
#define BANKS 5
#define PADDED(i) ((i) + ((i) >> BANKS))

__global__ void scan(int *data, int *sums, int n) {
    extern __shared__ int tree[];
    const int t = threadIdx.x, first = blockIdx.x * n;
    int offset = 1;
    tree[PADDED(2 * t)] = data[first + 2 * t];
    tree[PADDED(2 * t + 1)] = data[first + 2 * t + 1];
    for (int d = n >> 1; d > 0; d >>= 1) {
        __syncthreads();
        if (t < d) {
            const int a = PADDED(offset * (2 * t + 1) - 1), b = PADDED(offset * (2 * t + 2) - 1);
            tree[b] += tree[a];
        }
        offset *= 2;
    }
    if (t == 0) {
        if (sums) sums[blockIdx.x] = tree[PADDED(n - 1)];
        tree[PADDED(n - 1)] = 0;
    }
    for (int d = 1; d < n; d *= 2) {
        offset >>= 1;
        __syncthreads();
        if (t < d) {
            const int a = PADDED(offset * (2 * t + 1) - 1), b = PADDED(offset * (2 * t + 2) - 1);
            const int left = tree[a];
            tree[a] = tree[b];
            tree[b] += left;
        }
    }
    __syncthreads();
    data[first + 2 * t] = tree[PADDED(2 * t)];
    data[first + 2 * t + 1] = tree[PADDED(2 * t + 1)];
}

__global__ void add(int *data, const int *sums, int n) {
    data[blockIdx.x * n + threadIdx.x] += sums[blockIdx.x];
    data[blockIdx.x * n + threadIdx.x + blockDim.x] += sums[blockIdx.x];
}
