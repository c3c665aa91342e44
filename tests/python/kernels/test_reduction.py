"""Reductions of a program's own expressions."""

from __future__ import annotations

import numpy as np
import pytest
from device import TEST_ALL, compiled_examples
from hypothesis import given
from hypothesis import strategies as st
from pairs import numbers

from pygpu import driver, gpuarray, tools
from pygpu.reduction import (
    ReductionKernel,
    get_all_kernel,
    get_any_kernel,
    get_dot_kernel,
    get_minmax_kernel,
    get_minmax_neutral,
    get_reduction_kernel_and_types,
    get_subset_dot_kernel,
    get_subset_minmax_kernel,
    get_subset_sum_kernel,
    get_sum_kernel,
)

DOT = ReductionKernel(np.int64, 0, "a+b", "x[i]*y[i]", "const long *x, const long *y", "dot")
LENGTHS = [0, 1, 2, 255, 256, 2047, 2048, 2049, 5000, 300_001]


@pytest.mark.parametrize("length", LENGTHS)
def test_every_element_counts_once(length):
    rng = np.random.default_rng(length)
    x, y = (rng.integers(-9, 9, length) for _ in range(2))
    result = DOT(gpuarray.to_gpu(x), gpuarray.to_gpu(y))
    assert result.shape == ()
    assert result.dtype == np.int64
    assert result.get() == (x * y).sum()


def test_arrays_of_any_strides():
    x = np.random.default_rng(1).integers(-9, 9, (30, 40, 5))
    gx = gpuarray.to_gpu(x)
    for view in (np.s_[::2], np.s_[:, ::-3], np.s_[:, :, 1:4], np.s_[3:4, 5]):
        assert DOT(gx[view], gx[view]).get() == (x[view] ** 2).sum()
    assert DOT(gx.T, gx.T).get() == (x**2).sum()
    assert DOT(gx[0].T, gx[:5, :, 0]).get() == (x[0].T * x[:5, :, 0]).sum()
    position = ReductionKernel(np.int64, 0, "a+b", "i * x[i]", "const long *x")
    part = x[::2, ::2]
    expected = (np.arange(part.size) * part.ravel()).sum()
    assert position(gx[::2, ::2]).get() == expected


def test_what_the_result_is_written_to():
    x = gpuarray.to_gpu(np.arange(6000))
    out = gpuarray.zeros((3, 2), np.int64)
    assert DOT(x, x, out=out[1, 1:]) is not None
    expected = np.zeros((3, 2), np.int64)
    expected[1, 1] = (np.arange(6000) ** 2).sum()
    assert (out.get() == expected).all()
    pool = tools.DeviceMemoryPool()
    result = DOT(x, x, allocator=pool.allocate, stream=driver.Stream())
    assert result.allocator == pool.allocate
    assert result.get() == expected[1, 1]
    assert pool.active_blocks == 1


def test_structures_with_constructors():
    extremes = np.dtype([("least", np.float32), ("most", np.float32)])
    tools.get_or_register_dtype("reduction_extremes", extremes)
    preamble = """
    struct reduction_extremes {
        float least, most;
        __device__ reduction_extremes() {}
        __device__ reduction_extremes(float l, float m) : least(l), most(m) {}
    };
    __device__ reduction_extremes both(reduction_extremes a, reduction_extremes b) {
        return reduction_extremes(fminf(a.least, b.least), fmaxf(a.most, b.most));
    }
    """
    kernel = ReductionKernel(
        extremes,
        neutral="reduction_extremes(10000, -10000)",
        reduce_expr="both(a, b)",
        map_expr="reduction_extremes(x[i], x[i])",
        arguments="float *x",
        preamble=preamble,
    )
    x = numbers(20_000, np.float32)
    result = kernel(gpuarray.to_gpu(x)).get()
    assert (result["least"], result["most"]) == (x.min(), x.max())


def test_scalars_tables_and_complex_numbers():
    x = numbers(3000, np.complex64)
    kernel = ReductionKernel(
        np.complex64,
        neutral="0",
        reduce_expr="a+b",
        map_expr="s * conj(x[k[i]])",
        arguments="float s, const int *k, pycuda::complex<float> *x",
    )
    chosen = np.arange(0, 3000, 7, dtype=np.int32)
    result = kernel(0.5, gpuarray.to_gpu(chosen), gpuarray.to_gpu(x)).get()
    np.testing.assert_allclose(result, 0.5 * x[chosen].conj().sum(), rtol=1e-3, atol=1e-2)


def test_functions_that_make_reductions():
    x, y = np.arange(1, 4000, dtype=np.int32), np.arange(3999, dtype=np.int32) % 7
    k = np.uint32([1, 5, 3998, 5])
    gx, gy, gk = map(gpuarray.to_gpu, (x, y, k))
    i4, u4, f4 = map(np.dtype, ("i4", "u4", "f4"))
    assert get_sum_kernel(np.dtype("i8"), i4)(gx).get() == x.sum(dtype=np.int64)
    assert get_sum_kernel(None, i4)(gy).get() == y.sum()
    assert get_dot_kernel(i4, i4, i4)(gx, gy).get() == (x * y).sum()
    assert get_any_kernel(None, i4)(gy).get() == 1
    assert get_all_kernel(None, i4)(gy).get() == 0
    assert get_all_kernel(None, i4)(gx).get() == 1
    assert get_subset_sum_kernel(None, u4, i4)(gk, gx).get() == x[k].sum()
    assert get_subset_dot_kernel(i4, u4)(gk, gx, gy).get() == (x[k] * y[k]).sum()
    assert get_minmax_kernel("max", i4)(gx).get() == x.max()
    assert get_minmax_kernel("min", f4)(gx.astype(f4)).get() == x.min()
    assert get_subset_minmax_kernel("max", i4, u4)(gk, gy).get() == y[k].max()
    for dtype in ("i1", "u1", "i4", "u4", "i8", "u8") if TEST_ALL else ("i1", "u8"):
        least, most = np.iinfo(dtype).min, np.iinfo(dtype).max
        array = gpuarray.to_gpu(np.array([least, most], dtype))
        assert get_minmax_kernel("max", np.dtype(dtype))(array[:1]).get() == least
        assert get_minmax_kernel("min", np.dtype(dtype))(array[1:]).get() == most
    with pytest.raises(ValueError, match="what"):
        get_minmax_neutral("mean", f4)
    with pytest.raises(TypeError, match="complex64"):
        get_minmax_kernel("min", np.dtype(np.complex64))
    function, codes = get_reduction_kernel_and_types(1, "float", 96, 0, "a+b", None, "float *in")
    assert codes == ["P"]
    ones, out = gpuarray.zeros(1000, f4) + 1, gpuarray.zeros(2, f4)
    function.prepared_call((2, 1), (96, 1, 1), out.gpudata, ones.gpudata, 4, 1000)
    assert out.get().sum() == 1000


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda x: DOT(x), TypeError, "takes 2 arguments"),
        (lambda x: DOT(x, x.get()), TypeError, "argument y.*GPUArray"),
        (lambda x: DOT(x, x.astype(np.float32)), TypeError, "float32"),
        (lambda x: DOT(x, x[1:]), ValueError, "y.*size 3"),
        (lambda x: DOT(x, x, out=x), ValueError, "4 elements"),
        (lambda x: DOT(x, x, out=x[:0]), ValueError, "empty"),
        (lambda x: DOT(x, x, out=x.astype(np.int32)[:1]), ValueError, "dtype"),
        (lambda x: DOT(x, x, out=5), TypeError, "out is of type int"),
        (lambda x: DOT(x, x, allocator=5), TypeError, "allocator"),
        (lambda x: DOT(x, x, strem=5), TypeError, "strem"),
        (lambda x: ReductionKernel(np.int32, 0, "a+b", "n", "int n"), AssertionError, "vector"),
        (lambda x: ReductionKernel(np.int32, 0, "a+b"), ValueError, "arguments is None"),
        (lambda x: ReductionKernel("V3", 0, "a+b", "x[i]", "int *x"), ValueError, "V3|void"),
    ],
)
def test_bad_calls_are_refused(call, error, text):
    with pytest.raises(error, match=text):
        call(gpuarray.to_gpu(np.arange(4)))


def test_a_wrong_expression_is_a_compile_error():
    kernel = ReductionKernel(np.int32, 0, "a+nothing_here", "x[i]", "int *x")
    with pytest.raises(driver.CompileError, match="nothing_here"):
        kernel(gpuarray.zeros(4, np.int32))


REDUCTIONS = {
    "sum": (0, "a+b", np.sum),
    "largest": ("-9223372036854775807", "max(a, b)", np.max),
    "exclusive or": (0, "a^b", lambda x, axis: np.bitwise_xor.reduce(x.ravel())),
}
KERNELS = {
    name: ReductionKernel(np.int64, neutral, expression, "(long)x[i]", "int *x", "random")
    for name, (neutral, expression, _) in REDUCTIONS.items()
}


@compiled_examples
@given(
    st.lists(st.integers(1, 40), min_size=1, max_size=3),
    st.lists(st.sampled_from([1, 2, -1, -3]), min_size=3, max_size=3),
    st.sampled_from(sorted(REDUCTIONS)),
)
def test_random_views_reduce_as_numpys(shape, steps, name):
    x = numbers(shape, np.int32)
    view = tuple(slice(None, None, step) for step in steps[: len(shape)])
    result = KERNELS[name](gpuarray.to_gpu(x)[view])
    assert result.get() == REDUCTIONS[name][2](x[view].astype(np.int64), axis=None)


def test_elements_of_another_dtype_and_the_same_size_are_read_as_declared():
    x = np.random.default_rng(8).normal(size=1000).astype(np.float32)
    total = ReductionKernel(np.uint32, "0", "a ^ b", "x[i]", "const unsigned *x")
    found = total(gpuarray.to_gpu(x)).get()
    assert found == np.bitwise_xor.reduce(x.view(np.uint32))
    with pytest.raises(TypeError, match="declaration says uint32; the array has 8-byte"):
        total(gpuarray.to_gpu(x.astype(np.float64)))


@pytest.mark.parametrize("size", [100, 1_000_000])
def test_a_wrapper_of_the_kernels(size):
    calls = []

    def wrapper(kernel):
        def call(grid, block, stream, *args, **keywords):
            calls.append((grid, block, stream, len(args), keywords))
            return kernel(grid, block, stream, *args, **keywords)

        return call

    x = gpuarray.zeros(size, np.int64) + 1
    stream, out = driver.Stream(), gpuarray.empty((), np.int64)
    x.get()
    assert DOT(x, x, kernel_wrapper=wrapper, stream=stream, out=out) is out
    stream.synchronize()
    assert out.get() == size
    # Each kernel's last argument is a number; the second kernel also takes the results of the
    # first.
    assert [count for _, _, _, count, _ in calls] == [4, 5][: len(calls)]
    assert len(calls) == (2 if calls[0][0][0] > 1 else 1)
    assert size == 100 or len(calls) == 2
    assert all(given is stream for _, _, given, _, _ in calls)
    assert all(list(keywords) == ["shared_size"] for *_, keywords in calls)
    calls.clear()
    assert DOT(x, x, kernel_wrapper=wrapper).get() == size
    assert calls[0][2] is None
    assert DOT(x, x, kernel_wrapper=None).get() == size
    with pytest.raises(RuntimeError, match="non-contiguous arrays where it has a kernel_wrapper"):
        DOT(x[::2], x[::2], kernel_wrapper=wrapper)
    with pytest.raises(TypeError, match="not callable"):
        DOT(x, x, kernel_wrapper=5)
    with pytest.raises(TypeError, match="2 arguments"):
        DOT(x, kernel_wrapper=wrapper)


def test_a_wrapper_may_keep_kernels_from_running():
    x, out = gpuarray.zeros(10, np.int64) + 1, gpuarray.zeros((), np.int64)
    DOT(x, x, out=out, kernel_wrapper=lambda kernel: lambda *args, **keywords: None)
    assert out.get() == 0
