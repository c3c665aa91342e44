// Copies and fills.
#include "hip.hpp"
#include "texture.hpp"

using hip::at, hip::cuda;

namespace {

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

// Finds one side of a copy: an array or a pointer. In arrays, positions count texels.
int place(CopySide& side, MemoryType type, hipArray_t array, const hipPitchedPtr& pointer,
          const hipPos& start) {
    if (!array == !pointer.ptr) return hipErrorInvalidValue;
    if (pointer.pitch < pointer.xsize) return hipErrorInvalidPitchValue;
    side.type = array ? ARRAY : type;
    side.array = at(array);
    side.host = type == HOST ? pointer.ptr : nullptr;
    side.device = type == HOST ? 0 : at(pointer.ptr);
    side.pitch = pointer.pitch;
    side.height = pointer.ysize;
    side.x = start.x * (array ? hip::texel_bytes(array) : 1);
    side.y = start.y;
    side.z = start.z;
    return 0;
}

} // namespace

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
    if (!copy) return hipErrorInvalidValue;
    MemoryType source, destination;
    if (const int status = sides(copy->kind, source, destination)) return status;
    const size_t from = hip::texel_bytes(copy->srcArray), to = hip::texel_bytes(copy->dstArray);
    if (from && to && from != to) return hipErrorInvalidValue;
    CUDA_MEMCPY3D box = {};
    int status = place(box.source, source, copy->srcArray, copy->srcPtr, copy->srcPos);
    if (status == 0) {
        status = place(box.destination, destination, copy->dstArray, copy->dstPtr, copy->dstPos);
    }
    if (status != 0) return status;
    // With an array, widths count texels.
    box.width = copy->extent.width * (from ? from : to ? to : 1);
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
