// Conversions between 32-bit floats and the two 16-bit formats, half precision and bfloat16. Each conversion
// rounds once. NaN becomes the NaN that a GPU produces.
#pragma once

#include "numbers.h"

extern "C++" {
namespace cuda_c {

// Rounds a truncated magnitude. `rest` holds the dropped bits, and `half` is half a unit in the last place.
template <Rounding ROUNDING>
static inline unsigned int rounded(unsigned int kept, unsigned int rest, unsigned int half, bool negative) {
    switch (ROUNDING) {
    case ROUNDED_TO_NEAREST: return kept + (rest > half || (rest == half && (kept & 1)));
    case ROUNDED_UP: return kept + (rest != 0 && !negative);
    case ROUNDED_DOWN: return kept + (rest != 0 && negative);
    default: return kept;
    }
}

// Half precision: 5 exponent bits and 10 fraction bits.
struct Half {
    template <Rounding ROUNDING> static inline unsigned short narrow(float x) {
        const unsigned int all = bits<unsigned int>(x), u = all & 0x7fffffffu, sign = all >> 16 & 0x8000u;
        if (u > 0x7f800000u) return 0x7fff;
        unsigned int kept, rest, half = 0x1000;
        if (u >= 0x47800000u) { // 2^16
            if (u == 0x7f800000u) return (unsigned short)(sign | 0x7c00);
            kept = 0x7bff;
            rest = 0x1fff;
        } else if (u >= 0x38800000u) { // 2^-14
            kept = (u >> 13) - (112u << 10);
            rest = u & 0x1fff;
        } else if (u >= 0x33000000u) { // 2^-25
            const unsigned int shift = 126 - (u >> 23), fraction = (u & 0x7fffffu) | 0x800000u;
            kept = fraction >> shift;
            rest = fraction & ((1u << shift) - 1);
            half = 1u << (shift - 1);
        } else {
            kept = 0;
            rest = u != 0;
        }
        return (unsigned short)(sign | rounded<ROUNDING>(kept, rest, half, sign != 0));
    }
    // Rounds to nearest without a branch, so that loops can be vectorised. Adding 1/2 moves the bits of a
    // subnormal number to the end of a float.
    static inline unsigned short nearest(float x) {
        const unsigned int all = bits<unsigned int>(x), u = all & 0x7fffffffu, sign = all >> 16 & 0x8000u;
        const unsigned int normal = (u + 0xfff + (u >> 13 & 1) - (112u << 23)) >> 13;
        const unsigned int small = bits<unsigned int>(bits<float>(u) + 0.5f) - 0x3f000000u;
        unsigned int result = u < 0x38800000u ? small : normal;
        result = u >= 0x47800000u ? 0x7c00u : result;
        return (unsigned short)(u > 0x7f800000u ? 0x7fffu : sign | result);
    }
    static inline float widen(unsigned short h) {
        const unsigned int u = h & 0x7fffu, sign = (unsigned int)(h & 0x8000u) << 16;
        const unsigned int scaled = bits<unsigned int>(bits<float>(u << 13) * 0x1p112f);
        return bits<float>(sign | (u >= 0x7c00u ? u << 13 | 0x7f800000u : scaled));
    }
};

// bfloat16, the upper half of a float: 8 exponent bits and 7 fraction bits.
struct Bfloat16 {
    template <Rounding ROUNDING> static inline unsigned short narrow(float x) {
        const unsigned int all = bits<unsigned int>(x), u = all & 0x7fffffffu, sign = all >> 16 & 0x8000u;
        if (u > 0x7f800000u) return 0x7fff;
        return (unsigned short)(sign | rounded<ROUNDING>(u >> 16, u & 0xffffu, 0x8000u, sign != 0));
    }
    static inline unsigned short nearest(float x) {
        const unsigned int u = bits<unsigned int>(x);
        const unsigned int result = (u + 0x7fffu + (u >> 16 & 1)) >> 16;
        return (unsigned short)((u & 0x7fffffffu) > 0x7f800000u ? 0x7fffu : result);
    }
    static inline float widen(unsigned short h) { return bits<float>((unsigned int)h << 16); }
};

// Rounds to odd: the last bit of the float records that something was cut off. A later rounding to fewer bits
// is then correct.
static inline float to_odd(double x) {
    const float nearest = (float)x;
    if (x != x || (double)nearest == x) return nearest;
    const bool away = __builtin_fabs((double)nearest) > __builtin_fabs(x);
    return bits<float>((bits<unsigned int>(nearest) - away) | 1);
}
static inline float to_odd(unsigned long long x) {
    const int length = x ? 64 - __builtin_clzll(x) : 0;
    if (length <= 24) return (float)x;
    const int shift = length - 24;
    const unsigned long long lost = x & ((1ull << shift) - 1);
    return __builtin_ldexpf((float)(x >> shift | (lost != 0)), shift);
}
static inline float to_odd(long long x) {
    return x < 0 ? -to_odd(-(unsigned long long)x) : to_odd((unsigned long long)x);
}
// The product is exact, and the error of the sum is computed exactly.
static inline float fma_to_odd(float x, float y, float z) {
    const double product = (double)x * y, sum = product + z;
    const double part = sum - product;
    const double lost = (product - (sum - part)) + (z - part);
    if (sum - sum != 0 || lost == 0) return to_odd(sum);
    // Steps one unit towards zero if the sum was rounded away from zero, then sets the last bit.
    const unsigned long long u = bits<unsigned long long>(sum);
    return to_odd(bits<double>((u - ((lost < 0) != (sum < 0))) | 1));
}

} // namespace cuda_c
} // extern "C++"
