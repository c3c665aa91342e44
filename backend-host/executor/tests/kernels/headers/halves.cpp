// The 16-bit formats: every number, and values between two consecutive numbers.
#include "check.h"

#include <cuda_bf16.h>
#include <cuda_fp16.h>

// The value of a bit pattern by the definition of the format, with this many exponent bits.
static double value_of(unsigned short bits, int exponent_bits) {
    const int fraction_bits = 15 - exponent_bits, bias = (1 << (exponent_bits - 1)) - 1;
    const int exponent = bits >> fraction_bits & ((1 << exponent_bits) - 1);
    const int fraction = bits & ((1 << fraction_bits) - 1);
    double size;
    if (exponent == (1 << exponent_bits) - 1) {
        size = fraction ? __builtin_nan("") : __builtin_inf();
    } else if (exponent == 0) {
        size = __builtin_ldexp(fraction, 1 - bias - fraction_bits);
    } else {
        size = __builtin_ldexp(fraction + (1 << fraction_bits), exponent - bias - fraction_bits);
    }
    return bits & 0x8000 ? -size : size;
}

struct Half {
    enum { EXPONENT = 5, LARGEST = 0x7bff };
    typedef __half type;
    static type of(unsigned short x) { return __ushort_as_half(x); }
    static unsigned short rn(float x) { return __half_as_ushort(__float2half_rn(x)); }
    static unsigned short rz(float x) { return __half_as_ushort(__float2half_rz(x)); }
    static unsigned short ru(float x) { return __half_as_ushort(__float2half_ru(x)); }
    static unsigned short rd(float x) { return __half_as_ushort(__float2half_rd(x)); }
    static unsigned short of_double(double x) { return __half_as_ushort(__double2half(x)); }
};
struct Bfloat {
    enum { EXPONENT = 8, LARGEST = 0x7f7f };
    typedef __nv_bfloat16 type;
    static type of(unsigned short x) { return __ushort_as_bfloat16(x); }
    static unsigned short rn(float x) { return __bfloat16_as_ushort(__float2bfloat16_rn(x)); }
    static unsigned short rz(float x) { return __bfloat16_as_ushort(__float2bfloat16_rz(x)); }
    static unsigned short ru(float x) { return __bfloat16_as_ushort(__float2bfloat16_ru(x)); }
    static unsigned short rd(float x) { return __bfloat16_as_ushort(__float2bfloat16_rd(x)); }
    static unsigned short of_double(double x) { return __bfloat16_as_ushort(__double2bfloat16(x)); }
};

template <class F> static unsigned short pattern(typename F::type h) {
    unsigned short bits;
    memcpy(&bits, &h, 2);
    return bits;
}

// Between two consecutive numbers: values next to them, and around the midpoint.
template <class F> static void conversions() {
    for (unsigned int low = 0; low <= F::LARGEST; ++low) {
        const double a = value_of((unsigned short)low, F::EXPONENT);
        CHECK((double)(float)F::of((unsigned short)low) == a);
        CHECK((float)F::of((unsigned short)(low | 0x8000)) == (float)-a);
        // The spacing continues after the largest number.
        const double step = low == F::LARGEST ? a - value_of((unsigned short)(low - 1), F::EXPONENT)
                                              : value_of((unsigned short)(low + 1), F::EXPONENT) - a;
        const float middle = (float)(a + step / 2);
        const bool exact = (double)middle == a + step / 2; // for the smallest numbers of bfloat16 it is not a float
        const float above = (float)a;
        const unsigned short up = (unsigned short)(low + 1), even = low % 2 ? up : (unsigned short)low;
        CHECK(F::rn(above) == low && F::rz(above) == low && F::ru(above) == low && F::rd(above) == low);
        if (!exact) continue;
        CHECK(F::rn(middle) == even && F::rz(middle) == low && F::ru(middle) == up && F::rd(middle) == low);
        CHECK(F::rn(-middle) == (even | 0x8000) && F::ru(-middle) == (low | 0x8000));
        CHECK(F::rd(-middle) == (up | 0x8000) && F::rz(-middle) == (low | 0x8000));
        const float less = __builtin_nextafterf(middle, 0), more = __builtin_nextafterf(middle, __builtin_inff());
        CHECK(F::rn(more) == up && F::rz(more) == low && F::ru(more) == up);
        if (less > above) CHECK(F::rn(less) == low && F::rz(less) == low && F::ru(less) == up);
        // A double next to the midpoint, which is not a float.
        const double wide = a + step / 2;
        CHECK(F::of_double(wide) == even);
        CHECK(F::of_double(__builtin_nextafter(wide, 0)) == low);
        CHECK(F::of_double(__builtin_nextafter(wide, __builtin_inf())) == up);
    }
    CHECK(F::rn(__builtin_nanf("")) == 0x7fff && F::ru(-__builtin_nanf("")) == 0x7fff);
    CHECK(F::rz(__builtin_inff()) == F::LARGEST + 1 && F::rd(-__builtin_inff()) == (0x8001 + F::LARGEST));
    CHECK(F::rz(0x1.fffffep127f) == F::LARGEST && F::rd(0x1.fffffep127f) == F::LARGEST);
    CHECK(F::ru(0x1.fffffep127f) == F::LARGEST + 1 && F::rn(0x1.fffffep127f) == F::LARGEST + 1);
    CHECK(F::ru(0x1p-149f) == 1 && F::rd(0x1p-149f) == 0 && F::rd(-0x1p-149f) == 0x8001);
    CHECK(F::rn(-0.0f) == 0x8000);
}

// The nearest bit pattern to an exact positive number, by binary search.
template <class F> static unsigned short search(__float128 x) {
    unsigned int low = 0, high = F::LARGEST + 1;
    while (high - low > 1) {
        const unsigned int middle = (low + high) / 2;
        (value_of((unsigned short)middle, F::EXPONENT) <= x ? low : high) = middle;
    }
    const __float128 a = value_of((unsigned short)low, F::EXPONENT);
    const __float128 b = low == F::LARGEST ? 2 * a - value_of((unsigned short)(low - 1), F::EXPONENT)
                                           : (__float128)value_of((unsigned short)high, F::EXPONENT);
    if (x - a == b - x) return (unsigned short)(low % 2 ? high : low);
    return (unsigned short)(x - a < b - x ? low : high);
}
template <class F> static unsigned short nearest(__float128 x) {
    return x < 0 ? search<F>(-x) | 0x8000 : search<F>(x);
}

template <class F> static void arithmetic() {
    typedef typename F::type T;
    for (int i = 0; i < 100000; ++i) {
        const unsigned long long word = random_word();
        const T x = F::of((unsigned short)word), y = F::of((unsigned short)(word >> 16)),
                z = F::of((unsigned short)(word >> 32));
        const __float128 a = value_of(pattern<F>(x), F::EXPONENT), b = value_of(pattern<F>(y), F::EXPONENT),
                         c = value_of(pattern<F>(z), F::EXPONENT);
        if (!((double)a - (double)a == 0 && (double)b - (double)b == 0 && (double)c - (double)c == 0)) continue;
        if (a + b != 0) CHECK(pattern<F>(x + y) == nearest<F>(a + b));
        if (a - b != 0) CHECK(pattern<F>(__hsub(x, y)) == nearest<F>(a - b));
        if (a * b != 0) CHECK(pattern<F>(x * y) == nearest<F>(a * b));
        // Sums of a product and a number that fit 113 bits; sums of halves always do.
        const __float128 sum = a * b + c, lost = (a * b - (sum - (sum - a * b))) + (c - (sum - a * b));
        if (sum != 0 && lost == 0) CHECK(pattern<F>(__hfma(x, y, z)) == nearest<F>(sum));
    }
    // A product next to the midpoint of two numbers, which a float or a double would round to the midpoint.
    const T one = F::of(F::rn(1.0f)), last = F::of((unsigned short)(F::rn(1.0f) + 1)); // 1 and one unit
    const float unit = (float)last - 1;
    const T halfway = F::of(F::rn(unit / 2));
    CHECK(pattern<F>(__hfma(one, one, halfway)) == pattern<F>(one));
    CHECK(pattern<F>(__hfma(one, last, halfway)) == pattern<F>(last) + 1);
    // With the product u/2 + u^2/2, the sum is above the midpoint, which is 1 + u/2.
    CHECK(pattern<F>(__hfma(halfway, last, one)) == pattern<F>(last));
}

static void whole_numbers() {
    CHECK(__half2int_rn(__float2half(2.5f)) == 2 && __half2int_ru(__float2half(2.5f)) == 3);
    CHECK(__half2short_rz(__ushort_as_half(0x7bff)) == 32767 && __half2ushort_rz(__ushort_as_half(0x7bff)) == 65504);
    CHECK((signed char)__float2half(-300.0f) == -128 && (unsigned char)__float2half(-3.0f) == 0);
    CHECK(__half_as_ushort(__int2half_rn(2049)) == __half_as_ushort(__float2half(2048.0f)));
    CHECK(__half_as_ushort(__int2half_ru(2049)) == __half_as_ushort(__float2half(2050.0f)));
    CHECK(__half_as_ushort(__int2half_rd(-2049)) == __half_as_ushort(__float2half(-2050.0f)));
    CHECK(__half_as_ushort(__ull2half_rz(~0ull)) == 0x7bff && __half_as_ushort(__ull2half_rn(~0ull)) == 0x7c00);
    // 2^24 + 2^16 + 1 is beyond the midpoint of two 8-bit significands only because of its last bit.
    CHECK(__bfloat16_as_ushort(__int2bfloat16_rn((1 << 24) + (1 << 16) + 1)) ==
          __bfloat16_as_ushort(__float2bfloat16((float)((1 << 24) + (1 << 17)))));
    CHECK(__bfloat16_as_ushort(__int2bfloat16_rn((1 << 24) + (1 << 16))) ==
          __bfloat16_as_ushort(__float2bfloat16((float)(1 << 24))));
    CHECK(__bfloat16_as_ushort(__ll2bfloat16_rn(-(1ll << 62) - (1ll << 54) - 1)) ==
          __bfloat16_as_ushort(__float2bfloat16(-0x1p62f - 0x1p55f)));
}

static void comparisons() {
    const __half nan = __ushort_as_half(0x7e00), one = 1.0f, two = 2.0f, zero = 0.0f, minus = -0.0f;
    CHECK(__hlt(one, two) && !__hlt(one, nan) && __hltu(one, nan) && __hgeu(nan, nan) && !__heq(nan, nan));
    CHECK(__hequ(nan, one) && !__hne(nan, one) && __hneu(nan, one) && one != nan && zero == minus);
    CHECK(__half_as_ushort(__hmax(nan, one)) == 0x3c00 && __half_as_ushort(__hmax_nan(nan, one)) == 0x7fff);
    CHECK(__half_as_ushort(__hmax(zero, minus)) == 0 && __half_as_ushort(__hmin(zero, minus)) == 0x8000);
    CHECK(__half_as_ushort(__hmin(nan, nan)) == 0x7fff && __hisinf(__ushort_as_half(0xfc00)) == -1);
    const __half2 v = __halves2half2(one, nan), w = __float2half2_rn(1.0f);
    CHECK(__heq2_mask(v, w) == 0xffffu && !__hbeq2(v, w) && __hbequ2(v, w) && (float)__heq2(v, w).y == 0);
    const __half2 z = __hcmadd(__floats2half2_rn(1, 2), __floats2half2_rn(3, 4), __floats2half2_rn(5, 6));
    CHECK((float)z.x == 1 * 3 - 2 * 4 + 5 && (float)z.y == 1 * 4 + 2 * 3 + 6);
    CHECK((float)__hadd_sat(two, two) == 1 && (float)__hfma_relu(one, __hneg(two), one) == 0);
    CHECK(__half_as_ushort(__hmul_sat(nan, one)) == 0);
    __half h = one;
    CHECK((float)h++ == 1 && (float)++h == 3 && (float)(h -= one) == 2 && (float)-h == -2);
    CHECK((float)hsqrt(__float2half(9.0f)) == 3 && (float)h2floor(__float2half2_rn(-1.5f)).y == -2);
    CHECK((float)__lowhigh2highlow(__floats2half2_rn(1, 2)).x == 2 && __half22float2(v).x == 1);
    CHECK(sizeof(__half2) == 4 && alignof(__half2) == 4 && sizeof(__nv_bfloat16) == 2);
}

int main() {
    conversions<Half>();
    conversions<Bfloat>();
    arithmetic<Half>();
    arithmetic<Bfloat>();
    whole_numbers();
    comparisons();
    return failures != 0;
}
