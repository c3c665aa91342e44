// CUDA C functions for argument types that AMD's compilers do not overload: AMD has a template for any two
// numbers that computes in double, or nothing.
//
// ROCm versions differ in the overloads that they have. The functions here are templates that deduce fewer
// types than AMD's templates, or none. Each is preferred to AMD's templates, and yields to an AMD function
// for the same types and to a function of the program.

#ifndef PYGPU_AMD_OVERLOADS_HPP
#define PYGPU_AMD_OVERLOADS_HPP

// The language's headers for the CPU have them.
#if defined(__HIP__) && !defined(__GPUARRAY_HOST__)

extern "C++" {

#define PYGPU_OVERLOAD template <int = 0> __device__ inline
template <bool condition, class T> struct pygpu_if {};
template <class T> struct pygpu_if<true, T> {
    typedef T type;
};
// The compiler's name of a type, which is also part of function names.
template <class T> struct pygpu_is {
    static constexpr bool integer = __is_integral(T), structure = __is_class(T);
};

// Extremes of two integers. For types of up to 32 bits the result is an int or an unsigned int, as in an
// expression. For larger types the result is unsigned if one of the two is.
template <class T> constexpr __device__ inline T pygpu_smaller(T x, T y) { return y < x ? y : x; }
template <class T> constexpr __device__ inline T pygpu_larger(T x, T y) { return x < y ? y : x; }
#define PYGPU_EXTREMES(T, U)                                                                    \
    PYGPU_OVERLOAD constexpr decltype((T)0 + (U)0) min(T x, U y) {                              \
        return pygpu_smaller<decltype((T)0 + (U)0)>(x, y);                                      \
    }                                                                                           \
    PYGPU_OVERLOAD constexpr decltype((T)0 + (U)0) max(T x, U y) {                              \
        return pygpu_larger<decltype((T)0 + (U)0)>(x, y);                                       \
    }
#define PYGPU_EXTREMES_WITH(T)                                                                  \
    PYGPU_EXTREMES(T, bool)                                                                     \
    PYGPU_EXTREMES(T, char)                                                                     \
    PYGPU_EXTREMES(T, signed char)                                                              \
    PYGPU_EXTREMES(T, unsigned char)                                                            \
    PYGPU_EXTREMES(T, short)                                                                    \
    PYGPU_EXTREMES(T, unsigned short)                                                           \
    PYGPU_EXTREMES(T, int)                                                                      \
    PYGPU_EXTREMES(T, unsigned int)
PYGPU_EXTREMES_WITH(bool)
PYGPU_EXTREMES_WITH(char)
PYGPU_EXTREMES_WITH(signed char)
PYGPU_EXTREMES_WITH(unsigned char)
PYGPU_EXTREMES_WITH(short)
PYGPU_EXTREMES_WITH(unsigned short)
PYGPU_EXTREMES_WITH(int)
PYGPU_EXTREMES_WITH(unsigned int)
PYGPU_EXTREMES(long, unsigned long)
PYGPU_EXTREMES(unsigned long, long)
PYGPU_EXTREMES(long long, unsigned long long)
PYGPU_EXTREMES(unsigned long long, long long)
#undef PYGPU_EXTREMES_WITH
#undef PYGPU_EXTREMES

// Functions of one float.
#define PYGPU_OF_FLOAT(name) PYGPU_OVERLOAD float name(float x) { return name##f(x); }
PYGPU_OF_FLOAT(cospi)
PYGPU_OF_FLOAT(cyl_bessel_i0)
PYGPU_OF_FLOAT(cyl_bessel_i1)
PYGPU_OF_FLOAT(erfcinv)
PYGPU_OF_FLOAT(erfcx)
PYGPU_OF_FLOAT(erfinv)
PYGPU_OF_FLOAT(exp10)
PYGPU_OF_FLOAT(j0)
PYGPU_OF_FLOAT(j1)
PYGPU_OF_FLOAT(normcdf)
PYGPU_OF_FLOAT(normcdfinv)
PYGPU_OF_FLOAT(rcbrt)
PYGPU_OF_FLOAT(rsqrt)
PYGPU_OF_FLOAT(sinpi)
PYGPU_OF_FLOAT(y0)
PYGPU_OF_FLOAT(y1)
#undef PYGPU_OF_FLOAT
PYGPU_OVERLOAD float jn(int n, float x) { return jnf(n, x); }
PYGPU_OVERLOAD float yn(int n, float x) { return ynf(n, x); }
PYGPU_OVERLOAD void sincos(float x, float* sine, float* cosine) { sincosf(x, sine, cosine); }
PYGPU_OVERLOAD void sincospi(float x, float* sine, float* cosine) { sincospif(x, sine, cosine); }

// A float and integers stay floats.
#define PYGPU_FLOAT(are_integers) typename pygpu_if<are_integers, float>::type
#define PYGPU_WITH_INTEGER(name)                                                                \
    template <class T> __device__ inline PYGPU_FLOAT(pygpu_is<T>::integer) name(T x, float y) { \
        return name##f((float)x, y);                                                            \
    }                                                                                           \
    template <class T> __device__ inline PYGPU_FLOAT(pygpu_is<T>::integer) name(float x, T y) { \
        return name##f(x, (float)y);                                                            \
    }
PYGPU_WITH_INTEGER(atan2)
PYGPU_WITH_INTEGER(fdim)
PYGPU_WITH_INTEGER(fmax)
PYGPU_WITH_INTEGER(fmin)
PYGPU_WITH_INTEGER(fmod)
PYGPU_WITH_INTEGER(hypot)
PYGPU_WITH_INTEGER(nextafter)
PYGPU_WITH_INTEGER(pow)
PYGPU_WITH_INTEGER(remainder)
#undef PYGPU_WITH_INTEGER
#define PYGPU_FMA_OF_TWO(T, U, V)                                                               \
    template <class I, class J>                                                                 \
    __device__ inline PYGPU_FLOAT(pygpu_is<I>::integer && pygpu_is<J>::integer) fma(T x, U y, V z) { \
        return fmaf((float)x, (float)y, (float)z);                                              \
    }
#define PYGPU_FMA_OF_ONE(T, U, V)                                                               \
    template <class I> __device__ inline PYGPU_FLOAT(pygpu_is<I>::integer) fma(T x, U y, V z) { \
        return fmaf((float)x, (float)y, (float)z);                                              \
    }
PYGPU_FMA_OF_TWO(I, J, float)
PYGPU_FMA_OF_TWO(I, float, J)
PYGPU_FMA_OF_TWO(float, I, J)
PYGPU_FMA_OF_ONE(I, float, float)
PYGPU_FMA_OF_ONE(float, I, float)
PYGPU_FMA_OF_ONE(float, float, I)
#undef PYGPU_FMA_OF_TWO
#undef PYGPU_FMA_OF_ONE
#undef PYGPU_FLOAT

// Atomics of signed 64-bit and of 16-bit integers.
#define PYGPU_EXTREME(name, builtin)                                                            \
    PYGPU_OVERLOAD long long name(long long* place, long long value) {                          \
        return builtin(place, value, __ATOMIC_RELAXED);                                         \
    }
PYGPU_EXTREME(atomicMin, __atomic_fetch_min)
PYGPU_EXTREME(atomicMax, __atomic_fetch_max)
PYGPU_EXTREME(atomicMin_system, __atomic_fetch_min)
PYGPU_EXTREME(atomicMax_system, __atomic_fetch_max)
#undef PYGPU_EXTREME
PYGPU_OVERLOAD unsigned short atomicCAS(unsigned short* place, unsigned short expected,
                                        unsigned short value) {
    unsigned int* word = (unsigned int*)((unsigned long long)place & ~3ull);
    const unsigned int shift = (unsigned long long)place & 2 ? 16 : 0, mask = 0xffffu << shift;
    unsigned int seen = __atomic_load_n(word, __ATOMIC_RELAXED);
    while ((unsigned short)(seen >> shift) == expected) {
        const unsigned int next = (seen & ~mask) | (unsigned int)value << shift;
        const unsigned int found = atomicCAS(word, seen, next);
        if (found == seen) break;
        seen = found;
    }
    return (unsigned short)(seen >> shift);
}
#undef PYGPU_OVERLOAD

#if __clang_major__ < 16
// ROCm 5 has it for unsigned integers only.
__device__ inline int pygpu_hadd(int x, int y) { return (int)(((long long)x + y) >> 1); }
template <class T>
__device__ inline typename pygpu_if<pygpu_is<T>::structure, T>::type pygpu_hadd(T x, T y) {
    return __hadd(x, y);
}
#define __hadd pygpu_hadd
#endif

} // extern "C++"

#endif
#endif
