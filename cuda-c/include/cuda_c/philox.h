// Philox4x32-10 (J. Salmon, M. Moraes, R. Dror and D. Shaw, "Parallel random numbers: as easy as 1, 2, 3",
// 2011), with the states and jumps of cuRAND: four words for each value of a counter.
#pragma once

extern "C++" {

struct curandStatePhilox4_32_10 {
    uint4 ctr, output; // `output` is the block of `ctr`
    uint2 key;
    unsigned int STATE; // the index of the next word
    int boxmuller_flag;
    int boxmuller_flag_double;
    float boxmuller_extra;
    double boxmuller_extra_double;
};
typedef struct curandStatePhilox4_32_10 curandStatePhilox4_32_10_t;

static inline uint4 curand_Philox4x32_10(uint4 counter, uint2 key) {
    for (int round = 0; round < 10; ++round) {
        const unsigned long long x = counter.x * 0xd2511f53ull, y = counter.z * 0xcd9e8d57ull;
        counter = {(unsigned int)(y >> 32) ^ counter.y ^ key.x, (unsigned int)y,
                   (unsigned int)(x >> 32) ^ counter.w ^ key.y, (unsigned int)x};
        key = {key.x + 0x9e3779b9u, key.y + 0xbb67ae85u};
    }
    return counter;
}

namespace cuda_c {

// Adds to the counter; `high` is added to its upper half.
static inline void philox_count(curandStatePhilox4_32_10_t* state, unsigned long long low, unsigned long long high) {
    const unsigned long long below = (unsigned long long)state->ctr.y << 32 | state->ctr.x;
    const unsigned long long sum = below + low;
    const unsigned long long above =
        ((unsigned long long)state->ctr.w << 32 | state->ctr.z) + high + (sum < below);
    state->ctr = {(unsigned int)sum, (unsigned int)(sum >> 32), (unsigned int)above, (unsigned int)(above >> 32)};
    state->output = curand_Philox4x32_10(state->ctr, state->key);
}

} // namespace cuda_c

static inline void skipahead(unsigned long long n, curandStatePhilox4_32_10_t* state) {
    const unsigned int word = state->STATE + (unsigned int)(n & 3);
    state->STATE = word & 3;
    cuda_c::philox_count(state, n / 4 + word / 4, 0);
}
static inline void skipahead_sequence(unsigned long long n, curandStatePhilox4_32_10_t* state) {
    cuda_c::philox_count(state, 0, n);
}
static inline void curand_init(unsigned long long seed, unsigned long long subsequence,
                               unsigned long long offset, curandStatePhilox4_32_10_t* state) {
    *state = {};
    state->key = {(unsigned int)seed, (unsigned int)(seed >> 32)};
    skipahead_sequence(subsequence, state);
    skipahead(offset, state);
}
static inline unsigned int curand(curandStatePhilox4_32_10_t* state) {
    const unsigned int words[] = {state->output.x, state->output.y, state->output.z, state->output.w};
    const unsigned int word = words[state->STATE & 3];
    if (++state->STATE == 4) {
        state->STATE = 0;
        cuda_c::philox_count(state, 1, 0);
    }
    return word;
}
// Returns the next four words.
static inline uint4 curand4(curandStatePhilox4_32_10_t* state) {
    const uint4 now = state->output;
    cuda_c::philox_count(state, 1, 0);
    const uint4 then = state->output;
    const unsigned int words[] = {now.x, now.y, now.z, now.w, then.x, then.y, then.z, then.w};
    const unsigned int* first = words + (state->STATE & 3);
    return {first[0], first[1], first[2], first[3]};
}

} // extern "C++"
