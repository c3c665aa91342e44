#include "attribute.hpp"
#include "core/state.hpp"
#include "core/vendor.hpp"
#include "hip.hpp"
#include "target.hpp"

#include <algorithm>
#include <cstdio>

namespace hip {
namespace {

struct Pair {
    hipDeviceAttribute_t hip;
    int cuda; // CUdevice_attribute
};

// The attributes that both vendors have.
constexpr Pair PAIRS[] = {
    {hipDeviceAttributeMaxThreadsPerBlock, 1},
    {hipDeviceAttributeMaxBlockDimX, 2},
    {hipDeviceAttributeMaxBlockDimY, 3},
    {hipDeviceAttributeMaxBlockDimZ, 4},
    {hipDeviceAttributeMaxGridDimX, 5},
    {hipDeviceAttributeMaxGridDimY, 6},
    {hipDeviceAttributeMaxGridDimZ, 7},
    {hipDeviceAttributeTotalConstantMemory, 9},
    {hipDeviceAttributeWarpSize, 10},
    {hipDeviceAttributeMaxPitch, 11},
    {hipDeviceAttributeMaxRegistersPerBlock, 12},
    {hipDeviceAttributeClockRate, 13},
    {hipDeviceAttributeTextureAlignment, 14},
    {hipDeviceAttributeMultiprocessorCount, 16},
    {hipDeviceAttributeKernelExecTimeout, 17},
    {hipDeviceAttributeIntegrated, 18},
    {hipDeviceAttributeCanMapHostMemory, 19},
    {hipDeviceAttributeComputeMode, 20},
    {hipDeviceAttributeMaxTexture1DWidth, 21},
    {hipDeviceAttributeMaxTexture2DWidth, 22},
    {hipDeviceAttributeMaxTexture2DHeight, 23},
    {hipDeviceAttributeMaxTexture3DWidth, 24},
    {hipDeviceAttributeMaxTexture3DHeight, 25},
    {hipDeviceAttributeMaxTexture3DDepth, 26},
    {hipDeviceAttributeConcurrentKernels, 31},
    {hipDeviceAttributeEccEnabled, 32},
    {hipDeviceAttributePciBusId, 33},
    {hipDeviceAttributePciDeviceId, 34},
    {hipDeviceAttributeTccDriver, 35},
    {hipDeviceAttributeMemoryClockRate, 36},
    {hipDeviceAttributeMemoryBusWidth, 37},
    {hipDeviceAttributeL2CacheSize, 38},
    {hipDeviceAttributeMaxThreadsPerMultiProcessor, 39},
    {hipDeviceAttributePciDomainID, 50},
    {hipDeviceAttributeTexturePitchAlignment, 51},
    {hipDeviceAttributeComputeCapabilityMajor, 75},
    {hipDeviceAttributeComputeCapabilityMinor, 76},
    {hipDeviceAttributeMaxSharedMemoryPerMultiprocessor, 81},
    {hipDeviceAttributeManagedMemory, 83},
    {hipDeviceAttributeIsMultiGpuBoard, 84},
    {hipDeviceAttributePageableMemoryAccess, 88},
    {hipDeviceAttributeConcurrentManagedAccess, 89},
    {hipDeviceAttributeCooperativeLaunch, 95},
    {hipDeviceAttributeCooperativeMultiDeviceLaunch, 96},
    {hipDeviceAttributeHostRegisterSupported, 99},
    {hipDeviceAttributePageableMemoryAccessUsesHostPageTables, 100},
    {hipDeviceAttributeDirectManagedMemAccessFromHost, 101},
    {hipDeviceAttributeMaxBlocksPerMultiProcessor, 106},
    {hipDeviceAttributeMemoryPoolsSupported, 115},
};

constexpr int SHARED_OF_BLOCK = 65536; // the local data share of a workgroup

} // namespace

int shared_limit(int* bytes, int device) {
    constexpr int OPT_IN = 97;
    if (forwarded()) return cuda.cuDeviceGetAttribute(bytes, OPT_IN, device);
    *bytes = SHARED_OF_BLOCK;
    return 0;
}

int device_attribute(int* value, int attribute, int device) {
    if (!value) return hipErrorInvalidValue;
    int checked = 0;
    if (const int status = cuda.cuDeviceGet(&checked, device)) return status;
    if (attribute == hipDeviceAttributeMaxSharedMemoryPerBlock) return shared_limit(value, device);
    if (attribute == hipDeviceAttributeWarpSize && !forwarded()) {
        *value = int(core::VENDOR.warp);
        return 0;
    }
    if (attribute == hipDeviceAttributeImageSupport) {
        *value = has_textures();
        return 0;
    }
    const auto found = std::find_if(std::begin(PAIRS), std::end(PAIRS), [&](const Pair& it) {
        return int(it.hip) == attribute;
    });
    if (found == std::end(PAIRS)) return hipErrorInvalidValue;
    return cuda.cuDeviceGetAttribute(value, found->cuda, device);
}

bool has_textures() {
    static const bool it = core::setting("DOUBLE_TEXTURES", 1) != 0;
    return it;
}

int target_of(int device, char* text, unsigned long size) {
    int major = 0, minor = 0;
    if (forwarded()) {
        int status = device_attribute(&major, hipDeviceAttributeComputeCapabilityMajor, device);
        if (status == 0) {
            status = device_attribute(&minor, hipDeviceAttributeComputeCapabilityMinor, device);
        }
        if (status != 0) return status;
    }
    const std::string name = forwarded() ? forwarded_target(major, minor) : double_target();
    std::snprintf(text, size, "%s", name.c_str());
    return 0;
}

} // namespace hip
