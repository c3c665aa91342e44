// Complex numbers for kernels, under PyCUDA's names: `pycuda::complex<float>` and
// `pycuda::complex<double>` have the size and the layout of numpy's complex64 and complex128.
// Numbers of other types convert to the type of the parts in operators.

#ifndef PYGPU_PYCUDA_COMPLEX_HPP
#define PYGPU_PYCUDA_COMPLEX_HPP

extern "C++" {
namespace pycuda {

// A parameter of this type does not take part in the deduction of T.
template <class T_>
struct same_as {
    typedef T_ type;
};

template <class T_>
struct complex {
    typedef T_ value_type;
    typedef complex _Self;

    T_ _M_re;
    T_ _M_im;

    __device__ complex(T_ re = 0, T_ im = 0) : _M_re(re), _M_im(im) {}
    __device__ complex(const complex& z) : _M_re(z._M_re), _M_im(z._M_im) {}
    __device__ complex(const volatile complex& z) : _M_re(z._M_re), _M_im(z._M_im) {}
    template <class U_>
    __device__ complex(const complex<U_>& z) : _M_re((T_)z._M_re), _M_im((T_)z._M_im) {}

    __device__ T_ real() const { return _M_re; }
    __device__ T_ imag() const { return _M_im; }
    __device__ void real(T_ value) { _M_re = value; }
    __device__ void imag(T_ value) { _M_im = value; }

    __device__ complex& operator=(const complex& z) {
        _M_re = z._M_re;
        _M_im = z._M_im;
        return *this;
    }
    __device__ volatile complex& operator=(const complex& z) volatile {
        _M_re = z._M_re;
        _M_im = z._M_im;
        return *this;
    }
    __device__ complex& operator+=(const complex& z) { return *this = *this + z; }
    __device__ complex& operator-=(const complex& z) { return *this = *this - z; }
    __device__ complex& operator*=(const complex& z) { return *this = *this * z; }
    __device__ complex& operator/=(const complex& z) { return *this = *this / z; }
    __device__ complex& operator+=(const T_& x) { return *this = *this + x; }
    __device__ complex& operator-=(const T_& x) { return *this = *this - x; }
    __device__ complex& operator*=(const T_& x) { return *this = *this * x; }
    __device__ complex& operator/=(const T_& x) { return *this = *this / x; }
};

template <class T_>
__device__ inline complex<T_> operator+(const complex<T_>& z) {
    return z;
}
template <class T_>
__device__ inline complex<T_> operator-(const complex<T_>& z) {
    return complex<T_>(-z._M_re, -z._M_im);
}

template <class T_>
__device__ inline complex<T_> pygpu_add(const complex<T_>& x, const complex<T_>& y) {
    return complex<T_>(x._M_re + y._M_re, x._M_im + y._M_im);
}
template <class T_>
__device__ inline complex<T_> pygpu_subtract(const complex<T_>& x, const complex<T_>& y) {
    return complex<T_>(x._M_re - y._M_re, x._M_im - y._M_im);
}
template <class T_>
__device__ inline complex<T_> pygpu_multiply(const complex<T_>& x, const complex<T_>& y) {
    return complex<T_>(x._M_re * y._M_re - x._M_im * y._M_im,
                      x._M_re * y._M_im + x._M_im * y._M_re);
}
// The larger part of the divisor is divided by first, so that nothing overflows on the way.
template <class T_>
__device__ inline complex<T_> pygpu_divide(const complex<T_>& x, const complex<T_>& y) {
    if (::fabs(y._M_re) >= ::fabs(y._M_im)) {
        const T_ ratio = y._M_im / y._M_re;
        const T_ scale = y._M_re + y._M_im * ratio;
        return complex<T_>((x._M_re + x._M_im * ratio) / scale,
                          (x._M_im - x._M_re * ratio) / scale);
    }
    const T_ ratio = y._M_re / y._M_im;
    const T_ scale = y._M_re * ratio + y._M_im;
    return complex<T_>((x._M_re * ratio + x._M_im) / scale, (x._M_im * ratio - x._M_re) / scale);
}

// Each operator for two complex numbers, which may be volatile, and for a complex and a real one.
#define PYGPU_COMPLEX_OPERATOR(symbol, function, with_right, with_left)                          \
    template <class T_>                                                                           \
    __device__ inline complex<T_> operator symbol(const complex<T_>& x, const complex<T_>& y) {     \
        return function(x, y);                                                                   \
    }                                                                                            \
    template <class T_>                                                                           \
    __device__ inline complex<T_> operator symbol(const volatile complex<T_>& x,                   \
                                                 const volatile complex<T_>& y) {                 \
        return function(complex<T_>(x), complex<T_>(y));                                           \
    }                                                                                            \
    template <class T_>                                                                           \
    __device__ inline complex<T_> operator symbol(const complex<T_>& x,                            \
                                                 const typename same_as<T_>::type& y) {           \
        return with_right;                                                                       \
    }                                                                                            \
    template <class T_>                                                                           \
    __device__ inline complex<T_> operator symbol(const typename same_as<T_>::type& x,             \
                                                 const complex<T_>& y) {                          \
        return with_left;                                                                        \
    }
PYGPU_COMPLEX_OPERATOR(+, pygpu_add, complex<T_>(x._M_re + y, x._M_im),
                       complex<T_>(x + y._M_re, y._M_im))
PYGPU_COMPLEX_OPERATOR(-, pygpu_subtract, complex<T_>(x._M_re - y, x._M_im),
                       complex<T_>(x - y._M_re, -y._M_im))
PYGPU_COMPLEX_OPERATOR(*, pygpu_multiply, complex<T_>(x._M_re * y, x._M_im * y),
                       complex<T_>(x * y._M_re, x * y._M_im))
PYGPU_COMPLEX_OPERATOR(/, pygpu_divide, complex<T_>(x._M_re / y, x._M_im / y),
                       pygpu_divide(complex<T_>(x), y))
#undef PYGPU_COMPLEX_OPERATOR

template <class T_>
__device__ inline bool operator==(const complex<T_>& x, const complex<T_>& y) {
    return x._M_re == y._M_re && x._M_im == y._M_im;
}
template <class T_>
__device__ inline bool operator==(const complex<T_>& x, const typename same_as<T_>::type& y) {
    return x._M_re == y && x._M_im == 0;
}
template <class T_>
__device__ inline bool operator==(const typename same_as<T_>::type& x, const complex<T_>& y) {
    return x == y._M_re && 0 == y._M_im;
}
template <class T_>
__device__ inline bool operator!=(const complex<T_>& x, const complex<T_>& y) {
    return !(x == y);
}
template <class T_>
__device__ inline bool operator!=(const complex<T_>& x, const typename same_as<T_>::type& y) {
    return !(x == y);
}
template <class T_>
__device__ inline bool operator!=(const typename same_as<T_>::type& x, const complex<T_>& y) {
    return !(x == y);
}

template <class T_>
__device__ inline T_ real(const complex<T_>& z) {
    return z._M_re;
}
template <class T_>
__device__ inline T_ imag(const complex<T_>& z) {
    return z._M_im;
}
template <class T_>
__device__ inline T_ abs(const complex<T_>& z) {
    return ::hypot(z._M_re, z._M_im);
}
template <class T_>
__device__ inline T_ arg(const complex<T_>& z) {
    return ::atan2(z._M_im, z._M_re);
}
// The square of the absolute value.
template <class T_>
__device__ inline T_ norm(const complex<T_>& z) {
    return z._M_re * z._M_re + z._M_im * z._M_im;
}
template <class T_>
__device__ inline complex<T_> conj(const complex<T_>& z) {
    return complex<T_>(z._M_re, -z._M_im);
}
__device__ inline float real(float x) { return x; }
__device__ inline double real(double x) { return x; }
__device__ inline float imag(float) { return 0; }
__device__ inline double imag(double) { return 0; }
__device__ inline float conj(float x) { return x; }
__device__ inline double conj(double x) { return x; }

template <class T_>
__device__ inline complex<T_> polar(const T_& radius, const T_& angle) {
    return complex<T_>(radius * ::cos(angle), radius * ::sin(angle));
}
template <class T_>
__device__ inline complex<T_> polar(const T_& radius) {
    return complex<T_>(radius);
}

// The root with a non-negative real part. Its imaginary part has the sign of the imaginary part of `z`.
template <class T_>
__device__ inline complex<T_> sqrt(const complex<T_>& z) {
    const T_ size = abs(z);
    if (size == 0) {
        return complex<T_>(0, z._M_im);
    }
    const T_ half = ::sqrt((size + ::fabs(z._M_re)) / 2);
    const T_ other = ::fabs(z._M_im) / (2 * half);
    return z._M_re >= 0 ? complex<T_>(half, ::copysign(other, z._M_im))
                        : complex<T_>(other, ::copysign(half, z._M_im));
}
template <class T_>
__device__ inline complex<T_> exp(const complex<T_>& z) {
    return polar((T_)::exp(z._M_re), z._M_im);
}
template <class T_>
__device__ inline complex<T_> log(const complex<T_>& z) {
    return complex<T_>(::log(abs(z)), arg(z));
}
template <class T_>
__device__ inline complex<T_> log10(const complex<T_>& z) {
    const T_ scale = (T_)0.43429448190325182765;
    return complex<T_>(::log10(abs(z)), arg(z) * scale);
}

template <class T_>
__device__ inline complex<T_> pow(const complex<T_>& z, int exponent) {
    complex<T_> result(1), square = z;
    for (unsigned rest = exponent < 0 ? 0u - (unsigned)exponent : (unsigned)exponent; rest != 0;
         rest /= 2) {
        if (rest % 2 != 0) {
            result *= square;
        }
        square *= square;
    }
    return exponent < 0 ? (T_)1 / result : result;
}
template <class T_>
__device__ inline complex<T_> pow(const complex<T_>& z, const complex<T_>& exponent) {
    if (z == (T_)0) {
        return complex<T_>(exponent == (T_)0 ? 1 : 0);
    }
    return exp(exponent * log(z));
}
template <class T_>
__device__ inline complex<T_> pow(const complex<T_>& z, const T_& exponent) {
    if (z == (T_)0) {
        return complex<T_>(exponent == 0 ? 1 : 0);
    }
    return polar((T_)::pow(abs(z), exponent), exponent * arg(z));
}
template <class T_>
__device__ inline complex<T_> pow(const T_& x, const complex<T_>& exponent) {
    return pow(complex<T_>(x), exponent);
}

template <class T_>
__device__ inline complex<T_> sin(const complex<T_>& z) {
    return complex<T_>(::sin(z._M_re) * ::cosh(z._M_im), ::cos(z._M_re) * ::sinh(z._M_im));
}
template <class T_>
__device__ inline complex<T_> cos(const complex<T_>& z) {
    return complex<T_>(::cos(z._M_re) * ::cosh(z._M_im), -::sin(z._M_re) * ::sinh(z._M_im));
}
template <class T_>
__device__ inline complex<T_> sinh(const complex<T_>& z) {
    return complex<T_>(::sinh(z._M_re) * ::cos(z._M_im), ::cosh(z._M_re) * ::sin(z._M_im));
}
template <class T_>
__device__ inline complex<T_> cosh(const complex<T_>& z) {
    return complex<T_>(::cosh(z._M_re) * ::cos(z._M_im), ::sinh(z._M_re) * ::sin(z._M_im));
}
// Far from zero the quotient of two infinities is the sign.
template <class T_>
__device__ inline complex<T_> tanh(const complex<T_>& z) {
    const T_ rate = 2 * z._M_re;
    if (::fabs(rate) > 40) {
        return complex<T_>(::copysign((T_)1, rate), 0);
    }
    const T_ scale = ::cosh(rate) + ::cos(2 * z._M_im);
    return complex<T_>(::sinh(rate) / scale, ::sin(2 * z._M_im) / scale);
}
template <class T_>
__device__ inline complex<T_> tan(const complex<T_>& z) {
    const complex<T_> turned = tanh(complex<T_>(-z._M_im, z._M_re));
    return complex<T_>(turned._M_im, -turned._M_re);
}

} // namespace pycuda
} // extern "C++"

#endif
