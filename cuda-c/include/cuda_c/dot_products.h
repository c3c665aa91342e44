// Dot products: of four bytes with four bytes, and of two 16-bit halves with two bytes.
#pragma once

extern "C++" {

#define CUDA_C_DOT(result, word, byte, half)                                                    \
    static inline result __dp4a(word x, word y, result sum) {                                   \
        unsigned int total = (unsigned int)sum;                                                 \
        for (int i = 0; i < 32; i += 8) {                                                       \
            total += (unsigned int)((byte)((unsigned int)x >> i) * (byte)((unsigned int)y >> i)); \
        }                                                                                       \
        return (result)total;                                                                   \
    }                                                                                           \
    static inline result cuda_c_dp2a(word x, word y, result sum, int from) {                    \
        unsigned int total = (unsigned int)sum;                                                 \
        for (int i = 0; i < 2; ++i) {                                                           \
            total += (unsigned int)((half)((unsigned int)x >> 16 * i) *                         \
                                    (byte)((unsigned int)y >> (8 * i + from)));                 \
        }                                                                                       \
        return (result)total;                                                                   \
    }                                                                                           \
    static inline result __dp2a_lo(word x, word y, result sum) { return cuda_c_dp2a(x, y, sum, 0); } \
    static inline result __dp2a_hi(word x, word y, result sum) { return cuda_c_dp2a(x, y, sum, 16); }
CUDA_C_DOT(int, int, signed char, short)
CUDA_C_DOT(unsigned int, unsigned int, unsigned char, unsigned short)
#undef CUDA_C_DOT
#define CUDA_C_DOT_OF_VECTORS(result, word, bytes, halves)                                     \
    static inline result __dp4a(bytes x, bytes y, result sum) {                                 \
        word a, b;                                                                              \
        __builtin_memcpy(&a, &x, 4), __builtin_memcpy(&b, &y, 4);                               \
        return __dp4a(a, b, sum);                                                               \
    }                                                                                           \
    static inline result __dp2a_lo(halves x, bytes y, result sum) {                             \
        word a, b;                                                                              \
        __builtin_memcpy(&a, &x, 4), __builtin_memcpy(&b, &y, 4);                               \
        return __dp2a_lo(a, b, sum);                                                            \
    }                                                                                           \
    static inline result __dp2a_hi(halves x, bytes y, result sum) {                             \
        word a, b;                                                                              \
        __builtin_memcpy(&a, &x, 4), __builtin_memcpy(&b, &y, 4);                               \
        return __dp2a_hi(a, b, sum);                                                            \
    }
CUDA_C_DOT_OF_VECTORS(int, int, char4, short2)
CUDA_C_DOT_OF_VECTORS(unsigned int, unsigned int, uchar4, ushort2)
#undef CUDA_C_DOT_OF_VECTORS

} // extern "C++"
