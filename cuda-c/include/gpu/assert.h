// An assertion that fails says so and stops the kernel. NVRTC has it built in.
#ifdef NDEBUG
#undef assert
#define assert(condition) ((void)0)
#elif !defined(assert)
#ifdef __HIP__
#define assert(condition) ((condition) ? (void)0 : __builtin_trap())
#else
#define assert(condition)                                                                       \
    ((condition) ? (void)0                                                                      \
                 : (printf("%s:%d: assertion `%s` failed.\n", __FILE__, __LINE__, #condition),  \
                    __trap()))
#endif
#endif
