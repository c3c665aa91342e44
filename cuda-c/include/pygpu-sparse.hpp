// The product of a sparse matrix and a vector. The text before this one declares value_type, and defines PYGPU_THREADS
// (of a block). Groups of 32 threads go through a row each, and add their sums in shared memory.

extern "C" __global__ void add_product(
    const int *row_starts, const int *columns, const value_type *values, const value_type *x, value_type *y, int rows)
{
    __shared__ double2 memory[PYGPU_THREADS];
    value_type *part = (value_type *)memory + threadIdx.x;
    const int lane = threadIdx.x % 32;
    const int row = (blockIdx.x * PYGPU_THREADS + threadIdx.x) / 32;
    value_type sum = 0;
    if (row < rows) {
        for (int n = row_starts[row] + lane; n < row_starts[row + 1]; n += 32) {
            sum += values[n] * x[columns[n]];
        }
    }
    *part = sum;
    for (int step = 16; step > 0; step /= 2) {
        __syncthreads();
        if (lane < step) {
            *part += part[step];
        }
    }
    if (lane == 0 && row < rows) {
        y[row] += *part;
    }
}
