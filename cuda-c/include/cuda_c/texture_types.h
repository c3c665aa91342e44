// The types of textures and surfaces, and conversions of texels to a program's types.
#pragma once

extern "C++" {

// Addresses of a `gpuarray_abi::Texture`.
typedef unsigned long long cudaTextureObject_t;
typedef unsigned long long cudaSurfaceObject_t;

enum cudaTextureAddressMode {
    cudaAddressModeWrap = 0,
    cudaAddressModeClamp = 1,
    cudaAddressModeMirror = 2,
    cudaAddressModeBorder = 3
};
enum cudaTextureFilterMode { cudaFilterModePoint = 0, cudaFilterModeLinear = 1 };
enum cudaTextureReadMode { cudaReadModeElementType = 0, cudaReadModeNormalizedFloat = 1 };
enum cudaSurfaceBoundaryMode {
    cudaBoundaryModeZero = 0,
    cudaBoundaryModeClamp = 1,
    cudaBoundaryModeTrap = 2
};

#define cudaTextureType1D 0x01
#define cudaTextureType2D 0x02
#define cudaTextureType3D 0x03
#define cudaTextureTypeCubemap 0x0C
#define cudaTextureType1DLayered 0xF1
#define cudaTextureType2DLayered 0xF2
#define cudaTextureTypeCubemapLayered 0xFC
#define cudaSurfaceType1D 0x01
#define cudaSurfaceType2D 0x02
#define cudaSurfaceType3D 0x03
#define cudaSurfaceTypeCubemap 0x0C
#define cudaSurfaceType1DLayered 0xF1
#define cudaSurfaceType2DLayered 0xF2
#define cudaSurfaceTypeCubemapLayered 0xFC

namespace cuda_c {

// A texel in registers: 32 bits per channel, holding a float or an integer.
struct Texel {
    unsigned channels[4];
};

// The channels of a program's type.
template <class T> struct ChannelsOf;
#define CUDA_C_CHANNELS(type, channel, number)                                                  \
    template <> struct ChannelsOf<type> {                                                       \
        typedef channel Channel;                                                                \
        static constexpr int count = number;                                                    \
    };
#define CUDA_C_CHANNELS_OF(name, channel)                                                       \
    CUDA_C_CHANNELS(channel, channel, 1)                                                        \
    CUDA_C_CHANNELS(name##1, channel, 1)                                                        \
    CUDA_C_CHANNELS(name##2, channel, 2)                                                        \
    CUDA_C_CHANNELS(name##4, channel, 4)
CUDA_C_CHANNELS(char, char, 1)
CUDA_C_CHANNELS_OF(char, signed char)
CUDA_C_CHANNELS_OF(uchar, unsigned char)
CUDA_C_CHANNELS_OF(short, short)
CUDA_C_CHANNELS_OF(ushort, unsigned short)
CUDA_C_CHANNELS_OF(int, int)
CUDA_C_CHANNELS_OF(uint, unsigned int)
CUDA_C_CHANNELS_OF(float, float)
#undef CUDA_C_CHANNELS_OF
#undef CUDA_C_CHANNELS

// Converts a register to a channel of a program's type: the lowest bits of an integer, or the bits of a
// float.
template <class Channel> static inline Channel channel_of(unsigned bits32) { return (Channel)bits32; }
template <> inline float channel_of<float>(unsigned bits32) { return bits<float>(bits32); }

template <class T> static inline T texel_as(const Texel& texel) {
    typedef typename ChannelsOf<T>::Channel Channel;
    Channel channels[ChannelsOf<T>::count];
    for (int c = 0; c < ChannelsOf<T>::count; ++c) channels[c] = channel_of<Channel>(texel.channels[c]);
    T value;
    __builtin_memcpy(&value, channels, sizeof value);
    return value;
}

// The texture or surface that an object refers to.
static inline const gpuarray_abi::Texture& texture_of(unsigned long long object, const char* file,
                                                      unsigned line) {
    if (__builtin_expect(!object, 0)) {
        gpuarray_abi::trap(gpuarray_abi::TRAP,
                           "a texture or surface is read or written to which nothing is bound", file, line);
    }
    return *(const gpuarray_abi::Texture*)object;
}

} // namespace cuda_c
} // extern "C++"
