// The compilers of kernels have the functions built in; these are the constants.
#ifndef PYGPU_MATH_H
#define PYGPU_MATH_H
#include "cuda_c/math_names.h"
#ifndef INFINITY
#define INFINITY __int_as_float(0x7f800000)
#endif
#ifndef NAN
#define NAN __int_as_float(0x7fc00000)
#endif
#ifndef HUGE_VALF
#define HUGE_VALF INFINITY
#endif
#ifndef HUGE_VAL
#define HUGE_VAL ((double)INFINITY)
#endif
#endif
