// Kernels as a programmer would write them by hand, each for one task and one type, for comparison
// with the generated kernels. Counts are multiples of the number of elements that a block
// processes.

typedef unsigned char byte_t;
typedef unsigned long long word_t;

__device__ word_t thread_index() { return (word_t)blockIdx.x * blockDim.x + threadIdx.x; }

// A hash of the index, as a float from 0 to 1 or as an index less than `modulus`.
extern "C" __global__ void noise(unsigned* out, word_t count, unsigned modulus) {
    for (word_t i = thread_index(); i < count; i += (word_t)gridDim.x * blockDim.x) {
        unsigned hash = (unsigned)i * 2654435761u + 12345u;
        hash = (hash ^ (hash >> 16)) * 2246822519u;
        hash = (hash ^ (hash >> 13)) * 3266489917u;
        hash ^= hash >> 16;
        out[i] = modulus ? hash % modulus : __float_as_uint((hash >> 8) * (1.0f / 16777216.0f));
    }
}

extern "C" __global__ void add(const float4* x, const float4* y, float4* z, word_t count) {
    const word_t i = thread_index();
    if (i < count) {
        const float4 a = x[i], b = y[i];
        z[i] = make_float4(a.x + b.x, a.y + b.y, a.z + b.z, a.w + b.w);
    }
}

extern "C" __global__ void scale(const float4* x, float4* z, float factor, word_t count) {
    const word_t i = thread_index();
    if (i < count) {
        const float4 a = x[i];
        z[i] = make_float4(a.x * factor, a.y * factor, a.z * factor, a.w * factor);
    }
}

extern "C" __global__ void fill(float4* z, float value, word_t count) {
    const word_t i = thread_index();
    if (i < count) {
        z[i] = make_float4(value, value, value, value);
    }
}

extern "C" __global__ void widen(const float2* x, double2* z, word_t count) {
    const word_t i = thread_index();
    if (i < count) {
        const float2 a = x[i];
        z[i] = make_double2(a.x, a.y);
    }
}

extern "C" __global__ void narrow(const double2* x, float2* z, word_t count) {
    const word_t i = thread_index();
    if (i < count) {
        const double2 a = x[i];
        z[i] = make_float2((float)a.x, (float)a.y);
    }
}

extern "C" __global__ void from_bytes(const uchar4* x, float4* z, word_t count) {
    const word_t i = thread_index();
    if (i < count) {
        const uchar4 a = x[i];
        z[i] = make_float4(a.x, a.y, a.z, a.w);
    }
}

// One row of the grid for each row of the matrix; `width` is in packs of four.
extern "C" __global__ void add_row(const float4* x, const float4* row, float4* z, unsigned width) {
    const unsigned column = blockIdx.x * blockDim.x + threadIdx.x;
    const word_t i = (word_t)blockIdx.y * width + column;
    const float4 a = x[i], b = row[column];
    z[i] = make_float4(a.x + b.x, a.y + b.y, a.z + b.z, a.w + b.w);
}

extern "C" __global__ void add_every_second(const float* x, const float* y, float* z, word_t count) {
    const word_t i = thread_index();
    if (i < count) {
        z[i] = x[2 * i] + y[2 * i];
    }
}

// The sum of all elements of x, or of their products with y; additions are in any order.
__device__ void add_up(float sum, float* out) {
    __shared__ float parts[32];
    for (int reach = 16; reach > 0; reach /= 2) {
        sum += __shfl_down_sync(~0u, sum, reach);
    }
    if (threadIdx.x % 32 == 0) {
        parts[threadIdx.x / 32] = sum;
    }
    __syncthreads();
    if (threadIdx.x < 32) {
        sum = threadIdx.x < blockDim.x / 32 ? parts[threadIdx.x] : 0.0f;
        for (int reach = 16; reach > 0; reach /= 2) {
            sum += __shfl_down_sync(~0u, sum, reach);
        }
        if (threadIdx.x == 0) {
            atomicAdd(out, sum);
        }
    }
}

extern "C" __global__ void sum(const float4* x, float* out, word_t count) {
    float sum = 0.0f;
    for (word_t i = thread_index(); i < count; i += (word_t)gridDim.x * blockDim.x) {
        const float4 a = x[i];
        sum += a.x + a.y + a.z + a.w;
    }
    add_up(sum, out);
}

extern "C" __global__ void dot(const float4* x, const float4* y, float* out, word_t count) {
    float sum = 0.0f;
    for (word_t i = thread_index(); i < count; i += (word_t)gridDim.x * blockDim.x) {
        const float4 a = x[i], b = y[i];
        sum += a.x * b.x + a.y * b.y + a.z * b.z + a.w * b.w;
    }
    add_up(sum, out);
}

// z = x + transposed y, or only the transpose, by tiles; blocks of 32 x 8.
template <bool ADD>
__device__ void transpose(const float* x, const float* y, float* z, unsigned side) {
    __shared__ float tile[32][33];
    const unsigned left = blockIdx.x * 32, top = blockIdx.y * 32;
    for (unsigned k = threadIdx.y; k < 32; k += 8) {
        tile[k][threadIdx.x] = y[(word_t)(left + k) * side + top + threadIdx.x];
    }
    __syncthreads();
    for (unsigned k = threadIdx.y; k < 32; k += 8) {
        const word_t i = (word_t)(top + k) * side + left + threadIdx.x;
        z[i] = (ADD ? x[i] : 0.0f) + tile[threadIdx.x][k];
    }
}

extern "C" __global__ void add_transposed(const float* x, const float* y, float* z, unsigned side) {
    transpose<true>(x, y, z, side);
}

extern "C" __global__ void copy_transposed(const float* y, float* z, unsigned side) {
    transpose<false>(y, y, z, side);
}

extern "C" __global__ void gather(const float* x, const int* indices, float* z, word_t count) {
    const word_t i = thread_index();
    if (i < count) {
        z[i] = x[indices[i]];
    }
}

extern "C" __global__ void scatter(const float* x, const int* indices, float* z, word_t count) {
    const word_t i = thread_index();
    if (i < count) {
        z[indices[i]] = x[i];
    }
}

// A copy between arrays of different pitches; threads along x, grid y and z for the outer axes.
extern "C" __global__ void copy_3d(const float* x, float* z, unsigned width, word_t from_row,
                                   word_t from_plane, word_t to_row, word_t to_plane) {
    const unsigned column = blockIdx.x * blockDim.x + threadIdx.x;
    const unsigned row = blockIdx.y * blockDim.y + threadIdx.y;
    if (column < width) {
        z[blockIdx.z * to_plane + row * to_row + column] =
            x[blockIdx.z * from_plane + row * from_row + column];
    }
}

extern "C" __global__ void nothing() {}
