"""Shared code for the tests of thread groups in CUDA C.

A warp has 32 lanes on every backend, even if a wavefront has 64. Blocks have an odd number of
warps, so that some fill a wavefront and the last does not.
"""

from __future__ import annotations

import numpy as np
import pytest
from device import BACKEND, IS_DOUBLE
from warps import THREADS

# The fake CUDA driver uses the host's header.
ON_HOST = BACKEND == "host" or (BACKEND == "cuda" and IS_DOUBLE)

if BACKEND == "cuda" and not IS_DOUBLE:
    pytest.skip(
        "NVIDIA's own header takes no shuffles of small structures, no tiles as large as their "
        "parents, and no C++14: these programs are for those of the host and of AMD",
        allow_module_level=True,
    )

ALL = """
#include <cooperative_groups/memcpy_async.h>
#include <cooperative_groups.h>
#include <cooperative_groups/scan.h>
#include <cooperative_groups/reduce.h>
namespace cg = cooperative_groups;
"""
SIZES = [1, 2, 4, 8, 16, 32]
T = np.arange(THREADS)


def words(of):
    """Packs bits into words, the first bit lowest."""
    of = np.asarray(of, np.uint64)
    return (of << np.arange(of.shape[-1], dtype=np.uint64)).sum(axis=-1).astype(np.uint32)


def parts(group):
    """Returns, for each thread, the threads of its warp with the same number in ``group``."""
    group = np.asarray(group)
    warp = T // 32
    return [np.flatnonzero((warp == warp[t]) & (group == group[t])) for t in T]


def ranks(of):
    return np.array([np.searchsorted(part, t) for t, part in enumerate(of)])


TYPES = {
    "char": np.int8,
    "short": np.int16,
    "int": np.int32,
    "unsigned": np.uint32,
    "long": np.int64,
    "ulong": np.uint64,
    "longlong": np.int64,
    "float": np.float32,
    "double": np.float64,
    "float2": np.dtype([("x", np.float32), ("y", np.float32)]),
    "double2": np.dtype([("x", np.float64), ("y", np.float64)]),
    "int4": np.dtype([(name, np.int32) for name in "xyzw"]),
    "uchar3": np.dtype([(name, np.uint8) for name in "xyz"]),
    "Own": np.dtype([("a", np.float64), ("b", np.uint8), ("c", np.int16, 3)], align=True),
    "pycuda::complex<float>": np.complex64,
}
OWN_TYPES = """
#include <pycuda-complex.hpp>
typedef long long longlong;
struct Own { double a; unsigned char b; short c[3]; };
"""


def name_of(kind):
    return "".join(filter(str.isalnum, kind))


def values_of(dtype, count=THREADS):
    """Returns random values; a struct's padding bytes are zeros."""
    dtype = np.dtype(dtype)
    random = np.random.default_rng(dtype.itemsize)
    if dtype.names is None:
        return random.integers(0, 120, count).astype(dtype) * dtype.type(
            0.75 if dtype.kind in "fc" else 1
        )
    out = np.zeros(count, dtype)
    for name in dtype.names:
        out[name] = random.integers(0, 120, out[name].shape)
    return out


TILES = """
template <unsigned int SIZE, class TILE>
__device__ void facts(unsigned *out, const int *x, TILE tile) {
    const int t = threadIdx.x, n = blockDim.x;
    int all = 7;
    unsigned row = 0;
    out[row++ * n + t] = tile.thread_rank();
    out[row++ * n + t] = tile.size();
    out[row++ * n + t] = tile.num_threads();
    out[row++ * n + t] = tile.meta_group_rank();
    out[row++ * n + t] = tile.meta_group_size();
    out[row++ * n + t] = tile.any(x[t] & 1);
    out[row++ * n + t] = tile.all(x[t] & 2);
    out[row++ * n + t] = tile.ballot(x[t] & 4);
    out[row++ * n + t] = tile.match_any(x[t]);
    out[row++ * n + t] = tile.match_all(x[t] & 2, all);
    out[row++ * n + t] = all;
    out[row++ * n + t] = tile.match_any(x[t] * 0.1);
    out[row++ * n + t] = cg::thread_rank(tile) + 100 * cg::group_size(tile);
    out[row++ * n + t] = tile.shfl(threadIdx.x, 0);
    out[row++ * n + t] = cg::reduce(tile, x[t], cg::plus<int>());
    out[row++ * n + t] = cg::reduce(tile, x[t], cg::less<int>());
    out[row++ * n + t] = cg::reduce(tile, x[t], cg::greater<int>());
    out[row++ * n + t] = cg::reduce(tile, x[t], cg::bit_and<int>());
    out[row++ * n + t] = cg::reduce(tile, x[t], cg::bit_or<int>());
    out[row++ * n + t] = cg::reduce(tile, x[t], cg::bit_xor<int>());
    // Of functions from lines to lines, f(g(x)) is no g(f(x)).
    auto then = [](uint2 f, uint2 g) { return make_uint2(f.x * g.x, f.y * g.x + g.y); };
    const uint2 line = make_uint2(x[t] + 1, x[t] * 3 + 1);
    const uint2 whole = cg::reduce(tile, line, then);
    out[row++ * n + t] = whole.x;
    out[row++ * n + t] = whole.y;
    out[row++ * n + t] = cg::inclusive_scan(tile, x[t]);
    out[row++ * n + t] = cg::exclusive_scan(tile, x[t]);
    out[row++ * n + t] = cg::inclusive_scan(tile, x[t], cg::greater<int>());
    out[row++ * n + t] = cg::exclusive_scan(tile, x[t], cg::plus<int>());
    const uint2 part = cg::inclusive_scan(tile, line, then);
    out[row++ * n + t] = part.x;
    out[row++ * n + t] = part.y;
    out[row++ * n + t] = cg::exclusive_scan(tile, line, then).y;
    int mine = 0;
    cg::invoke_one(tile, [&](int value) { mine = value; }, x[t] + 1);
    out[row++ * n + t] = tile.shfl(mine, 0);
    out[row++ * n + t] = cg::invoke_one_broadcast(tile, [&](int by) { return x[t] * by; }, 5);
}
"""
ROWS_OF_TILES = 31


def folded(x, operation):
    result = [x[0]]
    for value in x[1:]:
        result.append(operation(result[-1], value))
    return result


def then(f, g):
    return f[0] * g[0] % 2**32, (f[1] * g[0] + g[1]) % 2**32


def facts_of(x, of, number, count):
    """Returns the rows that ``facts`` writes for groups of these threads."""
    rows = []
    for t, part in enumerate(of):
        own, rank = x[part], int(np.searchsorted(part, t))
        lines = [(int(it) + 1, int(it) * 3 + 1) for it in own]
        scanned = folded(lines, then)
        every = len(set(own & 2)) == 1
        summed = np.cumsum(own)
        rows.append(
            [
                rank,
                len(part),
                len(part),
                number[t],
                count[t],
                (own & 1).any(),
                (own & 2 != 0).all(),
                words(own & 4 != 0),
                words(own == x[t]),
                words(own == own) * every,
                every,
                words(own == x[t]),
                rank + 100 * len(part),
                part[0],
                own.sum(),
                own.min(),
                own.max(),
                np.bitwise_and.reduce(own),
                np.bitwise_or.reduce(own),
                np.bitwise_xor.reduce(own),
                *scanned[-1],
                summed[rank],
                summed[rank] - x[t],
                own[: rank + 1].max(),
                summed[rank] - x[t],
                *scanned[rank],
                scanned[rank - 1][1] if rank else 0,
                own[0] + 1,
                own[0] * 5,
            ]
        )
    return np.array(rows, np.uint64).astype(np.uint32).T


def some(seed=0, few=False):
    x = np.random.default_rng(seed).integers(0, 8 if few else 100, THREADS).astype(np.int32)
    x[32:64] |= 6
    x[64:80] = 5
    return x
