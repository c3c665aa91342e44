// Integer functions: bits, products, sums of absolute differences, and minimum and maximum for every pair of
// types that CUDA C supports.
#pragma once

#include "counts.h"

extern "C++" {

// Bit functions. The number of leading zeros of 0 is 32 or 64.
static inline int __clz(int x) { return x ? __builtin_clz((unsigned int)x) : 32; }
static inline int __clzll(long long x) { return x ? __builtin_clzll((unsigned long long)x) : 64; }
static inline unsigned int __brev(unsigned int x) {
    x = (x >> 1 & 0x55555555u) | (x & 0x55555555u) << 1;
    x = (x >> 2 & 0x33333333u) | (x & 0x33333333u) << 2;
    x = (x >> 4 & 0x0f0f0f0fu) | (x & 0x0f0f0f0fu) << 4;
    return __builtin_bswap32(x);
}
static inline unsigned long long __brevll(unsigned long long x) {
    return (unsigned long long)__brev((unsigned int)x) << 32 | __brev((unsigned int)(x >> 32));
}
// Selects four bytes out of eight by bits 0 to 2 of each digit of the selector. Compilers ignore bit 3, which replicates
// the sign in PTX's `prmt`.
static inline unsigned int __byte_perm(unsigned int x, unsigned int y, unsigned int selector) {
    const unsigned long long bytes = (unsigned long long)y << 32 | x;
    unsigned int chosen = 0;
    for (int i = 0; i < 4; ++i) {
        chosen |= ((unsigned int)(bytes >> (selector >> 4 * i & 7) * 8) & 0xff) << 8 * i;
    }
    return chosen;
}

// Funnel shifts of two words as 64 bits. The plain forms use the distance modulo 32; the clamped forms limit
// it to 32.
static inline unsigned int __funnelshift_l(unsigned int low, unsigned int high, unsigned int by) {
    return (unsigned int)((((unsigned long long)high << 32 | low) << (by & 31)) >> 32);
}
static inline unsigned int __funnelshift_r(unsigned int low, unsigned int high, unsigned int by) {
    return (unsigned int)(((unsigned long long)high << 32 | low) >> (by & 31));
}
static inline unsigned int __funnelshift_lc(unsigned int low, unsigned int high, unsigned int by) {
    return by >= 32 ? low : __funnelshift_l(low, high, by);
}
static inline unsigned int __funnelshift_rc(unsigned int low, unsigned int high, unsigned int by) {
    return by >= 32 ? high : __funnelshift_r(low, high, by);
}

// Products: the upper half, and the product of the lower 24 bits.
static inline int __mulhi(int x, int y) { return (int)((long long)x * y >> 32); }
static inline unsigned int __umulhi(unsigned int x, unsigned int y) {
    return (unsigned int)((unsigned long long)x * y >> 32);
}
static inline long long __mul64hi(long long x, long long y) {
    return (long long)((__int128)x * y >> 64);
}
static inline unsigned long long __umul64hi(unsigned long long x, unsigned long long y) {
    return (unsigned long long)((unsigned __int128)x * y >> 64);
}
static inline int __mul24(int x, int y) {
    const unsigned int left = (unsigned int)((int)((unsigned int)x << 8) >> 8);
    return (int)(left * (unsigned int)((int)((unsigned int)y << 8) >> 8));
}

// Averages without overflow, and sums of absolute differences.
static inline int __hadd(int x, int y) { return (int)(((long long)x + y) >> 1); }
static inline int __rhadd(int x, int y) { return (int)(((long long)x + y + 1) >> 1); }
static inline unsigned int __uhadd(unsigned int x, unsigned int y) {
    return (unsigned int)(((unsigned long long)x + y) >> 1);
}
static inline unsigned int __urhadd(unsigned int x, unsigned int y) {
    return (unsigned int)(((unsigned long long)x + y + 1) >> 1);
}
static inline unsigned int __usad(unsigned int x, unsigned int y, unsigned int sum) {
    return sum + (x > y ? x - y : y - x);
}
static inline unsigned int __sad(int x, int y, unsigned int sum) {
    return sum + (x > y ? (unsigned int)x - (unsigned int)y : (unsigned int)y - (unsigned int)x);
}

// Minimum and maximum, under names for one type and as overloads. For mixed signs the arguments are converted
// to unsigned, as in a C expression.
#define CUDA_C_EXTREMES(type)                                                                   \
    constexpr static inline type min(type x, type y) { return y < x ? y : x; }                  \
    constexpr static inline type max(type x, type y) { return x < y ? y : x; }
CUDA_C_EXTREMES(int)
CUDA_C_EXTREMES(unsigned int)
CUDA_C_EXTREMES(long)
CUDA_C_EXTREMES(unsigned long)
CUDA_C_EXTREMES(long long)
CUDA_C_EXTREMES(unsigned long long)
#undef CUDA_C_EXTREMES
#define CUDA_C_MIXED_EXTREMES(type, plain)                                                      \
    constexpr static inline type min(type x, plain y) { return min(x, (type)y); }               \
    constexpr static inline type min(plain x, type y) { return min((type)x, y); }               \
    constexpr static inline type max(type x, plain y) { return max(x, (type)y); }               \
    constexpr static inline type max(plain x, type y) { return max((type)x, y); }
CUDA_C_MIXED_EXTREMES(unsigned int, int)
CUDA_C_MIXED_EXTREMES(unsigned long, long)
CUDA_C_MIXED_EXTREMES(unsigned long long, long long)
#undef CUDA_C_MIXED_EXTREMES
static inline unsigned int umin(unsigned int x, unsigned int y) { return min(x, y); }
static inline unsigned int umax(unsigned int x, unsigned int y) { return max(x, y); }
static inline long long llmin(long long x, long long y) { return min(x, y); }
static inline long long llmax(long long x, long long y) { return max(x, y); }
static inline unsigned long long ullmin(unsigned long long x, unsigned long long y) {
    return min(x, y);
}
static inline unsigned long long ullmax(unsigned long long x, unsigned long long y) {
    return max(x, y);
}

} // extern "C++"
