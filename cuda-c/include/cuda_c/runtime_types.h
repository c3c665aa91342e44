// The types of the runtime's interface that kernels' texts name. The functions are for hosts.
#pragma once

extern "C++" {

typedef struct CUstream_st* cudaStream_t;
typedef struct CUevent_st* cudaEvent_t;
enum cudaError { cudaSuccess = 0 };
typedef enum cudaError cudaError_t;

} // extern "C++"
