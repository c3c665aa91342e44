// CUDA C conversions from and to 16-bit floats with a stated rounding, for AMD's compilers.
//
// AMD's own conversions round to nearest or truncate, whatever their names say. Only the conversions of
// floats are right, from ROCm 6 on.

#ifndef PYGPU_AMD_HALF_ROUNDING_HPP
#define PYGPU_AMD_HALF_ROUNDING_HPP

#include <pygpu-amd-rounding.hpp>

// The language's headers for the CPU have them.
#if defined(__HIP__) && !defined(__GPUARRAY_HOST__)

extern "C++" {
namespace pygpu_rounded {

struct Half {
    unsigned short bits;
};
template <> struct Form<Half> {
    typedef unsigned short Word;
    enum { DIGITS = 11, LEAST = -24 };
};
__device__ inline __half half_of(Half x) { return __ushort_as_half(x.bits); }

} // namespace pygpu_rounded

#define __float2half_rd pygpu_float2half_rd
#define __float2half_ru pygpu_float2half_ru
#define __float2half_rz pygpu_float2half_rz
#define __short2half_rd pygpu_short2half_rd
#define __short2half_ru pygpu_short2half_ru
#define __short2half_rz pygpu_short2half_rz
#define __ushort2half_rd pygpu_ushort2half_rd
#define __ushort2half_ru pygpu_ushort2half_ru
#define __ushort2half_rz pygpu_ushort2half_rz
#define __int2half_rd pygpu_int2half_rd
#define __int2half_ru pygpu_int2half_ru
#define __int2half_rz pygpu_int2half_rz
#define __uint2half_rd pygpu_uint2half_rd
#define __uint2half_ru pygpu_uint2half_ru
#define __uint2half_rz pygpu_uint2half_rz
#define __ll2half_rd pygpu_ll2half_rd
#define __ll2half_ru pygpu_ll2half_ru
#define __ll2half_rz pygpu_ll2half_rz
#define __ull2half_rd pygpu_ull2half_rd
#define __ull2half_ru pygpu_ull2half_ru
#define __ull2half_rz pygpu_ull2half_rz
#define __half2short_rn pygpu_half2short_rn
#define __half2short_rd pygpu_half2short_rd
#define __half2short_ru pygpu_half2short_ru
#define __half2short_rz pygpu_half2short_rz
#define __half2ushort_rn pygpu_half2ushort_rn
#define __half2ushort_rd pygpu_half2ushort_rd
#define __half2ushort_ru pygpu_half2ushort_ru
#define __half2ushort_rz pygpu_half2ushort_rz
#define __half2int_rn pygpu_half2int_rn
#define __half2int_rd pygpu_half2int_rd
#define __half2int_ru pygpu_half2int_ru
#define __half2int_rz pygpu_half2int_rz
#define __half2uint_rn pygpu_half2uint_rn
#define __half2uint_rd pygpu_half2uint_rd
#define __half2uint_ru pygpu_half2uint_ru
#define __half2uint_rz pygpu_half2uint_rz
#define __half2ll_rn pygpu_half2ll_rn
#define __half2ll_rd pygpu_half2ll_rd
#define __half2ll_ru pygpu_half2ll_ru
#define __half2ll_rz pygpu_half2ll_rz
#define __half2ull_rn pygpu_half2ull_rn
#define __half2ull_rd pygpu_half2ull_rd
#define __half2ull_ru pygpu_half2ull_ru
#define __half2ull_rz pygpu_half2ull_rz

#define PYGPU_FUNCTION(type, name, parameters, value)                                           \
    template <int = 0> __device__ inline type name parameters {                                 \
        using namespace pygpu_rounded;                                                          \
        return value;                                                                           \
    }
#define PYGPU_TO_INTEGERS(suffix, to)                                                           \
    PYGPU_FUNCTION(short, __half2short_##suffix, (__half x),                                    \
                   (to_integer<short, to>(__half2float(x), (short)0)))                          \
    PYGPU_FUNCTION(unsigned short, __half2ushort_##suffix, (__half x),                          \
                   (to_integer<unsigned short, to>(__half2float(x), (unsigned short)0)))        \
    PYGPU_FUNCTION(int, __half2int_##suffix, (__half x),                                        \
                   (to_integer<int, to>(__half2float(x), 0)))                                   \
    PYGPU_FUNCTION(unsigned int, __half2uint_##suffix, (__half x),                              \
                   (to_integer<unsigned int, to>(__half2float(x), (unsigned int)0)))            \
    PYGPU_FUNCTION(long long, __half2ll_##suffix, (__half x),                                   \
                   (to_integer<long long, to>(__half2float(x), (long long)(1ull << 63))))       \
    PYGPU_FUNCTION(unsigned long long, __half2ull_##suffix, (__half x),                         \
                   (to_integer<unsigned long long, to>(__half2float(x), 1ull << 63)))
#define PYGPU_OF_INTEGER(I, name, W, suffix, to)                                                \
    PYGPU_FUNCTION(__half, name##_##suffix, (I x), (half_of(of_integer<Half, to, W>(x))))
#define PYGPU_DIRECTION(suffix, to)                                                             \
    PYGPU_TO_INTEGERS(suffix, to)                                                               \
    PYGPU_FUNCTION(__half, __float2half_##suffix, (float x), (half_of(narrowed<Half, to>(x))))  \
    PYGPU_OF_INTEGER(short, __short2half, unsigned int, suffix, to)                             \
    PYGPU_OF_INTEGER(unsigned short, __ushort2half, unsigned int, suffix, to)                   \
    PYGPU_OF_INTEGER(int, __int2half, unsigned int, suffix, to)                                 \
    PYGPU_OF_INTEGER(unsigned int, __uint2half, unsigned int, suffix, to)                       \
    PYGPU_OF_INTEGER(long long, __ll2half, unsigned long long, suffix, to)                      \
    PYGPU_OF_INTEGER(unsigned long long, __ull2half, unsigned long long, suffix, to)
PYGPU_DIRECTION(rd, DOWN)
PYGPU_DIRECTION(ru, UP)
PYGPU_DIRECTION(rz, TO_ZERO)
PYGPU_TO_INTEGERS(rn, NEAREST)
PYGPU_FUNCTION(__half, __double2half, (double x), (half_of(narrowed<Half, NEAREST>(x))))

#undef PYGPU_DIRECTION
#undef PYGPU_OF_INTEGER
#undef PYGPU_TO_INTEGERS
#undef PYGPU_FUNCTION

} // extern "C++"

#endif
#endif
