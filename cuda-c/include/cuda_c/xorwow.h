// XORWOW (G. Marsaglia, "Xorshift RNGs", 2003): a linear recurrence of 160 bits and a Weyl sequence, with
// the states, seeds and jumps of cuRAND. A jump is a polynomial in the recurrence (H. Haramoto, M. Matsumoto,
// T. Nishimura, F. Panneton and P. L'Ecuyer, "Efficient jump ahead for F2-linear random number generators", 2008).
#pragma once

#include "xorwow_jumps.h"

extern "C++" {

struct curandStateXORWOW {
    unsigned int d, v[5];
    int boxmuller_flag;
    int boxmuller_flag_double;
    float boxmuller_extra;
    double boxmuller_extra_double;
};
typedef struct curandStateXORWOW curandStateXORWOW_t;
typedef struct curandStateXORWOW curandState_t;
typedef struct curandStateXORWOW curandState;

namespace cuda_c {

static inline void xorwow_step(unsigned int* v) {
    const unsigned int t = v[0] ^ v[0] >> 2;
    for (int i = 0; i < 4; ++i) v[i] = v[i + 1];
    v[4] = v[4] ^ v[4] << 4 ^ t ^ t << 1;
}

// Advances the recurrence by count * 2^first steps.
static inline void xorwow_jump(unsigned int* v, unsigned long long count, int first) {
    for (; count; count &= count - 1) {
        const unsigned int* polynomial = XORWOW_JUMPS[first + __builtin_ctzll(count)];
        unsigned int sum[5] = {0, 0, 0, 0, 0};
        for (int power = 0; power < 160; ++power) {
            const unsigned int chosen = 0u - (polynomial[power / 32] >> power % 32 & 1);
            for (int i = 0; i < 5; ++i) sum[i] ^= v[i] & chosen;
            xorwow_step(v);
        }
        for (int i = 0; i < 5; ++i) v[i] = sum[i];
    }
}

} // namespace cuda_c

static inline void skipahead(unsigned long long n, curandStateXORWOW_t* state) {
    cuda_c::xorwow_jump(state->v, n, 0);
    state->d += 362437 * (unsigned int)n;
}
static inline void skipahead_sequence(unsigned long long n, curandStateXORWOW_t* state) {
    cuda_c::xorwow_jump(state->v, n, 67);
}
static inline void curand_init(unsigned long long seed, unsigned long long subsequence,
                               unsigned long long offset, curandStateXORWOW_t* state) {
    const unsigned int low = ((unsigned int)seed ^ 0xaad26b49u) * 1099087573u;
    const unsigned int high = ((unsigned int)(seed >> 32) ^ 0xf7dcefddu) * 2591861531u;
    *state = {6615241 + low + high,
              {123456789 + low, 362436069 ^ low, 521288629 + high, 88675123 ^ high, 5783321 + low},
              0, 0, 0, 0};
    skipahead_sequence(subsequence, state);
    skipahead(offset, state);
}
static inline unsigned int curand(curandStateXORWOW_t* state) {
    cuda_c::xorwow_step(state->v);
    return state->v[4] + (state->d += 362437);
}

} // extern "C++"
