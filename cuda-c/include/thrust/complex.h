// Complex numbers for kernels, under Thrust's names: `thrust::complex<float>` and `thrust::complex<double>`
// have the size, the alignment and the layout of CUDA's vectors of two, and of numpy's complex64 and complex128.
// Operands of different types give the type that their parts would have in a sum.

#ifndef PYGPU_THRUST_COMPLEX_H
#define PYGPU_THRUST_COMPLEX_H

#include <pycuda-complex.hpp>

extern "C++" {
namespace thrust {

template <class T_>
struct complex;

namespace pygpu {

// The types that the other operand of a complex number may have.
template <class T_>
struct number {};
#define PYGPU_NUMBER(name)                                                                    \
    template <>                                                                               \
    struct number<name> {                                                                     \
        typedef name type;                                                                    \
    };
PYGPU_NUMBER(bool)
PYGPU_NUMBER(char)
PYGPU_NUMBER(signed char)
PYGPU_NUMBER(unsigned char)
PYGPU_NUMBER(short)
PYGPU_NUMBER(unsigned short)
PYGPU_NUMBER(int)
PYGPU_NUMBER(unsigned int)
PYGPU_NUMBER(long)
PYGPU_NUMBER(unsigned long)
PYGPU_NUMBER(long long)
PYGPU_NUMBER(unsigned long long)
PYGPU_NUMBER(float)
PYGPU_NUMBER(double)
#undef PYGPU_NUMBER

// The type of a part of a result. It is none, and the function no candidate, where an operand is something else.
template <class A_, class B_>
using part = decltype(typename number<A_>::type() + typename number<B_>::type());

} // namespace pygpu

template <class T_>
struct alignas(2 * sizeof(T_)) complex {
    typedef T_ value_type;

    complex() = default;
    complex(const complex&) = default;
    complex& operator=(const complex&) = default;
    __host__ __device__ complex(const T_& re) : re_(re), im_(T_()) {}
    __host__ __device__ complex(const T_& re, const T_& im) : re_(re), im_(im) {}
    template <class U_>
    __host__ __device__ complex(const complex<U_>& z) : re_((T_)z.real()), im_((T_)z.imag()) {}
    __host__ __device__ complex(const ::pycuda::complex<T_>& z) : re_(z._M_re), im_(z._M_im) {}

    __host__ __device__ T_ real() const { return re_; }
    __host__ __device__ T_ imag() const { return im_; }
    __host__ __device__ T_ real() const volatile { return re_; }
    __host__ __device__ T_ imag() const volatile { return im_; }
    __host__ __device__ void real(T_ value) { re_ = value; }
    __host__ __device__ void imag(T_ value) { im_ = value; }
    __host__ __device__ void real(T_ value) volatile { re_ = value; }
    __host__ __device__ void imag(T_ value) volatile { im_ = value; }

    __host__ __device__ complex& operator=(const T_& re) { return *this = complex(re); }
    template <class U_>
    __host__ __device__ complex& operator=(const complex<U_>& z) {
        return *this = complex(z);
    }
#define PYGPU_THRUST_ASSIGNMENT(symbol)                                                       \
    template <class U_>                                                                       \
    __host__ __device__ complex& operator symbol##=(const U_& value) {                        \
        return *this = complex(*this symbol value);                                           \
    }
    PYGPU_THRUST_ASSIGNMENT(+)
    PYGPU_THRUST_ASSIGNMENT(-)
    PYGPU_THRUST_ASSIGNMENT(*)
    PYGPU_THRUST_ASSIGNMENT(/)
#undef PYGPU_THRUST_ASSIGNMENT

  private:
    T_ re_, im_;
};

namespace pygpu {
template <class T_>
__host__ __device__ inline ::pycuda::complex<T_> plain(const complex<T_>& z) {
    return ::pycuda::complex<T_>(z.real(), z.imag());
}
// A complex number, of which only the parts' type may change, and a real one, which stays one.
template <class T_, class U_>
__host__ __device__ inline ::pycuda::complex<T_> as(const complex<U_>& z) {
    return ::pycuda::complex<T_>((T_)z.real(), (T_)z.imag());
}
template <class T_, class U_>
__host__ __device__ inline T_ as(const U_& x) {
    return (T_)x;
}
} // namespace pygpu

template <class T_>
__host__ __device__ inline complex<T_> operator+(const complex<T_>& z) {
    return z;
}
template <class T_>
__host__ __device__ inline complex<T_> operator-(const complex<T_>& z) {
    return complex<T_>(-z.real(), -z.imag());
}

// A function of two numbers of which one or both are complex.
#define PYGPU_THRUST_BINARY(name, result, expression)                                         \
    template <class A_, class B_>                                                             \
    __host__ __device__ inline result name(const complex<A_>& x, const complex<B_>& y) {      \
        typedef pygpu::part<A_, B_> T_;                                                       \
        return expression;                                                                    \
    }                                                                                         \
    template <class A_, class B_>                                                             \
    __host__ __device__ inline result name(const complex<A_>& x, const B_& y) {               \
        typedef pygpu::part<A_, B_> T_;                                                       \
        return expression;                                                                    \
    }                                                                                         \
    template <class A_, class B_>                                                             \
    __host__ __device__ inline result name(const A_& x, const complex<B_>& y) {               \
        typedef pygpu::part<A_, B_> T_;                                                       \
        return expression;                                                                    \
    }
#define PYGPU_THRUST_COMMON complex<pygpu::part<A_, B_>>
#define PYGPU_THRUST_BOOL decltype(pygpu::part<A_, B_>() == 0)
PYGPU_THRUST_BINARY(operator+, PYGPU_THRUST_COMMON, (pygpu::as<T_>(x) + pygpu::as<T_>(y)))
PYGPU_THRUST_BINARY(operator-, PYGPU_THRUST_COMMON, (pygpu::as<T_>(x) - pygpu::as<T_>(y)))
PYGPU_THRUST_BINARY(operator*, PYGPU_THRUST_COMMON, (pygpu::as<T_>(x) * pygpu::as<T_>(y)))
PYGPU_THRUST_BINARY(operator/, PYGPU_THRUST_COMMON, (pygpu::as<T_>(x) / pygpu::as<T_>(y)))
PYGPU_THRUST_BINARY(pow, PYGPU_THRUST_COMMON, ::pycuda::pow(pygpu::as<T_>(x), pygpu::as<T_>(y)))
PYGPU_THRUST_BINARY(operator==, PYGPU_THRUST_BOOL, (pygpu::as<T_>(x) == pygpu::as<T_>(y)))
PYGPU_THRUST_BINARY(operator!=, PYGPU_THRUST_BOOL, (pygpu::as<T_>(x) != pygpu::as<T_>(y)))
#undef PYGPU_THRUST_BINARY
#undef PYGPU_THRUST_COMMON
#undef PYGPU_THRUST_BOOL

#define PYGPU_THRUST_UNARY(name, result)                                                      \
    template <class T_>                                                                       \
    __host__ __device__ inline result name(const complex<T_>& z) {                            \
        return ::pycuda::name(pygpu::plain(z));                                               \
    }
PYGPU_THRUST_UNARY(abs, T_)
PYGPU_THRUST_UNARY(arg, T_)
PYGPU_THRUST_UNARY(norm, T_)
PYGPU_THRUST_UNARY(conj, complex<T_>)
PYGPU_THRUST_UNARY(sqrt, complex<T_>)
PYGPU_THRUST_UNARY(exp, complex<T_>)
PYGPU_THRUST_UNARY(log, complex<T_>)
PYGPU_THRUST_UNARY(log10, complex<T_>)
PYGPU_THRUST_UNARY(sin, complex<T_>)
PYGPU_THRUST_UNARY(cos, complex<T_>)
PYGPU_THRUST_UNARY(tan, complex<T_>)
PYGPU_THRUST_UNARY(sinh, complex<T_>)
PYGPU_THRUST_UNARY(cosh, complex<T_>)
PYGPU_THRUST_UNARY(tanh, complex<T_>)
#undef PYGPU_THRUST_UNARY

template <class A_, class B_>
__host__ __device__ inline complex<pygpu::part<A_, B_>> polar(const A_& radius, const B_& angle) {
    typedef pygpu::part<A_, B_> T_; 
    return ::pycuda::polar((T_)radius, (T_)angle);
}
template <class T_>
__host__ __device__ inline complex<T_> polar(const T_& radius) {
    return complex<T_>(radius);
}
// All infinities are one point, on the positive real axis.
template <class T_>
__host__ __device__ inline complex<T_> proj(const complex<T_>& z) {
    const bool is_real = isinf(z.real());
    if (!is_real && !isinf(z.imag())) {
        return z;
    }
    return complex<T_>(::fabs(is_real ? z.real() : z.imag()), ::copysign((T_)0, z.imag()));
}

// The inverse functions, by W. Kahan's formulas, "Branch Cuts for Complex Elementary Functions" (1987): with the
// roots of 1 - z and 1 + z nothing cancels, and zeros keep their signs on the cuts.
template <class T_>
__host__ __device__ inline complex<T_> asin(const complex<T_>& z) {
    const complex<T_> less = sqrt((T_)1 - z), more = sqrt((T_)1 + z);
    return complex<T_>(::atan2(z.real(), (less * more).real()), ::asinh((conj(less) * more).imag()));
}
template <class T_>
__host__ __device__ inline complex<T_> acos(const complex<T_>& z) {
    const complex<T_> less = sqrt((T_)1 - z), more = sqrt((T_)1 + z);
    return complex<T_>(2 * ::atan2(less.real(), more.real()), ::asinh((conj(more) * less).imag()));
}
template <class T_>
__host__ __device__ inline complex<T_> acosh(const complex<T_>& z) {
    const complex<T_> less = sqrt(z - (T_)1), more = sqrt(z + (T_)1);
    return complex<T_>(::asinh((conj(less) * more).real()), 2 * ::atan2(less.imag(), more.real()));
}
template <class T_>
__host__ __device__ inline complex<T_> asinh(const complex<T_>& z) {
    const complex<T_> turned = asin(complex<T_>(-z.imag(), z.real()));
    return complex<T_>(turned.imag(), -turned.real());
}
template <class T_>
__host__ __device__ inline complex<T_> atanh(const complex<T_>& z) {
    const T_ x = z.real(), y = z.imag(), less = 1 - x, square = y * y;
    return complex<T_>(::log1p(4 * x / (less * less + square)) / 4,
                      ::atan2(2 * y, less * (1 + x) - square) / 2);
}
template <class T_>
__host__ __device__ inline complex<T_> atan(const complex<T_>& z) {
    const complex<T_> turned = atanh(complex<T_>(-z.imag(), z.real()));
    return complex<T_>(turned.imag(), -turned.real());
}

} // namespace thrust
} // extern "C++"

#endif
