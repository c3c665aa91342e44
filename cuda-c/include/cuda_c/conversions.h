// Reinterpretation of bits, and conversions between numbers with a stated rounding.
//
// Integers out of range saturate, as on a GPU. NaN becomes zero if both types have 32 bits, otherwise the
// value with only the highest bit set. Reinterpretations are `constexpr`, because programs use `CUDART_INF_F`
// in `constexpr` functions.
#pragma once

#include "numbers.h"

extern "C++" {
static inline constexpr int __float_as_int(float x) { return cuda_c::bits<int>(x); }
static inline constexpr unsigned int __float_as_uint(float x) { return cuda_c::bits<unsigned int>(x); }
static inline constexpr float __int_as_float(int x) { return cuda_c::bits<float>(x); }
static inline constexpr float __uint_as_float(unsigned int x) { return cuda_c::bits<float>(x); }
static inline constexpr long long __double_as_longlong(double x) { return cuda_c::bits<long long>(x); }
static inline constexpr double __longlong_as_double(long long x) { return cuda_c::bits<double>(x); }
static inline constexpr int __double2hiint(double x) { return (int)(cuda_c::bits<long long>(x) >> 32); }
static inline constexpr int __double2loint(double x) { return (int)cuda_c::bits<long long>(x); }
static inline constexpr double __hiloint2double(int high, int low) {
    return cuda_c::bits<double>((unsigned long long)(unsigned int)high << 32 | (unsigned int)low);
}

#define CUDA_C_TO_INTEGER(from, name, to, type, limit, nan)                                     \
    static inline to __##from##2##name##_rn(type x) {                                           \
        return cuda_c::saturated<to, type>(cuda_c::round_rn(x), limit, nan);                    \
    }                                                                                           \
    static inline to __##from##2##name##_rz(type x) {                                           \
        return cuda_c::saturated<to, type>(cuda_c::round_rz(x), limit, nan);                    \
    }                                                                                           \
    static inline to __##from##2##name##_ru(type x) {                                           \
        return cuda_c::saturated<to, type>(cuda_c::round_ru(x), limit, nan);                    \
    }                                                                                           \
    static inline to __##from##2##name##_rd(type x) {                                           \
        return cuda_c::saturated<to, type>(cuda_c::round_rd(x), limit, nan);                    \
    }
CUDA_C_TO_INTEGER(float, int, int, float, 0x1p31f, 0)
CUDA_C_TO_INTEGER(float, uint, unsigned int, float, 0x1p32f, 0)
CUDA_C_TO_INTEGER(float, ll, long long, float, 0x1p63f, -0x7fffffffffffffffll - 1)
CUDA_C_TO_INTEGER(float, ull, unsigned long long, float, 0x1p64f, 0x8000000000000000ull)
CUDA_C_TO_INTEGER(double, int, int, double, 0x1p31, -0x7fffffff - 1)
CUDA_C_TO_INTEGER(double, uint, unsigned int, double, 0x1p32, 0x80000000u)
CUDA_C_TO_INTEGER(double, ll, long long, double, 0x1p63, -0x7fffffffffffffffll - 1)
CUDA_C_TO_INTEGER(double, ull, unsigned long long, double, 0x1p64, 0x8000000000000000ull)
#undef CUDA_C_TO_INTEGER

} // extern "C++"
