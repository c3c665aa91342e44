"""Texts that use warp functions: forms of masks, a program's own names, programs for HIP."""

import numpy as np
import pytest
from device import IS_DOUBLE
from processes import run_python
from warps import LANE, THREADS, compiled, ran

from pygpu import choose_backend, driver, gpuarray
from pygpu.compiler import SourceModule
from pygpu.elementwise import ElementwiseKernel

only_hip = pytest.mark.skipif(choose_backend() != "hip", reason="a program for HIP")


# ---- forms of masks, and a program's own names ---------------------------------------------------

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


# The fake driver's compiler warns about redefined macros; AMD's compiler is told not to.
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
