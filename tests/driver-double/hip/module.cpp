// Modules and kernels.
#include "attribute.hpp"
#include "hip.hpp"

#include <algorithm>

using hip::at, hip::cuda, hip::out;

namespace {

// The numbers of CUfunction_attribute.
enum { MOST_THREADS = 0, STATIC_SHARED = 1, MOST_DYNAMIC_SHARED = 8 };

// Converts `extra`: HIP's list ends with 3, and CUDA's with 0; the other numbers are equal.
void** converted(void** extra, void* (&room)[8]) {
    constexpr uintptr_t END = 3;
    if (!extra) return nullptr;
    for (size_t i = 0; i < 6; i += 2) {
        room[i] = room[i + 1] = nullptr;
        if (at(extra[i]) == END) break;
        room[i] = extra[i];
        room[i + 1] = extra[i + 1];
    }
    return room;
}

// Since ROCm 7 a separate number reports more threads than the device allows. In every generation,
// more threads than the kernel's own bounds return the same number as a kernel failure.
int launched(int status, hipFunction_t function, uint64_t threads) {
    int kernel = 0, device = 0;
    const bool known = status == hipErrorInvalidValue &&
                       cuda.cuFuncGetAttribute(&kernel, MOST_THREADS, at(function)) == 0 &&
                       hip::device_attribute(&device, hipDeviceAttributeMaxThreadsPerBlock,
                                             hip::thread_device()) == 0;
    if (known && threads > uint64_t(device)) {
        return hip::ROCM < 7 ? status : int(hipErrorInvalidConfiguration);
    }
    return known && threads > uint64_t(kernel) ? int(hipErrorLaunchFailure) : status;
}

} // namespace

// HIP has numbers for these options, but ignores most.
HIP(hipModuleLoadDataEx, DEVICE,
    (hipModule_t * module, const void* image, unsigned count, hipJitOption* options,
     void** values),
    (module, image, count, options, values)) {
    if (count > 0 && (!options || !values)) return hipErrorInvalidValue;
    return cuda.cuModuleLoadDataEx(out(module), image, 0, nullptr, nullptr);
}

HIP(hipModuleUnload, DEVICE, (hipModule_t module), (module)) {
    return cuda.cuModuleUnload(at(module));
}

// In HIP a kernel may use all of a block's shared memory without opting in.
HIP(hipModuleGetFunction, DEVICE, (hipFunction_t * function, hipModule_t module, const char* name),
    (function, module, name)) {
    int status = cuda.cuModuleGetFunction(out(function), at(module), name);
    int limit = 0, fixed = 0;
    if (status == 0) status = hip::shared_limit(&limit, hip::thread_device());
    if (status == 0) status = cuda.cuFuncGetAttribute(&fixed, STATIC_SHARED, at(*function));
    if (status != 0) return status;
    return cuda.cuFuncSetAttribute(at(*function), MOST_DYNAMIC_SHARED, std::max(limit - fixed, 0));
}

HIP(hipModuleGetGlobal, DEVICE,
    (hipDeviceptr_t * address, size_t* bytes, hipModule_t module, const char* name),
    (address, bytes, module, name)) {
    return cuda.cuModuleGetGlobal_v2(out(address), bytes, at(module), name);
}

HIP(hipFuncGetAttribute, DEVICE,
    (int* value, hipFunction_attribute attribute, hipFunction_t function),
    (value, attribute, function)) {
    return attribute >= HIP_FUNC_ATTRIBUTE_MAX
               ? int(hipErrorInvalidValue)
               : cuda.cuFuncGetAttribute(value, int(attribute), at(function));
}

HIP(hipModuleLaunchKernel, DEVICE,
    (hipFunction_t function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x,
     unsigned block_y, unsigned block_z, unsigned shared, hipStream_t stream, void** parameters,
     void** extra),
    (function, grid_x, grid_y, grid_z, block_x, block_y, block_z, shared, stream, parameters,
     extra)) {
    void* room[8];
    const int status =
        cuda.cuLaunchKernel(at(function), grid_x, grid_y, grid_z, block_x, block_y, block_z,
                            shared, at(stream), parameters, converted(extra, room));
    return launched(status, function, uint64_t(block_x) * block_y * block_z);
}

HIP(hipModuleLaunchCooperativeKernel, DEVICE,
    (hipFunction_t function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x,
     unsigned block_y, unsigned block_z, unsigned shared, hipStream_t stream, void** parameters),
    (function, grid_x, grid_y, grid_z, block_x, block_y, block_z, shared, stream, parameters)) {
    const int status =
        cuda.cuLaunchCooperativeKernel(at(function), grid_x, grid_y, grid_z, block_x, block_y,
                                       block_z, shared, at(stream), parameters);
    if (status == hipErrorNotSupported) return hipErrorLaunchFailure;
    return launched(status, function, uint64_t(block_x) * block_y * block_z);
}

HIP(hipModuleOccupancyMaxActiveBlocksPerMultiprocessorWithFlags, DEVICE,
    (int* blocks, hipFunction_t function, int block, size_t shared, unsigned flags),
    (blocks, function, block, shared, flags)) {
    return cuda.cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(blocks, at(function), block,
                                                                     shared, flags);
}
