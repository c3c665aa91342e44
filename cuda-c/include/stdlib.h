// The system's C header, without the overloads of `abs` that C++ libraries add and CUDA C already has.
#ifndef _LIBCPP_STDLIB_H
#define _LIBCPP_STDLIB_H
#endif
#ifndef _GLIBCXX_INCLUDE_NEXT_C_HEADERS
#define _GLIBCXX_INCLUDE_NEXT_C_HEADERS
#include_next <stdlib.h>
#undef _GLIBCXX_INCLUDE_NEXT_C_HEADERS
#else
#include_next <stdlib.h>
#endif
