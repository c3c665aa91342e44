// CUDA C functions that AMD's compilers lack, made of functions that they have.

#ifndef PYGPU_AMD_FUNCTIONS_HPP
#define PYGPU_AMD_FUNCTIONS_HPP

// The language's headers for the CPU have them.
#if defined(__HIP__) && !defined(__GPUARRAY_HOST__)

extern "C++" {

// Accesses with a cache hint, which has no effect. Volatile accesses read memory again.
template <class T> __device__ inline T __ldca(const T* from) { return *from; }
template <class T> __device__ inline T __ldcg(const T* from) { return *from; }
template <class T> __device__ inline T __ldcs(const T* from) { return *from; }
template <class T> __device__ inline T __ldlu(const T* from) { return *from; }
template <class T> __device__ inline T __ldcv(const T* from) {
    asm volatile("" ::: "memory");
    return *from;
}
template <class T, class U> __device__ inline void __stwb(T* to, U value) { *to = value; }
template <class T, class U> __device__ inline void __stcg(T* to, U value) { *to = value; }
template <class T, class U> __device__ inline void __stcs(T* to, U value) { *to = value; }
template <class T, class U> __device__ inline void __stwt(T* to, U value) {
    *to = value;
    asm volatile("" ::: "memory");
}

__device__ inline void __trap() { __builtin_trap(); }
__device__ inline void __brkpt() { __builtin_trap(); }
// Sleeps at least 64 cycles. Programs that need more call it in a loop, as most do.
__device__ inline void __nanosleep(unsigned int) { __builtin_amdgcn_s_sleep(1); }

__device__ inline unsigned int umin(unsigned int x, unsigned int y) { return y < x ? y : x; }
__device__ inline unsigned int umax(unsigned int x, unsigned int y) { return x < y ? y : x; }
__device__ inline long long llmin(long long x, long long y) { return y < x ? y : x; }
__device__ inline long long llmax(long long x, long long y) { return x < y ? y : x; }
__device__ inline unsigned long long ullmin(unsigned long long x, unsigned long long y) {
    return y < x ? y : x;
}
__device__ inline unsigned long long ullmax(unsigned long long x, unsigned long long y) {
    return x < y ? y : x;
}
__device__ inline float __tanhf(float x) { return tanhf(x); }
__device__ inline double fdivide(double x, double y) { return x / y; }
__device__ inline unsigned int atomicInc_system(unsigned int* place, unsigned int limit) {
    return atomicInc(place, limit);
}
__device__ inline unsigned int atomicDec_system(unsigned int* place, unsigned int limit) {
    return atomicDec(place, limit);
}

// An operation that is atomic for the device is also atomic for a block.
#define PYGPU_ATOMIC(name)                                                                    \
    template <class T, class U> __device__ inline T name##_block(T* place, U value) {         \
        return name(place, (T)value);                                                         \
    }
PYGPU_ATOMIC(atomicAdd)
PYGPU_ATOMIC(atomicSub)
PYGPU_ATOMIC(atomicExch)
PYGPU_ATOMIC(atomicMin)
PYGPU_ATOMIC(atomicMax)
PYGPU_ATOMIC(atomicAnd)
PYGPU_ATOMIC(atomicOr)
PYGPU_ATOMIC(atomicXor)
PYGPU_ATOMIC(atomicInc)
PYGPU_ATOMIC(atomicDec)
#undef PYGPU_ATOMIC
template <class T, class U, class V>
__device__ inline T atomicCAS_block(T* place, U expected, V value) {
    return atomicCAS(place, (T)expected, (T)value);
}

} // extern "C++"

#endif
#endif
