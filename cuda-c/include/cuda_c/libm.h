// The mathematical functions of C, with CUDA's overloads.
//
// Each one calls the system's function, unless that is less accurate than CUDA documents for a GPU. Those
// functions are computed in the next wider type. This file declares no name of the system's headers, so that
// programs can use these names. `math.h` and `cmath`, one folder up, replace the system's headers.
#pragma once

extern "C++" {
namespace cuda_c {

template <class T> struct IsInteger { enum { value = 0 }; };
#define CUDA_C_INTEGER(type)                                                                    \
    template <> struct IsInteger<type> { enum { value = 1 }; };
CUDA_C_INTEGER(bool)
CUDA_C_INTEGER(char)
CUDA_C_INTEGER(signed char)
CUDA_C_INTEGER(unsigned char)
CUDA_C_INTEGER(short)
CUDA_C_INTEGER(unsigned short)
CUDA_C_INTEGER(int)
CUDA_C_INTEGER(unsigned int)
CUDA_C_INTEGER(long)
CUDA_C_INTEGER(unsigned long)
CUDA_C_INTEGER(long long)
CUDA_C_INTEGER(unsigned long long)
#undef CUDA_C_INTEGER

template <bool CONDITION, class T> struct EnableIf {};
template <class T> struct EnableIf<true, T> { typedef T type; };
template <class T, class R> using IfInteger = typename EnableIf<IsInteger<T>::value, R>::type;
// Matches two arguments that are converted to double: integers, or two different types. A float and an
// integer stay float, as in NVRTC. NVRTC rejects the other mixtures; nvcc accepts them.
template <class T, class U> struct IsSame { enum { value = 0 }; };
template <class T> struct IsSame<T, T> { enum { value = 1 }; };
template <class T, class A, class B, class C> struct IsAny {
    enum { value = IsSame<T, A>::value || IsSame<T, B>::value || IsSame<T, C>::value };
};
template <class T> struct IsNumber {
    enum { value = IsInteger<T>::value || IsSame<T, float>::value || IsSame<T, double>::value };
};
template <class T, class U, class R>
using IfMixed = typename EnableIf<IsNumber<T>::value && IsNumber<U>::value &&
                                      (IsInteger<T>::value ? !IsSame<U, float>::value
                                                           : !IsSame<T, U>::value &&
                                                                 !(IsSame<T, float>::value && IsInteger<U>::value)),
                                  R>::type;

// Functions of the C library that not all compilers have as builtins.
extern "C" {
double system_exp10(double) noexcept __asm__("exp10");
float system_exp10f(float) noexcept __asm__("exp10f");
long double system_exp10l(long double) noexcept __asm__("exp10l");
double system_j0(double) noexcept __asm__("j0");
double system_j1(double) noexcept __asm__("j1");
double system_jn(int, double) noexcept __asm__("jn");
double system_y0(double) noexcept __asm__("y0");
double system_y1(double) noexcept __asm__("y1");
double system_yn(int, double) noexcept __asm__("yn");
long double system_lgammal_r(long double, int*) noexcept __asm__("lgammal_r");
double system_lgamma_r(double, int*) noexcept __asm__("lgamma_r");
void system_sincos(double, double*, double*) noexcept __asm__("sincos");
void system_sincosf(float, float*, float*) noexcept __asm__("sincosf");
}

} // namespace cuda_c

// Defines `name` for double, `namef`, the overload for float, and the overload for integers.
#define CUDA_C_MATH(name, of_double, of_float)                                                  \
    static inline double name(double x) { return of_double; }                                   \
    static inline float name##f(float x) { return of_float; }                                   \
    static inline float name(float x) { return name##f(x); }                                    \
    template <class T> static inline cuda_c::IfInteger<T, double> name(T x) {                   \
        return name((double)x);                                                                 \
    }
#define CUDA_C_SYSTEM_MATH(name) CUDA_C_MATH(name, __builtin_##name(x), __builtin_##name##f(x))
CUDA_C_SYSTEM_MATH(acos)
CUDA_C_SYSTEM_MATH(acosh)
CUDA_C_SYSTEM_MATH(asin)
CUDA_C_SYSTEM_MATH(asinh)
CUDA_C_SYSTEM_MATH(atan)
CUDA_C_SYSTEM_MATH(atanh)
CUDA_C_SYSTEM_MATH(ceil)
CUDA_C_SYSTEM_MATH(cos)
CUDA_C_SYSTEM_MATH(erf)
CUDA_C_SYSTEM_MATH(exp)
CUDA_C_SYSTEM_MATH(exp2)
CUDA_C_SYSTEM_MATH(expm1)
CUDA_C_SYSTEM_MATH(fabs)
CUDA_C_SYSTEM_MATH(floor)
CUDA_C_SYSTEM_MATH(log)
CUDA_C_SYSTEM_MATH(log2)
CUDA_C_SYSTEM_MATH(logb)
CUDA_C_SYSTEM_MATH(nearbyint)
CUDA_C_SYSTEM_MATH(rint)
CUDA_C_SYSTEM_MATH(round)
CUDA_C_SYSTEM_MATH(sin)
CUDA_C_SYSTEM_MATH(sinh)
CUDA_C_SYSTEM_MATH(sqrt)
CUDA_C_SYSTEM_MATH(tan)
CUDA_C_SYSTEM_MATH(trunc)
CUDA_C_MATH(cbrt, (double)__builtin_cbrtl(x), __builtin_cbrtf(x))
CUDA_C_MATH(cosh, (double)__builtin_coshl(x), (float)__builtin_cosh(x))
CUDA_C_MATH(erfc, (double)__builtin_erfcl(x), (float)__builtin_erfc(x))
CUDA_C_MATH(exp10, (double)cuda_c::system_exp10l(x), (float)cuda_c::system_exp10(x))
CUDA_C_MATH(log10, (double)__builtin_log10l(x), (float)__builtin_log10(x))
CUDA_C_MATH(log1p, __builtin_log1p(x), (float)__builtin_log1p(x))
CUDA_C_MATH(tanh, (double)__builtin_tanhl(x), (float)__builtin_tanh(x))
CUDA_C_MATH(tgamma, (double)__builtin_tgammal(x), (float)__builtin_tgamma(x))
CUDA_C_MATH(j0, cuda_c::system_j0(x), (float)cuda_c::system_j0(x))
CUDA_C_MATH(j1, cuda_c::system_j1(x), (float)cuda_c::system_j1(x))
CUDA_C_MATH(y0, cuda_c::system_y0(x), (float)cuda_c::system_y0(x))
CUDA_C_MATH(y1, cuda_c::system_y1(x), (float)cuda_c::system_y1(x))
namespace cuda_c {
// The C library's lgamma writes to a global variable.
static inline double lgamma(double x) {
    int sign;
    return (double)system_lgammal_r(x, &sign);
}
static inline float lgammaf(float x) {
    int sign;
    return (float)system_lgamma_r(x, &sign);
}
} // namespace cuda_c
CUDA_C_MATH(lgamma, cuda_c::lgamma(x), cuda_c::lgammaf(x))

#define CUDA_C_MATH_2(name, of_double, of_float)                                                \
    static inline double name(double x, double y) { return of_double; }                         \
    static inline float name##f(float x, float y) { return of_float; }                          \
    static inline float name(float x, float y) { return name##f(x, y); }                        \
    template <class T, class U> static inline cuda_c::IfMixed<T, U, double> name(T x, U y) {    \
        return name((double)x, (double)y);                                                      \
    }
#define CUDA_C_SYSTEM_MATH_2(name)                                                              \
    CUDA_C_MATH_2(name, __builtin_##name(x, y), __builtin_##name##f(x, y))
CUDA_C_SYSTEM_MATH_2(atan2)
CUDA_C_SYSTEM_MATH_2(copysign)
CUDA_C_SYSTEM_MATH_2(fdim)
CUDA_C_SYSTEM_MATH_2(fmod)
CUDA_C_SYSTEM_MATH_2(hypot)
CUDA_C_SYSTEM_MATH_2(nextafter)
CUDA_C_SYSTEM_MATH_2(pow)
CUDA_C_SYSTEM_MATH_2(remainder)
// If one argument is NaN, the result is the other one. In this form, loops can be vectorised.
CUDA_C_MATH_2(fmax, y != y ? x : x > y ? x : y, y != y ? x : x > y ? x : y)
CUDA_C_MATH_2(fmin, y != y ? x : x < y ? x : y, y != y ? x : x < y ? x : y)
#undef CUDA_C_SYSTEM_MATH_2
#undef CUDA_C_MATH_2
#undef CUDA_C_SYSTEM_MATH

static inline float max(float x, float y) { return fmaxf(x, y); }
static inline double max(double x, double y) { return fmax(x, y); }
static inline double max(float x, double y) { return fmax((double)x, y); }
static inline double max(double x, float y) { return fmax(x, (double)y); }
static inline float min(float x, float y) { return fminf(x, y); }
static inline double min(double x, double y) { return fmin(x, y); }
static inline double min(float x, double y) { return fmin((double)x, y); }
static inline double min(double x, float y) { return fmin(x, (double)y); }

// Absolute values. C's integer functions are declared as in the system's headers.
extern "C" {
int abs(int) noexcept;
long labs(long) noexcept;
long long llabs(long long) noexcept;
}
static inline float abs(float x) { return __builtin_fabsf(x); }
static inline double abs(double x) { return __builtin_fabs(x); }
static inline long abs(long x) { return __builtin_labs(x); }
static inline long long abs(long long x) { return __builtin_llabs(x); }

static inline double fma(double x, double y, double z) { return __builtin_fma(x, y, z); }
static inline float fmaf(float x, float y, float z) { return __builtin_fmaf(x, y, z); }
static inline float fma(float x, float y, float z) { return __builtin_fmaf(x, y, z); }
// As above, a float and integers stay float.
template <class T, class U, class V>
static inline typename cuda_c::EnableIf<
    cuda_c::IsNumber<T>::value && cuda_c::IsNumber<U>::value && cuda_c::IsNumber<V>::value &&
        (cuda_c::IsAny<double, T, U, V>::value || !cuda_c::IsAny<float, T, U, V>::value), double>::type
fma(T x, U y, V z) {
    return __builtin_fma((double)x, (double)y, (double)z);
}

// Functions that split numbers into parts.
#define CUDA_C_PARTS(result, name, parameters, of_double, of_float)                             \
    static inline result name(CUDA_C_PARAMETERS_##parameters(double)) { return of_double; }     \
    static inline result name##f(CUDA_C_PARAMETERS_##parameters(float)) { return of_float; }    \
    static inline result name(CUDA_C_PARAMETERS_##parameters(float)) { return of_float; }
#define CUDA_C_PARAMETERS_NONE(type) type x
CUDA_C_PARTS(int, ilogb, NONE, __builtin_ilogb(x), __builtin_ilogbf(x))
CUDA_C_PARTS(long, lrint, NONE, __builtin_lrint(x), __builtin_lrintf(x))
CUDA_C_PARTS(long, lround, NONE, __builtin_lround(x), __builtin_lroundf(x))
CUDA_C_PARTS(long long, llrint, NONE, __builtin_llrint(x), __builtin_llrintf(x))
CUDA_C_PARTS(long long, llround, NONE, __builtin_llround(x), __builtin_llroundf(x))
#undef CUDA_C_PARAMETERS_NONE
#undef CUDA_C_PARTS
#define CUDA_C_WITH(type, name, other, call)                                                    \
    static inline double name(double x, other y) { return __builtin_##name(x, y); }             \
    static inline float name##f(float x, other y) { return __builtin_##name##f(x, y); }         \
    static inline float name(float x, other y) { return __builtin_##name##f(x, y); }            \
    template <class T> static inline cuda_c::IfInteger<T, double> name(T x, other y) {          \
        return __builtin_##name((double)x, y);                                                  \
    }
CUDA_C_WITH(T, ldexp, int, )
CUDA_C_WITH(T, scalbn, int, )
CUDA_C_WITH(T, scalbln, long, )
CUDA_C_WITH(T, frexp, int*, )
#undef CUDA_C_WITH
static inline double modf(double x, double* whole) { return __builtin_modf(x, whole); }
static inline float modff(float x, float* whole) { return __builtin_modff(x, whole); }
static inline float modf(float x, float* whole) { return __builtin_modff(x, whole); }
static inline double remquo(double x, double y, int* quotient) {
    return __builtin_remquo(x, y, quotient);
}
static inline float remquof(float x, float y, int* quotient) {
    return __builtin_remquof(x, y, quotient);
}
static inline float remquo(float x, float y, int* quotient) { return remquof(x, y, quotient); }
static inline double nan(const char* payload) { return (void)payload, __builtin_nan(""); }
static inline float nanf(const char* payload) { return (void)payload, __builtin_nanf(""); }
static inline double jn(int n, double x) { return cuda_c::system_jn(n, x); }
static inline float jnf(int n, float x) { return (float)cuda_c::system_jn(n, x); }
static inline float jn(int n, float x) { return jnf(n, x); }
static inline double yn(int n, double x) { return cuda_c::system_yn(n, x); }
static inline float ynf(int n, float x) { return (float)cuda_c::system_yn(n, x); }
static inline float yn(int n, float x) { return ynf(n, x); }
static inline void sincos(double x, double* s, double* c) { cuda_c::system_sincos(x, s, c); }
static inline void sincosf(float x, float* s, float* c) { cuda_c::system_sincosf(x, s, c); }
static inline void sincos(float x, float* s, float* c) { cuda_c::system_sincosf(x, s, c); }

// Classification. Older versions of clang do not evaluate the sign of a number at compile time.
#ifdef __clang__
#pragma clang diagnostic push
#pragma clang diagnostic ignored "-Winvalid-constexpr"
#endif
#define CUDA_C_CLASS(name, result, value)                                                       \
    constexpr static inline result name(float x) { return value; }                              \
    constexpr static inline result name(double x) { return value; }                             \
    template <class T> constexpr static inline cuda_c::IfInteger<T, result> name(T number) {    \
        const double x = (double)number;                                                        \
        return value;                                                                           \
    }
CUDA_C_CLASS(isnan, int, x != x)
CUDA_C_CLASS(isinf, int, __builtin_isinf(x) != 0)
CUDA_C_CLASS(isfinite, int, __builtin_isfinite(x) != 0)
CUDA_C_CLASS(signbit, int, __builtin_signbit(x) != 0)
#undef CUDA_C_CLASS
#define CUDA_C_CLASS(name)                                                                      \
    constexpr static inline int __##name(double x) { return name(x); }                          \
    constexpr static inline int __##name##f(float x) { return name(x); }
CUDA_C_CLASS(isnan)
CUDA_C_CLASS(isinf)
CUDA_C_CLASS(signbit)
#undef CUDA_C_CLASS
#ifdef __clang__
#pragma clang diagnostic pop
#endif
constexpr static inline int __finite(double x) { return isfinite(x); }
constexpr static inline int __finitef(float x) { return isfinite(x); }

} // extern "C++"
