// What every text of CUDA C is compiled behind. The driver includes this file alone, from the folder
// that it is in; all other headers are found there by the names that programs include.
#ifndef GPUARRAY_PRELUDE_H
#define GPUARRAY_PRELUDE_H

#include "gpuarray_abi.h"

#define __host__
#define __grid_constant__
#define __forceinline__ inline __attribute__((always_inline))
#define __noinline__ __attribute__((noinline))
#define __align__(n) __attribute__((aligned(n)))

extern "C++" {

// The place of the call, which errors show, and by which lanes without a mask meet.
#define GPUARRAY_PLACE const char *file = __builtin_FILE(), unsigned line = __builtin_LINE()

static inline void __syncthreads(GPUARRAY_PLACE) { gpuarray_abi::barrier(file, line); }

} // extern "C++"

#endif
