// Video instructions: operations on selected parts of words, followed by a second operation.
#pragma once

extern "C++" {
namespace cuda_c {
namespace ptx {

// Extracts a part of a word. The selector holds its position, and above that its number of bits.
template <class T> static inline s64 part(T word, u32 selector) {
    const u32 size = selector >> 8, from = selector & 255;
    const u32 above = 64 - size;
    const u64 bits = (u64)(u32)word >> from << above;
    return is_signed<T> ? (s64)bits >> above : (s64)(bits >> above);
}
static inline s64 clamped(s64 value, bool has_sign, u32 size) {
    const s64 highest = (1ll << (has_sign ? size - 1 : size)) - 1, lowest = has_sign ? -highest - 1 : 0;
    return value < lowest ? lowest : value > highest ? highest : value;
}
template <class M> static inline u32 second(s64 value, u32 c, bool has_sign) {
    if constexpr (has<M, m_add>) return (u32)value + c;
    const bool is_less = has_sign ? (s32)value < (s32)c : (u32)value < c;
    if constexpr (has<M, m_min>) return is_less ? (u32)value : c;
    else if constexpr (has<M, m_max>) return is_less ? c : (u32)value;
    else return (u32)value;
}
// The result: clamped, and combined with `c`, which also provides the bits outside a partial result.
template <class M, class D> static inline D video_result(s64 value, D c, u32 selector) {
    const u32 size = selector >> 8, from = selector & 255;
    if (has<M, m_sat>) value = clamped(value, is_signed<D>, size);
    if (size == 32) return (D)second<M>(value, (u32)c, is_signed<D>);
    const u32 mask = ((1u << size) - 1) << from;
    return (D)(((u32)value << from & mask) | ((u32)c & ~mask));
}
#define CUDA_C_PTX_VIDEO(name, value)                                                           \
    template <class M, class D, class A, class B>                                               \
    static inline D video_##name(A first, B other, D c, u32 result, u32 of_first, u32 of_other) { \
        const s64 a = part(first, of_first), b = part(other, of_other);                         \
        return video_result<M, D>(value, c, result);                                            \
    }
CUDA_C_PTX_VIDEO(vadd, a + b)
CUDA_C_PTX_VIDEO(vsub, a - b)
CUDA_C_PTX_VIDEO(vabsdiff, a < b ? b - a : a - b)
CUDA_C_PTX_VIDEO(vmin, a < b ? a : b)
CUDA_C_PTX_VIDEO(vmax, a < b ? b : a)
CUDA_C_PTX_VIDEO(vset, compared<M>(a, b))
#undef CUDA_C_PTX_VIDEO

template <class M> static inline u32 distance(s64 by) {
    return has<M, m_wrap> ? (u32)by & 31 : (u64)(u32)by > 32 ? 32 : (u32)by;
}
template <class M, class D, class A, class B>
static inline D video_vshl(A a, B b, D c, u32 result, u32 of_a, u32 of_b) {
    return video_result<M, D>((s64)((u64)part(a, of_a) << distance<M>(part(b, of_b))), c, result);
}
template <class M, class D, class A, class B>
static inline D video_vshr(A a, B b, D c, u32 result, u32 of_a, u32 of_b) {
    return video_result<M, D>(part(a, of_a) >> distance<M>(part(b, of_b)), c, result);
}
template <class M, class D, class A, class B>
static inline D video_vmad(A a, B b, D c, u32, u32 of_a, u32 of_b) {
    // The signedness of the result depends on the operands, not on the type in the instruction's name.
    constexpr bool has_sign = is_signed<A> || is_signed<B> || has<M, m_minus_product> || has<M, m_minus_c>;
    const s128 product = (s128)part(a, of_a) * part(b, of_b), added = has_sign ? (s128)(s32)c : (s128)(u32)c;
    s128 sum = (has<M, m_minus_product> ? -product : product) + (has<M, m_minus_c> ? -added : added) + has<M, m_po>;
    sum >>= has<M, m_shr7> ? 7 : has<M, m_shr15> ? 15 : 0;
    if (has<M, m_sat>) return (D)(has_sign ? (u32)saturate<s32>(sum) : saturate<u32>(sum));
    return (D)(u32)sum;
}

// Several lanes in one operation. Digits select the operands of each lane from the parts of both words. Lanes
// outside the mask keep the value of `c`, or do not contribute to a sum.
template <class M> constexpr u32 lanes_of = has<M, m_lanes2> ? 2 : 4;
template <class M, class T> static inline s64 lane(u32 a, u32 b, u32 digits, u32 number) {
    constexpr u32 count = lanes_of<M>, size = 32 / count;
    const u32 digit = digits >> 4 * number & 15;
    return part((T)(digit < count ? a : b), size << 8 | digit % count * size);
}
template <class M, class D, class A, class B, class Operation>
static inline D simd(A a, B b, D c, u32 mask, u32 of_a, u32 of_b, Operation operation) {
    constexpr u32 count = lanes_of<M>, size = 32 / count;
    u32 result = (u32)c;
    for (u32 number = 0; number < count; ++number) {
        if (!(mask >> number & 1)) continue;
        s64 value = operation(lane<M, A>((u32)a, (u32)b, of_a, number), lane<M, B>((u32)a, (u32)b, of_b, number));
        if (has<M, m_sat>) value = clamped(value, is_signed<D>, size);
        const u32 bits = ((1u << size) - 1) << number * size;
        result = has<M, m_add> ? result + (u32)value : (result & ~bits) | ((u32)value << number * size & bits);
    }
    return (D)result;
}
#define CUDA_C_PTX_SIMD(name, value)                                                            \
    template <class M, class D, class A, class B>                                               \
    static inline D simd_##name(A first, B other, D c, u32 mask, u32 of_first, u32 of_other) {  \
        return simd<M, D>(first, other, c, mask, of_first, of_other, [](s64 a, s64 b) { return (s64)(value); }); \
    }
CUDA_C_PTX_SIMD(vadd, a + b)
CUDA_C_PTX_SIMD(vsub, a - b)
// Rounds up, away from zero.
CUDA_C_PTX_SIMD(vavrg, (a + b + (a + b >= 0)) >> 1)
CUDA_C_PTX_SIMD(vabsdiff, a < b ? b - a : a - b)
CUDA_C_PTX_SIMD(vmin, a < b ? a : b)
CUDA_C_PTX_SIMD(vmax, a < b ? b : a)
CUDA_C_PTX_SIMD(vset, compared<M>(a, b))
#undef CUDA_C_PTX_SIMD

} // namespace ptx
} // namespace cuda_c
} // extern "C++"
