// Booleans: their sum is "or", and their product is "and".

struct BoolFunctions {
    typedef bool T;
    static METHOD T copy(T x) { return x; }
    static METHOD T absolute(T x) { return x; }
    static METHOD T conjugate(T x) { return x; }
    static METHOD T real(T x) { return x; }
    static METHOD T imaginary(T) { return false; }
    static METHOD T logical_not(T x) { return !x; }
    static METHOD T invert(T x) { return !x; }
    static METHOD T floor(T x) { return x; }
    static METHOD T ceil(T x) { return x; }
    static METHOD T trunc(T x) { return x; }
    static METHOD T is_nan(T) { return false; }
    static METHOD T infinite(T) { return false; }
    static METHOD T finite(T) { return true; }
    static METHOD T sign_bit(T) { return false; }
    static METHOD T add(T x, T y) { return x || y; }
    static METHOD T multiply(T x, T y) { return x && y; }
    static METHOD T minimum(T x, T y) { return x && y; }
    static METHOD T maximum(T x, T y) { return x || y; }
    static METHOD T fmin(T x, T y) { return x && y; }
    static METHOD T fmax(T x, T y) { return x || y; }
    static METHOD T logical_xor(T x, T y) { return x != y; }
    static METHOD T logical_and(T x, T y) { return x && y; }
    static METHOD T logical_or(T x, T y) { return x || y; }
    static METHOD T bitwise_and(T x, T y) { return x && y; }
    static METHOD T bitwise_or(T x, T y) { return x || y; }
    static METHOD T bitwise_xor(T x, T y) { return x != y; }
    static METHOD bool equal(T x, T y) { return x == y; }
    static METHOD bool not_equal(T x, T y) { return x != y; }
    static METHOD bool less(T x, T y) { return !x && y; }
    static METHOD bool less_equal(T x, T y) { return !x || y; }
    static METHOD bool greater(T x, T y) { return x && !y; }
    static METHOD bool greater_equal(T x, T y) { return x || !y; }
    static METHOD T lowest() { return false; }
    static METHOD T highest() { return true; }
    template <class Index>
    static METHOD T sequence(T start, T step, Index index) { return start || (step && index != 0); }
};
