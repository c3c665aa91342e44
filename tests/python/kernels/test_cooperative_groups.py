"""Groups of threads in CUDA C: the block, the grid, tiles of a warp, and lanes that are together.

A warp has 32 lanes on every backend, also where a wavefront has 64: blocks have an odd number of
warps, so that some fill a wavefront and the last does not.
"""

from __future__ import annotations

import numpy as np
import pytest
from device import BACKEND, IS_DOUBLE
from warps import LANE, THREADS, WARPS, compiled, ran

from pygpu import driver, gpuarray

# The double of CUDA has the header of the host.
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
    """Bits as words, the first bit lowest."""
    of = np.asarray(of, np.uint64)
    return (of << np.arange(of.shape[-1], dtype=np.uint64)).sum(axis=-1).astype(np.uint32)


def parts(group):
    """For each thread, the threads of its warp with the same number in ``group``, in order."""
    group = np.asarray(group)
    warp = T // 32
    return [np.flatnonzero((warp == warp[t]) & (group == group[t])) for t in T]


def ranks(of):
    return np.array([np.searchsorted(part, t) for t, part in enumerate(of)])


# ---- each header alone --------------------------------------------------------------------------

ALONE = {
    "cooperative_groups.h": "auto g = cooperative_groups::this_thread_block(); *out = g.size();",
    "cooperative_groups/memcpy_async.h": """
    auto g = cooperative_groups::this_thread_block();
    int x = g.size();
    cooperative_groups::memcpy_async(g, out, &x, sizeof(x));
    cooperative_groups::wait(g);""",
    "cooperative_groups/reduce.h": """
    auto tile = cooperative_groups::tiled_partition<32>(cooperative_groups::this_thread_block());
    *out = cooperative_groups::reduce(tile, 1, cooperative_groups::plus<int>());""",
    "cooperative_groups/scan.h": """
    auto tile = cooperative_groups::tiled_partition<32>(cooperative_groups::this_thread_block());
    *out = tile.shfl(cooperative_groups::inclusive_scan(tile, 1), 31);""",
}


@pytest.mark.parametrize("no_extern_c", [False, True])
@pytest.mark.parametrize("name", ALONE)
def test_each_header_stands_alone(name, no_extern_c):
    text = f'#include <{name}>\nextern "C" __global__ void k(int *out) {{ {ALONE[name]} }}'
    function = compiled(text, no_extern_c=no_extern_c).get_function("k")
    assert ran(function, 1, np.int32, threads=32) == 32


@pytest.mark.parametrize("standard", ["c++14", "c++17", "c++20"])
def test_languages(standard):
    text = f"{ALL}__global__ void k(int *out) {{ *out = cg::this_thread_block().size(); }}"
    function = compiled(text, options=[f"-std={standard}"]).get_function("k")
    assert ran(function, 1, np.int32, threads=7) == 7


@pytest.mark.skipif(BACKEND == "cuda" and not IS_DOUBLE, reason="NVRTC needs -default-device")
def test_warp_size_is_that_of_groups():
    text = f"""{ALL}
    __global__ void k(int *out) {{
        auto tile = cg::tiled_partition<32>(cg::this_thread_block());
        out[threadIdx.x] = threadIdx.x / warpSize == tile.meta_group_rank();
    }}"""
    assert ran(compiled(text).get_function("k"), THREADS, np.int32).all()


# ---- the block and the grid ---------------------------------------------------------------------

BLOCK = f"""{ALL}
__device__ void put(unsigned *out, dim3 a) {{ out[0] = a.x; out[1] = a.y; out[2] = a.z; }}
__global__ void block(unsigned *out) {{
    cg::thread_block b = cg::this_thread_block();
    cg::grid_group grid = cg::this_grid();
    out += 33 * grid.thread_rank();
    out[0] = b.thread_rank(); out[1] = b.num_threads(); out[2] = b.size();
    put(out + 3, b.group_index()); put(out + 6, b.thread_index());
    put(out + 9, b.group_dim()); put(out + 12, b.dim_threads());
    out[15] = grid.num_threads(); out[16] = grid.size(); out[17] = grid.num_blocks();
    out[18] = grid.block_rank(); out[19] = grid.is_valid();
    put(out + 20, grid.group_dim()); put(out + 23, grid.dim_blocks());
    put(out + 26, grid.block_index());
    out[29] = cg::thread_rank(b); out[30] = cg::group_size(b);
    out[31] = cg::thread_rank(grid); out[32] = cg::group_size(grid);
}}
__global__ void turns(int *out, const int *x) {{
    __shared__ int row[256];
    cg::thread_block b = cg::this_thread_block();
    const int t = b.thread_rank(), n = b.size();
    row[t] = x[t];
    b.sync();
    int y = row[(t + 40) % n];
    cg::sync(b);
    row[t] = y + 1;
    cg::synchronize(b);
    y = row[(t + 70) % n];
    b.barrier_wait(b.barrier_arrive());
    row[t] = 3 * y;
    cg::thread_group g = b;
    g.sync();
    cg::thread_block::arrival_token token = b.barrier_arrive();
    y = row[(t + 100) % n];
    b.barrier_wait(static_cast<cg::thread_block::arrival_token &&>(token));
    out[t] = y + 1000 * (g.size() == n) + 2000 * (g.thread_rank() == t);
}}
"""


@pytest.fixture(scope="module")
def block():
    return compiled(BLOCK)


@pytest.mark.parametrize("cooperative", [False, True])
def test_indices(block, cooperative):
    shape, grid = (5, 3, 4), (2, 3, 2)
    threads, blocks = np.prod(shape), np.prod(grid)
    out = gpuarray.zeros((blocks, threads, 33), np.uint32)
    block.get_function("block")(out, block=shape, grid=grid, cooperative=cooperative)
    found = out.get()
    rank = np.arange(blocks * threads).reshape(blocks, threads)
    b, t = rank // threads, rank % threads
    count = blocks * threads

    def places(index, of):
        return [index % of[0], index // of[0] % of[1], index // of[0] // of[1]]

    full = [np.full_like(rank, it) for it in (threads, *shape, *grid, count, blocks, cooperative)]
    n, *sides = full[:4]
    sides_of_grid, (all_threads, all_blocks, valid) = full[4:7], full[7:]
    expected = [t, n, n, *places(b, grid), *places(t, shape), *sides, *sides]
    expected += [all_threads, all_threads, all_blocks, b, valid]
    expected += [*sides_of_grid, *sides_of_grid, *places(b, grid), t, n, rank, all_threads]
    np.testing.assert_array_equal(found, np.stack(expected, axis=-1))


def test_a_block_waits(block):
    x = np.random.default_rng(1).integers(0, 99, THREADS).astype(np.int32)
    found = ran(block.get_function("turns"), THREADS, np.int32, gpuarray.to_gpu(x))
    np.testing.assert_array_equal(found, 3 * (np.roll(x, -210) + 1) + 3000)


GRID = f"""{ALL}
__global__ void rounds(int *a, int count) {{
    cg::grid_group grid = cg::this_grid();
    for (int round = 0; round < count; ++round) {{
        if (threadIdx.x == 1) {{
            int from = round * gridDim.x + (blockIdx.x + 1) % gridDim.x;
            a[(round + 1) * gridDim.x + blockIdx.x] = a[from] + 1;
        }}
        if (round % 3 == 0) grid.sync();
        else if (round % 3 == 1) cg::sync(grid);
        else grid.barrier_wait(grid.barrier_arrive());
    }}
}}
"""


def test_a_grid_waits():
    blocks, count = 5, 7
    host = np.zeros((count + 1, blocks), np.int32)
    host[0] = np.arange(blocks) * 10
    a = gpuarray.to_gpu(host)
    rounds = compiled(GRID).get_function("rounds")
    rounds(a, np.int32(count), block=(64, 1, 1), grid=(blocks, 1), cooperative=True)
    np.testing.assert_array_equal(a.get()[-1], np.roll(host[0], -count) + count)


# ---- tiles --------------------------------------------------------------------------------------

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
    """Random values; a structure's bytes between its members are zeros."""
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


TILE_SHUFFLES = (
    ALL
    + OWN_TYPES
    + """
template <unsigned int SIZE, class T>
__device__ void shuffled(T *out, const T *x, const int *by) {
    cg::thread_block_tile<SIZE> tile = cg::tiled_partition<SIZE>(cg::this_thread_block());
    const int t = threadIdx.x, n = blockDim.x;
    out[t] = tile.shfl(x[t], by[t]);
    out[n + t] = tile.shfl_up(x[t], by[0]);
    out[2 * n + t] = tile.shfl_down(x[t], by[0]);
    out[3 * n + t] = tile.shfl_xor(x[t], by[0]);
}
template <class T> __device__ void chosen(T *out, const T *x, const int *by, int size) {
    switch (size) {
    case 1: shuffled<1>(out, x, by); break;
    case 2: shuffled<2>(out, x, by); break;
    case 4: shuffled<4>(out, x, by); break;
    case 8: shuffled<8>(out, x, by); break;
    case 16: shuffled<16>(out, x, by); break;
    case 32: shuffled<32>(out, x, by); break;
    }
}
"""
    + "\n".join(
        f"""extern "C" __global__
        void k_{name_of(kind)}({kind} *out, const {kind} *x, const int *by, int size) {{
            chosen(out, x, by, size);
        }}"""
        for kind in TYPES
    )
)


@pytest.fixture(scope="module")
def tile_shuffles():
    return compiled(TILE_SHUFFLES, no_extern_c=True)


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("kind", TYPES)
def test_tiles_shuffle(tile_shuffles, kind, size):
    x = values_of(TYPES[kind])
    function = tile_shuffles.get_function(f"k_{name_of(kind)}")
    for first in (0, 1, 5, 16, 31):
        by = np.random.default_rng(first).integers(-3, 70, THREADS).astype(np.int32)
        by[0] = first
        start = T // size * size
        up = np.where(T - first < start, T, T - first)
        down = np.where(T + first >= start + size, T, T + first)
        across = np.where((LANE ^ first) // size != LANE // size, T, T - LANE + (LANE ^ first))
        expected = np.stack([x[it] for it in (start + by % size, up, down, across)])
        arrays = (
            gpuarray.to_gpu(x.view(f"V{x.itemsize}") if x.dtype.names else x),
            gpuarray.to_gpu(by),
        )
        out = gpuarray.to_gpu(np.zeros((4, THREADS), arrays[0].dtype))
        function(out, *arrays, np.int32(size), block=(THREADS, 1, 1), grid=(1, 1))
        np.testing.assert_array_equal(out.get().view(x.dtype), expected)


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
    """The rows that ``facts`` writes, for groups of these threads."""
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


TILE_FACTS = (
    ALL
    + TILES
    + "\n".join(
        f"""extern "C" __global__ void k_{size}(unsigned *out, const int *x) {{
            facts<{size}>(out, x, cg::tiled_partition<{size}>(cg::this_thread_block()));
        }}
        extern "C" __global__ void without_parent_{size}(unsigned *out, const int *x) {{
            cg::thread_block_tile<{size}> tile =
                cg::tiled_partition<{size}>(cg::this_thread_block());
            facts<{size}>(out, x, tile);
        }}"""
        for size in SIZES
    )
    + "\n".join(
        f"""extern "C" __global__ void k_{size}_of_{parent}(unsigned *out, const int *x) {{
            auto outer = cg::tiled_partition<{parent}>(cg::this_thread_block());
            facts<{size}>(out, x, cg::tiled_partition<{size}>(outer));
        }}"""
        for size, parent in [(4, 32), (8, 16), (2, 2), (1, 4)]
    )
)


@pytest.fixture(scope="module")
def tile_facts():
    return compiled(TILE_FACTS, no_extern_c=True)


def some(seed=0, few=False):
    x = np.random.default_rng(seed).integers(0, 8 if few else 100, THREADS).astype(np.int32)
    x[32:64] |= 6
    x[64:80] = 5
    return x


@pytest.mark.parametrize("form", ["k", "without_parent"])
@pytest.mark.parametrize("size", SIZES)
def test_tiles(tile_facts, size, form):
    x = some(size, few=size > 4)
    function = tile_facts.get_function(f"{form}_{size}")
    found = ran(function, (ROWS_OF_TILES, THREADS), np.uint32, gpuarray.to_gpu(x))
    expected = facts_of(x, parts(T // size), T // size, np.full(THREADS, THREADS // size))
    np.testing.assert_array_equal(found, expected)


@pytest.mark.skipif(ON_HOST, reason="a tile's number is that in the block there")
@pytest.mark.parametrize(("size", "parent"), [(4, 32), (8, 16), (2, 2), (1, 4)])
def test_tiles_of_tiles(tile_facts, size, parent):
    x = some(size)
    function = tile_facts.get_function(f"k_{size}_of_{parent}")
    found = ran(function, (ROWS_OF_TILES, THREADS), np.uint32, gpuarray.to_gpu(x))
    number = T % parent // size
    expected = facts_of(x, parts(T // size), number, np.full(THREADS, parent // size))
    np.testing.assert_array_equal(found, expected)


def test_tiles_in_a_branch():
    text = f"""{ALL}
    __global__ void k(int *out, const int *x) {{
        const int t = threadIdx.x;
        auto tile = cg::tiled_partition<8>(cg::this_thread_block());
        int sum = -1;
        if (tile.meta_group_rank() % 3 == 0) {{
            sum = cg::reduce(tile, x[t], cg::plus<int>());
            for (int i = 0; i < (int)tile.meta_group_rank(); ++i) {{
                sum += tile.shfl_xor(x[t], 1);
                tile.sync();
            }}
        }} else if (tile.meta_group_rank() % 3 == 1) {{
            sum = tile.shfl(cg::inclusive_scan(tile, x[t]), 3);
        }}
        out[t] = sum;
    }}"""
    x = some(3)
    found = ran(compiled(text).get_function("k"), THREADS, np.int32, gpuarray.to_gpu(x))
    tile = T // 8
    sums = np.repeat(x.reshape(-1, 8).sum(axis=1), 8) + tile * x[T ^ 1]
    scanned = np.repeat(x.reshape(-1, 8)[:, :4].sum(axis=1), 8)
    np.testing.assert_array_equal(found, np.choose(tile % 3, [sums, scanned, -1]))


def test_lanes_of_a_tile_see_what_others_wrote():
    text = f"""{ALL}
    __global__ void k(int *out, const int *x) {{
        __shared__ volatile int row[{THREADS}];
        auto tile = cg::tiled_partition<32>(cg::this_thread_block());
        row[threadIdx.x] = x[threadIdx.x];
        tile.sync();
        const int next = row[threadIdx.x ^ 31];
        cg::sync(tile);
        row[threadIdx.x] = next + 1;
        cg::thread_group group = tile;
        group.sync();
        out[threadIdx.x] = row[threadIdx.x ^ 1];
    }}"""
    x = some(4)
    found = ran(compiled(text).get_function("k"), THREADS, np.int32, gpuarray.to_gpu(x))
    np.testing.assert_array_equal(found, x[T ^ 30] + 1)


# ---- lanes that are together --------------------------------------------------------------------

TILED = """
extern "C" __global__ void tiled(unsigned *out, const int *x, const int *way, int size) {
    if (way[threadIdx.x] == 0) {
        auto group = cg::coalesced_threads();
        facts<0>(out, x, cg::tiled_partition(group, size));
    }
}
"""
if ON_HOST:
    TILED = ""
COALESCED = (
    ALL
    + OWN_TYPES
    + TILES
    + """
extern "C" __global__ void apart(unsigned *out, const int *x, const int *way) {
    const int t = threadIdx.x;
    if (way[t] == 0) {
        facts<0>(out, x, cg::coalesced_threads());
    } else if (way[t] == 1) {
        cg::coalesced_group group = cg::coalesced_threads();
        facts<0>(out, x, group);
    }
}
extern "C" __global__ void labeled(unsigned *out, const int *x, const int *label) {
    auto tile = cg::tiled_partition<32>(cg::this_thread_block());
    facts<0>(out, x, cg::labeled_partition(tile, label[threadIdx.x]));
}
extern "C" __global__ void binary(unsigned *out, const int *x, const int *label) {
    auto tile = cg::tiled_partition<16>(cg::this_thread_block());
    facts<0>(out, x, cg::binary_partition(tile, label[threadIdx.x] != 0));
}
extern "C" __global__ void of_parts(unsigned *out, const int *x, const int *way) {
    if (way[threadIdx.x] == 0) {
        auto group = cg::coalesced_threads();
        auto part = cg::labeled_partition(group, x[threadIdx.x] & 3);
        facts<0>(out, x, cg::binary_partition(part, x[threadIdx.x] & 4));
    }
}
"""
    + TILED
    + """
template <class T>
__device__ void shuffled(T *out, const T *x, const int *by, const int *way) {
    const int t = threadIdx.x, n = blockDim.x;
    if (way[t]) {
        auto group = cg::coalesced_threads();
        out[t] = group.shfl(x[t], by[t]);
        out[n + t] = group.shfl_up(x[t], by[0]);
        out[2 * n + t] = group.shfl_down(x[t], by[0]);
    }
}
"""
    + "\n".join(
        f"""extern "C" __global__
        void k_{name_of(kind)}({kind} *out, const {kind} *x, const int *by, const int *way) {{
            shuffled(out, x, by, way);
        }}"""
        for kind in TYPES
    )
)


@pytest.fixture(scope="module")
def coalesced():
    return compiled(COALESCED, no_extern_c=True)


WAYS = {
    "all": np.zeros(THREADS),
    "one": T % 32 == 7,
    "thirds": T % 3,
    "random": np.random.default_rng(4).integers(0, 3, THREADS),
    "halves": T % 32 // 16,
}


@pytest.mark.parametrize("way", WAYS)
def test_lanes_that_are_together(coalesced, way):
    x, way = some(5, few=True), WAYS[way].astype(np.int32)
    arrays = gpuarray.to_gpu(x), gpuarray.to_gpu(way)
    function = coalesced.get_function("apart")
    found = ran(function, (ROWS_OF_TILES, THREADS), np.uint32, *arrays)
    expected = facts_of(x, parts(way), T * 0, T * 0 + 1)
    expected[:, way > 1] = 0
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("kind", TYPES)
def test_lanes_that_are_together_shuffle(coalesced, kind):
    x = values_of(TYPES[kind])
    function = coalesced.get_function(f"k_{name_of(kind)}")
    for first, way in zip((0, 1, 5, 16, 31), WAYS.values()):
        way = way.astype(np.int32) if way.any() else way.astype(np.int32) + 1
        by = np.random.default_rng(first).integers(0, 70, THREADS).astype(np.int32)
        by[0] = first
        of = parts(way != 0)
        own, size = ranks(of), np.array(list(map(len, of)))
        up = np.where(own < first, own, own - first)
        down = np.where(own + first >= size, own, own + first)
        sources = [[of[t][rank] for t, rank in enumerate(it)] for it in (by % size, up, down)]
        expected = np.stack([x[source] for source in sources])
        expected[:, way == 0] = np.zeros(1, x.dtype)
        plain = x.view(f"V{x.itemsize}") if x.dtype.names else x
        arrays = gpuarray.to_gpu(plain), gpuarray.to_gpu(by), gpuarray.to_gpu(way)
        out = gpuarray.to_gpu(np.zeros((3, THREADS), plain.dtype))
        function(out, *arrays, block=(THREADS, 1, 1), grid=(1, 1))
        np.testing.assert_array_equal(out.get().view(x.dtype), expected)


@pytest.mark.skipif(ON_HOST, reason="parts have no numbers there")
def test_labeled_parts(coalesced):
    x, label = some(6), np.random.default_rng(7).integers(-3, 5, THREADS).astype(np.int32)
    label[:32], label[32:64] = 9, np.arange(32)
    arrays = gpuarray.to_gpu(x), gpuarray.to_gpu(label)
    function = coalesced.get_function("labeled")
    found = ran(function, (ROWS_OF_TILES, THREADS), np.uint32, *arrays)
    of = parts(label)
    firsts = [sorted({part[0] for part in of[t // 32 * 32 : t // 32 * 32 + 32]}) for t in T]
    number = [first.index(of[t][0]) for t, first in enumerate(firsts)]
    # How parts are numbered, NVIDIA's documentation does not say.
    expected = facts_of(x, of, number, list(map(len, firsts)))
    checked = np.arange(ROWS_OF_TILES) if BACKEND == "hip" else np.delete(np.arange(31), [3, 4])
    np.testing.assert_array_equal(found[checked], expected[checked])


def test_parts_by_a_predicate(coalesced):
    x, label = some(8), np.random.default_rng(9).integers(0, 2, THREADS).astype(np.int32)
    label[:16] = 0
    arrays = gpuarray.to_gpu(x), gpuarray.to_gpu(label)
    function = coalesced.get_function("binary")
    found = ran(function, (ROWS_OF_TILES, THREADS), np.uint32, *arrays)
    expected = facts_of(x, parts(label + T // 16 * 2), 1 - label, T * 0 + 2)
    checked = np.delete(np.arange(31), [3, 4]) if BACKEND == "cuda" else np.arange(31)
    np.testing.assert_array_equal(found[checked], expected[checked])


def test_parts_of_parts(coalesced):
    x = some(10)
    way = np.random.default_rng(11).integers(0, 2, THREADS).astype(np.int32)
    arrays = gpuarray.to_gpu(x), gpuarray.to_gpu(way)
    function = coalesced.get_function("of_parts")
    found = ran(function, (ROWS_OF_TILES, THREADS), np.uint32, *arrays)
    expected = facts_of(x, parts((x & 7) + 8 * way), x >> 2 & 1 ^ 1, T * 0 + 2)
    expected[:, way != 0] = 0
    checked = np.delete(np.arange(31), [3, 4]) if BACKEND == "cuda" else np.arange(31)
    np.testing.assert_array_equal(found[checked], expected[checked])


@pytest.mark.skipif(ON_HOST, reason="parts of lanes are groups of any kind there")
@pytest.mark.parametrize("size", SIZES)
def test_tiles_of_lanes_that_are_together(coalesced, size):
    x = some(12)
    way = np.random.default_rng(13).integers(0, 2, THREADS).astype(np.int32)
    way[:32], way[32:64] = 0, np.arange(32) != 9
    arrays = gpuarray.to_gpu(x), gpuarray.to_gpu(way)
    function = coalesced.get_function("tiled")
    found = ran(function, (ROWS_OF_TILES, THREADS), np.uint32, *arrays, np.int32(size))
    outer = parts(way)
    number = ranks(outer) // size
    count = np.array([-(-len(part) // size) for part in outer])
    expected = facts_of(x, parts(number * 2 + way), number, count)
    expected[:, way != 0] = 0
    np.testing.assert_array_equal(found, expected)


ONE_LINE = f"""{ALL}
__device__ INLINED int aggregated(int *count) {{
    cg::coalesced_group active = cg::coalesced_threads();
    int first;
    if (active.thread_rank() == 0) first = atomicAdd(count, active.size());
    return active.shfl(first, 0) + active.thread_rank();
}}
__device__ int counts[2] = {{0, 0}};
__global__ void parted(int *out) {{
    const int t = threadIdx.x, few = (blockDim.x + 2) / 3;
    if (t % 3 == 0) out[aggregated(&counts[0])] = 1; else out[few + aggregated(&counts[1])] = 2;
}}
"""


@pytest.mark.parametrize("inlined", ["__forceinline__", ""])
def test_branches_that_call_one_function_have_groups_of_their_own(inlined):
    found = ran(
        compiled(ONE_LINE.replace("INLINED", inlined)).get_function("parted"), THREADS, np.int32
    )
    few = (THREADS + 2) // 3
    np.testing.assert_array_equal(found, np.where(np.arange(THREADS) < few, 1, 2))


# ---- groups of a kind that is known when the program runs ---------------------------------------

RUN_TIME = f"""{ALL}
__device__ int sum(cg::thread_group group, int *row, int value) {{
    const int rank = group.thread_rank();
    for (int by = group.size() / 2; by > 0; by /= 2) {{
        row[rank] = value;
        group.sync();
        if (rank < by) value += row[rank + by];
        cg::sync(group);
    }}
    return value;
}}
__global__ void sums(int *out, const int *x, int size) {{
    __shared__ int rows[256];
    const int t = threadIdx.x, n = blockDim.x;
    cg::thread_block block = cg::this_thread_block();
    const cg::thread_group outer = cg::tiled_partition(block, 32);
    cg::thread_group tile = cg::tiled_partition(block, size);
    cg::thread_group inner = cg::tiled_partition(outer, size);
    cg::thread_group of_tile = cg::tiled_partition(cg::tiled_partition<32>(block), size);
    out[t] = sum(tile, rows + t / size * size, x[t]);
    block.sync();
    out[n + t] = sum(inner, rows + t / size * size, x[t]);
    block.sync();
    out[2 * n + t] = sum(of_tile, rows + t / size * size, x[t]);
    block.sync();
    out[3 * n + t] = sum(block, rows, x[t]);
    out[4 * n + t] = outer.size() + 100 * outer.thread_rank();
    out[5 * n + t] = cg::group_size(of_tile) + 100 * cg::thread_rank(of_tile);
    out[6 * n + t] = t;
    cg::invoke_one(inner, [&](int value) {{ out[6 * n + t] = value; }}, -1);
}}
"""


@pytest.mark.parametrize("size", SIZES)
def test_groups_of_a_kind_that_is_known_later(size):
    threads, t = 128, np.arange(128)
    x = some(14)[:threads]
    function = compiled(RUN_TIME).get_function("sums")
    arguments = gpuarray.to_gpu(x), np.int32(size)
    found = ran(function, (7, threads), np.int32, *arguments, threads=threads)
    sums = x.reshape(-1, size).sum(axis=1)
    np.testing.assert_array_equal(found[:3, ::size], [sums] * 3)
    assert found[3, 0] == x.sum()
    np.testing.assert_array_equal(found[4], 32 + 100 * (t % 32))
    np.testing.assert_array_equal(found[5], size + 100 * (t % size))
    np.testing.assert_array_equal(found[6], np.where(t % size == 0, -1, t))


# ---- copies -------------------------------------------------------------------------------------

COPIES = f"""{ALL}
__global__ void by_block(unsigned char *out, const unsigned char *x, int bytes, int at) {{
    __shared__ unsigned char room[2048];
    cg::thread_block block = cg::this_thread_block();
    for (int i = threadIdx.x; i < 2048; i += blockDim.x) room[i] = 7;
    block.sync();
    cg::memcpy_async(block, room + at, x, bytes);
    cg::wait(block);
    for (int i = threadIdx.x; i < 2048; i += blockDim.x) out[i] = room[i];
}}
"""


@pytest.mark.parametrize(
    ("count", "at"), [(1024, 0), (1021, 0), (1024, 3), (4, 0), (0, 0), (16, 16)]
)
def test_copies_of_a_block(count, at):
    x = np.random.default_rng(15).integers(0, 256, 1024, np.uint8)
    arguments = gpuarray.to_gpu(x), np.int32(count), np.int32(at)
    found = ran(compiled(COPIES).get_function("by_block"), 2048, np.uint8, *arguments)
    expected = np.full(2048, 7)
    expected[at : at + count] = x[:count]
    np.testing.assert_array_equal(found, expected)


COPIES_OF_TILES = f"""{ALL}
__global__ void by_tiles(int *out, const int *x) {{
    __shared__ int room[2][{THREADS}];
    auto tile = cg::tiled_partition<32>(cg::this_thread_block());
    const int first = tile.meta_group_rank() * 32;
    cg::memcpy_async(tile, &room[0][first], x + first, sizeof(int) * 32);
    cg::memcpy_async(tile, &room[1][first], 32, x + first, 40);
    cg::wait_prior<1>(tile);
    out[threadIdx.x] = room[0][threadIdx.x ^ 31];
    cg::wait_prior<0>(tile);
    out[threadIdx.x] += 1000 * room[1][threadIdx.x ^ 31];
}}
"""


@pytest.mark.skipif(ON_HOST, reason="copies are of bytes there")
def test_copies_of_tiles():
    x = some(16)
    found = ran(
        compiled(COPIES_OF_TILES).get_function("by_tiles"), THREADS, np.int32, gpuarray.to_gpu(x)
    )
    np.testing.assert_array_equal(found, 1001 * x[T ^ 31])


# ---- what is refused ----------------------------------------------------------------------------

REFUSED = {
    "cg::tiled_partition<24>(block)": "power of two",
    "cg::tiled_partition<64>(block)": "larger than a warp",
    "cg::tiled_partition<32>(cg::tiled_partition<16>(block))": "not larger than the one",
    "cg::tiled_partition<4>(cg::coalesced_threads())": "parts of a block or of a tile",
}


@pytest.mark.skipif(BACKEND != "hip", reason="other compilers have other words")
@pytest.mark.parametrize("expression", REFUSED)
def test_what_is_no_tile_is_refused(expression):
    text = f"""{ALL}
    __global__ void k(int *out) {{
        auto block = cg::this_thread_block();
        *out = {expression}.size();
    }}"""
    with pytest.raises(driver.CompileError) as failure:
        compiled(text)
    assert REFUSED[expression] in failure.value.stderr


# ---- whole programs -----------------------------------------------------------------------------

PROGRAM = """
#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>
using namespace cooperative_groups;
template <int tile_sz>
__device__ int tile_sum(thread_block_tile<tile_sz> g, int value) {
    for (int i = g.size() / 2; i > 0; i /= 2) value += g.shfl_down(value, i);
    return value;
}
template <class Group> __device__ float norm(const Group &g, float2 z) {
    float2 sum = reduce(g, z, [](const float2 &a, const float2 &b) {
        return make_float2(a.x + b.x, a.y + b.y);
    });
    return sum.x * sum.y;
}
extern "C" __global__ void block_sum(int *out, const int *x, int n) {
    int sum = 0;
    thread_block g = this_thread_block();
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += blockDim.x * gridDim.x)
        sum += x[i];
    thread_block_tile<16> tile = tiled_partition<16>(g);
    sum = tile_sum<16>(tile, sum);
    if (tile.thread_rank() == 0) atomicAdd(out, sum);
}
extern "C" __global__ void norms(float *out, const float2 *z) {
    auto warp = tiled_partition<32>(this_thread_block());
    out[threadIdx.x] = norm(warp, z[threadIdx.x]);
    if (threadIdx.x & 1) out[threadIdx.x] += norm(coalesced_threads(), z[threadIdx.x]);
}
"""


def test_whole_programs():
    module = compiled(PROGRAM, no_extern_c=True)
    x = np.arange(1000, dtype=np.int32)
    function = module.get_function("block_sum")
    assert ran(function, 1, np.int32, gpuarray.to_gpu(x), np.int32(1000)) == x.sum()
    z = (np.arange(THREADS) % 7 + 1j * (np.arange(THREADS) % 5)).astype(np.complex64)
    sums = np.repeat(z.reshape(WARPS, 32).sum(axis=1), 32)
    odd = np.repeat(z.reshape(WARPS, 32)[:, 1::2].sum(axis=1), 32)
    expected = sums.real * sums.imag + (T & 1) * (odd.real * odd.imag)
    found = ran(module.get_function("norms"), THREADS, np.float32, gpuarray.to_gpu(z))
    np.testing.assert_array_equal(found, expected)
