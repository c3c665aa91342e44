// MRG32k3a (P. L'Ecuyer, "Good parameters and implementations for combined multiple recursive random number
// generators", 1999), with the states, seeds and jumps of cuRAND.
#pragma once

extern "C++" {

struct curandStateMRG32k3a {
    unsigned int s1[3], s2[3];
    int boxmuller_flag;
    int boxmuller_flag_double;
    float boxmuller_extra;
    double boxmuller_extra_double;
};
typedef struct curandStateMRG32k3a curandStateMRG32k3a_t;

namespace cuda_c {

constexpr unsigned long long MRG_M1 = 4294967087ull, MRG_M2 = 4294944443ull;

struct MrgMatrix {
    unsigned long long a[3][3];
};
// The entries, and the remainders of the products, are below 2^32.
static inline MrgMatrix mrg_product(const MrgMatrix& x, const MrgMatrix& y, unsigned long long modulus) {
    MrgMatrix result;
    for (int i = 0; i < 3; ++i) {
        for (int j = 0; j < 3; ++j) {
            unsigned long long sum = 0;
            for (int k = 0; k < 3; ++k) sum += x.a[i][k] * y.a[k][j] % modulus;
            result.a[i][j] = sum % modulus;
        }
    }
    return result;
}
// Advances one recurrence by count * 2^power steps.
static inline void mrg_jump(unsigned int* s, MrgMatrix step, unsigned long long modulus, unsigned long long count,
                            int power) {
    for (; power; --power) step = mrg_product(step, step, modulus);
    for (; count; count >>= 1) {
        if (count & 1) {
            unsigned int next[3];
            for (int i = 0; i < 3; ++i) {
                unsigned long long sum = 0;
                for (int k = 0; k < 3; ++k) sum += step.a[i][k] * s[k] % modulus;
                next[i] = (unsigned int)(sum % modulus);
            }
            for (int i = 0; i < 3; ++i) s[i] = next[i];
        }
        step = mrg_product(step, step, modulus);
    }
}
static inline void mrg_skip(curandStateMRG32k3a_t* state, unsigned long long count, int power) {
    if (count == 0) return;
    mrg_jump(state->s1, {{{0, 1, 0}, {0, 0, 1}, {MRG_M1 - 810728, 1403580, 0}}}, MRG_M1, count, power);
    mrg_jump(state->s2, {{{0, 1, 0}, {0, 0, 1}, {MRG_M2 - 1370589, 0, 527612}}}, MRG_M2, count, power);
}

} // namespace cuda_c

// The difference of the two recurrences, from 1 to 2^32 - 209.
static inline double curand_MRG32k3a(curandStateMRG32k3a_t* state) {
    using namespace cuda_c;
    unsigned int *s = state->s1, *t = state->s2;
    const unsigned long long p = (1403580ull * s[1] + 810728ull * (MRG_M1 - s[0])) % MRG_M1;
    const unsigned long long q = (527612ull * t[2] + 1370589ull * (MRG_M2 - t[0])) % MRG_M2;
    s[0] = s[1], s[1] = s[2], s[2] = (unsigned int)p;
    t[0] = t[1], t[1] = t[2], t[2] = (unsigned int)q;
    return (double)(p > q ? p - q : p + MRG_M1 - q);
}
static inline unsigned int curand(curandStateMRG32k3a_t* state) {
    return (unsigned int)(curand_MRG32k3a(state) * 1.000000048662);
}
static inline void skipahead(unsigned long long n, curandStateMRG32k3a_t* state) { cuda_c::mrg_skip(state, n, 0); }
static inline void skipahead_subsequence(unsigned long long n, curandStateMRG32k3a_t* state) {
    cuda_c::mrg_skip(state, n, 76);
}
static inline void skipahead_sequence(unsigned long long n, curandStateMRG32k3a_t* state) {
    cuda_c::mrg_skip(state, n, 127);
}
static inline void curand_init(unsigned long long seed, unsigned long long subsequence,
                               unsigned long long offset, curandStateMRG32k3a_t* state) {
    using namespace cuda_c;
    *state = {{12345, 12345, 12345}, {12345, 12345, 12345}, 0, 0, 0, 0};
    if (seed != 0) {
        const unsigned long long x = (unsigned int)seed ^ 0x55555555u, y = (unsigned int)(seed >> 32) ^ 0xaaaaaaaau;
        for (int i = 0; i < 3; ++i) {
            state->s1[i] = (unsigned int)((i == 1 ? y : x) * 12345 % MRG_M1);
            state->s2[i] = (unsigned int)((i == 1 ? x : y) * 12345 % MRG_M2);
        }
    }
    skipahead_subsequence(subsequence, state);
    skipahead(offset, state);
}

} // extern "C++"
