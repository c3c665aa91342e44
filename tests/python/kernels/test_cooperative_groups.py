"""Thread groups in CUDA C: headers, the block, the grid, copies, and whole programs."""

from __future__ import annotations

import numpy as np
import pytest
from device import BACKEND, IS_DOUBLE
from groups import (
    ALL,
    SIZES,
    T,
    some,
)
from warps import THREADS, WARPS, compiled, ran

from pygpu import driver, gpuarray

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
    __shared__ cg::block_tile_memory<256> room;
    cg::thread_block b = cg::this_thread_block(room);
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


# ---- groups whose kind is only known at run time ------------------------------------------------

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


def test_copies_of_tiles():
    x = some(16)
    found = ran(
        compiled(COPIES_OF_TILES).get_function("by_tiles"), THREADS, np.int32, gpuarray.to_gpu(x)
    )
    np.testing.assert_array_equal(found, 1001 * x[T ^ 31])


# ---- refused programs ---------------------------------------------------------------------------

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
