// Bits of numbers and rounding to integers, on which conversions are built, here and on AMD GPUs.
#pragma once

extern "C++" {
namespace cuda_c {

enum Rounding { ROUNDED_TO_NEAREST, ROUNDED_DOWN, ROUNDED_UP, ROUNDED_TO_ZERO };

template <class To, class From> static inline constexpr To bits(From value) {
    return __builtin_bit_cast(To, value);
}

// Rounds to an integer of the same type. The current rounding mode is always to nearest.
static inline float round_rn(float x) { return __builtin_rintf(x); }
static inline float round_rz(float x) { return __builtin_truncf(x); }
static inline float round_ru(float x) { return __builtin_ceilf(x); }
static inline float round_rd(float x) { return __builtin_floorf(x); }
static inline double round_rn(double x) { return __builtin_rint(x); }
static inline double round_rz(double x) { return __builtin_trunc(x); }
static inline double round_ru(double x) { return __builtin_ceil(x); }
static inline double round_rd(double x) { return __builtin_floor(x); }

// Converts a number without a fraction to an integer. `limit` is the first number above the range.
template <class To, class From> static inline To saturated(From x, From limit, To nan) {
    constexpr To highest = To(-1) > To(0) ? To(-1) : To(~(To(1) << (sizeof(To) * 8 - 1)));
    constexpr To lowest = To(-1) > To(0) ? To(0) : To(To(1) << (sizeof(To) * 8 - 1));
    if (x != x) return nan;
    if (x >= limit) return highest;
    if (x < (To(-1) > To(0) ? From(0) : -limit)) return lowest;
    return (To)x;
}

} // namespace cuda_c
} // extern "C++"
