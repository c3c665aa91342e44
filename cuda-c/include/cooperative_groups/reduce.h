// Reductions over the threads of a tile or a coalesced group, in rank order.
#pragma once

#include "../cooperative_groups.h"

extern "C++" {
namespace cooperative_groups {

#define CUDA_C_FUNCTOR(name, value)                                                             \
    template <class T_> struct name {                                                            \
        T_ operator()(const T_& x, const T_& y) const { return value; }                            \
    };
CUDA_C_FUNCTOR(plus, x + y)
CUDA_C_FUNCTOR(less, y < x ? y : x)
CUDA_C_FUNCTOR(greater, x < y ? y : x)
CUDA_C_FUNCTOR(bit_and, x & y)
CUDA_C_FUNCTOR(bit_or, x | y)
CUDA_C_FUNCTOR(bit_xor, x ^ y)
#undef CUDA_C_FUNCTOR

template <class Group, class T_, class Operation>
static inline T_ reduce(const Group& group, T_ value, Operation&& operation, GPUARRAY_PLACE) {
    auto combine = [&](const T_& x, const T_& y) -> T_ { return operation(x, y); };
    return cuda_c::reduce(group.lanes, value, combine, file, line);
}

} // namespace cooperative_groups
} // extern "C++"
