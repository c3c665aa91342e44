// Bit instructions: counting, finding, fields, masks, logic, shifts and byte permutations.
#pragma once

extern "C++" {
namespace cuda_c {
namespace ptx {

template <class M, class T> static inline u32 popc(T a) { return (u32)__builtin_popcountll(a); }
template <class M, class T> static inline u32 clz(T a) {
    return sizeof(T) == 8 ? (u32)__clzll((long long)a) : (u32)__clz((int)a);
}
// The position of the highest bit that differs from the sign, or with `shiftamt` its distance from the
// highest bit.
template <class M, class T> static inline u32 bfind(T a) {
    const BitsOf<T> found = (BitsOf<T>)(is_signed<T> && a < T(0) ? ~a : a);
    const u32 zeros = clz<M, BitsOf<T>>(found);
    if (zeros == bits_of<T>) return ~0u;
    return has<M, m_shiftamt> ? zeros : bits_of<T> - 1 - zeros;
}
template <class M, class T> static inline b32 fns(b32 mask, b32 base, s32 offset) { return __fns(mask, base, offset); }
template <class M, class T> static inline T brev(T a) {
    return sizeof(T) == 8 ? (T)__brevll(a) : (T)__brev((u32)a);
}

// A field of `length` bits from `position` on. Above the field, and beyond the number, it is sign-extended.
template <class M, class T> static inline T bfe(T a, u32 position, u32 length) {
    typedef BitsOf<T> U;
    constexpr u32 all = bits_of<T>;
    position &= 255, length &= 255;
    if (length == 0) return 0;
    const u32 last = position + length - 1 < all - 1 ? position + length - 1 : all - 1;
    const U fill = is_signed<T> && ((U)a >> last & 1) ? (U)~U(0) : U(0);
    const U field = position < all ? (U)((U)a >> position) : U(0);
    const u32 there = position < all ? (length < all - position ? length : all - position) : 0;
    const U mask = there >= all ? (U)~U(0) : (U)((U(1) << there) - 1);
    return (T)(U)((field & mask) | (fill & (U)~mask));
}
template <class M, class T> static inline T bfi(T a, T b, u32 position, u32 length) {
    constexpr u32 all = bits_of<T>;
    position &= 255, length &= 255;
    if (length == 0 || position >= all) return b;
    const T ones = length >= all ? (T)~T(0) : (T)((T(1) << length) - 1);
    const T mask = (T)(ones << position);
    return (T)((b & (T)~mask) | ((T)(a << position) & mask));
}
// A mask of `width` ones, starting at `position`.
template <class M, class T> static inline T bmsk(T position, T width) {
    const bool clamps = has<M, m_clamp>;
    const u32 first = position & 31, count = width & 31;
    const u32 below = clamps && position >= 32 ? 0 : ~0u << first;
    if (first + count >= 32 || (clamps && (position >= 32 || width >= 32))) return below;
    return below & ~(~0u << (first + count));
}
// Extends a number of `count` bits.
template <class M, class T> static inline T szext(T a, u32 count) {
    if (has<M, m_clamp> && count >= 32) return a;
    count &= 31;
    const u32 above = ~0u << count;
    const bool is_negative = is_signed<T> && count != 0 && ((u32)a >> (count - 1) & 1);
    return (T)(((u32)a & ~above) | (is_negative ? above : 0));
}

template <class M, class T> static inline T and_(T a, T b) { return (T)(a & b); }
template <class M, class T> static inline T or_(T a, T b) { return (T)(a | b); }
template <class M, class T> static inline T xor_(T a, T b) { return (T)(a ^ b); }
template <class M, class T> static inline T not_(T a) {
    if constexpr (is_same<T, pred>) {
        return !a;
    } else {
        return (T)~a;
    }
}
template <class M, class T> static inline T cnot(T a) { return a == 0; }
// A lookup table: each three input bits select a bit of it.
template <class M, class T> static inline T lop3(T a, T b, T c, u32 table) {
    T result = 0;
    for (u32 row = 0; row < 8; ++row) {
        const T chosen = (row & 4 ? a : ~a) & (row & 2 ? b : ~b) & (row & 1 ? c : ~c);
        result |= table >> row & 1 ? chosen : 0;
    }
    return result;
}
// Combines a predicate with another one.
template <class M> static inline bool combined(bool p, bool q) {
    return has<M, m_and> ? p && q : has<M, m_or> ? p || q : has<M, m_xor> ? p != q : p;
}
template <class M, class T> static inline T lop3(T a, T b, T c, u32 table, bool q, Second& p) {
    const T result = lop3<M>(a, b, c, table);
    p.is = combined<M>(result != 0, q);
    return result;
}
template <class M, class T> static inline T lop3(T a, T b, T c, u32 table, bool) { return lop3<M>(a, b, c, table); }

template <class M, class T> static inline T shf(T a, T b, u32 by) {
    if constexpr (has<M, m_l>) return has<M, m_wrap> ? __funnelshift_l(a, b, by) : by >= 32 ? a : __funnelshift_l(a, b, by);
    else return has<M, m_wrap> ? __funnelshift_r(a, b, by) : by >= 32 ? b : __funnelshift_r(a, b, by);
}
// A shift by the number of bits or more yields zero.
template <class M, class T> static inline T shl(T a, u32 by) {
    return by >= (u32)bits_of<T> ? T(0) : (T)((BitsOf<T>)a << by);
}
template <class M, class T> static inline T shr(T a, u32 by) {
    const u32 most = bits_of<T> - 1;
    return by > most ? (T)(is_signed<T> && a < T(0) ? -1 : 0) : (T)(a >> by);
}

// Without a mode, bit 3 of a digit replicates the sign of the byte that the digit selects.
template <class M, class T> static inline T prmt(T a, T b, u32 selector) {
    const u32 n = selector & 3;
    if constexpr (has<M, m_f4e>) return __byte_perm(a, b, 0x3210 + n * 0x1111);
    if constexpr (has<M, m_b4e>) return __byte_perm(a, b, n == 0 ? 0x5670 : n == 1 ? 0x6701 : n == 2 ? 0x7012 : 0x0123);
    if constexpr (has<M, m_rc8>) return __byte_perm(a, b, n * 0x1111);
    if constexpr (has<M, m_ecl>) return __byte_perm(a, b, n == 0 ? 0x3210 : n == 1 ? 0x3211 : n == 2 ? 0x3222 : 0x3333);
    if constexpr (has<M, m_ecr>) return __byte_perm(a, b, n == 0 ? 0x0000 : n == 1 ? 0x1110 : n == 2 ? 0x2210 : 0x3210);
    if constexpr (has<M, m_rc16>) return __byte_perm(a, b, n & 1 ? 0x3232 : 0x1010);
    const u32 chosen = __byte_perm(a, b, selector), signs = (selector >> 3 & 0x1111) * 0xf;
    const u32 bytes = __byte_perm(0, ~0u, signs & 0x4444);
    return (chosen & ~bytes) | ((chosen >> 7 & 0x01010101) * 0xff & bytes);
}

} // namespace ptx
} // namespace cuda_c
} // extern "C++"
