// Barriers in shared memory, as functions of C.
#pragma once

#include "cuda_c/ptx.h"

extern "C++" {

typedef unsigned long __mbarrier_t;
typedef unsigned long __mbarrier_token_t;

#define CUDA_C_MBARRIER(name, ...) \
    cuda_c::ptx::mbarrier_##name<cuda_c::ptx::modes<>, cuda_c::ptx::b64>((cuda_c::ptx::b64*)barrier, __VA_ARGS__)
static inline unsigned int __mbarrier_maximum_count() { return (1 << 20) - 1; }
static inline void __mbarrier_init(__mbarrier_t* barrier, unsigned int count) { CUDA_C_MBARRIER(init, count); }
static inline void __mbarrier_inval(__mbarrier_t*) {}
static inline __mbarrier_token_t __mbarrier_arrive(__mbarrier_t* barrier, GPUARRAY_PLACE) {
    return CUDA_C_MBARRIER(arrive, 1, file, line);
}
static inline __mbarrier_token_t __mbarrier_arrive_and_drop(__mbarrier_t* barrier, GPUARRAY_PLACE) {
    return CUDA_C_MBARRIER(arrive_drop, 1, file, line);
}
static inline bool __mbarrier_test_wait(__mbarrier_t* barrier, __mbarrier_token_t token, GPUARRAY_PLACE) {
    return CUDA_C_MBARRIER(test_wait, token, file, line);
}
static inline bool __mbarrier_test_wait_parity(__mbarrier_t* barrier, bool parity, GPUARRAY_PLACE) {
    return CUDA_C_MBARRIER(test_parity, parity, file, line);
}
static inline bool __mbarrier_try_wait(__mbarrier_t* barrier, __mbarrier_token_t token, unsigned int, GPUARRAY_PLACE) {
    return CUDA_C_MBARRIER(test_wait, token, file, line);
}
static inline bool __mbarrier_try_wait_parity(__mbarrier_t* barrier, bool parity, unsigned int, GPUARRAY_PLACE) {
    return CUDA_C_MBARRIER(test_parity, parity, file, line);
}
#undef CUDA_C_MBARRIER
static inline unsigned int __mbarrier_token_pending_count(__mbarrier_token_t token) {
    return cuda_c::ptx::mbarrier_pending_count<cuda_c::ptx::modes<>, cuda_c::ptx::b64>(token);
}
// `__pipeline_memcpy_async` copies immediately, so nothing is pending.
static inline void __pipeline_arrive_on(__mbarrier_t*) {}

} // extern "C++"
