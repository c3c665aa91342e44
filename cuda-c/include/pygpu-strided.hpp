// An array of any strides that is indexed as a run of elements is: by the number of an element in the
// order in which the kernel counts them.

#ifndef PYGPU_STRIDED_HPP
#define PYGPU_STRIDED_HPP

extern "C++" {
namespace pygpu {

template <bool WIDE_>
struct Numbers {
    typedef unsigned index;
    typedef int offset;
};
template <>
struct Numbers<true> {
    typedef unsigned long long index;
    typedef long long offset;
};

template <class T_, int RANK_, bool WIDE_>
struct Strided {
    typedef typename Numbers<WIDE_>::index index;
    typedef typename Numbers<WIDE_>::offset offset;

    // The last axis is the fastest; strides are in bytes.
    struct Geometry {
        index extents[RANK_];
        offset strides[RANK_];
    };

    T_* base;
    const Geometry& geometry;
    // Added to each number.
    long long moved;

    __device__ Strided(T_* base, const Geometry& geometry, long long moved = 0)
        : base(base), geometry(geometry), moved(moved) {}

    __device__ T_& operator[](long long number) const {
        index rest = (index)(number + moved);
        offset distance = 0;
#pragma unroll
        for (int axis = RANK_ - 1; axis > 0; --axis) {
            const index quotient = rest / geometry.extents[axis];
            distance += (offset)(rest - quotient * geometry.extents[axis]) * geometry.strides[axis];
            rest = quotient;
        }
        distance += (offset)rest * geometry.strides[0];
        return *(T_*)((char*)base + distance);
    }
    __device__ T_& operator*() const { return (*this)[0]; }
    __device__ Strided operator+(long long by) const { return Strided(base, geometry, moved + by); }
    __device__ Strided operator-(long long by) const { return Strided(base, geometry, moved - by); }
};

} // namespace pygpu
} // extern "C++"

#endif
