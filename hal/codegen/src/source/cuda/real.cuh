// Real floating-point numbers, built on the device functions of the vendor.

#ifdef GPUARRAY_BARE_HIP
// Without ROCm's headers, the functions of its device library only have their internal names.
}
#define GPUARRAY_OCML_1(name)                                     \
    extern "C" __device__ float __ocml_##name##_f32(float);       \
    extern "C" __device__ double __ocml_##name##_f64(double);     \
    static __device__ float name##f(float x) { return __ocml_##name##_f32(x); } \
    static __device__ double name(double x) { return __ocml_##name##_f64(x); }
#define GPUARRAY_OCML_2(name)                                           \
    extern "C" __device__ float __ocml_##name##_f32(float, float);      \
    extern "C" __device__ double __ocml_##name##_f64(double, double);   \
    static __device__ float name##f(float x, float y) { return __ocml_##name##_f32(x, y); } \
    static __device__ double name(double x, double y) { return __ocml_##name##_f64(x, y); }
GPUARRAY_OCML_1(sqrt) GPUARRAY_OCML_1(fabs) GPUARRAY_OCML_1(floor) GPUARRAY_OCML_1(ceil)
GPUARRAY_OCML_1(trunc) GPUARRAY_OCML_1(rint) GPUARRAY_OCML_1(exp) GPUARRAY_OCML_1(log)
GPUARRAY_OCML_1(log2) GPUARRAY_OCML_1(log10) GPUARRAY_OCML_1(log1p) GPUARRAY_OCML_1(sin)
GPUARRAY_OCML_1(cos) GPUARRAY_OCML_1(tan) GPUARRAY_OCML_1(asin) GPUARRAY_OCML_1(acos)
GPUARRAY_OCML_1(atan) GPUARRAY_OCML_1(sinh) GPUARRAY_OCML_1(cosh) GPUARRAY_OCML_1(tanh)
GPUARRAY_OCML_1(asinh) GPUARRAY_OCML_1(acosh) GPUARRAY_OCML_1(atanh) GPUARRAY_OCML_1(exp2)
GPUARRAY_OCML_1(expm1) GPUARRAY_OCML_1(cbrt) GPUARRAY_OCML_1(erf) GPUARRAY_OCML_1(erfc)
GPUARRAY_OCML_1(tgamma) GPUARRAY_OCML_1(lgamma)
GPUARRAY_OCML_2(fmod) GPUARRAY_OCML_2(pow) GPUARRAY_OCML_2(atan2) GPUARRAY_OCML_2(hypot)
GPUARRAY_OCML_2(copysign) GPUARRAY_OCML_2(nextafter)
extern "C" __device__ float __ocml_ldexp_f32(float, int);
extern "C" __device__ double __ocml_ldexp_f64(double, int);
extern "C" __device__ float __ocml_fma_f32(float, float, float);
extern "C" __device__ double __ocml_fma_f64(double, double, double);
static __device__ float fmaf(float x, float y, float z) { return __ocml_fma_f32(x, y, z); }
static __device__ double fma(double x, double y, double z) { return __ocml_fma_f64(x, y, z); }
static __device__ float ldexpf(float x, int e) { return __ocml_ldexp_f32(x, e); }
static __device__ double ldexp(double x, int e) { return __ocml_ldexp_f64(x, e); }
namespace gpuarray {
#endif

#define GPUARRAY_MATH_1(name)                        \
    DEVICE f32 m_##name(f32 x) { return ::name##f(x); } \
    DEVICE f64 m_##name(f64 x) { return ::name(x); }
#define GPUARRAY_MATH_2(name)                                  \
    DEVICE f32 m_##name(f32 x, f32 y) { return ::name##f(x, y); } \
    DEVICE f64 m_##name(f64 x, f64 y) { return ::name(x, y); }

GPUARRAY_MATH_1(sqrt)
GPUARRAY_MATH_1(fabs)
GPUARRAY_MATH_1(floor)
GPUARRAY_MATH_1(ceil)
GPUARRAY_MATH_1(trunc)
GPUARRAY_MATH_1(rint)
GPUARRAY_MATH_1(exp)
GPUARRAY_MATH_1(log)
GPUARRAY_MATH_1(log2)
GPUARRAY_MATH_1(log10)
GPUARRAY_MATH_1(log1p)
GPUARRAY_MATH_1(sin)
GPUARRAY_MATH_1(cos)
GPUARRAY_MATH_1(tan)
GPUARRAY_MATH_1(asin)
GPUARRAY_MATH_1(acos)
GPUARRAY_MATH_1(atan)
GPUARRAY_MATH_1(sinh)
GPUARRAY_MATH_1(cosh)
GPUARRAY_MATH_1(tanh)
GPUARRAY_MATH_1(asinh)
GPUARRAY_MATH_1(acosh)
GPUARRAY_MATH_1(atanh)
GPUARRAY_MATH_1(exp2)
GPUARRAY_MATH_1(expm1)
GPUARRAY_MATH_1(cbrt)
GPUARRAY_MATH_1(erf)
GPUARRAY_MATH_1(erfc)
GPUARRAY_MATH_1(tgamma)
GPUARRAY_MATH_1(lgamma)
GPUARRAY_MATH_2(fmod)
GPUARRAY_MATH_2(pow)
GPUARRAY_MATH_2(atan2)
GPUARRAY_MATH_2(hypot)
GPUARRAY_MATH_2(copysign)
GPUARRAY_MATH_2(nextafter)
DEVICE f32 m_fma(f32 x, f32 y, f32 z) { return ::fmaf(x, y, z); }
DEVICE f64 m_fma(f64 x, f64 y, f64 z) { return ::fma(x, y, z); }
DEVICE f32 m_ldexp(f32 x, int e) { return ::ldexpf(x, e); }
DEVICE f64 m_ldexp(f64 x, int e) { return ::ldexp(x, e); }

template <class R>
struct Limits;
template <>
struct Limits<f32> {
    static METHOD f32 infinity() { return from_bits(0x7f800000u); }
    static METHOD f32 not_a_number() { return from_bits(0x7fc00000u); }
    static METHOD f32 largest() { return from_bits(0x7f7fffffu); }
    static METHOD f32 smallest() { return from_bits(0x00800000u); }
};
template <>
struct Limits<f64> {
    static METHOD f64 infinity() { return from_bits((u64)0x7ff0000000000000ull); }
    static METHOD f64 not_a_number() { return from_bits((u64)0x7ff8000000000000ull); }
    static METHOD f64 largest() { return from_bits((u64)0x7fefffffffffffffull); }
    static METHOD f64 smallest() { return from_bits((u64)0x0010000000000000ull); }
};

template <class R>
DEVICE bool is_finite(R x) {
    return m_fabs(x) <= Limits<R>::largest();
}

template <class R>
DEVICE bool is_infinite(R x) {
    return m_fabs(x) > Limits<R>::largest();
}

DEVICE bool is_signed(f32 x) { return (to_bits(x) >> 31) != 0; }
DEVICE bool is_signed(f64 x) { return (to_bits(x) >> 63) != 0; }

// C's frexp, computed from the bits; the exponent is 0 for infinities and NaN.
DEVICE f64 split(f64 x, int* exponent) {
    *exponent = 0;
    if (x == 0.0 || !is_finite(x)) {
        return x;
    }
    u64 bits = to_bits(x);
    int scale = 0;
    if ((bits & 0x7ff0000000000000ull) == 0) {
        bits = to_bits(x * 18014398509481984.0);
        scale = -54;
    }
    *exponent = (int)((bits >> 52) & 0x7ff) - 1022 + scale;
    return from_bits((u64)((bits & 0x800fffffffffffffull) | 0x3fe0000000000000ull));
}
DEVICE f32 split(f32 x, int* exponent) {
    *exponent = 0;
    if (x == 0.0f || !is_finite(x)) {
        return x;
    }
    u32 bits = to_bits(x);
    int scale = 0;
    if ((bits & 0x7f800000u) == 0) {
        bits = to_bits(x * 33554432.0f);
        scale = -25;
    }
    *exponent = (int)((bits >> 23) & 0xff) - 126 + scale;
    return from_bits((u32)((bits & 0x807fffffu) | 0x3f000000u));
}

template <class R>
struct RealFunctions {
    typedef R T;
    static METHOD T copy(T x) { return x; }
    static METHOD T negative(T x) { return -x; }
    static METHOD T absolute(T x) { return m_fabs(x); }
    static METHOD T sign(T x) {
        return x > (T)0 ? (T)1 : x < (T)0 ? (T)-1 : x == (T)0 ? (T)0 : x;
    }
    static METHOD T conjugate(T x) { return x; }
    static METHOD T real(T x) { return x; }
    static METHOD T imaginary(T) { return (T)0; }
    static METHOD bool logical_not(T x) { return x == (T)0; }
    static METHOD T sqrt(T x) { return m_sqrt(x); }
    static METHOD T exp(T x) { return m_exp(x); }
    static METHOD T log(T x) { return m_log(x); }
    static METHOD T log2(T x) { return m_log2(x); }
    static METHOD T log10(T x) { return m_log10(x); }
    static METHOD T sin(T x) { return m_sin(x); }
    static METHOD T cos(T x) { return m_cos(x); }
    static METHOD T tan(T x) { return m_tan(x); }
    static METHOD T asin(T x) { return m_asin(x); }
    static METHOD T acos(T x) { return m_acos(x); }
    static METHOD T atan(T x) { return m_atan(x); }
    static METHOD T sinh(T x) { return m_sinh(x); }
    static METHOD T cosh(T x) { return m_cosh(x); }
    static METHOD T tanh(T x) { return m_tanh(x); }
    static METHOD T floor(T x) { return m_floor(x); }
    static METHOD T ceil(T x) { return m_ceil(x); }
    static METHOD T trunc(T x) { return m_trunc(x); }
    static METHOD T fraction(T x) {
        const T whole = m_trunc(x);
        // The fraction of an infinity is 0; subtracting it from itself would give NaN.
        return m_copysign(whole == x ? (T)0 : x - whole, x);
    }
    static METHOD T rint(T x) { return m_rint(x); }
    static METHOD T mantissa(T x) {
        int exponent;
        return split(x, &exponent);
    }
    static METHOD T exponent(T x) {
        int exponent;
        split(x, &exponent);
        return (T)exponent;
    }
    static METHOD bool is_nan(T x) { return x != x; }
    static METHOD bool infinite(T x) { return is_infinite(x); }
    static METHOD bool finite(T x) { return is_finite(x); }
    static METHOD bool sign_bit(T x) { return is_signed(x); }
    static METHOD T positive(T x) { return x; }
    static METHOD T square(T x) { return x * x; }
    static METHOD T reciprocal(T x) { return (T)1 / x; }
    static METHOD T radians(T x) { return x * (T)(3.14159265358979323846 / 180.0); }
    static METHOD T degrees(T x) { return x * (T)(180.0 / 3.14159265358979323846); }
    static METHOD T cbrt(T x) { return m_cbrt(x); }
    static METHOD T exp2(T x) { return m_exp2(x); }
    static METHOD T expm1(T x) { return m_expm1(x); }
    static METHOD T log1p(T x) { return m_log1p(x); }
    static METHOD T asinh(T x) { return m_asinh(x); }
    static METHOD T acosh(T x) { return m_acosh(x); }
    static METHOD T atanh(T x) { return m_atanh(x); }
    static METHOD T erf(T x) { return m_erf(x); }
    static METHOD T erfc(T x) { return m_erfc(x); }
    static METHOD T gamma(T x) { return m_tgamma(x); }
    static METHOD T log_gamma(T x) { return m_lgamma(x); }
    static METHOD T add(T x, T y) { return x + y; }
    static METHOD T subtract(T x, T y) { return x - y; }
    static METHOD T multiply(T x, T y) { return x * y; }
    static METHOD T divide(T x, T y) { return x / y; }

    // Division and remainder agree: x = quotient * y + rest, where the rest has the sign of y, and
    // the quotient is corrected for the rounding of the division.
    static METHOD T floor_divide(T x, T y) {
        if (y == (T)0) {
            return x / y;
        }
        const T rest = m_fmod(x, y);
        T quotient = (x - rest) / y;
        if (rest != (T)0 && (y < (T)0) != (rest < (T)0)) {
            quotient -= (T)1;
        }
        if (quotient == (T)0) {
            return m_copysign((T)0, x / y);
        }
        const T whole = m_floor(quotient);
        return quotient - whole > (T)0.5 ? whole + (T)1 : whole;
    }
    static METHOD T remainder(T x, T y) {
        const T rest = m_fmod(x, y);
        if (y == (T)0) {
            return rest;
        }
        if (rest == (T)0) {
            return m_copysign((T)0, y);
        }
        return (y < (T)0) != (rest < (T)0) ? rest + y : rest;
    }
    static METHOD T fmod(T x, T y) { return m_fmod(x, y); }
    static METHOD T power(T x, T y) { return m_pow(x, y); }
    static METHOD T minimum(T x, T y) { return x <= y || x != x ? x : y; }
    static METHOD T maximum(T x, T y) { return x >= y || x != x ? x : y; }
    static METHOD T ldexp(T x, T y) {
        const T bound = (T)100000;
        const T exponent = y > bound ? bound : y < -bound ? -bound : y;
        return y != y ? y : m_ldexp(x, (int)exponent);
    }
    static METHOD T atan2(T x, T y) { return m_atan2(x, y); }
    static METHOD T hypot(T x, T y) { return m_hypot(x, y); }
    static METHOD T copysign(T x, T y) { return m_copysign(x, y); }
    static METHOD T next_after(T x, T y) { return m_nextafter(x, y); }
    static METHOD T heaviside(T x, T y) {
        return x != x ? x : x == (T)0 ? y : x > (T)0 ? (T)1 : (T)0;
    }
    // Infinities of the same sign, whose difference is NaN, are equal.
    static METHOD T log_add_exp(T x, T y) {
        const T distance = x - y;
        return x == y ? x + (T)0.69314718055994530942
            : distance > (T)0 ? x + m_log1p(m_exp(-distance))
            : distance < (T)0 ? y + m_log1p(m_exp(distance)) : distance;
    }
    static METHOD T log_add_exp2(T x, T y) {
        const T distance = x - y;
        const T scale = (T)1.44269504088896340736;
        return x == y ? x + (T)1
            : distance > (T)0 ? x + scale * m_log1p(m_exp2(-distance))
            : distance < (T)0 ? y + scale * m_log1p(m_exp2(distance)) : distance;
    }
    static METHOD T fmin(T x, T y) { return x <= y || y != y ? x : y; }
    static METHOD T fmax(T x, T y) { return x >= y || y != y ? x : y; }
    static METHOD bool logical_xor(T x, T y) { return (x != (T)0) != (y != (T)0); }
    static METHOD bool logical_and(T x, T y) { return x != (T)0 && y != (T)0; }
    static METHOD bool logical_or(T x, T y) { return x != (T)0 || y != (T)0; }
    static METHOD bool equal(T x, T y) { return x == y; }
    static METHOD bool not_equal(T x, T y) { return x != y; }
    static METHOD bool less(T x, T y) { return x < y; }
    static METHOD bool less_equal(T x, T y) { return x <= y; }
    static METHOD bool greater(T x, T y) { return x > y; }
    static METHOD bool greater_equal(T x, T y) { return x >= y; }
    static METHOD T lowest() { return -Limits<T>::infinity(); }
    static METHOD T highest() { return Limits<T>::infinity(); }
    template <class Index>
    static METHOD T sequence(T start, T step, Index index) { return start + (T)index * step; }
};
