// The header that HIP programs include for the language. It adds HIP's additional names for functions that
// CUDA has under other names.
#pragma once
#include "../cuda_c/hip_lanes.h"
#include "../cuda_c/hip_textures.h"

extern "C++" {

#define hipThreadIdx_x threadIdx.x
#define hipThreadIdx_y threadIdx.y
#define hipThreadIdx_z threadIdx.z
#define hipBlockIdx_x blockIdx.x
#define hipBlockIdx_y blockIdx.y
#define hipBlockIdx_z blockIdx.z
#define hipBlockDim_x blockDim.x
#define hipBlockDim_y blockDim.y
#define hipBlockDim_z blockDim.z
#define hipGridDim_x gridDim.x
#define hipGridDim_y gridDim.y
#define hipGridDim_z gridDim.z
#define HIP_DYNAMIC_SHARED(type, name) extern __shared__ type name[];

static inline long long wall_clock64() { return clock64(); }
static inline long long __clock64() { return clock64(); }
static inline int __clock() { return (int)clock64(); }

typedef struct ihipStream_t* hipStream_t;
enum hipError_t { hipSuccess = 0 };

} // extern "C++"
