// Atomic operations on global and shared memory.
//
// Other threads of the operating system run other blocks concurrently. These functions therefore use the
// processor's atomic operations, with relaxed order as on a GPU. All scopes behave alike. An operation that
// the processor does not have becomes a compare-and-swap loop.
#pragma once

extern "C++" {
namespace cuda_c {

// The unsigned integer with the size of a type.
template <unsigned long BYTES> struct Word;
template <> struct Word<1> { typedef unsigned char type; };
template <> struct Word<2> { typedef unsigned short type; };
template <> struct Word<4> { typedef unsigned int type; };
template <> struct Word<8> { typedef unsigned long long type; };
template <class T> using WordOf = typename Word<sizeof(T)>::type;

// Atomically replaces a value by a function of it, and returns the old value.
template <class T, class Operation>
static inline auto atomic_update(T* address, Operation next, int order = __ATOMIC_RELAXED) {
    typedef WordOf<T> W;
    W* word = reinterpret_cast<W*>(address);
    W old = __atomic_load_n(word, __ATOMIC_RELAXED);
    while (true) {
        const W fresh = bits<W>((T)next(bits<T>(old)));
        if (__atomic_compare_exchange_n(word, &old, fresh, true, order, __ATOMIC_RELAXED)) {
            return bits<T>(old);
        }
    }
}
template <class T> static inline auto atomic_exchange(T* address, T value) {
    typedef WordOf<T> W;
    return bits<T>(__atomic_exchange_n(reinterpret_cast<W*>(address), bits<W>(value), __ATOMIC_RELAXED));
}
// A compare-and-swap that compares bits.
template <class T> static inline auto atomic_compare(T* address, T expected, T value) {
    typedef WordOf<T> W;
    W old = bits<W>(expected);
    __atomic_compare_exchange_n(reinterpret_cast<W*>(address), &old, bits<W>(value), false,
                                __ATOMIC_RELAXED, __ATOMIC_RELAXED);
    return bits<T>(old);
}
// An atomic minimum or maximum. If it would not change the value, it only reads it.
template <class T, class Better>
static inline auto atomic_extreme(T* address, T value, Better better) {
    T old = __atomic_load_n(address, __ATOMIC_RELAXED);
    while (better(value, old) &&
           !__atomic_compare_exchange_n(address, &old, value, true, __ATOMIC_RELAXED,
                                        __ATOMIC_RELAXED)) {
    }
    return old;
}

} // namespace cuda_c

// Defines an operation for the three scopes.
#define CUDA_C_ATOMIC(type, name, body)                                                         \
    static inline type name(type* address, type value) { return body; }                         \
    static inline type name##_block(type* address, type value) { return body; }                 \
    static inline type name##_system(type* address, type value) { return body; }
#define CUDA_C_FETCH(type, name, operation)                                                     \
    CUDA_C_ATOMIC(type, name, __atomic_fetch_##operation(address, value, __ATOMIC_RELAXED))
#define CUDA_C_UPDATE(type, name, next)                                                         \
    CUDA_C_ATOMIC(type, name, cuda_c::atomic_update(address, [=](type old) { return next; }))
CUDA_C_FETCH(int, atomicAdd, add)
CUDA_C_FETCH(unsigned int, atomicAdd, add)
CUDA_C_FETCH(unsigned long long, atomicAdd, add)
CUDA_C_UPDATE(float, atomicAdd, old + value)
CUDA_C_UPDATE(double, atomicAdd, old + value)
CUDA_C_FETCH(int, atomicSub, sub)
CUDA_C_FETCH(unsigned int, atomicSub, sub)
CUDA_C_UPDATE(unsigned int, atomicInc, old >= value ? 0 : old + 1)
CUDA_C_UPDATE(unsigned int, atomicDec, old == 0 || old > value ? value : old - 1)
#define CUDA_C_EXTREMES(type)                                                                   \
    CUDA_C_ATOMIC(type, atomicMin, cuda_c::atomic_extreme(address, value, [](type x, type y) {  \
                      return x < y;                                                             \
                  }))                                                                           \
    CUDA_C_ATOMIC(type, atomicMax, cuda_c::atomic_extreme(address, value, [](type x, type y) {  \
                      return x > y;                                                             \
                  }))
CUDA_C_EXTREMES(int)
CUDA_C_EXTREMES(unsigned int)
CUDA_C_EXTREMES(long long)
CUDA_C_EXTREMES(unsigned long long)
#undef CUDA_C_EXTREMES
#define CUDA_C_BITWISE(type)                                                                    \
    CUDA_C_FETCH(type, atomicAnd, and)                                                          \
    CUDA_C_FETCH(type, atomicOr, or)                                                            \
    CUDA_C_FETCH(type, atomicXor, xor)
CUDA_C_BITWISE(int)
CUDA_C_BITWISE(unsigned int)
CUDA_C_BITWISE(long long)
CUDA_C_BITWISE(unsigned long long)
#undef CUDA_C_BITWISE
#define CUDA_C_EXCHANGE(type) CUDA_C_ATOMIC(type, atomicExch, cuda_c::atomic_exchange(address, value))
CUDA_C_EXCHANGE(int)
CUDA_C_EXCHANGE(unsigned int)
CUDA_C_EXCHANGE(unsigned long long)
CUDA_C_EXCHANGE(float)
#undef CUDA_C_EXCHANGE
#define CUDA_C_COMPARE(type, name)                                                              \
    static inline type name(type* address, type expected, type value) {                         \
        return cuda_c::atomic_compare(address, expected, value);                                \
    }
#define CUDA_C_COMPARES(type)                                                                   \
    CUDA_C_COMPARE(type, atomicCAS)                                                             \
    CUDA_C_COMPARE(type, atomicCAS_block)                                                       \
    CUDA_C_COMPARE(type, atomicCAS_system)
CUDA_C_COMPARES(int)
CUDA_C_COMPARES(unsigned int)
CUDA_C_COMPARES(unsigned long long)
CUDA_C_COMPARES(unsigned short)
#undef CUDA_C_COMPARES
#undef CUDA_C_COMPARE
#ifdef __HIP__
// Operations that only HIP has.
CUDA_C_FETCH(unsigned long, atomicAdd, add)
CUDA_C_UPDATE(float, atomicSub, old - value)
CUDA_C_UPDATE(double, atomicSub, old - value)
CUDA_C_FETCH(unsigned long long, atomicSub, sub)
#define CUDA_C_FLOAT_EXTREMES(type)                                                             \
    CUDA_C_UPDATE(type, atomicMin, value < old ? value : old)                                   \
    CUDA_C_UPDATE(type, atomicMax, value > old ? value : old)
CUDA_C_FLOAT_EXTREMES(float)
CUDA_C_FLOAT_EXTREMES(double)
#undef CUDA_C_FLOAT_EXTREMES
static inline void unsafeAtomicAdd(float* address, float value) { atomicAdd(address, value); }
static inline void unsafeAtomicAdd(double* address, double value) { atomicAdd(address, value); }
#endif

// Atomic additions of vectors, which recent GPUs support. Each component is added separately. They are
// templates, so that programs can define their own functions of these names for older GPUs.
#define CUDA_C_ADD_VECTOR(type, ...)                                                            \
    CUDA_C_ADD_VECTOR_AS(type, atomicAdd, {__VA_ARGS__})                                        \
    CUDA_C_ADD_VECTOR_AS(type, atomicAdd_block, atomicAdd(address, value))                      \
    CUDA_C_ADD_VECTOR_AS(type, atomicAdd_system, atomicAdd(address, value))
#define CUDA_C_ADD_VECTOR_AS(type, name, ...)                                                   \
    template <class = void> static inline type name(type* address, type value) { return __VA_ARGS__; }
CUDA_C_ADD_VECTOR(float2, atomicAdd(&address->x, value.x), atomicAdd(&address->y, value.y))
CUDA_C_ADD_VECTOR(float4, atomicAdd(&address->x, value.x), atomicAdd(&address->y, value.y),
                  atomicAdd(&address->z, value.z), atomicAdd(&address->w, value.w))
#undef CUDA_C_ADD_VECTOR
#undef CUDA_C_ADD_VECTOR_AS

// The functions with a memory order and a scope.
#define __NV_ATOMIC_RELAXED __ATOMIC_RELAXED
#define __NV_ATOMIC_CONSUME __ATOMIC_CONSUME
#define __NV_ATOMIC_ACQUIRE __ATOMIC_ACQUIRE
#define __NV_ATOMIC_RELEASE __ATOMIC_RELEASE
#define __NV_ATOMIC_ACQ_REL __ATOMIC_ACQ_REL
#define __NV_ATOMIC_SEQ_CST __ATOMIC_SEQ_CST
#define __NV_THREAD_SCOPE_THREAD 0
#define __NV_THREAD_SCOPE_BLOCK 1
#define __NV_THREAD_SCOPE_CLUSTER 2
#define __NV_THREAD_SCOPE_DEVICE 3
#define __NV_THREAD_SCOPE_SYSTEM 4
namespace cuda_c {
template <class T> struct Plain { typedef T type; };
template <class T> using As = typename Plain<T>::type; // not deduced
} // namespace cuda_c
template <class T>
static inline T __nv_atomic_load_n(const T* address, int order, int = __NV_THREAD_SCOPE_SYSTEM) {
    return cuda_c::bits<T>(
        __atomic_load_n(reinterpret_cast<const cuda_c::WordOf<T>*>(address), order));
}
template <class T>
static inline void __nv_atomic_load(const T* address, T* result, int order,
                                    int = __NV_THREAD_SCOPE_SYSTEM) {
    *result = __nv_atomic_load_n(address, order);
}
template <class T>
static inline void __nv_atomic_store_n(T* address, cuda_c::As<T> value, int order,
                                       int = __NV_THREAD_SCOPE_SYSTEM) {
    typedef cuda_c::WordOf<T> W;
    __atomic_store_n(reinterpret_cast<W*>(address), cuda_c::bits<W>(value), order);
}
template <class T>
static inline void __nv_atomic_store(T* address, T* value, int order,
                                     int = __NV_THREAD_SCOPE_SYSTEM) {
    __nv_atomic_store_n(address, *value, order);
}
template <class T>
static inline T __nv_atomic_exchange_n(T* address, cuda_c::As<T> value, int order,
                                       int = __NV_THREAD_SCOPE_SYSTEM) {
    typedef cuda_c::WordOf<T> W;
    return cuda_c::bits<T>(
        __atomic_exchange_n(reinterpret_cast<W*>(address), cuda_c::bits<W>(value), order));
}
template <class T>
static inline void __nv_atomic_exchange(T* address, T* value, T* result, int order,
                                        int = __NV_THREAD_SCOPE_SYSTEM) {
    *result = __nv_atomic_exchange_n(address, *value, order);
}
template <class T>
static inline bool __nv_atomic_compare_exchange_n(T* address, T* expected, cuda_c::As<T> value,
                                                  bool weak, int success, int failure,
                                                  int = __NV_THREAD_SCOPE_SYSTEM) {
    typedef cuda_c::WordOf<T> W;
    return __atomic_compare_exchange_n(reinterpret_cast<W*>(address), reinterpret_cast<W*>(expected),
                                       cuda_c::bits<W>(value), weak, success, failure);
}
template <class T>
static inline bool __nv_atomic_compare_exchange(T* address, T* expected, T* value, bool weak,
                                                int success, int failure,
                                                int = __NV_THREAD_SCOPE_SYSTEM) {
    return __nv_atomic_compare_exchange_n(address, expected, *value, weak, success, failure);
}
#define CUDA_C_FETCH_ORDERED(name, next)                                                        \
    template <class T>                                                                          \
    static inline T __nv_atomic_fetch_##name(T* address, cuda_c::As<T> value, int order,        \
                                             int = __NV_THREAD_SCOPE_SYSTEM) {                  \
        return cuda_c::atomic_update(address, [=](T old) { return (T)(next); }, order);         \
    }
CUDA_C_FETCH_ORDERED(add, old + value)
CUDA_C_FETCH_ORDERED(sub, old - value)
CUDA_C_FETCH_ORDERED(and, old & value)
CUDA_C_FETCH_ORDERED(or, old | value)
CUDA_C_FETCH_ORDERED(xor, old ^ value)
CUDA_C_FETCH_ORDERED(min, value < old ? value : old)
CUDA_C_FETCH_ORDERED(max, value > old ? value : old)
#undef CUDA_C_FETCH_ORDERED
static inline void __nv_atomic_thread_fence(int order, int = __NV_THREAD_SCOPE_SYSTEM) {
    __atomic_thread_fence(order);
}

#undef CUDA_C_UPDATE
#undef CUDA_C_FETCH
#undef CUDA_C_ATOMIC

} // extern "C++"
