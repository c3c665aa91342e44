// Replaces a part of GNU's library, whose overloads of `abs` are CUDA C's own functions here.
#pragma once

extern "C++" {
namespace std {
using ::abs;
inline long double abs(long double x) { return __builtin_fabsl(x); }
} // namespace std
}
