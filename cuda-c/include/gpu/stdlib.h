// The compilers of kernels have abs, malloc and free built in.
#ifndef NULL
#define NULL 0
#endif
