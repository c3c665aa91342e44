// Supports the host's text of `cuda_bf16.h` on AMD GPUs, using functions that AMD's compilers have.
#pragma once

#include "numbers.h"
#include "narrow.h"

extern "C++" {
namespace cuda_c {

// Atomically replaces a 16-bit or 32-bit value by a function of it, and returns the old value.
template <class T, class Operation>
static inline __device__ T atomic_update(T* address, Operation next) {
    const unsigned long long place = (unsigned long long)address;
    const unsigned int shift = sizeof(T) == 2 && place & 2 ? 16 : 0;
    const unsigned int mask = (unsigned int)(0xffffffffull >> (32 - 8 * sizeof(T))) << shift;
    unsigned int* word = (unsigned int*)(place & ~3ull);
    unsigned int old = __atomic_load_n(word, __ATOMIC_RELAXED);
    while (true) {
        T value;
        const unsigned int part = (old & mask) >> shift;
        __builtin_memcpy(&value, &part, sizeof(T));
        const T fresh = next(value);
        unsigned int placed = 0;
        __builtin_memcpy(&placed, &fresh, sizeof(T));
        const unsigned int found = atomicCAS(word, old, (old & ~mask) | placed << shift);
        if (found == old) return value;
        old = found;
    }
}

} // namespace cuda_c

// Shuffles of a type without arithmetic shuffle its bits.
#define CUDA_C_SHUFFLES(type)                                                                   \
    CUDA_C_SHUFFLE(type, __shfl_sync)                                                           \
    CUDA_C_SHUFFLE(type, __shfl_up_sync)                                                        \
    CUDA_C_SHUFFLE(type, __shfl_down_sync)                                                      \
    CUDA_C_SHUFFLE(type, __shfl_xor_sync)
#define CUDA_C_SHUFFLE(type, name)                                                              \
    template <class Mask, class By> static inline type name(Mask mask, type value, By by) {     \
        return cuda_c::of_int<type>(name(mask, cuda_c::to_int(value), by));                     \
    }                                                                                           \
    template <class Mask, class By, class Width>                                                \
    static inline type name(Mask mask, type value, By by, Width width) {                        \
        return cuda_c::of_int<type>(name(mask, cuda_c::to_int(value), by, width));              \
    }

namespace cuda_c {
template <class T> static inline int to_int(T value) {
    int word = 0;
    __builtin_memcpy(&word, &value, sizeof(T));
    return word;
}
template <class T> static inline T of_int(int word) {
    T value;
    __builtin_memcpy(&value, &word, sizeof(T));
    return value;
}
} // namespace cuda_c
} // extern "C++"

#include "bf16.h"
