// Integer arithmetic. It wraps unless it saturates, and carries go through a variable.
#pragma once

// The carry. In this namespace it does not count as the program's shared memory. An instruction may read the
// carry of another statement.
extern "C++" {
namespace gpuarray_abi {
static GPUARRAY_THREAD_LOCAL bool carry __attribute__((unused)) = false;
} // namespace gpuarray_abi
namespace cuda_c {
namespace ptx {

template <class T, class W> static inline T saturate(W value) {
    return value > (W)highest<T> ? highest<T> : value < (W)lowest<T> ? lowest<T> : (T)value;
}
// Applies a function to both halves of a word.
template <class P, class Operation> static inline P of_halves(P a, P b, Operation operation) {
    typedef typename P::Part T;
    const u32 low = put<u16>(operation(as<T>(a.bits), as<T>(b.bits)));
    const u32 high = put<u16>(operation(as<T>(a.bits >> 16), as<T>(b.bits >> 16)));
    return {high << 16 | low};
}
template <class P, class Operation> static inline P of_halves(P a, Operation operation) {
    return of_halves(a, a, [=](typename P::Part x, typename P::Part) { return operation(x); });
}

template <class M, class T> static inline T add(T a, T b);
template <class M, class T> static inline T sub(T a, T b);
template <class M, class T> static inline T neg(T a);
template <class M, class T> static inline T min(T a, T b);
template <class M, class T> static inline T max(T a, T b);

template <class M, class T> static inline T add_integers(T a, T b) {
    typedef BitsOf<T> U;
    if constexpr (has<M, m_sat>) return saturate<T>((WideOf<T>)a + b);
    return (T)(U)((U)a + (U)b);
}
template <class M, class T> static inline T sub_integers(T a, T b) {
    typedef BitsOf<T> U;
    if constexpr (has<M, m_sat>) return saturate<T>((WideOf<T>)a - b);
    return (T)(U)((U)a - (U)b);
}

// A sum with carry, and a difference with borrow.
template <bool WRITES, class T> static inline T with_carry(T a, T b, bool in, bool& carry) {
    typedef BitsOf<T> U;
    U sum;
    const bool first = __builtin_add_overflow((U)a, (U)b, &sum);
    const bool second = __builtin_add_overflow(sum, (U)in, &sum);
    if (WRITES) carry = first | second;
    return (T)sum;
}
template <bool WRITES, class T> static inline T with_borrow(T a, T b, bool in, bool& carry) {
    typedef BitsOf<T> U;
    U difference;
    const bool first = __builtin_sub_overflow((U)a, (U)b, &difference);
    const bool second = __builtin_sub_overflow(difference, (U)in, &difference);
    if (WRITES) carry = first | second;
    return (T)difference;
}
template <class M, class T> static inline T add(T a, T b, bool& carry) { return with_carry<true>(a, b, false, carry); }
template <class M, class T> static inline T addc(T a, T b, bool& carry) {
    return with_carry<has<M, m_cc>>(a, b, carry, carry);
}
template <class M, class T> static inline T sub(T a, T b, bool& carry) { return with_borrow<true>(a, b, false, carry); }
template <class M, class T> static inline T subc(T a, T b, bool& carry) {
    return with_borrow<has<M, m_cc>>(a, b, carry, carry);
}

// Products: one half, or the full product.
template <class M, class T> static inline auto mul_integers(T a, T b) {
    const WideOf<T> product = (WideOf<T>)a * b;
    if constexpr (has<M, m_wide>) {
        return product;
    } else {
        return (T)(has<M, m_hi> ? product >> bits_of<T> : product);
    }
}
template <class M, class T, class C> static inline auto mad_integers(T a, T b, C c) {
    const C product = mul_integers<M>(a, b);
    if constexpr (has<M, m_sat>) return saturate<C>((WideOf<C>)product + c);
    else return (C)(BitsOf<C>)((BitsOf<C>)product + (BitsOf<C>)c);
}
template <class M, class T> static inline T mad(T a, T b, T c, bool& carry) {
    return with_carry<true>(mul_integers<M>(a, b), c, false, carry);
}
template <class M, class T> static inline T madc(T a, T b, T c, bool& carry) {
    return with_carry<has<M, m_cc>>(mul_integers<M>(a, b), c, carry, carry);
}
// The product of the lower 24 bits; the upper form returns the bits from 16 on.
template <class M, class T> static inline T mul24(T a, T b) {
    const WideOf<T> x = (T)((u32)a << 8) >> 8, y = (T)((u32)b << 8) >> 8, product = x * y;
    return (T)(has<M, m_hi> ? product >> 16 : product);
}
template <class M, class T> static inline T mad24(T a, T b, T c) {
    return add_integers<M>(mul24<M>(a, b), c);
}

template <class M, class T> static inline T sad(T a, T b, T c) {
    typedef BitsOf<T> U;
    return (T)(U)((U)c + (U)(a > b ? (U)a - (U)b : (U)b - (U)a));
}

// Division by zero returns all ones, and the remainder is the dividend, as on a GPU.
template <class M, class T> static inline T div_integers(T a, T b) {
    if (b == 0) return (T)~T(0);
    if (is_signed<T> && b == T(-1)) return (T)(0 - (BitsOf<T>)a);
    return (T)(a / b);
}
template <class M, class T> static inline T rem(T a, T b) {
    if (b == 0) return a;
    if (is_signed<T> && b == T(-1)) return 0;
    return (T)(a % b);
}

template <class M, class T> static inline T min_integers(T a, T b) {
    const T least = b < a ? b : a;
    return has<M, m_relu> && least < T(1) ? T(0) : least;
}
template <class M, class T> static inline T max_integers(T a, T b) {
    const T most = a < b ? b : a;
    return has<M, m_relu> && most < T(1) ? T(0) : most;
}

template <class M, class A, class B> static inline s32 dp4a(A a, B b, s32 c) {
    u32 sum = (u32)c;
    for (int at = 0; at < 32; at += 8) {
        const int x = is_signed<A> ? (int)(s8)((u32)a >> at) : (int)(u8)((u32)a >> at);
        const int y = is_signed<B> ? (int)(s8)((u32)b >> at) : (int)(u8)((u32)b >> at);
        sum += (u32)(x * y);
    }
    return (s32)sum;
}
template <class M, class A, class B> static inline s32 dp2a(A a, B b, s32 c) {
    u32 sum = (u32)c;
    for (int i = 0; i < 2; ++i) {
        const int half = has<M, m_hi> ? i + 2 : i;
        const int x = is_signed<A> ? (int)(s16)((u32)a >> 16 * i) : (int)(u16)((u32)a >> 16 * i);
        const int y = is_signed<B> ? (int)(s8)((u32)b >> 8 * half) : (int)(u8)((u32)b >> 8 * half);
        sum += (u32)(x * y);
    }
    return (s32)sum;
}

} // namespace ptx
} // namespace cuda_c
} // extern "C++"
