// A sum over neighbours within a radius, with the block's elements and halo in shared memory.
#define RADIUS 3

__global__ void stencil(const int *in, int *out) {
    extern __shared__ int line[];
    const int global = blockIdx.x * blockDim.x + threadIdx.x + RADIUS, local = threadIdx.x + RADIUS;
    line[local] = in[global];
    if (threadIdx.x < RADIUS) {
        line[local - RADIUS] = in[global - RADIUS];
        line[local + blockDim.x] = in[global + blockDim.x];
    }
    __syncthreads();
    int sum = 0;
    for (int offset = -RADIUS; offset <= RADIUS; ++offset) sum += line[local + offset];
    out[global - RADIUS] = sum;
}
