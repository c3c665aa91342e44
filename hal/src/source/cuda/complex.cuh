// Complex numbers over the real functions.

template <class R>
struct ComplexFunctions {
    typedef complex<R> T;

    static METHOD T make(R re, R im) { return make_complex<R>(re, im); }
    static METHOD bool is_nan(T x) { return x.re != x.re || x.im != x.im; }
    static METHOD T scale(T x, R factor) { return make(x.re * factor, x.im * factor); }

    static METHOD T copy(T x) { return x; }
    static METHOD T negative(T x) { return make(-x.re, -x.im); }
    static METHOD R absolute(T x) { return m_hypot(x.re, x.im); }
    static METHOD T conjugate(T x) { return make(x.re, -x.im); }
    static METHOD R real(T x) { return x.re; }
    static METHOD R imaginary(T x) { return x.im; }
    static METHOD bool logical_not(T x) { return x.re == (R)0 && x.im == (R)0; }
    static METHOD T add(T x, T y) { return make(x.re + y.re, x.im + y.im); }
    static METHOD T subtract(T x, T y) { return make(x.re - y.re, x.im - y.im); }
    static METHOD T multiply(T x, T y) {
        return make(x.re * y.re - x.im * y.im, x.re * y.im + x.im * y.re);
    }

    // Smith, R. L. (1962), "Algorithm 116: Complex division", Communications of the ACM 5(8).
    static METHOD T divide(T x, T y) {
        const R width = m_fabs(y.re);
        const R height = m_fabs(y.im);
        if (width >= height) {
            if (width == (R)0 && height == (R)0) {
                return make(x.re / width, x.im / width);
            }
            const R ratio = y.im / y.re;
            const R divisor = y.re + y.im * ratio;
            return make((x.re + x.im * ratio) / divisor, (x.im - x.re * ratio) / divisor);
        }
        const R ratio = y.re / y.im;
        const R divisor = y.re * ratio + y.im;
        return make((x.re * ratio + x.im) / divisor, (x.im * ratio - x.re) / divisor);
    }

    // Lexicographic order; nothing is ordered beside a NaN.
    static METHOD bool less(T x, T y) {
        return (x.re < y.re && x.im == x.im && y.im == y.im) || (x.re == y.re && x.im < y.im);
    }
    static METHOD bool less_equal(T x, T y) {
        return (x.re < y.re && x.im == x.im && y.im == y.im) || (x.re == y.re && x.im <= y.im);
    }
    static METHOD bool greater(T x, T y) { return less(y, x); }
    static METHOD bool greater_equal(T x, T y) { return less_equal(y, x); }
    static METHOD bool equal(T x, T y) { return x.re == y.re && x.im == y.im; }
    static METHOD bool not_equal(T x, T y) { return !equal(x, y); }
    static METHOD T minimum(T x, T y) { return is_nan(x) || less_equal(x, y) ? x : y; }
    static METHOD T maximum(T x, T y) { return is_nan(x) || less_equal(y, x) ? x : y; }
    static METHOD bool logical_and(T x, T y) { return !logical_not(x) && !logical_not(y); }
    static METHOD bool logical_or(T x, T y) { return !logical_not(x) || !logical_not(y); }
    static METHOD T lowest() { return make(-Limits<R>::infinity(), -Limits<R>::infinity()); }
    static METHOD T highest() { return make(Limits<R>::infinity(), Limits<R>::infinity()); }
    template <class Index>
    static METHOD T sequence(T start, T step, Index index) {
        return make(start.re + (R)index * step.re, start.im + (R)index * step.im);
    }

    static METHOD T sqrt(T x) {
        if (x.re == (R)0 && x.im == (R)0) {
            return make((R)0, x.im);
        }
        if (m_fabs(x.im) > Limits<R>::largest()) {
            return make(Limits<R>::infinity(), x.im);
        }
        if (!is_finite(x.re) && x.re == x.re) {
            const R other = x.im != x.im ? x.im : (R)0;
            return x.re > (R)0
                ? make(x.re, m_copysign(other, x.im))
                : make(m_fabs(other), m_copysign(Limits<R>::infinity(), x.im));
        }
        // A power of four keeps the sum of the two moduli within range.
        R factor = (R)1;
        const R size = m_fabs(x.re) > m_fabs(x.im) ? m_fabs(x.re) : m_fabs(x.im);
        if (size > Limits<R>::largest() * (R)0.25) {
            x = scale(x, (R)0.0625);
            factor = (R)4;
        } else if (size < Limits<R>::smallest() * (R)16777216) {
            x = scale(x, (R)16777216);
            factor = (R)(1.0 / 4096.0);
        }
        const R root = m_sqrt((m_fabs(x.re) + m_hypot(x.re, x.im)) * (R)0.5);
        const R other = x.im / (root * (R)2);
        return x.re >= (R)0
            ? make(root * factor, other * factor)
            : make(m_fabs(other) * factor, m_copysign(root, x.im) * factor);
    }

    static METHOD T exp(T x) {
        const R modulus = m_exp(x.re);
        if (x.im == (R)0) {
            return make(modulus, x.im);
        }
        if (modulus == (R)0 && !is_finite(x.im)) {
            return make((R)0, (R)0);
        }
        const R cosine = m_cos(x.im);
        const R sine = m_sin(x.im);
        if (!is_finite(modulus) && is_finite(x.re)) {
            const R half = m_exp(x.re * (R)0.5);
            return make(half * cosine * half, half * sine * half);
        }
        return make(modulus * cosine, modulus * sine);
    }

    static METHOD T log(T x) {
        const R angle = m_atan2(x.im, x.re);
        R wide = m_fabs(x.re);
        R thin = m_fabs(x.im);
        if (wide < thin) {
            const R swap = wide;
            wide = thin;
            thin = swap;
        }
        // Near the unit circle the logarithm of the modulus cancels.
        if (wide > (R)0.5 && wide < (R)2) {
            return make(m_log1p((wide - (R)1) * (wide + (R)1) + thin * thin) * (R)0.5, angle);
        }
        if (wide > Limits<R>::largest() * (R)0.25 && is_finite(wide)) {
            const R modulus = m_hypot(wide * (R)0.25, thin * (R)0.25);
            return make(m_log(modulus) + (R)1.3862943611198906188, angle);
        }
        return make(m_log(m_hypot(wide, thin)), angle);
    }
    static METHOD T log10(T x) { return scale(log(x), (R)0.43429448190325182765); }

    static METHOD T sinh(T x) {
        if (x.im == (R)0) {
            return make(m_sinh(x.re), x.im);
        }
        return make(m_sinh(x.re) * m_cos(x.im), m_cosh(x.re) * m_sin(x.im));
    }
    static METHOD T cosh(T x) {
        if (x.im == (R)0) {
            return make(m_cosh(x.re), m_sinh(x.re) < (R)0 ? -x.im : x.im);
        }
        return make(m_cosh(x.re) * m_cos(x.im), m_sinh(x.re) * m_sin(x.im));
    }

    // Kahan, W. (1987), "Branch cuts for complex elementary functions", for this one and
    // the inverse sine and cosine.
    static METHOD T tanh(T x) {
        if (m_fabs(x.re) > (R)22) {
            const R decay = m_exp((R)-2 * m_fabs(x.re));
            const R sine = is_finite(x.im) ? (R)4 * m_sin(x.im) * m_cos(x.im) : (R)0;
            return make(m_copysign((R)1, x.re), sine * decay);
        }
        const R tangent = m_tan(x.im);
        const R slope = (R)1 + tangent * tangent;
        const R sine = m_sinh(x.re);
        const R cosine = m_sqrt((R)1 + sine * sine);
        const R divisor = (R)1 + slope * sine * sine;
        return make(slope * cosine * sine / divisor, tangent / divisor);
    }

    // Trigonometric functions are the hyperbolic ones a quarter turn on.
    static METHOD T turn(T x) { return make(-x.im, x.re); }
    static METHOD T turn_back(T x) { return make(x.im, -x.re); }
    static METHOD T sin(T x) { return turn_back(sinh(turn(x))); }
    static METHOD T cos(T x) { return cosh(turn(x)); }
    static METHOD T tan(T x) { return turn_back(tanh(turn(x))); }

    static METHOD T asin(T x) {
        const T below = sqrt(make((R)1 - x.re, -x.im));
        const T above = sqrt(make((R)1 + x.re, x.im));
        return make(
            m_atan2(x.re, below.re * above.re - below.im * above.im),
            m_asinh(below.re * above.im - below.im * above.re));
    }
    static METHOD T acos(T x) {
        const T below = sqrt(make((R)1 - x.re, -x.im));
        const T above = sqrt(make((R)1 + x.re, x.im));
        return make(
            (R)2 * m_atan2(below.re, above.re),
            m_asinh(above.re * below.im - above.im * below.re));
    }
    // Odd in the imaginary part, which keeps the argument of the logarithm away from zero.
    static METHOD T atan(T x) {
        const R size = m_fabs(x.im);
        const R gap = (R)1 - size;
        const R angle = m_atan2((R)2 * x.re, gap * ((R)1 + size) - x.re * x.re);
        const R height = m_log1p((R)4 * size / (x.re * x.re + gap * gap));
        return make((R)0.5 * angle, m_copysign((R)0.25 * height, x.im));
    }

    static METHOD T power(T x, T y) {
        if (y.re == (R)0 && y.im == (R)0) {
            return make((R)1, (R)0);
        }
        if (x.re == (R)0 && x.im == (R)0) {
            const R undefined = Limits<R>::not_a_number();
            return y.re > (R)0 ? make((R)0, (R)0) : make(undefined, undefined);
        }
        // Small whole exponents multiply, which is exact where the products are.
        if (y.im == (R)0 && m_fabs(y.re) < (R)100 && m_trunc(y.re) == y.re) {
            T result = make((R)1, (R)0);
            T square = x;
            for (u32 left = (u32)m_fabs(y.re); left != 0; left >>= 1) {
                if (left & 1) {
                    result = multiply(result, square);
                }
                square = multiply(square, square);
            }
            return y.re < (R)0 ? divide(make((R)1, (R)0), result) : result;
        }
        return exp(multiply(y, log(x)));
    }
};
