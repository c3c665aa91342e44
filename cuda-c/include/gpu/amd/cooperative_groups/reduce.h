// Reductions over the threads of a tile or of a coalesced group, in the order of their ranks.

#ifndef PYGPU_COOPERATIVE_GROUPS_REDUCE_H
#define PYGPU_COOPERATIVE_GROUPS_REDUCE_H

#include <cooperative_groups.h>

extern "C++" {

namespace pygpu_groups {

#define PYGPU_FUNCTOR(name, value)                                                              \
    template <class T_> struct name {                                                           \
        __device__ T_ operator()(const T_& x, const T_& y) const { return value; }              \
    };
PYGPU_FUNCTOR(plus, x + y)
PYGPU_FUNCTOR(less, y < x ? y : x)
PYGPU_FUNCTOR(greater, x < y ? y : x)
PYGPU_FUNCTOR(bit_and, x & y)
PYGPU_FUNCTOR(bit_or, x | y)
PYGPU_FUNCTOR(bit_xor, x ^ y)
#undef PYGPU_FUNCTOR

// Sums of twice as many neighbours in each turn; the first thread's is the whole.
template <class Group, class T_, class Operation>
__device__ inline typename details::Value<T_>::type
reduce(const Group& group, T_ value, Operation&& operation PYGPU_GROUPS_AND_PLACE) {
    typedef typename details::Value<T_>::type V_;
    const unsigned int rank = group.thread_rank(), threads = group.num_threads();
    V_ sum = value;
    for (unsigned int by = 1; by < threads; by *= 2) {
        const V_ next = group.shfl_down(sum, by PYGPU_GROUPS_HERE);
        if (rank + by < threads) sum = operation(sum, next);
    }
    return group.shfl(sum, 0 PYGPU_GROUPS_HERE);
}

} // namespace pygpu_groups

} // extern "C++"

#endif
