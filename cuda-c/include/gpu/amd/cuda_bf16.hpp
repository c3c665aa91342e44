// The text is in front of each program that names this file, but on the double of AMD's runtime.
#ifdef __GPUARRAY_HOST__
#include <cuda_c/bf16.h>
#endif
