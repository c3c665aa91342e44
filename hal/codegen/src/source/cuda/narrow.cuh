// Floating-point numbers of at most 16 bits. Every function is computed in binary32 and rounded once.

template <class Type>
struct NarrowFunctions {
    typedef Type T;
    typedef RealFunctions<f32> F;
    typedef typename T::Format::Bits Bits;
    static constexpr u32 INFINITE = T::Format::INFINITE;
    static constexpr u32 SIGN = 1u << (sizeof(Bits) * 8 - 1);

#define GPUARRAY_NARROW_1(name) \
    static METHOD T name(T x) { return convert<T>(F::name(widen(x))); }
#define GPUARRAY_NARROW_2(name) \
    static METHOD T name(T x, T y) { return convert<T>(F::name(widen(x), widen(y))); }
#define GPUARRAY_NARROW_TEST(name) \
    static METHOD bool name(T x, T y) { return F::name(widen(x), widen(y)); }

    static METHOD T copy(T x) { return x; }
    static METHOD T negative(T x) {
        x.bits ^= SIGN;
        return x;
    }
    static METHOD T absolute(T x) {
        x.bits &= SIGN - 1;
        return x;
    }
    static METHOD T conjugate(T x) { return x; }
    static METHOD T real(T x) { return x; }
    static METHOD T imaginary(T) { return convert<T>(0.0f); }
    static METHOD bool logical_not(T x) { return magnitude(x) == 0; }
    static METHOD bool is_nan(T x) { return magnitude(x) > INFINITE; }
    static METHOD bool infinite(T x) { return magnitude(x) == INFINITE; }
    static METHOD bool finite(T x) { return magnitude(x) < INFINITE; }
    static METHOD bool sign_bit(T x) { return (x.bits & SIGN) != 0; }
    static METHOD T positive(T x) { return x; }
    static METHOD T next_after(T x, T y) {
        if (is_nan(x) || equal(x, y)) {
            return is_nan(x) ? x : y;
        }
        if (is_nan(y)) {
            return y;
        }
        // Sign and magnitude: numbers of the same sign are ordered like their bits.
        if (magnitude(x) == 0) {
            x.bits = (Bits)((y.bits & SIGN) | 1u);
        } else if (less(x, y) != sign_bit(x)) {
            ++x.bits;
        } else {
            --x.bits;
        }
        return x;
    }
    GPUARRAY_NARROW_1(sign)
    GPUARRAY_NARROW_1(square)
    GPUARRAY_NARROW_1(reciprocal)
    GPUARRAY_NARROW_1(radians)
    GPUARRAY_NARROW_1(degrees)
    GPUARRAY_NARROW_1(cbrt)
    GPUARRAY_NARROW_1(exp2)
    GPUARRAY_NARROW_1(expm1)
    GPUARRAY_NARROW_1(log1p)
    GPUARRAY_NARROW_1(asinh)
    GPUARRAY_NARROW_1(acosh)
    GPUARRAY_NARROW_1(atanh)
    GPUARRAY_NARROW_1(erf)
    GPUARRAY_NARROW_1(erfc)
    GPUARRAY_NARROW_1(gamma)
    GPUARRAY_NARROW_1(log_gamma)
    GPUARRAY_NARROW_1(sqrt)
    GPUARRAY_NARROW_1(exp)
    GPUARRAY_NARROW_1(log)
    GPUARRAY_NARROW_1(log2)
    GPUARRAY_NARROW_1(log10)
    GPUARRAY_NARROW_1(sin)
    GPUARRAY_NARROW_1(cos)
    GPUARRAY_NARROW_1(tan)
    GPUARRAY_NARROW_1(asin)
    GPUARRAY_NARROW_1(acos)
    GPUARRAY_NARROW_1(atan)
    GPUARRAY_NARROW_1(sinh)
    GPUARRAY_NARROW_1(cosh)
    GPUARRAY_NARROW_1(tanh)
    GPUARRAY_NARROW_1(floor)
    GPUARRAY_NARROW_1(ceil)
    GPUARRAY_NARROW_1(trunc)
    GPUARRAY_NARROW_1(fraction)
    GPUARRAY_NARROW_1(rint)
    GPUARRAY_NARROW_1(mantissa)
    GPUARRAY_NARROW_1(exponent)
    GPUARRAY_NARROW_2(add)
    GPUARRAY_NARROW_2(subtract)
    GPUARRAY_NARROW_2(multiply)
    GPUARRAY_NARROW_2(divide)
    GPUARRAY_NARROW_2(floor_divide)
    GPUARRAY_NARROW_2(remainder)
    GPUARRAY_NARROW_2(fmod)
    GPUARRAY_NARROW_2(power)
    GPUARRAY_NARROW_2(minimum)
    GPUARRAY_NARROW_2(maximum)
    GPUARRAY_NARROW_2(ldexp)
    GPUARRAY_NARROW_2(atan2)
    GPUARRAY_NARROW_2(hypot)
    GPUARRAY_NARROW_2(copysign)
    GPUARRAY_NARROW_2(heaviside)
    GPUARRAY_NARROW_2(log_add_exp)
    GPUARRAY_NARROW_2(log_add_exp2)
    GPUARRAY_NARROW_2(fmin)
    GPUARRAY_NARROW_2(fmax)
    GPUARRAY_NARROW_TEST(logical_and)
    GPUARRAY_NARROW_TEST(logical_or)
    GPUARRAY_NARROW_TEST(logical_xor)
    GPUARRAY_NARROW_TEST(equal)
    GPUARRAY_NARROW_TEST(not_equal)
    GPUARRAY_NARROW_TEST(less)
    GPUARRAY_NARROW_TEST(less_equal)
    GPUARRAY_NARROW_TEST(greater)
    GPUARRAY_NARROW_TEST(greater_equal)
    template <class Index>
    static METHOD T sequence(T start, T step, Index index) {
        return convert<T>(F::sequence(widen(start), widen(step), index));
    }
};
