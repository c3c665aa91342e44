// Variables of the module: counters, tables, and one that kernels share with the host.
__device__ unsigned long long counter;
__device__ float table[4] = {0.5f, 1.5f, 2.5f, 3.5f};
static __device__ int hidden = 7;
__constant__ int offsets[2][2] = {{1, 2}, {3, 4}};

__global__ void use(float *out) {
    const int i = threadIdx.x;
    atomicAdd(&counter, 1ull);
    out[i] = table[i % 4] * hidden + offsets[i / 2 % 2][i % 2];
}
__global__ void change(int value) { hidden = value; }
