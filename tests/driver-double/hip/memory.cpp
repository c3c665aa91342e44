// Memory: allocations, pools, sharing with other processes.
#include "hip.hpp"

#include <cstring>

using hip::at, hip::cuda, hip::out;

namespace {

// The flags that both vendors have, with equal numbers; HIP's others choose caching.
constexpr unsigned PINNED_FLAGS =
    hipHostMallocPortable | hipHostMallocMapped | hipHostMallocWriteCombined;
constexpr unsigned REGISTER_FLAGS = hipHostRegisterPortable | hipHostRegisterMapped;

// The numbers of CUpointer_attribute.
enum { MEMORY_TYPE = 2, DEVICE_POINTER = 3, HOST_POINTER = 4, IS_MANAGED = 8, ORDINAL = 9 };

template <class T> bool attribute_of(T* value, int attribute, const void* pointer) {
    return cuda.cuPointerGetAttribute(value, attribute, at(pointer)) == 0;
}

// Returns the number of a memory type, which differs between the generations.
unsigned type_of(unsigned cuda_type, bool managed) {
    const bool old = hip::ROCM < 6;
    if (managed) return old ? 1 : unsigned(hipMemoryTypeManaged);
    if (cuda_type == HOST) return old ? 0 : unsigned(hipMemoryTypeHost);
    return old ? 1 : unsigned(hipMemoryTypeDevice);
}

} // namespace

HIP(hipMemGetInfo, DEVICE, (size_t * free, size_t* total), (free, total)) {
    return cuda.cuMemGetInfo_v2(free, total);
}

HIP(hipMalloc, DEVICE, (void** address, size_t bytes), (address, bytes)) {
    if (!address) return hipErrorInvalidValue;
    *address = nullptr;
    return bytes == 0 ? 0 : cuda.cuMemAlloc_v2(out(address), bytes);
}

HIP(hipFree, DEVICE, (void* address), (address)) {
    return address ? cuda.cuMemFree_v2(at(address)) : 0;
}

HIP(hipMemAllocPitch, DEVICE,
    (hipDeviceptr_t * address, size_t* pitch, size_t width, size_t height, unsigned element),
    (address, pitch, width, height, element)) {
    return cuda.cuMemAllocPitch_v2(out(address), pitch, width, height, element);
}

HIP(hipMallocManaged, DEVICE, (void** address, size_t bytes, unsigned flags),
    (address, bytes, flags)) {
    return cuda.cuMemAllocManaged(out(address), bytes, flags);
}

HIP(hipMemPrefetchAsync, DEVICE,
    (const void* address, size_t bytes, int device, hipStream_t stream),
    (address, bytes, device, stream)) {
    return cuda.cuMemPrefetchAsync(at(address), bytes, device, at(stream));
}

HIP(hipMemGetAddressRange, DEVICE, (hipDeviceptr_t * base, size_t* bytes, hipDeviceptr_t address),
    (base, bytes, address)) {
    return cuda.cuMemGetAddressRange_v2(out(base), bytes, at(address));
}

HIP(hipPointerGetAttributes, DEVICE, (hipPointerAttribute_t * all, const void* pointer),
    (all, pointer)) {
    if (!all) return hipErrorInvalidValue;
    std::memset(all, 0, sizeof *all);
    unsigned type = 0, managed = 0;
    if (!pointer || !attribute_of(&type, MEMORY_TYPE, pointer)) {
        return hip::ROCM < 7 ? hipErrorInvalidValue : hipSuccess; // "unregistered" is 0
    }
    attribute_of(&managed, IS_MANAGED, pointer);
    attribute_of(&all->device, ORDINAL, pointer);
    attribute_of(&all->devicePointer, DEVICE_POINTER, pointer);
    if (type == HOST || managed) attribute_of(&all->hostPointer, HOST_POINTER, pointer);
    const unsigned number = type_of(type, managed != 0);
    std::memcpy(&all->type, &number, sizeof number);
    all->isManaged = managed != 0;
    return 0;
}

HIP(hipHostMalloc, DEVICE, (void** address, size_t bytes, unsigned flags),
    (address, bytes, flags)) {
    if (!address) return hipErrorInvalidValue;
    *address = nullptr;
    return bytes == 0 ? 0 : cuda.cuMemHostAlloc(address, bytes, flags & PINNED_FLAGS);
}

HIP(hipHostFree, DEVICE, (void* address), (address)) {
    return address ? cuda.cuMemFreeHost(address) : 0;
}

HIP(hipHostGetDevicePointer, DEVICE, (void** address, void* host, unsigned flags),
    (address, host, flags)) {
    return cuda.cuMemHostGetDevicePointer_v2(out(address), host, flags);
}

HIP(hipHostRegister, DEVICE, (void* address, size_t bytes, unsigned flags),
    (address, bytes, flags)) {
    return cuda.cuMemHostRegister_v2(address, bytes, flags & REGISTER_FLAGS);
}

HIP(hipHostUnregister, DEVICE, (void* address), (address)) {
    return cuda.cuMemHostUnregister(address);
}

// ---- pools ---------------------------------------------------------------------------------

HIP(hipMemPoolCreate, DEVICE, (hipMemPool_t * pool, const hipMemPoolProps* properties),
    (pool, properties)) {
    static_assert(sizeof(hipMemPoolProps) == sizeof(CUmemPoolProps));
    return cuda.cuMemPoolCreate(out(pool), reinterpret_cast<const CUmemPoolProps*>(properties));
}

HIP(hipMemPoolDestroy, DEVICE, (hipMemPool_t pool), (pool)) {
    return cuda.cuMemPoolDestroy(at(pool));
}

HIP(hipMemPoolSetAttribute, DEVICE, (hipMemPool_t pool, hipMemPoolAttr attribute, void* value),
    (pool, attribute, value)) {
    return cuda.cuMemPoolSetAttribute(at(pool), int(attribute), value);
}

HIP(hipMemPoolGetAttribute, DEVICE, (hipMemPool_t pool, hipMemPoolAttr attribute, void* value),
    (pool, attribute, value)) {
    return cuda.cuMemPoolGetAttribute(at(pool), int(attribute), value);
}

HIP(hipMemPoolTrimTo, DEVICE, (hipMemPool_t pool, size_t keep), (pool, keep)) {
    return cuda.cuMemPoolTrimTo(at(pool), keep);
}

HIP(hipMemPoolSetAccess, DEVICE, (hipMemPool_t pool, const hipMemAccessDesc* map, size_t count),
    (pool, map, count)) {
    static_assert(sizeof(hipMemAccessDesc) == sizeof(CUmemAccessDesc));
    return cuda.cuMemPoolSetAccess(at(pool), reinterpret_cast<const CUmemAccessDesc*>(map), count);
}

HIP(hipMallocFromPoolAsync, DEVICE,
    (void** address, size_t bytes, hipMemPool_t pool, hipStream_t stream),
    (address, bytes, pool, stream)) {
    return cuda.cuMemAllocFromPoolAsync(out(address), bytes, at(pool), at(stream));
}

HIP(hipFreeAsync, DEVICE, (void* address, hipStream_t stream), (address, stream)) {
    return cuda.cuMemFreeAsync(at(address), at(stream));
}

// ---- other processes -----------------------------------------------------------------------

HIP(hipIpcGetMemHandle, DEVICE, (hipIpcMemHandle_t * handle, void* address), (handle, address)) {
    return cuda.cuIpcGetMemHandle(reinterpret_cast<CUipcHandle*>(handle), at(address));
}

HIP(hipIpcOpenMemHandle, DEVICE, (void** address, hipIpcMemHandle_t handle, unsigned flags),
    (address, handle, flags)) {
    // Refused as in ROCm: before 6 there was no flag, and since then it must be set.
    const unsigned wanted = hip::ROCM < 6 ? 0 : hipIpcMemLazyEnablePeerAccess;
    if (flags != wanted) return hipErrorInvalidValue;
    CUipcHandle same;
    std::memcpy(&same, &handle, sizeof same);
    return cuda.cuIpcOpenMemHandle_v2(out(address), same, hipIpcMemLazyEnablePeerAccess);
}

HIP(hipIpcCloseMemHandle, DEVICE, (void* address), (address)) {
    return cuda.cuIpcCloseMemHandle(at(address));
}

HIP(hipIpcGetEventHandle, DEVICE, (hipIpcEventHandle_t * handle, hipEvent_t event),
    (handle, event)) {
    return cuda.cuIpcGetEventHandle(reinterpret_cast<CUipcHandle*>(handle), at(event));
}

HIP(hipIpcOpenEventHandle, DEVICE, (hipEvent_t * event, hipIpcEventHandle_t handle),
    (event, handle)) {
    CUipcHandle same;
    std::memcpy(&same, &handle, sizeof same);
    return cuda.cuIpcOpenEventHandle(out(event), same);
}
