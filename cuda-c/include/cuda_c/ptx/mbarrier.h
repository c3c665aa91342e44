// Barriers in memory (`mbarrier`). Each phase of a barrier waits for a number of arrivals and of bytes.
#pragma once

extern "C++" {
namespace cuda_c {
namespace ptx {

// The contents of a barrier.
struct Mbarrier {
    u64 pending : 20;  // the arrivals for which the phase still waits
    u64 expected : 20; // the arrivals for which each phase waits
    s64 bytes : 21;    // the bytes for which the phase still waits
    u64 phase : 3;     // the number of the phase
};

// Changes a barrier, begins the next phase if this one is complete, and returns the contents before.
template <class Change> static inline b64 mbarrier_changed(b64* barrier, Change change) {
    return atomic_update(barrier, [=](b64 old) {
        Mbarrier now = bits<Mbarrier>(old);
        change(now);
        if (now.pending == 0 && now.bytes == 0) {
            now.pending = now.expected;
            ++now.phase;
        }
        return bits<b64>(now);
    }, __ATOMIC_ACQ_REL);
}
static inline b64 mbarrier_arrived(b64* barrier, u32 count, u32 dropped, u32 bytes, const char* file, unsigned line) {
    return mbarrier_changed(barrier, [=](Mbarrier& now) {
        if (count > now.pending) {
            gpuarray_abi::trap(gpuarray_abi::TRAP,
                               "mbarrier.arrive: more arrivals than the barrier expects", file, line);
        }
        now.expected -= dropped;
        now.bytes += bytes;
        now.pending -= count;
    });
}

template <class M, class T> static inline void mbarrier_init(b64* barrier, u32 count) {
    Mbarrier now = {};
    now.pending = now.expected = count;
    __atomic_store_n(barrier, bits<b64>(now), __ATOMIC_RELEASE);
}
template <class M, class T> static inline void mbarrier_inval(b64*) {}
// Without an operand, one thread arrives.
template <class M, class T> static inline b64 mbarrier_arrive(b64* barrier, u32 count, GPUARRAY_PLACE) {
    if constexpr (has<M, m_expect_tx>) return mbarrier_arrived(barrier, 1, 0, count, file, line);
    else return mbarrier_arrived(barrier, count ? count : 1, 0, 0, file, line);
}
template <class M, class T> static inline b64 mbarrier_arrive_drop(b64* barrier, u32 count, GPUARRAY_PLACE) {
    if constexpr (has<M, m_expect_tx>) return mbarrier_arrived(barrier, 1, 1, count, file, line);
    else return mbarrier_arrived(barrier, count ? count : 1, count ? count : 1, 0, file, line);
}
template <class M, class T> static inline void mbarrier_expect_tx(b64* barrier, u32 bytes) {
    mbarrier_changed(barrier, [=](Mbarrier& now) { now.bytes += bytes; });
}
template <class M, class T> static inline void mbarrier_complete_tx(b64* barrier, u32 bytes) {
    mbarrier_changed(barrier, [=](Mbarrier& now) { now.bytes -= bytes; });
}
template <class M, class T> static inline u32 mbarrier_pending_count(b64 state) { return bits<Mbarrier>(state).pending; }

// Asks whether a phase is complete. If it is not, other threads run before the barrier is asked again, because
// programs ask in loops.
template <class Asked> static inline bool mbarrier_completed(const b64* barrier, Asked asked, const char* file, unsigned line) {
    const auto is = [=] { return asked(bits<Mbarrier>((b64)__atomic_load_n(barrier, __ATOMIC_ACQUIRE))); };
    return is() || (turn(file, line) && is());
}
template <class M, class T> static inline bool mbarrier_test_wait(const b64* barrier, T state, GPUARRAY_PLACE) {
    const u32 phase = bits<Mbarrier>((b64)state).phase;
    return mbarrier_completed(barrier, [=](Mbarrier now) { return now.phase != phase; }, file, line);
}
template <class M, class T> static inline bool mbarrier_test_parity(const b64* barrier, u32 parity, GPUARRAY_PLACE) {
    return mbarrier_completed(barrier, [=](Mbarrier now) { return (now.phase & 1) != parity; }, file, line);
}
template <class M, class T> static inline bool mbarrier_try_wait(const b64* barrier, T state, u32, GPUARRAY_PLACE) {
    return mbarrier_test_wait<M, T>(barrier, state, file, line);
}
template <class M, class T> static inline bool mbarrier_try_parity(const b64* barrier, u32 parity, u32, GPUARRAY_PLACE) {
    return mbarrier_test_parity<M, T>(barrier, parity, file, line);
}

// `cp.async` copies immediately, so nothing is pending when its thread arrives.
template <class M, class T> static inline void cp_async_mbarrier_arrive(b64* barrier, GPUARRAY_PLACE) {
    if constexpr (has<M, m_noinc>) mbarrier_arrived(barrier, 1, 0, 0, file, line);
}

} // namespace ptx
} // namespace cuda_c
} // extern "C++"
