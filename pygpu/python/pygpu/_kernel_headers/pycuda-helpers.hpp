// The names that PyCUDA's helpers give to elements of textures. Drivers since CUDA 12 have no texture
// references, so that the functions that fetch through them are not here.

#ifndef PYGPU_PYCUDA_HELPERS_HPP
#define PYGPU_PYCUDA_HELPERS_HPP

typedef float fp_tex_float;
typedef int2 fp_tex_double;
typedef uint2 fp_tex_cfloat;
typedef int4 fp_tex_cdouble;

#endif
