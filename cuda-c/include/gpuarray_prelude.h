// The prelude: the headers that precede every text of CUDA C. The front end includes only this file, from its
// folder; programs include the other headers there by name.
//
// It includes the system's headers only as far as their names cannot conflict with a program's. Programs can
// therefore name their functions `select` or `index`. Each file of `cuda_c/` covers one concept, and every
// function is `static inline`.
//
// A template that other functions here use returns `auto`. A compiler that precompiles this file then
// instantiates it once, instead of after each text.
#ifndef GPUARRAY_PRELUDE_H
#define GPUARRAY_PRELUDE_H

#include "gpuarray_abi.h"
#include "cuda_c/regions.h"
#include "cuda_c/check.h"

#include "cuda_c/qualifiers.h"
#include "cuda_c/vectors.h"
#include "cuda_c/runtime_types.h"
#include "cuda_c/integer.h"
#include "cuda_c/dot_products.h"
#include "cuda_c/simd.h"
#include "cuda_c/conversions.h"
#include "cuda_c/out_of_range.h"
#include "cuda_c/libm.h"
#include "cuda_c/special.h"
#include "cuda_c/rounding.h"
#include "cuda_c/threads.h"
#include "cuda_c/warp.h"
#include "cuda_c/volatile_writes.h"
#include "cuda_c/memory.h"
#include "cuda_c/atomics.h"
#include "cuda_c/texture_types.h"
#include "cuda_c/textures.h"
#include "cuda_c/surfaces.h"
#ifdef GPUARRAY_HIP
#include "cuda_c/hip_lanes.h"
#include "cuda_c/hip_textures.h"
// hipRTC has binary16 built in.
#include "cuda_fp16.h"
#endif

#endif
