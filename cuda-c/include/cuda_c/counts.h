// Integer functions that AMD's compilers declare with other result types, or for other arguments.
#pragma once

extern "C++" {

// The number of set bits, and the position of the lowest one, counted from 1; 0 if there is none.
static inline int __popc(unsigned int x) { return __builtin_popcount(x); }
static inline int __popcll(unsigned long long x) { return __builtin_popcountll(x); }
static inline int __ffs(int x) { return __builtin_ffs(x); }
static inline int __ffsll(long long x) { return __builtin_ffsll(x); }
// The position of the nth set bit, counted upwards from `base` for a positive offset and downwards for a
// negative one. Offset 0 tests the bit at `base` itself. Returns all ones if it does not exist.
static inline unsigned int __fns(unsigned int mask, unsigned int base, int offset) {
    if (base > 31) return ~0u;
    if (offset == 0) return mask >> base & 1 ? base : ~0u;
    const int step = offset > 0 ? 1 : -1;
    long long left = offset > 0 ? (long long)offset : -(long long)offset;
    for (int bit = (int)base; bit >= 0 && bit < 32; bit += step) {
        left -= mask >> bit & 1;
        if (left == 0) return (unsigned int)bit;
    }
    return ~0u;
}

// The product of the lower 24 bits.
static inline unsigned int __umul24(unsigned int x, unsigned int y) {
    return (x & 0xffffffu) * (y & 0xffffffu);
}

} // extern "C++"
