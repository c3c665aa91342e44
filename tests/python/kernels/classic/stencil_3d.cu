// The three-dimensional Laplacian: a plane with its halo is in shared memory, and the planes above and
// below are in registers while the block moves up.
#define BX 16
#define BY 8

__global__ void laplacian(const float *in, float *out, int nx, int ny, int nz) {
    __shared__ float plane[BY + 2][BX + 2];
    const int x = blockIdx.x * BX + threadIdx.x + 1, y = blockIdx.y * BY + threadIdx.y + 1;
    const bool inside = x < nx - 1 && y < ny - 1, loads = x < nx && y < ny;
    const int sx = threadIdx.x + 1, sy = threadIdx.y + 1, slice = nx * ny;
    int at = y * nx + x;
    float below = loads ? in[at] : 0, here = loads ? in[at + slice] : 0;
    for (int z = 1; z < nz - 1; ++z) {
        at += slice;
        const float above = loads ? in[at + slice] : 0;
        __syncthreads();
        plane[sy][sx] = here;
        if (loads && threadIdx.x == 0) plane[sy][0] = in[at - 1];
        if (inside && threadIdx.x == BX - 1) plane[sy][sx + 1] = in[at + 1];
        if (loads && threadIdx.y == 0) plane[0][sx] = in[at - nx];
        if (inside && threadIdx.y == BY - 1) plane[sy + 1][sx] = in[at + nx];
        __syncthreads();
        if (inside) {
            out[at] = below + above + plane[sy][sx - 1] + plane[sy][sx + 1] + plane[sy - 1][sx] +
                      plane[sy + 1][sx] - 6.0f * here;
        }
        below = here;
        here = above;
    }
}
