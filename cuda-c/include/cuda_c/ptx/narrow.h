// Arithmetic of the 16-bit formats. It is computed in float, which has more than twice the precision, and
// rounded once.
#pragma once

extern "C++" {
namespace cuda_c {
namespace ptx {

template <class F> static inline f32 widened(Narrow<F> x) { return F::widen(x.bits); }
// `ftz` flushes subnormal numbers of half precision to zero; the other format keeps them.
template <class M, class F> static inline Narrow<F> flushed(Narrow<F> x) {
    const bool flushes = has<M, m_ftz> && is_same<F, Half> && (x.bits & 0x7c00) == 0;
    return {(b16)(flushes ? x.bits & 0x8000 : x.bits)};
}
template <class M, class F> static inline Narrow<F> narrowed(f32 x) {
    // `relu` keeps NaN; `sat` turns it into 0.
    if (has<M, m_sat>) x = x > 0 ? x < 1 ? x : 1.0f : 0.0f;
    if (has<M, m_relu>) x = x <= 0 ? 0.0f : x;
    return flushed<M>(Narrow<F>{F::nearest(x)});
}
template <class M, class F> static inline Narrow<F> add_narrow(Narrow<F> x, Narrow<F> y) {
    return narrowed<M, F>(widened(flushed<M>(x)) + widened(flushed<M>(y)));
}
template <class M, class F> static inline Narrow<F> sub_narrow(Narrow<F> x, Narrow<F> y) {
    return narrowed<M, F>(widened(flushed<M>(x)) - widened(flushed<M>(y)));
}
template <class M, class F> static inline Narrow<F> mul_narrow(Narrow<F> x, Narrow<F> y) {
    return narrowed<M, F>(widened(flushed<M>(x)) * widened(flushed<M>(y)));
}
template <class M, class F> static inline Narrow<F> fma_narrow(Narrow<F> x, Narrow<F> y, Narrow<F> z) {
    return narrowed<M, F>(fma_to_odd(widened(flushed<M>(x)), widened(flushed<M>(y)), widened(flushed<M>(z))));
}
template <class M, bool IS_MAX, class F>
static inline Narrow<F> extreme_of_narrow(Narrow<F> x, Narrow<F> y) {
    const f32 found = extreme_of_floats<M, IS_MAX>(widened(flushed<M>(x)), widened(flushed<M>(y)));
    return {F::nearest(found)};
}
template <class M, class F> static inline Narrow<F> sign_of_narrow(Narrow<F> x, u16 keep, u16 flip) {
    return flushed<M>(Narrow<F>{(b16)((x.bits & keep) ^ flip)});
}

// A function of float, applied to a pair or to one number.
#define CUDA_C_PTX_FUNCTION(name, value)                                                        \
    template <class M, class T> static inline T name(T a) {                                     \
        if constexpr (is_pair<T>) {                                                             \
            typedef typename T::Part P;                                                         \
            return of_halves(a, [](P part) { return name<M, P>(part); });                       \
        } else if constexpr (is_narrow<T>) {                                                    \
            const f32 x = widened(flushed<M>(a));                                               \
            return narrowed<M, typename T::Format>(value);                                      \
        } else {                                                                                \
            const f32 x = flushed<M>(a);                                                        \
            return finished<M>((f32)(value));                                                   \
        }                                                                                       \
    }
CUDA_C_PTX_FUNCTION(ex2, ::exp2f(x))
CUDA_C_PTX_FUNCTION(tanh, ::tanhf(x))
#undef CUDA_C_PTX_FUNCTION

} // namespace ptx
} // namespace cuda_c
} // extern "C++"
