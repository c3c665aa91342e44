// The constants of the system's header. CUDA C's functions are already declared.
#pragma once

#include "cuda_c/math_names.h"

#ifndef INFINITY
#define INFINITY __builtin_inff()
#endif
#ifndef NAN
#define NAN __builtin_nanf("")
#endif
#ifndef HUGE_VAL
#define HUGE_VAL __builtin_inf()
#endif
#ifndef HUGE_VALF
#define HUGE_VALF __builtin_inff()
#endif
#ifndef FP_NAN
#define FP_NAN 0
#define FP_INFINITE 1
#define FP_ZERO 2
#define FP_SUBNORMAL 3
#define FP_NORMAL 4
#define FP_ILOGB0 (-2147483647 - 1)
#define FP_ILOGBNAN (-2147483647 - 1)
#endif

extern "C++" {
template <class T_> static inline bool isnormal(T_ x) { return __builtin_isnormal(x) != 0; }
template <class T_> static inline int fpclassify(T_ x) {
    return __builtin_fpclassify(FP_NAN, FP_INFINITE, FP_NORMAL, FP_SUBNORMAL, FP_ZERO, x);
}
}
