// An array of any strides that is indexed as a run of elements is: by the number of an element in the
// order in which the kernel counts them.

#ifndef PYGPU_STRIDED_HPP
#define PYGPU_STRIDED_HPP

extern "C++" {
namespace pygpu {

template <bool WIDE>
struct Numbers {
    typedef unsigned index;
    typedef int offset;
};
template <>
struct Numbers<true> {
    typedef unsigned long long index;
    typedef long long offset;
};

template <class T, int RANK, bool WIDE>
struct Strided {
    typedef typename Numbers<WIDE>::index index;
    typedef typename Numbers<WIDE>::offset offset;

    // The last axis is the fastest; strides are in bytes.
    struct Geometry {
        index extents[RANK];
        offset strides[RANK];
    };

    T* base;
    const Geometry& geometry;
    // Added to each number.
    long long moved;

    __device__ Strided(T* base, const Geometry& geometry, long long moved = 0)
        : base(base), geometry(geometry), moved(moved) {}

    __device__ T& operator[](long long number) const {
        index rest = (index)(number + moved);
        offset distance = 0;
#pragma unroll
        for (int axis = RANK - 1; axis > 0; --axis) {
            const index quotient = rest / geometry.extents[axis];
            distance += (offset)(rest - quotient * geometry.extents[axis]) * geometry.strides[axis];
            rest = quotient;
        }
        distance += (offset)rest * geometry.strides[0];
        return *(T*)((char*)base + distance);
    }
    __device__ T& operator*() const { return (*this)[0]; }
    __device__ Strided operator+(long long by) const { return Strided(base, geometry, moved + by); }
    __device__ Strided operator-(long long by) const { return Strided(base, geometry, moved - by); }
};

} // namespace pygpu
} // extern "C++"

#endif
