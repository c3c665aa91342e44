// CUDA's vector types as plain structures for AMD's compilers, whose own types are classes. AMD's classes have
// operators, which make a program's operators ambiguous, and constructors, which refuse an initializer with
// fewer values than members. After this header the names of the types and of their functions are macros. The
// types convert to AMD's; texture and surface functions take and return them. With PYGPU_WHOLE_PLACES,
// `threadIdx`, `blockIdx`, `blockDim` and `gridDim` are of type `uint3`.
//
// Layouts: CUDA C++ Programming Guide, "Built-in Vector Types"; no alignment is over 16 bytes.

#ifndef PYGPU_CUDA_VECTORS_HPP
#define PYGPU_CUDA_VECTORS_HPP

// The fake driver has plain structures.
#if defined(__HIP__) && !defined(__GPUARRAY_HOST__)

extern "C++" {
namespace pygpu_vectors {

// AMD's type for one of these types, and the type itself; both are absent for other types.
template <class T_> struct Of {};

template <class T_> __device__ inline T_ made(const typename Of<T_>::Hip& from) {
    static_assert(sizeof(T_) == sizeof(from), "the channels of both");
    T_ value;
    __builtin_memcpy(&value, &from, sizeof(T_));
    return value;
}

} // namespace pygpu_vectors

#define PYGPU_OF(name, values)                                                                  \
    __device__ operator ::name() const { return make_##name values; }                           \
    };                                                                                          \
    namespace pygpu_vectors {                                                                   \
    template <> struct Of<pygpu_##name> {                                                       \
        typedef ::name Hip;                                                                     \
        typedef pygpu_##name Own;                                                               \
    };                                                                                          \
    }                                                                                           \
    static __device__ inline pygpu_##name __ldg(const pygpu_##name* from) { return *from; }     \
    static __device__ __host__ inline pygpu_##name pygpu_make_##name
#define PYGPU_VECTORS(name, type, alignment_of_2, alignment_of_4, of_3)                         \
    struct pygpu_##name##1 {                                                                    \
        type x;                                                                                 \
        PYGPU_OF(name##1, (x))(type x) { return {x}; }                                          \
    struct alignas(alignment_of_2) pygpu_##name##2 {                                            \
        type x, y;                                                                              \
        PYGPU_OF(name##2, (x, y))(type x, type y) { return {x, y}; }                            \
    struct pygpu_##name##3 {                                                                    \
        type x, y, z;                                                                           \
        of_3                                                                                    \
        PYGPU_OF(name##3, (x, y, z))(type x, type y, type z) { return {x, y, z}; }              \
    struct alignas(alignment_of_4) pygpu_##name##4 {                                            \
        type x, y, z, w;                                                                        \
        PYGPU_OF(name##4, (x, y, z, w))(type x, type y, type z, type w) { return {x, y, z, w}; }
PYGPU_VECTORS(char, signed char, 2, 4, )
PYGPU_VECTORS(uchar, unsigned char, 2, 4, )
PYGPU_VECTORS(short, short, 4, 8, )
PYGPU_VECTORS(ushort, unsigned short, 4, 8, )
PYGPU_VECTORS(int, int, 8, 16, )
PYGPU_VECTORS(uint, unsigned int, 8, 16, __device__ operator dim3() const { return dim3(x, y, z); })
PYGPU_VECTORS(long, long, 16, 16, )
PYGPU_VECTORS(ulong, unsigned long, 16, 16, )
PYGPU_VECTORS(longlong, long long, 16, 16, )
PYGPU_VECTORS(ulonglong, unsigned long long, 16, 16, )
PYGPU_VECTORS(float, float, 8, 16, )
PYGPU_VECTORS(double, double, 16, 16, )
#undef PYGPU_VECTORS
#undef PYGPU_OF

namespace pygpu_vectors {
#define PYGPU_PLACE(name, from)                                                                 \
    __device__ inline pygpu_uint3 name() { return {from.x, from.y, from.z}; }
PYGPU_PLACE(thread_idx, threadIdx)
PYGPU_PLACE(block_idx, blockIdx)
PYGPU_PLACE(block_dim, blockDim)
PYGPU_PLACE(grid_dim, gridDim)
#undef PYGPU_PLACE
} // namespace pygpu_vectors

__device__ inline pygpu_float2 pygpu_half22float2(__half2 pair) {
    return {__low2float(pair), __high2float(pair)};
}

// This follows `pygpu-cuda-textures.hpp`.
#ifdef PYGPU_CUDA_TEXTURES_HPP

#define PYGPU_UNPACK(...) __VA_ARGS__
#define PYGPU_TEXTURE(name, parameters, arguments)                                              \
    template <class T_>                                                                         \
    __device__ inline typename pygpu_vectors::Of<T_>::Own name(cudaTextureObject_t object,      \
                                                               PYGPU_UNPACK parameters) {       \
        return pygpu_vectors::made<T_>(                                                         \
            name<typename pygpu_vectors::Of<T_>::Hip>(object, PYGPU_UNPACK arguments));         \
    }                                                                                           \
    template <class T_, class = typename pygpu_vectors::Of<T_>::Own>                            \
    __device__ inline void name(T_* value, cudaTextureObject_t object, PYGPU_UNPACK parameters) { \
        *value = name<T_>(object, PYGPU_UNPACK arguments);                                      \
    }
PYGPU_TEXTURE(tex1Dfetch, (int x), (x))
PYGPU_TEXTURE(tex1D, (float x), (x))
PYGPU_TEXTURE(tex2D, (float x, float y), (x, y))
PYGPU_TEXTURE(tex3D, (float x, float y, float z), (x, y, z))
PYGPU_TEXTURE(tex1DLayered, (float x, int layer), (x, layer))
PYGPU_TEXTURE(tex2DLayered, (float x, float y, int layer), (x, y, layer))
#ifndef __gfx90a__
PYGPU_TEXTURE(tex2Dgather, (float x, float y, int channel = 0), (x, y, channel))
PYGPU_TEXTURE(tex1DLod, (float x, float level), (x, level))
PYGPU_TEXTURE(tex2DLod, (float x, float y, float level), (x, y, level))
PYGPU_TEXTURE(tex3DLod, (float x, float y, float z, float level), (x, y, z, level))
PYGPU_TEXTURE(tex1DLayeredLod, (float x, int layer, float level), (x, layer, level))
PYGPU_TEXTURE(tex2DLayeredLod, (float x, float y, int layer, float level), (x, y, layer, level))
PYGPU_TEXTURE(tex1DGrad, (float x, float dx, float dy), (x, dx, dy))
PYGPU_TEXTURE(tex2DGrad, (float x, float y, float2 dx, float2 dy), (x, y, dx, dy))
PYGPU_TEXTURE(tex3DGrad, (float x, float y, float z, float4 dx, float4 dy), (x, y, z, dx, dy))
PYGPU_TEXTURE(tex1DLayeredGrad, (float x, int layer, float dx, float dy), (x, layer, dx, dy))
PYGPU_TEXTURE(tex2DLayeredGrad, (float x, float y, int layer, float2 dx, float2 dy),
              (x, y, layer, dx, dy))
#endif
#undef PYGPU_TEXTURE

#define PYGPU_SURFACE(name, parameters, arguments)                                              \
    template <class T_, class = typename pygpu_vectors::Of<T_>::Own>                            \
    __device__ inline void name##read(T_* value, cudaSurfaceObject_t object,                    \
                                      PYGPU_UNPACK parameters) {                                \
        typename pygpu_vectors::Of<T_>::Hip read;                                               \
        name##read(&read, object, PYGPU_UNPACK arguments);                                      \
        *value = pygpu_vectors::made<T_>(read);                                                 \
    }                                                                                           \
    template <class T_, class = typename pygpu_vectors::Of<T_>::Own>                            \
    __device__ inline void name##write(T_ value, cudaSurfaceObject_t object,                    \
                                       PYGPU_UNPACK parameters) {                               \
        const typename pygpu_vectors::Of<T_>::Hip written = value;                              \
        name##write(written, object, PYGPU_UNPACK arguments);                                   \
    }
PYGPU_SURFACE(surf1D, (int x), (x))
PYGPU_SURFACE(surf2D, (int x, int y), (x, y))
PYGPU_SURFACE(surf3D, (int x, int y, int z), (x, y, z))
#undef PYGPU_SURFACE
#undef PYGPU_UNPACK

// Layered surfaces are this package's own.
namespace pygpu_surfaces {
#define PYGPU_CHANNELS(name)                                                                    \
    template <> struct Channels<pygpu_##name##1> : Channels<::name##1> {};                      \
    template <> struct Channels<pygpu_##name##2> : Channels<::name##2> {};                      \
    template <> struct Channels<pygpu_##name##4> : Channels<::name##4> {};
PYGPU_CHANNELS(char)
PYGPU_CHANNELS(uchar)
PYGPU_CHANNELS(short)
PYGPU_CHANNELS(ushort)
PYGPU_CHANNELS(int)
PYGPU_CHANNELS(uint)
PYGPU_CHANNELS(float)
#undef PYGPU_CHANNELS
} // namespace pygpu_surfaces

#endif

} // extern "C++"

#define char1 pygpu_char1
#define char2 pygpu_char2
#define char3 pygpu_char3
#define char4 pygpu_char4
#define uchar1 pygpu_uchar1
#define uchar2 pygpu_uchar2
#define uchar3 pygpu_uchar3
#define uchar4 pygpu_uchar4
#define short1 pygpu_short1
#define short2 pygpu_short2
#define short3 pygpu_short3
#define short4 pygpu_short4
#define ushort1 pygpu_ushort1
#define ushort2 pygpu_ushort2
#define ushort3 pygpu_ushort3
#define ushort4 pygpu_ushort4
#define int1 pygpu_int1
#define int2 pygpu_int2
#define int3 pygpu_int3
#define int4 pygpu_int4
#define uint1 pygpu_uint1
#define uint2 pygpu_uint2
#define uint3 pygpu_uint3
#define uint4 pygpu_uint4
#define long1 pygpu_long1
#define long2 pygpu_long2
#define long3 pygpu_long3
#define long4 pygpu_long4
#define ulong1 pygpu_ulong1
#define ulong2 pygpu_ulong2
#define ulong3 pygpu_ulong3
#define ulong4 pygpu_ulong4
#define longlong1 pygpu_longlong1
#define longlong2 pygpu_longlong2
#define longlong3 pygpu_longlong3
#define longlong4 pygpu_longlong4
#define ulonglong1 pygpu_ulonglong1
#define ulonglong2 pygpu_ulonglong2
#define ulonglong3 pygpu_ulonglong3
#define ulonglong4 pygpu_ulonglong4
#define float1 pygpu_float1
#define float2 pygpu_float2
#define float3 pygpu_float3
#define float4 pygpu_float4
#define double1 pygpu_double1
#define double2 pygpu_double2
#define double3 pygpu_double3
#define double4 pygpu_double4
#define make_char1 pygpu_make_char1
#define make_char2 pygpu_make_char2
#define make_char3 pygpu_make_char3
#define make_char4 pygpu_make_char4
#define make_uchar1 pygpu_make_uchar1
#define make_uchar2 pygpu_make_uchar2
#define make_uchar3 pygpu_make_uchar3
#define make_uchar4 pygpu_make_uchar4
#define make_short1 pygpu_make_short1
#define make_short2 pygpu_make_short2
#define make_short3 pygpu_make_short3
#define make_short4 pygpu_make_short4
#define make_ushort1 pygpu_make_ushort1
#define make_ushort2 pygpu_make_ushort2
#define make_ushort3 pygpu_make_ushort3
#define make_ushort4 pygpu_make_ushort4
#define make_int1 pygpu_make_int1
#define make_int2 pygpu_make_int2
#define make_int3 pygpu_make_int3
#define make_int4 pygpu_make_int4
#define make_uint1 pygpu_make_uint1
#define make_uint2 pygpu_make_uint2
#define make_uint3 pygpu_make_uint3
#define make_uint4 pygpu_make_uint4
#define make_long1 pygpu_make_long1
#define make_long2 pygpu_make_long2
#define make_long3 pygpu_make_long3
#define make_long4 pygpu_make_long4
#define make_ulong1 pygpu_make_ulong1
#define make_ulong2 pygpu_make_ulong2
#define make_ulong3 pygpu_make_ulong3
#define make_ulong4 pygpu_make_ulong4
#define make_longlong1 pygpu_make_longlong1
#define make_longlong2 pygpu_make_longlong2
#define make_longlong3 pygpu_make_longlong3
#define make_longlong4 pygpu_make_longlong4
#define make_ulonglong1 pygpu_make_ulonglong1
#define make_ulonglong2 pygpu_make_ulonglong2
#define make_ulonglong3 pygpu_make_ulonglong3
#define make_ulonglong4 pygpu_make_ulonglong4
#define make_float1 pygpu_make_float1
#define make_float2 pygpu_make_float2
#define make_float3 pygpu_make_float3
#define make_float4 pygpu_make_float4
#define make_double1 pygpu_make_double1
#define make_double2 pygpu_make_double2
#define make_double3 pygpu_make_double3
#define make_double4 pygpu_make_double4
#define __half22float2 pygpu_half22float2
// For programs that use these as a whole.
#ifdef PYGPU_WHOLE_PLACES
#define threadIdx (pygpu_vectors::thread_idx())
#define blockIdx (pygpu_vectors::block_idx())
#define blockDim (pygpu_vectors::block_dim())
#define gridDim (pygpu_vectors::grid_dim())
#endif

#endif
#endif
