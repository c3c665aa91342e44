// Conversions.
#pragma once

extern "C++" {
namespace cuda_c {
namespace ptx {

template <class M>
constexpr Rounding rounding_of = has<M, m_rz> ? ROUNDED_TO_ZERO
                                 : has<M, m_rm> ? ROUNDED_DOWN
                                 : has<M, m_rp> ? ROUNDED_UP
                                                : ROUNDED_TO_NEAREST;

// Rounds to an integer of the same type.
template <class M, class T> static inline T whole(T x) {
    if constexpr (has<M, m_rni>) return round_rn(x);
    else if constexpr (has<M, m_rzi>) return round_rz(x);
    else if constexpr (has<M, m_rmi>) return round_rd(x);
    else if constexpr (has<M, m_rpi>) return round_ru(x);
    else return x;
}

// Integers out of range saturate. NaN becomes the value with only the highest bit set if one type has 64
// bits, otherwise zero.
template <class M, class D, class T> static inline D to_integer(T x) {
    const T limit = (T)(is_signed<D> ? 1 : 2) * (T)(1ull << (bits_of<D> - 1));
    const D nan = sizeof(D) == 8 || sizeof(T) == 8 ? (D)((BitsOf<D>)1 << (bits_of<D> - 1)) : D(0);
    return saturated<D, T>(whole<M>(flushed<M>(x)), limit, nan);
}

// Calls the language's conversion functions, which round.
template <class M, class D, class T> static inline D from_integer(T x) {
#define CUDA_C_PTX_FROM(suffix)                                                                 \
    if constexpr (is_same<D, f64>) {                                                            \
        if constexpr (sizeof(T) < 8) return (f64)x;                                             \
        else if constexpr (is_signed<T>) return __ll2double_##suffix(x);                        \
        else return __ull2double_##suffix(x);                                                   \
    } else if constexpr (sizeof(T) == 8) {                                                      \
        if constexpr (is_signed<T>) return __ll2float_##suffix(x);                              \
        else return __ull2float_##suffix(x);                                                    \
    } else if constexpr (is_signed<T>) {                                                        \
        return __int2float_##suffix(x);                                                         \
    } else {                                                                                    \
        return __uint2float_##suffix(x);                                                        \
    }
    if constexpr (has<M, m_rz>) {
        CUDA_C_PTX_FROM(rz)
    } else if constexpr (has<M, m_rm>) {
        CUDA_C_PTX_FROM(rd)
    } else if constexpr (has<M, m_rp>) {
        CUDA_C_PTX_FROM(ru)
    } else {
        CUDA_C_PTX_FROM(rn)
    }
#undef CUDA_C_PTX_FROM
}
template <class M> static inline f32 to_float(f64 x) {
    if constexpr (has<M, m_rz>) return __double2float_rz(x);
    else if constexpr (has<M, m_rm>) return __double2float_rd(x);
    else if constexpr (has<M, m_rp>) return __double2float_ru(x);
    else return __double2float_rn(x);
}
// Rounds to 10 fraction bits. Ties go away from zero, or with `rn` to even.
template <class M> static inline tf32 to_tf32(f32 x) {
    const u32 u = bits<u32>(has<M, m_relu> && x <= 0 ? 0.0f : x);
    if ((u & 0x7fffffff) > 0x7f800000) return {0x7fffffff};
    if (has<M, m_rz> || (u & 0x7f800000) == 0x7f800000) return {u & 0xffffe000};
    return {(u + (has<M, m_rn> ? 0xfff + (u >> 13 & 1) : 0x1000)) & 0xffffe000};
}

// Converts a number to float, rounding to odd: the last bit records that bits were cut off.
template <class T> static inline f32 odd_float(T x) {
    if constexpr (is_float<T>) {
        if constexpr (is_same<T, f64>) return to_odd(x);
        else return x;
    } else if constexpr (is_signed<T>) {
        return to_odd((long long)x);
    } else {
        return to_odd((unsigned long long)x);
    }
}

template <class M, class D, class T> static inline D cvt(T x) {
    if constexpr (is_narrow<T>) {
        const auto own = flushed<M>(x);
        if constexpr (is_same<D, T>) {
            const f32 rounded = whole<M>(widened(own));
            const bool is_plain = !has<M, m_rni> && !has<M, m_rzi> && !has<M, m_rmi> && !has<M, m_rpi> && !has<M, m_sat> && !has<M, m_relu>;
            return is_plain ? own : narrowed<M, typename D::Format>(rounded);
        } else {
            return cvt<M, D>(widened(own));
        }
    } else if constexpr (is_narrow<D>) {
        f32 value = odd_float(x);
        if constexpr (has<M, m_sat>) value = value > 0 ? value < 1 ? value : 1.0f : 0.0f;
        if constexpr (has<M, m_relu>) value = value <= 0 ? 0.0f : value;
        return flushed<M>(D{D::Format::template narrow<rounding_of<M>>(value)});
    } else if constexpr (is_same<D, tf32>) {
        return to_tf32<M>(x);
    } else if constexpr (is_float<T>) {
        if constexpr (is_same<D, T>) return finished<M>(whole<M>(flushed<M>(x)));
        else if constexpr (is_same<D, f32>) return finished<M>(to_float<M>(x));
        else if constexpr (is_same<D, f64>) return finished<M>((f64)flushed<M>(x));
        else return to_integer<M, D>(x);
    } else if constexpr (is_float<D>) {
        return finished<M>(from_integer<M, D>(x));
    } else if constexpr (has<M, m_sat>) {
        // Compares in a type that can represent both.
        return saturate<D>((s128)x);
    } else {
        return (D)x;
    }
}

// Converts two numbers. The first becomes the upper half; `c` goes above both.
template <class M, class D, class T, class C> static inline b32 cvt(T high, T low, C c) {
    constexpr int size = bits_of<D>;
    typedef BitsOf<D> U;
    return (size == 16 ? 0 : (u32)c << 2 * size) | (u32)(U)saturate<D>((s64)high) << size | (U)saturate<D>((s64)low);
}
template <class M, class D, class T> static inline auto cvt(T high, T low) {
    if constexpr (has<M, m_pack>) {
        return cvt<M, D, T, u32>(high, low, 0);
    } else {
        typedef typename D::Part P;
        return D{(u32)cvt<M, P>(high).bits << 16 | cvt<M, P>(low).bits};
    }
}

} // namespace ptx
} // namespace cuda_c
} // extern "C++"
