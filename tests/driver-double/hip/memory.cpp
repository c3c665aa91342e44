// Memory: allocations, copies, fills, pools, other processes.
#include "hip.hpp"

#include <cstring>

using hip::at, hip::cuda, hip::out;

namespace {

// The flags that both vendors have, with the same numbers; HIP's other ones choose caching.
constexpr unsigned PINNED_FLAGS =
    hipHostMallocPortable | hipHostMallocMapped | hipHostMallocWriteCombined;
constexpr unsigned REGISTER_FLAGS = hipHostRegisterPortable | hipHostRegisterMapped;

// The numbers of CUpointer_attribute.
enum { MEMORY_TYPE = 2, DEVICE_POINTER = 3, HOST_POINTER = 4, IS_MANAGED = 8, ORDINAL = 9 };

template <class T> bool attribute_of(T* value, int attribute, const void* pointer) {
    return cuda.cuPointerGetAttribute(value, attribute, at(pointer)) == 0;
}

// The type's number, which differs between the generations.
unsigned type_of(unsigned cuda_type, bool managed) {
    const bool old = hip::ROCM < 6;
    if (managed) return old ? 1 : unsigned(hipMemoryTypeManaged);
    if (cuda_type == HOST) return old ? 0 : unsigned(hipMemoryTypeHost);
    return old ? 1 : unsigned(hipMemoryTypeDevice);
}

int sides(hipMemcpyKind kind, MemoryType& source, MemoryType& destination) {
    source = destination = DEVICE;
    switch (kind) {
    case hipMemcpyHostToHost: source = destination = HOST; return 0;
    case hipMemcpyHostToDevice: source = HOST; return 0;
    case hipMemcpyDeviceToHost: destination = HOST; return 0;
    case hipMemcpyDeviceToDevice: return 0;
    case hipMemcpyDefault: source = destination = UNIFIED; return 0;
    default: return hipErrorInvalidMemcpyDirection;
    }
}

void place(CopySide& side, MemoryType type, const hipPitchedPtr& pointer, const hipPos& start) {
    side.type = type;
    side.host = type == HOST ? pointer.ptr : nullptr;
    side.device = type == HOST ? 0 : at(pointer.ptr);
    side.pitch = pointer.pitch;
    side.height = pointer.ysize;
    side.x = start.x;
    side.y = start.y;
    side.z = start.z;
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

// ---- copies and fills ----------------------------------------------------------------------

HIP(hipMemcpyHtoD, DEVICE, (hipDeviceptr_t to, void* from, size_t bytes), (to, from, bytes)) {
    return cuda.cuMemcpyHtoD_v2(at(to), from, bytes);
}

HIP(hipMemcpyDtoH, DEVICE, (void* to, hipDeviceptr_t from, size_t bytes), (to, from, bytes)) {
    return cuda.cuMemcpyDtoH_v2(to, at(from), bytes);
}

HIP(hipMemcpyHtoDAsync, DEVICE,
    (hipDeviceptr_t to, void* from, size_t bytes, hipStream_t stream),
    (to, from, bytes, stream)) {
    return cuda.cuMemcpyHtoDAsync_v2(at(to), from, bytes, at(stream));
}

HIP(hipMemcpyDtoHAsync, DEVICE,
    (void* to, hipDeviceptr_t from, size_t bytes, hipStream_t stream),
    (to, from, bytes, stream)) {
    return cuda.cuMemcpyDtoHAsync_v2(to, at(from), bytes, at(stream));
}

HIP(hipMemcpyDtoDAsync, DEVICE,
    (hipDeviceptr_t to, hipDeviceptr_t from, size_t bytes, hipStream_t stream),
    (to, from, bytes, stream)) {
    return cuda.cuMemcpyDtoDAsync_v2(at(to), at(from), bytes, at(stream));
}

HIP(hipMemcpyPeerAsync, DEVICE,
    (void* to, int to_device, const void* from, int from_device, size_t bytes,
     hipStream_t stream),
    (to, to_device, from, from_device, bytes, stream)) {
    Handle to_context = 0, from_context = 0;
    int status = hip::primary(to_device, &to_context);
    if (status == 0) status = hip::primary(from_device, &from_context);
    if (status != 0) return status;
    return cuda.cuMemcpyPeerAsync(at(to), to_context, at(from), from_context, bytes, at(stream));
}

HIP(hipMemcpy3DAsync, DEVICE, (const hipMemcpy3DParms* copy, hipStream_t stream),
    (copy, stream)) {
    if (!copy || copy->srcArray || copy->dstArray) return hipErrorInvalidValue;
    MemoryType source, destination;
    if (const int status = sides(copy->kind, source, destination)) return status;
    CUDA_MEMCPY3D box = {};
    place(box.source, source, copy->srcPtr, copy->srcPos);
    place(box.destination, destination, copy->dstPtr, copy->dstPos);
    box.width = copy->extent.width;
    box.height = copy->extent.height;
    box.depth = copy->extent.depth;
    return cuda.cuMemcpy3DAsync_v2(&box, at(stream));
}

HIP(hipMemsetD8Async, DEVICE,
    (hipDeviceptr_t to, unsigned char value, size_t count, hipStream_t stream),
    (to, value, count, stream)) {
    return cuda.cuMemsetD8Async(at(to), value, count, at(stream));
}

HIP(hipMemsetD16Async, DEVICE,
    (hipDeviceptr_t to, unsigned short value, size_t count, hipStream_t stream),
    (to, value, count, stream)) {
    return cuda.cuMemsetD16Async(at(to), value, count, at(stream));
}

HIP(hipMemsetD32Async, DEVICE, (hipDeviceptr_t to, int value, size_t count, hipStream_t stream),
    (to, value, count, stream)) {
    return cuda.cuMemsetD32Async(at(to), unsigned(value), count, at(stream));
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
    // Refused as ROCm refuses it: before 6 there was no flag, since then it must be set.
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
