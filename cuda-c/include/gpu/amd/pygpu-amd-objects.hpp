// Objects that kernels make and destroy, on AMD's devices, whose compilers have `malloc` and `free`.

#ifndef PYGPU_AMD_OBJECTS_HPP
#define PYGPU_AMD_OBJECTS_HPP
#if defined(__HIP__) && !defined(__GPUARRAY_HOST__)

extern "C++" {

__device__ void* operator new(size_t bytes) { return malloc(bytes); }
__device__ void* operator new[](size_t bytes) { return malloc(bytes); }
__device__ void operator delete(void* place) noexcept { free(place); }
__device__ void operator delete[](void* place) noexcept { free(place); }
__device__ void operator delete(void* place, size_t) noexcept { free(place); }
__device__ void operator delete[](void* place, size_t) noexcept { free(place); }
__device__ inline void* operator new(size_t, void* place) noexcept { return place; }
__device__ inline void* operator new[](size_t, void* place) noexcept { return place; }

} // extern "C++"

#endif
#endif
