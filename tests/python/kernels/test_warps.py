"""Warp functions in CUDA C: shuffles, votes, matches, reductions and `warpSize`.

A warp has 32 lanes on every backend, even if a wavefront has 64. Blocks have an odd number of
warps, so that some fill a wavefront and the last does not.
"""

import numpy as np
import pytest
from device import BACKEND, IS_DOUBLE
from tables import each_row
from warps import LANE, THREADS, WARPS, compiled, ran

from pygpu import gpuarray

ON_NVIDIA = BACKEND == "cuda" and not IS_DOUBLE


def bits(of):
    """Returns words with a bit for each lane of a warp, one word per thread."""
    weights = np.uint64(1) << np.arange(32, dtype=np.uint64)
    words = (np.asarray(of, bool).reshape(-1, 32) * weights).sum(axis=1)
    return np.repeat(words.astype(np.uint32), 32)


# ---- shuffles -----------------------------------------------------------------------------------

TYPES = {
    "int": np.int32,
    "unsigned int": np.uint32,
    "long": np.int64,
    "unsigned long": np.uint64,
    "long long": np.int64,
    "unsigned long long": np.uint64,
    "float": np.float32,
    "double": np.float64,
}


def name_of(kind):
    return kind.replace(" ", "_")


SHUFFLES = """
#define KERNELS(name, T)                                                                        \\
    __global__ void with_##name(T *out, const T *x, const int *by, int width) {                 \\
        const int t = threadIdx.x, n = blockDim.x;                                              \\
        out[t] = __shfl_sync(0xffffffff, x[t], by[t], width);                                   \\
        out[n + t] = __shfl_up_sync(0xffffffff, x[t], by[0], width);                            \\
        out[2 * n + t] = __shfl_down_sync(0xffffffff, x[t], by[0], width);                      \\
        out[3 * n + t] = __shfl_xor_sync(0xffffffff, x[t], by[0], width);                       \\
    }                                                                                           \\
    __global__ void without_##name(T *out, const T *x, const int *by) {                         \\
        const int t = threadIdx.x, n = blockDim.x;                                              \\
        out[t] = __shfl_sync(~0u, x[t], by[t]);                                                 \\
        out[n + t] = __shfl_up_sync(~0u, x[t], by[0]);                                          \\
        out[2 * n + t] = __shfl_down_sync(~0u, x[t], by[0]);                                    \\
        out[3 * n + t] = __shfl_xor_sync(~0u, x[t], by[0]);                                     \\
    }
""" + "\n".join(f"KERNELS({name_of(kind)}, {kind})" for kind in TYPES)


@pytest.fixture(scope="module")
def shuffles():
    return compiled(SHUFFLES)


def values_of(dtype):
    words = np.random.default_rng(5).integers(0, 256, THREADS * 8, np.uint8).view(np.uint64)
    return (words / 2**40).astype(dtype) if np.dtype(dtype).kind == "f" else words.astype(dtype)


@each_row("width", [1, 2, 8, 16, 32, None])
@each_row("kind", TYPES)
def test_shuffles(shuffles, kind, width):
    x = values_of(TYPES[kind])
    wide = width or 32
    form = "without" if width is None else "with"
    function = shuffles.get_function(f"{form}_{name_of(kind)}")
    for first in (0, 1, 5, 16, 31):
        # Source lanes count modulo the width.
        by = np.random.default_rng(first).integers(-3, 70, THREADS).astype(np.int32)
        by[0] = first
        start, segment = LANE // wide * wide, np.arange(THREADS) - LANE
        up = np.where(LANE - first < start, LANE, LANE - first)
        down = np.where(LANE + first >= start + wide, LANE, LANE + first)
        across = np.where((LANE ^ first) >= start + wide, LANE, LANE ^ first)
        sources = [start + by % wide, up, down, across]
        expected = [x[segment + source] for source in sources]
        more = () if width is None else (np.int32(width),)
        arrays = gpuarray.to_gpu(x), gpuarray.to_gpu(by)
        found = ran(function, (4, THREADS), x.dtype, *arrays, *more)
        np.testing.assert_array_equal(found, expected)


# ---- votes --------------------------------------------------------------------------------------

VOTES = """
__global__ void votes(unsigned *out, const int *p) {
    const int t = threadIdx.x, n = blockDim.x;
    out[t] = __ballot_sync(0xffffffff, p[t]);
    out[n + t] = __any_sync(0xffffffffu, p[t]);
    out[2 * n + t] = __all_sync(-1, p[t]);
}
__global__ void votes_apart(unsigned *out, const int *p) {
    const int t = threadIdx.x, n = blockDim.x;
    if (t % 3 == 0) {
        const unsigned mask = __activemask();
        out[t] = __ballot_sync(mask, p[t]);
        out[n + t] = __any_sync(mask, p[t]);
        out[2 * n + t] = __all_sync(mask, p[t]);
        out[3 * n + t] = mask;
    } else {
        const unsigned mask = __activemask();
        out[t] = __ballot_sync(mask, p[t]);
        out[n + t] = __any_sync(mask, p[t]);
        out[2 * n + t] = __all_sync(mask, p[t]);
        out[3 * n + t] = mask;
    }
}
__global__ void votes_of_groups(unsigned *out, const int *p, const unsigned *masks) {
    const int t = threadIdx.x, n = blockDim.x;
    out[t] = __ballot_sync(masks[t], p[t]);
    out[n + t] = __any_sync(masks[t], p[t]);
    out[2 * n + t] = __all_sync(masks[t], p[t]);
}
"""
PREDICATES = {
    "random": np.random.default_rng(1).integers(0, 2, THREADS),
    "rarely": np.random.default_rng(2).integers(0, 64, THREADS) == 7,
    "mostly": np.random.default_rng(3).integers(0, 64, THREADS),
    "by warps": np.arange(THREADS) // 32 % 2 * 4,
}


def voted(p, group):
    """Returns the three votes of the lanes that have the same number in ``group``."""
    p = np.asarray(p) != 0
    ballot, some, every = np.zeros((3, THREADS), np.uint32)
    for own in np.unique(group):
        here = group == own
        yes, mask = bits(p & here), bits(here)
        ballot[here], some[here], every[here] = yes[here], (yes != 0)[here], (yes == mask)[here]
    return ballot, some, every


@pytest.fixture(scope="module")
def votes():
    return compiled(VOTES)


@pytest.mark.parametrize("which", PREDICATES)
def test_votes(votes, which):
    p = PREDICATES[which].astype(np.int32)
    there = gpuarray.to_gpu(p)
    found = ran(votes.get_function("votes"), (3, THREADS), np.uint32, there)
    np.testing.assert_array_equal(found, voted(p, np.zeros(THREADS)))

    group = np.arange(THREADS) % 3 == 0
    found = ran(votes.get_function("votes_apart"), (4, THREADS), np.uint32, there)
    np.testing.assert_array_equal(found[:3], voted(p, group))
    np.testing.assert_array_equal(found[3], np.where(group, bits(group), bits(~group)))

    group = np.random.default_rng(4).integers(0, 4, THREADS)
    masks = np.choose(group, [bits(group == own) for own in range(4)])
    found = ran(
        votes.get_function("votes_of_groups"),
        (3, THREADS),
        np.uint32,
        there,
        gpuarray.to_gpu(masks),
    )
    np.testing.assert_array_equal(found, voted(p, group))


# ---- matches and reductions ---------------------------------------------------------------------

MATCHES = """
#define KERNEL(name, T)                                                                         \\
    __global__ void match_##name(unsigned *out, const T *x, const unsigned *masks) {            \\
        const int t = threadIdx.x, n = blockDim.x;                                              \\
        int all = 7;                                                                            \\
        out[t] = __match_any_sync(masks[t], x[t]);                                              \\
        out[n + t] = __match_all_sync(masks[t], x[t], &all);                                    \\
        out[2 * n + t] = all;                                                                   \\
    }
""" + "\n".join(f"KERNEL({name_of(kind)}, {kind})" for kind in TYPES)


@pytest.fixture(scope="module")
def matches():
    return compiled(MATCHES)


@pytest.mark.parametrize("groups", [1, 3])
@pytest.mark.parametrize("kind", TYPES)
def test_matches(matches, kind, groups):
    random = np.random.default_rng(groups)
    group = random.integers(0, groups, THREADS)
    masks = np.choose(group, [bits(group == own) for own in range(groups)])
    # High and low words differ; in two warps all lanes have one value.
    few = (values_of(TYPES[kind])[:4])[random.integers(0, 4, THREADS)]
    few[32:64], few[128:] = few[0], few[1]
    found = ran(
        matches.get_function(f"match_{name_of(kind)}"),
        (3, THREADS),
        np.uint32,
        gpuarray.to_gpu(few),
        gpuarray.to_gpu(masks),
    )
    any_of = np.zeros(THREADS, np.uint32)
    for t in range(THREADS):
        first = t // 32 * 32
        equal = (few[first : first + 32] == few[t]) & (group[first : first + 32] == group[t])
        any_of[t] = (equal * (np.uint64(1) << np.arange(32, dtype=np.uint64))).sum()
    every = any_of == masks
    np.testing.assert_array_equal(found, [any_of, np.where(every, masks, 0), every])


REDUCTIONS = """
#define KERNEL(name, T)                                                                         \\
    __global__ void arithmetic_##name(T *out, const T *x, const unsigned *masks) {              \\
        const int t = threadIdx.x, n = blockDim.x;                                              \\
        out[t] = __reduce_add_sync(masks[t], x[t]);                                             \\
        out[n + t] = __reduce_min_sync(masks[t], x[t]);                                         \\
        out[2 * n + t] = __reduce_max_sync(masks[t], x[t]);                                     \\
    }
KERNEL(int, int)
KERNEL(unsigned, unsigned int)
__global__ void logic(unsigned *out, const unsigned *x, const unsigned *masks) {
    const int t = threadIdx.x, n = blockDim.x;
    out[t] = __reduce_and_sync(masks[t], x[t]);
    out[n + t] = __reduce_or_sync(masks[t], x[t]);
    out[2 * n + t] = __reduce_xor_sync(masks[t], x[t]);
}
"""


@pytest.fixture(scope="module")
def reductions():
    return compiled(REDUCTIONS)


@pytest.mark.parametrize("groups", [1, 2, 7])
@pytest.mark.parametrize(
    ("name", "dtype", "functions"),
    [
        ("arithmetic_int", np.int32, (np.add, np.minimum, np.maximum)),
        ("arithmetic_unsigned", np.uint32, (np.add, np.minimum, np.maximum)),
        ("logic", np.uint32, (np.bitwise_and, np.bitwise_or, np.bitwise_xor)),
    ],
)
def test_reductions(reductions, name, dtype, functions, groups):
    group = np.random.default_rng(groups).integers(0, groups, THREADS)
    group[:32] = 0
    masks = np.choose(group, [bits(group == own) for own in range(groups)])
    x = values_of(dtype)
    if name == "logic":
        x |= np.uint32(0x00C00000)
    expected = np.zeros((3, THREADS), dtype)
    for t in range(THREADS):
        warp = slice(t // 32 * 32, t // 32 * 32 + 32)
        own = x[warp][group[warp] == group[t]]
        expected[:, t] = [function.reduce(own, dtype=dtype) for function in functions]
    arrays = gpuarray.to_gpu(x), gpuarray.to_gpu(masks)
    found = ran(reductions.get_function(name), (3, THREADS), dtype, *arrays)
    np.testing.assert_array_equal(found, expected)


# ---- whole programs -----------------------------------------------------------------------------

BLOCKS = """
#define FULL_MASK 0xffffffff

__inline__ __device__ double warp_sum(double x) {
    for (int offset = warpSize / 2; offset > 0; offset /= 2)
        x += __shfl_down_sync(FULL_MASK, x, offset);
    return x;
}
__global__ void block_sum(double *out, const double *x, int n) {
    static __shared__ double shared[32];
    const int lane = threadIdx.x % warpSize, wid = threadIdx.x / warpSize;
    double sum = 0;
    for (int i = threadIdx.x; i < n; i += blockDim.x) sum += x[i];
    sum = warp_sum(sum);
    if (lane == 0) shared[wid] = sum;
    __syncthreads();
    sum = threadIdx.x < blockDim.x / warpSize ? shared[lane] : 0;
    if (wid == 0) sum = warp_sum(sum);
    if (threadIdx.x == 0) *out = sum;
}
__global__ void scan(long long *out, const long long *x) {
    __shared__ long long sums[32];
    const unsigned lane = threadIdx.x & (warpSize - 1), warp = threadIdx.x / warpSize;
    long long sum = x[threadIdx.x];
    for (int by = 1; by < warpSize; by *= 2) {
        const long long before = __shfl_up_sync(FULL_MASK, sum, by);
        if (lane >= by) sum += before;
    }
    if (lane == warpSize - 1) sums[warp] = sum;
    __syncthreads();
    for (unsigned i = 0; i < warp; ++i) sum += sums[i];
    out[threadIdx.x] = sum;
}
// Each warp takes its elements by one atomic operation of the first lane that is there.
__global__ void compact(int *out, const int *x, int *count) {
    const int value = x[threadIdx.x];
    if (value <= 0) return;
    const unsigned active = __activemask();
    const int lane = threadIdx.x % warpSize, leader = __ffs(active) - 1;
    int place = 0;
    if (lane == leader) place = atomicAdd(count, __popc(active));
    place = __shfl_sync(active, place, leader);
    out[place + __popc(active & ((1u << lane) - 1))] = value;
}
__global__ void neighbours(int *out, const int *x) {
    __shared__ volatile int row[160];
    row[threadIdx.x] = x[threadIdx.x];
    __syncwarp();
    const int next = row[threadIdx.x ^ 31];
    __syncwarp(FULL_MASK);
    row[threadIdx.x] = next + 1;
    __syncwarp();
    out[threadIdx.x] = row[threadIdx.x ^ 1];
}
__global__ void loops(int *out, const int *x) {
    int sum = 0;
    for (int i = 0; i <= (int)threadIdx.x / 32; ++i) sum += __reduce_add_sync(-1, x[threadIdx.x]);
    out[threadIdx.x] = sum;
}
__global__ void size(int *out) { *out = warpSize; }
"""


@pytest.fixture(scope="module")
def blocks():
    return compiled(BLOCKS)


@pytest.mark.parametrize("threads", [32, 64, 96, 160, 256])
def test_a_sum_over_a_block(blocks, threads):
    x = np.arange(1000.0) * 3 - 7
    function = blocks.get_function("block_sum")
    arguments = gpuarray.to_gpu(x), np.int32(x.size)
    assert ran(function, 1, np.float64, *arguments, threads=threads) == x.sum()


def test_a_scan_over_a_block(blocks):
    x = values_of(np.int64) >> 9
    found = ran(blocks.get_function("scan"), THREADS, np.int64, gpuarray.to_gpu(x))
    np.testing.assert_array_equal(found, np.cumsum(x))


def test_active_lanes_take_their_elements(blocks):
    x = np.random.default_rng(9).integers(-5, 50, THREADS).astype(np.int32)
    count = gpuarray.zeros(1, np.int32)
    found = ran(blocks.get_function("compact"), THREADS, np.int32, gpuarray.to_gpu(x), count)
    taken = x[x > 0]
    assert count.get() == taken.size
    np.testing.assert_array_equal(np.sort(found[: taken.size]), np.sort(taken))


def test_lanes_see_what_others_wrote(blocks):
    x = values_of(np.int32) >> 2
    found = ran(blocks.get_function("neighbours"), THREADS, np.int32, gpuarray.to_gpu(x))
    t = np.arange(THREADS)
    np.testing.assert_array_equal(found, x[t ^ 1 ^ 31] + 1)


def test_warps_of_a_wavefront_take_ways_of_their_own(blocks):
    x = np.random.default_rng(8).integers(-99, 99, THREADS).astype(np.int32)
    found = ran(blocks.get_function("loops"), THREADS, np.int32, gpuarray.to_gpu(x))
    sums = x.reshape(-1, 32).sum(axis=1) * np.arange(1, WARPS + 1)
    np.testing.assert_array_equal(found, np.repeat(sums, 32))


def test_a_warp_has_32_lanes(blocks):
    assert ran(blocks.get_function("size"), 1, np.int32, threads=1) == 32


AGGREGATED = """
__device__ INLINED int aggregated(int *count) {
    const unsigned active = __activemask();
    const int lane = threadIdx.x % 32, leader = __ffs(active) - 1;
    int first;
    if (lane == leader) first = atomicAdd(count, __popc(active));
    first = __shfl_sync(active, first, leader);
    return first + __popc(active & ((1u << lane) - 1));
}
__device__ int counts[2] = {0, 0};
__global__ void parted(int *out) {
    const int t = threadIdx.x, few = (blockDim.x + 2) / 3;
    PARTED
}
"""
PARTED = {
    "branches": """
    if (t % 3 == 0) {
        out[aggregated(&counts[0])] = 1;
    } else {
        const int place = aggregated(&counts[1]);
        out[few + place] = 2;
    }""",
    "one line": """
    if (t % 3 == 0) out[aggregated(&counts[0])] = 1; else out[few + aggregated(&counts[1])] = 2;""",
    "two statements": """
    if (t % 3 == 0) out[aggregated(&counts[0])] = 1;
    if (t % 3 != 0) out[few + aggregated(&counts[1])] = 2;""",
}


@pytest.mark.parametrize("inlined", ["__forceinline__", "__noinline__", ""])
@pytest.mark.parametrize("form", PARTED)
def test_branches_that_call_one_function_have_active_lanes_of_their_own(form, inlined):
    if inlined == "__noinline__" and ON_NVIDIA:
        pytest.skip("NVIDIA's compiler makes one call of two, where all lanes are active")
    text = AGGREGATED.replace("PARTED", PARTED[form]).replace("INLINED", inlined)
    found = ran(compiled(text).get_function("parted"), THREADS, np.int32)
    few = (THREADS + 2) // 3
    np.testing.assert_array_equal(found, np.where(np.arange(THREADS) < few, 1, 2))
