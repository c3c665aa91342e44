// Arithmetic of float and double, and the instructions that integers and all formats share.
#pragma once

extern "C++" {
namespace cuda_c {
namespace ptx {

// `ftz` flushes subnormal numbers to zeros of the same sign. `sat` clamps to the range from 0 to 1, where NaN
// becomes 0.
template <class M> static inline f32 flushed(f32 x) {
    if constexpr (has<M, m_ftz>) return __builtin_fabsf(x) < 0x1p-126f ? __builtin_copysignf(0, x) : x;
    else return x;
}
template <class M> static inline f64 flushed(f64 x) { return x; }
template <class M, class T> static inline T finished(T x) {
    x = flushed<M>(x);
    if constexpr (has<M, m_sat>) return x > 0 ? x < 1 ? x : T(1) : T(0);
    else return x;
}

// The functions of the language with a stated rounding. If no rounding is stated, the compiler may fuse a
// product with a sum.
#define CUDA_C_PTX_ROUNDED(name, f32_name, f64_name, parameters, ...)                           \
    template <class M> static inline f32 name##_rounded parameters(f32) {                       \
        if constexpr (has<M, m_rz>) return __##f32_name##_rz(__VA_ARGS__);                      \
        else if constexpr (has<M, m_rm>) return __##f32_name##_rd(__VA_ARGS__);                 \
        else if constexpr (has<M, m_rp>) return __##f32_name##_ru(__VA_ARGS__);                 \
        else return __##f32_name##_rn(__VA_ARGS__);                                             \
    }                                                                                           \
    template <class M> static inline f64 name##_rounded parameters(f64) {                       \
        if constexpr (has<M, m_rz>) return __##f64_name##_rz(__VA_ARGS__);                      \
        else if constexpr (has<M, m_rm>) return __##f64_name##_rd(__VA_ARGS__);                 \
        else if constexpr (has<M, m_rp>) return __##f64_name##_ru(__VA_ARGS__);                 \
        else return __##f64_name##_rn(__VA_ARGS__);                                             \
    }
#define CUDA_C_PTX_ONE(type) (type x)
#define CUDA_C_PTX_TWO(type) (type x, type y)
#define CUDA_C_PTX_THREE(type) (type x, type y, type z)
CUDA_C_PTX_ROUNDED(add, fadd, dadd, CUDA_C_PTX_TWO, x, y)
CUDA_C_PTX_ROUNDED(mul, fmul, dmul, CUDA_C_PTX_TWO, x, y)
CUDA_C_PTX_ROUNDED(div, fdiv, ddiv, CUDA_C_PTX_TWO, x, y)
CUDA_C_PTX_ROUNDED(rcp, frcp, drcp, CUDA_C_PTX_ONE, x)
CUDA_C_PTX_ROUNDED(sqrt, fsqrt, dsqrt, CUDA_C_PTX_ONE, x)
CUDA_C_PTX_ROUNDED(fma, fmaf, fma, CUDA_C_PTX_THREE, x, y, z)
#undef CUDA_C_PTX_ROUNDED
#undef CUDA_C_PTX_ONE
#undef CUDA_C_PTX_TWO
#undef CUDA_C_PTX_THREE
template <class M>
constexpr bool is_rounded = has<M, m_rn> || has<M, m_rz> || has<M, m_rm> || has<M, m_rp>;

template <class M, class T> static inline T add_floats(T x, T y) {
    x = flushed<M>(x), y = flushed<M>(y);
    return finished<M>(is_rounded<M> ? add_rounded<M>(x, y) : x + y);
}
template <class M, class T> static inline T mul_floats(T x, T y) {
    x = flushed<M>(x), y = flushed<M>(y);
    return finished<M>(is_rounded<M> ? mul_rounded<M>(x, y) : x * y);
}
template <class M, class T> static inline T fma_floats(T x, T y, T z) {
    return finished<M>(fma_rounded<M>(flushed<M>(x), flushed<M>(y), flushed<M>(z)));
}
template <class M, class T> static inline T div_floats(T x, T y) {
    return finished<M>(div_rounded<M>(flushed<M>(x), flushed<M>(y)));
}
template <class M, class T> static inline T rcp(T x) {
    // This form drops the lower word of a double, and also flushes subnormal doubles.
    if constexpr (is_same<T, f64> && has<M, m_approx>) {
        const f64 one = 1 / (__builtin_fabs(x) < 0x1p-1022 ? __builtin_copysign(0.0, x) : x);
        return bits<f64>(bits<u64>(one) & 0xffffffff00000000ull);
    } else {
        return finished<M>(rcp_rounded<M>(flushed<M>(x)));
    }
}
template <class M, class T> static inline T sqrt(T x) { return finished<M>(sqrt_rounded<M>(flushed<M>(x))); }
template <class M, class T> static inline T rsqrt(T x) { return finished<M>(::rsqrt(flushed<M>(x))); }
template <class M, class T> static inline T sin(T x) { return finished<M>(::sinf(flushed<M>(x))); }
template <class M, class T> static inline T cos(T x) { return finished<M>(::cosf(flushed<M>(x))); }
template <class M, class T> static inline T lg2(T x) { return finished<M>(::log2f(flushed<M>(x))); }

// For a NaN and a number the result is the number, or NaN with the modifier `NaN`. -0 is less than +0. With
// `xorsign`, the result is the larger or smaller magnitude with the product of the signs.
template <class M, bool IS_MAX, class T> static inline T extreme_of_floats(T x, T y) {
    typedef BitsOf<T> U;
    constexpr U sign = U(1) << (bits_of<T> - 1), quiet = (U)(sizeof(T) == 4 ? 0x7fffffffull : 0x7fffffffffffffffull);
    x = flushed<M>(x), y = flushed<M>(y);
    if constexpr (has<M, m_xorsign>) {
        const U signs = (bits<U>(x) ^ bits<U>(y)) & sign;
        const T size = extreme_of_floats<modes<>, IS_MAX>(bits<T>((U)(bits<U>(x) & ~sign)), bits<T>((U)(bits<U>(y) & ~sign)));
        if (has<M, m_NaN> && (x != x || y != y)) return bits<T>(quiet);
        return size != size ? size : bits<T>((U)(bits<U>(size) | signs));
    }
    if (x != x || y != y) {
        if (has<M, m_NaN> || (x != x && y != y)) return bits<T>(quiet);
        return x != x ? y : x;
    }
    if (x == y) return bits<T>(IS_MAX ? (U)(bits<U>(x) & bits<U>(y)) : (U)(bits<U>(x) | bits<U>(y)));
    return (IS_MAX ? x > y : x < y) ? x : y;
}

template <class M, class T> static inline T copysign(T sign, T size) {
    constexpr BitsOf<T> bit = BitsOf<T>(1) << (bits_of<T> - 1);
    return bits<T>((BitsOf<T>)((bits<BitsOf<T>>(size) & ~bit) | (bits<BitsOf<T>>(sign) & bit)));
}
template <class M, class T> static inline bool testp(T x) {
    const T size = x < 0 ? -x : x, least = (T)(sizeof(T) == 4 ? 0x1p-126 : 0x1p-1022);
    const bool is_number = x == x, is_infinite = is_number && size - size != 0;
    if (has<M, m_finite>) return is_number && !is_infinite;
    if (has<M, m_infinite>) return is_infinite;
    if (has<M, m_number>) return is_number;
    if (has<M, m_notanumber>) return !is_number;
    if (has<M, m_normal>) return is_number && !is_infinite && size >= least;
    return size != 0 && size < least;
}

// The 16-bit formats, in `narrow.h`.
template <class M, class F> static inline Narrow<F> add_narrow(Narrow<F> x, Narrow<F> y);
template <class M, class F> static inline Narrow<F> sub_narrow(Narrow<F> x, Narrow<F> y);
template <class M, class F> static inline Narrow<F> mul_narrow(Narrow<F> x, Narrow<F> y);
template <class M, class F> static inline Narrow<F> fma_narrow(Narrow<F> x, Narrow<F> y, Narrow<F> z);
template <class M, bool IS_MAX, class F> static inline Narrow<F> extreme_of_narrow(Narrow<F> x, Narrow<F> y);
template <class M, class F> static inline Narrow<F> sign_of_narrow(Narrow<F> x, u16 keep, u16 flip);

// An instruction for pairs, for each format, for float and double, and for integers.
#define CUDA_C_PTX_BINARY(name, integers, floats, narrow)                                       \
    template <class M, class T> static inline T name(T a, T b) {                                \
        if constexpr (is_pair<T>) {                                                             \
            typedef typename T::Part P;                                                         \
            return of_halves(a, b, [](P x, P y) { return name<M, P>(x, y); });                  \
        } else if constexpr (is_narrow<T>) {                                                    \
            return narrow;                                                                      \
        } else if constexpr (is_float<T>) {                                                     \
            return floats;                                                                      \
        } else {                                                                                \
            return integers;                                                                    \
        }                                                                                       \
    }
CUDA_C_PTX_BINARY(add, add_integers<M>(a, b), add_floats<M>(a, b), add_narrow<M>(a, b))
CUDA_C_PTX_BINARY(sub, sub_integers<M>(a, b), add_floats<M>(a, -b), sub_narrow<M>(a, b))
CUDA_C_PTX_BINARY(min, min_integers<M>(a, b), (extreme_of_floats<M, false>(a, b)), (extreme_of_narrow<M, false>(a, b)))
CUDA_C_PTX_BINARY(max, max_integers<M>(a, b), (extreme_of_floats<M, true>(a, b)), (extreme_of_narrow<M, true>(a, b)))
#undef CUDA_C_PTX_BINARY
template <class M, class T> static inline auto mul(T a, T b) {
    if constexpr (is_pair<T>) {
        typedef typename T::Part P;
        return of_halves(a, b, [](P x, P y) { return mul<M, P>(x, y); });
    } else if constexpr (is_narrow<T>) {
        return mul_narrow<M>(a, b);
    } else if constexpr (is_float<T>) {
        return mul_floats<M>(a, b);
    } else {
        return mul_integers<M>(a, b);
    }
}
template <class M, class T> static inline T div(T a, T b) {
    if constexpr (is_float<T>) return div_floats<M>(a, b);
    else return div_integers<M>(a, b);
}
template <class M, class T> static inline T fma(T a, T b, T c) {
    if constexpr (is_pair<T>) {
        typedef typename T::Part P;
        const u32 low = fma<M, P>(as<P>(a.bits), as<P>(b.bits), as<P>(c.bits)).bits;
        const u32 high = fma<M, P>(as<P>(a.bits >> 16), as<P>(b.bits >> 16), as<P>(c.bits >> 16)).bits;
        return {high << 16 | low};
    } else if constexpr (is_narrow<T>) {
        return fma_narrow<M>(a, b, c);
    } else {
        return fma_floats<M>(a, b, c);
    }
}
template <class M, class T, class C> static inline auto mad(T a, T b, C c) {
    if constexpr (is_float<T>) return fma_floats<M>(a, b, c);
    else return mad_integers<M>(a, b, c);
}
// The sign of a NaN also changes.
template <class M, class T> static inline T neg(T a) {
    if constexpr (is_pair<T>) {
        typedef typename T::Part P;
        return of_halves(a, [](P x) { return neg<M, P>(x); });
    } else if constexpr (is_narrow<T>) {
        return sign_of_narrow<M>(a, 0xffff, 0x8000);
    } else if constexpr (is_float<T>) {
        return flushed<M>(-a);
    } else {
        return (T)(0 - (BitsOf<T>)a);
    }
}
template <class M, class T> static inline T abs(T a) {
    if constexpr (is_pair<T>) {
        typedef typename T::Part P;
        return of_halves(a, [](P x) { return abs<M, P>(x); });
    } else if constexpr (is_narrow<T>) {
        return sign_of_narrow<M>(a, 0x7fff, 0);
    } else if constexpr (is_float<T>) {
        return flushed<M>(copysign<M>(T(0), a));
    } else {
        return a < 0 ? neg<M>(a) : a;
    }
}

} // namespace ptx
} // namespace cuda_c
} // extern "C++"
