"""Groups of the lanes that reach a point of a CUDA C program together, and their partitions."""

from __future__ import annotations

import numpy as np
import pytest
from device import BACKEND
from groups import (
    ALL,
    ON_HOST,
    OWN_TYPES,
    ROWS_OF_TILES,
    SIZES,
    TILES,
    TYPES,
    T,
    facts_of,
    name_of,
    parts,
    ranks,
    some,
    values_of,
)
from warps import THREADS, compiled, ran

from pygpu import gpuarray

TILED = """
extern "C" __global__ void tiled(unsigned *out, const int *x, const int *way, int size) {
    if (way[threadIdx.x] == 0) {
        auto group = cg::coalesced_threads();
        facts<0>(out, x, cg::tiled_partition(group, size));
    }
}
"""
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


def test_labeled_parts(coalesced):
    x, label = some(6), np.random.default_rng(7).integers(-3, 5, THREADS).astype(np.int32)
    label[:32], label[32:64] = 9, np.arange(32)
    arrays = gpuarray.to_gpu(x), gpuarray.to_gpu(label)
    function = coalesced.get_function("labeled")
    found = ran(function, (ROWS_OF_TILES, THREADS), np.uint32, *arrays)
    of = parts(label)
    firsts = [sorted({part[0] for part in of[t // 32 * 32 : t // 32 * 32 + 32]}) for t in T]
    number = [first.index(of[t][0]) for t, first in enumerate(firsts)]
    # NVIDIA's documentation does not define the numbering of the parts.
    expected = facts_of(x, of, number, list(map(len, firsts)))
    is_ours = BACKEND == "hip" or ON_HOST
    checked = np.arange(ROWS_OF_TILES) if is_ours else np.delete(np.arange(31), [3, 4])
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
