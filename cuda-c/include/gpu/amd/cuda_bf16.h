// The text is put in front of each program that names this file, except on the fake driver.
#ifdef __GPUARRAY_HOST__
#include <cuda_c/bf16.h>
#endif
