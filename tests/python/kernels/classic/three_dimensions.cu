// Three-dimensional indices of blocks and threads.
__global__ void indices(int *out, int nx, int ny, int nz) {
    const dim3 at(blockIdx.x * blockDim.x + threadIdx.x, blockIdx.y * blockDim.y + threadIdx.y,
                  blockIdx.z * blockDim.z + threadIdx.z);
    if (at.x >= nx || at.y >= ny || at.z >= nz) return;
    const int thread = (threadIdx.z * blockDim.y + threadIdx.y) * blockDim.x + threadIdx.x;
    const int block = (blockIdx.z * gridDim.y + blockIdx.y) * gridDim.x + blockIdx.x;
    out[(at.z * ny + at.y) * nx + at.x] = block * 1000 + thread;
}
