// The types, functions and constants of `cuda_bf16.h`. The including header provides the definitions that
// they need.
#pragma once

#define CUDA_C_H __nv_bfloat16
#define CUDA_C_H2 __nv_bfloat162
#define CUDA_C_NAME bfloat16
#define CUDA_C_F Bfloat16
#include "narrow_functions.h"

extern "C++" {
typedef __nv_bfloat16 nv_bfloat16;
typedef __nv_bfloat162 nv_bfloat162;
}

#define __CUDA_BF16_TYPES_EXIST__
#define CUDART_INF_BF16 __ushort_as_bfloat16((unsigned short)0x7f80)
#define CUDART_NAN_BF16 __ushort_as_bfloat16((unsigned short)0x7fff)
#define CUDART_MIN_DENORM_BF16 __ushort_as_bfloat16((unsigned short)0x0001)
#define CUDART_MAX_NORMAL_BF16 __ushort_as_bfloat16((unsigned short)0x7f7f)
#define CUDART_NEG_ZERO_BF16 __ushort_as_bfloat16((unsigned short)0x8000)
#define CUDART_ZERO_BF16 __ushort_as_bfloat16((unsigned short)0x0000)
#define CUDART_ONE_BF16 __ushort_as_bfloat16((unsigned short)0x3f80)
