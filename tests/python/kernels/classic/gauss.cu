// Solves a system of equations in a block, by elimination with pivots in shared memory.
__global__ void solve(const double *matrix, const double *right, double *x, int n) {
    extern __shared__ double rows[];
    __shared__ int pivot;
    const int width = n + 1, t = threadIdx.x;
    for (int j = 0; j < n; ++j) rows[t * width + j] = matrix[(blockIdx.x * n + t) * n + j];
    rows[t * width + n] = right[blockIdx.x * n + t];
    __syncthreads();
    for (int k = 0; k < n; ++k) {
        if (t == 0) {
            pivot = k;
            for (int i = k + 1; i < n; ++i) {
                if (fabs(rows[i * width + k]) > fabs(rows[pivot * width + k])) pivot = i;
            }
        }
        __syncthreads();
        if (pivot != k) {
            for (int j = t; j <= n; j += blockDim.x) {
                const double kept = rows[k * width + j];
                rows[k * width + j] = rows[pivot * width + j];
                rows[pivot * width + j] = kept;
            }
        }
        __syncthreads();
        if (t != k) {
            const double factor = rows[t * width + k] / rows[k * width + k];
            for (int j = k; j <= n; ++j) rows[t * width + j] -= factor * rows[k * width + j];
        }
        __syncthreads();
    }
    x[blockIdx.x * n + t] = rows[t * width + n] / rows[t * width + t];
}
