// The mathematical functions of CUDA C that C does not have.
//
// Products and sums of doubles that would lose bits required by the accuracy documented for a GPU are
// computed in long double, or in two doubles.
#pragma once

extern "C++" {
namespace cuda_c {

// The angle is in half turns. It is reduced exactly to at most an eighth of a turn and multiplied by pi in
// two doubles; then the quadrant is chosen.
static inline void sincospi(double x, double* s, double* c) {
    const double quarters = __builtin_rint(2 * (x - 2 * __builtin_rint(x / 2)));
    const double rest = __builtin_fma(-0.5, quarters, x - 2 * __builtin_rint(x / 2));
    const double angle = rest * 0x1.921fb54442d18p+1;
    const double below = __builtin_fma(rest, 0x1.921fb54442d18p+1, -angle) + rest * 0x1.1a62633145c07p-53;
    double sine, cosine;
    system_sincos(angle, &sine, &cosine);
    const double a = __builtin_fma(below, cosine, sine), b = __builtin_fma(-below, sine, cosine);
    if (x - x != 0) { // infinite or NaN
        *s = *c = x - x;
        return;
    }
    const int quarter = (int)quarters & 3;
    const double s0 = quarter & 1 ? b : a, c0 = quarter & 1 ? a : b;
    *s = quarter & 2 ? -s0 : s0;
    *c = (quarter + 1) & 2 ? -c0 : c0;
    // The signs of zeros follow IEEE 754: the sign of the argument for the sine, positive for the cosine.
    if (*s == 0) *s = __builtin_copysign(0.0, x);
    if (*c == 0) *c = 0;
}
static inline double sinpi(double x) {
    double s, c;
    sincospi(x, &s, &c);
    return s;
}
static inline double cospi(double x) {
    double s, c;
    sincospi(x, &s, &c);
    return c;
}

// Lengths of vectors. Squares of doubles that matter are in the range of long double.
static inline long double norm(int count, const double* p) {
    long double sum = 0;
    bool infinite = false;
    for (int i = 0; i < count; ++i) {
        infinite |= __builtin_isinf(p[i]) != 0;
        sum += (long double)p[i] * p[i];
    }
    return infinite ? (long double)__builtin_inf() : __builtin_sqrtl(sum);
}
static inline double norm(int count, const float* p) {
    double sum = 0;
    bool infinite = false;
    for (int i = 0; i < count; ++i) {
        infinite |= __builtin_isinf(p[i]) != 0;
        sum += (double)p[i] * p[i];
    }
    return infinite ? __builtin_inf() : __builtin_sqrt(sum);
}

// The inverse of erfc, for arguments from 0 to 2. The first estimate comes from the leading terms of the
// asymptotic series or of the power series. Halley's method, applied to the logarithm of erfc or to erf
// itself, then triples the number of digits in each step.
static inline long double erfcinv(long double q) {
    if (!(q >= 0 && q <= 2)) return __builtin_nanl("");
    if (q == 0) return __builtin_infl();
    if (q == 2) return -__builtin_infl();
    const bool mirrored = q > 1;
    const long double small = mirrored ? 2 - q : q;
    const long double slope = 1.12837916709551257389615890312154517L; // 2 / sqrt(pi)
    long double y;
    if (small > 0.25L) {
        const long double z = 1 - small;
        y = z / slope * (1 + z * z / (slope * slope) / 3);
    } else {
        // From q = exp(-y^2) / (y sqrt(pi)), two steps.
        const long double l = -__builtin_logl(small * 1.77245385090551602729816748334114518L);
        y = __builtin_sqrtl(l);
        y = __builtin_sqrtl(l - __builtin_logl(y));
        y = __builtin_sqrtl(l - __builtin_logl(y));
    }
    for (int step = 0; step < 3; ++step) {
        const long double change =
            (__builtin_erfcl(y) - small) / (slope * __builtin_expl(-y * y));
        y += change / (1 - y * change);
    }
    return mirrored ? -y : y;
}
// For a number near zero, going through erfc would lose digits.
static inline long double erfinv(long double z) {
    const long double size = __builtin_fabsl(z);
    if (size > 0.5L) return __builtin_copysignl(erfcinv(1 - size), z);
    const long double slope = 1.12837916709551257389615890312154517L;
    long double y = size / slope * (1 + size * size / (slope * slope) / 3);
    for (int step = 0; step < 3; ++step) {
        const long double change = (__builtin_erfl(y) - size) / (slope * __builtin_expl(-y * y));
        y -= change / (1 + y * change);
    }
    return z == 0 ? z : __builtin_copysignl(y, z);
}

// exp(x^2) erfc(x): the product while its factors are in range, then the continued fraction.
static inline double erfcx(double x) {
    if (x < 10) {
        if (x < -26.7) return __builtin_inf();
        return (double)(__builtin_expl((long double)x * x) * __builtin_erfcl(x));
    }
    const long double y = x;
    long double tail = y;
    for (int k = 50; k > 0; --k) tail = y + k * 0.5L / tail;
    return x != x ? x : (double)(0.564189583547756286948079451560772586L / tail);
}

// The modified Bessel functions of the first kind, of order 0 or 1: the power series, whose terms are all
// positive, then the asymptotic series.
static inline double cyl_bessel_i(int order, double x) {
    const long double size = __builtin_fabs(x);
    if (x != x) return x;
    if (size > 720) return order && x < 0 ? -__builtin_inf() : __builtin_inf();
    long double sum = 1, term = 1;
    if (size < 40) {
        const long double square = size * size / 4;
        for (int k = 1; term > sum * 1e-21L; ++k) sum += term *= square / ((long double)k * (k + order));
        if (order) sum *= size / 2;
    } else {
        const int four = 4 * order * order;
        for (int k = 1; k < 60 && __builtin_fabsl(term) > 1e-21L; ++k) {
            sum += term *= -(four - (2.0L * k - 1) * (2 * k - 1)) / (k * 8 * size);
        }
        sum *= __builtin_expl(size) / __builtin_sqrtl(6.28318530717958647692528676655900577L * size);
    }
    return order && x < 0 ? -(double)sum : (double)sum;
}

// A step of Newton's method with an exact residual corrects the two roundings of 1 / sqrt(x).
static inline double rsqrt(double x) {
    const double y = 1 / __builtin_sqrt(x), product = x * y;
    const double residual = __builtin_fma(-product, y, 1.0) - __builtin_fma(x, y, -product) * y;
    const double mended = __builtin_fma(y / 2, residual, y);
    return mended == mended ? mended : y; // zero and infinity
}

} // namespace cuda_c

CUDA_C_MATH(rsqrt, cuda_c::rsqrt(x), (float)(1 / __builtin_sqrt((double)x)))
CUDA_C_MATH(rcbrt, (double)(1 / __builtin_cbrtl(x)), (float)(1 / __builtin_cbrt((double)x)))
CUDA_C_MATH(sinpi, cuda_c::sinpi(x), (float)cuda_c::sinpi(x))
CUDA_C_MATH(cospi, cuda_c::cospi(x), (float)cuda_c::cospi(x))
CUDA_C_MATH(erfinv, (double)cuda_c::erfinv(x), (float)cuda_c::erfinv(x))
CUDA_C_MATH(erfcinv, (double)cuda_c::erfcinv(x), (float)cuda_c::erfcinv(x))
CUDA_C_MATH(erfcx, cuda_c::erfcx(x), (float)cuda_c::erfcx(x))
CUDA_C_MATH(normcdf, (double)(__builtin_erfcl(x * -0.707106781186547524400844362104849039L) / 2),
            (float)(__builtin_erfc(x * -0.70710678118654752440) / 2))
CUDA_C_MATH(normcdfinv, (double)(-1.41421356237309504880168872420969808L * cuda_c::erfcinv(2.0L * x)),
            (float)(-1.41421356237309504880168872420969808L * cuda_c::erfcinv(2.0L * x)))
CUDA_C_MATH(cyl_bessel_i0, cuda_c::cyl_bessel_i(0, x), (float)cuda_c::cyl_bessel_i(0, x))
CUDA_C_MATH(cyl_bessel_i1, cuda_c::cyl_bessel_i(1, x), (float)cuda_c::cyl_bessel_i(1, x))
#undef CUDA_C_MATH

static inline void sincospi(double x, double* s, double* c) { cuda_c::sincospi(x, s, c); }
static inline void sincospif(float x, float* s, float* c) {
    double sine, cosine;
    cuda_c::sincospi(x, &sine, &cosine);
    *s = (float)sine;
    *c = (float)cosine;
}
static inline void sincospi(float x, float* s, float* c) { sincospif(x, s, c); }

// Lengths of vectors and their reciprocals.
#define CUDA_C_NORM(suffix, type)                                                               \
    static inline type norm##suffix(int count, const type* p) { return (type)cuda_c::norm(count, p); } \
    static inline type rnorm##suffix(int count, const type* p) {                                \
        return (type)(1 / cuda_c::norm(count, p));                                              \
    }                                                                                           \
    static inline type norm3d##suffix(type x, type y, type z) {                                 \
        const type p[] = {x, y, z};                                                             \
        return (type)cuda_c::norm(3, p);                                                        \
    }                                                                                           \
    static inline type rnorm3d##suffix(type x, type y, type z) {                                \
        const type p[] = {x, y, z};                                                             \
        return (type)(1 / cuda_c::norm(3, p));                                                  \
    }                                                                                           \
    static inline type norm4d##suffix(type x, type y, type z, type w) {                         \
        const type p[] = {x, y, z, w};                                                          \
        return (type)cuda_c::norm(4, p);                                                        \
    }                                                                                           \
    static inline type rnorm4d##suffix(type x, type y, type z, type w) {                        \
        const type p[] = {x, y, z, w};                                                          \
        return (type)(1 / cuda_c::norm(4, p));                                                  \
    }                                                                                           \
    static inline type rhypot##suffix(type x, type y) {                                         \
        const type p[] = {x, y};                                                                \
        return (type)(1 / cuda_c::norm(2, p));                                                  \
    }
CUDA_C_NORM(, double)
CUDA_C_NORM(f, float)
#undef CUDA_C_NORM
static inline float fdividef(float x, float y) { return x / y; }
static inline double fdivide(double x, double y) { return x / y; }

// The fast functions are as accurate as the others here.
static inline float __sinf(float x) { return sinf(x); }
static inline float __cosf(float x) { return cosf(x); }
static inline float __tanf(float x) { return tanf(x); }
static inline void __sincosf(float x, float* s, float* c) { sincosf(x, s, c); }
static inline float __expf(float x) { return expf(x); }
static inline float __exp10f(float x) { return exp10f(x); }
static inline float __logf(float x) { return logf(x); }
static inline float __log2f(float x) { return log2f(x); }
static inline float __log10f(float x) { return log10f(x); }
static inline float __powf(float x, float y) { return powf(x, y); }
static inline float __tanhf(float x) { return tanhf(x); }
static inline float __fdividef(float x, float y) { return x / y; }
// NaN becomes zero.
static inline float __saturatef(float x) { return x > 0 ? x < 1 ? x : 1.0f : 0.0f; }

} // extern "C++"
