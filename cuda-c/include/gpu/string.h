// The compilers of kernels have memcpy and memset built in.
#ifndef NULL
#define NULL 0
#endif
