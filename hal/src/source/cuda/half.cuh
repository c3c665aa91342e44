// binary16 and bfloat16: stored in 16 bits, every function computed in binary32 and rounded once.

template <class T>
struct HalfInfinity;
template <>
struct HalfInfinity<f16> {
    static constexpr u32 bits = 0x7c00u;
};
template <>
struct HalfInfinity<bf16> {
    static constexpr u32 bits = 0x7f80u;
};

template <class Type>
struct HalfFunctions {
    typedef Type T;
    typedef RealFunctions<f32> F;
    static constexpr u32 INFINITE = HalfInfinity<T>::bits;

#define GPUARRAY_HALF_1(name) \
    static METHOD T name(T x) { return convert<T>(F::name(widen(x))); }
#define GPUARRAY_HALF_2(name) \
    static METHOD T name(T x, T y) { return convert<T>(F::name(widen(x), widen(y))); }
#define GPUARRAY_HALF_TEST(name) \
    static METHOD bool name(T x, T y) { return F::name(widen(x), widen(y)); }

    static METHOD T copy(T x) { return x; }
    static METHOD T negative(T x) {
        x.bits ^= 0x8000u;
        return x;
    }
    static METHOD T absolute(T x) {
        x.bits &= 0x7fffu;
        return x;
    }
    static METHOD T conjugate(T x) { return x; }
    static METHOD T real(T x) { return x; }
    static METHOD T imaginary(T) { return convert<T>(0.0f); }
    static METHOD bool logical_not(T x) { return (x.bits & 0x7fffu) == 0; }
    static METHOD bool is_nan(T x) { return (x.bits & 0x7fffu) > INFINITE; }
    static METHOD bool infinite(T x) { return (x.bits & 0x7fffu) == INFINITE; }
    static METHOD bool finite(T x) { return (x.bits & 0x7fffu) < INFINITE; }
    static METHOD bool sign_bit(T x) { return (x.bits >> 15) != 0; }
    static METHOD T positive(T x) { return x; }
    static METHOD T next_after(T x, T y) {
        if (is_nan(x) || equal(x, y)) {
            return is_nan(x) ? x : y;
        }
        if (is_nan(y)) {
            return y;
        }
        // Sign and magnitude: the numbers of one sign are in the order of their bits.
        if ((x.bits & 0x7fffu) == 0) {
            x.bits = (u16)((y.bits & 0x8000u) | 1u);
        } else if (less(x, y) != sign_bit(x)) {
            ++x.bits;
        } else {
            --x.bits;
        }
        return x;
    }
    GPUARRAY_HALF_1(sign)
    GPUARRAY_HALF_1(square)
    GPUARRAY_HALF_1(reciprocal)
    GPUARRAY_HALF_1(radians)
    GPUARRAY_HALF_1(degrees)
    GPUARRAY_HALF_1(cbrt)
    GPUARRAY_HALF_1(exp2)
    GPUARRAY_HALF_1(expm1)
    GPUARRAY_HALF_1(log1p)
    GPUARRAY_HALF_1(asinh)
    GPUARRAY_HALF_1(acosh)
    GPUARRAY_HALF_1(atanh)
    GPUARRAY_HALF_1(erf)
    GPUARRAY_HALF_1(erfc)
    GPUARRAY_HALF_1(gamma)
    GPUARRAY_HALF_1(log_gamma)
    GPUARRAY_HALF_1(sqrt)
    GPUARRAY_HALF_1(exp)
    GPUARRAY_HALF_1(log)
    GPUARRAY_HALF_1(log2)
    GPUARRAY_HALF_1(log10)
    GPUARRAY_HALF_1(sin)
    GPUARRAY_HALF_1(cos)
    GPUARRAY_HALF_1(tan)
    GPUARRAY_HALF_1(asin)
    GPUARRAY_HALF_1(acos)
    GPUARRAY_HALF_1(atan)
    GPUARRAY_HALF_1(sinh)
    GPUARRAY_HALF_1(cosh)
    GPUARRAY_HALF_1(tanh)
    GPUARRAY_HALF_1(floor)
    GPUARRAY_HALF_1(ceil)
    GPUARRAY_HALF_1(trunc)
    GPUARRAY_HALF_1(fraction)
    GPUARRAY_HALF_1(rint)
    GPUARRAY_HALF_1(mantissa)
    GPUARRAY_HALF_1(exponent)
    GPUARRAY_HALF_2(add)
    GPUARRAY_HALF_2(subtract)
    GPUARRAY_HALF_2(multiply)
    GPUARRAY_HALF_2(divide)
    GPUARRAY_HALF_2(floor_divide)
    GPUARRAY_HALF_2(remainder)
    GPUARRAY_HALF_2(fmod)
    GPUARRAY_HALF_2(power)
    GPUARRAY_HALF_2(minimum)
    GPUARRAY_HALF_2(maximum)
    GPUARRAY_HALF_2(ldexp)
    GPUARRAY_HALF_2(atan2)
    GPUARRAY_HALF_2(hypot)
    GPUARRAY_HALF_2(copysign)
    GPUARRAY_HALF_2(heaviside)
    GPUARRAY_HALF_2(log_add_exp)
    GPUARRAY_HALF_2(log_add_exp2)
    GPUARRAY_HALF_2(fmin)
    GPUARRAY_HALF_2(fmax)
    GPUARRAY_HALF_TEST(logical_and)
    GPUARRAY_HALF_TEST(logical_or)
    GPUARRAY_HALF_TEST(logical_xor)
    GPUARRAY_HALF_TEST(equal)
    GPUARRAY_HALF_TEST(not_equal)
    GPUARRAY_HALF_TEST(less)
    GPUARRAY_HALF_TEST(less_equal)
    GPUARRAY_HALF_TEST(greater)
    GPUARRAY_HALF_TEST(greater_equal)
    template <class Index>
    static METHOD T sequence(T start, T step, Index index) {
        return convert<T>(F::sequence(widen(start), widen(step), index));
    }
};
