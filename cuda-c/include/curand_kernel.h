// Random numbers in kernels under cuRAND's names: XORWOW, Philox, MRG32k3a and Sobol's sequences, with the
// same bits as cuRAND. They give uniform, normal, log-normal and Poisson-distributed numbers. Normal numbers
// are rounded better than on a GPU, which uses a fast sine. MTGP32 and discrete distributions are not
// supported.
#pragma once

#include "cuda_c/mrg32k3a.h"
#include "cuda_c/philox.h"
#include "cuda_c/poisson.h"
#include "cuda_c/sobol.h"
#include "cuda_c/xorwow.h"

extern "C++" {

namespace cuda_c {

// Converts words to numbers in (0, 1].
static inline float unit(unsigned int x) { return (float)x * 0x1p-32f + 0x1p-33f; }
static inline unsigned long long joined(unsigned int x, unsigned int y) { return x ^ (unsigned long long)y << 21; }
static inline double unit(unsigned int x, unsigned int y) { return (double)joined(x, y) * 0x1p-53 + 0x1p-54; }

template <class State> static inline float uniform(State* state) { return unit(curand(state)); }
template <class State> static inline double uniform_double(State* state) {
    const unsigned int x = curand(state), y = curand(state);
    return unit(x, y);
}
// With this generator, a double-precision number takes one word.
static inline double uniform_double(curandStatePhilox4_32_10_t* state) {
    return curand(state) * 0x1p-32 + 0x1p-32;
}
// The largest difference of this generator becomes 1.
static inline float uniform(curandStateMRG32k3a_t* state) {
    return (float)(curand_MRG32k3a(state) * 2.3283065498378288e-10);
}
static inline double uniform_double(curandStateMRG32k3a_t* state) {
    return curand_MRG32k3a(state) * 2.3283065498378288e-10;
}

// Two normal numbers from a radius and an angle (G. Box and M. Muller, 1958).
static inline float2 normals_at(float u, float angle) {
    const float radius = sqrtf(-2.0f * logf(u));
    float s, c;
    sincosf(angle, &s, &c);
    return {s * radius, c * radius};
}
static inline double2 normals_at(double u, double half_turns) {
    const double radius = ::sqrt(-2.0 * ::log(u));
    double s, c;
    sincospi(half_turns, &s, &c);
    return {s * radius, c * radius};
}
static inline float2 normals(unsigned int x, unsigned int y) {
    constexpr float turn = 0x1p-32f * 6.2831855f;
    return normals_at(unit(x), __builtin_fmaf((float)y, turn, turn / 2));
}
static inline double2 normals(unsigned int x0, unsigned int x1, unsigned int y0, unsigned int y1) {
    return normals_at(unit(x0, x1), (double)joined(y0, y1) * 0x1p-52 + 0x1p-53);
}
template <class State> static inline float2 normals(State* state) {
    const unsigned int x = curand(state), y = curand(state);
    return normals(x, y);
}
template <class State> static inline double2 normals_double(State* state) {
    const unsigned int x0 = curand(state), x1 = curand(state), y0 = curand(state), y1 = curand(state);
    return normals(x0, x1, y0, y1);
}
static inline double2 normals_double(curandStatePhilox4_32_10_t* state) {
    const uint4 x = curand4(state);
    return normals(x.x, x.y, x.z, x.w);
}
static inline float2 normals(curandStateMRG32k3a_t* state) {
    const float u = uniform(state), v = uniform(state);
    return normals_at(u, v * 6.2831855f);
}
static inline double2 normals_double(curandStateMRG32k3a_t* state) {
    const double u = uniform_double(state), v = uniform_double(state);
    return normals_at(u, v * 2);
}

// Returns one number of a pair; the state keeps the other one, marked with its distribution. A kept normal
// number is not used for the next log-normal number, and vice versa.
constexpr int KEPT_NORMAL_ = 1, KEPT_LOG_NORMAL_ = 2;
template <class State> static inline float normal(State* state) {
    if (state->boxmuller_flag == KEPT_NORMAL_) {
        state->boxmuller_flag = 0;
        return state->boxmuller_extra;
    }
    const float2 pair = normals(state);
    state->boxmuller_extra = pair.y;
    state->boxmuller_flag = KEPT_NORMAL_;
    return pair.x;
}
template <class State> static inline double normal_double(State* state) {
    if (state->boxmuller_flag_double == KEPT_NORMAL_) {
        state->boxmuller_flag_double = 0;
        return state->boxmuller_extra_double;
    }
    const double2 pair = normals_double(state);
    state->boxmuller_extra_double = pair.y;
    state->boxmuller_flag_double = KEPT_NORMAL_;
    return pair.x;
}
template <class State> static inline float log_normal(State* state, float mean, float deviation) {
    if (state->boxmuller_flag == KEPT_LOG_NORMAL_) {
        state->boxmuller_flag = 0;
        return state->boxmuller_extra;
    }
    const float2 pair = normals(state);
    state->boxmuller_extra = expf(mean + deviation * pair.y);
    state->boxmuller_flag = KEPT_LOG_NORMAL_;
    return expf(mean + deviation * pair.x);
}
template <class State> static inline double log_normal_double(State* state, double mean, double deviation) {
    if (state->boxmuller_flag_double == KEPT_LOG_NORMAL_) {
        state->boxmuller_flag_double = 0;
        return state->boxmuller_extra_double;
    }
    const double2 pair = normals_double(state);
    state->boxmuller_extra_double = ::exp(mean + deviation * pair.y);
    state->boxmuller_flag_double = KEPT_LOG_NORMAL_;
    return ::exp(mean + deviation * pair.x);
}

} // namespace cuda_c

#define CUDA_C_DISTRIBUTIONS(State)                                                             \
    static inline float curand_uniform(State* state) { return cuda_c::uniform(state); }         \
    static inline double curand_uniform_double(State* state) { return cuda_c::uniform_double(state); } \
    static inline float curand_normal(State* state) { return cuda_c::normal(state); }           \
    static inline double curand_normal_double(State* state) { return cuda_c::normal_double(state); } \
    static inline float2 curand_normal2(State* state) { return cuda_c::normals(state); }        \
    static inline double2 curand_normal2_double(State* state) { return cuda_c::normals_double(state); } \
    static inline float curand_log_normal(State* state, float mean, float deviation) {          \
        return cuda_c::log_normal(state, mean, deviation);                                      \
    }                                                                                           \
    static inline double curand_log_normal_double(State* state, double mean, double deviation) { \
        return cuda_c::log_normal_double(state, mean, deviation);                               \
    }                                                                                           \
    static inline float2 curand_log_normal2(State* state, float mean, float deviation) {        \
        const float2 v = cuda_c::normals(state);                                                \
        return {expf(mean + deviation * v.x), expf(mean + deviation * v.y)};                    \
    }                                                                                           \
    static inline double2 curand_log_normal2_double(State* state, double mean, double deviation) { \
        const double2 v = cuda_c::normals_double(state);                                        \
        return {::exp(mean + deviation * v.x), ::exp(mean + deviation * v.y)};                  \
    }
CUDA_C_DISTRIBUTIONS(curandStateXORWOW_t)
CUDA_C_DISTRIBUTIONS(curandStatePhilox4_32_10_t)
CUDA_C_DISTRIBUTIONS(curandStateMRG32k3a_t)
#undef CUDA_C_DISTRIBUTIONS

// Philox generates four words per step.
static inline float4 curand_uniform4(curandStatePhilox4_32_10_t* state) {
    const uint4 x = curand4(state);
    return {cuda_c::unit(x.x), cuda_c::unit(x.y), cuda_c::unit(x.z), cuda_c::unit(x.w)};
}
static inline double2 curand_uniform2_double(curandStatePhilox4_32_10_t* state) {
    const uint4 x = curand4(state);
    return {cuda_c::unit(x.x, x.y), cuda_c::unit(x.z, x.w)};
}
static inline double4 curand_uniform4_double(curandStatePhilox4_32_10_t* state) {
    const double2 a = curand_uniform2_double(state), b = curand_uniform2_double(state);
    return {a.x, a.y, b.x, b.y};
}
static inline double4 curand_normal4_double(curandStatePhilox4_32_10_t* state) {
    const double2 a = curand_normal2_double(state), b = curand_normal2_double(state);
    return {a.x, a.y, b.x, b.y};
}
static inline double4 curand_log_normal4_double(curandStatePhilox4_32_10_t* state, double mean, double deviation) {
    const double2 a = curand_log_normal2_double(state, mean, deviation);
    const double2 b = curand_log_normal2_double(state, mean, deviation);
    return {a.x, a.y, b.x, b.y};
}
static inline float4 curand_normal4(curandStatePhilox4_32_10_t* state) {
    const uint4 x = curand4(state);
    const float2 a = cuda_c::normals(x.x, x.y), b = cuda_c::normals(x.z, x.w);
    return {a.x, a.y, b.x, b.y};
}
static inline float4 curand_log_normal4(curandStatePhilox4_32_10_t* state, float mean, float deviation) {
    const float4 v = curand_normal4(state);
    return {expf(mean + deviation * v.x), expf(mean + deviation * v.y), expf(mean + deviation * v.z),
            expf(mean + deviation * v.w)};
}

static inline unsigned int curand_poisson(curandStateXORWOW_t* state, double mean) {
    return cuda_c::poisson(state, mean);
}
static inline unsigned int curand_poisson(curandStatePhilox4_32_10_t* state, double mean) {
    return cuda_c::poisson(state, mean);
}
static inline unsigned int curand_poisson(curandStateMRG32k3a_t* state, double mean) {
    return cuda_c::poisson(state, mean);
}
static inline uint4 curand_poisson4(curandStatePhilox4_32_10_t* state, double mean) {
    const unsigned int x = cuda_c::poisson(state, mean), y = cuda_c::poisson(state, mean);
    const unsigned int z = cuda_c::poisson(state, mean), w = cuda_c::poisson(state, mean);
    return {x, y, z, w};
}

// A quasi-random number uses one word of the sequence. For a 64-bit word, single precision uses the upper
// half and double precision the upper 53 bits. Normal numbers are quantiles, computed for the smaller tail.
namespace cuda_c {
static inline float quasi(unsigned int x) { return unit(x); }
static inline float quasi(unsigned long long x) { return unit((unsigned int)(x >> 32)); }
// A uniform number may be 1, for which the other distributions do not have a value.
static inline double quasi_double(unsigned int x) { return (double)x * 0x1p-32 + 0x1p-32; }
static inline double quasi_double(unsigned long long x) { return (double)(x >> 11) * 0x1p-53 + 0x1p-54; }
static inline double quasi_place(unsigned int x) { return (double)x * 0x1p-32 + 0x1p-33; }
static inline double quasi_place(unsigned long long x) { return quasi_double(x); }
static inline float quasi_normal(unsigned int x) {
    const bool is_upper = x > 0x80000000u;
    const float z = -1.4142135f * erfcinvf(2.0f * unit(is_upper ? ~x : x));
    return is_upper ? -z : z;
}
static inline float quasi_normal(unsigned long long x) { return quasi_normal((unsigned int)(x >> 32)); }
template <class Word> static inline double quasi_normal_double(Word x) {
    const bool is_upper = x > (Word)1 << (8 * sizeof(Word) - 1);
    const double z = -1.4142135623730951 * ::erfcinv(2.0 * quasi_place(is_upper ? (Word)~x : x));
    return is_upper ? -z : z;
}
template <class Word> static inline unsigned int quasi_poisson(Word x, double mean) {
    if (mean < 1000.0) return poisson_at(::fmin(quasi_place(x), 1.0 - 0x1p-53), mean);
    return poisson_of_normal(quasi_normal_double(x), mean);
}
} // namespace cuda_c

#define CUDA_C_DISTRIBUTIONS(State)                                                                  \
    static inline float curand_uniform(State* state) { return cuda_c::quasi(curand(state)); }        \
    static inline double curand_uniform_double(State* state) { return cuda_c::quasi_double(curand(state)); } \
    static inline float curand_normal(State* state) { return cuda_c::quasi_normal(curand(state)); }  \
    static inline double curand_normal_double(State* state) {                                        \
        return cuda_c::quasi_normal_double(curand(state));                                           \
    }                                                                                                \
    static inline float curand_log_normal(State* state, float mean, float deviation) {               \
        return expf(mean + deviation * curand_normal(state));                                        \
    }                                                                                                \
    static inline double curand_log_normal_double(State* state, double mean, double deviation) {     \
        return ::exp(mean + deviation * curand_normal_double(state));                                \
    }                                                                                                \
    static inline unsigned int curand_poisson(State* state, double mean) {                           \
        return cuda_c::quasi_poisson(curand(state), mean);                                           \
    }
CUDA_C_DISTRIBUTIONS(curandStateSobol32_t)
CUDA_C_DISTRIBUTIONS(curandStateScrambledSobol32_t)
CUDA_C_DISTRIBUTIONS(curandStateSobol64_t)
CUDA_C_DISTRIBUTIONS(curandStateScrambledSobol64_t)
#undef CUDA_C_DISTRIBUTIONS

} // extern "C++"
