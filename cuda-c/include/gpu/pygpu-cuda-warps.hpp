// CUDA's warp functions for AMD's compilers. A 32-bit mask names lanes of the caller's half of a 64-lane
// wavefront, which is a warp in CUDA's sense, or lanes of a whole 32-lane wavefront. A 64-bit mask names lanes
// of the whole wavefront, as in AMD's functions of these names.
//
// ROCm 5 has none of these functions. ROCm 6.2 has some if HIP_ENABLE_WARP_SYNC_BUILTINS is defined. ROCm 7 has
// all unless HIP_DISABLE_WARP_SYNC_BUILTINS is defined, and they refuse 32-bit masks. hipRTC reads its headers
// before a program's first line, so a program can define neither macro in time. Therefore the functions here
// have other names, and CUDA's names are macros: nothing depends on the vendor's version.
//
// A program's own functions for structures are renamed by the same macros. They overload these templates, which
// take each argument as it is, so no call is ambiguous. If a program defines such a function for numbers, an
// #undef after this file gives the name back to the program. A program's macros replace these macros.
//
// PYGPU_WARPS_OF_32 is defined in front of programs for CUDA alone. `warpSize` is then 32, and `__activemask`
// returns the mask of the caller's half. Otherwise both are the device's.
//
// The lanes of a mask must make the call together, from one place. Unlike in CUDA, lanes that arrive by
// different branches do not wait for each other.

#ifndef PYGPU_CUDA_WARPS_HPP
#define PYGPU_CUDA_WARPS_HPP

#ifdef __HIP__

// On the CPU, lanes meet at the program's line, not at this file's, and active lanes have taken the same
// branches.
#ifdef __GPUARRAY_HOST__
#define PYGPU_ACTIVE __activemask(file, line)
#define PYGPU_PLACE GPUARRAY_PLACE
#define PYGPU_AND_PLACE , GPUARRAY_PLACE
#define PYGPU_HERE , file, line
#else
#define PYGPU_ACTIVE pygpu_warps::active()
#define PYGPU_PLACE
#define PYGPU_AND_PLACE
#define PYGPU_HERE
#endif

extern "C++" {

namespace pygpu_warps {

// The types that CUDA has these functions for. What converts to one is taken for it: AMD's
// `threadIdx.x` is an object without members.
__device__ int value_of(int);
__device__ unsigned int value_of(unsigned int);
__device__ long value_of(long);
__device__ unsigned long value_of(unsigned long);
__device__ long long value_of(long long);
__device__ unsigned long long value_of(unsigned long long);
__device__ float value_of(float);
__device__ double value_of(double);
template <class T_> __device__ T_ any_of();

template <int bytes> struct Word {
    typedef unsigned int type;
};
template <> struct Word<8> {
    typedef unsigned long long type;
};

#ifndef __GPUARRAY_HOST__
// The active lanes of the wavefront. ROCm 5's compiler merges a `__ballot` in one branch with a `__ballot` in
// another branch, or before it. It cannot merge an opaque instruction under an opaque condition.
__device__ inline __attribute__((always_inline)) unsigned long long active() {
    unsigned int zero, low = 0, high = 0;
    __asm__ volatile("s_mov_b32 %0, 0" : "=s"(zero));
    if (zero == 0) {
        __asm__ volatile("s_mov_b32 %0, exec_lo\n\ts_mov_b32 %1, exec_hi" : "=&s"(low), "=s"(high));
    }
    return warpSize == 64 ? (unsigned long long)high << 32 | low : low;
}
#endif

// The lanes that a mask of a given size names.
template <int bytes> struct Lanes {
    typedef unsigned int Bits;
    static __device__ inline int width() { return 32; }
    static __device__ inline unsigned int offset(unsigned int by) { return by & 31; }
    static __device__ inline Bits of(unsigned long long wavefront) {
        return (Bits)(wavefront >> (__lane_id() & 32));
    }
    static __device__ inline Bits all() { return ~0u; }
};
template <> struct Lanes<8> {
    typedef unsigned long long Bits;
    static __device__ inline int width() { return (int)warpSize; }
    static __device__ inline unsigned int offset(unsigned int by) { return by; }
    static __device__ inline Bits of(unsigned long long wavefront) { return wavefront; }
    static __device__ inline Bits all() { return ~0ull >> (64 - width()); }
};
template <class Mask> struct Masked : Lanes<sizeof(Mask)> {
#ifdef PYGPU_WARPS_OF_32
    static_assert(sizeof(Mask) < 8, "a mask of 64 bits beside CUDA's warpSize or __activemask: a "
                                    "program for HIP has one of its names, as in #ifdef __HIP__");
#endif
};

// The lanes of the wavefront that pass the same bits.
template <class Bits>
__device__ inline unsigned long long equal_to(Bits bits PYGPU_AND_PLACE) {
    unsigned long long equal = __ballot(1 PYGPU_HERE);
    for (int i = 0; i < (int)sizeof(Bits) * 8; ++i) {
        const int one = (int)(bits >> i & 1);
        const unsigned long long ones = __ballot(one PYGPU_HERE);
        equal &= one ? ones : ~ones;
    }
    return equal;
}

template <class Group, class Operation, class T_>
__device__ inline T_ reduced(typename Group::Bits mask, T_ value PYGPU_AND_PLACE) {
    const int width = Group::width();
    typename Group::Bits left = mask & Group::of(__ballot(1 PYGPU_HERE));
    if (left == Group::all()) {
        for (int by = width / 2; by > 0; by /= 2) {
            value = Operation::of(value, __shfl_xor(value, by, width PYGPU_HERE));
        }
        return value;
    }
    // The lanes of one mask go through the loop together, whatever masks other lanes pass.
    T_ sum = __shfl(value, __builtin_ctzll(left), width PYGPU_HERE);
    while (left &= left - 1) {
        const T_ next = __shfl(value, __builtin_ctzll(left), width PYGPU_HERE);
        sum = Operation::of(sum, next);
    }
    return sum;
}

#define PYGPU_OPERATION(name, result)                                                           \
    struct name {                                                                               \
        template <class T_> static __device__ inline T_ of(T_ x, T_ y) { return result; }       \
    };
PYGPU_OPERATION(Min, y < x ? y : x)
PYGPU_OPERATION(Max, x < y ? y : x)
PYGPU_OPERATION(And, x & y)
PYGPU_OPERATION(Or, x | y)
PYGPU_OPERATION(Xor, x ^ y)
#undef PYGPU_OPERATION
// Integer sums wrap around.
struct Add {
    static __device__ inline int of(int x, int y) { return (int)((unsigned int)x + y); }
    static __device__ inline long of(long x, long y) { return (long)((unsigned long)x + y); }
    static __device__ inline long long of(long long x, long long y) {
        return (long long)((unsigned long long)x + y);
    }
    template <class T_> static __device__ inline T_ of(T_ x, T_ y) { return x + y; }
};

} // namespace pygpu_warps

#define PYGPU_VALUE decltype(pygpu_warps::value_of(pygpu_warps::any_of<T_>()))
#define PYGPU_GROUP pygpu_warps::Masked<Mask>
#define PYGPU_BITS typename PYGPU_GROUP::Bits

#define PYGPU_SHUFFLE(name, from)                                                               \
    template <class Mask, class T_, class By, class Width>                                      \
    __device__ inline PYGPU_VALUE pygpu_##name##_sync(Mask, T_ brought, By by,                  \
                                                      Width width PYGPU_AND_PLACE) {            \
        const PYGPU_VALUE value = brought;                                                      \
        return __##name(value, from, (int)width PYGPU_HERE);                                    \
    }                                                                                           \
    template <class Mask, class T_, class By>                                                   \
    __device__ inline PYGPU_VALUE pygpu_##name##_sync(Mask, T_ brought, By by PYGPU_AND_PLACE) { \
        const int width = PYGPU_GROUP::width();                                                 \
        const PYGPU_VALUE value = brought;                                                      \
        return __##name(value, from, width PYGPU_HERE);                                         \
    }
PYGPU_SHUFFLE(shfl, (int)by & ((int)width - 1))
PYGPU_SHUFFLE(shfl_up, PYGPU_GROUP::offset((unsigned int)by))
PYGPU_SHUFFLE(shfl_down, PYGPU_GROUP::offset((unsigned int)by))
PYGPU_SHUFFLE(shfl_xor, (int)PYGPU_GROUP::offset((unsigned int)by))
#undef PYGPU_SHUFFLE

template <class Mask, class Predicate>
__device__ inline PYGPU_BITS pygpu_ballot_sync(Mask mask, Predicate predicate PYGPU_AND_PLACE) {
    return PYGPU_GROUP::of(__ballot((int)predicate != 0 PYGPU_HERE)) & (PYGPU_BITS)mask;
}
template <class Mask, class Predicate>
__device__ inline int pygpu_any_sync(Mask mask, Predicate predicate PYGPU_AND_PLACE) {
    return pygpu_ballot_sync(mask, (int)predicate != 0 PYGPU_HERE) != 0;
}
template <class Mask, class Predicate>
__device__ inline int pygpu_all_sync(Mask mask, Predicate predicate PYGPU_AND_PLACE) {
    return pygpu_ballot_sync(mask, (int)predicate == 0 PYGPU_HERE) == 0;
}

template <class Mask, class T_>
__device__ inline decltype((PYGPU_VALUE)0, (PYGPU_BITS)0)
pygpu_match_any_sync(Mask mask, T_ brought PYGPU_AND_PLACE) {
    const PYGPU_VALUE value = brought;
    typename pygpu_warps::Word<sizeof(value)>::type bits;
    __builtin_memcpy(&bits, &value, sizeof(value));
    return PYGPU_GROUP::of(pygpu_warps::equal_to(bits PYGPU_HERE)) & (PYGPU_BITS)mask;
}
template <class Mask, class T_>
__device__ inline decltype((PYGPU_VALUE)0, (PYGPU_BITS)0)
pygpu_match_all_sync(Mask mask, T_ brought, int* all PYGPU_AND_PLACE) {
    const PYGPU_BITS present = pygpu_ballot_sync(mask, 1 PYGPU_HERE);
    const PYGPU_BITS equal = pygpu_match_any_sync(mask, brought PYGPU_HERE);
    *all = equal == present;
    return *all ? present : 0;
}

#define PYGPU_REDUCE(name, Operation, Type)                                                     \
    template <class Mask, class T_>                                                             \
    __device__ inline Type pygpu_reduce_##name##_sync(Mask mask, T_ brought PYGPU_AND_PLACE) {  \
        typedef PYGPU_GROUP Group;                                                              \
        const Type value = (Type)brought;                                                       \
        return pygpu_warps::reduced<Group, pygpu_warps::Operation>((PYGPU_BITS)mask,            \
                                                                   value PYGPU_HERE);           \
    }
PYGPU_REDUCE(add, Add, PYGPU_VALUE)
PYGPU_REDUCE(min, Min, PYGPU_VALUE)
PYGPU_REDUCE(max, Max, PYGPU_VALUE)
// Bitwise reductions take unsigned integers: of 32 bits, as in CUDA, except with AMD's masks.
#define PYGPU_WORD typename pygpu_warps::Word<sizeof(Mask) == 8 ? sizeof(PYGPU_VALUE) : 4>::type
PYGPU_REDUCE(and, And, PYGPU_WORD)
PYGPU_REDUCE(or, Or, PYGPU_WORD)
PYGPU_REDUCE(xor, Xor, PYGPU_WORD)
#undef PYGPU_WORD
#undef PYGPU_REDUCE

#undef PYGPU_VALUE
#undef PYGPU_GROUP
#undef PYGPU_BITS

__device__ inline void pygpu_syncwarp(PYGPU_PLACE) {
    __builtin_amdgcn_fence(__ATOMIC_RELEASE, "wavefront");
#ifdef __GPUARRAY_HOST__
    __builtin_amdgcn_wave_barrier(file, line);
#else
    __builtin_amdgcn_wave_barrier();
#endif
    __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "wavefront");
}
// The lanes of a wavefront run together: the barrier holds for all active lanes.
template <class Mask> __device__ inline void pygpu_syncwarp(Mask PYGPU_AND_PLACE) {
#ifdef __GPUARRAY_HOST__
    pygpu_syncwarp(file, line);
#else
    pygpu_syncwarp();
#endif
}

#ifdef PYGPU_WARPS_OF_32
__device__ inline __attribute__((always_inline)) unsigned int pygpu_activemask(PYGPU_PLACE) {
    return pygpu_warps::Lanes<4>::of(PYGPU_ACTIVE);
}
__device__ static constexpr int pygpu_warp_size __attribute__((unused)) = 32;
#define warpSize pygpu_warp_size
#else
__device__ inline __attribute__((always_inline)) unsigned long long pygpu_activemask(PYGPU_PLACE) {
    return PYGPU_ACTIVE;
}
#endif

} // extern "C++"

#undef PYGPU_PLACE
#undef PYGPU_AND_PLACE
#undef PYGPU_HERE
#undef PYGPU_ACTIVE

#define __shfl_sync pygpu_shfl_sync
#define __shfl_up_sync pygpu_shfl_up_sync
#define __shfl_down_sync pygpu_shfl_down_sync
#define __shfl_xor_sync pygpu_shfl_xor_sync
#define __ballot_sync pygpu_ballot_sync
#define __any_sync pygpu_any_sync
#define __all_sync pygpu_all_sync
#define __match_any_sync pygpu_match_any_sync
#define __match_all_sync pygpu_match_all_sync
#define __reduce_add_sync pygpu_reduce_add_sync
#define __reduce_min_sync pygpu_reduce_min_sync
#define __reduce_max_sync pygpu_reduce_max_sync
#define __reduce_and_sync pygpu_reduce_and_sync
#define __reduce_or_sync pygpu_reduce_or_sync
#define __reduce_xor_sync pygpu_reduce_xor_sync
#define __syncwarp pygpu_syncwarp
#define __activemask pygpu_activemask

#endif

#endif
