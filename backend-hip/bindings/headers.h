#include <hip/hip_runtime_api.h>
#include <hip/hip_deprecated.h>
#include <hip/hiprtc.h>

/* The headers since 6 give this name to hipGetDevicePropertiesR0600; the library of every
   generation has under it the function of before. */
#undef hipGetDeviceProperties
#ifdef __cplusplus
extern "C"
#endif
hipError_t hipGetDeviceProperties(hipDeviceProp_tR0000 *properties, int device);
