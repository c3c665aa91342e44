"""Positions of qualifiers and attributes in programs."""

from __future__ import annotations

import numpy as np
import pytest
from device import BACKEND

from pygpu import gpuarray
from pygpu.compiler import SourceModule

QUALIFIERS = """
__device__ alignas(16) float table[4];
__device__ __noinline__ float doubled(float x) { return 2 * x; }
__global__ void __noinline__ turn(float *a) {
    __shared__ alignas(16) float tile[8];
    __shared__ alignas(double) char
        bytes[3];
    __shared__ [[maybe_unused]] float more[3];
    int i = threadIdx.x;
    tile[i] = doubled(a[i]);
    if (i == 0) bytes[0] = 1;
    __syncthreads();
    bool is_aligned = (size_t)tile % 16 == 0 && (size_t)bytes % 8 == 0 && (size_t)table % 16 == 0;
    a[i] = is_aligned ? tile[7 - i] + bytes[0] : 0;
}
__global__ __attribute__((noinline)) void doubles(float *a) {
    a[threadIdx.x] = doubled(a[threadIdx.x]);
}
"""


# NVRTC warns that it may inline the kernel nevertheless.
@pytest.mark.filterwarnings("ignore:The CUDA compiler succeeded")
def test_attributes_of_shared_variables_and_functions():
    module = SourceModule(QUALIFIERS)
    a = gpuarray.arange(8, dtype=np.float32)
    module.get_function("turn")(a, block=(8, 1, 1))
    assert a.get().tolist() == [15 - 2 * i for i in range(8)]
    module.get_function("doubles")(a, block=(8, 1, 1))
    assert a.get().tolist() == [30 - 4 * i for i in range(8)]


@pytest.mark.skipif(
    BACKEND != "host", reason="GPUs' compilers at run time have no system's headers"
)
def test_headers_of_the_system_have_words_of_cuda_in_attributes():
    names = ["memory", "future", "regex", "filesystem", "condition_variable", "functional"]
    text = "".join(f"#include <{name}>\n" for name in names)
    text += 'extern "C" __global__ void one(int *a) { a[0] = 1; }'
    a = gpuarray.zeros(1, np.int32)
    SourceModule(text, no_extern_c=True).get_function("one")(a, block=(1, 1, 1))
    assert a.get() == 1
