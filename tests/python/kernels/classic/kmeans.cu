// A step of k-means: each point's nearest centre, and the centres' sums.
__global__ void assign(const float2 *points, const float2 *centres, int *labels, double *sums, int *counts, int n,
                       int k) {
    extern __shared__ float2 near[];
    for (int i = threadIdx.x; i < k; i += blockDim.x) near[i] = centres[i];
    __syncthreads();
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    const float2 p = points[i];
    int best = 0;
    float least = 3.4e38f;
    for (int c = 0; c < k; ++c) {
        const float dx = __fsub_rn(p.x, near[c].x), dy = __fsub_rn(p.y, near[c].y);
        const float d = __fadd_rn(__fmul_rn(dx, dx), __fmul_rn(dy, dy));
        if (d < least) {
            least = d;
            best = c;
        }
    }
    labels[i] = best;
    atomicAdd(&counts[best], 1);
    atomicAdd(&sums[2 * best], (double)p.x);
    atomicAdd(&sums[2 * best + 1], (double)p.y);
}
