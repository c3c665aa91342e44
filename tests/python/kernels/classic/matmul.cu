// C = A B, in tiles of shared memory; the sizes need not be multiples of the tile size.
#define TILE 16

__global__ void matmul(const float *a, const float *b, float *c, int rows, int inner, int columns) {
    __shared__ float as[TILE][TILE], bs[TILE][TILE];
    const int row = blockIdx.y * TILE + threadIdx.y, column = blockIdx.x * TILE + threadIdx.x;
    float sum = 0;
    for (int t = 0; t < (inner + TILE - 1) / TILE; ++t) {
        const int k = t * TILE;
        as[threadIdx.y][threadIdx.x] =
            row < rows && k + threadIdx.x < inner ? a[row * inner + k + threadIdx.x] : 0.0f;
        bs[threadIdx.y][threadIdx.x] =
            k + threadIdx.y < inner && column < columns ? b[(k + threadIdx.y) * columns + column] : 0.0f;
        __syncthreads();
#pragma unroll
        for (int i = 0; i < TILE; ++i) sum += as[threadIdx.y][i] * bs[i][threadIdx.x];
        __syncthreads();
    }
    if (row < rows && column < columns) c[row * columns + column] = sum;
}
