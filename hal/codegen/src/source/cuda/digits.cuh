// The order of elements as words, which radix sorts process eight bits at a time.

// Words in the same order as the elements. NaN of any bits is last, and zeros of both signs are equal.
template <class Bits, int FRACTION>
struct FloatOrder {
    static METHOD Bits of(Bits bits) {
        const Bits sign = (Bits)((Bits)1 << (sizeof(Bits) * 8 - 1));
        const Bits magnitude = (Bits)(bits & (Bits)~sign);
        const Bits infinity = (Bits)((Bits)(sign - 1) >> FRACTION << FRACTION);
        if (magnitude > infinity) {
            return (Bits)~(Bits)0;
        }
        return magnitude == 0 ? sign : (bits & sign) != 0 ? (Bits)~bits : (Bits)(bits | sign);
    }
    // Eight bits of the word, without computing the others: a 64-bit word costs twice as much as a
    // 32-bit one.
    static METHOD u32 digit(Bits bits, u32 shift) {
        const Bits sign = (Bits)((Bits)1 << (sizeof(Bits) * 8 - 1));
        const Bits magnitude = (Bits)(bits & (Bits)~sign);
        const Bits infinity = (Bits)((Bits)(sign - 1) >> FRACTION << FRACTION);
        const u32 zero = shift + 8 == sizeof(Bits) * 8 ? 128 : 0;
        const u32 digit = ((u32)(bits >> shift) & 255) ^ (magnitude != bits ? 255 : zero);
        return magnitude > infinity ? 255 : magnitude == 0 ? zero : digit;
    }
};
template <class Bits>
struct SignedOrder {
    static METHOD Bits of(Bits bits) { return (Bits)(bits ^ (Bits)((Bits)1 << (sizeof(Bits) * 8 - 1))); }
};

// The order of elements of a type, and an element that is at least as large as all others.
template <class V>
struct Digits {
    typedef V Bits;
    static METHOD Bits order(V x) { return x; }
    static METHOD V last() { return (V)~(V)0; }
};
template <>
struct Digits<bool> {
    typedef u8 Bits;
    static METHOD Bits order(u8 x) { return x != 0 ? 1 : 0; }
    static METHOD u8 last() { return 1; }
};
#define GPUARRAY_SIGNED_DIGITS(type, bits)                                            \
    template <>                                                                       \
    struct Digits<type> {                                                             \
        typedef bits Bits;                                                            \
        static METHOD Bits order(type x) { return SignedOrder<bits>::of((bits)x); }   \
        static METHOD type last() { return (type)((bits)~(bits)0 >> 1); }             \
    };
GPUARRAY_SIGNED_DIGITS(i8, u8)
GPUARRAY_SIGNED_DIGITS(i16, u16)
GPUARRAY_SIGNED_DIGITS(i32, u32)
GPUARRAY_SIGNED_DIGITS(i64, u64)
template <class F>
struct Digits<narrow_float<F> > {
    typedef typename F::Bits Bits;
    static METHOD Bits order(narrow_float<F> x) { return FloatOrder<Bits, F::FRACTION>::of(x.bits); }
    static METHOD narrow_float<F> last() {
        narrow_float<F> x;
        x.bits = (Bits)((Bits)~(Bits)0 >> 1);
        return x;
    }
};
template <>
struct Digits<f32> {
    typedef u32 Bits;
#if defined(__CUDA_ARCH__) && !defined(__GPUARRAY_HOST__)
    // On NVIDIA's devices, a sum has only one NaN, with positive sign; adding 0 makes a negative zero
    // positive.
    static METHOD Bits order(f32 x) {
        const u32 bits = to_bits(x + 0.0f);
        return bits ^ ((u32)((i32)bits >> 31) | 0x80000000u);
    }
#else
    static METHOD Bits order(f32 x) { return FloatOrder<u32, 23>::of(to_bits(x)); }
#endif
    static METHOD f32 last() { return from_bits(0x7fffffffu); }
};
template <>
struct Digits<f64> {
    typedef u64 Bits;
    static METHOD Bits order(f64 x) { return FloatOrder<u64, 52>::of(to_bits(x)); }
    static METHOD f64 last() { return from_bits((u64)0x7fffffffffffffffull); }
};

// Eight bits of the order of an element.
template <class V>
struct DigitOf {
    static METHOD u32 at(typename Stored<V>::type x, u32 shift) { return (u32)(Digits<V>::order(x) >> shift) & 255; }
};
template <>
struct DigitOf<f64> {
    static METHOD u32 at(f64 x, u32 shift) { return FloatOrder<u64, 52>::digit(to_bits(x), shift); }
};
