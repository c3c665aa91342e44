// Complex numbers, built on the real functions.

template <class R>
struct ComplexFunctions {
    typedef complex<R> T;

    static METHOD T make(R re, R im) { return make_complex<R>(re, im); }
    static METHOD bool is_nan(T x) { return x.re != x.re || x.im != x.im; }
    static METHOD T scale(T x, R factor) { return make(x.re * factor, x.im * factor); }

    static METHOD bool infinite(T x) { return is_infinite(x.re) || is_infinite(x.im); }
    static METHOD bool finite(T x) { return is_finite(x.re) && is_finite(x.im); }

    static METHOD T copy(T x) { return x; }
    static METHOD T positive(T x) { return x; }
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

    static METHOD T square(T x) { return multiply(x, x); }
    // Like the division, but the sign of a zero is that of the exact value.
    static METHOD T reciprocal(T x) {
        const bool wide = m_fabs(x.re) >= m_fabs(x.im);
        const R ratio = wide ? x.im / x.re : x.re / x.im;
        const R divisor = wide ? x.re + x.im * ratio : x.re * ratio + x.im;
        return wide ? make((R)1 / divisor, -ratio / divisor) : make(ratio / divisor, (R)-1 / divisor);
    }
    static METHOD T rint(T x) { return make(m_rint(x.re), m_rint(x.im)); }

    // Lexicographic order; a comparison with a NaN is false.
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
    static METHOD T fmin(T x, T y) { return is_nan(y) || less_equal(x, y) ? x : y; }
    static METHOD T fmax(T x, T y) { return is_nan(y) || less_equal(y, x) ? x : y; }
    static METHOD bool logical_xor(T x, T y) { return logical_not(x) != logical_not(y); }
    static METHOD bool logical_and(T x, T y) { return !logical_not(x) && !logical_not(y); }
    static METHOD bool logical_or(T x, T y) { return !logical_not(x) || !logical_not(y); }
    static METHOD T lowest() { return make(-Limits<R>::infinity(), -Limits<R>::infinity()); }
    static METHOD T highest() { return make(Limits<R>::infinity(), Limits<R>::infinity()); }
    template <class Index>
    static METHOD T sequence(T start, T step, Index index) {
        return make(start.re + (R)index * step.re, start.im + (R)index * step.im);
    }

    // Next to the square of a number above large(), 1 is negligible; next to 1, the square of a
    // number below small() is negligible. The results at zeros, infinities and NaN follow Annex G
    // of C99.
    static METHOD R large() { return sizeof(R) == 4 ? (R)1e18 : (R)1e150; }
    static METHOD R small() { return sizeof(R) == 4 ? (R)1e-18 : (R)1e-150; }
    // The largest integer whose exponential is finite.
    static METHOD R step() { return sizeof(R) == 4 ? (R)88 : (R)709; }
    static METHOD R not_a_number() { return Limits<R>::not_a_number(); }
    static METHOD R half_pi() { return (R)1.5707963267948966192; }
    static METHOD R ln_2() { return (R)0.69314718055994530942; }

    static METHOD T sqrt(T x) {
        if (x.re == (R)0 && x.im == (R)0) {
            return make((R)0, x.im);
        }
        if (is_infinite(x.im)) {
            return make(Limits<R>::infinity(), x.im);
        }
        if (is_infinite(x.re)) {
            const R other = x.im != x.im ? x.im : (R)0;
            return x.re > (R)0
                ? make(x.re, m_copysign(other, x.im))
                : make(other, m_copysign(Limits<R>::infinity(), x.im));
        }
        // Scaling by powers of four, whose roots are exact, keeps sums finite and normal.
        R factor = (R)1;
        const R size = m_fabs(x.re) > m_fabs(x.im) ? m_fabs(x.re) : m_fabs(x.im);
        if (size > Limits<R>::largest() * (R)0.25) {
            x = scale(x, (R)0.0625);
            factor = (R)4;
        } else if (size < Limits<R>::smallest() * (R)16777216) {
            x = scale(scale(x, (R)1073741824), (R)16777216);
            factor = (R)(1.0 / 134217728.0);
        }
        const R root = m_sqrt((m_fabs(x.re) + m_hypot(x.re, x.im)) * (R)0.5);
        const R other = m_fabs(x.im) / (root * (R)2);
        return x.re >= (R)0
            ? make(root * factor, m_copysign(other * factor, x.im))
            : make(other * factor, m_copysign(root * factor, x.im));
    }

    // Returns e^x * factor, also if e^x alone is too large.
    static METHOD R exp_times(R x, R factor) {
        for (int i = 0; i < 2; ++i) {
            if (x > step()) {
                x -= step();
                factor *= m_exp(step());
            }
        }
        return factor * m_exp(x);
    }
    // Returns e^x / 2 * factor for x above step(). Halving the smallest factors would lose bits.
    static METHOD R half_exp_times(R x, R factor) {
        return exp_times(x - step(), factor * ((R)0.5 * m_exp(step())));
    }

    static METHOD T exp(T x) {
        if (x.im == (R)0) {
            return make(m_exp(x.re), x.im);
        }
        if (!is_finite(x.im) && is_infinite(x.re)) {
            return x.re > (R)0 ? make(x.re, not_a_number())
                             : make((R)0, m_copysign((R)0, x.im));
        }
        return make(exp_times(x.re, m_cos(x.im)), exp_times(x.re, m_sin(x.im)));
    }

    static METHOD T exp2(T x) {
        if (!is_finite(x.re) || !is_finite(x.im)) {
            return exp(scale(x, ln_2()));
        }
        // Half of the exponent at a time: 2^x may be too large even if the product is not.
        const R half = m_exp2((R)0.5 * x.re);
        const R angle = x.im * ln_2();
        return make(
            half * m_cos(angle) * half, x.im == (R)0 ? x.im : half * m_sin(angle) * half);
    }
    // e^x cos y - 1 = (e^x - 1) cos y - 2 sin^2(y / 2)
    static METHOD T expm1(T x) {
        if (x.im == (R)0) {
            return make(m_expm1(x.re), x.im);
        }
        const T power = exp(x);
        if (m_fabs(x.re) > step() || !is_finite(x.im)) {
            return make(power.re - (R)1, power.im);
        }
        const R sine = m_sin((R)0.5 * x.im);
        return make(m_expm1(x.re) * m_cos(x.im) - (R)2 * sine * sine, power.im);
    }

    // The logarithm of the modulus; neither part is negative.
    static METHOD R log_modulus(R x, R y) {
        const R wide = x > y ? x : y;
        const R thin = x > y ? y : x;
        if (!is_finite(wide) || !is_finite(thin) || wide == (R)0) {
            return m_log(is_infinite(x) || is_infinite(y) ? Limits<R>::infinity() : x + y);
        }
        if (wide > Limits<R>::largest() * (R)0.5) {
            return m_log(m_hypot(x * (R)0.25, y * (R)0.25)) + (R)2 * ln_2();
        }
        if (wide < Limits<R>::smallest() * (R)16777216) {
            const R up = (R)1073741824;
            return m_log(m_hypot(x * up * up, y * up * up)) - (R)60 * ln_2();
        }
        if (wide < (R)0.5 || wide >= (R)2) {
            return m_log(m_hypot(x, y));
        }
        // Near the unit circle, the rounding errors of the squares matter.
        const R first = wide * wide;
        const R second = thin * thin;
        R missing = m_fma(wide, wide, -first) + m_fma(thin, thin, -second);
        const R above = first - (R)1;
        const R sum = above + second;
        const R part = sum - above;
        missing += (above - (sum - part)) + (second - part);
        return (R)0.5 * m_log1p(sum + missing);
    }
    static METHOD T log(T x) {
        return make(log_modulus(m_fabs(x.re), m_fabs(x.im)), m_atan2(x.im, x.re));
    }
    // Returns the rounding error of a sum: Knuth, The Art of Computer Programming, 4.2.2.
    static METHOD R lost(R x, R y) {
        const R sum = x + y;
        const R part = sum - x;
        return (x - (sum - part)) + (y - part);
    }
    // Near zero, |1 + x|^2 - 1 is summed together with its rounding errors, because its terms may
    // cancel.
    static METHOD T log1p(T x) {
        const R angle = m_atan2(x.im, (R)1 + x.re);
        if (!(m_fabs(x.re) < (R)0.5 && m_fabs(x.im) < (R)0.5)) {
            return make(log_modulus(m_fabs((R)1 + x.re), m_fabs(x.im)), angle);
        }
        const R first = x.re * x.re;
        const R second = x.im * x.im;
        R missing = m_fma(x.re, x.re, -first) + m_fma(x.im, x.im, -second);
        const R partial = (R)2 * x.re + second;
        missing += lost((R)2 * x.re, second) + lost(partial, first);
        return make((R)0.5 * m_log1p(partial + first + missing), angle);
    }
    static METHOD T log2(T x) { return scale(log(x), (R)1.44269504088896340736); }
    static METHOD T log10(T x) { return scale(log(x), (R)0.43429448190325182765); }

    static METHOD T sinh(T x) {
        if (x.im == (R)0) {
            return make(m_sinh(x.re), x.im);
        }
        if (!is_finite(x.im) && (x.re == (R)0 || is_infinite(x.re))) {
            return make(x.re, not_a_number());
        }
        const R cosine = m_cos(x.im);
        const R sine = m_sin(x.im);
        const R size = m_fabs(x.re);
        if (size > step()) {
            return make(
                half_exp_times(size, m_copysign((R)1, x.re) * cosine),
                half_exp_times(size, sine));
        }
        return make(m_sinh(x.re) * cosine, m_cosh(x.re) * sine);
    }
    static METHOD T cosh(T x) {
        const R zero = m_copysign((R)0, x.re) * m_copysign((R)1, x.im);
        if (x.im == (R)0) {
            return make(m_cosh(x.re), zero);
        }
        if (!is_finite(x.im) && x.re == (R)0) {
            return make(not_a_number(), zero);
        }
        if (!is_finite(x.im) && is_infinite(x.re)) {
            return make(Limits<R>::infinity(), not_a_number());
        }
        const R cosine = m_cos(x.im);
        const R sine = m_sin(x.im);
        const R size = m_fabs(x.re);
        if (size > step()) {
            return make(
                half_exp_times(size, cosine),
                half_exp_times(size, m_copysign((R)1, x.re) * sine));
        }
        return make(m_cosh(x.re) * cosine, m_sinh(x.re) * sine);
    }

    // Kahan, W. (1987), "Branch cuts for complex elementary functions".
    static METHOD T tanh(T x) {
        if (x.im == (R)0) {
            return make(m_tanh(x.re), x.im);
        }
        if (!is_finite(x.im)) {
            return is_infinite(x.re)
                ? make(m_copysign((R)1, x.re), m_copysign((R)0, x.im))
                : make(x.re == (R)0 ? x.re : not_a_number(), not_a_number());
        }
        if (m_fabs(x.re) > (R)22) {
            const R decay = m_exp((R)-2 * m_fabs(x.re));
            return make(m_copysign((R)1, x.re), (R)4 * m_sin(x.im) * m_cos(x.im) * decay);
        }
        const R tangent = m_tan(x.im);
        const R slope = (R)1 + tangent * tangent;
        const R sine = m_sinh(x.re);
        const R cosine = m_cosh(x.re);
        const R divisor = (R)1 + slope * sine * sine;
        return make(slope * cosine * sine / divisor, tangent / divisor);
    }

    // The trigonometric functions are the hyperbolic functions, rotated by a quarter turn.
    static METHOD T turn(T x) { return make(-x.im, x.re); }
    static METHOD T turn_back(T x) { return make(x.im, -x.re); }
    static METHOD T sin(T x) { return turn_back(sinh(turn(x))); }
    static METHOD T cos(T x) { return cosh(turn(x)); }
    static METHOD T tan(T x) { return turn_back(tanh(turn(x))); }

    // Hull, T. E., Fairgrieve, T. F., Tang, P. T. P. (1997), "Implementing the complex arcsine and
    // arccosine functions using exception handling". For parts that are not negative: the real
    // parts of both functions, and their imaginary part, which differs only in its sign.
    static METHOD void arc(R x, R y, R* sine, R* cosine, R* height) {
        if (x > large() || y > large()) {
            *sine = m_atan2(x, y);
            *cosine = m_atan2(y, x);
            *height = log_modulus(x, y) + ln_2();
            return;
        }
        const R right = x + (R)1;
        const R left = x - (R)1;
        if (y < small()) {
            if (x < (R)1) {
                *sine = m_asin(x);
                *cosine = m_acos(x);
                *height = y / m_sqrt(-left * right);
            } else if (x == (R)1) {
                *height = *cosine = m_sqrt(y);
                *sine = half_pi() - *cosine;
            } else {
                const R root = m_sqrt(left * right);
                *sine = half_pi();
                *cosine = y / root;
                *height = m_log1p(left + root);
            }
            return;
        }
        const R above = m_hypot(right, y);
        const R below = m_hypot(left, y);
        const R a = (R)0.5 * (above + below);
        const R b = x / a;
        const R near = y * y / (above + right);
        if (b <= (R)0.6417) {
            *sine = m_asin(b);
            *cosine = m_acos(b);
        } else {
            const R sum = a + x;
            const R other = x <= (R)1
                ? m_sqrt((R)0.5 * sum * (near + (below - left)))
                : y * m_sqrt((R)0.5 * (sum / (above + right) + sum / (below + left)));
            *sine = m_atan2(x, other);
            *cosine = m_atan2(other, x);
        }
        if (a <= (R)1.5) {
            const R excess =
                (R)0.5 * (near + (x < (R)1 ? y * y / (below - left) : below + left));
            *height = m_log1p(excess + m_sqrt(excess * (a + (R)1)));
        } else {
            *height = m_log(a + m_sqrt(a * a - (R)1));
        }
    }
    static METHOD T asin(T x) {
        if (is_nan(x)) {
            return x.re == (R)0 ? x
                : make(not_a_number(),
                       is_infinite(x.im) ? x.im : is_infinite(x.re) ? x.re : not_a_number());
        }
        R sine, cosine, height;
        arc(m_fabs(x.re), m_fabs(x.im), &sine, &cosine, &height);
        return make(m_copysign(sine, x.re), m_copysign(height, x.im));
    }
    static METHOD T acos(T x) {
        if (is_nan(x)) {
            return x.re == (R)0 ? make(half_pi(), not_a_number())
                : make(not_a_number(),
                       is_infinite(x.re) ? x.re : is_infinite(x.im) ? -x.im : not_a_number());
        }
        R sine, cosine, height;
        arc(m_fabs(x.re), m_fabs(x.im), &sine, &cosine, &height);
        const bool negative = m_copysign((R)1, x.re) < (R)0;
        return make(
            negative ? (R)2 * half_pi() - cosine : cosine, -m_copysign(height, x.im));
    }
    static METHOD T asinh(T x) { return turn_back(asin(turn(x))); }
    // The inverse cosine, rotated so that its real part is not negative.
    static METHOD T acosh(T x) {
        const T angle = acos(x);
        if (angle.re != angle.re) {
            return make(m_fabs(angle.im), angle.re);
        }
        return make(m_fabs(angle.im),
                    angle.im != angle.im ? angle.im : m_copysign(angle.re, x.im));
    }
    static METHOD T atan(T x) { return turn_back(atanh(turn(x))); }
    static METHOD T atanh(T z) {
        const R x = m_fabs(z.re);
        const R y = m_fabs(z.im);
        if (is_infinite(x) || is_infinite(y)) {
            return make(
                m_copysign((R)0, z.re), y != y ? y : m_copysign(half_pi(), z.im));
        }
        if (x != x || y != y) {
            return make(x == (R)0 ? z.re : not_a_number(), not_a_number());
        }
        R height, angle;
        if (x > large() || y > large()) {
            const R half = m_hypot((R)0.5 * x, (R)0.5 * y);
            height = (R)0.25 * x / half / half;
            angle = half_pi();
        } else if (x == (R)1 && y < small()) {
            height = (R)0.5 * (ln_2() - m_log(y));
            angle = (R)0.5 * m_atan2((R)2 * y, (R)0);
        } else {
            const R gap = (R)1 - x;
            height = (R)0.25 * m_log1p((R)4 * x / (gap * gap + y * y));
            angle = (R)0.5 * m_atan2((R)2 * y, gap * ((R)1 + x) - y * y);
        }
        return make(m_copysign(height, z.re), m_copysign(angle, z.im));
    }

    static METHOD T power(T x, T y) {
        if (y.re == (R)0 && y.im == (R)0) {
            return make((R)1, (R)0);
        }
        if (x.re == (R)0 && x.im == (R)0) {
            const R undefined = Limits<R>::not_a_number();
            return y.re > (R)0 ? make((R)0, (R)0) : make(undefined, undefined);
        }
        // Small integer exponents are computed by multiplication, which is exact if the products
        // are.
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
