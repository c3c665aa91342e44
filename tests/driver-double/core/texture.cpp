// An array's texels are in device memory, in rows with gaps between them. An object is the address of the
// data that the executor's kernels read (`CudaCTexture`), which has its own pages. A kernel therefore
// faults if it reads through a destroyed object, or from a destroyed array or freed memory.
//
// The functions here do not wait: queued work that still uses a destroyed object fails.
#include "texture.hpp"
#include "cuda-c/cuda_c.h"
#include "functions.hpp"
#include "memory.hpp"
#include "work.hpp"

#include <algorithm>
#include <cstring>
#include <iterator>

namespace core {
namespace {

// The numbers of CUdevice_attribute.
enum Attribute { TEXTURE_ALIGNMENT = 14, PITCH_ALIGNMENT = 51 };
enum Resource : unsigned { OF_ARRAY = 0, OF_MEMORY = 2, OF_ROWS = 3 };
enum TextureFlags : unsigned { READ_AS_INTEGER = 1, NORMALIZED = 2 };
constexpr unsigned MODES = 4, LINEAR_FILTER = 1;

// Returns the size in bytes of a channel, by its format; 0 for an unknown number.
unsigned channel_bytes(unsigned format) {
    switch (format) {
    case 0x01:
    case 0x08: return 1;
    case 0x02:
    case 0x09:
    case 0x10: return 2;
    case 0x03:
    case 0x0a:
    case 0x20: return 4;
    default: return 0;
    }
}

size_t attribute(int number) {
    int value = 0;
    driver::cuDeviceGetAttribute(&value, number, current_context()->device);
    return size_t(value);
}

// Returns true if the device supports arrays of these extents. A limit is an attribute's number, or 0 for
// an axis that must be absent.
bool has_extents(const CUDA_ARRAY3D_DESCRIPTOR& it) {
    struct Limits {
        bool matches;
        int width, height, depth;
    };
    const bool layered = it.flags & LAYERED, rows = it.height != 0, slices = it.depth != 0;
    if (it.flags & CUBEMAP) {
        const bool faces = layered ? slices && it.depth % 6 == 0 : it.depth == 6;
        return rows && faces && it.width == it.height && it.width <= attribute(layered ? 53 : 52) &&
               (!layered || it.depth <= attribute(54));
    }
    const Limits all[] = {
        {layered && slices && rows, 27, 28, 29}, {layered && slices && !rows, 42, 0, 43},
        {!layered && slices && rows, 24, 25, 26}, {!layered && !slices && rows, 22, 23, 0},
        {!layered && !slices && !rows, 21, 0, 0},
    };
    const auto found =
        std::find_if(std::begin(all), std::end(all), [](const Limits& its) { return its.matches; });
    if (found == std::end(all) || it.width == 0) return false;
    const auto most = [](int number) { return number ? attribute(number) : 0; };
    return it.width <= most(found->width) && it.height <= most(found->height) &&
           it.depth <= most(found->depth);
}

CudaCTexture description_of(const Array& array) {
    CudaCTexture it = {};
    it.texels = array.texels->address;
    it.width = array.width;
    it.height = array.height;
    it.slices = array.slices;
    it.row_pitch = array.pitch;
    it.slice_pitch = array.slice;
    it.format = array.format;
    it.channels = array.channels;
    return it;
}

// Describes linear memory or rows.
int describe_memory(const CUDA_RESOURCE_DESC& resource, CudaCTexture& it) {
    const unsigned texel = texel_bytes(resource.format, resource.channels);
    if (texel == 0) return INVALID_VALUE;
    const bool rows = resource.type == OF_ROWS;
    const auto& [first, second, third] = resource.extent;
    const size_t width = rows ? first : first / texel, height = rows ? second : 1;
    const size_t pitch = rows ? third : first;
    if (width == 0 || height == 0 || width > (size_t(1) << 40) || height > (size_t(1) << 40)) {
        return INVALID_VALUE;
    }
    if (resource.object % attribute(TEXTURE_ALIGNMENT) || pitch < width * texel) return INVALID_VALUE;
    if (rows && pitch % attribute(PITCH_ALIGNMENT)) return INVALID_VALUE;
    size_t bytes = 0;
    bool bad = __builtin_mul_overflow(pitch, height - 1, &bytes);
    bad |= __builtin_add_overflow(bytes, width * texel, &bytes);
    const Ref<Memory> memory = known_memory(resource.object);
    if (bad || !memory || !holds(*memory, resource.object, bytes)) return INVALID_VALUE;
    it.texels = resource.object;
    it.width = width;
    it.height = height;
    it.slices = 1;
    it.row_pitch = pitch;
    it.slice_pitch = pitch * height;
    it.format = resource.format;
    it.channels = resource.channels;
    return 0;
}

int describe(const CUDA_RESOURCE_DESC& resource, CudaCTexture& it) {
    if (resource.flags != 0) return INVALID_VALUE;
    if (resource.type == OF_MEMORY || resource.type == OF_ROWS) return describe_memory(resource, it);
    if (resource.type != OF_ARRAY) return INVALID_VALUE;
    const Ref<Array> array = state().arrays.find(resource.object);
    if (!array || array->context != current_context()) return INVALID_HANDLE;
    it = description_of(*array);
    return 0;
}

bool reads_integers(const CudaCTexture& it, unsigned flags) {
    const bool is_float = it.format == 0x10 || it.format == 0x20;
    return !is_float && (flags & READ_AS_INTEGER || channel_bytes(it.format) == 4);
}

int add_object(const CudaCTexture& description, bool surface, uint64_t* object) {
    const Ref<Memory> memory = allocate_at_once(sizeof description, Kind::Object);
    if (!memory) return OUT_OF_MEMORY;
    std::memcpy(reinterpret_cast<void*>(memory->address), &description, sizeof description);
    state().texture_objects[memory->address] = {current_context(), memory, surface};
    *object = memory->address;
    return 0;
}

int destroy_object(uint64_t object, bool surface) {
    auto& all = state().texture_objects;
    const auto found = all.find(object);
    if (found == all.end() || found->second.surface != surface) return INVALID_VALUE;
    release(found->second.description);
    all.erase(found);
    return 0;
}

} // namespace

unsigned texel_bytes(unsigned format, unsigned channels) {
    const bool known = channels == 1 || channels == 2 || channels == 4;
    return known ? channel_bytes(format) * channels : 0;
}

void forget_textures(const Ref<Context>& context) {
    state().arrays.erase_if([&](const Array& array) { return array.context == context; });
    auto& all = state().texture_objects;
    for (auto it = all.begin(); it != all.end();) {
        it = it->second.context == context ? all.erase(it) : std::next(it);
    }
}

} // namespace core

namespace driver {
using namespace core;

int cuArray3DCreate_v2(Handle* handle, const CUDA_ARRAY3D_DESCRIPTOR* description) {
    if (!handle || !description) return INVALID_VALUE;
    const auto& it = *description;
    const unsigned texel = texel_bytes(it.format, it.channels);
    if (texel == 0 || (it.flags & ~(LAYERED | SURFACE_LDST | CUBEMAP | GATHER)) || !has_extents(it)) {
        return INVALID_VALUE;
    }
    if ((it.flags & GATHER) && (it.height == 0 || it.depth != 0)) return INVALID_VALUE;
    auto array = std::make_shared<Array>();
    array->context = current_context();
    array->width = it.width;
    array->height = std::max<size_t>(it.height, 1);
    array->slices = std::max<size_t>(it.depth, 1);
    array->format = it.format;
    array->channels = it.channels;
    array->flags = it.flags;
    array->texel = texel;
    // Each row has room for one texel more.
    array->pitch = (array->width + 1) * texel;
    size_t bytes = 0;
    bool bad = __builtin_mul_overflow(array->pitch, array->height, &array->slice);
    bad |= __builtin_mul_overflow(array->slice, array->slices, &bytes);
    array->texels = bad ? nullptr : allocate_at_once(bytes, Kind::Texels);
    if (!array->texels) return OUT_OF_MEMORY;
    *handle = state().arrays.add(array);
    return 0;
}

int cuArrayDestroy(Handle handle) {
    const Ref<Array> array = state().arrays.find(handle);
    if (!array) return INVALID_HANDLE;
    release(array->texels);
    state().arrays.erase(handle);
    return 0;
}

int cuTexObjectCreate(uint64_t* object, const CUDA_RESOURCE_DESC* resource,
                      const CUDA_TEXTURE_DESC* texture, const void* view) {
    if (!object || !resource || !texture) return INVALID_VALUE;
    if (view) return NOT_SUPPORTED;
    CudaCTexture it = {};
    if (const int status = describe(*resource, it)) return status;
    if (texture->flags & ~unsigned(READ_AS_INTEGER | NORMALIZED)) return INVALID_VALUE;
    if (texture->filter > LINEAR_FILTER) return INVALID_VALUE;
    for (int axis = 0; axis < 3; ++axis) {
        if (texture->address[axis] >= MODES) return INVALID_VALUE;
        it.address[axis] = texture->address[axis];
    }
    it.linear = texture->filter == LINEAR_FILTER;
    if (it.linear && reads_integers(it, texture->flags)) return INVALID_VALUE;
    it.normalized = (texture->flags & NORMALIZED) != 0;
    it.fractions = (texture->flags & READ_AS_INTEGER) == 0;
    return add_object(it, false, object);
}

int cuTexObjectDestroy(uint64_t object) { return destroy_object(object, false); }

int cuSurfObjectCreate(uint64_t* object, const CUDA_RESOURCE_DESC* resource) {
    if (!object || !resource || resource->type != OF_ARRAY) return INVALID_VALUE;
    const Ref<Array> array = state().arrays.find(resource->object);
    if (!array || array->context != current_context()) return INVALID_HANDLE;
    if (!(array->flags & SURFACE_LDST)) return INVALID_VALUE;
    return add_object(description_of(*array), true, object);
}

int cuSurfObjectDestroy(uint64_t object) { return destroy_object(object, true); }

} // namespace driver
