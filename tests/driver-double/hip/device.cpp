// Devices, and the library's version and errors.
#include "attribute.hpp"
#include "hip.hpp"

#include <algorithm>
#include <cstring>

using hip::cuda;

namespace {

bool is_device(int device) {
    int checked = 0;
    return cuda.cuDeviceGet(&checked, device) == 0;
}

// The fields that both layouts of the properties have.
template <class P> int fill(P* properties, int device) {
    if (!properties) return hipErrorInvalidValue;
    if (!is_device(device)) return hipErrorInvalidDevice;
    std::memset(static_cast<void*>(properties), 0, sizeof *properties);
    int status = cuda.cuDeviceGetName(properties->name, sizeof properties->name, device);
    if (status == 0) status = cuda.cuDeviceTotalMem_v2(&properties->totalGlobalMem, device);
    if (status == 0) {
        status = hip::target_of(device, properties->gcnArchName, sizeof properties->gcnArchName);
    }
    const auto number = [&](int* value, hipDeviceAttribute_t attribute) {
        if (status == 0) status = hip::device_attribute(value, attribute, device);
    };
    int shared = 0;
    number(&shared, hipDeviceAttributeMaxSharedMemoryPerBlock);
    properties->sharedMemPerBlock = size_t(shared);
    number(&properties->warpSize, hipDeviceAttributeWarpSize);
    number(&properties->maxThreadsPerBlock, hipDeviceAttributeMaxThreadsPerBlock);
    number(&properties->multiProcessorCount, hipDeviceAttributeMultiprocessorCount);
    number(&properties->major, hipDeviceAttributeComputeCapabilityMajor);
    number(&properties->minor, hipDeviceAttributeComputeCapabilityMinor);
    return status;
}

#define NAMED(name) {name, #name},
struct Named {
    hipError_t status;
    const char* name;
};
constexpr Named NAMES[] = {EACH_hipError_t(NAMED)};

} // namespace

HIP(hipInit, DRIVER, (unsigned flags), (flags)) { return flags ? hipErrorInvalidValue : hipSuccess; }

HIP(hipRuntimeGetVersion, NOTHING, (int* version), (version)) {
    if (!version) return hipErrorInvalidValue;
    // The versions of ROCm 5.2, 6.2 and 7.1.
    *version = hip::ROCM == 5 ? 50221153 : hip::ROCM == 6 ? 60241133 : 70151831;
    return 0;
}

HIP(hipGetDeviceCount, DRIVER, (int* count), (count)) {
    const int status = cuda.cuDeviceGetCount(count);
    return status == 0 && *count == 0 ? int(hipErrorNoDevice) : status;
}

HIP(hipDeviceGet, DRIVER, (int* device, int ordinal), (device, ordinal)) {
    return cuda.cuDeviceGet(device, ordinal);
}

HIP(hipDeviceGetName, DRIVER, (char* name, int length, int device), (name, length, device)) {
    return cuda.cuDeviceGetName(name, length, device);
}

HIP(hipDeviceGetUuid, DRIVER, (hipUUID * uuid, int device), (uuid, device)) {
    return cuda.cuDeviceGetUuid_v2(reinterpret_cast<CUuuid*>(uuid), device);
}

HIP(hipDeviceGetPCIBusId, DRIVER, (char* text, int length, int device), (text, length, device)) {
    return cuda.cuDeviceGetPCIBusId(text, length, device);
}

HIP(hipDeviceTotalMem, DRIVER, (size_t * bytes, int device), (bytes, device)) {
    return cuda.cuDeviceTotalMem_v2(bytes, device);
}

HIP(hipDeviceGetAttribute, DRIVER, (int* value, hipDeviceAttribute_t attribute, int device),
    (value, attribute, device)) {
    return hip::device_attribute(value, int(attribute), device);
}

HIP(hipGetDevicePropertiesR0600, DRIVER, (hipDeviceProp_tR0600 * properties, int device),
    (properties, device)) {
    return fill(properties, device);
}

HIP(hipGetDeviceProperties, DRIVER, (hipDeviceProp_tR0000 * properties, int device),
    (properties, device)) {
    return fill(properties, device);
}

HIP(hipDeviceCanAccessPeer, DRIVER, (int* can, int device, int peer), (can, device, peer)) {
    return cuda.cuDeviceCanAccessPeer(can, device, peer);
}

HIP(hipDevicePrimaryCtxGetState, DRIVER, (int device, unsigned* flags, int* active),
    (device, flags, active)) {
    return cuda.cuDevicePrimaryCtxGetState(device, flags, active);
}

HIP(hipSetDevice, DRIVER, (int device), (device)) {
    if (device == hip::thread_device()) return 0; // known to exist
    if (!is_device(device)) return hipErrorInvalidDevice;
    hip::set_thread_device(device);
    return 0;
}

HIP(hipGetDevice, DRIVER, (int* device), (device)) {
    if (!device) return hipErrorInvalidValue;
    *device = hip::thread_device();
    return 0;
}

HIP(hipDeviceSynchronize, DEVICE, (), ()) { return cuda.cuCtxSynchronize(); }

HIP(hipDeviceReset, DEVICE, (), ()) { return hip::reset(); }

HIP(hipDeviceGetStreamPriorityRange, DEVICE, (int* least, int* greatest), (least, greatest)) {
    return cuda.cuCtxGetStreamPriorityRange(least, greatest);
}

HIP(hipDeviceGetLimit, DEVICE, (size_t * value, hipLimit_t limit), (value, limit)) {
    return limit >= hipLimitRange ? int(hipErrorUnsupportedLimit)
                                  : cuda.cuCtxGetLimit(value, int(limit));
}

HIP(hipDeviceSetLimit, DEVICE, (hipLimit_t limit, size_t value), (limit, value)) {
    return limit >= hipLimitRange ? int(hipErrorUnsupportedLimit)
                                  : cuda.cuCtxSetLimit(int(limit), value);
}

HIP(hipDeviceEnablePeerAccess, DEVICE, (int peer, unsigned flags), (peer, flags)) {
    Handle context = 0;
    const int status = hip::primary(peer, &context);
    return status != 0 ? status : cuda.cuCtxEnablePeerAccess(context, flags);
}

HIP(hipDeviceDisablePeerAccess, DEVICE, (int peer), (peer)) {
    Handle context = 0;
    const int status = hip::primary(peer, &context);
    return status != 0 ? status : cuda.cuCtxDisablePeerAccess(context);
}

HIP(hipProfilerStart, DEVICE, (), ()) { return cuda.cuProfilerStart(); }

HIP(hipProfilerStop, DEVICE, (), ()) { return cuda.cuProfilerStop(); }

// These two calls never fail, and are not remembered.
EXPORT hipError_t hipGetLastError() {
    static core::Function function("hipGetLastError", hip::NOTHING);
    core::recorded(function, 0);
    return hip::last_error();
}

EXPORT const char* hipGetErrorName(hipError_t status) {
    static core::Function function("hipGetErrorName", hip::NOTHING);
    core::recorded(function, 0, status);
    const auto found = std::find_if(std::begin(NAMES), std::end(NAMES),
                                    [&](const Named& it) { return it.status == status; });
    return found == std::end(NAMES) ? "hipErrorUnknown" : found->name;
}

EXPORT const char* hipGetErrorString(hipError_t status) {
    static core::Function function("hipGetErrorString", hip::NOTHING);
    core::recorded(function, 0, status);
    const char* text = nullptr;
    return cuda.cuGetErrorString(status, &text) == 0 ? text : "unknown error";
}
