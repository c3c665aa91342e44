// Element types: storage, conversion and packing. Every unit begins with this file.

#if defined(__HIP__) && !defined(__device__)
// clang without ROCm's headers: declare the names that the language and the compiler already have.
#define __global__ __attribute__((global))
#define __device__ __attribute__((device))
#define __shared__ __attribute__((shared))
#define __forceinline__ inline __attribute__((always_inline))
#ifndef __noinline__
#define __noinline__ __attribute__((noinline))
#endif
#define __launch_bounds__(threads) __attribute__((amdgpu_flat_work_group_size(1, threads)))
struct gpuarray_extent {
    unsigned x;
};
#define threadIdx (gpuarray_extent{__builtin_amdgcn_workitem_id_x()})
#define blockIdx (gpuarray_extent{__builtin_amdgcn_workgroup_id_x()})
#define blockDim (gpuarray_extent{__builtin_amdgcn_workgroup_size_x()})
#define gridDim (gpuarray_extent{__builtin_amdgcn_grid_size_x() / __builtin_amdgcn_workgroup_size_x()})
static __device__ __forceinline__ void __syncthreads() {
    __builtin_amdgcn_fence(__ATOMIC_RELEASE, "workgroup");
    __builtin_amdgcn_s_barrier();
    __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "workgroup");
}
#define GPUARRAY_BARE_HIP 1
#endif

#define DEVICE static __device__ __forceinline__
#define METHOD __device__ __forceinline__

namespace gpuarray {

typedef signed char i8;
typedef short i16;
typedef int i32;
typedef long long i64;
typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long long u64;
typedef float f32;
typedef double f64;

// Formats of floating-point numbers that are stored in 16 bits and computed in binary32: a sign, an
// exponent, and `FRACTION` bits of fraction. Magnitudes above `INFINITE` are NaN. `widen` converts a
// number to binary32, and `narrow` rounds one to the format.
struct Binary16 {
    typedef u16 Bits;
    static constexpr int FRACTION = 10;
    static constexpr u32 INFINITE = 0x7c00u;
};
// The upper half of a binary32 number.
struct Brain16 {
    typedef u16 Bits;
    static constexpr int FRACTION = 7;
    static constexpr u32 INFINITE = 0x7f80u;
};

template <class F>
struct narrow_float {
    typedef F Format;
    typename F::Bits bits;
};

typedef narrow_float<Binary16> f16;
typedef narrow_float<Brain16> bf16;

template <class R>
struct complex {
    R re;
    R im;
};

typedef complex<f32> c64;
typedef complex<f64> c128;

DEVICE f32 from_bits(u32 bits) {
    union {
        u32 bits;
        f32 value;
    } pun;
    pun.bits = bits;
    return pun.value;
}

DEVICE f64 from_bits(u64 bits) {
    union {
        u64 bits;
        f64 value;
    } pun;
    pun.bits = bits;
    return pun.value;
}

DEVICE u32 to_bits(f32 value) {
    union {
        u32 bits;
        f32 value;
    } pun;
    pun.value = value;
    return pun.bits;
}

DEVICE u64 to_bits(f64 value) {
    union {
        u64 bits;
        f64 value;
    } pun;
    pun.value = value;
    return pun.bits;
}

#if defined(__CUDA_ARCH__) && !defined(__GPUARRAY_HOST__)
DEVICE f32 widen(f16 x) {
    f32 value;
    asm("cvt.f32.f16 %0, %1;" : "=f"(value) : "h"(x.bits));
    return value;
}
#elif defined(__AMDGCN__)
DEVICE f32 widen(f16 x) {
    union {
        u16 bits;
        _Float16 value;
    } pun;
    pun.bits = x.bits;
    return (f32)pun.value;
}
#else
DEVICE f32 widen(f16 x) {
    const u32 sign = (u32)(x.bits & 0x8000u) << 16;
    const u32 exponent = (x.bits >> 10) & 0x1fu;
    const u32 fraction = x.bits & 0x3ffu;
    if (exponent == 0) {
        const f32 magnitude = (f32)fraction * 5.9604644775390625e-8f;
        return from_bits(sign | to_bits(magnitude));
    }
    if (exponent == 31) {
        return from_bits(sign | 0x7f800000u | (fraction << 13));
    }
    return from_bits(sign | ((exponent + 112u) << 23) | (fraction << 13));
}
#endif

DEVICE f32 widen(bf16 x) { return from_bits((u32)x.bits << 16); }

// Rounds IEEE 754 bits with `FRACTION` bits of fraction and exponent bias `BIAS` to the nearest
// binary16, ties to even.
template <class Bits, int FRACTION, int BIAS>
DEVICE f16 narrow_bits(Bits bits) {
    const u32 sign = (u32)(bits >> (sizeof(Bits) * 8 - 16)) & 0x8000u;
    const Bits magnitude = bits & (~(Bits)0 >> 1);
    const Bits infinity = (Bits)(2 * BIAS + 1) << FRACTION;
    const int drop = FRACTION - 10;
    f16 out;
    if (magnitude > infinity) {
        out.bits = (u16)(sign | 0x7e00u);
        return out;
    }
    if (magnitude >= (Bits)(BIAS - 14) << FRACTION) {
        Bits rebased = magnitude - ((Bits)(BIAS - 15) << FRACTION);
        rebased += (((Bits)1 << (drop - 1)) - 1) + ((rebased >> drop) & 1);
        const Bits rounded = rebased >> drop;
        out.bits = (u16)(sign | (rounded >= 0x7c00u ? 0x7c00u : (u32)rounded));
        return out;
    }
    const int shift = drop + (BIAS - 14) - (int)(magnitude >> FRACTION);
    if (shift > FRACTION + 1) {
        out.bits = (u16)sign;
        return out;
    }
    const Bits significand = (magnitude & (((Bits)1 << FRACTION) - 1)) | ((Bits)1 << FRACTION);
    const Bits rest = significand & (((Bits)1 << shift) - 1);
    const Bits middle = (Bits)1 << (shift - 1);
    Bits rounded = significand >> shift;
    if (rest > middle || (rest == middle && (rounded & 1))) {
        rounded += 1;
    }
    out.bits = (u16)(sign | (u32)rounded);
    return out;
}

#if defined(__CUDA_ARCH__) && !defined(__GPUARRAY_HOST__)
DEVICE f16 narrow(f32 x, Binary16) {
    f16 out;
    asm("cvt.rn.f16.f32 %0, %1;" : "=h"(out.bits) : "f"(x));
    return out;
}
#elif defined(__AMDGCN__)
DEVICE f16 narrow(f32 x, Binary16) {
    union {
        u16 bits;
        _Float16 value;
    } pun;
    pun.value = (_Float16)x;
    f16 out;
    out.bits = pun.bits;
    return out;
}
#else
DEVICE f16 narrow(f32 x, Binary16) { return narrow_bits<u32, 23, 127>(to_bits(x)); }
#endif
DEVICE f16 narrow(f64 x, Binary16) { return narrow_bits<u64, 52, 1023>(to_bits(x)); }

// Rounds to the nearest bfloat16, ties to even. Double precision is first rounded to single precision,
// like numpy with the package `ml_dtypes`.
DEVICE bf16 narrow(f32 x, Brain16) {
    const u32 bits = to_bits(x);
    bf16 out;
    out.bits = (u16)(x != x ? ((bits >> 16) & 0x8000u) | 0x7fc0u
                            : (bits + 0x7fffu + ((bits >> 16) & 1)) >> 16);
    return out;
}
DEVICE bf16 narrow(f64 x, Brain16) { return narrow((f32)x, Brain16()); }

// The bits of a number without its sign.
template <class F>
DEVICE u32 magnitude(narrow_float<F> x) {
    return x.bits & ((u32)(typename F::Bits)~(typename F::Bits)0 >> 1);
}

template <class R>
DEVICE complex<R> make_complex(R re, R im) {
    complex<R> z;
    z.re = re;
    z.im = im;
    return z;
}

// Floating-point numbers are converted to narrow integers through wider ones, so that values out of
// range wrap, as they do between integers.
template <class T>
struct Truncate {
    template <class R>
    static METHOD T of(R x) {
        return (T)(i32)x;
    }
};
template <>
struct Truncate<u32> {
    template <class R>
    static METHOD u32 of(R x) {
        return (u32)(i64)x;
    }
};
template <>
struct Truncate<i64> {
    template <class R>
    static METHOD i64 of(R x) {
        return (i64)x;
    }
};
template <>
struct Truncate<u64> {
    template <class R>
    static METHOD u64 of(R x) {
        return x < (R)0 ? (u64)(i64)x : (u64)x;
    }
};
template <>
struct Truncate<f32> {
    template <class R>
    static METHOD f32 of(R x) {
        return (f32)x;
    }
};
template <>
struct Truncate<f64> {
    template <class R>
    static METHOD f64 of(R x) {
        return (f64)x;
    }
};

template <class To>
struct Convert {
    template <class From>
    static METHOD To of(From x) {
        return (To)x;
    }
    template <class R>
    static METHOD To of(complex<R> x) {
        return of(x.re);
    }
    template <class F>
    static METHOD To of(narrow_float<F> x) {
        return Truncate<To>::of(widen(x));
    }
    static METHOD To of(f32 x) { return Truncate<To>::of(x); }
    static METHOD To of(f64 x) { return Truncate<To>::of(x); }
};
template <>
struct Convert<bool> {
    template <class From>
    static METHOD bool of(From x) {
        return x != (From)0;
    }
    template <class R>
    static METHOD bool of(complex<R> x) {
        return x.re != (R)0 || x.im != (R)0;
    }
    template <class F>
    static METHOD bool of(narrow_float<F> x) {
        return magnitude(x) != 0;
    }
};
template <class F>
struct Convert<narrow_float<F> > {
    typedef narrow_float<F> To;
    template <class From>
    static METHOD To of(From x) {
        return narrow((f32)x, F());
    }
    template <class R>
    static METHOD To of(complex<R> x) {
        return narrow(x.re, F());
    }
    template <class Other>
    static METHOD To of(narrow_float<Other> x) {
        return narrow(widen(x), F());
    }
    static METHOD To of(f64 x) { return narrow(x, F()); }
    static METHOD To of(To x) { return x; }
};
template <class R>
struct Convert<complex<R> > {
    template <class From>
    static METHOD complex<R> of(From x) {
        return make_complex<R>(Convert<R>::of(x), (R)0);
    }
    template <class Q>
    static METHOD complex<R> of(complex<Q> x) {
        return make_complex<R>((R)x.re, (R)x.im);
    }
};

template <class To, class From>
DEVICE To convert(From x) {
    return Convert<To>::of(x);
}

// A bool is stored as a byte; any byte except zero is true.
template <class T>
struct Stored {
    typedef T type;
    static METHOD T get(T x) { return x; }
    static METHOD T put(T x) { return x; }
};
template <>
struct Stored<bool> {
    typedef u8 type;
    static METHOD bool get(u8 x) { return x != 0; }
    static METHOD u8 put(bool x) { return x ? 1 : 0; }
};

template <class T>
DEVICE T load(const char* address) {
    return Stored<T>::get(*(const typename Stored<T>::type*)address);
}

template <class T>
DEVICE void store(char* address, T value) {
    *(typename Stored<T>::type*)address = Stored<T>::put(value);
}

// An element as stored, read into a variable from which values are selected later. An element of 16
// bytes is read in parts, because clang keeps arrays that are only copied as a whole in memory, and
// AMD's registers are too small for it.
template <class T>
struct Element {
    static METHOD T read(const char* address) { return *(const T*)address; }
};
template <>
struct Element<c128> {
    static METHOD c128 read(const char* address) {
        const f64* parts = (const f64*)address;
        c128 value;
        value.re = parts[0];
        value.im = parts[1];
        return value;
    }
};

// `COUNT` neighbours that are moved in one access.
template <class T, int COUNT>
struct alignas(sizeof(T) * COUNT) Pack {
    T item[COUNT];
};

// Copies `WIDTH` neighbours through registers, in one access.
template <class A, u32 WIDTH>
struct Neighbours {
    static METHOD void put(A* to, const A* from) {
        Pack<A, (int)WIDTH> pack;
#pragma unroll
        for (u32 k = 0; k < WIDTH; ++k) {
            pack.item[k] = from[k];
        }
        *(Pack<A, (int)WIDTH>*)to = pack;
    }
    static METHOD void get(A* to, const A* from) {
        const Pack<A, (int)WIDTH> pack = *(const Pack<A, (int)WIDTH>*)from;
#pragma unroll
        for (u32 k = 0; k < WIDTH; ++k) {
            to[k] = pack.item[k];
        }
    }
};
template <class A>
struct Neighbours<A, 1> {
    static METHOD void put(A* to, const A* from) { *to = *from; }
    static METHOD void get(A* to, const A* from) { *to = *from; }
};

template <class T, int COUNT>
DEVICE bool packable(const char* address) {
    return (u64)address % sizeof(Pack<T, COUNT>) == 0;
}

// Reads `COUNT` neighbours, in one access if `ALIGNED`.
template <bool ALIGNED, class T, int COUNT>
DEVICE Pack<T, COUNT> fetch(const char* address) {
    if (ALIGNED) {
        return *(const Pack<T, COUNT>*)address;
    }
    Pack<T, COUNT> pack;
#pragma unroll
    for (int k = 0; k < COUNT; ++k) {
        pack.item[k] = ((const T*)address)[k];
    }
    return pack;
}

// Repeats one element `COUNT` times.
template <class T, int COUNT>
DEVICE Pack<T, COUNT> repeat(const char* address) {
    const T item = *(const T*)address;
    Pack<T, COUNT> pack;
#pragma unroll
    for (int k = 0; k < COUNT; ++k) {
        pack.item[k] = item;
    }
    return pack;
}

DEVICE u32 high_product(u32 x, u32 y) { return (u32)(((u64)x * y) >> 32); }
DEVICE u64 high_product(u64 x, u64 y) {
    const u64 low = x & 0xffffffffu;
    const u64 high = x >> 32;
    const u64 first = high * (y & 0xffffffffu) + (low * (y & 0xffffffffu) >> 32);
    const u64 second = low * (y >> 32) + (first & 0xffffffffu);
    return high * (y >> 32) + (first >> 32) + (second >> 32);
}

// The axes of a space. Indices are less than half of their type's range, so that the high half of twice
// an index times `factor`, shifted, is the exact quotient by the extent. The first axis does not need a
// factor.
template <class Index, int RANK, bool FACTORS>
struct Axes {
    Index count;
    Index rank;
    Index extent[RANK];
    Index factor[RANK - 1];
    Index shift[RANK - 1];

    METHOD Index quotient(Index index, int axis) const {
        return high_product(2 * index, factor[axis - 1]) >> shift[axis - 1];
    }
};
template <class Index, int RANK>
struct Axes<Index, RANK, false> {
    Index count;
    Index rank;
    Index extent[RANK];

    METHOD Index quotient(Index index, int axis) const { return index / extent[axis]; }
};

// An iteration space of `rank` axes, the last `rank` of `RANK`, with strides in bytes for each of
// `OPERANDS` arrays. All members have the same width, so that the layout has no gaps.
template <class Index, class Offset, int RANK, int OPERANDS>
struct Space : Axes<Index, RANK, (RANK > 1 && RANK <= 8)> {
    Offset stride[OPERANDS][RANK];

    METHOD void locate(Index index, Offset* offsets) const { walk<RANK>(index, offsets); }

    // Computes the offsets without the last two axes.
    METHOD void outside(Index index, Offset* offsets) const { walk<RANK - 2>(index, offsets); }

    template <int LEVELS>
    METHOD void walk(Index index, Offset* offsets) const {
#pragma unroll
        for (int operand = 0; operand < OPERANDS; ++operand) {
            offsets[operand] = 0;
        }
        if (RANK <= 8) {
#pragma unroll
            for (int axis = LEVELS - 1; axis >= 0; --axis) {
                step(axis, axis == 0, index, offsets);
            }
        } else {
            const int first = RANK - (int)this->rank;
            for (int axis = LEVELS - 1; axis >= first; --axis) {
                step(axis, axis == first, index, offsets);
            }
        }
    }

    METHOD void step(int axis, bool last, Index& index, Offset* offsets) const {
        Index here = index;
        if (!last) {
            index = this->quotient(here, axis);
            here = here - index * this->extent[axis];
        }
#pragma unroll
        for (int operand = 0; operand < OPERANDS; ++operand) {
            offsets[operand] += (Offset)here * stride[operand][axis];
        }
    }
};
