// The kernels that `speed.rs` and `benches/opencl.py` time, each with a loop in C that does the same work.
extern "C" {

__global__ void axpy(float a, const float *x, float *y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = a * x[i] + y[i];
}
__global__ void plane_loop(float a, const float *__restrict__ x, float *__restrict__ y, int n) {
    for (long i = blockIdx.x * (long)n; i < (blockIdx.x + 1) * (long)n; ++i) y[i] = a * x[i] + y[i];
}
__global__ void strided(float a, const float *x, float *y, int n) {
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
        y[i] = a * x[i] + y[i];
}
// A loop in C: each block is one thread that processes a part of the elements.
__global__ void axpy_loop(float a, const float *__restrict__ x, float *__restrict__ y, int n) {
    long begin = long(n) * blockIdx.x / gridDim.x, end = long(n) * (blockIdx.x + 1) / gridDim.x;
    for (long i = begin; i < end; ++i) y[i] = a * x[i] + y[i];
}

__global__ void sum(float a, const float *x, float *y, int n) {
    __shared__ float part[256];
    float own = 0;
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) own += x[i];
    part[threadIdx.x] = own;
    for (int half = 128; half > 0; half /= 2) {
        __syncthreads();
        if (threadIdx.x < half) part[threadIdx.x] += part[threadIdx.x + half];
    }
    if (threadIdx.x == 0) y[blockIdx.x] = part[0];
}
__global__ void sum_loop(float a, const float *x, float *y, int n) {
    long begin = long(n) * blockIdx.x / gridDim.x, end = long(n) * (blockIdx.x + 1) / gridDim.x;
    float parts[16] = {};
    for (long i = begin; i + 16 <= end; i += 16)
        for (int k = 0; k < 16; ++k) parts[k] += x[i + k];
    for (int k = 1; k < 16; ++k) parts[0] += parts[k];
    y[blockIdx.x] = parts[0];
}

// n is the width of square matrices; x is one of them, y is x * x.
__global__ void product(float a, const float *x, float *y, int n) {
    __shared__ float left[16][16], right[16][16];
    int row = blockIdx.y * 16 + threadIdx.y, column = blockIdx.x * 16 + threadIdx.x;
    float sum = 0;
    for (int tile = 0; tile < n; tile += 16) {
        left[threadIdx.y][threadIdx.x] = x[row * n + tile + threadIdx.x];
        right[threadIdx.y][threadIdx.x] = x[(tile + threadIdx.y) * n + column];
        __syncthreads();
        for (int k = 0; k < 16; ++k) sum += left[threadIdx.y][k] * right[k][threadIdx.x];
        __syncthreads();
    }
    y[row * n + column] = sum;
}
__global__ void product_loop(float a, const float *__restrict__ x, float *__restrict__ y, int n) {
    int row = blockIdx.x;
    for (int j = 0; j < n; ++j) y[row * n + j] = 0;
    for (int k = 0; k < n; ++k)
        for (int j = 0; j < n; ++j) y[row * n + j] += x[row * n + k] * x[k * n + j];
}

// n is the width of square images.
__global__ void plane(float a, const float *x, float *y, int n) {
    int column = blockIdx.x * blockDim.x + threadIdx.x, row = blockIdx.y * blockDim.y + threadIdx.y;
    if (row < n && column < n) y[row * n + column] = a * x[row * n + column] + y[row * n + column];
}

// n is the width of cubes; tiles of 32 * 8 move along z, with a halo of one element.
#define TILE_X 32
#define TILE_Y 8
__global__ void stencil(float a, const float *x, float *y, int n) {
    __shared__ float tile[TILE_Y + 2][TILE_X + 2];
    int i = blockIdx.x * TILE_X + threadIdx.x, j = blockIdx.y * TILE_Y + threadIdx.y;
    int tx = threadIdx.x + 1, ty = threadIdx.y + 1, here = j * n + i, slice = n * n;
    float behind = 0, own = x[here], ahead;
    for (int k = 0; k < n; ++k, here += slice) {
        ahead = k + 1 < n ? x[here + slice] : 0;
        tile[ty][tx] = own;
        if (threadIdx.x == 0) tile[ty][0] = i > 0 ? x[here - 1] : 0;
        if (threadIdx.x == TILE_X - 1) tile[ty][tx + 1] = i + 1 < n ? x[here + 1] : 0;
        if (threadIdx.y == 0) tile[0][tx] = j > 0 ? x[here - n] : 0;
        if (threadIdx.y == TILE_Y - 1) tile[ty + 1][tx] = j + 1 < n ? x[here + n] : 0;
        __syncthreads();
        y[here] = a * own + tile[ty][tx - 1] + tile[ty][tx + 1] + tile[ty - 1][tx] + tile[ty + 1][tx] + behind + ahead;
        __syncthreads();
        behind = own;
        own = ahead;
    }
}
__global__ void stencil_loop(float a, const float *__restrict__ x, float *__restrict__ y, int n) {
    int k = blockIdx.x;
    for (int j = 0; j < n; ++j)
        for (int i = 0; i < n; ++i) {
            long c = ((long)k * n + j) * n + i, slice = (long)n * n;
            float left = i > 0 ? x[c - 1] : 0, right = i + 1 < n ? x[c + 1] : 0;
            float above = j > 0 ? x[c - n] : 0, below = j + 1 < n ? x[c + n] : 0;
            float behind = k > 0 ? x[c - slice] : 0, ahead = k + 1 < n ? x[c + slice] : 0;
            y[c] = a * x[c] + left + right + above + below + behind + ahead;
        }
}

__global__ void barriers(float a, const float *x, float *y, int n) {
    for (int k = 0; k < n; ++k) __syncthreads();
}
__global__ void shuffles(float a, const float *x, float *y, int n) {
    float v = threadIdx.x;
    for (int k = 0; k < n; ++k) v += __shfl_xor_sync(~0u, v, 1);
    y[threadIdx.x] = v;
}
}
