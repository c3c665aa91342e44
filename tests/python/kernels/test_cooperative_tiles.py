"""Warp tiles in CUDA C."""

from __future__ import annotations

import numpy as np
import pytest
from groups import (
    ALL,
    OWN_TYPES,
    ROWS_OF_TILES,
    SIZES,
    TILES,
    TYPES,
    T,
    facts_of,
    name_of,
    parts,
    some,
    values_of,
)
from tables import each_row
from warps import LANE, THREADS, compiled, ran

from pygpu import gpuarray

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


@each_row("size", SIZES)
@each_row("kind", TYPES)
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
            cg::thread_block_tile<{size}> tile = cg::tiled_partition<{size}>(outer);
            facts<{size}>(out, x, tile);
        }}"""
        for size, parent in [(4, 32), (8, 16), (2, 2), (1, 4)]
    )
)


@pytest.fixture(scope="module")
def tile_facts():
    return compiled(TILE_FACTS, no_extern_c=True)


@pytest.mark.parametrize("form", ["k", "without_parent"])
@pytest.mark.parametrize("size", SIZES)
def test_tiles(tile_facts, size, form):
    x = some(size, few=size > 4)
    function = tile_facts.get_function(f"{form}_{size}")
    found = ran(function, (ROWS_OF_TILES, THREADS), np.uint32, gpuarray.to_gpu(x))
    expected = facts_of(x, parts(T // size), T // size, np.full(THREADS, THREADS // size))
    np.testing.assert_array_equal(found, expected)


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
