"""Elementwise kernels around a program's statements."""

from __future__ import annotations

import struct

import numpy as np
import pytest
from device import compiled_examples
from hypothesis import given
from hypothesis import strategies as st
from pairs import numbers
from tables import each_row

from pygpu import driver, gpuarray
from pygpu.elementwise import (
    ElementwiseKernel,
    get_axpbyz_kernel,
    get_binary_minmax_kernel,
    get_elwise_kernel,
    get_linear_combination_kernel,
    get_pow_array_kernel,
    get_pow_kernel,
)
from pygpu.tools import ScalarArg, VectorArg, get_or_register_dtype

LINEAR = ElementwiseKernel(
    "float a, const float *x, float b, float *y, float *z", "z[i] = a*x[i] + b*y[i]", "linear"
)


def arrays(shape, dtype=np.float32, count=3):
    host = [numbers(shape, dtype, seed) for seed in range(count)]
    return host, [gpuarray.to_gpu(it) for it in host]


@pytest.mark.parametrize("length", [0, 1, 3, 4, 5, 1023, 4099])
def test_every_element_is_served(length):
    (x, y, _), (gx, gy, gz) = arrays(length)
    LINEAR(2, gx, 3, gy, gz)
    np.testing.assert_allclose(gz.get(), 2 * x + 3 * y, rtol=1e-6)


@pytest.mark.parametrize("offset", [1, 2, 3])
def test_arrays_that_do_not_begin_at_a_multiple_of_16_bytes(offset):
    (x, y, _), (gx, gy, gz) = arrays(1000)
    LINEAR(2, gx[offset:], 3, gy[:-offset], gz[offset:])
    np.testing.assert_allclose(gz[offset:].get(), 2 * x[offset:] + 3 * y[:-offset], rtol=1e-6)


LAYOUTS = {
    "every other": lambda a: a[:, ::2],
    "backwards": lambda a: a[::-1, ::-2],
    "transposed": lambda a: a.T[::2],
    "Fortran": lambda a: a.T,
    "rows": lambda a: a[1::3],
    "part": lambda a: a[2:9, 3:8],
}


@pytest.mark.parametrize("first", LAYOUTS)
@pytest.mark.parametrize("second", ["every other", "transposed", "Fortran"])
def test_arrays_of_any_strides(first, second):
    (x, y, z), (gx, gy, gz) = arrays((12, 12))
    shape = tuple(map(min, LAYOUTS[first](x).shape, LAYOUTS[second](x).shape))
    cut = tuple(map(slice, shape))
    hx, dx = LAYOUTS[first](x)[cut], LAYOUTS[first](gx)[cut]
    hy, dy = LAYOUTS[second](y)[cut], LAYOUTS[second](gy)[cut]
    LINEAR(2, dx, -1, dy, gz[cut])
    z[cut] = 2 * hx - hy
    np.testing.assert_allclose(gz.get(), z, rtol=1e-6)


def test_i_counts_in_memory_order_or_in_c_order():
    count = ElementwiseKernel("int *x, long *z", "z[i] = i + 0 * x[i]")
    x = gpuarray.zeros((3, 4), np.int32)
    z = gpuarray.zeros((3, 4), np.int64)
    count(x, z)
    assert (z.get().ravel() == np.arange(12)).all()
    fortran = gpuarray.zeros((3, 4), np.int64, order="F")
    count(gpuarray.zeros((3, 4), np.int32, order="F"), fortran)
    assert (fortran.get().ravel(order="F") == np.arange(12)).all()
    count(x, fortran)
    assert (fortran.get().ravel() == np.arange(12)).all()


@pytest.mark.parametrize(
    "statements",
    [
        "const int j = i; z[j] = x[i]",
        "const int j = i; z[i] = x[j]",
        "const int j = i; z[j] = x[j]",
        "*(z + i) = x[i]",
        "z[i + 0] = x[(i)]",
    ],
)
@pytest.mark.parametrize("orders", ["CF", "FC"])
def test_arrays_of_two_orders_at_indices_by_another_name(statements, orders):
    copy = ElementwiseKernel("const float *x, float *z", statements)
    x = np.arange(12, dtype=np.float32).reshape(3, 4)
    gz = gpuarray.zeros((3, 4), np.float32, order=orders[1])
    copy(gpuarray.to_gpu(np.array(x, order=orders[0])), gz)
    assert (gz.get() == x).all()


def test_a_table_beside_arrays_in_fortran_order():
    look = ElementwiseKernel(
        "const float *x, const float *table, float *z",
        "z[i] = element(table, int(x[i]))",
        preamble="__device__ float element(const float *table, int at) { return table[at]; }",
    )
    x = np.array([[2, 1, 0], [5, 4, 3]], np.float32, order="F")
    table = np.arange(10, 18, dtype=np.float32).reshape(2, 4)
    gz = gpuarray.zeros((2, 3), np.float32, order="F")
    look(gpuarray.to_gpu(x), gpuarray.to_gpu(table), gz)
    assert (gz.get() == x + 10).all()


def test_neighbours_of_strided_arrays():
    shift = ElementwiseKernel("const int *x, int *z", "z[i] = x[n - 1 - i] + *(x + i)")
    x = np.arange(40, dtype=np.int32).reshape(5, 8)
    gz = gpuarray.zeros((5, 4), np.int32)
    shift(gpuarray.to_gpu(x)[:, ::2], gz)
    even = x[:, ::2].ravel()
    assert (gz.get().ravel() == even[::-1] + even).all()


def test_a_statement_that_needs_contiguous_arrays_says_so():
    kernel = ElementwiseKernel(
        "float *x, float *z",
        "z[i] = first(x, i)",
        preamble="__device__ float first(float *x, size_t i) { return x[i]; }",
    )
    x = gpuarray.zeros(10, np.float32)
    kernel(x, x)
    with pytest.raises(RuntimeError, match="contiguous arrays only"):
        kernel(x[::2], x[:5])


@pytest.mark.parametrize(
    "indices",
    [slice(5, 200), slice(5, 200, 17), slice(150, 5, -1), slice(100, -1), slice(None), slice(7, 7)],
)
def test_slices(indices):
    seven = ElementwiseKernel("float *z", "z[i] = 7", "seven")
    expected, found = np.zeros(300, np.float32), gpuarray.zeros(300, np.float32)
    expected[indices] = 7
    seven(found, slice=indices)
    assert (found.get() == expected).all()
    expected = np.zeros((20, 30), np.float32)
    found = gpuarray.zeros((20, 60), np.float32)[:, ::2]
    expected.reshape(-1)[indices] = 7
    seven(found, slice=indices)
    assert (found.get() == expected).all()


@pytest.mark.parametrize("indices", [range(3, 30, 4), range(30, 3, -4), slice(2, 9), range(0)])
def test_ranges(indices):
    count = ElementwiseKernel("long *z", "z[i] = i")
    found = gpuarray.zeros(40, np.int64)
    count(found, range=indices)
    expected = np.zeros(40, np.int64)
    for i in range(indices.start, indices.stop, indices.step or 1):
        expected[i] = i
    assert (found.get() == expected).all()


def test_numbers_of_64_bits_for_long_arrays():
    kernel = ElementwiseKernel("const float *x, float *z", "z[i] = x[i] + i")
    # The arguments that a call passes if strides reach 2^31 bytes.
    (function,) = kernel._define()[0]._build(ranged=False, packed=False, wide=True, ranks=(2, 0))
    x = numbers((6, 10), np.float32)
    geometry = np.int64([6, 5, -40, 8])
    device, z = gpuarray.to_gpu(x), gpuarray.zeros(30, np.float32)
    function.prepare(["P", "P", "Q", "32s"])
    start = int(device.gpudata) + 5 * 40
    function.prepared_call((2, 1), (256, 1, 1), start, z.gpudata, 30, geometry)
    np.testing.assert_allclose(z.get(), x[::-1, ::2].ravel() + np.arange(30), rtol=1e-6)


def test_one_array_for_several_arguments():
    (x, *_), (gx, *_) = arrays(100)
    LINEAR(2, gx, 3, gx, gx)
    np.testing.assert_allclose(gx.get(), 5 * x, rtol=1e-6)


@pytest.mark.parametrize(
    "statements",
    [
        "y[i] = 2*x[i]; z[i] = x[i] + 1",
        "{ y[i] = 2*x[i]; z[i] = x[i] + 1; }",
        "y[i] = 2*x[i], z[i] = x[i] + 1",
    ],
)
def test_statements_see_what_those_before_have_stored(statements):
    kernel = ElementwiseKernel("float *x, float *y, float *z", statements)
    (x, *_), (gx, _, gz) = arrays(100)
    kernel(gx, gx, gz)
    np.testing.assert_allclose(gz.get(), 2 * x + 1, rtol=1e-6)


def test_elements_that_are_written_on_a_condition_or_through_pointers():
    (x, y, _), (gx, gy, gz) = arrays(1001)
    ElementwiseKernel("float *x, float *y", "if (x[i] > 0) y[i] = x[i]")(gx, gy)
    assert (gy.get() == np.where(x > 0, x, y)).all()
    ElementwiseKernel("float *x, float *y, float *z", "z[i] = modff(x[i], &y[i])")(gx, gy, gz)
    fraction, whole = np.modf(x)
    assert (gz.get() == fraction).all()
    assert (gy.get() == whole).all()
    swap = "template <class T> __device__ void exchange(T &a, T &b) { T c = a; a = b; b = c; }"
    exchange = ElementwiseKernel("float *x, float *y", "exchange(x[i], y[i])", preamble=swap)
    exchange(gx, gy)
    assert (gx.get() == whole).all()
    assert (gy.get() == x).all()


def test_preamble_and_what_stands_beside_the_loop():
    kernel = ElementwiseKernel(
        [VectorArg(np.float64, "x"), ScalarArg(np.int32, "k"), VectorArg(np.float64, "z")],
        "z[i] = twice(x[i]) + offset; // a comment",
        "beside",
        preamble="__device__ double twice(double x)\n{ return 2 * x; }",
        loop_prep="const double offset = k * 0.5",
        after_loop="if (n == 0) z[0] = offset",
        options=["-DUNUSED=1"],
    )
    (x, *_), (gx, gz, _) = arrays(333, np.float64)
    kernel(gx, 3, gz)
    np.testing.assert_allclose(gz.get(), 2 * x + 1.5)


def test_complex_numbers_and_structures():
    (x, y, _), (gx, gy, gz) = arrays(101, np.complex64)
    ElementwiseKernel(
        "pycuda::complex<float> a, pycuda::complex<float> *x, pycuda::complex<float> *y,"
        "pycuda::complex<float> *z",
        "z[i] = a*x[i] - conj(y[i])",
    )(1 + 2j, gx, gy, gz)
    np.testing.assert_allclose(gz.get(), np.complex64(1 + 2j) * x - y.conj(), rtol=1e-5)

    point = np.dtype([("x", np.float32), ("y", np.float32)])
    get_or_register_dtype("elementwise_point", point)
    record = np.zeros((7, 4), point)
    record["x"], record["y"] = numbers((7, 4), np.float32), 5
    device = gpuarray.to_gpu(record)
    turn = ElementwiseKernel(
        "elementwise_point by, elementwise_point *p",
        "const float x = p[i].x; p[i].x = p[i].y + by.x; p[i].y = x + by.y",
        preamble="struct elementwise_point { float x, y; };",
    )
    by = np.array((1, 2), point)[()]
    for view in (np.s_[:], np.s_[::2, 1:]):
        part = record[view]
        part["x"], part["y"] = part["y"] + 1, part["x"] + 2
        turn(by, device[view])
        assert (device.get() == record).all()


def test_a_table_of_another_length():
    look_up = ElementwiseKernel("const int *k, const float *table, float *z", "z[i] = table[k[i]]")
    table = numbers(10, np.float32)
    indices = np.int32([3, 9, 0, 3])
    z = gpuarray.zeros(4, np.float32)
    look_up(gpuarray.to_gpu(indices), gpuarray.to_gpu(table), z)
    assert (z.get() == table[indices]).all()
    backwards = gpuarray.to_gpu(table)[::-1]
    look_up(gpuarray.to_gpu(indices), backwards, z)
    assert (z.get() == table[::-1][indices]).all()


def test_a_stream_orders_the_kernel():
    stream = driver.Stream()
    (x, y, _), (gx, gy, gz) = arrays(5000)
    LINEAR(1, gx, 1, gy, gz, stream=stream)
    LINEAR(1, gz, 1, gy, gx)
    np.testing.assert_allclose(gx.get(), x + y + y, rtol=1e-6)


def good():
    return [2, *arrays(8)[1]]


@each_row(
    ("change", "error", "text"),
    [
        (lambda a, x, y, z: ((a, x, 3, y), {}), TypeError, "takes 5 arguments"),
        (lambda a, x, y, z: ((a, x, 3, y, z, z), {}), TypeError, "takes 5 arguments"),
        (lambda a, x, y, z: ((a, x.get(), 3, y, z), {}), TypeError, "argument x.*GPUArray"),
        (lambda a, x, y, z: ((a, 5, 3, y, z), {}), TypeError, "argument x.*GPUArray"),
        (lambda a, x, y, z: ((x, x, 3, y, z), {}), struct.error, "argument a of kernel"),
        (lambda a, x, y, z: (("2", x, 3, y, z), {}), struct.error, "argument a of kernel"),
        (lambda a, x, y, z: ((a, x.astype(np.float64), 3, y, z), {}), TypeError, "float64"),
        (lambda a, x, y, z: ((a, x.astype(np.int16), 3, y, z), {}), TypeError, "2-byte"),
        (lambda a, x, y, z: ((a, x[:7], 3, y, z), {}), ValueError, "y.* size 8"),
        (lambda a, x, y, z: ((a, x, 3, y, z[1:]), {}), ValueError, "z.* size 7"),
        (lambda a, x, y, z: ((a, x, 3, y, z), {"range": range(9)}), ValueError, "0 to 8"),
        (lambda a, x, y, z: ((a, x, 3, y, z), {"range": range(5, -2, -1)}), ValueError, "-1"),
        (lambda a, x, y, z: ((a, x, 3, y, z), {"range": 5}), TypeError, "range is 5"),
        (
            lambda a, x, y, z: ((a, x, 3, y, z), {"range": slice(0, 4, 0)}),
            ValueError,
            "the step 0",
        ),
        (
            lambda a, x, y, z: ((a, x, 3, y, z), {"range": range(2), "slice": slice(2)}),
            TypeError,
            "both range and slice",
        ),
        (lambda a, x, y, z: ((a, x, 3, y, z), {"slice": 5}), TypeError, "slice is 5"),
        (lambda a, x, y, z: ((a, x, 3, y, z), {"range": 1 / 3}), TypeError, "range is 0.3"),
        (
            lambda a, x, y, z: ((a, x, 3, y, z), {"slice": slice(0, 4, 2**70)}),
            OverflowError,
            "the step of slice is 1180",
        ),
        (
            lambda a, x, y, z: ((a, x, 3, y, z), {"range": range(2**70)}),
            OverflowError,
            "the stop of range is 1180",
        ),
        (lambda a, x, y, z: ((a, x, 3, y, z), {"strem": None}), TypeError, "strem"),
        (lambda a, x, y, z: ((a, x, 3, y, z), {"stream": "0"}), TypeError, "stream"),
    ],
)
def test_bad_calls_are_refused_before_anything_runs(change, error, text):
    a, x, y, z = good()
    before = z.get()
    args, kwargs = change(a, x, y, z)
    with pytest.raises(error, match=text):
        LINEAR(*args, **kwargs)
    assert (z.get() == before).all()


def test_a_wrong_statement_is_shown_with_its_line():
    kernel = ElementwiseKernel("float *x", "x[i] = 1;\nx[i] = nothing_here", "wrong")
    with pytest.raises(driver.CompileError, match=r"operation of wrong[(:]2.*nothing_here"):
        kernel(gpuarray.zeros(4, np.float32))


def call(function, *arguments, length):
    function.prepared_call((3, 1), (64, 1, 1), *arguments, length)


def test_functions_that_make_kernels():
    (x, y, _), (gx, gy, gz) = arrays(100)
    kernel = get_elwise_kernel("float *x, float *z", "z[i] = x[i] + n", "plus_n")
    call(kernel, gx.gpudata, gz.gpudata, length=100)
    np.testing.assert_allclose(gz.get(), x + 100, rtol=1e-6)
    single = np.dtype(np.float32)
    kernel = get_axpbyz_kernel(single, single, single, x_is_scalar=True)
    call(kernel, 2, gx.gpudata, 3, gy.gpudata, gz.gpudata, length=100)
    np.testing.assert_allclose(gz.get(), 2 * x[0] + 3 * y, rtol=1e-6, atol=1e-5)
    kernel = get_binary_minmax_kernel("max", single, single, single, use_scalar=False)
    call(kernel, gx.gpudata, gy.gpudata, gz.gpudata, length=100)
    assert (gz.get() == np.maximum(x, y)).all()
    kernel = get_pow_array_kernel(single, single, single, True, False)
    call(kernel, gx.gpudata, 2, gz.gpudata, length=100)
    np.testing.assert_allclose(gz.get(), x**2, rtol=1e-5)
    call(get_pow_kernel(single), 3, gx.gpudata, gz.gpudata, length=100)
    np.testing.assert_allclose(gz.get(), x**3, rtol=1e-5)
    kernel, textures = get_linear_combination_kernel(((False, single, single),) * 2, single)
    call(kernel, 2, gx.gpudata, -1, gy.gpudata, gz.gpudata, length=100)
    np.testing.assert_allclose(gz.get(), 2 * x - y, rtol=1e-5, atol=1e-5)
    assert textures == []


NAMES = {"f4": "float", "i8": "long", "u1": "unsigned char"}
STATEMENTS = {
    "z[i] = x[i] + y[i]": lambda x, y, z: x + y,
    "z[i] = x[i]; z[i] = z[i] * y[i]": lambda x, y, z: x * y,
    "z[i] += x[i] - y[i]": lambda x, y, z: z + (x - y),
    "if (x[i] < y[i]) z[i] = x[i]": lambda x, y, z: np.where(x < y, x, z),
    "z[i] = x[i] > 0 ? x[i] : y[n - 1 - i]": lambda x, y, z: np.where(
        x > 0, x, y.ravel()[::-1].reshape(y.shape)
    ),
}
KERNELS: dict[tuple[str, str], ElementwiseKernel] = {}


@st.composite
def layouts(draw):
    """Draws a shape and, for three arrays, the memory order of the axes, the steps and offset."""
    shape = draw(st.lists(st.integers(1, 6), min_size=1, max_size=3))
    orders = st.permutations(range(len(shape)))
    steps = st.lists(st.sampled_from([1, 1, 2, -1, -2]), min_size=len(shape), max_size=len(shape))
    return shape, [(draw(orders), draw(steps), draw(st.integers(0, 2))) for _ in range(3)]


def placed(shape, layout, dtype, seed):
    """Returns a numpy array and a device array with these strides in larger memory."""
    order, steps, offset = layout
    whole = [shape[axis] * abs(steps[axis]) for axis in order]
    whole[-1] += offset
    host = numbers(whole, dtype, seed)
    device = gpuarray.to_gpu(host)
    index = [slice(None, None, steps[axis]) for axis in order]
    last = steps[order[-1]]
    index[-1] = slice(offset, None, last) if last > 0 else slice(-offset - 1, None, last)
    back = [order.index(axis) for axis in range(len(shape))]
    cut = tuple(map(slice, shape))
    return (
        host[tuple(index)].transpose(back)[cut],
        device[tuple(index)].transpose(back)[cut],
        host,
        device,
    )


@compiled_examples
@given(layouts(), st.sampled_from(sorted(NAMES)), st.sampled_from(sorted(STATEMENTS)))
def test_random_programs_are_numpys(where, code, statement):
    shape, places = where
    dtype = np.dtype(code)
    kernel = KERNELS.get((code, statement))
    if kernel is None:
        name = NAMES[code]
        declaration = f"const {name} *x, {name} *y, {name} *z"
        kernel = KERNELS[code, statement] = ElementwiseKernel(declaration, statement)
    trio = [placed(shape, place, dtype, seed) for seed, place in enumerate(places)]
    (x, y, z), devices = [it[0] for it in trio], [it[1] for it in trio]
    if "n - 1" in statement and not all(it.flags.c_contiguous for it in (x, y, z)):
        in_fortran = all(it.flags.f_contiguous for it in (x, y, z))
        if in_fortran:
            return  # there, i counts in memory order
    kernel(*devices)
    with np.errstate(all="ignore"):
        z[...] = STATEMENTS[statement](x, y, z).astype(dtype)
    np.testing.assert_allclose(trio[2][3].get(), trio[2][2], rtol=1e-6)


def test_elements_of_another_dtype_and_the_same_size_are_read_as_declared():
    x = np.random.default_rng(8).normal(size=1000).astype(np.float32)
    bits = gpuarray.empty(x.shape, np.float32)
    ElementwiseKernel("const int *x, int *bits", "bits[i] = x[i] ^ 1")(gpuarray.to_gpu(x), bits)
    assert (bits.get().view(np.int32) == x.view(np.int32) ^ 1).all()
    # At a distance of five bytes the elements are not aligned.
    words = gpuarray.zeros(4, np.dtype([("mark", "i1"), ("word", "V4")]))["word"]
    with pytest.raises(TypeError, match="argument x .* need an alignment of 4"):
        ElementwiseKernel("int *x", "x[i] = 1")(words)
