// CUDA C arithmetic and conversions with a stated rounding, for AMD's compilers.
//
// AMD's compilers lack directed arithmetic. Some of their conversions and roots do not round as their names
// say, and sums and products are merged into multiply-adds. The directed functions here compute with
// integers: they are exact for every argument, keep subnormal numbers, and do not depend on options for
// floating point.

#ifndef PYGPU_AMD_ROUNDING_HPP
#define PYGPU_AMD_ROUNDING_HPP

// The language's headers for the CPU have them.
#if defined(__HIP__) && !defined(__GPUARRAY_HOST__)

extern "C++" {
namespace pygpu_rounded {

enum Rounding { NEAREST, DOWN, UP, TO_ZERO };

// A number is its digits, an integer, times 2 to the power of an exponent, at least LEAST.
template <class T> struct Form;
template <> struct Form<float> {
    typedef unsigned int Word;
    typedef unsigned long long Wide;
    enum { DIGITS = 24, LEAST = -149 };
};
template <> struct Form<double> {
    typedef unsigned long long Word;
    __extension__ typedef unsigned __int128 Wide;
    enum { DIGITS = 53, LEAST = -1074 };
};
template <class T> using Word = typename Form<T>::Word;
template <class T> using Wide = typename Form<T>::Wide;

template <class T> __device__ inline Word<T> infinity() {
    return (((Word<T>)1 << (8 * sizeof(T) - Form<T>::DIGITS)) - 1) << (Form<T>::DIGITS - 1);
}
template <class T> __device__ inline Word<T> without_sign(T x) {
    return __builtin_bit_cast(Word<T>, x) << 1 >> 1;
}
template <class T> __device__ inline bool is_negative(T x) {
    return __builtin_bit_cast(Word<T>, x) >> (8 * sizeof(T) - 1);
}
template <class T> __device__ inline bool is_finite(T x) {
    return without_sign(x) < infinity<T>();
}
template <class T> __device__ inline T with_sign(bool negative, Word<T> bits) {
    return __builtin_bit_cast(T, (Word<T>)((Word<T>)negative << (8 * sizeof(T) - 1) | bits));
}
template <class T> __device__ inline T not_a_number() {
    return with_sign<T>(false, (Word<T>)-1 >> 1);
}

__device__ inline int leading_zeros(unsigned int x) { return __builtin_clz(x); }
__device__ inline int leading_zeros(unsigned long long x) { return __builtin_clzll(x); }
__device__ inline int leading_zeros(Wide<double> x) {
    const unsigned long long high = x >> 64;
    return high ? __builtin_clzll(high) : 64 + __builtin_clzll((unsigned long long)x);
}

// The lowest digit is set where less than it was left out.
template <class W> struct Number {
    bool negative;
    W digits;
    int exponent;
};

template <class W, class T> __device__ inline Number<W> number(T x) {
    const Word<T> bits = without_sign(x), first = (Word<T>)1 << (Form<T>::DIGITS - 1);
    const int field = (int)(bits >> (Form<T>::DIGITS - 1));
    const Word<T> digits = field ? (bits & (first - 1)) | first : bits;
    return {is_negative(x), digits, Form<T>::LEAST + (field ? field - 1 : 0)};
}

// With the highest bit but one set; zero is less than all others.
template <class W> __device__ inline Number<W> aligned(Number<W> x) {
    const int by = x.digits ? leading_zeros(x.digits) - 1 : 0;
    return {x.negative, (W)(x.digits << by), x.digits ? x.exponent - by : -9999};
}

template <Rounding ROUNDING> __device__ inline bool is_away_from_zero(bool negative) {
    return ROUNDING == DOWN ? negative : ROUNDING == UP && !negative;
}

// The digits without the last ones, of which there may be more than all, or less than none.
template <Rounding ROUNDING, class W> __device__ inline W shortened(Number<W> x, int by) {
    constexpr int BITS = 8 * sizeof(W);
    if (by <= 0) return x.digits << -by;
    const W kept = by < BITS ? x.digits >> by : 0, half = (W)1 << (BITS - 1);
    const W rest = by < BITS ? x.digits << (BITS - by) : by == BITS ? x.digits : x.digits != 0;
    return kept + (ROUNDING == NEAREST ? rest > half || (rest == half && (kept & 1))
                                       : rest && is_away_from_zero<ROUNDING>(x.negative));
}

template <class T, Rounding ROUNDING, class W> __device__ inline T rounded(Number<W> x) {
    if (!x.digits) return with_sign<T>(x.negative, 0);
    int by = (int)(8 * sizeof(W)) - leading_zeros(x.digits) - Form<T>::DIGITS;
    if (by < Form<T>::LEAST - x.exponent) by = Form<T>::LEAST - x.exponent;
    int field = x.exponent + by - Form<T>::LEAST;
    const int last = (int)(infinity<T>() >> (Form<T>::DIGITS - 1));
    if (field > last) field = last;
    // The first digit adds one to the field.
    const Word<T> digits = (Word<T>)shortened<ROUNDING>(x, by);
    const Word<T> bits = digits + ((Word<T>)field << (Form<T>::DIGITS - 1));
    const bool to_infinity = ROUNDING == NEAREST || is_away_from_zero<ROUNDING>(x.negative);
    return with_sign<T>(
        x.negative, bits < infinity<T>() ? bits : infinity<T>() - (Word<T>)!to_infinity);
}

template <class T, Rounding ROUNDING, class W>
__device__ inline T sum(Number<W> x, Number<W> y) {
    x = aligned(x);
    y = aligned(y);
    if (x.exponent < y.exponent || (x.exponent == y.exponent && x.digits < y.digits)) {
        const Number<W> other = x;
        x = y;
        y = other;
    }
    const int out = x.exponent - y.exponent;
    const W kept = out < (int)(8 * sizeof(W)) ? y.digits >> out : 0;
    const bool lost = out < (int)(8 * sizeof(W)) ? kept << out != y.digits : y.digits != 0;
    const W digits = kept | lost;
    if (x.negative != y.negative && x.digits == digits) return with_sign<T>(ROUNDING == DOWN, 0);
    x.digits = x.negative == y.negative ? x.digits + digits : x.digits - digits;
    return rounded<T, ROUNDING>(x);
}

template <class T, Rounding ROUNDING> __device__ inline T add(T x, T y) {
    if (!is_finite(x) || !is_finite(y)) return x + y;
    return sum<T, ROUNDING>(number<Word<T>>(x), number<Word<T>>(y));
}

template <class T> __device__ inline Number<Wide<T>> product(T x, T y) {
    const Number<Wide<T>> a = number<Wide<T>>(x), b = number<Wide<T>>(y);
    return {a.negative != b.negative, a.digits * b.digits, a.exponent + b.exponent};
}

template <class T, Rounding ROUNDING> __device__ inline T multiply(T x, T y) {
    if (!is_finite(x) || !is_finite(y)) return x * y;
    return rounded<T, ROUNDING>(product(x, y));
}

template <class T, Rounding ROUNDING> __device__ inline T multiply_add(T x, T y, T z) {
    if (!is_finite(x) || !is_finite(y)) return x * y + z;
    return is_finite(z) ? sum<T, ROUNDING>(product(x, y), number<Wide<T>>(z)) : z;
}

// The first digits of a quotient less than two, of numbers whose highest bit is not set.
template <class W> __device__ inline W quotient(W &rest, W by, int count) {
    W digits = 0;
    for (int i = 0; i < count; i++) {
        const bool one = rest >= by;
        digits = digits << 1 | one;
        rest = (one ? rest - by : rest) << 1;
    }
    return digits;
}

// The first digits of a root, one for every two digits of the number. Digits after its last are zeros.
template <class W> __device__ inline W root(W x, W &rest, int count) {
    W digits = 0;
    rest = 0;
    for (int i = 0; i < count; i++) {
        rest = rest << 2 | x >> (8 * sizeof(W) - 2);
        x <<= 2;
        const W next = digits << 2 | 1;
        const bool one = rest >= next;
        digits = digits << 1 | one;
        if (one) rest -= next;
    }
    return digits;
}

template <class T, Rounding ROUNDING> __device__ inline T divide(T x, T y) {
    typedef Word<T> W;
    const W divisor = without_sign(y);
    // As a product with 1 / y, where that is zero or infinite.
    if (!divisor || divisor == infinity<T>())
        y = with_sign<T>(is_negative(y), divisor ^ infinity<T>());
    if (!is_finite(x) || !without_sign(x) || !is_finite(y) || !without_sign(y)) return x * y;
    const Number<W> a = aligned(number<W>(x)), b = aligned(number<W>(y));
    constexpr int COUNT = Form<T>::DIGITS + 2;
    W rest = a.digits;
    const W digits = quotient(rest, b.digits, COUNT);
    return rounded<T, ROUNDING>(Number<W>{
        a.negative != b.negative, digits << 1 | (rest != 0), a.exponent - b.exponent - COUNT});
}

// With an even exponent.
template <class W> __device__ inline Number<W> even(Number<W> x) {
    x = aligned(x);
    const int odd = x.exponent & 1;
    return {x.negative, x.digits >> odd, x.exponent + odd};
}

template <class T, Rounding ROUNDING> __device__ inline T square_root(T x) {
    typedef Word<T> W;
    if (!without_sign(x) || without_sign(x) > infinity<T>()) return x;
    if (is_negative(x)) return not_a_number<T>();
    if (!is_finite(x)) return x;
    const Number<W> a = even(number<W>(x));
    constexpr int COUNT = Form<T>::DIGITS + 3;
    W rest;
    const W digits = root(a.digits, rest, COUNT);
    return rounded<T, ROUNDING>(Number<W>{
        false, digits << 1 | (rest != 0), a.exponent / 2 + (int)(4 * sizeof(W)) - COUNT - 1});
}

__device__ inline float reciprocal_root(float x) {
    typedef unsigned long long W;
    if (!without_sign(x)) return with_sign<float>(is_negative(x), infinity<float>());
    if (without_sign(x) > infinity<float>()) return x;
    if (is_negative(x)) return not_a_number<float>();
    if (!is_finite(x)) return 0;
    const Number<W> a = even(number<W>(x));
    // The root of 2 to the power of 116, by the number's digits.
    W remainder = 1ull << 61, rest;
    const W square = quotient(remainder, a.digits, 56), digits = root(square, rest, 32);
    return rounded<float, NEAREST>(
        Number<W>{false, digits << 1 | (remainder || rest), -59 - a.exponent / 2});
}

template <class To, Rounding ROUNDING, class T> __device__ inline To narrowed(T x) {
    if (without_sign(x) > infinity<T>()) return not_a_number<To>();
    if (!is_finite(x)) return with_sign<To>(is_negative(x), infinity<To>());
    return rounded<To, ROUNDING>(number<Word<T>>(x));
}

template <class T, Rounding ROUNDING, class W, class I> __device__ inline T of_integer(I x) {
    const bool negative = x < 0;
    return rounded<T, ROUNDING>(Number<W>{negative, negative ? -(W)x : (W)x, 0});
}

// The nearest integer that the type has.
template <class I, Rounding ROUNDING, class T> __device__ inline I to_integer(T x, I of_nan) {
    typedef unsigned long long W;
    if (without_sign(x) > infinity<T>()) return of_nan;
    const Number<W> a = number<W>(x);
    const bool is_short = a.exponent <= 64 - Form<T>::DIGITS;
    const W digits = is_short ? shortened<ROUNDING>(a, -a.exponent) : ~(W)0;
    constexpr bool WITH_SIGN = (I)-1 < (I)0;
    constexpr W MOST = ~(W)0 >> (64 - 8 * (int)sizeof(I) + WITH_SIGN);
    if (a.negative) return !WITH_SIGN ? 0 : digits > MOST ? (I)(MOST + 1) : (I)-digits;
    return (I)(digits > MOST ? MOST : digits);
}

// A value that the compiler cannot trace to its computation.
template <class T> __device__ inline T here(T value) {
#if defined(__AMDGCN__)
    asm("" : "+v"(value));
#endif
    return value;
}

} // namespace pygpu_rounded

// Functions that AMD's compilers have also.
#define __fadd_rn pygpu_fadd_rn
#define __fsub_rn pygpu_fsub_rn
#define __fmul_rn pygpu_fmul_rn
#define __fdiv_rn pygpu_fdiv_rn
#define __frcp_rn pygpu_frcp_rn
#define __fsqrt_rn pygpu_fsqrt_rn
#define __frsqrt_rn pygpu_frsqrt_rn
#define __dadd_rn pygpu_dadd_rn
#define __dsub_rn pygpu_dsub_rn
#define __dmul_rn pygpu_dmul_rn
#define __ddiv_rn pygpu_ddiv_rn
#define __drcp_rn pygpu_drcp_rn
#define __dsqrt_rn pygpu_dsqrt_rn
#define __double2float_rd pygpu_double2float_rd
#define __double2float_ru pygpu_double2float_ru
#define __double2float_rz pygpu_double2float_rz
#define __int2float_rd pygpu_int2float_rd
#define __int2float_ru pygpu_int2float_ru
#define __int2float_rz pygpu_int2float_rz
#define __uint2float_rd pygpu_uint2float_rd
#define __uint2float_ru pygpu_uint2float_ru
#define __uint2float_rz pygpu_uint2float_rz
#define __ll2float_rd pygpu_ll2float_rd
#define __ll2float_ru pygpu_ll2float_ru
#define __ll2float_rz pygpu_ll2float_rz
#define __ull2float_rd pygpu_ull2float_rd
#define __ull2float_ru pygpu_ull2float_ru
#define __ull2float_rz pygpu_ull2float_rz
#define __ll2double_rd pygpu_ll2double_rd
#define __ll2double_ru pygpu_ll2double_ru
#define __ll2double_rz pygpu_ll2double_rz
#define __ull2double_rd pygpu_ull2double_rd
#define __ull2double_ru pygpu_ull2double_ru
#define __ull2double_rz pygpu_ull2double_rz
#define __float2ll_rn pygpu_float2ll_rn
#define __float2ll_rd pygpu_float2ll_rd
#define __float2ll_ru pygpu_float2ll_ru
#define __float2ll_rz pygpu_float2ll_rz
#define __float2ull_rn pygpu_float2ull_rn
#define __float2ull_rd pygpu_float2ull_rd
#define __float2ull_ru pygpu_float2ull_ru
#define __float2ull_rz pygpu_float2ull_rz
#define __double2int_rn pygpu_double2int_rn
#define __double2int_rd pygpu_double2int_rd
#define __double2int_ru pygpu_double2int_ru
#define __double2int_rz pygpu_double2int_rz
#define __double2uint_rn pygpu_double2uint_rn
#define __double2uint_rd pygpu_double2uint_rd
#define __double2uint_ru pygpu_double2uint_ru
#define __double2uint_rz pygpu_double2uint_rz
#define __double2ll_rn pygpu_double2ll_rn
#define __double2ll_rd pygpu_double2ll_rd
#define __double2ll_ru pygpu_double2ll_ru
#define __double2ll_rz pygpu_double2ll_rz
#define __double2ull_rn pygpu_double2ull_rn
#define __double2ull_rd pygpu_double2ull_rd
#define __double2ull_ru pygpu_double2ull_ru
#define __double2ull_rz pygpu_double2ull_rz
#define __uint2double_rn pygpu_uint2double_rn

// Templates, so that a function which a program defines takes the place of one.
#define PYGPU_FUNCTION(type, name, parameters, value)                                           \
    template <int = 0> __device__ inline type name parameters {                                 \
        using namespace pygpu_rounded;                                                          \
        return value;                                                                           \
    }
#define PYGPU_ROUNDED(T, p, suffix, to)                                                         \
    PYGPU_FUNCTION(T, __##p##div_##suffix, (T x, T y), (divide<T, to>(x, y)))                   \
    PYGPU_FUNCTION(T, __##p##rcp_##suffix, (T x), (divide<T, to>(1, x)))                        \
    PYGPU_FUNCTION(T, __##p##sqrt_##suffix, (T x), (square_root<T, to>(x)))
#define PYGPU_DIRECTED(T, p, fma, suffix, to)                                                   \
    PYGPU_ROUNDED(T, p, suffix, to)                                                             \
    PYGPU_FUNCTION(T, __##p##add_##suffix, (T x, T y), (add<T, to>(x, y)))                      \
    PYGPU_FUNCTION(T, __##p##sub_##suffix, (T x, T y), (add<T, to>(x, -y)))                     \
    PYGPU_FUNCTION(T, __##p##mul_##suffix, (T x, T y), (multiply<T, to>(x, y)))                 \
    PYGPU_FUNCTION(T, fma##_##suffix, (T x, T y, T z), (multiply_add<T, to>(x, y, z)))
#define PYGPU_OF_INTEGER(I, name, T, W, suffix, to)                                             \
    PYGPU_FUNCTION(T, name##_##suffix, (I x), (of_integer<T, to, W>(x)))
#define PYGPU_TO_INTEGER(T, name, I, of_nan, suffix, to)                                        \
    PYGPU_FUNCTION(I, name##_##suffix, (T x), (to_integer<I, to>(x, of_nan)))
#define PYGPU_TO_INTEGERS(suffix, to)                                                           \
    PYGPU_TO_INTEGER(float, __float2ll, long long, -0x7fffffffffffffffll - 1, suffix, to)       \
    PYGPU_TO_INTEGER(float, __float2ull, unsigned long long, 1ull << 63, suffix, to)            \
    PYGPU_TO_INTEGER(double, __double2int, int, -0x7fffffff - 1, suffix, to)                    \
    PYGPU_TO_INTEGER(double, __double2uint, unsigned int, 1u << 31, suffix, to)                 \
    PYGPU_TO_INTEGER(double, __double2ll, long long, -0x7fffffffffffffffll - 1, suffix, to)     \
    PYGPU_TO_INTEGER(double, __double2ull, unsigned long long, 1ull << 63, suffix, to)
#define PYGPU_DIRECTION(suffix, to)                                                             \
    PYGPU_TO_INTEGERS(suffix, to)                                                               \
    PYGPU_DIRECTED(float, f, __fmaf, suffix, to)                                                \
    PYGPU_DIRECTED(double, d, __fma, suffix, to)                                                \
    PYGPU_FUNCTION(float, __double2float_##suffix, (double x), (narrowed<float, to>(x)))        \
    PYGPU_OF_INTEGER(int, __int2float, float, unsigned int, suffix, to)                         \
    PYGPU_OF_INTEGER(unsigned int, __uint2float, float, unsigned int, suffix, to)               \
    PYGPU_OF_INTEGER(long long, __ll2float, float, unsigned long long, suffix, to)              \
    PYGPU_OF_INTEGER(unsigned long long, __ull2float, float, unsigned long long, suffix, to)    \
    PYGPU_OF_INTEGER(long long, __ll2double, double, unsigned long long, suffix, to)            \
    PYGPU_OF_INTEGER(unsigned long long, __ull2double, double, unsigned long long, suffix, to)
PYGPU_DIRECTION(rd, DOWN)
PYGPU_DIRECTION(ru, UP)
PYGPU_DIRECTION(rz, TO_ZERO)

// To the nearest. Operations of the device, which are never merged; its divisions and roots are exact but
// with PYGPU_FAST_MATH, in texts whose options allow others.
#ifdef PYGPU_FAST_MATH
#define PYGPU_DIVISIONS(T, p, root) PYGPU_ROUNDED(T, p, rn, NEAREST)
#else
#define PYGPU_DIVISIONS(T, p, root)                                                             \
    PYGPU_FUNCTION(T, __##p##div_rn, (T x, T y), here(here(x) / here(y)))                       \
    PYGPU_FUNCTION(T, __##p##rcp_rn, (T x), here(1 / here(x)))                                  \
    PYGPU_FUNCTION(T, __##p##sqrt_rn, (T x), here(root(here(x))))
#endif
#define PYGPU_NEAREST(T, p, root)                                                               \
    PYGPU_DIVISIONS(T, p, root)                                                                 \
    PYGPU_FUNCTION(T, __##p##add_rn, (T x, T y), here(here(x) + here(y)))                       \
    PYGPU_FUNCTION(T, __##p##sub_rn, (T x, T y), here(here(x) - here(y)))                       \
    PYGPU_FUNCTION(T, __##p##mul_rn, (T x, T y), here(here(x) * here(y)))
PYGPU_NEAREST(float, f, sqrtf)
PYGPU_NEAREST(double, d, sqrt)
PYGPU_FUNCTION(float, __frsqrt_rn, (float x), reciprocal_root(x))
PYGPU_TO_INTEGERS(rn, NEAREST)
// ROCm 5 takes it as a signed number.
PYGPU_FUNCTION(double, __uint2double_rn, (unsigned int x), x)

// Subnormal numbers are kept whatever -ftz says.
#define PYGPU_IEEE(suffix, to)                                                                  \
    PYGPU_FUNCTION(float, __fmaf_ieee_##suffix, (float x, float y, float z),                    \
                   (multiply_add<float, to>(x, y, z)))
PYGPU_IEEE(rn, NEAREST)
PYGPU_IEEE(rd, DOWN)
PYGPU_IEEE(ru, UP)
PYGPU_IEEE(rz, TO_ZERO)

#undef PYGPU_IEEE
#undef PYGPU_NEAREST
#undef PYGPU_DIVISIONS
#undef PYGPU_DIRECTION
#undef PYGPU_TO_INTEGERS
#undef PYGPU_TO_INTEGER
#undef PYGPU_OF_INTEGER
#undef PYGPU_DIRECTED
#undef PYGPU_ROUNDED
#undef PYGPU_FUNCTION

} // extern "C++"

#endif
#endif
