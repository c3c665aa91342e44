// The system's header of C, without what the C++ libraries add: overloads of `abs`, which CUDA C has.
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
