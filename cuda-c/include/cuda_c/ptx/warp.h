// Operations of the lanes of a warp and the threads of a block, clocks, and lane masks.
#pragma once

extern "C++" {
namespace cuda_c {
namespace ptx {

// `control` holds the last lane, and the bits of the lane number that stay.
template <class M, class T>
static inline T shuffled(T a, u32 b, u32 control, Lanes lanes, Second& valid, const char* file, unsigned line) {
    const int lane = (int)gpuarray_abi::lane(), by = (int)(b & 31), clamp = (int)(control & 31);
    const int segment = (int)(control >> 8 & 31);
    const int first = lane & segment, last = first | (clamp & ~segment);
    const int from = has<M, m_up> ? lane - by : has<M, m_down> ? lane + by : has<M, m_bfly> ? lane ^ by : first | (by & ~segment);
    valid.is = has<M, m_up> ? from >= last : from <= last;
    return shuffle(lanes, a, valid.is ? from : lane, file, line);
}
template <class M, class T>
static inline T shfl(T a, u32 b, u32 control, u32 lanes, Second& valid, GPUARRAY_PLACE) {
    return shuffled<M>(a, b, control, lanes, valid, file, line);
}
template <class M, class T> static inline T shfl(T a, u32 b, u32 control, u32 lanes, GPUARRAY_PLACE) {
    Second valid;
    return shuffled<M>(a, b, control, lanes, valid, file, line);
}
template <class M, class T> static inline T shfl(T a, u32 b, u32 control, Second& valid, GPUARRAY_PLACE) {
    return shuffled<M>(a, b, control, 0, valid, file, line);
}
template <class M, class T> static inline T shfl(T a, u32 b, u32 control, GPUARRAY_PLACE) {
    Second valid;
    return shuffled<M>(a, b, control, 0, valid, file, line);
}

template <class M, class T> static inline T voted(bool a, Lanes lanes, const char* file, unsigned line) {
    if constexpr (has<M, m_ballot>) {
        return (T)ballot(lanes, a, file, line);
    } else if constexpr (has<M, m_all>) {
        return ballot(lanes, !a, file, line) == 0;
    } else if constexpr (has<M, m_any>) {
        return ballot(lanes, a, file, line) != 0;
    } else {
        const Match<bool> found = cuda_c::match(lanes, a, file, line);
        return found.equal == found.present;
    }
}
template <class M, class T> static inline T vote(bool a, u32 lanes, GPUARRAY_PLACE) { return voted<M, T>(a, lanes, file, line); }
template <class M, class T> static inline T vote(bool a, GPUARRAY_PLACE) { return voted<M, T>(a, 0, file, line); }

template <class M, class T> static inline b32 match(T a, u32 lanes, Second& all, GPUARRAY_PLACE) {
    const Match<T> found = cuda_c::match((Lanes)lanes, a, file, line);
    all.is = found.equal == found.present;
    return (b32)(has<M, m_any> || all.is ? found.equal : 0);
}
template <class M, class T> static inline b32 match(T a, u32 lanes, GPUARRAY_PLACE) {
    Second all;
    return match<M>(a, lanes, all, file, line);
}
template <class M, class T> static inline __attribute__((always_inline)) b32 activemask(GPUARRAY_PLACE) { return (b32)__activemask(file, line); }
template <class M, class T> static inline T redux(T a, u32 lanes, GPUARRAY_PLACE) {
    struct Operation {
        T operator()(T x, T y) const {
            if constexpr (has<M, m_min>) return y < x ? y : x;
            else if constexpr (has<M, m_max>) return x < y ? y : x;
            else if constexpr (has<M, m_and>) return x & y;
            else if constexpr (has<M, m_or>) return x | y;
            else if constexpr (has<M, m_xor>) return x ^ y;
            else return (T)((u32)x + (u32)y);
        }
    };
    return reduce((Lanes)lanes, a, Operation(), file, line);
}
// Elects one lane: the first of those that arrived.
template <class M> static inline b32 elect(u32 lanes, Second& is_chosen, GPUARRAY_PLACE) {
    const Lanes came = gpuarray_abi::rendezvous(lanes, nullptr, nullptr, file, line);
    const unsigned chosen = (unsigned)__builtin_ctzll(came);
    is_chosen.is = gpuarray_abi::lane() == chosen;
    return chosen;
}

// Barriers of the block.
template <class M> static inline void bar_sync(u32 id, u32 threads, GPUARRAY_PLACE) {
    gpuarray_abi::barrier(file, line, 0, id, threads);
}
template <class M, class T> static inline auto bar_red(u32 id, u32 threads, bool a, GPUARRAY_PLACE) {
    if constexpr (has<M, m_popc>) return (u32)gpuarray_abi::barrier(file, line, a, id, threads);
    else if constexpr (has<M, m_or>) return gpuarray_abi::barrier(file, line, a, id, threads) != 0;
    else return gpuarray_abi::barrier(file, line, !a, id, threads) == 0;
}
template <class M> static inline void bar(u32 lanes, GPUARRAY_PLACE) { __syncwarp(lanes, file, line); }
template <class M, class T> static inline void nanosleep(u32 time, GPUARRAY_PLACE) { __nanosleep(time, file, line); }
template <class M> [[noreturn]] static inline void trap(GPUARRAY_PLACE) {
    gpuarray_abi::trap(gpuarray_abi::TRAP, "trap", file, line);
}
template <class M> static inline void brkpt() {}

static inline u32 lanemask_eq() { return 1u << gpuarray_abi::lane(); }
static inline u32 lanemask_lt() { return lanemask_eq() - 1; }
static inline u32 lanemask_le() { return lanemask_lt() | lanemask_eq(); }
static inline u32 lanemask_gt() { return ~lanemask_le(); }
static inline u32 lanemask_ge() { return ~lanemask_lt(); }

// The system clock in nanoseconds. Libraries read it in loops that wait for another thread, so other threads run first.
static inline u64 globaltimer(GPUARRAY_PLACE) {
    turn(file, line);
    long time[2]; // seconds and nanoseconds
    extern int cuda_c_clock_gettime(int, long*) __asm__("clock_gettime");
    cuda_c_clock_gettime(0, time);
    return (u64)time[0] * 1000000000 + (u64)time[1];
}

} // namespace ptx
} // namespace cuda_c
} // extern "C++"
