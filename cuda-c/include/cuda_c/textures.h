// Reads through texture objects: coordinates, borders, and interpolation between texels.
//
// The rules and formulas follow the appendix "Texture Fetching" in the CUDA programming guide;
// interpolation weights have 8 fraction bits. No read is outside of the array, whatever the coordinates.
#pragma once

#include "cuda_c/narrow.h"

extern "C++" {
namespace cuda_c {

using gpuarray_abi::Texture;

// Reads one channel of a texel from memory into a register.
static inline unsigned read_channel(const Texture& texture, const unsigned char* at) {
    const bool fractions = texture.fractions;
    unsigned short half;
    switch (texture.format) {
    case 0x01: return fractions ? bits<unsigned>(*at / 255.0f) : *at;
    case 0x02:
        __builtin_memcpy(&half, at, 2);
        return fractions ? bits<unsigned>(half / 65535.0f) : half;
    case 0x08: {
        const int value = (signed char)*at;
        return fractions ? bits<unsigned>(value < -127 ? -1.0f : value / 127.0f) : (unsigned)value;
    }
    case 0x09: {
        __builtin_memcpy(&half, at, 2);
        const int value = (short)half;
        return fractions ? bits<unsigned>(value < -32767 ? -1.0f : value / 32767.0f) : (unsigned)value;
    }
    case 0x10:
        __builtin_memcpy(&half, at, 2);
        return bits<unsigned>(Half::widen(half));
    }
    unsigned value;
    __builtin_memcpy(&value, at, 4);
    return value;
}

static inline unsigned long channel_bytes(unsigned format) {
    return format == 0x10 ? 2 : format == 0x20 ? 4 : 1ul << (format & 8 ? format - 8 : format - 1);
}

// The texel at integer coordinates. Negative coordinates are on the border, where all channels are zero.
static inline Texel read_texel(const Texture& texture, long x, long y, long z) {
    Texel texel = {};
    if ((x | y | z) < 0) return texel;
    const unsigned long bytes = channel_bytes(texture.format);
    const unsigned char* at = texture.texels + z * texture.slice_pitch + y * texture.row_pitch +
                              x * bytes * texture.channels;
    for (unsigned c = 0; c < texture.channels; ++c) {
        texel.channels[c] = read_channel(texture, at + c * bytes);
    }
    return texel;
}

// Rounds down to an integer. Values far outside are clamped to a number that is also far outside.
static inline long whole(float x) {
    const float below = __builtin_floorf(x);
    if (below != below) return 0;
    return below > 1e9f ? 1000000000 : below < -1e9f ? -1000000000 : (long)below;
}

// An integer coordinate inside the array, or -1 for the border.
static inline long inside(long at, long extent, unsigned mode) {
    switch (mode) {
    case cudaAddressModeWrap:
        at %= extent;
        return at < 0 ? at + extent : at;
    case cudaAddressModeMirror:
        at %= 2 * extent;
        if (at < 0) at += 2 * extent;
        return at < extent ? at : 2 * extent - 1 - at;
    case cudaAddressModeBorder: return at < 0 || at >= extent ? -1 : at;
    }
    return at < 0 ? 0 : at >= extent ? extent - 1 : at;
}

// The texels that a coordinate reads along one axis: one texel, or two and the weight of the second.
struct Place {
    long first, second;
    float weight;
};

static inline Place place_of(const Texture& texture, float x, long extent, unsigned mode) {
    if (texture.normalized) {
        // The array repeats. The fraction is taken first, because a float with a large integer part has few
        // fraction bits.
        if (mode == cudaAddressModeWrap) x -= __builtin_floorf(x);
        if (mode == cudaAddressModeMirror) x -= 2 * __builtin_floorf(x / 2);
        x *= extent;
    } else if (mode != cudaAddressModeBorder) {
        mode = cudaAddressModeClamp;
    }
    if (!texture.linear) return {inside(whole(x), extent, mode), 0, 0.0f};
    x -= 0.5f;
    const long first = whole(x);
    const float weight = __builtin_floorf((x - first) * 256.0f + 0.5f) / 256.0f;
    // If the coordinate is NaN, the weight is 0.
    return {inside(first, extent, mode), inside(first + 1, extent, mode), weight >= 0 && weight <= 1 ? weight : 0};
}

static inline Texel mixed(const Texel& a, const Texel& b, float weight, unsigned channels) {
    Texel mixed = {};
    for (unsigned c = 0; c < channels; ++c) {
        const float from = bits<float>(a.channels[c]), to = bits<float>(b.channels[c]);
        mixed.channels[c] = bits<unsigned>((1.0f - weight) * from + weight * to);
    }
    return mixed;
}

static inline Texel sample_row(const Texture& texture, const Place& x, long y, long z) {
    const Texel first = read_texel(texture, x.first, y, z);
    if (!texture.linear) return first;
    return mixed(first, read_texel(texture, x.second, y, z), x.weight, texture.channels);
}

static inline Texel sample_slice(const Texture& texture, const Place& x, const Place& y, long z) {
    const Texel first = sample_row(texture, x, y.first, z);
    if (!texture.linear) return first;
    return mixed(first, sample_row(texture, x, y.second, z), y.weight, texture.channels);
}

static inline Place along_x(const Texture& texture, float x) {
    return place_of(texture, x, texture.width, texture.address[0]);
}
static inline Place along_y(const Texture& texture, float y) {
    return place_of(texture, y, texture.height, texture.address[1]);
}

static inline Texel sample(const Texture& texture, float x) {
    return sample_row(texture, along_x(texture, x), 0, 0);
}
static inline Texel sample(const Texture& texture, float x, float y) {
    return sample_slice(texture, along_x(texture, x), along_y(texture, y), 0);
}
static inline Texel sample(const Texture& texture, float x, float y, float z) {
    const Place across = along_x(texture, x), down = along_y(texture, y);
    const Place slice = place_of(texture, z, texture.slices, texture.address[2]);
    const Texel first = sample_slice(texture, across, down, slice.first);
    if (!texture.linear) return first;
    return mixed(first, sample_slice(texture, across, down, slice.second), slice.weight, texture.channels);
}

// Layers are numbered from 0. A number outside, including a negative one, selects the last layer, as on a
// GPU.
static inline long layer_of(const Texture& texture, int layer) {
    return layer < 0 || (unsigned long)layer >= texture.slices ? texture.slices - 1 : layer;
}
static inline Texel sample_layer(const Texture& texture, float x, int layer) {
    return sample_row(texture, along_x(texture, x), 0, layer_of(texture, layer));
}
static inline Texel sample_layer(const Texture& texture, float x, float y, int layer) {
    return sample_slice(texture, along_x(texture, x), along_y(texture, y), layer_of(texture, layer));
}

// Samples the face of a cube that a direction meets, out of six slices from `first` on. The coordinates on
// the face run from -1 to 1. Texels of adjacent faces are not read.
static inline Texel sample_cube(const Texture& texture, float x, float y, float z, long first) {
    const float along[] = {__builtin_fabsf(x), __builtin_fabsf(y), __builtin_fabsf(z)};
    const int axis = along[0] >= along[1] && along[0] >= along[2] ? 0 : along[1] >= along[2] ? 1 : 2;
    const bool back = (axis == 0 ? x : axis == 1 ? y : z) < 0;
    const float s = axis == 0 ? (back ? z : -z) : axis == 2 && back ? -x : x;
    const float t = axis == 1 ? (back ? -z : z) : -y;
    Texture face = texture;
    face.normalized = 1;
    face.address[0] = face.address[1] = cudaAddressModeClamp;
    const long slice = first + 2 * axis + back, last = texture.slices - 1;
    return sample_slice(face, along_x(face, (s / along[axis] + 1) / 2),
                        along_y(face, (t / along[axis] + 1) / 2), slice < last ? slice : last);
}
static inline Texel sample_cube_of(const Texture& texture, float x, float y, float z, int layer) {
    const long cubes = texture.slices / 6;
    const long cube = layer < 0 || layer >= cubes ? cubes - 1 : layer;
    return sample_cube(texture, x, y, z, cube < 0 ? 0 : 6 * cube);
}

// The texel with an index, or zero outside.
static inline Texel fetch(const Texture& texture, int index) {
    return read_texel(texture, inside(index, texture.width, cudaAddressModeBorder), 0, 0);
}

// One channel of the four texels that an interpolation reads, counter-clockwise from the lower left.
static inline Texel gather(const Texture& texture, float x, float y, int channel) {
    Texture linear = texture;
    linear.linear = 1;
    const Place across = along_x(linear, x), down = along_y(linear, y);
    const long xs[] = {across.first, across.second, across.second, across.first};
    const long ys[] = {down.second, down.second, down.first, down.first};
    Texel texel = {};
    for (int corner = 0; corner < 4; ++corner) {
        texel.channels[corner] = read_texel(texture, xs[corner], ys[corner], 0).channels[channel & 3];
    }
    return texel;
}

} // namespace cuda_c

// Defines a function that returns the texel, and its older form, which writes it through a pointer.
// `GPUARRAY_PLACE` comes last.
#define CUDA_C_TEXTURE(name, parameters, value)                                                 \
    template <class T>                                                                          \
    static inline T name(cudaTextureObject_t object, CUDA_C_UNPACK parameters, GPUARRAY_PLACE) { \
        const cuda_c::Texture& texture = cuda_c::texture_of(object, file, line);                \
        return cuda_c::texel_as<T>(value);                                                      \
    }                                                                                           \
    template <class T>                                                                          \
    static inline void name(T* result, cudaTextureObject_t object, CUDA_C_UNPACK parameters,    \
                            GPUARRAY_PLACE) {                                                   \
        const cuda_c::Texture& texture = cuda_c::texture_of(object, file, line);                \
        *result = cuda_c::texel_as<T>(value);                                                   \
    }
#define CUDA_C_UNPACK(...) __VA_ARGS__
CUDA_C_TEXTURE(tex1Dfetch, (int x), cuda_c::fetch(texture, x))
CUDA_C_TEXTURE(tex1D, (float x), cuda_c::sample(texture, x))
CUDA_C_TEXTURE(tex2D, (float x, float y), cuda_c::sample(texture, x, y))
CUDA_C_TEXTURE(tex3D, (float x, float y, float z), cuda_c::sample(texture, x, y, z))
CUDA_C_TEXTURE(tex1DLayered, (float x, int layer), cuda_c::sample_layer(texture, x, layer))
CUDA_C_TEXTURE(tex2DLayered, (float x, float y, int layer), cuda_c::sample_layer(texture, x, y, layer))
CUDA_C_TEXTURE(tex2Dgather, (float x, float y, int channel = 0), cuda_c::gather(texture, x, y, channel))
CUDA_C_TEXTURE(texCubemap, (float x, float y, float z), cuda_c::sample_cube(texture, x, y, z, 0))
CUDA_C_TEXTURE(texCubemapLayered, (float x, float y, float z, int layer),
               cuda_c::sample_cube_of(texture, x, y, z, layer))
// Arrays have only one level of detail.
CUDA_C_TEXTURE(tex1DLayeredLod, (float x, int layer, float), cuda_c::sample_layer(texture, x, layer))
CUDA_C_TEXTURE(tex2DLayeredLod, (float x, float y, int layer, float), cuda_c::sample_layer(texture, x, y, layer))
CUDA_C_TEXTURE(tex1DLayeredGrad, (float x, int layer, float, float), cuda_c::sample_layer(texture, x, layer))
CUDA_C_TEXTURE(tex2DLayeredGrad, (float x, float y, int layer, float2, float2),
               cuda_c::sample_layer(texture, x, y, layer))
CUDA_C_TEXTURE(texCubemapLayeredLod, (float x, float y, float z, int layer, float),
               cuda_c::sample_cube_of(texture, x, y, z, layer))
CUDA_C_TEXTURE(texCubemapGrad, (float x, float y, float z, float4, float4),
               cuda_c::sample_cube(texture, x, y, z, 0))
CUDA_C_TEXTURE(texCubemapLayeredGrad, (float x, float y, float z, int layer, float4, float4),
               cuda_c::sample_cube_of(texture, x, y, z, layer))
CUDA_C_TEXTURE(texCubemapLod, (float x, float y, float z, float), cuda_c::sample_cube(texture, x, y, z, 0))
CUDA_C_TEXTURE(tex1DLod, (float x, float), cuda_c::sample(texture, x))
CUDA_C_TEXTURE(tex2DLod, (float x, float y, float), cuda_c::sample(texture, x, y))
CUDA_C_TEXTURE(tex3DLod, (float x, float y, float z, float), cuda_c::sample(texture, x, y, z))
CUDA_C_TEXTURE(tex1DGrad, (float x, float, float), cuda_c::sample(texture, x))
CUDA_C_TEXTURE(tex2DGrad, (float x, float y, float2, float2), cuda_c::sample(texture, x, y))
CUDA_C_TEXTURE(tex3DGrad, (float x, float y, float z, float4, float4), cuda_c::sample(texture, x, y, z))
#undef CUDA_C_TEXTURE
#undef CUDA_C_UNPACK

} // extern "C++"
