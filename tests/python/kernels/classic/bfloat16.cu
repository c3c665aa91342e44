// 16-bit numbers with the range of float.
#include <cuda_bf16.h>

extern "C" __global__ void scale(const __nv_bfloat16 *x, __nv_bfloat16 *y, float factor, int n) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = __float2bfloat16(__bfloat162float(x[i]) * factor);
}
