// The types of the driver's interface that kernels' texts name.
#pragma once

#define CUDA_VERSION 12080

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
