// Assertions of a kernel, for `assert.h` and `cassert`: one that fails ends the launch with an error.
// As everywhere, each inclusion follows NDEBUG as it is defined then.
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
