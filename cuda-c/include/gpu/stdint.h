#ifndef PYGPU_STDINT_H
#define PYGPU_STDINT_H
// A text with NVIDIA's headers takes these types from NVIDIA's C++ headers, which define the 64-bit types
// differently. The header's name is a macro, so that it does not count as a header of the program.
#define PYGPU_NVIDIAS_CSTDINT <cuda/std/cstdint>
#if defined(PYGPU_NVIDIAS_HEADERS) && __has_include(PYGPU_NVIDIAS_CSTDINT)
#include PYGPU_NVIDIAS_CSTDINT
#else
typedef signed char int8_t;
typedef short int16_t;
typedef unsigned char uint8_t;
typedef unsigned short uint16_t;
#ifndef __HIP__
typedef int int32_t;
typedef long int64_t;
typedef unsigned int uint32_t;
typedef unsigned long uint64_t;
#elif !defined(__GPUARRAY_HOST__) // where they are built in
#include "pygpu-hip-integers.h"
#endif
typedef long intptr_t;
typedef unsigned long uintptr_t;
#define INT8_MIN (-128)
#define INT8_MAX 127
#define UINT8_MAX 255
#define INT16_MIN (-32768)
#define INT16_MAX 32767
#define UINT16_MAX 65535
#define INT32_MIN (-2147483647 - 1)
#define INT32_MAX 2147483647
#define UINT32_MAX 4294967295u
#define INT64_MIN (-9223372036854775807l - 1)
#define INT64_MAX 9223372036854775807l
#define UINT64_MAX 18446744073709551615ul
#endif
#endif
