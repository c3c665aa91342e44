// Conversions to unsigned integers and shifts that C++ leaves undefined, with the results of NVIDIA GPUs.
//
// The front end inserts these names into the program's expressions (src/out_of_range.rs):
//
// - `(uchar)x` becomes `(uchar)(::cuda_c::Unsigned<uchar>)x`.
// - `pixel = x` becomes `pixel = ::cuda_c::value = x`, where `pixel` is declared as an unsigned integer.
// - `1 << n` becomes `1 << ::cuda_c::distance << n`.
//
// Each form keeps the precedence and the type of the original expression, and is a constant expression if the
// original is. Other operands than numbers are converted as C++ converts them.
#pragma once

extern "C++" {
namespace cuda_c {

template <class T> constexpr bool is_unsigned_type = false;
#define CUDA_C_UNSIGNED(type) template <> constexpr bool is_unsigned_type<type> = true;
CUDA_C_UNSIGNED(unsigned char)
CUDA_C_UNSIGNED(unsigned short)
CUDA_C_UNSIGNED(unsigned int)
CUDA_C_UNSIGNED(unsigned long)
CUDA_C_UNSIGNED(unsigned long long)
#undef CUDA_C_UNSIGNED
template <class T> constexpr bool is_real_type = false;
template <> constexpr bool is_real_type<float> = true;
template <> constexpr bool is_real_type<double> = true;

// Negative numbers and NaN become zero. That costs one instruction, which compilers vectorise. Numbers above the
// range, and signed integers, would cost several.
template <class To, class From> static inline constexpr To converted(From x) {
    if constexpr (is_unsigned_type<To> && is_real_type<From>) {
        const From positive = x > From(0) ? x : From(0);
        if constexpr (sizeof(To) < 4) return (To)(int)positive;
        else return (To)positive;
    } else {
        return (To)x;
    }
}

template <class T> struct Unsigned {
    T number;
    template <class From> constexpr Unsigned(From x) : number(converted<T>(x)) {}
    constexpr operator T() const { return number; }
};
// A template's parameter may be a reference, which a copy must not be bound to: the compiler refuses the cast.
template <class T> struct Unsigned<T&>;
template <class T> struct Unsigned<T&&>;

template <class From> struct Value {
    From number;
    template <class To> constexpr operator To() const { return converted<To>(number); }
};
struct MakeValue {
    template <class From> constexpr Value<From> operator=(From x) const { return Value<From>{x}; }
};
constexpr MakeValue value{};

// Shifts by the width or more shift out all bits, and so do negative distances.
struct Distance {};
constexpr Distance distance{};
template <class T> struct Left {
    T number;
    template <class By> constexpr T operator<<(By by) const {
        return (unsigned int)by < sizeof(T) * 8 ? T(number << by) : T(0);
    }
};
template <class T> struct Right {
    T number;
    template <class By> constexpr T operator>>(By by) const {
        constexpr unsigned int most = sizeof(T) * 8 - 1;
        return (unsigned int)by <= most ? T(number >> by) : T(number < T(0) ? -1 : 0);
    }
};
template <class T> static inline constexpr auto operator<<(T x, Distance) { return Left<decltype(+x)>{+x}; }
template <class T> static inline constexpr auto operator>>(T x, Distance) { return Right<decltype(+x)>{+x}; }

} // namespace cuda_c
} // extern "C++"
