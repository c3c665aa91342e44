// A program's macros may have any names that are not documented for the headers included after them: all
// capital letters, and words for sizes, types and directions.
#define A macro of the program
#define B macro of the program
#define C macro of the program
#define D macro of the program
#define E macro of the program
#define F macro of the program
#define G macro of the program
#define H macro of the program
#define I macro of the program
#define J macro of the program
#define K macro of the program
#define L macro of the program
#define M macro of the program
#define N macro of the program
#define O macro of the program
#define P macro of the program
#define Q macro of the program
#define R macro of the program
#define S macro of the program
#define T macro of the program
#define U macro of the program
#define V macro of the program
#define W macro of the program
#define X macro of the program
#define Y macro of the program
#define Z macro of the program
#define BITS macro of the program
#define BLOCK macro of the program
#define BLOCK_SIZE macro of the program
#define COUNT macro of the program
#define DOWN macro of the program
#define HEIGHT macro of the program
#define INDEX macro of the program
#define KEPT macro of the program
#define LEFT macro of the program
#define LENGTH macro of the program
#define LIMIT macro of the program
#define MASK macro of the program
#define MAX macro of the program
#define MIN macro of the program
#define OTHER macro of the program
#define PENDING macro of the program
#define RADIUS macro of the program
#define RIGHT macro of the program
#define SCOPE macro of the program
#define SIZE macro of the program
#define THREADS macro of the program
#define TILE macro of the program
#define TYPE macro of the program
#define UP macro of the program
#define WARP macro of the program
#define WARP_SIZE macro of the program
#define WIDTH macro of the program

#include <assert.h>
#include <cooperative_groups.h>
#include <cooperative_groups/memcpy_async.h>
#include <cooperative_groups/reduce.h>
#include <cooperative_groups/scan.h>
#include <cuComplex.h>
#include <cuda/atomic>
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_pipeline.h>
#include <cuda_runtime.h>
#include <curand_kernel.h>
#include <math.h>
#include <math_constants.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// The macros of the headers still work in a program.
__global__ void kernel(float* out, curandState* states) {
    assert(out != nullptr);
    printf("%d %f", (int)threadIdx.x, sqrtf(CUDART_PI_F));
    __syncthreads();
    out[0] = curand_normal(states) + __half2float(__float2half_rn(out[1])) + __shfl_sync(0xffffffffu, out[2], 0);
    cooperative_groups::sync(cooperative_groups::this_thread_block());
    atomicAdd(out, isnan(out[1]) ? INFINITY : 1.0f);
}
