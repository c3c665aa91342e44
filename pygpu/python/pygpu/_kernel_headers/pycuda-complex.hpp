// Complex numbers for kernels, under PyCUDA's names: `pycuda::complex<float>` and
// `pycuda::complex<double>` have the size and the layout of numpy's complex64 and complex128.
// Numbers of other types convert to the type of the parts in operators.

#ifndef PYGPU_PYCUDA_COMPLEX_HPP
#define PYGPU_PYCUDA_COMPLEX_HPP

extern "C++" {
namespace pycuda {

// A parameter of this type takes no part in the deduction of T.
template <class T>
struct same_as {
    typedef T type;
};

template <class T>
struct complex {
    typedef T value_type;
    typedef complex _Self;

    T _M_re;
    T _M_im;

    __device__ complex(T re = 0, T im = 0) : _M_re(re), _M_im(im) {}
    __device__ complex(const complex& z) : _M_re(z._M_re), _M_im(z._M_im) {}
    __device__ complex(const volatile complex& z) : _M_re(z._M_re), _M_im(z._M_im) {}
    template <class U>
    __device__ complex(const complex<U>& z) : _M_re((T)z._M_re), _M_im((T)z._M_im) {}

    __device__ T real() const { return _M_re; }
    __device__ T imag() const { return _M_im; }
    __device__ void real(T value) { _M_re = value; }
    __device__ void imag(T value) { _M_im = value; }

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
    __device__ complex& operator+=(const T& x) { return *this = *this + x; }
    __device__ complex& operator-=(const T& x) { return *this = *this - x; }
    __device__ complex& operator*=(const T& x) { return *this = *this * x; }
    __device__ complex& operator/=(const T& x) { return *this = *this / x; }
};

template <class T>
__device__ inline complex<T> operator+(const complex<T>& z) {
    return z;
}
template <class T>
__device__ inline complex<T> operator-(const complex<T>& z) {
    return complex<T>(-z._M_re, -z._M_im);
}

template <class T>
__device__ inline complex<T> pygpu_add(const complex<T>& x, const complex<T>& y) {
    return complex<T>(x._M_re + y._M_re, x._M_im + y._M_im);
}
template <class T>
__device__ inline complex<T> pygpu_subtract(const complex<T>& x, const complex<T>& y) {
    return complex<T>(x._M_re - y._M_re, x._M_im - y._M_im);
}
template <class T>
__device__ inline complex<T> pygpu_multiply(const complex<T>& x, const complex<T>& y) {
    return complex<T>(x._M_re * y._M_re - x._M_im * y._M_im,
                      x._M_re * y._M_im + x._M_im * y._M_re);
}
// The larger part of the divisor is divided by first, so that nothing overflows on the way.
template <class T>
__device__ inline complex<T> pygpu_divide(const complex<T>& x, const complex<T>& y) {
    if (::fabs(y._M_re) >= ::fabs(y._M_im)) {
        const T ratio = y._M_im / y._M_re;
        const T scale = y._M_re + y._M_im * ratio;
        return complex<T>((x._M_re + x._M_im * ratio) / scale,
                          (x._M_im - x._M_re * ratio) / scale);
    }
    const T ratio = y._M_re / y._M_im;
    const T scale = y._M_re * ratio + y._M_im;
    return complex<T>((x._M_re * ratio + x._M_im) / scale, (x._M_im * ratio - x._M_re) / scale);
}

// Each operator for two complex numbers, which may be volatile, and for a complex and a real one.
#define PYGPU_COMPLEX_OPERATOR(symbol, function, with_right, with_left)                          \
    template <class T>                                                                           \
    __device__ inline complex<T> operator symbol(const complex<T>& x, const complex<T>& y) {     \
        return function(x, y);                                                                   \
    }                                                                                            \
    template <class T>                                                                           \
    __device__ inline complex<T> operator symbol(const volatile complex<T>& x,                   \
                                                 const volatile complex<T>& y) {                 \
        return function(complex<T>(x), complex<T>(y));                                           \
    }                                                                                            \
    template <class T>                                                                           \
    __device__ inline complex<T> operator symbol(const complex<T>& x,                            \
                                                 const typename same_as<T>::type& y) {           \
        return with_right;                                                                       \
    }                                                                                            \
    template <class T>                                                                           \
    __device__ inline complex<T> operator symbol(const typename same_as<T>::type& x,             \
                                                 const complex<T>& y) {                          \
        return with_left;                                                                        \
    }
PYGPU_COMPLEX_OPERATOR(+, pygpu_add, complex<T>(x._M_re + y, x._M_im),
                       complex<T>(x + y._M_re, y._M_im))
PYGPU_COMPLEX_OPERATOR(-, pygpu_subtract, complex<T>(x._M_re - y, x._M_im),
                       complex<T>(x - y._M_re, -y._M_im))
PYGPU_COMPLEX_OPERATOR(*, pygpu_multiply, complex<T>(x._M_re * y, x._M_im * y),
                       complex<T>(x * y._M_re, x * y._M_im))
PYGPU_COMPLEX_OPERATOR(/, pygpu_divide, complex<T>(x._M_re / y, x._M_im / y),
                       pygpu_divide(complex<T>(x), y))
#undef PYGPU_COMPLEX_OPERATOR

template <class T>
__device__ inline bool operator==(const complex<T>& x, const complex<T>& y) {
    return x._M_re == y._M_re && x._M_im == y._M_im;
}
template <class T>
__device__ inline bool operator==(const complex<T>& x, const typename same_as<T>::type& y) {
    return x._M_re == y && x._M_im == 0;
}
template <class T>
__device__ inline bool operator==(const typename same_as<T>::type& x, const complex<T>& y) {
    return x == y._M_re && 0 == y._M_im;
}
template <class T>
__device__ inline bool operator!=(const complex<T>& x, const complex<T>& y) {
    return !(x == y);
}
template <class T>
__device__ inline bool operator!=(const complex<T>& x, const typename same_as<T>::type& y) {
    return !(x == y);
}
template <class T>
__device__ inline bool operator!=(const typename same_as<T>::type& x, const complex<T>& y) {
    return !(x == y);
}

template <class T>
__device__ inline T real(const complex<T>& z) {
    return z._M_re;
}
template <class T>
__device__ inline T imag(const complex<T>& z) {
    return z._M_im;
}
template <class T>
__device__ inline T abs(const complex<T>& z) {
    return ::hypot(z._M_re, z._M_im);
}
template <class T>
__device__ inline T arg(const complex<T>& z) {
    return ::atan2(z._M_im, z._M_re);
}
// The square of the absolute value.
template <class T>
__device__ inline T norm(const complex<T>& z) {
    return z._M_re * z._M_re + z._M_im * z._M_im;
}
template <class T>
__device__ inline complex<T> conj(const complex<T>& z) {
    return complex<T>(z._M_re, -z._M_im);
}
__device__ inline float real(float x) { return x; }
__device__ inline double real(double x) { return x; }
__device__ inline float imag(float) { return 0; }
__device__ inline double imag(double) { return 0; }
__device__ inline float conj(float x) { return x; }
__device__ inline double conj(double x) { return x; }

template <class T>
__device__ inline complex<T> polar(const T& radius, const T& angle) {
    return complex<T>(radius * ::cos(angle), radius * ::sin(angle));
}
template <class T>
__device__ inline complex<T> polar(const T& radius) {
    return complex<T>(radius);
}

// The root with a real part that is not negative; the imaginary part has the sign of that of `z`.
template <class T>
__device__ inline complex<T> sqrt(const complex<T>& z) {
    const T size = abs(z);
    if (size == 0) {
        return complex<T>(0, z._M_im);
    }
    const T half = ::sqrt((size + ::fabs(z._M_re)) / 2);
    const T other = ::fabs(z._M_im) / (2 * half);
    return z._M_re >= 0 ? complex<T>(half, ::copysign(other, z._M_im))
                        : complex<T>(other, ::copysign(half, z._M_im));
}
template <class T>
__device__ inline complex<T> exp(const complex<T>& z) {
    return polar((T)::exp(z._M_re), z._M_im);
}
template <class T>
__device__ inline complex<T> log(const complex<T>& z) {
    return complex<T>(::log(abs(z)), arg(z));
}
template <class T>
__device__ inline complex<T> log10(const complex<T>& z) {
    const T scale = (T)0.43429448190325182765;
    return complex<T>(::log10(abs(z)), arg(z) * scale);
}

template <class T>
__device__ inline complex<T> pow(const complex<T>& z, int exponent) {
    complex<T> result(1), square = z;
    for (unsigned rest = exponent < 0 ? 0u - (unsigned)exponent : (unsigned)exponent; rest != 0;
         rest /= 2) {
        if (rest % 2 != 0) {
            result *= square;
        }
        square *= square;
    }
    return exponent < 0 ? (T)1 / result : result;
}
template <class T>
__device__ inline complex<T> pow(const complex<T>& z, const complex<T>& exponent) {
    if (z == (T)0) {
        return complex<T>(exponent == (T)0 ? 1 : 0);
    }
    return exp(exponent * log(z));
}
template <class T>
__device__ inline complex<T> pow(const complex<T>& z, const T& exponent) {
    if (z == (T)0) {
        return complex<T>(exponent == 0 ? 1 : 0);
    }
    return polar((T)::pow(abs(z), exponent), exponent * arg(z));
}
template <class T>
__device__ inline complex<T> pow(const T& x, const complex<T>& exponent) {
    return pow(complex<T>(x), exponent);
}

template <class T>
__device__ inline complex<T> sin(const complex<T>& z) {
    return complex<T>(::sin(z._M_re) * ::cosh(z._M_im), ::cos(z._M_re) * ::sinh(z._M_im));
}
template <class T>
__device__ inline complex<T> cos(const complex<T>& z) {
    return complex<T>(::cos(z._M_re) * ::cosh(z._M_im), -::sin(z._M_re) * ::sinh(z._M_im));
}
template <class T>
__device__ inline complex<T> sinh(const complex<T>& z) {
    return complex<T>(::sinh(z._M_re) * ::cos(z._M_im), ::cosh(z._M_re) * ::sin(z._M_im));
}
template <class T>
__device__ inline complex<T> cosh(const complex<T>& z) {
    return complex<T>(::cosh(z._M_re) * ::cos(z._M_im), ::sinh(z._M_re) * ::sin(z._M_im));
}
// Far from zero the quotient of two infinities is the sign.
template <class T>
__device__ inline complex<T> tanh(const complex<T>& z) {
    const T rate = 2 * z._M_re;
    if (::fabs(rate) > 40) {
        return complex<T>(::copysign((T)1, rate), 0);
    }
    const T scale = ::cosh(rate) + ::cos(2 * z._M_im);
    return complex<T>(::sinh(rate) / scale, ::sin(2 * z._M_im) / scale);
}
template <class T>
__device__ inline complex<T> tan(const complex<T>& z) {
    const complex<T> turned = tanh(complex<T>(-z._M_im, z._M_re));
    return complex<T>(turned._M_im, -turned._M_re);
}

} // namespace pycuda
} // extern "C++"

#endif
