// Prefix sums over the threads of a tile or a coalesced group, in rank order.
#pragma once

#include "reduce.h"

extern "C++" {
namespace cooperative_groups {

template <class Group, class T_, class Operation = plus<T_>>
static inline T_ inclusive_scan(const Group& group, T_ value, Operation operation = Operation(), GPUARRAY_PLACE) {
    return cuda_c::scan(group.lanes, value, T_(), operation, file, line).value;
}
// The first thread's result is a value-initialised T, as on a GPU.
template <class Group, class T_, class Operation = plus<T_>>
static inline T_ exclusive_scan(const Group& group, T_ value, Operation operation = Operation(), GPUARRAY_PLACE) {
    return cuda_c::scan(group.lanes, value, T_(), operation, file, line).before;
}

} // namespace cooperative_groups
} // extern "C++"
