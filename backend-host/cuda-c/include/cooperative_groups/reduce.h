// Reductions over the threads of a tile or of a coalesced group, in the order of their ranks.
#pragma once

#include "../cooperative_groups.h"

extern "C++" {
namespace cooperative_groups {

#define CUDA_C_FUNCTOR(name, value)                                                             \
    template <class T> struct name {                                                            \
        T operator()(const T& x, const T& y) const { return value; }                            \
    };
CUDA_C_FUNCTOR(plus, x + y)
CUDA_C_FUNCTOR(less, y < x ? y : x)
CUDA_C_FUNCTOR(greater, x < y ? y : x)
CUDA_C_FUNCTOR(bit_and, x & y)
CUDA_C_FUNCTOR(bit_or, x | y)
CUDA_C_FUNCTOR(bit_xor, x ^ y)
#undef CUDA_C_FUNCTOR

template <class Group, class T, class Operation>
static inline T reduce(const Group& group, T value, Operation&& operation, GPUARRAY_PLACE) {
    auto combine = [&](const T& x, const T& y) -> T { return operation(x, y); };
    return cuda_c::reduce(group.lanes, value, combine, file, line);
}

} // namespace cooperative_groups
} // extern "C++"
