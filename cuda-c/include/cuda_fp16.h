// Half-precision numbers: `half`, `half2` and their functions.
#pragma once

#include "cuda_c/narrow.h"

#define CUDA_C_H __half
#define CUDA_C_H2 __half2
#define CUDA_C_NAME half
#define CUDA_C_F Half
#include "cuda_c/narrow_functions.h"

extern "C++" {
typedef __half half;
typedef __half2 half2;
typedef __half __nv_half;
typedef __half2 __nv_half2;
typedef __half_raw __nv_half_raw;
typedef __half2_raw __nv_half2_raw;
typedef __half nv_half;
typedef __half2 nv_half2;
}

#define __CUDA_FP16_TYPES_EXIST__
#define CUDART_INF_FP16 __ushort_as_half((unsigned short)0x7c00)
#define CUDART_NAN_FP16 __ushort_as_half((unsigned short)0x7fff)
#define CUDART_MIN_DENORM_FP16 __ushort_as_half((unsigned short)0x0001)
#define CUDART_MAX_NORMAL_FP16 __ushort_as_half((unsigned short)0x7bff)
#define CUDART_NEG_ZERO_FP16 __ushort_as_half((unsigned short)0x8000)
#define CUDART_ZERO_FP16 __ushort_as_half((unsigned short)0x0000)
#define CUDART_ONE_FP16 __ushort_as_half((unsigned short)0x3c00)
