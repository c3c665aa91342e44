// binary16: stored in 16 bits, every function computed in binary32 and rounded once.

struct HalfFunctions {
    typedef f16 T;
    typedef RealFunctions<f32> F;

#define GPUARRAY_HALF_1(name) \
    static METHOD f16 name(f16 x) { return narrow(F::name(widen(x))); }
#define GPUARRAY_HALF_2(name) \
    static METHOD f16 name(f16 x, f16 y) { return narrow(F::name(widen(x), widen(y))); }
#define GPUARRAY_HALF_TEST(name) \
    static METHOD bool name(f16 x, f16 y) { return F::name(widen(x), widen(y)); }

    static METHOD f16 copy(f16 x) { return x; }
    static METHOD f16 negative(f16 x) {
        x.bits ^= 0x8000u;
        return x;
    }
    static METHOD f16 absolute(f16 x) {
        x.bits &= 0x7fffu;
        return x;
    }
    static METHOD f16 conjugate(f16 x) { return x; }
    static METHOD f16 real(f16 x) { return x; }
    static METHOD f16 imaginary(f16) { return narrow(0.0f); }
    static METHOD bool logical_not(f16 x) { return (x.bits & 0x7fffu) == 0; }
    static METHOD bool is_nan(f16 x) { return (x.bits & 0x7fffu) > 0x7c00u; }
    GPUARRAY_HALF_1(sign)
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
    GPUARRAY_HALF_TEST(logical_and)
    GPUARRAY_HALF_TEST(logical_or)
    GPUARRAY_HALF_TEST(equal)
    GPUARRAY_HALF_TEST(not_equal)
    GPUARRAY_HALF_TEST(less)
    GPUARRAY_HALF_TEST(less_equal)
    GPUARRAY_HALF_TEST(greater)
    GPUARRAY_HALF_TEST(greater_equal)
    template <class Index>
    static METHOD f16 sequence(f16 start, f16 step, Index index) {
        return narrow(F::sequence(widen(start), widen(step), index));
    }
};
