// Convolution along rows, with coefficients in constant memory and a part of the row in shared memory.
#define RADIUS 8
#define PIECE 64

__constant__ float coefficients[2 * RADIUS + 1];

__global__ void rows(const float *in, float *out, int width) {
    __shared__ float line[PIECE + 2 * RADIUS];
    const int y = blockIdx.y, first = blockIdx.x * PIECE - RADIUS;
    for (int i = threadIdx.x; i < PIECE + 2 * RADIUS; i += blockDim.x) {
        const int x = first + i;
        line[i] = x >= 0 && x < width ? in[y * width + x] : 0.0f;
    }
    __syncthreads();
    const int x = blockIdx.x * PIECE + threadIdx.x;
    if (x >= width) return;
    float sum = 0;
#pragma unroll
    for (int k = -RADIUS; k <= RADIUS; ++k) sum += coefficients[RADIUS - k] * line[threadIdx.x + RADIUS + k];
    out[y * width + x] = sum;
}
