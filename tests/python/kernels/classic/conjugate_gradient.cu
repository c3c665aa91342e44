// The parts of the conjugate gradient method, for a sparse matrix stored by rows.
__global__ void multiply(const int *starts, const int *columns, const double *values, const double *x, double *y,
                         int rows) {
    const int row = blockIdx.x * blockDim.x + threadIdx.x;
    if (row >= rows) return;
    double sum = 0;
    for (int k = starts[row]; k < starts[row + 1]; ++k) sum += values[k] * x[columns[k]];
    y[row] = sum;
}

__global__ void dot(const double *x, const double *y, double *result, int n) {
    __shared__ double sums[256];
    double sum = 0;
    for (int i = threadIdx.x; i < n; i += blockDim.x) sum += x[i] * y[i];
    sums[threadIdx.x] = sum;
    for (int half = blockDim.x / 2; half > 0; half /= 2) {
        __syncthreads();
        if (threadIdx.x < half) sums[threadIdx.x] += sums[threadIdx.x + half];
    }
    if (threadIdx.x == 0) *result = sums[0];
}

// x += (a / b) p, and r -= (a / b) q.
__global__ void advance(double *x, double *r, const double *p, const double *q, const double *a, const double *b,
                        int n) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    const double rate = *a / *b;
    x[i] += rate * p[i];
    r[i] -= rate * q[i];
}

__global__ void turn(double *p, const double *r, const double *after, const double *before, int n) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) p[i] = r[i] + *after / *before * p[i];
}
