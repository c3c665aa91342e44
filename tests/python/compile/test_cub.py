"""Kernels that use NVIDIA's C++ libraries: CUB's parts for warps and blocks, and libcu++."""

from __future__ import annotations

import numpy as np
import pytest
from cpp_libraries import MARKS, installed, run  # noqa: F401

from pygpu import driver
from pygpu.compiler import SourceModule

pytestmark = MARKS
NUMBERS = np.random.default_rng(21).integers(0, 1000, 1024).astype(np.int32)
FIRST = NUMBERS[:128]


REDUCE = """
#include <cub/block/block_reduce.cuh>
extern "C" __global__ void k(const TYPE *x, TYPE *sums) {
    typedef cub::BlockReduce<TYPE, 128, cub::ALGORITHM> Reduce;
    __shared__ typename Reduce::TempStorage storage;
    TYPE sum = Reduce(storage).Sum(x[blockIdx.x * 128 + threadIdx.x]);
    if (threadIdx.x == 0) sums[blockIdx.x] = sum;
}
"""


@pytest.mark.parametrize("algorithm", ["RAKING", "WARP_REDUCTIONS", "RAKING_COMMUTATIVE_ONLY"])
@pytest.mark.parametrize(
    ("name", "dtype"),
    [
        ("float", "f4"),
        ("double", "f8"),
        ("int", "i4"),
        ("long long", "i8"),
        ("unsigned char", "u1"),
    ],
)
def test_sums_of_blocks(algorithm, name, dtype):
    x = (NUMBERS % 50).astype(dtype)
    sums = np.zeros(8, dtype)
    text = REDUCE.replace("TYPE", name).replace("ALGORITHM", f"BLOCK_REDUCE_{algorithm}")
    run(text, x, sums, blocks=8)
    assert sums.tolist() == x.reshape(8, 128).sum(1, dtype=dtype).tolist()


def test_sorted_numbers_of_a_block():
    text = """
    #include <cub/cub.cuh>
    extern "C" __global__ void k(const int *x, int *y) {
        typedef cub::BlockLoad<int, 128, 8, cub::BLOCK_LOAD_TRANSPOSE> Load;
        typedef cub::BlockStore<int, 128, 8, cub::BLOCK_STORE_TRANSPOSE> Store;
        typedef cub::BlockRadixSort<int, 128, 8> Sort;
        __shared__ union {
            typename Load::TempStorage load;
            typename Store::TempStorage store;
            typename Sort::TempStorage sort;
        } storage;
        int items[8];
        Load(storage.load).Load(x, items);
        __syncthreads();
        Sort(storage.sort).Sort(items);
        __syncthreads();
        Store(storage.store).Store(y, items);
    }
    """
    y = np.zeros_like(NUMBERS)
    run(text, NUMBERS, y)
    np.testing.assert_array_equal(y, np.sort(NUMBERS))


def test_scans_exchanges_and_merges():
    text = """
    #include <cub/cub.cuh>
    struct Less {
        template <class T> __device__ bool operator()(const T &a, const T &b) const {
            return a < b;
        }
    };
    extern "C" __global__ void k(const int *x, int *sums, int *columns, int *sorted) {
        typedef cub::BlockScan<int, 128> Scan;
        typedef cub::BlockExchange<int, 128, 8> Exchange;
        typedef cub::BlockMergeSort<int, 128, 8> Sort;
        __shared__ typename Scan::TempStorage scan;
        __shared__ typename Exchange::TempStorage exchange;
        __shared__ typename Sort::TempStorage sort;
        int first[8], second[8], third[8];
        for (int i = 0; i < 8; i++) {
            first[i] = third[i] = x[threadIdx.x * 8 + i];
            second[i] = x[i * 128 + threadIdx.x];
        }
        Scan(scan).ExclusiveSum(first, first);
        Exchange(exchange).StripedToBlocked(second, second);
        Sort(sort).Sort(third, Less());
        for (int i = 0; i < 8; i++) {
            sums[threadIdx.x * 8 + i] = first[i];
            columns[threadIdx.x * 8 + i] = second[i];
            sorted[threadIdx.x * 8 + i] = third[i];
        }
    }
    """
    sums, columns, ordered = (np.zeros_like(NUMBERS) for _ in range(3))
    run(text, NUMBERS, sums, columns, ordered)
    np.testing.assert_array_equal(sums, np.cumsum(NUMBERS) - NUMBERS)
    np.testing.assert_array_equal(columns, NUMBERS)
    np.testing.assert_array_equal(ordered, np.sort(NUMBERS))


def test_histograms_heads_and_least_elements():
    text = """
    #include <cub/cub.cuh>
    extern "C" __global__ void k(const int *x, unsigned *counts, int *heads, int *least) {
        typedef cub::BlockHistogram<unsigned char, 128, 8, 256> Histogram;
        typedef cub::BlockDiscontinuity<int, 128> Heads;
        typedef cub::KeyValuePair<int, int> Pair;
        typedef cub::BlockReduce<Pair, 128> Least;
        __shared__ typename Histogram::TempStorage histogram;
        __shared__ typename Heads::TempStorage flags;
        __shared__ typename Least::TempStorage reduce;
        __shared__ unsigned bins[256];
        unsigned char bytes[8];
        int groups[8], found[8];
        for (int i = 0; i < 8; i++) {
            bytes[i] = x[threadIdx.x * 8 + i];
            groups[i] = x[threadIdx.x * 8 + i] / 500;
        }
        Histogram(histogram).Histogram(bytes, bins);
        Heads(flags).FlagHeads(found, groups, cub::Inequality());
        Pair best = Least(reduce).Reduce(Pair(threadIdx.x, x[threadIdx.x]), cub::ArgMin());
        __syncthreads();
        for (int i = threadIdx.x; i < 256; i += 128) counts[i] = bins[i];
        for (int i = 0; i < 8; i++) heads[threadIdx.x * 8 + i] = found[i];
        if (threadIdx.x == 0) { least[0] = best.key; least[1] = best.value; }
    }
    """
    counts, heads, least = np.zeros(256, np.uint32), np.zeros_like(NUMBERS), np.zeros(2, np.int32)
    run(text, NUMBERS, counts, heads, least)
    np.testing.assert_array_equal(counts, np.bincount(NUMBERS.astype(np.uint8), minlength=256))
    np.testing.assert_array_equal(heads, np.concatenate([[1], np.diff(NUMBERS // 500) != 0]))
    assert least.tolist() == [FIRST.argmin(), FIRST.min()]


def test_sums_and_scans_of_warps():
    text = """
    #include <cub/warp/warp_reduce.cuh>
    #include <cub/warp/warp_scan.cuh>
    extern "C" __global__ void k(const int *x, int *sums, int *scans, float *greatest) {
        typedef cub::WarpReduce<int> Sum;
        typedef cub::WarpScan<int> Scan;
        typedef cub::WarpReduce<float, 16> Most;
        __shared__ typename Sum::TempStorage sum[4];
        __shared__ typename Scan::TempStorage scan[4];
        __shared__ typename Most::TempStorage most[8];
        int warp = threadIdx.x / 32, half = threadIdx.x / 16, scanned;
        int total = Sum(sum[warp]).Sum(x[threadIdx.x]);
        Scan(scan[warp]).InclusiveSum(x[threadIdx.x], scanned);
        float top = Most(most[half]).Reduce((float)x[threadIdx.x], cuda::maximum<>());
        if (threadIdx.x % 32 == 0) sums[warp] = total;
        if (threadIdx.x % 16 == 0) greatest[half] = top;
        scans[threadIdx.x] = scanned;
    }
    """
    sums, scans, greatest = np.zeros(4, np.int32), np.zeros(128, np.int32), np.zeros(8, np.float32)
    run(
        text.replace("<cub/warp/warp_reduce.cuh>", "<cuda/functional>\n#include <cub/cub.cuh>"),
        FIRST,
        sums,
        scans,
        greatest,
    )
    np.testing.assert_array_equal(sums, FIRST.reshape(4, 32).sum(1))
    np.testing.assert_array_equal(scans, np.cumsum(FIRST.reshape(4, 32), 1).ravel())
    np.testing.assert_array_equal(greatest, FIRST.reshape(8, 16).max(1))


def test_the_standard_library_and_complex_numbers():
    # The text is compiled inside `extern "C"`, its headers are not.
    text = """
    #include <cuda/std/array>
    #include <cuda/std/bit>
    #include <cuda/std/optional>
    #include <cuda/std/span>
    #include <cuda/std/tuple>
    #include <cuda/atomic>
    #include <cub/block/block_reduce.cuh>
    #include <thrust/complex.h>
    __global__ void k(const int *x, int *y, int *total, float *sum) {
        typedef thrust::complex<float> Complex;
        typedef cub::BlockReduce<Complex, 128> Reduce;
        __shared__ typename Reduce::TempStorage storage;
        cuda::std::array<int, 4> four{{1, 2, 3, 4}};
        cuda::std::optional<int> odd;
        if (threadIdx.x & 1) odd = x[threadIdx.x];
        auto pair = cuda::std::make_tuple(1, 2.0f);
        cuda::std::span<const int> all(x, 128);
        y[threadIdx.x] = four[threadIdx.x % 4] + odd.value_or(7) + cuda::std::get<0>(pair) +
                         (int)all.size() + cuda::std::popcount((unsigned)threadIdx.x);
        cuda::atomic_ref<int, cuda::thread_scope_device> shared(*total);
        shared.fetch_add(x[threadIdx.x]);
        Complex z = Reduce(storage).Sum(Complex(x[threadIdx.x], 1));
        if (threadIdx.x == 0) { sum[0] = z.real(); sum[1] = z.imag(); }
    }
    """
    y, total, sums = np.zeros(128, np.int32), np.zeros(1, np.int32), np.zeros(2, np.float32)
    kernel = SourceModule(text).get_function("k")
    kernel(*map(driver.InOut, (FIRST, y, total, sums)), block=(128, 1, 1))
    i = np.arange(128)
    bits = np.array([bin(k).count("1") for k in i])
    np.testing.assert_array_equal(y, i % 4 + 1 + np.where(i & 1, FIRST, 7) + 1 + 128 + bits)
    assert total[0] == FIRST.sum()
    assert sums.tolist() == [FIRST.sum(), 128]
