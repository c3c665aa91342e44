// Texture and surface references, made of texture and surface objects, which replaced references in current
// compilers. A reference is a variable of the program. The host writes the object's number to it
// (`pygpu/src/texture.rs`, which knows the layout), and the functions below read through that object.

#ifndef PYGPU_TEXTURE_REFERENCES_HPP
#define PYGPU_TEXTURE_REFERENCES_HPP

#include <pygpu-cuda-textures.hpp>

// AMD's compilers have references of these names. Their runtime fills them, except in modules.
#if defined(__HIP__) && !defined(__GPUARRAY_HOST__)
#define texture pygpu_texture
#define surface pygpu_surface
#endif

// On the host, only this shows the compiler that the variable is written elsewhere.
#ifdef __GPUARRAY_HOST__
#define PYGPU_CONSTANT
#define PYGPU_WRITTEN(variable) gpuarray_abi::written(variable)
#else
#define PYGPU_CONSTANT constexpr
#define PYGPU_WRITTEN(variable)
#endif

extern "C++" {
namespace pygpu_textures {

template <int> struct Floats;
template <> struct Floats<1> { typedef float type; };
template <> struct Floats<2> { typedef float2 type; };
template <> struct Floats<4> { typedef float4 type; };

// The type of a channel as `array_format` numbers it, and the channels of a texel.
template <class T_> struct Format;
#define PYGPU_FORMAT(texel, format, count, four)                                                \
    template <> struct Format<texel> {                                                          \
        static const unsigned int channel = format, channels = count;                           \
        typedef Floats<count>::type Fraction;                                                   \
        typedef four Four;                                                                      \
    };
#define PYGPU_FORMATS(name, scalar, format)                                                     \
    PYGPU_FORMAT(scalar, format, 1, name##4)                                                    \
    PYGPU_FORMAT(name##1, format, 1, name##4)                                                   \
    PYGPU_FORMAT(name##2, format, 2, name##4)                                                   \
    PYGPU_FORMAT(name##4, format, 4, name##4)
PYGPU_FORMAT(char, 0x08, 1, char4)
PYGPU_FORMATS(uchar, unsigned char, 0x01)
PYGPU_FORMATS(ushort, unsigned short, 0x02)
PYGPU_FORMATS(uint, unsigned int, 0x03)
PYGPU_FORMATS(char, signed char, 0x08)
PYGPU_FORMATS(short, short, 0x09)
PYGPU_FORMATS(int, int, 0x0A)
PYGPU_FORMATS(float, float, 0x20)
#undef PYGPU_FORMATS
#undef PYGPU_FORMAT

// Results in a kernel: the texel, floats in place of its integers, or one channel of four texels.
template <class T_, cudaTextureReadMode mode> struct Read {
    typedef T_ type;
    typedef typename Format<T_>::Four Gathered;
};
template <class T_> struct Read<T_, cudaReadModeNormalizedFloat> {
    typedef typename Format<T_>::Fraction type;
    typedef float4 Gathered;
};

enum { TEXTURE = 0x58455450, SURFACE = 0x52555350 };

} // namespace pygpu_textures

template <class T_, int type = cudaTextureType1D, cudaTextureReadMode mode = cudaReadModeElementType>
struct texture {
    unsigned long long object;
    unsigned int kind, channel, channels, read_mode, normalized, filter, address;

    PYGPU_CONSTANT texture(int normalized = 0, cudaTextureFilterMode filter = cudaFilterModePoint,
                           cudaTextureAddressMode address = cudaAddressModeClamp)
        : object(0), kind(pygpu_textures::TEXTURE), channel(pygpu_textures::Format<T_>::channel),
          channels(pygpu_textures::Format<T_>::channels), read_mode(mode), normalized(normalized),
          filter(filter), address(address) {
        PYGPU_WRITTEN(this);
    }
};

template <class T_, int type = cudaSurfaceType1D> struct surface {
    unsigned long long object;
    unsigned int kind;

    PYGPU_CONSTANT surface() : object(0), kind(pygpu_textures::SURFACE) { PYGPU_WRITTEN(this); }
};

#define PYGPU_UNPACK(...) __VA_ARGS__
#define PYGPU_TEXTURE(name, dimensions, parameters, arguments)                                  \
    PYGPU_TEXTURE_AS(type, name, dimensions, parameters, arguments)
#define PYGPU_TEXTURE_AS(result, name, dimensions, parameters, arguments)                       \
    template <class T_, cudaTextureReadMode mode>                                                \
    __device__ inline typename pygpu_textures::Read<T_, mode>::result name(                      \
        const texture<T_, dimensions, mode>& reference, PYGPU_UNPACK parameters) {               \
        return name<typename pygpu_textures::Read<T_, mode>::result>(                            \
            (cudaTextureObject_t)reference.object, PYGPU_UNPACK arguments);                      \
    }
PYGPU_TEXTURE(tex1Dfetch, cudaTextureType1D, (int x), (x))
PYGPU_TEXTURE(tex1D, cudaTextureType1D, (float x), (x))
PYGPU_TEXTURE(tex2D, cudaTextureType2D, (float x, float y), (x, y))
PYGPU_TEXTURE(tex3D, cudaTextureType3D, (float x, float y, float z), (x, y, z))
PYGPU_TEXTURE(tex1DLayered, cudaTextureType1DLayered, (float x, int layer), (x, layer))
PYGPU_TEXTURE(tex2DLayered, cudaTextureType2DLayered, (float x, float y, int layer), (x, y, layer))
// Functions without instructions on some of AMD's targets are poisoned there.
#ifndef __gfx90a__
PYGPU_TEXTURE_AS(Gathered, tex2Dgather, cudaTextureType2D, (float x, float y, int channel = 0), (x, y, channel))
PYGPU_TEXTURE(tex1DLod, cudaTextureType1D, (float x, float level), (x, level))
PYGPU_TEXTURE(tex2DLod, cudaTextureType2D, (float x, float y, float level), (x, y, level))
PYGPU_TEXTURE(tex3DLod, cudaTextureType3D, (float x, float y, float z, float level), (x, y, z, level))
PYGPU_TEXTURE(tex1DLayeredLod, cudaTextureType1DLayered, (float x, int layer, float level), (x, layer, level))
PYGPU_TEXTURE(tex2DLayeredLod, cudaTextureType2DLayered, (float x, float y, int layer, float level),
              (x, y, layer, level))
PYGPU_TEXTURE(tex1DGrad, cudaTextureType1D, (float x, float dx, float dy), (x, dx, dy))
PYGPU_TEXTURE(tex2DGrad, cudaTextureType2D, (float x, float y, float2 dx, float2 dy), (x, y, dx, dy))
PYGPU_TEXTURE(tex3DGrad, cudaTextureType3D, (float x, float y, float z, float4 dx, float4 dy), (x, y, z, dx, dy))
PYGPU_TEXTURE(tex1DLayeredGrad, cudaTextureType1DLayered, (float x, int layer, float dx, float dy),
              (x, layer, dx, dy))
PYGPU_TEXTURE(tex2DLayeredGrad, cudaTextureType2DLayered, (float x, float y, int layer, float2 dx, float2 dy),
              (x, y, layer, dx, dy))
#endif
// HIP does not have arrays for these.
#ifndef __HIP__
PYGPU_TEXTURE(texCubemapLod, cudaTextureTypeCubemap, (float x, float y, float z, float level), (x, y, z, level))
PYGPU_TEXTURE(texCubemapLayeredLod, cudaTextureTypeCubemapLayered,
              (float x, float y, float z, int layer, float level), (x, y, z, layer, level))
PYGPU_TEXTURE(texCubemapGrad, cudaTextureTypeCubemap, (float x, float y, float z, float4 dx, float4 dy),
              (x, y, z, dx, dy))
PYGPU_TEXTURE(texCubemapLayeredGrad, cudaTextureTypeCubemapLayered,
              (float x, float y, float z, int layer, float4 dx, float4 dy), (x, y, z, layer, dx, dy))
PYGPU_TEXTURE(texCubemap, cudaTextureTypeCubemap, (float x, float y, float z), (x, y, z))
PYGPU_TEXTURE(texCubemapLayered, cudaTextureTypeCubemapLayered,
              (float x, float y, float z, int layer), (x, y, z, layer))
#endif
#undef PYGPU_TEXTURE
#undef PYGPU_TEXTURE_AS

#define PYGPU_SURFACE(name, dimensions, parameters, arguments)                                  \
    template <class T_>                                                                          \
    __device__ inline void name##read(T_* result, const surface<void, dimensions>& reference,    \
                                      PYGPU_UNPACK parameters,                                  \
                                      cudaSurfaceBoundaryMode mode = cudaBoundaryModeTrap) {    \
        name##read(result, (cudaSurfaceObject_t)reference.object, PYGPU_UNPACK arguments, mode); \
    }                                                                                           \
    template <class T_>                                                                          \
    __device__ inline T_ name##read(const surface<void, dimensions>& reference,                  \
                                   PYGPU_UNPACK parameters,                                     \
                                   cudaSurfaceBoundaryMode mode = cudaBoundaryModeTrap) {       \
        return name##read<T_>((cudaSurfaceObject_t)reference.object, PYGPU_UNPACK arguments, mode); \
    }                                                                                           \
    template <class T_>                                                                          \
    __device__ inline void name##write(T_ value, const surface<void, dimensions>& reference,     \
                                       PYGPU_UNPACK parameters,                                 \
                                       cudaSurfaceBoundaryMode mode = cudaBoundaryModeTrap) {   \
        name##write(value, (cudaSurfaceObject_t)reference.object, PYGPU_UNPACK arguments, mode); \
    }
PYGPU_SURFACE(surf1D, cudaSurfaceType1D, (int x), (x))
PYGPU_SURFACE(surf2D, cudaSurfaceType2D, (int x, int y), (x, y))
PYGPU_SURFACE(surf3D, cudaSurfaceType3D, (int x, int y, int z), (x, y, z))
PYGPU_SURFACE(surf1DLayered, cudaSurfaceType1DLayered, (int x, int layer), (x, layer))
PYGPU_SURFACE(surf2DLayered, cudaSurfaceType2DLayered, (int x, int y, int layer), (x, y, layer))
#ifndef __HIP__
PYGPU_SURFACE(surfCubemap, cudaSurfaceTypeCubemap, (int x, int y, int face), (x, y, face))
PYGPU_SURFACE(surfCubemapLayered, cudaSurfaceTypeCubemapLayered, (int x, int y, int face), (x, y, face))
#endif
#undef PYGPU_SURFACE
#undef PYGPU_UNPACK
#undef PYGPU_WRITTEN
#undef PYGPU_CONSTANT

} // extern "C++"

#endif
