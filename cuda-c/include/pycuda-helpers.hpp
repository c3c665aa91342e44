// Textures and surfaces of elements that they do not have: doubles and complex numbers, stored as
// channels of 32 bits. The functions read and write those of `pygpu-texture-references.hpp`, which is
// there for programs that declare references, on devices that have textures.

#ifndef PYGPU_PYCUDA_HELPERS_HPP
#define PYGPU_PYCUDA_HELPERS_HPP

#include <pycuda-complex.hpp>

typedef float fp_tex_float;
typedef int2 fp_tex_double;
typedef uint2 fp_tex_cfloat;
typedef int4 fp_tex_cdouble;

#ifdef PYGPU_TEXTURE_REFERENCES_HPP

extern "C++" {
namespace pygpu_textures {

// How a number is stored as a texel; most as themselves.
template <class Number> struct Stored {
    typedef Number Texel;
    __device__ static inline Number number(Texel texel) { return texel; }
    __device__ static inline Texel texel(Number number) { return number; }
};
template <> struct Stored<double> {
    typedef fp_tex_double Texel;
    __device__ static inline double number(Texel texel) {
        return __hiloint2double(texel.y, texel.x);
    }
    __device__ static inline Texel texel(double number) {
        return make_int2(__double2loint(number), __double2hiint(number));
    }
};
template <> struct Stored<pycuda::complex<float> > {
    typedef fp_tex_cfloat Texel;
    typedef pycuda::complex<float> Number;
    __device__ static inline Number number(Texel texel) {
        return Number(__uint_as_float(texel.x), __uint_as_float(texel.y));
    }
    __device__ static inline Texel texel(Number number) {
        return make_uint2(__float_as_uint(number.real()), __float_as_uint(number.imag()));
    }
};
template <> struct Stored<pycuda::complex<double> > {
    typedef fp_tex_cdouble Texel;
    typedef pycuda::complex<double> Number;
    __device__ static inline Number number(Texel texel) {
        return Number(__hiloint2double(texel.y, texel.x), __hiloint2double(texel.w, texel.z));
    }
    __device__ static inline Texel texel(Number number) {
        return make_int4(__double2loint(number.real()), __double2hiint(number.real()),
                         __double2loint(number.imag()), __double2hiint(number.imag()));
    }
};

// The number that a texel stores.
template <class Texel> struct NumberOf { typedef Texel Number; };
template <> struct NumberOf<fp_tex_double> { typedef double Number; };
template <> struct NumberOf<fp_tex_cfloat> { typedef pycuda::complex<float> Number; };
template <> struct NumberOf<fp_tex_cdouble> { typedef pycuda::complex<double> Number; };

} // namespace pygpu_textures

#define PYGPU_UNPACK(...) __VA_ARGS__
#define PYGPU_FP_TEXTURE(name, dimensions, parameters, arguments)                               \
    template <class Texel, cudaTextureReadMode mode>                                            \
    __device__ inline typename pygpu_textures::NumberOf<Texel>::Number fp_##name(               \
        const texture<Texel, dimensions, mode>& reference, PYGPU_UNPACK parameters) {           \
        typedef typename pygpu_textures::NumberOf<Texel>::Number Number;                        \
        return pygpu_textures::Stored<Number>::number(name(reference, PYGPU_UNPACK arguments)); \
    }
PYGPU_FP_TEXTURE(tex1Dfetch, cudaTextureType1D, (int i), (i))
PYGPU_FP_TEXTURE(tex2D, cudaTextureType2D, (int i, int j), (i, j))
PYGPU_FP_TEXTURE(tex2DLayered, cudaTextureType2DLayered, (float i, float j, int layer), (i, j, layer))
PYGPU_FP_TEXTURE(tex3D, cudaTextureType3D, (int i, int j, int k), (i, j, k))
#undef PYGPU_FP_TEXTURE

// The coordinate along x counts numbers here, not bytes.
#define PYGPU_FP_SURFACE(name, dimensions)                                                      \
    template <class Number>                                                                     \
    __device__ inline void fp_##name##write(Number number,                                      \
                                            const surface<void, dimensions>& reference, int i,  \
                                            int j, int k, cudaSurfaceBoundaryMode mode) {       \
        typedef pygpu_textures::Stored<Number> Stored;                                          \
        name##write(Stored::texel(number), reference, i * (int)sizeof(typename Stored::Texel), j, \
                    k, mode);                                                                   \
    }                                                                                           \
    template <class Number>                                                                     \
    __device__ inline void fp_##name##read(Number* number,                                      \
                                           const surface<void, dimensions>& reference, int i,   \
                                           int j, int k, cudaSurfaceBoundaryMode mode) {        \
        typedef pygpu_textures::Stored<Number> Stored;                                          \
        typename Stored::Texel texel;                                                           \
        name##read(&texel, reference, i * (int)sizeof texel, j, k, mode);                       \
        *number = Stored::number(texel);                                                        \
    }
PYGPU_FP_SURFACE(surf2DLayered, cudaSurfaceType2DLayered)
PYGPU_FP_SURFACE(surf3D, cudaSurfaceType3D)
#undef PYGPU_FP_SURFACE
#undef PYGPU_UNPACK

} // extern "C++"

#endif

#endif
