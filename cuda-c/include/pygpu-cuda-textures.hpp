// CUDA's names of textures and surfaces for AMD's compilers, whose headers have the functions under
// the same names, over objects of HIP. Little on other devices, whose compilers have the names.
//
// Differences of AMD's hardware are visible. Surfaces have the boundary mode `cudaBoundaryModeZero` only;
// `cudaBoundaryModeTrap` means the same, and a program that names `cudaBoundaryModeClamp` does not compile. A
// value that is read from or written to a surface must have the channels of the array's texels. In programs with
// references, a kernel or parameter that is called `texture` or `surface` gets another name.

#ifndef PYGPU_CUDA_TEXTURES_HPP
#define PYGPU_CUDA_TEXTURES_HPP

#ifndef cudaTextureType1D
#define cudaTextureType1D 0x01
#define cudaTextureType2D 0x02
#define cudaTextureType3D 0x03
#define cudaTextureTypeCubemap 0x0C
#define cudaTextureTypeCubemapLayered 0xFC
#define cudaTextureType1DLayered 0xF1
#define cudaTextureType2DLayered 0xF2
#endif
#ifndef cudaSurfaceType1D
#define cudaSurfaceType1D 0x01
#define cudaSurfaceType2D 0x02
#define cudaSurfaceType3D 0x03
#define cudaSurfaceTypeCubemap 0x0C
#define cudaSurfaceTypeCubemapLayered 0xFC
#define cudaSurfaceType1DLayered 0xF1
#define cudaSurfaceType2DLayered 0xF2
#endif

#if defined(__HIP__) && !defined(__GPUARRAY_HOST__)

#define cudaReadModeElementType hipReadModeElementType
#define cudaReadModeNormalizedFloat hipReadModeNormalizedFloat
#define cudaAddressModeWrap hipAddressModeWrap
#define cudaAddressModeClamp hipAddressModeClamp
#define cudaAddressModeMirror hipAddressModeMirror
#define cudaAddressModeBorder hipAddressModeBorder
#define cudaFilterModePoint hipFilterModePoint
#define cudaFilterModeLinear hipFilterModeLinear

// This target lacks the instructions; some versions of its compiler end the process on them.
#ifdef __gfx90a__
#pragma GCC poison tex1DLod tex2DLod tex3DLod tex1DGrad tex2DGrad tex3DGrad tex2Dgather
#endif

extern "C++" {

typedef hipTextureObject_t cudaTextureObject_t;
typedef hipSurfaceObject_t cudaSurfaceObject_t;
typedef hipTextureReadMode cudaTextureReadMode;
typedef hipTextureAddressMode cudaTextureAddressMode;
typedef hipTextureFilterMode cudaTextureFilterMode;
enum cudaSurfaceBoundaryMode { cudaBoundaryModeZero = 0, cudaBoundaryModeTrap = 2 };

namespace pygpu_surfaces {

typedef unsigned int __attribute__((address_space(4)))* Image;
typedef float4::Native_vec_ Registers;
typedef int2::Native_vec_ Pair;
typedef int4::Native_vec_ Quad;

// The channels of a texel, each in a register of its own: a float, or the bits of an integer.
template <class T_> struct Channels;
#define PYGPU_CHANNELS(texel, channel, number)                                                  \
    template <> struct Channels<texel> {                                                        \
        typedef channel type;                                                                   \
        enum { count = number };                                                                \
    };
#define PYGPU_CHANNELS_OF(name, channel)                                                        \
    PYGPU_CHANNELS(channel, channel, 1)                                                         \
    PYGPU_CHANNELS(name##1, channel, 1)                                                         \
    PYGPU_CHANNELS(name##2, channel, 2)                                                         \
    PYGPU_CHANNELS(name##4, channel, 4)
PYGPU_CHANNELS_OF(char, char)
PYGPU_CHANNELS_OF(uchar, unsigned char)
PYGPU_CHANNELS_OF(short, short)
PYGPU_CHANNELS_OF(ushort, unsigned short)
PYGPU_CHANNELS_OF(int, int)
PYGPU_CHANNELS_OF(uint, unsigned int)
PYGPU_CHANNELS_OF(float, float)
#undef PYGPU_CHANNELS_OF
#undef PYGPU_CHANNELS

__device__ inline void take(float register_, float& channel) { channel = register_; }
template <class Channel> __device__ inline void take(float register_, Channel& channel) {
    channel = (Channel)__float_as_int(register_);
}
__device__ inline float give(float channel) { return channel; }
template <class Channel> __device__ inline float give(Channel channel) {
    return __int_as_float((int)channel);
}

template <class T_> __device__ inline T_ texel_of(Registers registers) {
    typedef typename Channels<T_>::type Channel;
    const float all[4] = {registers.x, registers.y, registers.z, registers.w};
    T_ texel;
    for (int i = 0; i < Channels<T_>::count; ++i) take(all[i], reinterpret_cast<Channel*>(&texel)[i]);
    return texel;
}
template <class T_> __device__ inline Registers registers_of(const T_& texel) {
    typedef typename Channels<T_>::type Channel;
    float all[4] = {0, 0, 0, 0};
    for (int i = 0; i < Channels<T_>::count; ++i) {
        all[i] = give(reinterpret_cast<const Channel*>(&texel)[i]);
    }
    Registers registers = {all[0], all[1], all[2], all[3]};
    return registers;
}

extern "C" {
__device__ Registers __ockl_image_load_1Da(Image, Pair);
__device__ Registers __ockl_image_load_2Da(Image, Quad);
__device__ void __ockl_image_store_1Da(Image, Pair, Registers);
__device__ void __ockl_image_store_2Da(Image, Quad, Registers);
}

} // namespace pygpu_surfaces

// Forms that AMD's headers lack: those that return the value, and those with a boundary mode.
#define PYGPU_UNPACK(...) __VA_ARGS__
#define PYGPU_SURFACE_FORMS(name, parameters, arguments)                                        \
    template <class T_>                                                                         \
    __device__ inline T_ name##read(cudaSurfaceObject_t object, PYGPU_UNPACK parameters,        \
                                   cudaSurfaceBoundaryMode = cudaBoundaryModeTrap) {            \
        T_ texel;                                                                               \
        name##read(&texel, object, PYGPU_UNPACK arguments);                                     \
        return texel;                                                                           \
    }                                                                                           \
    template <class T_>                                                                         \
    __device__ inline void name##read(T_* texel, cudaSurfaceObject_t object,                    \
                                      PYGPU_UNPACK parameters, cudaSurfaceBoundaryMode) {       \
        name##read(texel, object, PYGPU_UNPACK arguments);                                      \
    }                                                                                           \
    template <class T_>                                                                         \
    __device__ inline void name##write(T_ texel, cudaSurfaceObject_t object,                    \
                                       PYGPU_UNPACK parameters, cudaSurfaceBoundaryMode) {      \
        name##write(texel, object, PYGPU_UNPACK arguments);                                     \
    }

// AMD's functions of these names take the layer as a level of detail.
#define surf1DLayeredread pygpu_surf1DLayeredread
#define surf1DLayeredwrite pygpu_surf1DLayeredwrite
#define surf2DLayeredread pygpu_surf2DLayeredread
#define surf2DLayeredwrite pygpu_surf2DLayeredwrite
#define PYGPU_LAYERED_SURFACE(name, form, parameters, place)                                    \
    template <class T_>                                                                         \
    __device__ inline void name##read(T_* texel, cudaSurfaceObject_t object,                    \
                                      PYGPU_UNPACK parameters) {                                \
        *texel = pygpu_surfaces::texel_of<T_>(pygpu_surfaces::__ockl_image_load_##form(         \
            (pygpu_surfaces::Image)object, pygpu_surfaces::PYGPU_UNPACK place));                \
    }                                                                                           \
    template <class T_>                                                                         \
    __device__ inline void name##write(T_ texel, cudaSurfaceObject_t object,                    \
                                       PYGPU_UNPACK parameters) {                               \
        pygpu_surfaces::__ockl_image_store_##form((pygpu_surfaces::Image)object,                \
                                                  pygpu_surfaces::PYGPU_UNPACK place,           \
                                                  pygpu_surfaces::registers_of(texel));         \
    }
PYGPU_LAYERED_SURFACE(surf1DLayered, 1Da, (int x, int layer), (Pair{x / (int)sizeof(T_), layer}))
PYGPU_LAYERED_SURFACE(surf2DLayered, 2Da, (int x, int y, int layer),
                      (Quad{x / (int)sizeof(T_), y, layer, 0}))
#undef PYGPU_LAYERED_SURFACE

PYGPU_SURFACE_FORMS(surf1D, (int x), (x))
PYGPU_SURFACE_FORMS(surf2D, (int x, int y), (x, y))
PYGPU_SURFACE_FORMS(surf3D, (int x, int y, int z), (x, y, z))
PYGPU_SURFACE_FORMS(surf1DLayered, (int x, int layer), (x, layer))
PYGPU_SURFACE_FORMS(surf2DLayered, (int x, int y, int layer), (x, y, layer))
#undef PYGPU_SURFACE_FORMS
#undef PYGPU_UNPACK

} // extern "C++"

#endif

#endif
