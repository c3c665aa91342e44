// Takes the place of a part of GNU's library: its overloads of `abs` are CUDA C's own functions.
#pragma once

extern "C++" {
namespace std {
using ::abs;
inline long double abs(long double x) { return __builtin_fabsl(x); }
} // namespace std
}
