// Conversions to unsigned integers of 8 and 16 bits, and shifts, that C++ leaves undefined, with the results of NVIDIA GPUs.
//
// The front end inserts these names into the program's expressions (src/out_of_range.rs):
//
// - `(uchar)x` becomes `(uchar)(::cuda_c::Unsigned<uchar>)x`.
// - `pixel = x` becomes `pixel = ::cuda_c::value = x`, where `pixel` is declared as such an integer.
// - `1 << n` becomes `1 << ::cuda_c::distance << n`.
//
// Each form keeps the precedence and the type of the original expression, and is a constant expression if the
// original is. Other operands than numbers are passed on as they are.
#pragma once

#include "libm.h"

extern "C++" {
namespace cuda_c {

template <class T> constexpr bool is_narrow = false;
template <> constexpr bool is_narrow<unsigned char> = true;
template <> constexpr bool is_narrow<unsigned short> = true;

// Negative numbers and NaN become zero. That costs one instruction, which compilers vectorise. Numbers above the range,
// and other integers, would cost several.
template <class To, class From> static inline constexpr To converted(From x) {
    if constexpr (is_narrow<To>) {
        const int whole = (int)x;
        return (To)(whole > 0 ? whole : 0);
    } else {
        return (To)x;
    }
}

template <class T> struct Unsigned {
    T number;
    constexpr Unsigned(float x) : number(converted<T>(x)) {}
    constexpr Unsigned(double x) : number(converted<T>(x)) {}
    template <class From> constexpr Unsigned(From&& x) : number((T)(From&&)x) {}
    constexpr operator T() const { return number; }
};

template <class From> struct Value {
    From number;
    template <class To> constexpr operator To() const { return converted<To>(number); }
};
struct MakeValue {
    constexpr Value<float> operator=(float x) const { return {x}; }
    constexpr Value<double> operator=(double x) const { return {x}; }
    template <class From> constexpr From&& operator=(From&& x) const { return (From&&)x; }
};
constexpr MakeValue value{};

template <class T> struct Bare { using type = T; };
template <class T> struct Bare<T&> : Bare<T> {};
template <class T> struct Bare<T&&> : Bare<T> {};
template <class T> struct Bare<const T> : Bare<T> {};
template <class T> struct Bare<volatile T> : Bare<T> {};
template <class T> struct Bare<const volatile T> : Bare<T> {};
template <class T> constexpr bool is_count = IsInteger<typename Bare<T>::type>::value || __is_enum(typename Bare<T>::type);

// Shifts by the width or more shift out all bits, and so do negative distances. Operators of the program's classes stay.
struct Distance {};
constexpr Distance distance{};
template <class T> struct Left {
    T number;
    template <class By> constexpr auto operator<<(const By& by) const {
        if constexpr (is_count<By>) return (unsigned int)by < sizeof(T) * 8 ? T(number << by) : T(0);
        else return number << by;
    }
};
template <class T> struct Right {
    T number;
    template <class By> constexpr auto operator>>(const By& by) const {
        constexpr unsigned int most = sizeof(T) * 8 - 1;
        if constexpr (is_count<By>) return (unsigned int)by <= most ? T(number >> by) : T(number < T(0) ? -1 : 0);
        else return number >> by;
    }
};
template <class T, typename EnableIf<is_count<T>, int>::type = 0> static inline constexpr auto operator<<(T x, Distance) {
    return Left<decltype(+x)>{+x};
}
template <class T, typename EnableIf<is_count<T>, int>::type = 0> static inline constexpr auto operator>>(T x, Distance) {
    return Right<decltype(+x)>{+x};
}
template <class T, typename EnableIf<!is_count<T>, int>::type = 0> static inline constexpr T&& operator<<(T&& x, Distance) {
    return (T&&)x;
}
template <class T, typename EnableIf<!is_count<T>, int>::type = 0> static inline constexpr T&& operator>>(T&& x, Distance) {
    return (T&&)x;
}

} // namespace cuda_c
} // extern "C++"
