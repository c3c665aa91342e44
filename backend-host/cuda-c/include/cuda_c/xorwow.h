// XORWOW (G. Marsaglia, "Xorshift RNGs", 2003): a linear recurrence of 160 bits and a Weyl sequence, with
// the states, seeds and jumps of cuRAND.
#pragma once

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

// A linear map of the recurrence's bits: the image of each.
struct XorwowMap {
    unsigned int images[160][5];

    void apply(unsigned int* v) const {
        unsigned int sum[5] = {0, 0, 0, 0, 0};
        for (int bit = 0; bit < 160; ++bit) {
            const unsigned int chosen = 0u - (v[bit / 32] >> bit % 32 & 1);
            for (int i = 0; i < 5; ++i) sum[i] ^= images[bit][i] & chosen;
        }
        for (int i = 0; i < 5; ++i) v[i] = sum[i];
    }
};

// The maps of 2^0, 2^1, ... steps. A sequence has 2^67, and its number has 64 bits.
constexpr int XORWOW_SEQUENCE = 67, XORWOW_MAPS = XORWOW_SEQUENCE + 64;

static inline XorwowMap* xorwow_made_maps() {
    XorwowMap* maps = (XorwowMap*)malloc(XORWOW_MAPS * sizeof(XorwowMap));
    if (!maps) __builtin_trap();
    for (int bit = 0; bit < 160; ++bit) {
        unsigned int* image = maps[0].images[bit];
        for (int i = 0; i < 5; ++i) image[i] = i == bit / 32 ? 1u << bit % 32 : 0;
        xorwow_step(image);
    }
    for (int power = 1; power < XORWOW_MAPS; ++power) {
        for (int bit = 0; bit < 160; ++bit) {
            unsigned int* image = maps[power].images[bit];
            for (int i = 0; i < 5; ++i) image[i] = maps[power - 1].images[bit][i];
            maps[power - 1].apply(image);
        }
    }
    return maps;
}

// Made when they are first needed, and then kept with the program's code. Of two threads that make
// them at once, one throws its own away.
static XorwowMap* xorwow_kept_maps = nullptr;
static inline const XorwowMap* xorwow_maps() {
    XorwowMap* maps = __atomic_load_n(&xorwow_kept_maps, __ATOMIC_ACQUIRE);
    if (maps) return maps;
    maps = xorwow_made_maps();
    XorwowMap* found = nullptr;
    if (__atomic_compare_exchange_n(&xorwow_kept_maps, &found, maps, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)) {
        return maps;
    }
    free(maps);
    return found;
}
// Frees them when the code is unloaded.
struct XorwowMapsOwner {
    ~XorwowMapsOwner() { free(xorwow_kept_maps); }
};
static XorwowMapsOwner xorwow_maps_owner __attribute__((unused));

static inline void xorwow_jump(unsigned int* v, unsigned long long count, int first) {
    for (; count; count &= count - 1) xorwow_maps()[first + __builtin_ctzll(count)].apply(v);
}

} // namespace cuda_c

static inline void skipahead(unsigned long long n, curandStateXORWOW_t* state) {
    cuda_c::xorwow_jump(state->v, n, 0);
    state->d += 362437 * (unsigned int)n;
}
static inline void skipahead_sequence(unsigned long long n, curandStateXORWOW_t* state) {
    cuda_c::xorwow_jump(state->v, n, cuda_c::XORWOW_SEQUENCE);
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
