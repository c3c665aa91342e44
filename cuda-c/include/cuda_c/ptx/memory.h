// Memory access: addresses, atomic operations, copies and fences.
#pragma once

extern "C++" {
namespace cuda_c {
namespace ptx {

// The elements of a vector, which is aligned to its size.
template <class T, int COUNT> struct alignas(sizeof(T) * COUNT) vec {
    T at[COUNT];
};

// The pointer for an address. An address in shared memory may consist of its lower 32 bits.
template <class M, class T> static inline __attribute__((always_inline)) T* at(b64 address) {
    if constexpr (has<M, m_shared>) return (T*)__cvta_shared_to_generic((u32)address);
    else return (T*)address;
}

template <class M>
constexpr int order_of = has<M, m_acquire> ? __ATOMIC_ACQUIRE
                         : has<M, m_release> ? __ATOMIC_RELEASE
                         : has<M, m_acq_rel> ? __ATOMIC_ACQ_REL
                                             : __ATOMIC_RELAXED;

// Accesses that must not be split or optimised away.
template <class M, class T> static inline __attribute__((always_inline)) T load(const T* address) {
    typedef BitsOf<T> W;
    if constexpr (sizeof(T) > 8) return *(const volatile T*)address;
    else return bits<T>((W)__atomic_load_n(reinterpret_cast<const W*>(address), order_of<M>));
}
template <class M, class T> static inline __attribute__((always_inline)) void store(T* address, As<T> value) {
    typedef BitsOf<T> W;
    if constexpr (sizeof(T) > 8) *(volatile T*)address = value;
    else __atomic_store_n(reinterpret_cast<W*>(address), bits<W>(value), order_of<M>);
}

template <class M, class T> static inline __attribute__((always_inline)) T atom(T* address, As<T> value) {
    constexpr int order = order_of<M>;
    if constexpr (has<M, m_and>) return __atomic_fetch_and(address, value, order);
    else if constexpr (has<M, m_or>) return __atomic_fetch_or(address, value, order);
    else if constexpr (has<M, m_xor>) return __atomic_fetch_xor(address, value, order);
    else if constexpr (has<M, m_exch>) return __atomic_exchange_n(address, value, order);
    else if constexpr (has<M, m_inc>) return atomic_update(address, [=](T old) { return old >= value ? 0 : old + 1; }, order);
    else if constexpr (has<M, m_dec>) return atomic_update(address, [=](T old) { return old == 0 || old > value ? value : old - 1; }, order);
    else if constexpr (has<M, m_min>) return atomic_update(address, [=](T old) { return value < old ? value : old; }, order);
    else if constexpr (has<M, m_max>) return atomic_update(address, [=](T old) { return value > old ? value : old; }, order);
    else if constexpr (is_narrow<T> || is_pair<T> || is_float<T>) return atomic_update(address, [=](T old) { return add<modes<>, T>(old, value); }, order);
    else return __atomic_fetch_add(address, value, order);
}
template <class M, class T>
static inline __attribute__((always_inline)) T atom(T* address, As<T> expected, As<T> value) {
    constexpr int order = order_of<M>;
    constexpr int failure = order == __ATOMIC_RELAXED || order == __ATOMIC_RELEASE ? __ATOMIC_RELAXED : __ATOMIC_ACQUIRE;
    __atomic_compare_exchange_n(address, &expected, value, false, order, failure);
    return expected;
}

static inline __attribute__((always_inline)) void copy(void* to, const void* from, u32 size, u32 read) {
    const u32 count = read < size ? read : size;
    memcpy(to, from, count);
    memset((char*)to + count, 0, size - count);
}
template <class M> static inline void membar() {
    if constexpr (has<M, m_cta>) __threadfence_block();
    else __threadfence();
}
template <class M> static inline void fence() { membar<M>(); }
// All kinds of memory share one address space.
template <class M, class T> static inline T cvta(T address) {
    if constexpr (has<M, m_to> || !(has<M, m_shared> || has<M, m_shared_cta>)) return address;
    else return (T)__cvta_shared_to_generic((u32)address);
}
template <class M> static inline bool isspacep(b64 address) {
    const void* const p = (const void*)address;
    if constexpr (has<M, m_shared> || has<M, m_shared_cta>) return __isShared(p);
    else if constexpr (has<M, m_local>) return __isLocal(p);
    else if constexpr (has<M, m_const>) return __isConstant(p);
    else return __isGlobal(p);
}
// Creates a cache policy, which is ignored.
template <class M, class T> static inline T createpolicy(f32) { return 0; }

} // namespace ptx
} // namespace cuda_c
} // extern "C++"
