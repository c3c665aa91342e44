// Comparisons and selections.
#pragma once

extern "C++" {
namespace cuda_c {
namespace ptx {

// For integers, `lo`, `ls`, `hi` and `hs` are the unsigned comparisons. For floats, the comparisons with `u`
// also hold for NaN.
template <class M, class T> static inline bool compared(T a, T b) {
    if constexpr (is_narrow<T>) {
        return compared<M>(widened(flushed<M>(a)), widened(flushed<M>(b)));
    } else if constexpr (is_float<T>) {
        const T x = flushed<M>(a), y = flushed<M>(b);
        const bool is_ordered = x == x && y == y;
        if (has<M, m_num>) return is_ordered;
        if (has<M, m_nan>) return !is_ordered;
        if (has<M, m_eq>) return x == y;
        if (has<M, m_ne>) return is_ordered && x != y;
        if (has<M, m_lt>) return x < y;
        if (has<M, m_le>) return x <= y;
        if (has<M, m_gt>) return x > y;
        if (has<M, m_ge>) return x >= y;
        if (has<M, m_equ>) return !is_ordered || x == y;
        if (has<M, m_neu>) return !is_ordered || x != y;
        if (has<M, m_ltu>) return !is_ordered || x < y;
        if (has<M, m_leu>) return !is_ordered || x <= y;
        if (has<M, m_gtu>) return !is_ordered || x > y;
        return !is_ordered || x >= y;
    } else {
        if (has<M, m_eq>) return a == b;
        if (has<M, m_ne>) return a != b;
        if (has<M, m_lt> || has<M, m_lo>) return a < b;
        if (has<M, m_le> || has<M, m_ls>) return a <= b;
        if (has<M, m_gt> || has<M, m_hi>) return a > b;
        return a >= b;
    }
}

template <class M, class T> static inline bool setp(T a, T b, bool c = false) {
    if constexpr (is_pair<T>) {
        typedef typename T::Part P;
        return combined<M>(compared<M>(as<P>(a.bits), as<P>(b.bits)), c);
    } else {
        return combined<M>(compared<M>(a, b), c);
    }
}
// The second predicate is the negated result. For a pair, it is the result for the upper half.
template <class M, class T> static inline bool setp(T a, T b, bool c, Second& second) {
    if constexpr (is_pair<T>) {
        typedef typename T::Part P;
        second.is = combined<M>(compared<M>(as<P>(a.bits >> 16), as<P>(b.bits >> 16)), c);
    } else {
        second.is = combined<M>(!compared<M>(a, b), c);
    }
    return setp<M>(a, b, c);
}
template <class M, class T> static inline bool setp(T a, T b, Second& second) { return setp<M>(a, b, false, second); }

// All ones, or the number 1.
template <class M, class D, class T> static inline D set(T a, T b, bool c = false) {
    if constexpr (is_pair<D>) {
        typedef typename D::Part E;
        typedef typename T::Part P;
        const u32 low = set<M, E>(as<P>(a.bits), as<P>(b.bits), c).bits;
        return {(u32)set<M, E>(as<P>(a.bits >> 16), as<P>(b.bits >> 16), c).bits << 16 | low};
    } else {
        const bool holds = combined<M>(compared<M>(a, b), c);
        if constexpr (is_narrow<D>) {
            return {(b16)(holds ? D::Format::nearest(1) : 0)};
        } else if constexpr (is_float<D>) {
            return holds ? D(1) : D(0);
        } else {
            return holds ? (D)~D(0) : D(0);
        }
    }
}

template <class M, class T> static inline T selp(T a, T b, bool p) { return p ? a : b; }
// Selects the first value if the third is not negative, otherwise the second. NaN selects the second.
template <class M, class T, class C> static inline T slct(T a, T b, C c) {
    if constexpr (is_float<C>) return flushed<M>(c) >= 0 ? a : b;
    else return c >= 0 ? a : b;
}

} // namespace ptx
} // namespace cuda_c
} // extern "C++"
