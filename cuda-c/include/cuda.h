// The driver interface, as far as kernels name it: its version and its types.
#ifndef CUDA_VERSION
#ifdef __CUDACC_VER_MAJOR__
#define CUDA_VERSION (__CUDACC_VER_MAJOR__ * 1000 + __CUDACC_VER_MINOR__ * 10)
#else
#define CUDA_VERSION 12080
#endif
#endif

extern "C++" {
typedef int CUdevice;
typedef unsigned long long CUdeviceptr;
typedef struct CUctx_st* CUcontext;
typedef struct CUmod_st* CUmodule;
typedef struct CUfunc_st* CUfunction;
typedef struct CUstream_st* CUstream;
typedef struct CUevent_st* CUevent;
typedef unsigned long long CUtexObject;
typedef unsigned long long CUsurfObject;
}
