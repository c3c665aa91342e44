// Integers. Arithmetic is done on unsigned values, whose overflow is defined to wrap.

template <class T>
struct Unsigned {
    typedef u32 type;
};
template <>
struct Unsigned<i64> {
    typedef u64 type;
};
template <>
struct Unsigned<u64> {
    typedef u64 type;
};

template <class Type>
struct IntegerFunctions {
    typedef Type T;
    typedef typename Unsigned<T>::type U;
    static constexpr bool SIGNED = (T)-1 < (T)0;

    static METHOD bool negative_value(T x) { return SIGNED && x < (T)0; }
    static METHOD bool minus_one(T x) { return SIGNED && x == (T)-1; }

    static METHOD T copy(T x) { return x; }
    static METHOD T negative(T x) { return (T)((U)0 - (U)x); }
    static METHOD T absolute(T x) { return negative_value(x) ? negative(x) : x; }
    static METHOD T sign(T x) { return negative_value(x) ? (T)-1 : (T)(x != (T)0); }
    static METHOD T conjugate(T x) { return x; }
    static METHOD T real(T x) { return x; }
    static METHOD T imaginary(T) { return (T)0; }
    static METHOD bool logical_not(T x) { return x == (T)0; }
    static METHOD T invert(T x) { return (T)~(U)x; }
    static METHOD T floor(T x) { return x; }
    static METHOD T ceil(T x) { return x; }
    static METHOD T trunc(T x) { return x; }
    static METHOD T fraction(T) { return (T)0; }
    static METHOD bool is_nan(T) { return false; }
    static METHOD bool infinite(T) { return false; }
    static METHOD bool finite(T) { return true; }
    static METHOD bool sign_bit(T x) { return negative_value(x); }
    static METHOD T positive(T x) { return x; }
    static METHOD T square(T x) { return multiply(x, x); }
    // 1 and -1 are their own reciprocals; all others are truncated to 0.
    static METHOD T reciprocal(T x) { return x == (T)1 || minus_one(x) ? x : (T)0; }
    static METHOD T add(T x, T y) { return (T)((U)x + (U)y); }
    static METHOD T subtract(T x, T y) { return (T)((U)x - (U)y); }
    static METHOD T multiply(T x, T y) { return (T)((U)x * (U)y); }

    // The quotient of the smallest value and -1 does not fit, and traps on some machines.
    static METHOD T floor_divide(T x, T y) {
        if (y == (T)0) {
            return (T)0;
        }
        if (minus_one(y)) {
            return negative(x);
        }
        const T quotient = (T)(x / y);
        const bool inexact = (T)(x % y) != (T)0;
        return inexact && negative_value(x) != negative_value(y) ? (T)(quotient - 1) : quotient;
    }
    static METHOD T remainder(T x, T y) {
        const T rest = fmod(x, y);
        return rest != (T)0 && negative_value(rest) != negative_value(y) ? (T)(rest + y) : rest;
    }
    static METHOD T fmod(T x, T y) {
        return y == (T)0 || minus_one(y) ? (T)0 : (T)(x % y);
    }
    static METHOD T power(T x, T y) {
        if (negative_value(y)) {
            if (x == (T)1) {
                return (T)1;
            }
            return minus_one(x) ? ((U)y & 1 ? (T)-1 : (T)1) : (T)0;
        }
        U result = 1;
        U square = (U)x;
        for (U exponent = (U)y; exponent != 0; exponent >>= 1) {
            if (exponent & 1) {
                result *= square;
            }
            square *= square;
        }
        return (T)result;
    }
    static METHOD T minimum(T x, T y) { return y < x ? y : x; }
    static METHOD T maximum(T x, T y) { return x < y ? y : x; }
    static METHOD T fmin(T x, T y) { return minimum(x, y); }
    static METHOD T fmax(T x, T y) { return maximum(x, y); }
    // Euclid's algorithm on the magnitudes.
    static METHOD U magnitude(T x) { return negative_value(x) ? (U)0 - (U)x : (U)x; }
    static METHOD U divisor(T x, T y) {
        U divisor = magnitude(x);
        for (U rest = magnitude(y); rest != 0;) {
            const U next = divisor % rest;
            divisor = rest;
            rest = next;
        }
        return divisor;
    }
    static METHOD T gcd(T x, T y) { return (T)divisor(x, y); }
    static METHOD T lcm(T x, T y) {
        const U common = divisor(x, y);
        return common == 0 ? (T)0 : (T)(magnitude(x) / common * magnitude(y));
    }
    static METHOD bool logical_xor(T x, T y) { return (x != (T)0) != (y != (T)0); }
    static METHOD bool logical_and(T x, T y) { return x != (T)0 && y != (T)0; }
    static METHOD bool logical_or(T x, T y) { return x != (T)0 || y != (T)0; }
    static METHOD T bitwise_and(T x, T y) { return (T)(x & y); }
    static METHOD T bitwise_or(T x, T y) { return (T)(x | y); }
    static METHOD T bitwise_xor(T x, T y) { return (T)(x ^ y); }
    // In C++, shifting by a negative number or by at least the number of bits is undefined.
    static METHOD bool is_shift(T y) { return (U)y < (U)(8 * sizeof(T)); }
    static METHOD T left_shift(T x, T y) { return is_shift(y) ? (T)((U)x << (U)y) : (T)0; }
    static METHOD T right_shift(T x, T y) {
        return is_shift(y) ? (T)(x >> y) : negative_value(x) ? (T)-1 : (T)0;
    }
    static METHOD bool equal(T x, T y) { return x == y; }
    static METHOD bool not_equal(T x, T y) { return x != y; }
    static METHOD bool less(T x, T y) { return x < y; }
    static METHOD bool less_equal(T x, T y) { return x <= y; }
    static METHOD bool greater(T x, T y) { return x > y; }
    static METHOD bool greater_equal(T x, T y) { return x >= y; }
    // Comparisons of a signed integer with an unsigned one of the same width.
    static METHOD bool mixed_equal(T x, U y) { return !negative_value(x) && (U)x == y; }
    static METHOD bool mixed_not_equal(T x, U y) { return !mixed_equal(x, y); }
    static METHOD bool mixed_less(T x, U y) { return negative_value(x) || (U)x < y; }
    static METHOD bool mixed_less_equal(T x, U y) { return negative_value(x) || (U)x <= y; }
    static METHOD bool mixed_greater(T x, U y) { return !mixed_less_equal(x, y); }
    static METHOD bool mixed_greater_equal(T x, U y) { return !mixed_less(x, y); }
    static METHOD T lowest() { return SIGNED ? (T)((U)1 << (8 * sizeof(T) - 1)) : (T)0; }
    static METHOD T highest() { return (T)~lowest(); }
    template <class Index>
    static METHOD T sequence(T start, T step, Index index) {
        return (T)((U)start + (U)step * (U)index);
    }
};
