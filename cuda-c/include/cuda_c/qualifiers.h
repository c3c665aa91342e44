// The keywords of CUDA C that C++ does not have, and the macros that CUDA's compilers predefine.
//
// The keywords that the executor or the front end needs are in `gpuarray_abi.h`.
#pragma once

// The source location of a call. Errors report it, and lanes without a mask meet there.
#define GPUARRAY_PLACE const char *file = __builtin_FILE(), unsigned line = __builtin_LINE()

#define __host__
#define __grid_constant__
#define __forceinline__ inline __attribute__((always_inline))
#define __inline_hint__ inline
// The front end handles `__noinline__`, because it is also a word in attributes of the system's headers.
#define __cluster_dims__(...)
#define __maxnreg__(...)
#define __block_size__(...)
#define __align__(bytes) __attribute__((aligned(bytes)))
#define __builtin_align__(bytes) __attribute__((aligned(bytes)))
#define __nv_pure__ __attribute__((pure))
#define __cudart_builtin__
#define __device_builtin__
#define CUDARTAPI
#define CUDART_CB

#ifdef GPUARRAY_HIP
#define __HIP__ 1
#define __HIPCC__ 1
#define __HIPCC_RTC__ 1
#define __HIP_DEVICE_COMPILE__ 1
#define __HIP_PLATFORM_AMD__ 1
#else
// Programs test these macros before they use extensions of C++. NVRTC, which compiles the same programs for a
// GPU, defines all but the first, which nvcc defines. The architecture is the first one with all features that these headers offer
// outside inline PTX; a newer one would make programs choose other instructions.
#define __NVCC__ 1
#define __CUDACC__ 1
#define __CUDACC_RTC__ 1
#define __CUDACC_VER_MAJOR__ 12
#define __CUDACC_VER_MINOR__ 8
#define __CUDACC_VER_BUILD__ 0
#define CUDART_VERSION 12080
#define __CUDACC_EXTENDED_LAMBDA__ 1
#define __CUDACC_RELAXED_CONSTEXPR__ 1
#ifndef GPUARRAY_CUDA_ARCH
#define GPUARRAY_CUDA_ARCH 800
#endif
#define __CUDA_ARCH__ GPUARRAY_CUDA_ARCH
#define __CUDA_ARCH_LIST__ GPUARRAY_CUDA_ARCH
// Thrust's algorithms run in the calling thread, also with the policy `thrust::device`, as in a kernel on a GPU.
#define THRUST_DEVICE_SYSTEM THRUST_DEVICE_SYSTEM_CPP
#endif
// Distinguishes these headers from a GPU's.
#define __CUDA_C_ON_CPU__ 1

// Types that NVRTC defines without a header. The system's headers define the same.
extern "C++" {
typedef decltype(sizeof(0)) size_t;
typedef decltype((char*)nullptr - (char*)nullptr) ptrdiff_t;
#ifdef GPUARRAY_HIP
// hipRTC also defines these.
typedef __INT8_TYPE__ int8_t;
typedef __INT16_TYPE__ int16_t;
typedef __INT32_TYPE__ int32_t;
typedef __INT64_TYPE__ int64_t;
typedef __UINT8_TYPE__ uint8_t;
typedef __UINT16_TYPE__ uint16_t;
typedef __UINT32_TYPE__ uint32_t;
typedef __UINT64_TYPE__ uint64_t;
#endif
}
#ifndef NULL
#define NULL __null
#endif
