// Reads and writes through surface objects. The x coordinate counts bytes, the others texels.
#pragma once

extern "C++" {
namespace cuda_c {

// The address of a value of `bytes` bytes; null if it is outside and the program requests zeros.
static inline unsigned char* surface_at(cudaSurfaceObject_t object, long bytes, int x, int y, int z,
                                        cudaSurfaceBoundaryMode mode, const char* file, unsigned line) {
    const gpuarray_abi::Texture& surface = texture_of(object, file, line);
    const long width = (long)surface.width * surface.channels * channel_bytes(surface.format);
    const long at[] = {x, y, z};
    const long last[] = {width - bytes, (long)surface.height - 1, (long)surface.slices - 1};
    long place[3];
    for (int axis = 0; axis < 3; ++axis) {
        place[axis] = at[axis] < 0 ? 0 : at[axis] > last[axis] ? last[axis] : at[axis];
        if (place[axis] == at[axis] || mode == cudaBoundaryModeClamp) continue;
        if (mode == cudaBoundaryModeZero) return nullptr;
        gpuarray_abi::trap(gpuarray_abi::TRAP, "a surface is read or written outside of its array", file,
                           line);
    }
    if (place[0] < 0 || place[0] % bytes) {
        gpuarray_abi::trap(gpuarray_abi::TRAP,
                           "a surface is read or written at a byte that is no multiple of the value's bytes",
                           file, line);
    }
    return surface.texels + place[2] * surface.slice_pitch + place[1] * surface.row_pitch + place[0];
}

template <class T> static inline T surface_read(const unsigned char* at) {
    T value = {};
    if (at) __builtin_memcpy(&value, at, sizeof value);
    return value;
}

template <class T> static inline void surface_write(unsigned char* at, const T& value) {
    if (at) __builtin_memcpy(at, &value, sizeof value);
}

} // namespace cuda_c

#define CUDA_C_SURFACE(name, parameters, x, y, z)                                               \
    template <class T>                                                                          \
    static inline T name##read(cudaSurfaceObject_t object, CUDA_C_UNPACK parameters,            \
                               cudaSurfaceBoundaryMode mode = cudaBoundaryModeTrap, GPUARRAY_PLACE) { \
        return cuda_c::surface_read<T>(                                                         \
            cuda_c::surface_at(object, sizeof(T), x, y, z, mode, file, line));                  \
    }                                                                                           \
    template <class T>                                                                          \
    static inline void name##read(T* result, cudaSurfaceObject_t object, CUDA_C_UNPACK parameters, \
                                  cudaSurfaceBoundaryMode mode = cudaBoundaryModeTrap,          \
                                  GPUARRAY_PLACE) {                                             \
        *result = cuda_c::surface_read<T>(                                                      \
            cuda_c::surface_at(object, sizeof(T), x, y, z, mode, file, line));                  \
    }                                                                                           \
    template <class T>                                                                          \
    static inline void name##write(T value, cudaSurfaceObject_t object, CUDA_C_UNPACK parameters, \
                                   cudaSurfaceBoundaryMode mode = cudaBoundaryModeTrap,         \
                                   GPUARRAY_PLACE) {                                            \
        cuda_c::surface_write(                                                                  \
            cuda_c::surface_at(object, sizeof(T), x, y, z, mode, file, line), value);           \
    }
#define CUDA_C_UNPACK(...) __VA_ARGS__
CUDA_C_SURFACE(surf1D, (int x), x, 0, 0)
CUDA_C_SURFACE(surf2D, (int x, int y), x, y, 0)
CUDA_C_SURFACE(surf3D, (int x, int y, int z), x, y, z)
CUDA_C_SURFACE(surf1DLayered, (int x, int layer), x, 0, layer)
CUDA_C_SURFACE(surf2DLayered, (int x, int y, int layer), x, y, layer)
CUDA_C_SURFACE(surfCubemap, (int x, int y, int face), x, y, face)
CUDA_C_SURFACE(surfCubemapLayered, (int x, int y, int face), x, y, face)
#undef CUDA_C_SURFACE
#undef CUDA_C_UNPACK

} // extern "C++"
