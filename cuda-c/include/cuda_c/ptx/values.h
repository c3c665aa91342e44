// The types of PTX, registers as bits, and the operands of a statement.
#pragma once

extern "C++" {
namespace cuda_c {
namespace ptx {

typedef unsigned char b8, u8;
typedef unsigned short b16, u16;
typedef unsigned int b32, u32;
typedef unsigned long long b64, u64;
__extension__ typedef unsigned __int128 b128;
typedef signed char s8;
typedef short s16;
typedef int s32;
typedef long long s64;
typedef float f32;
typedef double f64;
typedef bool pred;
// 16-bit numbers in a format, and pairs of them.
template <class F> struct Narrow {
    typedef F Format;
    b16 bits;
};
template <class T> struct Pair {
    typedef T Part;
    b32 bits;
};
typedef Narrow<Half> f16;
typedef Narrow<Bfloat16> bf16;
typedef Pair<f16> f16x2;
typedef Pair<bf16> bf16x2;
typedef Pair<u16> u16x2;
typedef Pair<s16> s16x2;
// A float with a shorter fraction.
struct tf32 {
    b32 bits;
};

template <class A, class B> constexpr bool is_same = false;
template <class A> constexpr bool is_same<A, A> = true;
template <class T> constexpr bool is_pair = false;
template <class T> constexpr bool is_pair<Pair<T>> = true;
template <class T> constexpr bool is_narrow = false;
template <class F> constexpr bool is_narrow<Narrow<F>> = true;
template <class T> constexpr bool is_float = is_same<T, f32> || is_same<T, f64>;
template <class T> constexpr bool is_signed = T(-1) < T(0);
template <class T> constexpr int bits_of = (int)sizeof(T) * 8;

// The integers with the size of a type, unsigned and signed, and the integers with twice the size.
template <int BYTES> struct Sized;
template <> struct Sized<1> { typedef u8 Bits; typedef s8 Signed; typedef u16 Wide; typedef s16 SignedWide; };
template <> struct Sized<2> { typedef u16 Bits; typedef s16 Signed; typedef u32 Wide; typedef s32 SignedWide; };
template <> struct Sized<4> { typedef u32 Bits; typedef s32 Signed; typedef u64 Wide; typedef s64 SignedWide; };
__extension__ typedef __int128 s128;
template <> struct Sized<8> { typedef u64 Bits; typedef s64 Signed; typedef b128 Wide; typedef s128 SignedWide; };
template <> struct Sized<16> { typedef b128 Bits; typedef s128 Signed; };
template <class T> using BitsOf = typename Sized<sizeof(T)>::Bits;
template <bool SIGNED, class T> struct WideOfSign { typedef typename Sized<sizeof(T)>::Wide type; };
template <class T> struct WideOfSign<true, T> { typedef typename Sized<sizeof(T)>::SignedWide type; };
template <class T> using WideOf = typename WideOfSign<is_signed<T>, T>::type;
template <class T> constexpr T highest = is_signed<T> ? T(BitsOf<T>(~BitsOf<T>(0)) >> 1) : T(~BitsOf<T>(0));
template <class T> constexpr T lowest = T(BitsOf<T>(~BitsOf<T>(highest<T>)));

// The modifiers of an instruction.
template <class...> struct modes {};
template <class M, class A> constexpr bool has = false;
template <class A, class... B> constexpr bool has<modes<B...>, A> = (is_same<A, B> || ...);
struct m_hi; struct m_lo; struct m_wide; struct m_sat; struct m_cc; struct m_relu; struct m_ftz;
struct m_rn; struct m_rz; struct m_rm; struct m_rp; struct m_rna;
struct m_rni; struct m_rzi; struct m_rmi; struct m_rpi;
struct m_approx; struct m_full; struct m_NaN; struct m_xorsign; struct m_abs; struct m_pack;
struct m_shiftamt; struct m_clamp; struct m_wrap; struct m_l; struct m_r;
struct m_f4e; struct m_b4e; struct m_rc8; struct m_ecl; struct m_ecr; struct m_rc16;
struct m_eq; struct m_ne; struct m_lt; struct m_le; struct m_gt; struct m_ge; struct m_ls; struct m_hs;
struct m_equ; struct m_neu; struct m_ltu; struct m_leu; struct m_gtu; struct m_geu; struct m_num; struct m_nan;
struct m_and; struct m_or; struct m_xor; struct m_add; struct m_min; struct m_max; struct m_popc;
struct m_inc; struct m_dec; struct m_exch; struct m_cas;
struct m_finite; struct m_infinite; struct m_number; struct m_notanumber; struct m_normal; struct m_subnormal;
struct m_sync; struct m_up; struct m_down; struct m_bfly; struct m_idx;
struct m_all; struct m_any; struct m_uni; struct m_ballot; struct m_warp;
struct m_cta; struct m_gl; struct m_sys; struct m_sc; struct m_acq_rel; struct m_cluster; struct m_gpu;
struct m_proxy; struct m_alias; struct m_async;
struct m_expect_tx; struct m_noComplete; struct m_noinc; struct m_mbarrier_init;
struct m_relaxed; struct m_acquire; struct m_release;
struct m_to; struct m_global; struct m_const; struct m_local; struct m_shared; struct m_shared_cta;
struct m_shared_cluster;
struct m_fractional; struct m_L2_evict_last; struct m_L2_evict_first; struct m_L2_evict_normal;
struct m_L2_evict_unchanged; struct m_po; struct m_shr7; struct m_shr15;
struct m_minus_product; struct m_minus_c;
struct m_lanes1; struct m_lanes2; struct m_lanes4;

// Reads a number from a register. If the register has more bits, the number is in the lowest ones.
template <class T, class R> static inline __attribute__((always_inline)) T as(R bits_of_register) {
    if constexpr (is_same<T, R>) {
        return bits_of_register;
    } else {
        return bits<T>((BitsOf<T>)bits_of_register);
    }
}
// Returns the register bits for a number. The register may have more bits.
template <class R, class T> static inline __attribute__((always_inline)) R put(T number) {
    if constexpr (is_narrow<T> || is_pair<T> || is_same<T, tf32>) {
        return (R)number.bits;
    } else if constexpr (is_float<T>) {
        return (R)bits<BitsOf<T>>(number);
    } else {
        return (R)number;
    }
}

// A predicate that is the second result of an instruction.
struct Second {
    bool is = false;
};

// The operands of a statement: the type that each constraint accepts, and its conversion to a register and
// back.
template <class T> struct Bare { typedef T type; };
template <class T> struct Bare<const T> : Bare<T> {};
template <class T> struct Bare<volatile T> : Bare<T> {};
template <class T> struct Bare<const volatile T> : Bare<T> {};
template <class T> struct Bare<T&> : Bare<T> {};
template <class T> struct Bare<T&&> : Bare<T> {};
template <class T> using BareOf = typename Bare<T>::type;
enum Kind { NEITHER, INTEGER, FLOATING, POINTER };
template <class T> constexpr Kind kind_of = __is_enum(T) ? INTEGER : NEITHER;
#define CUDA_C_PTX_INTEGER(type) template <> constexpr Kind kind_of<type> = INTEGER;
CUDA_C_PTX_INTEGER(bool)
CUDA_C_PTX_INTEGER(char)
CUDA_C_PTX_INTEGER(signed char)
CUDA_C_PTX_INTEGER(unsigned char)
CUDA_C_PTX_INTEGER(wchar_t)
CUDA_C_PTX_INTEGER(char16_t)
CUDA_C_PTX_INTEGER(char32_t)
CUDA_C_PTX_INTEGER(short)
CUDA_C_PTX_INTEGER(unsigned short)
CUDA_C_PTX_INTEGER(int)
CUDA_C_PTX_INTEGER(unsigned int)
CUDA_C_PTX_INTEGER(long)
CUDA_C_PTX_INTEGER(unsigned long)
CUDA_C_PTX_INTEGER(long long)
CUDA_C_PTX_INTEGER(unsigned long long)
CUDA_C_PTX_INTEGER(s128)
CUDA_C_PTX_INTEGER(b128)
#undef CUDA_C_PTX_INTEGER
template <> constexpr Kind kind_of<float> = FLOATING;
template <> constexpr Kind kind_of<double> = FLOATING;
template <class T> constexpr Kind kind_of<T*> = POINTER;
template <class T> constexpr bool is_number = kind_of<BareOf<T>> == INTEGER;
constexpr int bytes_of(char letter) {
    return letter == 'h' ? 2 : letter == 'r' || letter == 'f' ? 4 : letter == 'q' ? 16 : 8;
}
template <char LETTER, class T>
constexpr bool fits = sizeof(BareOf<T>) == bytes_of(LETTER) &&
                      (LETTER == 'f' || LETTER == 'd' ? kind_of<BareOf<T>> == FLOATING
                                                      : kind_of<BareOf<T>> == INTEGER ||
                                                            (LETTER == 'l' && kind_of<BareOf<T>> == POINTER));
template <class R, class T> static inline __attribute__((always_inline)) R in(T value) {
    typedef BareOf<T> B;
    if constexpr (kind_of<B> == FLOATING) {
        return (R)bits<BitsOf<B>>((B)value);
    } else {
        return (R)value;
    }
}
template <class T, class R> static inline __attribute__((always_inline)) void out(T& variable, R value) {
    typedef BareOf<T> B;
    if constexpr (kind_of<B> == FLOATING) {
        variable = bits<B>((BitsOf<B>)value);
    } else {
        variable = (B)value;
    }
}

} // namespace ptx
} // namespace cuda_c
} // extern "C++"
