// Running sums over the threads of a tile or of a coalesced group, in the order of their ranks.

#ifndef PYGPU_COOPERATIVE_GROUPS_SCAN_H
#define PYGPU_COOPERATIVE_GROUPS_SCAN_H

#include <cooperative_groups/reduce.h>

extern "C++" {

namespace pygpu_groups {

template <class Group, class T_, class Operation = plus<typename details::Value<T_>::type>>
__device__ inline typename details::Value<T_>::type
inclusive_scan(const Group& group, T_ value,
               Operation operation = Operation() PYGPU_GROUPS_AND_PLACE) {
    typedef typename details::Value<T_>::type V_;
    const unsigned int rank = group.thread_rank(), threads = group.num_threads();
    V_ sum = value;
    for (unsigned int by = 1; by < threads; by *= 2) {
        const V_ before = group.shfl_up(sum, by PYGPU_GROUPS_HERE);
        if (rank >= by) sum = operation(before, sum);
    }
    return sum;
}
// The first thread's is a value-initialised T, as on NVIDIA's devices.
template <class Group, class T_, class Operation = plus<typename details::Value<T_>::type>>
__device__ inline typename details::Value<T_>::type
exclusive_scan(const Group& group, T_ value,
               Operation operation = Operation() PYGPU_GROUPS_AND_PLACE) {
    typedef typename details::Value<T_>::type V_;
    const V_ sum = inclusive_scan(group, value, operation PYGPU_GROUPS_HERE);
    const V_ before = group.shfl_up(sum, 1 PYGPU_GROUPS_HERE);
    return group.thread_rank() == 0 ? V_() : before;
}

} // namespace pygpu_groups

} // extern "C++"

#endif
