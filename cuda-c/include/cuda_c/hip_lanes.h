// Lane functions under HIP's names, and builtins of HIP's compiler for them.
#pragma once

extern "C++" {

static inline unsigned int __lane_id() { return gpuarray_abi::lane(); }
static inline unsigned long long __lanemask_lt() { return (1ull << gpuarray_abi::lane()) - 1; }
static inline unsigned long long __lanemask_gt() {
    return ~((2ull << gpuarray_abi::lane()) - 1);
}

static inline void __builtin_amdgcn_wave_barrier(GPUARRAY_PLACE) {
    gpuarray_abi::rendezvous(0, nullptr, nullptr, file, line);
}
// Lanes run one at a time, so each sees the writes of the others.
static inline void __builtin_amdgcn_fence(int, const char*) {}

} // extern "C++"
