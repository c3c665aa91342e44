// Arithmetic with a stated rounding.
//
// The directed forms set the processor's rounding mode for one operation, so they are exact for every
// argument. The forms that round to nearest are never fused into a multiply-add. If the processor has fused
// multiply-adds, the compiler gets the operation as a multiply-add already.
#pragma once

#include "numbers.h"

extern "C++" {
namespace cuda_c {

#if defined(__x86_64__)
// Sets the rounding mode in MXCSR. The fences keep the compiler from moving operations across a change.
struct Directed {
    unsigned int before = __builtin_ia32_stmxcsr();
    explicit Directed(Rounding rounding) {
        __builtin_ia32_ldmxcsr((before & ~0x6000u) | (unsigned int)rounding << 13);
    }
    ~Directed() { __builtin_ia32_ldmxcsr(before); }
};
#define CUDA_C_FENCE(value) __asm__ volatile("" : "+x"(value)::"memory")
#elif defined(__aarch64__)
struct Directed {
    unsigned long before;
    explicit Directed(Rounding rounding) {
        __asm__ volatile("mrs %0, fpcr" : "=r"(before)::"memory");
        const unsigned long bits = rounding == ROUNDED_UP ? 1 : rounding == ROUNDED_DOWN ? 2 : rounding == ROUNDED_TO_ZERO ? 3 : 0;
        __asm__ volatile("msr fpcr, %0" ::"r"((before & ~0xc00000ul) | bits << 22) : "memory");
    }
    ~Directed() { __asm__ volatile("msr fpcr, %0" ::"r"(before) : "memory"); }
};
#define CUDA_C_FENCE(value) __asm__ volatile("" : "+w"(value)::"memory")
#else
#error "directed roundings are implemented for x86-64 and AArch64"
#endif

// Returns a value that the compiler can neither compute before this point nor move after it.
template <class T> static inline __attribute__((always_inline)) auto here(T value) {
    CUDA_C_FENCE(value);
    return value;
}
static inline __attribute__((always_inline)) int here_integer(int value) {
    __asm__ volatile("" : "+r"(value)::"memory");
    return value;
}
static inline __attribute__((always_inline)) long long here_integer(long long value) {
    __asm__ volatile("" : "+r"(value)::"memory");
    return value;
}

// A multiply-add in the current rounding mode. Without the instruction, the C library computes it.
static inline float multiply_add(float x, float y, float z) {
    return __builtin_fmaf(x, y, z);
}
static inline double multiply_add(double x, double y, double z) { return __builtin_fma(x, y, z); }
static inline float root(float x) { return __builtin_sqrtf(x); }
static inline double root(double x) { return __builtin_sqrt(x); }

// Operations that are not fused: they are written as multiply-adds in which the product or the sum is exact.
// GCC leaves those alone; clang needs a pragma.
#ifdef __clang__
#define CUDA_C_UNMERGED(plain, merged)                                                          \
    _Pragma("clang fp contract(off)") return plain;
#else
#define CUDA_C_UNMERGED(plain, merged) return merged;
#endif
#if defined(__FP_FAST_FMAF) && defined(__FP_FAST_FMA)
static inline float sum(float x, float y) { CUDA_C_UNMERGED(x + y, __builtin_fmaf(x, 1.0f, y)) }
static inline double sum(double x, double y) { CUDA_C_UNMERGED(x + y, __builtin_fma(x, 1.0, y)) }
static inline float product(float x, float y) { CUDA_C_UNMERGED(x * y, __builtin_fmaf(x, y, -0.0f)) }
static inline double product(double x, double y) { CUDA_C_UNMERGED(x * y, __builtin_fma(x, y, -0.0)) }
#else
static inline float sum(float x, float y) { CUDA_C_UNMERGED(x + y, x + y) }
static inline double sum(double x, double y) { CUDA_C_UNMERGED(x + y, x + y) }
static inline float product(float x, float y) { CUDA_C_UNMERGED(x * y, x * y) }
static inline double product(double x, double y) { CUDA_C_UNMERGED(x * y, x * y) }
#endif
#undef CUDA_C_UNMERGED

// 1 / sqrt(x), rounded to the nearest float. The result is one of two neighbours. The exact square of their
// midpoint, times x, decides which.
static inline float reciprocal_root(float x) {
    const double root = 1 / __builtin_sqrt((double)x);
    const float nearest = (float)root;
    if (!(nearest > 0) || nearest - nearest != 0) return nearest;
    const float other = bits<float>(bits<int>(nearest) + ((double)nearest < root ? 1 : -1));
    const double between = ((double)nearest + other) / 2, square = between * between;
    const double above = square * x, below = __builtin_fma(square, (double)x, -above);
    // Positive if the midpoint is too large.
    const double excess = (above - 1) + below;
    return excess == 0 || (excess > 0) == (other > nearest) ? nearest : other;
}

} // namespace cuda_c

#define CUDA_C_ROUNDED(type, prefix, suffix, rounding)                                          \
    static inline type __##prefix##add_##suffix(type x, type y) {                               \
        cuda_c::Directed mode(cuda_c::rounding);                                               \
        return cuda_c::here(cuda_c::here(x) + cuda_c::here(y));                                 \
    }                                                                                           \
    static inline type __##prefix##sub_##suffix(type x, type y) {                               \
        cuda_c::Directed mode(cuda_c::rounding);                                               \
        return cuda_c::here(cuda_c::here(x) - cuda_c::here(y));                                 \
    }                                                                                           \
    static inline type __##prefix##mul_##suffix(type x, type y) {                               \
        cuda_c::Directed mode(cuda_c::rounding);                                               \
        return cuda_c::here(cuda_c::here(x) * cuda_c::here(y));                                 \
    }                                                                                           \
    static inline type __##prefix##div_##suffix(type x, type y) {                               \
        cuda_c::Directed mode(cuda_c::rounding);                                               \
        return cuda_c::here(cuda_c::here(x) / cuda_c::here(y));                                 \
    }                                                                                           \
    static inline type __##prefix##rcp_##suffix(type x) {                                       \
        cuda_c::Directed mode(cuda_c::rounding);                                               \
        return cuda_c::here((type)1 / cuda_c::here(x));                                         \
    }                                                                                           \
    static inline type __##prefix##sqrt_##suffix(type x) {                                      \
        cuda_c::Directed mode(cuda_c::rounding);                                               \
        return cuda_c::here(cuda_c::root(cuda_c::here(x)));                                     \
    }
#define CUDA_C_ROUNDED_FMA(type, name, suffix, rounding)                                        \
    static inline type name##_##suffix(type x, type y, type z) {                                \
        cuda_c::Directed mode(cuda_c::rounding);                                               \
        return cuda_c::here(                                                                    \
            cuda_c::multiply_add(cuda_c::here(x), cuda_c::here(y), cuda_c::here(z)));           \
    }
#define CUDA_C_DIRECTIONS(macro, ...)                                                           \
    macro(__VA_ARGS__, rz, ROUNDED_TO_ZERO) macro(__VA_ARGS__, ru, ROUNDED_UP) macro(__VA_ARGS__, rd, ROUNDED_DOWN)
CUDA_C_DIRECTIONS(CUDA_C_ROUNDED, float, f)
CUDA_C_DIRECTIONS(CUDA_C_ROUNDED, double, d)
CUDA_C_DIRECTIONS(CUDA_C_ROUNDED_FMA, float, __fmaf)
CUDA_C_DIRECTIONS(CUDA_C_ROUNDED_FMA, double, __fma)
#undef CUDA_C_ROUNDED
#undef CUDA_C_ROUNDED_FMA

#define CUDA_C_NEAREST(type, prefix, fma)                                                       \
    static inline type __##prefix##add_rn(type x, type y) { return cuda_c::sum(x, y); }         \
    static inline type __##prefix##sub_rn(type x, type y) { return cuda_c::sum(x, -y); }        \
    static inline type __##prefix##mul_rn(type x, type y) { return cuda_c::product(x, y); }     \
    static inline type __##prefix##div_rn(type x, type y) { return x / y; }                     \
    static inline type __##prefix##rcp_rn(type x) { return 1 / x; }                             \
    static inline type __##prefix##sqrt_rn(type x) { return cuda_c::root(x); }                  \
    static inline type fma##_rn(type x, type y, type z) { return cuda_c::multiply_add(x, y, z); }
CUDA_C_NEAREST(float, f, __fmaf)
CUDA_C_NEAREST(double, d, __fma)
#undef CUDA_C_NEAREST
static inline float __frsqrt_rn(float x) { return cuda_c::reciprocal_root(x); }
// Subnormal numbers are kept by every form here, so these are the same functions.
#define CUDA_C_FLUSHED(suffix)                                                                  \
    static inline float __fmaf_ieee_##suffix(float x, float y, float z) {                       \
        return __fmaf_##suffix(x, y, z);                                                        \
    }
CUDA_C_FLUSHED(rn)
CUDA_C_FLUSHED(rz)
CUDA_C_FLUSHED(ru)
CUDA_C_FLUSHED(rd)
#undef CUDA_C_FLUSHED

// Conversions to floating point with a stated rounding.
#define CUDA_C_CONVERTED(from, name, to, suffix, rounding)                                      \
    static inline to name##_##suffix(from x) {                                                  \
        cuda_c::Directed mode(cuda_c::rounding);                                               \
        return cuda_c::here((to)cuda_c::here_integer(x));                                       \
    }
// If the highest bit of a word is set, it is halved to fit a signed type. Its lowest bit records what was
// shifted out, so that the half rounds like the whole.
#define CUDA_C_CONVERTED_UNSIGNED(from, wide, name, to, suffix, rounding)                       \
    static inline to name##_##suffix(from x) {                                                  \
        const int above = (wide)x < 0;                                                          \
        const wide kept = above ? (wide)(x >> 1 | (x & 1)) : (wide)x;                           \
        cuda_c::Directed mode(cuda_c::rounding);                                               \
        return cuda_c::here((to)cuda_c::here_integer(kept)) * (above ? 2 : 1);                  \
    }
CUDA_C_DIRECTIONS(CUDA_C_CONVERTED, int, __int2float, float)
CUDA_C_DIRECTIONS(CUDA_C_CONVERTED, long long, __ll2float, float)
CUDA_C_DIRECTIONS(CUDA_C_CONVERTED, long long, __ll2double, double)
CUDA_C_DIRECTIONS(CUDA_C_CONVERTED_UNSIGNED, unsigned int, int, __uint2float, float)
CUDA_C_DIRECTIONS(CUDA_C_CONVERTED_UNSIGNED, unsigned long long, long long, __ull2float, float)
CUDA_C_DIRECTIONS(CUDA_C_CONVERTED_UNSIGNED, unsigned long long, long long, __ull2double, double)
#undef CUDA_C_CONVERTED
#undef CUDA_C_CONVERTED_UNSIGNED
#define CUDA_C_NARROWED(ignored, suffix, rounding)                                              \
    static inline float __double2float_##suffix(double x) {                                     \
        cuda_c::Directed mode(cuda_c::rounding);                                               \
        return cuda_c::here((float)cuda_c::here(x));                                            \
    }
CUDA_C_DIRECTIONS(CUDA_C_NARROWED, )
#undef CUDA_C_NARROWED
#undef CUDA_C_DIRECTIONS
static inline float __int2float_rn(int x) { return (float)x; }
static inline float __uint2float_rn(unsigned int x) { return (float)x; }
static inline float __ll2float_rn(long long x) { return (float)x; }
static inline float __ull2float_rn(unsigned long long x) { return (float)x; }
static inline double __int2double_rn(int x) { return x; }
static inline double __uint2double_rn(unsigned int x) { return x; }
static inline double __ll2double_rn(long long x) { return (double)x; }
static inline double __ull2double_rn(unsigned long long x) { return (double)x; }
static inline float __double2float_rn(double x) { return (float)x; }

} // extern "C++"
#undef CUDA_C_FENCE
