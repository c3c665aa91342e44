// All headers together with the system's C++ headers, in one kernel that uses names which may conflict.
#include <algorithm>
#include <assert.h>
#include <cmath>
#include <complex>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <float.h>
#include <limits.h>
#include <limits>
#include <math.h>
#include <numeric>
#include <random>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <type_traits>
#include <utility>
#include <vector>

#include <cooperative_groups.h>
#include <cooperative_groups/memcpy_async.h>
#include <cooperative_groups/reduce.h>
#include <cooperative_groups/scan.h>
#include <cuComplex.h>
#include <cuda.h>
#include <cuda/atomic>
#include <cuda/std/complex>
#include <cuda/std/limits>
#include <cuda_pipeline.h>
#include <cuda_bf16.h>
#include <cuda_c/ptx.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>
#include <curand_kernel.h>
#include <math_constants.h>
#ifdef GPUARRAY_HIP
#include <hip/hip_cooperative_groups.h>
#include <hip/hip_fp16.h>
#include <hip/hip_runtime.h>
#endif

using namespace std;
namespace cg = cooperative_groups;

// A program may define names of the system's library that the language's headers do not declare: see
// `names.cu`.
extern "C" __global__ void kernel(float* out, int n) {
    extern __shared__ float dynamic[];
    __shared__ half2 halves[32];
    out[0] = sin(out[1]) + abs(out[2]) + min(out[0], 1.0f) + std::sqrt(out[3]) + fabs(out[3]);
    out[1] = pow(out[1], 2) + std::max(1.0f, out[2]) + max(n, 3) + (isnan(out[0]) || std::isinf(out[0]));
    const complex<float> z(out[1], out[2]);
    out[2] = std::abs(z) + std::exp(z).real() + cuCabsf(make_cuFloatComplex(1, 2)) + CUDART_PI_F;
    vector<int> values;
    sort(values.begin(), values.end());
    assert(n > 0);
    printf("%f %d\n", out[3], n);
    out[3] = clock() + abs(n) + labs(n) + abs((long)n) + FLT_MAX + M_PI;

    const cg::thread_block block = cg::this_thread_block();
    const auto tile = cg::tiled_partition<16>(block);
    dynamic[threadIdx.x] = tile.shfl_down(out[3], 2) + cg::reduce(tile, out[3], cg::plus<float>());
    cg::memcpy_async(block, dynamic, out, sizeof(float) * 4);
    cg::wait(block);
    const auto active = cg::coalesced_threads();
    if (active.thread_rank() == 0) out[4] = active.size() + cg::inclusive_scan(tile, 3);
    const cg::thread_group part = cg::tiled_partition(block, 8);
    part.sync();
    const cg::thread_block_tile<16> same = tile;
    const auto odd = cg::binary_partition(cg::tiled_partition<32>(block), n % 2);
    out[5] = odd.shfl(out[1], 0) + same.meta_group_rank() + cg::this_grid().thread_rank();
    halves[threadIdx.x % 32] = __shfl_down_sync(~0u, __hadd2(halves[0], halves[1]), 1);
    out[6] = __float2bfloat16(out[6]);
    atomicAdd(out, __low2float(halves[0]));
    atomicAdd(&halves[0], halves[1]);
    cuda::atomic_ref<int>(values[0]).fetch_max(cuda::std::numeric_limits<int>::max());
}
