#ifndef NULL
#define NULL 0
#endif
#ifndef offsetof
#define offsetof(type, member) ((size_t)&(((type *)0)->member))
#endif
#ifdef __HIP__ // where it is not built in
typedef __PTRDIFF_TYPE__ ptrdiff_t;
#endif
