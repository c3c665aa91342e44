// Sobol's quasi-random sequences (I. Sobol, 1967, by Gray's code: I. Antonov and V. Saleev, 1979), with the
// states of cuRAND. The caller passes the direction vectors of a dimension. Scrambled sequences start at a
// constant.
#pragma once

extern "C++" {

typedef unsigned int curandDirectionVectors32_t[32];
typedef unsigned long long curandDirectionVectors64_t[64];

#define CUDA_C_SOBOL_STATE(Name, Word, bits) \
    struct Name {                            \
        Word i, x, c;                        \
        Word direction_vectors[bits];        \
    };                                       \
    typedef struct Name Name##_t;
CUDA_C_SOBOL_STATE(curandStateSobol32, unsigned int, 32)
CUDA_C_SOBOL_STATE(curandStateScrambledSobol32, unsigned int, 32)
CUDA_C_SOBOL_STATE(curandStateSobol64, unsigned long long, 64)
CUDA_C_SOBOL_STATE(curandStateScrambledSobol64, unsigned long long, 64)
#undef CUDA_C_SOBOL_STATE

namespace cuda_c {

template <class State, class Word> static inline void sobol_skip(Word n, State* state) {
    state->i += n;
    state->x = state->c;
    const Word gray = state->i ^ state->i >> 1;
    for (unsigned int k = 0; k < 8 * sizeof(Word); ++k) {
        if (gray >> k & 1) state->x ^= state->direction_vectors[k];
    }
}
template <class State, class Word>
static inline void sobol_init(const Word* directions, Word constant, Word offset, State* state) {
    for (unsigned int k = 0; k < 8 * sizeof(Word); ++k) state->direction_vectors[k] = directions[k];
    state->i = 0;
    state->c = constant;
    sobol_skip(offset, state);
}
// The Gray code of the next number differs in the position of this number's lowest zero. The last number does
// not have a zero.
template <class State, class Word> static inline Word sobol_next(State* state, Word) {
    const Word word = state->x;
    const int zero = state->i + 1 ? __builtin_ctzll(~(unsigned long long)state->i) : 0;
    state->x ^= state->direction_vectors[zero];
    ++state->i;
    return word;
}

} // namespace cuda_c

#define CUDA_C_SOBOL(State, Word)                                                            \
    static inline void skipahead(Word n, State* state) { cuda_c::sobol_skip(n, state); }     \
    static inline Word curand(State* state) { return cuda_c::sobol_next(state, (Word)0); }
CUDA_C_SOBOL(curandStateSobol32_t, unsigned int)
CUDA_C_SOBOL(curandStateScrambledSobol32_t, unsigned int)
CUDA_C_SOBOL(curandStateSobol64_t, unsigned long long)
CUDA_C_SOBOL(curandStateScrambledSobol64_t, unsigned long long)
#undef CUDA_C_SOBOL

static inline void curand_init(curandDirectionVectors32_t directions, unsigned int offset,
                               curandStateSobol32_t* state) {
    cuda_c::sobol_init(directions, 0u, offset, state);
}
static inline void curand_init(curandDirectionVectors32_t directions, unsigned int scramble, unsigned int offset,
                               curandStateScrambledSobol32_t* state) {
    cuda_c::sobol_init(directions, scramble, offset, state);
}
static inline void curand_init(curandDirectionVectors64_t directions, unsigned long long offset,
                               curandStateSobol64_t* state) {
    cuda_c::sobol_init(directions, 0ull, offset, state);
}
static inline void curand_init(curandDirectionVectors64_t directions, unsigned long long scramble,
                               unsigned long long offset, curandStateScrambledSobol64_t* state) {
    cuda_c::sobol_init(directions, scramble, offset, state);
}

} // extern "C++"
