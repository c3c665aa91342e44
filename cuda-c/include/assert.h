// Assertions in kernels, for `assert.h` and `cassert`. A failed assertion ends the launch with an error. As
// in the standard header, each inclusion applies the current definition of NDEBUG.
#undef assert
#ifdef NDEBUG
#define assert(condition) ((void)0)
#else
#define assert(condition)                                                                       \
    ((condition) ? (void)0                                                                      \
                 : gpuarray_abi::trap(gpuarray_abi::ASSERT, #condition, __FILE__, __LINE__))
#endif
#ifndef static_assert
#ifndef __cplusplus
#define static_assert _Static_assert
#endif
#endif
