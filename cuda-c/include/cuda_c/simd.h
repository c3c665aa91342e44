// Arithmetic on two 16-bit or four 8-bit lanes of a word.
#pragma once

extern "C++" {
namespace cuda_c {

// The lanes of a word: their signed and unsigned type, the mask of one lane, and its extreme values.
template <int LANES> struct Packed;
template <> struct Packed<2> {
    typedef short Signed;
    typedef unsigned short Unsigned;
    enum { BITS = 16, LOWEST = -32768, HIGHEST = 32767, MASK = 0xffff };
};
template <> struct Packed<4> {
    typedef signed char Signed;
    typedef unsigned char Unsigned;
    enum { BITS = 8, LOWEST = -128, HIGHEST = 127, MASK = 0xff };
};

constexpr static inline int clamp(int value, int low, int high) {
    return value < low ? low : value > high ? high : value;
}

} // namespace cuda_c

// A function of the lanes `a` and `b` with the given signedness, for both lane sizes.
#define CUDA_C_SIMD_OF(name, lanes, sign, value)                                                \
    static inline unsigned int name##lanes(unsigned int x, unsigned int y) {                    \
        typedef cuda_c::Packed<lanes> L;                                                         \
        unsigned int result = 0;                                                                \
        for (int at = 0; at < 32; at += L::BITS) {                                              \
            const int a = (L::sign)(x >> at);                                                   \
            const int b __attribute__((unused)) = (L::sign)(y >> at);                           \
            result |= ((unsigned int)(value) & (unsigned int)L::MASK) << at;                    \
        }                                                                                       \
        return result;                                                                          \
    }
#define CUDA_C_SIMD(name, sign, value)                                                          \
    CUDA_C_SIMD_OF(name, 2, sign, value)                                                        \
    CUDA_C_SIMD_OF(name, 4, sign, value)
CUDA_C_SIMD(__vadd, Unsigned, a + b)
CUDA_C_SIMD(__vaddss, Signed, cuda_c::clamp(a + b, L::LOWEST, L::HIGHEST))
CUDA_C_SIMD(__vaddus, Unsigned, cuda_c::clamp(a + b, 0, L::MASK))
CUDA_C_SIMD(__vsub, Unsigned, a - b)
CUDA_C_SIMD(__vsubss, Signed, cuda_c::clamp(a - b, L::LOWEST, L::HIGHEST))
CUDA_C_SIMD(__vsubus, Unsigned, cuda_c::clamp(a - b, 0, L::MASK))
CUDA_C_SIMD(__vavgs, Signed, (a + b + (a + b >= 0)) >> 1)
CUDA_C_SIMD(__vavgu, Unsigned, (a + b + 1) >> 1)
CUDA_C_SIMD(__vhaddu, Unsigned, (a + b) >> 1)
CUDA_C_SIMD(__vabsdiffs, Signed, a > b ? a - b : b - a)
CUDA_C_SIMD(__vabsdiffu, Unsigned, a > b ? a - b : b - a)
CUDA_C_SIMD(__vmaxs, Signed, a > b ? a : b)
CUDA_C_SIMD(__vmaxu, Unsigned, a > b ? a : b)
CUDA_C_SIMD(__vmins, Signed, a < b ? a : b)
CUDA_C_SIMD(__vminu, Unsigned, a < b ? a : b)
// Comparisons that set all bits of a lane, or its lowest bit.
#define CUDA_C_SIMD_COMPARE(name, sign, condition)                                              \
    CUDA_C_SIMD(__vcmp##name, sign, condition ? L::MASK : 0)                                    \
    CUDA_C_SIMD(__vset##name, sign, condition ? 1 : 0)
CUDA_C_SIMD_COMPARE(eq, Signed, a == b)
CUDA_C_SIMD_COMPARE(ne, Signed, a != b)
CUDA_C_SIMD_COMPARE(ges, Signed, a >= b)
CUDA_C_SIMD_COMPARE(geu, Unsigned, a >= b)
CUDA_C_SIMD_COMPARE(gts, Signed, a > b)
CUDA_C_SIMD_COMPARE(gtu, Unsigned, a > b)
CUDA_C_SIMD_COMPARE(les, Signed, a <= b)
CUDA_C_SIMD_COMPARE(leu, Unsigned, a <= b)
CUDA_C_SIMD_COMPARE(lts, Signed, a < b)
CUDA_C_SIMD_COMPARE(ltu, Unsigned, a < b)
#undef CUDA_C_SIMD_COMPARE

// Functions of one word. The forms with `ss` saturate.
#define CUDA_C_SIMD_UNARY(name, value)                                                          \
    CUDA_C_SIMD(cuda_c##name, Signed, value)                                                    \
    static inline unsigned int name##2(unsigned int x) { return cuda_c##name##2(x, x); }        \
    static inline unsigned int name##4(unsigned int x) { return cuda_c##name##4(x, x); }
CUDA_C_SIMD_UNARY(__vabs, a < 0 ? -a : a)
CUDA_C_SIMD_UNARY(__vabsss, cuda_c::clamp(a < 0 ? -a : a, 0, L::HIGHEST))
CUDA_C_SIMD_UNARY(__vneg, -a)
CUDA_C_SIMD_UNARY(__vnegss, cuda_c::clamp(-a, L::LOWEST, L::HIGHEST))
#undef CUDA_C_SIMD_UNARY

// Sums of absolute differences over the lanes.
#define CUDA_C_SIMD_SAD(name, lanes, sign)                                                      \
    static inline unsigned int name##lanes(unsigned int x, unsigned int y) {                    \
        typedef cuda_c::Packed<lanes> L;                                                         \
        int sum = 0;                                                                            \
        for (int at = 0; at < 32; at += L::BITS) {                                              \
            const int a = (L::sign)(x >> at);                                                   \
            const int b __attribute__((unused)) = (L::sign)(y >> at);                           \
            sum += a > b ? a - b : b - a;                                                       \
        }                                                                                       \
        return (unsigned int)sum;                                                               \
    }
CUDA_C_SIMD_SAD(__vsads, 2, Signed)
CUDA_C_SIMD_SAD(__vsads, 4, Signed)
CUDA_C_SIMD_SAD(__vsadu, 2, Unsigned)
CUDA_C_SIMD_SAD(__vsadu, 4, Unsigned)
#undef CUDA_C_SIMD_SAD

// Minimum and maximum: of three values, of a sum and a third value, with a lower limit of zero (`relu`), and
// with predicates that report which argument was taken.
#define CUDA_C_SIMD_EXTREMES(extreme, compare)                                                  \
    static inline int __vi##extreme##_s32_relu(int a, int b) { return max(extreme(a, b), 0); }  \
    static inline int __vi##extreme##3_s32(int a, int b, int c) {                               \
        return extreme(extreme(a, b), c);                                                       \
    }                                                                                           \
    static inline int __vi##extreme##3_s32_relu(int a, int b, int c) {                          \
        return max(__vi##extreme##3_s32(a, b, c), 0);                                           \
    }                                                                                           \
    static inline unsigned int __vi##extreme##3_u32(unsigned int a, unsigned int b,             \
                                                    unsigned int c) {                           \
        return extreme(extreme(a, b), c);                                                       \
    }                                                                                           \
    static inline int __viadd##extreme##_s32(int a, int b, int c) {                             \
        return extreme((int)((unsigned int)a + (unsigned int)b), c);                            \
    }                                                                                           \
    static inline int __viadd##extreme##_s32_relu(int a, int b, int c) {                        \
        return max(__viadd##extreme##_s32(a, b, c), 0);                                         \
    }                                                                                           \
    static inline unsigned int __viadd##extreme##_u32(unsigned int a, unsigned int b,           \
                                                      unsigned int c) {                         \
        return extreme(a + b, c);                                                               \
    }                                                                                           \
    static inline unsigned int __vi##extreme##_s16x2_relu(unsigned int a, unsigned int b) {     \
        return __vmaxs2(__v##extreme##s2(a, b), 0);                                             \
    }                                                                                           \
    static inline unsigned int __vi##extreme##3_s16x2(unsigned int a, unsigned int b,           \
                                                      unsigned int c) {                         \
        return __v##extreme##s2(__v##extreme##s2(a, b), c);                                     \
    }                                                                                           \
    static inline unsigned int __vi##extreme##3_s16x2_relu(unsigned int a, unsigned int b,      \
                                                           unsigned int c) {                    \
        return __vmaxs2(__vi##extreme##3_s16x2(a, b, c), 0);                                    \
    }                                                                                           \
    static inline unsigned int __vi##extreme##3_u16x2(unsigned int a, unsigned int b,           \
                                                      unsigned int c) {                         \
        return __v##extreme##u2(__v##extreme##u2(a, b), c);                                     \
    }                                                                                           \
    static inline unsigned int __viadd##extreme##_s16x2(unsigned int a, unsigned int b,         \
                                                        unsigned int c) {                       \
        return __v##extreme##s2(__vadd2(a, b), c);                                              \
    }                                                                                           \
    static inline unsigned int __viadd##extreme##_s16x2_relu(unsigned int a, unsigned int b,    \
                                                             unsigned int c) {                  \
        return __vmaxs2(__viadd##extreme##_s16x2(a, b, c), 0);                                  \
    }                                                                                           \
    static inline unsigned int __viadd##extreme##_u16x2(unsigned int a, unsigned int b,         \
                                                        unsigned int c) {                       \
        return __v##extreme##u2(__vadd2(a, b), c);                                              \
    }                                                                                           \
    static inline int __vib##extreme##_s32(int a, int b, bool* first) {                         \
        *first = a compare b;                                                                   \
        return extreme(a, b);                                                                   \
    }                                                                                           \
    static inline unsigned int __vib##extreme##_u32(unsigned int a, unsigned int b,             \
                                                    bool* first) {                              \
        *first = a compare b;                                                                   \
        return extreme(a, b);                                                                   \
    }                                                                                           \
    static inline unsigned int __vib##extreme##_s16x2(unsigned int a, unsigned int b,           \
                                                      bool* high, bool* low) {                  \
        *high = (short)(a >> 16) compare (short)(b >> 16);                                      \
        *low = (short)a compare (short)b;                                                       \
        return __v##extreme##s2(a, b);                                                          \
    }                                                                                           \
    static inline unsigned int __vib##extreme##_u16x2(unsigned int a, unsigned int b,           \
                                                      bool* high, bool* low) {                  \
        *high = (unsigned short)(a >> 16) compare (unsigned short)(b >> 16);                    \
        *low = (unsigned short)a compare (unsigned short)b;                                     \
        return __v##extreme##u2(a, b);                                                          \
    }
CUDA_C_SIMD_EXTREMES(max, >=)
CUDA_C_SIMD_EXTREMES(min, <=)
#undef CUDA_C_SIMD_EXTREMES
#undef CUDA_C_SIMD
#undef CUDA_C_SIMD_OF

} // extern "C++"
