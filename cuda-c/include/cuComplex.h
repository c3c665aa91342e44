// Complex numbers under CUDA's names, as vectors of two.
//
// Division scales the divisor first, so that no intermediate result overflows.
#pragma once

extern "C++" {

typedef float2 cuFloatComplex;
typedef double2 cuDoubleComplex;
typedef cuFloatComplex cuComplex;

#define CUDA_C_COMPLEX(type, real, suffix, make)                                          \
    static inline type make(real x, real y) { return {x, y}; }                                  \
    static inline real cuCreal##suffix(type z) { return z.x; }                                  \
    static inline real cuCimag##suffix(type z) { return z.y; }                                  \
    static inline type cuConj##suffix(type z) { return {z.x, -z.y}; }                           \
    static inline type cuCadd##suffix(type z, type w) { return {z.x + w.x, z.y + w.y}; }        \
    static inline type cuCsub##suffix(type z, type w) { return {z.x - w.x, z.y - w.y}; }        \
    static inline type cuCmul##suffix(type z, type w) {                                         \
        return {z.x * w.x - z.y * w.y, z.x * w.y + z.y * w.x};                                  \
    }                                                                                           \
    static inline type cuCfma##suffix(type z, type w, type v) {                                 \
        return cuCadd##suffix(cuCmul##suffix(z, w), v);                                         \
    }                                                                                           \
    static inline real cuCabs##suffix(type z) { return hypot(z.x, z.y); }                       \
    static inline type cuCdiv##suffix(type z, type w) {                                         \
        const real scale = 1 / (fabs(w.x) + fabs(w.y));                                         \
        const real a = z.x * scale, b = z.y * scale, c = w.x * scale, d = w.y * scale;          \
        const real size = 1 / (c * c + d * d);                                                  \
        return {(a * c + b * d) * size, (b * c - a * d) * size};                                \
    }
CUDA_C_COMPLEX(cuFloatComplex, float, f, make_cuFloatComplex)
CUDA_C_COMPLEX(cuDoubleComplex, double, , make_cuDoubleComplex)
#undef CUDA_C_COMPLEX
static inline cuComplex make_cuComplex(float x, float y) { return {x, y}; }
static inline cuDoubleComplex cuComplexFloatToDouble(cuFloatComplex z) { return {z.x, z.y}; }
static inline cuFloatComplex cuComplexDoubleToFloat(cuDoubleComplex z) {
    return {(float)z.x, (float)z.y};
}

} // extern "C++"
