"""Functions that end without returning their value, as nvcc accepts with a warning."""

import numpy as np
import pytest

import pygpu.driver as cuda
from pygpu.compiler import SourceModule

TEXT = """
__device__ int store(float *o, int i, float v) { o[i] = v; }
__device__ __noinline__ float store_twice(float *o, int i, float v) { o[i] = 2 * v; }
__device__ float positive(float x) { if (x > 0) return x; }
__device__ int find(const float *x, int n, float v) {
    for (int i = 0; i < n; i++) if (x[i] == v) return i;
}
__device__ float signed_by(int k, float x) { switch (k) { case 0: return x; case 1: return -x; } }

__global__ void k(float *o, const float *x, int n) {
    int i = threadIdx.x;
    store(o, i, x[i]);
    store_twice(o, i + n, x[i]);
    float y = positive(x[i]);
    o[i + 2 * n] = x[i] > 0 ? y : 0;
    o[i + 3 * n] = find(x, n, x[i]);
    find(x, n, -99.0f);
    o[i + 4 * n] = signed_by(i & 1, x[i]);
    signed_by(i, x[i]);
    o[i + 5 * n] = 1;
}
"""


@pytest.mark.filterwarnings("ignore:The CUDA compiler succeeded")
def test_a_function_may_end_without_a_value_that_is_not_used():
    n = 40
    x = np.random.default_rng(3).normal(size=n).astype(np.float32)
    result = np.zeros((6, n), np.float32)
    kernel = SourceModule(TEXT).get_function("k")
    kernel(cuda.Out(result), cuda.In(x), np.int32(n), block=(n, 1, 1))
    i = np.arange(n)
    expected = [x, 2 * x, np.where(x > 0, x, 0), i, np.where(i % 2, -x, x), np.ones(n)]
    assert result.tolist() == np.array(expected, np.float32).tolist()
