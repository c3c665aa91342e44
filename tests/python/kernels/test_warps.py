"""Functions of warps in CUDA C: shuffles, votes, matches, reductions and `warpSize`.

A warp has 32 lanes on every backend, also where a wavefront has 64: blocks have an odd number of
warps, so that some fill a wavefront and the last does not.
"""

import warnings

import numpy as np
import pytest
from device import IS_DOUBLE
from processes import run_python

import pygpu.autoinit  # noqa: F401
from pygpu import _warps, choose_backend, driver, gpuarray
from pygpu.compiler import SourceModule
from pygpu.elementwise import ElementwiseKernel

WARPS = 5
THREADS = 32 * WARPS
LANE = np.arange(THREADS) % 32
FULL = 0xFFFFFFFF

only_hip = pytest.mark.skipif(choose_backend() != "hip", reason="a program for HIP")


def compiled(text, **options):
    with warnings.catch_warnings():
        # NVRTC warns of masks such as -1; the header on AMD's devices brings no warning.
        warnings.simplefilter("error" if choose_backend() == "hip" else "ignore")
        return SourceModule(text, **options)


def ran(function, shape, dtype, *inputs, threads=THREADS):
    """What a kernel of one block writes: its output is the first parameter."""
    out = gpuarray.zeros(shape, dtype)
    function(out, *inputs, block=(threads, 1, 1), grid=(1, 1))
    return out.get()


def bits(of):
    """Words with a bit for each lane of a warp, one for each thread."""
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


@pytest.mark.parametrize("width", [1, 2, 8, 16, 32, None])
@pytest.mark.parametrize("kind", TYPES)
def test_shuffles(shuffles, kind, width):
    x = values_of(TYPES[kind])
    wide = width or 32
    form = "without" if width is None else "with"
    function = shuffles.get_function(f"{form}_{name_of(kind)}")
    for first in (0, 1, 5, 16, 31):
        # Sources count modulo the width.
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
    """The three votes, where the lanes with the same number in ``group`` vote together."""
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
    # High and low words differ; two warps have one value.
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
    text = AGGREGATED.replace("PARTED", PARTED[form]).replace("INLINED", inlined)
    found = ran(compiled(text).get_function("parted"), THREADS, np.int32)
    few = (THREADS + 2) // 3
    np.testing.assert_array_equal(found, np.where(np.arange(THREADS) < few, 1, 2))


# ---- spellings of masks, and names of the program's own ------------------------------------------

SPELLINGS = [
    "0xffffffff",
    "0xFFFFFFFFu",
    "~0u",
    "~0",
    "-1",
    "(unsigned)-1",
    "UINT_MAX",
    "all_lanes",
    "constant",
    "enumerated",
    "uint32_t(-1)",
    "__activemask()",
    "__ballot_sync(~0u, 1)",
]


def test_masks_are_written_in_many_ways():
    lines = "\n".join(
        f"out[{i} * blockDim.x + t] = __reduce_add_sync({mask}, t) + __shfl_sync({mask}, t, 0);"
        for i, mask in enumerate(SPELLINGS)
    )
    text = f"""
    enum {{ enumerated = 0xffffffff }};
    constexpr unsigned constant = 0xffffffff;
    __global__ void sums(int *out) {{
        const int t = threadIdx.x;
        const auto all_lanes = 0xffffffff;
        {lines}
    }}
    """
    found = ran(compiled(text).get_function("sums"), (len(SPELLINGS), THREADS), np.int32)
    first = np.arange(THREADS) - LANE
    np.testing.assert_array_equal(found, [32 * first + 31 * 16 + first] * len(SPELLINGS))


OWN = {
    "an overload for a structure": """
__device__ float2 __shfl_xor_sync(unsigned mask, float2 x, int by) {
    return make_float2(__shfl_xor_sync(mask, x.x, by), __shfl_xor_sync(mask, x.y, by));
}
__global__ void k(float *out) {
    const float2 x = __shfl_xor_sync(0xffffffff, make_float2(threadIdx.x, 1), 1);
    out[threadIdx.x] = x.x * x.y;
}
""",
    "an overload for a class of its own": """
struct Pair { float x, y; };
__device__ Pair __shfl_xor_sync(unsigned mask, Pair p, int by, int width = 32) {
    Pair other = {__shfl_xor_sync(mask, p.x, by, width), __shfl_xor_sync(mask, p.y, by, width)};
    return other;
}
__global__ void k(float *out) {
    Pair pair = {(float)threadIdx.x, 1};
    pair = __shfl_xor_sync(0xffffffff, pair, 1);
    out[threadIdx.x] = pair.x * pair.y;
}
""",
    "a macro": """
#define __shfl_xor_sync(mask, x, by) other(x)
__device__ float other(int x) { return x ^ 1; }
__global__ void k(float *out) { out[threadIdx.x] = __shfl_xor_sync(0, threadIdx.x, 1); }
""",
    "a macro that is not needed": """
#if 0
#define __shfl_xor_sync(mask, x, by) 0
#endif
#ifndef warpSize
#endif
__global__ void k(float *out) { out[threadIdx.x] = __shfl_xor_sync(~0u, threadIdx.x, 1); }
""",
    "a variable called warpSize": """
__global__ void k(float *out) {
    const int warpSize = 32;
    const int t = threadIdx.x;
    out[t] = __shfl_xor_sync(~0u, t / warpSize * warpSize + t % 32, 1);
}
""",
    "a member and names in comments and texts": """
// hipLaunchKernelGGL, __shfl(x, 0), warpSize == 64
struct Mine { int warpSize; };
__global__ void k(float *out) {
    const char *text = "hip";
    Mine mine = {1};
    out[threadIdx.x] = __shfl_xor_sync(~0u, threadIdx.x, mine.warpSize) + (text[0] - 'h');
}
""",
}


# The double's compiler warns of macros that replace others, which AMD's is told not to.
@pytest.mark.filterwarnings("ignore:(?s).*redefined")
@pytest.mark.parametrize("which", OWN)
def test_programs_have_names_of_their_own(which):
    found = ran(SourceModule(OWN[which]).get_function("k"), THREADS, np.float32)
    np.testing.assert_array_equal(found, np.arange(THREADS) ^ 1)


OWN_FUNCTIONS = """
extern "C++" {
template <class T>
__device__ __forceinline__ T __shfl_down_sync(unsigned mask, T x, unsigned by, int width = 64) {
    return __shfl_down(x, by, width);
}
}
__global__ void k(int *out) {
    int sum = 1;
    for (int by = warpSize / 2; by; by /= 2) sum += __shfl_down_sync(0xffffffff, sum, by, warpSize);
    out[threadIdx.x] = sum;
}
"""


@only_hip
def test_functions_of_the_program_take_the_place_of_these():
    width = driver.Device(0).get_attribute(driver.device_attribute.WARP_SIZE)
    found = ran(SourceModule(OWN_FUNCTIONS).get_function("k"), 128, np.int32, threads=128)
    assert (found[::width] == width).all()


def test_files_of_the_program_have_them_too(tmp_path):
    (tmp_path / "inner.cuh").write_text(
        "__device__ int sum(int x) { for (int by = warpSize / 2; by; by /= 2)\n"
        "    x += __shfl_xor_sync(0xffffffff, x, by); return x; }\n"
    )
    (tmp_path / "outer.cuh").write_text('#include "inner.cuh"\n')
    text = '#include "outer.cuh"\n__global__ void k(int *out) { out[threadIdx.x] = sum(1); }'
    module = compiled(text, include_dirs=[str(tmp_path)])
    assert (ran(module.get_function("k"), THREADS, np.int32) == 32).all()


def test_lines_keep_their_numbers():
    text = "__global__ void k(int *out) {\n*out = __shfl_sync(-1, 1, 0);\nundeclared = 1; }"
    with pytest.raises(driver.CompileError) as failure:
        SourceModule(text)
    assert "kernel.cu:3" in failure.value.stderr or "kernel.cu(3)" in failure.value.stderr


@pytest.mark.skipif(choose_backend() == "host", reason="a thread takes neighbouring elements")
def test_expressions_exchange_values():
    kernel = ElementwiseKernel(
        "int *out, const int *x",
        "out[i] = swapped(x[i]) + warpSize",
        preamble="__device__ int swapped(int x) { return __shfl_xor_sync(0xffffffff, x, 1); }",
    )
    x = gpuarray.arange(64, dtype=np.int32)
    out = gpuarray.zeros_like(x)
    kernel(out, x)
    np.testing.assert_array_equal(out.get(), (np.arange(64) ^ 1) + 32)


# ---- programs for HIP ---------------------------------------------------------------------------

OF_HIP = """
#define FULL (~0ull)
__global__ void lanes(unsigned long long *out, const int *x) {
    const int t = threadIdx.x, n = blockDim.x;
    int sum = x[t], all = 0;
    for (int by = warpSize / 2; by > 0; by /= 2) sum += __shfl_down_sync(FULL, sum, by);
    sum = __shfl_sync(0xffffffffffffffffull, sum, 0);
    out[t] = (unsigned long long)(long long)sum;
    out[n + t] = __ballot_sync(FULL, x[t] & 1);
    out[2 * n + t] = __match_any_sync(FULL, x[t]);
    out[3 * n + t] = __match_all_sync(FULL, x[t] >> 30, &all) * all;
    out[4 * n + t] = __activemask();
    out[5 * n + t] = (unsigned long long)(long long)__reduce_add_sync((long)-1, x[t]);
    out[6 * n + t] = __any_sync(FULL, x[t] == 3) + 2 * __all_sync(FULL, x[t] < 5) + 4 * warpSize;
    out[7 * n + t] = __shfl_up_sync(FULL, (double)t, 3) + __shfl_xor_sync(FULL, t, 33 % warpSize);
    __syncwarp(FULL);
}
"""


@only_hip
def test_masks_of_64_bits_are_of_a_wavefront():
    width = driver.Device(0).get_attribute(driver.device_attribute.WARP_SIZE)
    threads, t = 256, np.arange(256)
    x = np.random.default_rng(6).integers(0, 9, threads).astype(np.int32)
    out = gpuarray.zeros((8, threads), np.uint64)
    function = compiled(OF_HIP).get_function("lanes")
    function(out, gpuarray.to_gpu(x), block=(threads, 1, 1), grid=(1, 1))
    rows = x.reshape(-1, width)
    weights = np.uint64(1) << np.arange(width, dtype=np.uint64)

    def masks(of):
        return (of * weights).sum(axis=-1, dtype=np.uint64)

    sums = np.repeat(rows.sum(axis=1), width).astype(np.uint64)
    every = np.uint64(2**width - 1)
    lane = t % width
    expected = [
        sums,
        np.repeat(masks(rows & 1 != 0), width),
        masks(rows[:, :, None] == rows[:, None, :]).ravel(),
        np.full(threads, every),
        np.full(threads, every),
        sums,
        np.repeat((rows == 3).any(axis=1) + 2 * (rows < 5).all(axis=1) + 4 * width, width),
        np.where(lane < 3, t, t - 3) + (t ^ (33 % width)),
    ]
    np.testing.assert_array_equal(out.get(), [row.astype(np.uint64) for row in expected])


UNDECIDED = """
template <class T> __device__ T every() { return ~T(); }
extern "C" __global__ void k(int *out) {
    out[threadIdx.x] = __shfl_sync(every<decltype(sizeof(0))>(), 1, 0) + warpSize;
}
"""


@only_hip
def test_a_mask_of_64_bits_beside_the_width_of_cuda_is_refused():
    with pytest.raises(driver.CompileError) as failure:
        SourceModule(UNDECIDED, no_extern_c=True)
    assert "a mask of 64 bits beside CUDA's warpSize" in failure.value.stderr
    assert "#ifdef __HIP__" in failure.value.stderr
    compiled(f"#ifdef __HIP__\n#endif\n{UNDECIDED}", no_extern_c=True)


OF_CUDA = [
    "__shfl_sync(0xffffffff, x, warpSize - 1)",
    "const unsigned m = __activemask(); x = warpSize;",
    "#define FULL 0xffffffffu\n__any_sync(FULL, x) * warpSize",
    "unsigned m = __ballot_sync(~0u, x); __shfl_sync(m, x, 0) + warpSize; unsigned long long y;",
    "long long ship(long long a, unsigned m) { return __shfl_sync(m, a, warpSize); }",
    "__syncwarp(0xff); warpSize // hip",
    'auto t = "hipMalloc"; __all_sync(-1, warpSize)',
]
NOT_CUDAS = [
    "__shfl_sync(~0ull, x, warpSize - 1)",
    "__shfl_sync(0xffffffffffffffff, x, warpSize - 1)",
    "__shfl_sync((unsigned long long)m, x, warpSize - 1)",
    "unsigned long long m = f(); __shfl_sync(m, x, warpSize - 1)",
    "f(int a, const uint64_t m) { __shfl_sync(m, x, warpSize - 1)",
    "unsigned long a, m; __shfl_sync(m, x, warpSize - 1)",
    "#define FULL 0xffffffffffffffffull\n__any_sync(FULL, x) * warpSize",
    "constexpr auto m{~0ull}; __any_sync(m, x) * warpSize",
    "unsigned long long m = __activemask(); x = warpSize;",
    "auto m = __activemask(); __popcll(m) + warpSize",
    "__ffsll(__activemask())",
    "__shfl_sync(0xffffffff, x, 0) + __shfl_down(x, warpSize / 2)",
    "__any_sync(0xffffffff, x) + __ballot(x) + warpSize",
    "__any_sync(0xffffffff, x); if (warpSize == 64) {}",
    "__any_sync(0xffffffff, x) + hipThreadIdx_x + warpSize",
    "#ifdef __HIP_PLATFORM_AMD__\n#endif\n__any_sync(0xffffffff, x) + warpSize",
    "#ifdef USE_ROCM\n#endif\n__any_sync(0xffffffff, x) + warpSize",
    "#include <hip/hip_runtime.h>\n__any_sync(0xffffffff, x) + warpSize",
    '#include "hip/hip_runtime.h"\n__any_sync(0xffffffff, x) + warpSize',
    "__builtin_amdgcn_readfirstlane(x) + __any_sync(0xffffffff, x) + warpSize",
    "__syncwarp(); warpSize",
]


@pytest.mark.parametrize("text", OF_CUDA + NOT_CUDAS)
def test_what_the_width_is_told_by(text):
    lines = _warps.in_front(text, [])
    assert _warps.HEADER in lines
    assert ("PYGPU_WARPS_OF_32" in lines) == (text in OF_CUDA)


@pytest.mark.parametrize("text", ["x = warpSize;", "__shfl(x, 0)", "// __shfl_sync(-1, x, 0)", ""])
def test_other_programs_are_left_alone(text):
    assert _warps.in_front(text, []) == ""


OWN_DEFINITIONS = {
    "template <class T> T __shfl_sync(unsigned mask, T x, int lane) { return x; }": True,
    "__device__ float __shfl_sync(int mask, float x, int lane) { return x; }": True,
    "typedef float real; real __shfl_sync(int mask, const real x, int lane) { return x; }": True,
    "template <class T> struct S; int __any_sync(unsigned mask, int x) { return x; }": True,
    "__device__ unsigned __activemask() { return 1; }": True,
    "__device__ void __syncwarp(unsigned mask) {}": True,
    "__device__ float2 __shfl_sync(unsigned mask, float2 x, int lane) { return x; }": False,
    "C __shfl_sync(int mask, pycuda::complex<float> x, int lane) { return x; }": False,
    "struct S { int x; }; S __shfl_sync(unsigned mask, S x, int lane) { return x; }": False,
    "typedef struct { int x; } S; S __shfl_sync(int mask, const S &x, int) { return x; }": False,
    "x = __shfl_sync(mask, x, 0); if (__any_sync(mask, x)) { y = f(); }": False,
    "float __shfl_sync(int mask, float x, int lane);": False,
}


@pytest.mark.parametrize("text", OWN_DEFINITIONS)
def test_which_names_a_text_defines(text):
    assert ("#undef" in _warps.in_front(text, [])) == OWN_DEFINITIONS[text]


DEVICE_WIDTH = """
import numpy as np
import pygpu.autoinit
from pygpu import driver, gpuarray
from pygpu.compiler import SourceModule

width = driver.Device(0).get_attribute(driver.device_attribute.WARP_SIZE)
text = "__global__ void k(unsigned long long *out) { *out = %s; }"
for expression, expected in {
    "warpSize": width,
    "__ballot(1)": 2**width - 1,
    "__shfl_sync(~0ull, 7, 0) + warpSize": 7 + width,
    "__ballot_sync(~0ull, 1)": 2**width - 1,
    "__shfl_sync(~0u, 7, 0) + warpSize": 39,
    "__ballot_sync(~0u, 1)": 2**32 - 1,
    "__activemask()": 2**width - 1,
    "unsigned(__activemask())": 2**32 - 1,
    "__popcll(__activemask())": width,
}.items():
    out = gpuarray.zeros(1, np.uint64)
    SourceModule(text % expression).get_function("k")(out, block=(64, 1, 1), grid=(1, 1))
    assert int(out.get()[0]) == expected, (expression, hex(int(out.get()[0])), width)
"""


@only_hip
@pytest.mark.skipif(not IS_DOUBLE, reason="the double has devices of both widths")
@pytest.mark.parametrize("target", ["gfx90a", "gfx1100"])
def test_programs_for_hip_keep_the_devices_width(target):
    run_python(DEVICE_WIDTH, DOUBLE_TARGET=target)
