// Reads and writes with cache hints, which are ignored here.
#pragma once

extern "C++" {

// The hints `cv` and `wt` become volatile accesses, so that no copy of the value is used. All functions are
// inlined into the calling line, so that faults are reported there.
template <class T> static __forceinline__ T __ldg(const T* address) { return *address; }
template <class T> static __forceinline__ T __ldca(const T* address) { return *address; }
template <class T> static __forceinline__ T __ldcg(const T* address) { return *address; }
template <class T> static __forceinline__ T __ldcs(const T* address) { return *address; }
template <class T> static __forceinline__ T __ldlu(const T* address) { return *address; }
template <class T> static __forceinline__ T __ldcv(const T* address) {
    if constexpr (!__is_class(T) && !__is_union(T)) {
        return *static_cast<const volatile T*>(address);
    } else {
        __atomic_signal_fence(__ATOMIC_SEQ_CST);
        const T value = *address;
        __atomic_signal_fence(__ATOMIC_SEQ_CST);
        return value;
    }
}
namespace cuda_c {
template <class T> struct Written { typedef T type; };
} // namespace cuda_c
template <class T> static __forceinline__ void __stcg(T* address, typename cuda_c::Written<T>::type value) {
    *address = value;
}
template <class T> static __forceinline__ void __stcs(T* address, typename cuda_c::Written<T>::type value) {
    *address = value;
}
template <class T> static __forceinline__ void __stwb(T* address, typename cuda_c::Written<T>::type value) {
    *address = value;
}
template <class T> static __forceinline__ void __stwt(T* address, typename cuda_c::Written<T>::type value) {
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    *address = value;
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
}
static inline void* __nv_associate_access_property(void* address, unsigned long long) { return address; }

} // extern "C++"
