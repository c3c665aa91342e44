// Texture arrays, texture objects and surface objects. Like AMD's runtime, this uses the address
// mode of x for all axes, refuses settings that its samplers do not support, and keeps its own set
// of arrays.
#include "texture.hpp"
#include "attribute.hpp"
#include "core/texture.hpp"

#include <cstring>
#include <map>

using hip::at, hip::cuda, hip::out;

namespace {

std::mutex& mutex() {
    static std::mutex* it = new std::mutex;
    return *it;
}

// The size in bytes of a texel, by array.
std::map<uint64_t, unsigned>& arrays() {
    static auto* it = new std::map<uint64_t, unsigned>;
    return *it;
}

} // namespace

unsigned hip::texel_bytes(hipArray_t array) {
    std::lock_guard<std::mutex> lock(mutex());
    const auto found = arrays().find(at(array));
    return found == arrays().end() ? 0 : found->second;
}

HIP(hipArray3DCreate, DEVICE, (hipArray_t * array, const HIP_ARRAY3D_DESCRIPTOR* description),
    (array, description)) {
    static_assert(sizeof(HIP_ARRAY3D_DESCRIPTOR) == sizeof(CUDA_ARRAY3D_DESCRIPTOR));
    if (!array || !description) return hipErrorInvalidValue;
    if (!hip::has_textures()) return hipErrorNotSupported;
    if (description->Flags & ~unsigned(LAYERED | SURFACE_LDST | GATHER)) return hipErrorInvalidValue;
    const auto* same = reinterpret_cast<const CUDA_ARRAY3D_DESCRIPTOR*>(description);
    const int status = cuda.cuArray3DCreate_v2(out(array), same);
    if (status != 0) return status;
    std::lock_guard<std::mutex> lock(mutex());
    arrays()[at(*array)] = core::texel_bytes(description->Format, description->NumChannels);
    return 0;
}

HIP(hipArrayDestroy, DEVICE, (hipArray_t array), (array)) {
    if (!array) return hipErrorInvalidValue;
    {
        std::lock_guard<std::mutex> lock(mutex());
        if (arrays().erase(at(array)) == 0) return hipErrorContextIsDestroyed;
    }
    return cuda.cuArrayDestroy(at(array));
}

HIP(hipTexObjectCreate, DEVICE,
    (hipTextureObject_t * object, const HIP_RESOURCE_DESC* resource,
     const HIP_TEXTURE_DESC* texture, const HIP_RESOURCE_VIEW_DESC* view),
    (object, resource, texture, view)) {
    static_assert(sizeof(HIP_RESOURCE_DESC) == sizeof(CUDA_RESOURCE_DESC));
    static_assert(sizeof(HIP_TEXTURE_DESC) == sizeof(CUDA_TEXTURE_DESC));
    if (!hip::has_textures()) return hipErrorNotSupported;
    if (!object || !resource || !texture) return hipErrorInvalidValue;
    CUDA_TEXTURE_DESC same;
    std::memcpy(&same, texture, sizeof same);
    if (same.anisotropy || same.mipmap_bias != 0 || same.mipmap_least != 0 || same.mipmap_most != 0) {
        return hipErrorNotSupported;
    }
    same.address[1] = same.address[2] = same.address[0];
    return cuda.cuTexObjectCreate(
        out(object), reinterpret_cast<const CUDA_RESOURCE_DESC*>(resource), &same, view);
}

HIP(hipTexObjectDestroy, DEVICE, (hipTextureObject_t object), (object)) {
    if (!hip::has_textures()) return hipErrorNotSupported;
    return object ? cuda.cuTexObjectDestroy(at(object)) : 0;
}

HIP(hipCreateSurfaceObject, DEVICE, (hipSurfaceObject_t * object, const hipResourceDesc* resource),
    (object, resource)) {
    if (!object || !resource || resource->resType != hipResourceTypeArray) {
        return hipErrorInvalidValue;
    }
    CUDA_RESOURCE_DESC same = {};
    std::memcpy(&same.object, &resource->res, sizeof same.object);
    if (!same.object) return hipErrorInvalidValue;
    return cuda.cuSurfObjectCreate(out(object), &same);
}

HIP(hipDestroySurfaceObject, DEVICE, (hipSurfaceObject_t object), (object)) {
    return object ? cuda.cuSurfObjectDestroy(at(object)) : 0;
}
