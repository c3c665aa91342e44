// A 16-bit type, its pair, and their operators and functions, for the format that includes this file. `H` and
// `H2` are the types, `N` is their name in functions, and `F` is the format. (Without an include
// guard, because two headers include this file.)

extern "C++" {

#define CUDA_C_PASTE_(a, b, c) a##b##c
#define CUDA_C_PASTE(a, b, c) CUDA_C_PASTE_(a, b, c)
// __<a><N><b>
#define CUDA_C_N(a, b) CUDA_C_PASTE(a, CUDA_C_NAME, b)
#define CUDA_C_RAW CUDA_C_PASTE(, CUDA_C_H, _raw)
#define CUDA_C_RAW2 CUDA_C_PASTE(, CUDA_C_H2, _raw)

struct CUDA_C_RAW {
    unsigned short x;
};
struct alignas(4) CUDA_C_RAW2 {
    unsigned short x, y;
};

struct CUDA_C_H {
    unsigned short __x;

    CUDA_C_H() = default;
    constexpr CUDA_C_H(const CUDA_C_RAW& raw) : __x(raw.x) {}
    CUDA_C_H(float x) : __x(cuda_c::CUDA_C_F::nearest(x)) {}
    CUDA_C_H(double x) : __x(cuda_c::CUDA_C_F::nearest(cuda_c::to_odd(x))) {}
#define CUDA_C_FROM(type, wide)                                                                 \
    CUDA_C_H(type x) : __x(cuda_c::CUDA_C_F::nearest(cuda_c::to_odd((wide)x))) {}
    CUDA_C_FROM(short, long long)
    CUDA_C_FROM(unsigned short, unsigned long long)
    CUDA_C_FROM(int, long long)
    CUDA_C_FROM(unsigned int, unsigned long long)
    CUDA_C_FROM(long, long long)
    CUDA_C_FROM(unsigned long, unsigned long long)
    CUDA_C_FROM(long long, long long)
    CUDA_C_FROM(unsigned long long, unsigned long long)
#undef CUDA_C_FROM
    operator CUDA_C_RAW() const { return {__x}; }
    operator CUDA_C_RAW() const volatile { return {__x}; }
    operator float() const { return cuda_c::CUDA_C_F::widen(__x); }
    constexpr operator bool() const { return (__x & 0x7fff) != 0; }
    operator signed char() const;
    operator unsigned char() const;
    operator char() const;
    operator short() const { return cuda_c::saturated<short>(whole(), 0x1p15f, (short)0); }
    operator unsigned short() const {
        return cuda_c::saturated<unsigned short>(whole(), 0x1p16f, (unsigned short)0);
    }
    operator int() const { return __float2int_rz(*this); }
    operator unsigned int() const { return __float2uint_rz(*this); }
    operator long() const { return __float2ll_rz(*this); }
    operator unsigned long() const { return __float2ull_rz(*this); }
    operator long long() const { return __float2ll_rz(*this); }
    operator unsigned long long() const { return __float2ull_rz(*this); }
#define CUDA_C_ASSIGN(type)                                                                     \
    CUDA_C_H& operator=(type x) { return *this = CUDA_C_H(x); }
    CUDA_C_ASSIGN(float)
    CUDA_C_ASSIGN(double)
    CUDA_C_ASSIGN(short)
    CUDA_C_ASSIGN(unsigned short)
    CUDA_C_ASSIGN(int)
    CUDA_C_ASSIGN(unsigned int)
    CUDA_C_ASSIGN(long long)
    CUDA_C_ASSIGN(unsigned long long)
    CUDA_C_ASSIGN(const CUDA_C_RAW&)
#undef CUDA_C_ASSIGN

private:
    float whole() const { return cuda_c::round_rz((float)*this); }
};
inline CUDA_C_H::operator signed char() const {
    return cuda_c::saturated<signed char>(whole(), 0x1p7f, (signed char)0);
}
inline CUDA_C_H::operator unsigned char() const {
    return cuda_c::saturated<unsigned char>(whole(), 0x1p8f, (unsigned char)0);
}
inline CUDA_C_H::operator char() const {
    return (char)-1 < 0 ? (char)(signed char)*this : (char)(unsigned char)*this;
}

struct alignas(4) CUDA_C_H2 {
    CUDA_C_H x, y;

    CUDA_C_H2() = default;
    constexpr CUDA_C_H2(const CUDA_C_H& x, const CUDA_C_H& y) : x(x), y(y) {}
    constexpr CUDA_C_H2(const CUDA_C_RAW2& raw) : x(CUDA_C_RAW{raw.x}), y(CUDA_C_RAW{raw.y}) {}
    operator CUDA_C_RAW2() const { return {x.__x, y.__x}; }
};

namespace cuda_c {
static inline CUDA_C_H CUDA_C_N(of_, )(float x) { return CUDA_C_RAW{CUDA_C_F::nearest(x)}; }
} // namespace cuda_c
#define CUDA_C_OF cuda_c::CUDA_C_N(of_, )

// Reinterpretation of bits.
static inline short CUDA_C_N(__, _as_short)(CUDA_C_H h) { return (short)h.__x; }
static inline unsigned short CUDA_C_N(__, _as_ushort)(CUDA_C_H h) { return h.__x; }
static inline CUDA_C_H CUDA_C_N(__short_as_, )(short x) { return CUDA_C_RAW{(unsigned short)x}; }
static inline CUDA_C_H CUDA_C_N(__ushort_as_, )(unsigned short x) { return CUDA_C_RAW{x}; }

// Conversions.
static inline float CUDA_C_N(__, 2float)(CUDA_C_H h) { return h; }
static inline CUDA_C_H CUDA_C_N(__float2, )(float x) { return x; }
static inline CUDA_C_H CUDA_C_N(__double2, )(double x) { return x; }
#define CUDA_C_ROUNDED(suffix, rounding)                                                        \
    static inline CUDA_C_H CUDA_C_N(__float2, suffix)(float x) {                                \
        return CUDA_C_RAW{cuda_c::CUDA_C_F::narrow<cuda_c::rounding>(x)};                       \
    }                                                                                           \
    CUDA_C_INTEGER(short, short, long long, suffix, rounding)                                   \
    CUDA_C_INTEGER(ushort, unsigned short, unsigned long long, suffix, rounding)                \
    CUDA_C_INTEGER(int, int, long long, suffix, rounding)                                       \
    CUDA_C_INTEGER(uint, unsigned int, unsigned long long, suffix, rounding)                    \
    CUDA_C_INTEGER(ll, long long, long long, suffix, rounding)                                  \
    CUDA_C_INTEGER(ull, unsigned long long, unsigned long long, suffix, rounding)               \
    static inline int CUDA_C_N(__, 2int##suffix)(CUDA_C_H h) { return __float2int##suffix(h); } \
    static inline unsigned int CUDA_C_N(__, 2uint##suffix)(CUDA_C_H h) {                        \
        return __float2uint##suffix(h);                                                         \
    }                                                                                           \
    static inline long long CUDA_C_N(__, 2ll##suffix)(CUDA_C_H h) { return __float2ll##suffix(h); } \
    static inline unsigned long long CUDA_C_N(__, 2ull##suffix)(CUDA_C_H h) {                   \
        return __float2ull##suffix(h);                                                          \
    }                                                                                           \
    static inline short CUDA_C_N(__, 2short##suffix)(CUDA_C_H h) {                              \
        return cuda_c::saturated<short>(cuda_c::round##suffix((float)h), 0x1p15f, (short)0);    \
    }                                                                                           \
    static inline unsigned short CUDA_C_N(__, 2ushort##suffix)(CUDA_C_H h) {                    \
        return cuda_c::saturated<unsigned short>(cuda_c::round##suffix((float)h), 0x1p16f,      \
                                                 (unsigned short)0);                            \
    }
#define CUDA_C_INTEGER(name, type, wide, suffix, rounding)                                      \
    static inline CUDA_C_H CUDA_C_N(__##name##2, suffix)(type x) {                              \
        return CUDA_C_RAW{cuda_c::CUDA_C_F::narrow<cuda_c::rounding>(cuda_c::to_odd((wide)x))}; \
    }
CUDA_C_ROUNDED(_rn, ROUNDED_TO_NEAREST)
CUDA_C_ROUNDED(_rz, ROUNDED_TO_ZERO)
CUDA_C_ROUNDED(_ru, ROUNDED_UP)
CUDA_C_ROUNDED(_rd, ROUNDED_DOWN)
#undef CUDA_C_ROUNDED
#undef CUDA_C_INTEGER
static inline signed char CUDA_C_N(__, 2char_rz)(CUDA_C_H h) { return (signed char)h; }
static inline unsigned char CUDA_C_N(__, 2uchar_rz)(CUDA_C_H h) { return (unsigned char)h; }

// Pairs.
static inline CUDA_C_H2 CUDA_C_N(make_, 2)(CUDA_C_H x, CUDA_C_H y) { return {x, y}; }
static inline CUDA_C_H2 CUDA_C_N(__halves2, 2)(CUDA_C_H x, CUDA_C_H y) { return {x, y}; }
static inline CUDA_C_H2 CUDA_C_PASTE(CUDA_C_N(__, 2), CUDA_C_NAME, 2)(CUDA_C_H h) { return {h, h}; }
static inline CUDA_C_H2 CUDA_C_N(__float2, 2_rn)(float x) { return {CUDA_C_OF(x), CUDA_C_OF(x)}; }
static inline CUDA_C_H2 CUDA_C_N(__floats2, 2_rn)(float x, float y) {
    return {CUDA_C_OF(x), CUDA_C_OF(y)};
}
static inline CUDA_C_H2 CUDA_C_N(__float22, 2_rn)(float2 v) { return {CUDA_C_OF(v.x), CUDA_C_OF(v.y)}; }
static inline float2 CUDA_C_N(__, 22float2)(CUDA_C_H2 v) { return {v.x, v.y}; }
static inline float __low2float(CUDA_C_H2 v) { return v.x; }
static inline float __high2float(CUDA_C_H2 v) { return v.y; }
static inline CUDA_C_H CUDA_C_N(__low2, )(CUDA_C_H2 v) { return v.x; }
static inline CUDA_C_H CUDA_C_N(__high2, )(CUDA_C_H2 v) { return v.y; }
static inline CUDA_C_H2 CUDA_C_N(__low2, 2)(CUDA_C_H2 v) { return {v.x, v.x}; }
static inline CUDA_C_H2 CUDA_C_N(__high2, 2)(CUDA_C_H2 v) { return {v.y, v.y}; }
static inline CUDA_C_H2 CUDA_C_N(__lows2, 2)(CUDA_C_H2 v, CUDA_C_H2 w) { return {v.x, w.x}; }
static inline CUDA_C_H2 CUDA_C_N(__highs2, 2)(CUDA_C_H2 v, CUDA_C_H2 w) { return {v.y, w.y}; }
static inline CUDA_C_H2 __lowhigh2highlow(CUDA_C_H2 v) { return {v.y, v.x}; }

// Classification.
static inline bool __hisnan(CUDA_C_H h) { return (float)h != (float)h; }
static inline int __hisinf(CUDA_C_H h) {
    return __builtin_isinf((float)h) ? (h.__x & 0x8000 ? -1 : 1) : 0;
}
static inline CUDA_C_H2 __hisnan2(CUDA_C_H2 v) {
    return {CUDA_C_OF(__hisnan(v.x)), CUDA_C_OF(__hisnan(v.y))};
}

// Arithmetic. It is computed in float, which has more than twice the precision, and rounded once.
#define CUDA_C_BINARY(name, value)                                                              \
    static inline CUDA_C_H name(CUDA_C_H x, CUDA_C_H y) {                                       \
        const float a = x, b = y;                                                               \
        return CUDA_C_OF(value);                                                                \
    }
#define CUDA_C_PAIRED(name, name2)                                                              \
    static inline CUDA_C_H2 name2(CUDA_C_H2 v, CUDA_C_H2 w) { return {name(v.x, w.x), name(v.y, w.y)}; }
#define CUDA_C_ARITHMETIC(name, value)                                                          \
    CUDA_C_BINARY(name, value)                                                                  \
    CUDA_C_BINARY(name##_rn, value)                                                             \
    CUDA_C_BINARY(name##_sat, __saturatef(value))                                               \
    CUDA_C_PAIRED(name, name##2)                                                                \
    CUDA_C_PAIRED(name##_rn, name##2_rn)                                                        \
    CUDA_C_PAIRED(name##_sat, name##2_sat)
CUDA_C_ARITHMETIC(__hadd, a + b)
CUDA_C_ARITHMETIC(__hsub, a - b)
CUDA_C_ARITHMETIC(__hmul, a* b)
CUDA_C_BINARY(__hdiv, a / b)
CUDA_C_PAIRED(__hdiv, __h2div)
#undef CUDA_C_ARITHMETIC
#undef CUDA_C_BINARY
static inline CUDA_C_H __hneg(CUDA_C_H h) { return CUDA_C_RAW{(unsigned short)(h.__x ^ 0x8000)}; }
static inline CUDA_C_H __habs(CUDA_C_H h) { return CUDA_C_RAW{(unsigned short)(h.__x & 0x7fff)}; }
static inline CUDA_C_H2 __hneg2(CUDA_C_H2 v) { return {__hneg(v.x), __hneg(v.y)}; }
static inline CUDA_C_H2 __habs2(CUDA_C_H2 v) { return {__habs(v.x), __habs(v.y)}; }
static inline CUDA_C_H __hfma(CUDA_C_H x, CUDA_C_H y, CUDA_C_H z) {
    return CUDA_C_OF(cuda_c::fma_to_odd(x, y, z));
}
static inline CUDA_C_H __hfma_sat(CUDA_C_H x, CUDA_C_H y, CUDA_C_H z) {
    return CUDA_C_OF(__saturatef(cuda_c::fma_to_odd(x, y, z)));
}
static inline CUDA_C_H __hfma_relu(CUDA_C_H x, CUDA_C_H y, CUDA_C_H z) {
    const float value = cuda_c::fma_to_odd(x, y, z);
    return CUDA_C_OF(value <= 0 ? 0.0f : value);
}
#define CUDA_C_FMA_PAIR(suffix)                                                                 \
    static inline CUDA_C_H2 __hfma2##suffix(CUDA_C_H2 u, CUDA_C_H2 v, CUDA_C_H2 w) {            \
        return {__hfma##suffix(u.x, v.x, w.x), __hfma##suffix(u.y, v.y, w.y)};                  \
    }
CUDA_C_FMA_PAIR()
CUDA_C_FMA_PAIR(_sat)
CUDA_C_FMA_PAIR(_relu)
#undef CUDA_C_FMA_PAIR
// Complex multiply-add: u * v + w.
static inline CUDA_C_H2 __hcmadd(CUDA_C_H2 u, CUDA_C_H2 v, CUDA_C_H2 w) {
    return {__hfma(__hneg(u.y), v.y, __hfma(u.x, v.x, w.x)), __hfma(u.y, v.x, __hfma(u.x, v.y, w.y))};
}

// Minimum and maximum. For a NaN and a number, the plain forms return the number, the others NaN. Zeros are
// ordered by sign.
#define CUDA_C_EXTREME(name, better, zero)                                                      \
    static inline CUDA_C_H name(CUDA_C_H x, CUDA_C_H y) {                                       \
        const float a = x, b = y;                                                               \
        if (a != a && b != b) return CUDA_C_RAW{0x7fff};                                        \
        if (a != a || b != b) return a != a ? y : x;                                            \
        if (a == b) return CUDA_C_RAW{(unsigned short)(x.__x zero y.__x)};                      \
        return a better b ? x : y;                                                              \
    }                                                                                           \
    static inline CUDA_C_H name##_nan(CUDA_C_H x, CUDA_C_H y) {                                 \
        return __hisnan(x) || __hisnan(y) ? CUDA_C_H(CUDA_C_RAW{0x7fff}) : name(x, y);          \
    }                                                                                           \
    CUDA_C_PAIRED(name, name##2)                                                                \
    CUDA_C_PAIRED(name##_nan, name##2_nan)
CUDA_C_EXTREME(__hmax, >, &)
CUDA_C_EXTREME(__hmin, <, |)
#undef CUDA_C_EXTREME
#undef CUDA_C_PAIRED

// Comparisons. The forms with `u` are true if an argument is NaN; the others are false, including `ne`, which
// is an ordered comparison here.
#define CUDA_C_COMPARE(name, condition)                                                         \
    static inline bool __h##name(CUDA_C_H x, CUDA_C_H y) {                                      \
        const float a = x, b = y;                                                               \
        return condition;                                                                       \
    }                                                                                           \
    static inline CUDA_C_H2 __h##name##2(CUDA_C_H2 v, CUDA_C_H2 w) {                            \
        return {CUDA_C_OF(__h##name(v.x, w.x)), CUDA_C_OF(__h##name(v.y, w.y))};                \
    }                                                                                           \
    static inline unsigned int __h##name##2_mask(CUDA_C_H2 v, CUDA_C_H2 w) {                    \
        return (__h##name(v.x, w.x) ? 0xffffu : 0) | (__h##name(v.y, w.y) ? 0xffff0000u : 0);   \
    }                                                                                           \
    static inline bool __hb##name##2(CUDA_C_H2 v, CUDA_C_H2 w) {                                \
        return __h##name(v.x, w.x) && __h##name(v.y, w.y);                                      \
    }
CUDA_C_COMPARE(eq, a == b)
CUDA_C_COMPARE(ne, a < b || a > b)
CUDA_C_COMPARE(le, a <= b)
CUDA_C_COMPARE(ge, a >= b)
CUDA_C_COMPARE(lt, a < b)
CUDA_C_COMPARE(gt, a > b)
CUDA_C_COMPARE(equ, !(a < b || a > b))
CUDA_C_COMPARE(neu, a != b)
CUDA_C_COMPARE(leu, !(a > b))
CUDA_C_COMPARE(geu, !(a < b))
CUDA_C_COMPARE(ltu, !(a >= b))
CUDA_C_COMPARE(gtu, !(a <= b))
#undef CUDA_C_COMPARE

// Mathematical functions, rounded from float.
#define CUDA_C_FUNCTION(name, value)                                                            \
    static inline CUDA_C_H h##name(CUDA_C_H h) {                                                \
        const float a = h;                                                                      \
        return CUDA_C_OF(value);                                                                \
    }                                                                                           \
    static inline CUDA_C_H2 h2##name(CUDA_C_H2 v) { return {h##name(v.x), h##name(v.y)}; }
CUDA_C_FUNCTION(trunc, cuda_c::round_rz(a))
CUDA_C_FUNCTION(ceil, cuda_c::round_ru(a))
CUDA_C_FUNCTION(floor, cuda_c::round_rd(a))
CUDA_C_FUNCTION(rint, cuda_c::round_rn(a))
CUDA_C_FUNCTION(sqrt, __builtin_sqrtf(a))
CUDA_C_FUNCTION(rsqrt, rsqrtf(a))
CUDA_C_FUNCTION(rcp, 1 / a)
CUDA_C_FUNCTION(log, logf(a))
CUDA_C_FUNCTION(log2, log2f(a))
CUDA_C_FUNCTION(log10, log10f(a))
CUDA_C_FUNCTION(exp, expf(a))
CUDA_C_FUNCTION(exp2, exp2f(a))
CUDA_C_FUNCTION(exp10, exp10f(a))
CUDA_C_FUNCTION(cos, cosf(a))
CUDA_C_FUNCTION(sin, sinf(a))
CUDA_C_FUNCTION(tanh, tanhf(a))
#undef CUDA_C_FUNCTION

// Shuffles and atomics.
CUDA_C_SHUFFLES(CUDA_C_H)
CUDA_C_SHUFFLES(CUDA_C_H2)
#define CUDA_C_ATOMIC(name)                                                                     \
    static inline CUDA_C_H name(CUDA_C_H* address, CUDA_C_H value) {                            \
        return cuda_c::atomic_update(address, [=](CUDA_C_H old) { return __hadd(old, value); }); \
    }                                                                                           \
    static inline CUDA_C_H2 name(CUDA_C_H2* address, CUDA_C_H2 value) {                         \
        return cuda_c::atomic_update(address, [=](CUDA_C_H2 old) { return __hadd2(old, value); }); \
    }
CUDA_C_ATOMIC(atomicAdd)
CUDA_C_ATOMIC(atomicAdd_block)
CUDA_C_ATOMIC(atomicAdd_system)
#undef CUDA_C_ATOMIC

// Operators.
#define CUDA_C_OPERATORS(type, suffix, divide)                                                  \
    static inline type operator+(const type& x, const type& y) { return __hadd##suffix(x, y); } \
    static inline type operator-(const type& x, const type& y) { return __hsub##suffix(x, y); } \
    static inline type operator*(const type& x, const type& y) { return __hmul##suffix(x, y); } \
    static inline type operator/(const type& x, const type& y) { return divide(x, y); }         \
    static inline type& operator+=(type& x, const type& y) { return x = x + y; }                \
    static inline type& operator-=(type& x, const type& y) { return x = x - y; }                \
    static inline type& operator*=(type& x, const type& y) { return x = x * y; }                \
    static inline type& operator/=(type& x, const type& y) { return x = x / y; }                \
    static inline type operator+(const type& x) { return x; }                                   \
    static inline type operator-(const type& x) { return __hneg##suffix(x); }
CUDA_C_OPERATORS(CUDA_C_H, , __hdiv)
CUDA_C_OPERATORS(CUDA_C_H2, 2, __h2div)
#undef CUDA_C_OPERATORS
static inline CUDA_C_H& operator++(CUDA_C_H& h) { return h = CUDA_C_OF((float)h + 1); }
static inline CUDA_C_H& operator--(CUDA_C_H& h) { return h = CUDA_C_OF((float)h - 1); }
static inline CUDA_C_H operator++(CUDA_C_H& h, int) {
    const CUDA_C_H before = h;
    ++h;
    return before;
}
static inline CUDA_C_H operator--(CUDA_C_H& h, int) {
    const CUDA_C_H before = h;
    --h;
    return before;
}
static inline CUDA_C_H2& operator++(CUDA_C_H2& v) { return ++v.x, ++v.y, v; }
static inline CUDA_C_H2& operator--(CUDA_C_H2& v) { return --v.x, --v.y, v; }
static inline CUDA_C_H2 operator++(CUDA_C_H2& v, int) { return {v.x++, v.y++}; }
static inline CUDA_C_H2 operator--(CUDA_C_H2& v, int) { return {v.x--, v.y--}; }
#define CUDA_C_COMPARE(symbol, name)                                                            \
    static inline bool operator symbol(const CUDA_C_H& x, const CUDA_C_H& y) { return __h##name(x, y); } \
    static inline bool operator symbol(const CUDA_C_H2& v, const CUDA_C_H2& w) {                \
        return __hb##name##2(v, w);                                                             \
    }
CUDA_C_COMPARE(==, eq)
CUDA_C_COMPARE(!=, neu)
CUDA_C_COMPARE(<, lt)
CUDA_C_COMPARE(<=, le)
CUDA_C_COMPARE(>, gt)
CUDA_C_COMPARE(>=, ge)
#undef CUDA_C_COMPARE

#undef CUDA_C_OF
#undef CUDA_C_RAW
#undef CUDA_C_RAW2
#undef CUDA_C_N
#undef CUDA_C_PASTE
#undef CUDA_C_PASTE_

} // extern "C++"

#undef CUDA_C_H
#undef CUDA_C_H2
#undef CUDA_C_NAME
#undef CUDA_C_F
