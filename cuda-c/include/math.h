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

// C's functions of long double, which libraries name. CUDA C does not have the type.
extern "C" {
#define CUDA_C_LONG_1(name) long double name##l(long double);
#define CUDA_C_LONG_2(name) long double name##l(long double, long double);
#define CUDA_C_LONG_TO(type, name) type name##l(long double);
CUDA_C_LONG_1(acos)
CUDA_C_LONG_1(acosh)
CUDA_C_LONG_1(asin)
CUDA_C_LONG_1(asinh)
CUDA_C_LONG_1(atan)
CUDA_C_LONG_1(atanh)
CUDA_C_LONG_1(cbrt)
CUDA_C_LONG_1(ceil)
CUDA_C_LONG_1(cos)
CUDA_C_LONG_1(cosh)
CUDA_C_LONG_1(erf)
CUDA_C_LONG_1(erfc)
CUDA_C_LONG_1(exp)
CUDA_C_LONG_1(exp2)
CUDA_C_LONG_1(expm1)
CUDA_C_LONG_1(fabs)
CUDA_C_LONG_1(floor)
CUDA_C_LONG_1(lgamma)
CUDA_C_LONG_1(log)
CUDA_C_LONG_1(log10)
CUDA_C_LONG_1(log1p)
CUDA_C_LONG_1(log2)
CUDA_C_LONG_1(logb)
CUDA_C_LONG_1(nearbyint)
CUDA_C_LONG_1(rint)
CUDA_C_LONG_1(round)
CUDA_C_LONG_1(sin)
CUDA_C_LONG_1(sinh)
CUDA_C_LONG_1(sqrt)
CUDA_C_LONG_1(tan)
CUDA_C_LONG_1(tanh)
CUDA_C_LONG_1(tgamma)
CUDA_C_LONG_1(trunc)
CUDA_C_LONG_2(atan2)
CUDA_C_LONG_2(copysign)
CUDA_C_LONG_2(fdim)
CUDA_C_LONG_2(fmax)
CUDA_C_LONG_2(fmin)
CUDA_C_LONG_2(fmod)
CUDA_C_LONG_2(hypot)
CUDA_C_LONG_2(nextafter)
CUDA_C_LONG_2(nexttoward)
CUDA_C_LONG_2(pow)
CUDA_C_LONG_2(remainder)
CUDA_C_LONG_TO(int, ilogb)
CUDA_C_LONG_TO(long, lrint)
CUDA_C_LONG_TO(long, lround)
CUDA_C_LONG_TO(long long, llrint)
CUDA_C_LONG_TO(long long, llround)
#undef CUDA_C_LONG_1
#undef CUDA_C_LONG_2
#undef CUDA_C_LONG_TO
double nexttoward(double, long double);
float nexttowardf(float, long double);
long double fmal(long double, long double, long double);
long double frexpl(long double, int*);
long double ldexpl(long double, int);
long double modfl(long double, long double*);
long double nanl(const char*);
long double remquol(long double, long double, int*);
long double scalblnl(long double, long);
long double scalbnl(long double, int);
}

extern "C++" {
template <class T_> static inline bool isnormal(T_ x) { return __builtin_isnormal(x) != 0; }
template <class T_> static inline int fpclassify(T_ x) {
    return __builtin_fpclassify(FP_NAN, FP_INFINITE, FP_NORMAL, FP_SUBNORMAL, FP_ZERO, x);
}
}
