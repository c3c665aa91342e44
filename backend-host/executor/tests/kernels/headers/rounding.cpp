// Arithmetic and conversions with a stated rounding, compared with exact arithmetic.
//
// A result is right if it is on the correct side of the exact value, and its neighbour in that direction is
// beyond it. Exact values are stored in 113-bit numbers; arguments are chosen so that they fit.
#include "check.h"

typedef __float128 Exact;

enum Side { NEAREST, ZERO, UPWARD, DOWNWARD };

static float next(float x, float to) { return __builtin_nextafterf(x, to); }
static double next(double x, double to) { return __builtin_nextafter(x, to); }
template <class T> static T infinity() { return (T)__builtin_inf(); }
static Exact size(Exact x) { return x < 0 ? -x : x; }
// Infinity stands for the number that would follow the largest one.
static Exact held(float x) { return __builtin_isinf(x) ? (x > 0 ? (Exact)0x1p128 : -(Exact)0x1p128) : (Exact)x; }
static Exact held(double x) {
    const Exact beyond = (Exact)0x1p1023 * 2;
    return __builtin_isinf(x) ? (x > 0 ? beyond : -beyond) : (Exact)x;
}

// `exact(y)` is positive if y is above the exact value, and zero if it is equal.
template <class T, class Excess> static bool right(T result, Side side, bool negative, Excess excess) {
    const Exact own = excess(held(result));
    if (own == 0) return true;
    const bool above = own > 0;
    if (side == ZERO) side = negative ? UPWARD : DOWNWARD;
    if (side == UPWARD) return above && excess(held(next(result, -infinity<T>()))) < 0;
    if (side == DOWNWARD) return !above && excess(held(next(result, infinity<T>()))) > 0;
    // To nearest: the exact value is not beyond the midpoint to its other neighbour.
    const T other = next(result, above ? -infinity<T>() : infinity<T>());
    const Exact middle = excess((held(result) + held(other)) / 2);
    if (middle != 0) return (middle < 0) == above;
    unsigned long long bits = 0;
    memcpy(&bits, &result, sizeof result);
    return bits % 2 == 0;
}
#define RIGHT(result, side, negative, value)                                                    \
    CHECK(right(result, side, negative, [=](Exact it) -> Exact { return value; }))

#define OPERATIONS(T, p, fma)                                                                    \
    static void operations(T x, T y, T z) {                                                     \
        const Exact a = x, b = y, c = z;                                                        \
        ALL(T, p, fma, rn, NEAREST) ALL(T, p, fma, rz, ZERO) ALL(T, p, fma, ru, UPWARD)         \
        ALL(T, p, fma, rd, DOWNWARD)                                                            \
    }
// Quotients and roots are checked by multiplying back, which is exact.
#define ALL(T, p, fma, suffix, side)                                                            \
    RIGHT(__##p##add_##suffix(x, y), side, a + b < 0, it - (a + b));                            \
    RIGHT(__##p##sub_##suffix(x, y), side, a - b < 0, it - (a - b));                            \
    RIGHT(__##p##mul_##suffix(x, y), side, a * b < 0, it - a * b);                              \
    RIGHT(__##p##div_##suffix(x, y), side, (a < 0) != (b < 0), b > 0 ? it * b - a : a - it * b); \
    RIGHT(__##p##rcp_##suffix(y), side, b < 0, b > 0 ? it * b - 1 : 1 - it * b);                \
    RIGHT(__##p##sqrt_##suffix((T)size(a)), side, false, it * it - size(a));                    \
    RIGHT(fma##_##suffix(x, y, z), side, a * b + c < 0, it - (a * b + c));
OPERATIONS(float, f, __fmaf)
OPERATIONS(double, d, __fma)

static float float_of(int exponents) {
    const int exponent = (int)(random_word() % (2 * exponents + 1)) - exponents;
    const float fraction = (float)(8388608 + random_word() % 8388608);
    return __builtin_ldexpf(random_word() & 1 ? -fraction : fraction, exponent - 23);
}
static double double_of(int exponents) {
    const int exponent = (int)(random_word() % (2 * exponents + 1)) - exponents;
    const double fraction = (double)((1ull << 52) + random_word() % (1ull << 52));
    return __builtin_ldexp(random_word() & 1 ? -fraction : fraction, exponent - 52);
}

template <class T> static Exact clamped(Exact x) {
    const Exact low = (T)-1 > (T)0 ? 0 : -(Exact)(1ull << (sizeof(T) * 8 - 1));
    const Exact high = (T)-1 > (T)0 ? (Exact)(T)-1 : -low - 1;
    return x < low ? low : x > high ? high : x;
}
// Integers, by the definition of each direction.
#define WHOLE(name, type, x)                                                                    \
    do {                                                                                        \
        const double exact = x, below = __builtin_floor(exact), above = __builtin_ceil(exact);  \
        const double even = __builtin_fmod(below, 2) == 0 ? below : above;                      \
        const double nearest = exact - below < 0.5 ? below : exact - below > 0.5 ? above : even; \
        CHECK((Exact)name##_rd(x) == clamped<type>(below));                                     \
        CHECK((Exact)name##_ru(x) == clamped<type>(above));                                     \
        CHECK((Exact)name##_rz(x) == clamped<type>(exact < 0 ? above : below));                 \
        CHECK((Exact)name##_rn(x) == clamped<type>(nearest));                                   \
    } while (0)
static void whole(float f, double d) {
    WHOLE(__float2int, int, f);
    WHOLE(__float2uint, unsigned int, f);
    WHOLE(__float2ll, long long, f);
    WHOLE(__float2ull, unsigned long long, f);
    WHOLE(__double2int, int, d);
    WHOLE(__double2uint, unsigned int, d);
    WHOLE(__double2ll, long long, d);
    WHOLE(__double2ull, unsigned long long, d);
}
#define OF_WHOLE(name, x)                                                                       \
    RIGHT(name##_rn(x), NEAREST, (Exact)(x) < 0, it - (Exact)(x));                              \
    RIGHT(name##_rz(x), ZERO, (Exact)(x) < 0, it - (Exact)(x));                                 \
    RIGHT(name##_ru(x), UPWARD, (Exact)(x) < 0, it - (Exact)(x));                               \
    RIGHT(name##_rd(x), DOWNWARD, (Exact)(x) < 0, it - (Exact)(x))
static void of_whole(unsigned long long w) {
    OF_WHOLE(__int2float, (int)w);
    OF_WHOLE(__uint2float, (unsigned int)w);
    OF_WHOLE(__ll2float, (long long)w);
    OF_WHOLE(__ull2float, w);
    OF_WHOLE(__ll2double, (long long)w);
    OF_WHOLE(__ull2double, w);
    double d;
    memcpy(&d, &w, sizeof d);
    if (d == d && __builtin_fabs(d) < 0x1p128) {
        OF_WHOLE(__double2float, d);
    }
    float f;
    memcpy(&f, &w, sizeof f);
    // 1 / sqrt(x): the midpoint between the result and a neighbour, squared and multiplied by x, decides.
    if (f > 0 && f < infinity<float>()) {
        const Exact x = f;
        RIGHT(__frsqrt_rn(f), NEAREST, false, it * it * x - 1);
    }
}

int main() {
    for (int i = 0; i < 20000; ++i) {
        operations(float_of(20), float_of(20), float_of(20));
        // Sums that span more than 113 bits would not be exact.
        operations(double_of(2), double_of(2), double_of(3));
        const double scale = __builtin_ldexp(1, (int)(random_word() % 80));
        whole((float)(float_of(0) * scale), double_of(0) * scale);
        whole((float)(int)random_word() / 2, (double)(int)random_word() / 2);
        of_whole(random_word() >> random_word() % 64);
        of_whole(random_word());
    }
    // Overflow, underflow, zeros and NaN.
    const float big = 0x1.fffffep127f, inf = __builtin_inff();
    CHECK_SAME(__fadd_rz(big, big), big);
    CHECK_SAME(__fadd_ru(big, big), inf);
    CHECK_SAME(__fmul_rd(-big, 2.0f), -inf);
    CHECK_SAME(__fmul_ru(-big, 2.0f), -big);
    CHECK_SAME(__fmul_ru(0x1p-149f, 0x1p-149f), 0x1p-149f);
    CHECK_SAME(__fmul_rd(0x1p-149f, 0x1p-149f), 0.0f);
    CHECK_SAME(__fsub_rn(1.0f, 1.0f), 0.0f);
    CHECK_SAME(__fsub_rd(1.0f, 1.0f), -0.0f);
    CHECK_SAME(__fmul_rn(-0.0f, 1.0f), -0.0f);
    CHECK_SAME(__fmul_rn(0.0f, 5.0f), 0.0f);
    CHECK_SAME(__fadd_rn(-0.0f, -0.0f), -0.0f);
    CHECK_SAME(__dadd_rd(-0.0, 0.0), -0.0);
    CHECK_SAME(__ddiv_ru(1.0, 0.0), (double)inf);
    CHECK_SAME(__ull2double_rd(0), 0.0);
    CHECK_SAME(__ull2float_rd(0), 0.0f);
    CHECK_SAME(__frsqrt_rn(0.0f), inf);
    CHECK_SAME(__frsqrt_rn(inf), 0.0f);
    CHECK(__fsqrt_rn(-1.0f) != __fsqrt_rn(-1.0f) && __frsqrt_rn(-1.0f) != __frsqrt_rn(-1.0f));
    const float nan = __builtin_nanf("");
    CHECK(__float2int_rn(nan) == 0 && __float2uint_rz(nan) == 0);
    CHECK(__float2ll_rn(nan) == (-0x7fffffffffffffffll - 1) && __float2ull_rd(nan) == 0x8000000000000000ull);
    CHECK(__double2int_rz(nan) == (-2147483647 - 1) && __double2uint_ru(nan) == 0x80000000u);
    CHECK(__float2int_rn(inf) == 2147483647 && __float2int_rn(-inf) == (-2147483647 - 1));
    CHECK(__float2uint_rz(-1.0f) == 0 && __double2ull_rz(1e30) == ~0ull);
    CHECK(__float2int_rn(2.5f) == 2 && __float2int_rn(3.5f) == 4 && __float2int_rd(-2.5f) == -3);
    CHECK(__double2hiint(-1.0) == (int)0xbff00000 && __double2loint(__hiloint2double(5, -7)) == -7);
    // Not fused into a multiply-add: 1 + 2^-12 squared has a term 2^-24 beyond the precision of a float.
    volatile float near = 1 + 0x1p-12f;
    CHECK_SAME(__fsub_rn(__fmul_rn(near, near), 1 + 0x1p-11f), 0.0f);
    CHECK_SAME(__fmul_rn(near, near) - (1 + 0x1p-11f), 0.0f);
    CHECK_SAME(__fadd_rn(near * near, -(1 + 0x1p-11f)), 0.0f);
    CHECK_SAME(__fmaf_rn(near, near, -(1 + 0x1p-11f)), 0x1p-24f);
    // The rounding mode has been restored.
    CHECK_SAME(near * 0x1p-140f, (float)((double)near * 0x1p-140));
    return failures != 0;
}
