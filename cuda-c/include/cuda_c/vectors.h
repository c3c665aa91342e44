// The vector types of CUDA C, with the layout that device and host code share. `uint3` and `dim3` are defined
// in `gpuarray_abi.h`.
#pragma once

extern "C++" {

// Types with two or four components are aligned to their size, up to 16 bytes; types with one or three, to a
// component.
#define CUDA_C_THREE(name, type)                                                                \
    struct name##3 {                                                                            \
        type x, y, z;                                                                           \
    };
CUDA_C_THREE(char, signed char)
CUDA_C_THREE(uchar, unsigned char)
CUDA_C_THREE(short, short)
CUDA_C_THREE(ushort, unsigned short)
CUDA_C_THREE(int, int)
CUDA_C_THREE(long, long)
CUDA_C_THREE(ulong, unsigned long)
CUDA_C_THREE(longlong, long long)
CUDA_C_THREE(ulonglong, unsigned long long)
CUDA_C_THREE(float, float)
CUDA_C_THREE(double, double)
#undef CUDA_C_THREE
#define CUDA_C_VECTORS(name, type)                                                              \
    struct name##1 {                                                                            \
        type x;                                                                                 \
    };                                                                                          \
    struct alignas(2 * sizeof(type)) name##2 {                                                  \
        type x, y;                                                                              \
    };                                                                                          \
    struct alignas(sizeof(type) < 4 ? 4 * sizeof(type) : 16) name##4 {                          \
        type x, y, z, w;                                                                        \
    };                                                                                          \
    constexpr static inline name##1 make_##name##1(type x) { return {x}; }                      \
    constexpr static inline name##2 make_##name##2(type x, type y) { return {x, y}; }           \
    constexpr static inline name##3 make_##name##3(type x, type y, type z) { return {x, y, z}; } \
    constexpr static inline name##4 make_##name##4(type x, type y, type z, type w) {            \
        return {x, y, z, w};                                                                    \
    }
CUDA_C_VECTORS(char, signed char)
CUDA_C_VECTORS(uchar, unsigned char)
CUDA_C_VECTORS(short, short)
CUDA_C_VECTORS(ushort, unsigned short)
CUDA_C_VECTORS(int, int)
CUDA_C_VECTORS(uint, unsigned int)
CUDA_C_VECTORS(long, long)
CUDA_C_VECTORS(ulong, unsigned long)
CUDA_C_VECTORS(longlong, long long)
CUDA_C_VECTORS(ulonglong, unsigned long long)
CUDA_C_VECTORS(float, float)
CUDA_C_VECTORS(double, double)
#undef CUDA_C_VECTORS

} // extern "C++"
