"""Blocks of operations that are computed together."""

import gc
import inspect
import threading
import weakref

import numpy as np
import pytest
from device import BACKEND
from processes import run_python

import pygpu
from pygpu import cumath, driver, gpuarray
from pygpu.compiler import SourceModule
from pygpu.elementwise import ElementwiseKernel


@pytest.fixture
def x():
    return gpuarray.to_gpu(np.array([1.0, 2.0, 3.0, 4.0], np.float32))


def in_numpy(x, y):
    return np.where(x > 2, np.sqrt(x) * y + 2 - x / y, -x).astype(np.float64)


@pygpu.fuse
def together(x, y):
    chosen = gpuarray.if_positive(x > 2, cumath.sqrt(x) * y + 2 - x / y, -x)
    return chosen.astype(np.float64)


@pytest.mark.parametrize("shape", [(7,), (1000, 13), (3, 0), ()])
def test_a_decorated_function_gives_numpys_values(shape):
    rng = np.random.default_rng(5)
    x, y = (rng.uniform(1, 4, shape).astype(np.float32) for _ in range(2))
    result = together(gpuarray.to_gpu(x), gpuarray.to_gpu(y))
    assert result.dtype == np.float64
    assert result.shape == shape
    np.testing.assert_allclose(result.get(), in_numpy(x, y), rtol=1e-6)
    assert together.__name__ == "together"


def test_values_are_those_without_a_block_to_the_last_bit():
    rng = np.random.default_rng(6)
    host = rng.uniform(-3, 3, (64, 33)).astype(np.float32)
    a = gpuarray.to_gpu(host)
    row = a[5]

    def compute():
        b = a * 1.1 + row
        c = np.exp(-b) / (b.T * 0.3 + 2).T
        return b, c, (c > 0.5) & (b < 1), a[::-1, ::2] * 3 - a[:, ::2] * a[:, 1::2][:, :16].sum()

    rows = [compute()[:3]]
    with pygpu.fused():
        rows.append(compute()[:3])
    for one, other in zip(*rows):
        assert one.strides == other.strides
        np.testing.assert_array_equal(one.get(), other.get())


@pytest.mark.parametrize("shape", [(3, 2), (3, 0), (2, 0, 3)])
def test_a_conversion_keeps_the_order_of_the_axes(shape):
    view = gpuarray.zeros(shape, np.int16).T
    with pygpu.fused():
        converted = view.astype(np.float64)
    assert converted.strides == view.astype(np.float64).strides


REDUCTIONS = {
    "sum": lambda a: a.sum(),
    "rows": lambda a: a.sum(axis=1),
    "columns": lambda a: a.sum(axis=0, keepdims=True),
    "tuple": lambda a: a.prod(axis=(0, 1)),
    "float64": lambda a: gpuarray.sum(a, dtype=np.float64),
    "mean": lambda a: a.mean(),
    "means": lambda a: np.mean(a, axis=-1),
    "max": lambda a: a.max(axis=0),
    "count": lambda a: (a > 1).sum(),
    "any": lambda a: (a > 2).any(axis=1),
    "all": lambda a: (a == a).all(),
    "norm": lambda a: (a * a).sum() ** 0.5,
    "var": lambda a: a.var(),
    "variances": lambda a: np.var(a, axis=1, ddof=1),
    "std": lambda a: a.std(axis=0, dtype=np.float64),
    "integers": lambda a: a.astype(np.int16).var(axis=-1, keepdims=True),
    "complex": lambda a: (a * 1j).std(axis=0),
    "argmax": lambda a: gpuarray.argmax(a),
    "argmin": lambda a: gpuarray.argmin(a, axis=1),
    "ties": lambda a: (a > 1).argmax(axis=0, keepdims=True),
    "nans": lambda a: np.argmin(cumath.log(a), keepdims=True),
}


@pytest.mark.parametrize("name", REDUCTIONS)
@pytest.mark.parametrize("shape", [(70, 33), (3, 1000), (1000, 3)])
def test_a_reduction_has_the_value_without_a_block(name, shape):
    rng = np.random.default_rng(8)
    host = rng.uniform(-3, 3, shape).astype(np.float32)
    a, row = gpuarray.to_gpu(host), gpuarray.to_gpu(host[0].copy())
    for other in (a, row, a.T.copy().T):
        expected = REDUCTIONS[name](a * other + 0.5)
        with pygpu.fused():
            result = REDUCTIONS[name](a * other + 0.5)
        assert (result.shape, result.dtype) == (expected.shape, expected.dtype)
        np.testing.assert_array_equal(result.get(), expected.get())


@pytest.mark.parametrize("shape", [(3, 4), (2, 64, 64)])
@pytest.mark.parametrize("name", ["sum", "prod", "mean", "max", "var"])
def test_a_reduction_of_half_precision_has_the_value_without_a_block(name, shape):
    values = np.random.default_rng(3).normal(size=shape).astype(np.float16)
    x = gpuarray.to_gpu(values)
    with pygpu.fused():
        fused = getattr(x + x, name)(axis=0)
    assert fused.get().tobytes() == getattr(x + x, name)(axis=0).get().tobytes()


def test_a_reduction_stores_no_elements():
    x = gpuarray.to_gpu(np.ones((1000, 1000), np.float32))
    with pygpu.profile() as run, pygpu.fused():
        total = (x * x + 1).sum()
        rows = (x - total / x.size).mean(axis=1)
        spread = (x * x).var()
        first = gpuarray.argmax(x * 2)
        firsts = gpuarray.argmin(x * 3, axis=1)
    assert float(total.get()) == 2_000_000
    assert (rows.get() == -1).all()
    assert float(spread.get()) == first.get() == firsts.get().max() == 0
    names = [row["name"] for row in run.rows if row["kind"] == "operation"]
    extremes = ["maximum float32", "minimum float32"]
    assert names == ["sum float32", "sum float32", "sum float32", *extremes]


def test_a_reduction_on_another_stream_has_the_value_without_a_block():
    stream = driver.Stream()
    a, b = (
        gpuarray.to_gpu(np.ones(shape, np.float32)).on(stream) for shape in [(300, 5), (5, 300)]
    )
    with pygpu.fused():
        # The host combines no values of operands in several orders.
        rows, spread = (a * b.T).sum(axis=0), (a * b.T).var(axis=0)
    assert rows.get().tolist() == [300] * 5
    assert not spread.get().any()


def test_a_reduction_refuses_wrong_axes_in_a_block(x):
    with pygpu.fused():
        y = x + 1
        with pytest.raises(IndexError, match="axis"):
            y.sum(axis=1)
        with pytest.raises(ValueError, match="axis"):
            y.sum(axis=(0, 0))
        with pytest.raises(ValueError, match="no identity"):
            (x[:0] + 1).max()
        with pytest.raises(IndexError, match="axis"):
            gpuarray.argmax(y, axis=1)
        with pytest.raises(ValueError, match="empty sequence"):
            gpuarray.argmax(x[:0] + 1)
        with pytest.raises((TypeError, ValueError), match="dtype"):
            y.var(dtype=np.int32)
        assert float((y + 1).mean().get()) == 4.5


def test_attributes_do_not_compute(x):
    with pygpu.fused():
        y = x[:, None] * x.astype(np.float64) + 1
        assert (y.shape, y.dtype, y.size, y.ndim) == ((4, 4), np.float64, 16, 2)
        assert (y.strides, y.nbytes, len(y)) == ((32, 8), 128, 4)
        x.fill(0)
    np.testing.assert_array_equal(y.get()[0], [2, 3, 4, 5])


def writes():
    def kernel(x):
        module = SourceModule("__global__ void zero(float *x) { x[threadIdx.x] = 0; }")
        module.get_function("zero")(x, block=(4, 1, 1))

    def raw(x):
        driver.memset_d32(x.gpudata, 0, 4)

    def expression(x):
        ElementwiseKernel("float *x", "x[i] = 0")(x)

    def item(x):
        x[...] = 0

    def in_place(x):
        x *= 0

    def view(x):
        x[::2].fill(0)
        x[1::2].fill(0)

    def out(x):
        np.multiply(x, 0, out=x)

    def put(x):
        x[gpuarray.arange(4, dtype=np.int32)] = 0

    return [kernel, raw, expression, item, in_place, view, out, put, lambda x: x.set(x.get() * 0)]


@pytest.mark.parametrize("write", writes())
@pytest.mark.parametrize("is_pending", [False, True])
def test_a_write_comes_after_earlier_operations(x, write, is_pending):
    with pygpu.fused():
        if is_pending:
            x = x * 1
        before = x * 2 + 1
        write(x)
        after = x * 2 + 1
    np.testing.assert_array_equal(before.get(), [3, 5, 7, 9])
    np.testing.assert_array_equal(after.get(), [1] * 4)


def test_an_operand_that_was_computed_first_is_written_later(x):
    with pygpu.fused():
        y = x * 2
        z, w = y + 1, y - 1
        assert y.get()[0] == 2
        y += 1
        y += z * 10
        del y
    np.testing.assert_array_equal(z.get(), [3, 5, 7, 9])
    np.testing.assert_array_equal(w.get(), [1, 3, 5, 7])


def addresses():
    return [
        lambda x: x.ptr,
        lambda x: int(x.gpudata),
        lambda x: x.gpudata.__index__(),
        lambda x: x[1:].gpudata - x.itemsize,
    ]


@pytest.mark.parametrize("address_of", addresses())
@pytest.mark.parametrize("is_early", [False, True])
def test_a_kernel_writes_by_an_address(x, address_of, is_early):
    source = "__global__ void zero(float **x) { x[0][threadIdx.x] = 0; }"
    zero = SourceModule(source).get_function("zero")
    if is_early:
        table = gpuarray.to_gpu(np.array([address_of(x)], np.uint64))
    with pygpu.fused():
        before = x * 2 + 1
        if not is_early:
            table = gpuarray.to_gpu(np.array([address_of(x)], np.uint64))
        zero(table, block=(4, 1, 1))
    np.testing.assert_array_equal(before.get(), [3, 5, 7, 9])
    assert x.get().sum() == 0


def test_another_array_object_writes_the_memory(x):
    other = gpuarray.GPUArray(x.shape, x.dtype, gpudata=x.ptr)
    with pygpu.fused():
        before = x * 2 + 1
        other.fill(0)
    np.testing.assert_array_equal(before.get(), [3, 5, 7, 9])


def test_memory_that_goes_was_read_before(x):
    with pygpu.fused():
        y = x * 2 + 1
        x.gpudata.free()
    np.testing.assert_array_equal(y.get(), [3, 5, 7, 9])


def test_other_code_can_write_exported_memory(x):
    exported = memoryview(np.zeros(4, np.float32))
    capsule = x.__dlpack__()
    with pygpu.fused():
        y = x * 2 + 1
        assert exported is not None
        x.fill(0)
    np.testing.assert_array_equal(y.get(), [3, 5, 7, 9])
    del capsule


def test_an_update_is_computed_with_its_operand(x):
    with pygpu.fused():
        x += x * x + 1
        x -= 1
        x[1:] += x[:-1] * 0 + 100
    np.testing.assert_array_equal(x.get(), [2, 106, 112, 120])


def test_values_are_used_in_the_block(x):
    with pygpu.fused():
        y = x * 2 + 1
        if (y > 8).any():
            y = y - 1
        assert float(y.max().get()) == 8
        assert int(y[0].get()) == 2
        total = (y * y).sum()
    assert float(total.get()) == 4 + 16 + 36 + 64


def test_blocks_nest_and_belong_to_their_thread(x):
    seen = []

    def elsewhere():
        y = x + 1
        seen.append(y.gpudata is not None)

    with pygpu.fused():
        y = x + 1
        with pygpu.fused():
            z = y * 2
        thread = threading.Thread(target=elsewhere)
        thread.start()
        thread.join()
        z = z - y
    np.testing.assert_array_equal(z.get(), [2, 3, 4, 5])
    assert seen == [True]


def test_another_thread_can_use_pending_values(x):
    results = []
    with pygpu.fused():
        y = x * 2 + 1
        threads = [threading.Thread(target=lambda: results.append((y + 1).get())) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert all((result == [4, 6, 8, 10]).all() for result in results)
    assert len(results) == 4


def test_an_exception_leaves_the_block(x):
    with pytest.raises(KeyError), pygpu.fused():  # noqa: PT012 - the array is made in the block
        y = x * 2 + 1
        raise KeyError("mine")
    np.testing.assert_array_equal(y.get(), [3, 5, 7, 9])
    x.fill(0)
    assert (x + 1).get().sum() == 4


def test_bad_operands_are_refused_at_their_line(x):
    with pygpu.fused():
        with pytest.raises(ValueError, match="broadcast"):
            x + gpuarray.zeros(3, np.float32)
        with pytest.raises(TypeError):
            x & x
        with pytest.raises(TypeError):
            x + object()
        with pytest.raises(OverflowError):
            gpuarray.zeros(3, np.int8) + 1000


@pytest.mark.parametrize("is_used", [False, True])
def test_a_late_error_names_the_line(is_used):
    column = gpuarray.zeros((1 << 24, 1), np.int8)
    line = inspect.currentframe().f_lineno + 5
    place = rf"asked for at .*test_fused.py:{line}\)"
    with pytest.raises(MemoryError, match=place), pygpu.fused():  # noqa: PT012 - or at its end
        much = column + 1
        # No device has memory for all elements.
        much = much + column.T
        del column
        if is_used:
            much.get()
    assert much.shape == (1 << 24, 1 << 24)


def test_values_are_computed_beside_one_that_cannot_be(x):
    column = gpuarray.zeros((1 << 24, 1), np.int8)
    with pytest.raises(MemoryError), pygpu.fused():  # noqa: PT012 - the end of the block
        much = column + 1
        much = much + column.T
        y = x * 2 + 1
    x.fill(0)
    np.testing.assert_array_equal(y.get(), [3, 5, 7, 9])


def test_a_file_has_any_name(x):
    names = {"x": x, "pygpu": pygpu}
    exec(compile("with pygpu.fused():\n    y = x * 2", "\udc80.py", "exec"), names)
    np.testing.assert_array_equal(names["y"].get(), [2, 4, 6, 8])


def test_a_block_ends_where_it_was_not_entered(x):
    def block():
        with pygpu.fused():
            yield x * 2

    generator = block()
    y = next(generator)
    thread = threading.Thread(target=generator.close)
    thread.start()
    thread.join()
    z = y + 1
    x.fill(0)
    # The block is still this thread's.
    pygpu.fused().__exit__(None, None, None)
    np.testing.assert_array_equal(z.get(), [3, 5, 7, 9])


def test_pending_values_outlive_their_thread(x):
    made = []

    def enter():
        pygpu.fused().__enter__()
        made.append(x * 2 + 1)

    thread = threading.Thread(target=enter)
    thread.start()
    thread.join()
    x.fill(0)
    np.testing.assert_array_equal(made[0].get(), [3, 5, 7, 9])


def test_another_thread_writes_while_values_are_computed():
    ones = np.ones(100_000)
    for _ in range(20):
        x = gpuarray.to_gpu(ones)
        asked = threading.Event()

        def write(x=x, asked=asked):
            asked.wait()
            x.fill(0)

        thread = threading.Thread(target=write)
        thread.start()
        with pygpu.fused():
            values = [x * 2 + number for number in range(12)]
            asked.set()
        thread.join()
        for number, value in enumerate(values):
            assert (value.get() == 2 + number).all()


def test_pending_arrays_are_collected(x):
    with pygpu.fused():
        y = x * 2 + 1
        reference = weakref.ref(y)
        del y
        gc.collect()
        assert reference() is None


def test_work_is_captured(x):
    stream = driver.Stream()
    a, result = x.on(stream), gpuarray.empty_like(x).on(stream)
    with pygpu.fused():
        result[...] = a * a + 1
        stream.synchronize()
        with stream.capture() as graph:
            result[...] = a * a - 1
    a.fill(3)
    graph.launch(stream)
    stream.synchronize()
    np.testing.assert_array_equal(result.get(), [8] * 4)


def test_a_pending_value_is_assigned(x):
    whole = gpuarray.zeros((2, 4), np.int16)
    with pygpu.fused():
        whole[1] = x * 2.5 + 1
        whole[0, ::2] = (x * x)[1::2]
        whole[:, 1] = gpuarray.zeros(2, np.int16) - 7
        x[1:] = x[:-1] * 2 + 1
    np.testing.assert_array_equal(whole.get(), [[4, -7, 16, 0], [3, -7, 8, 11]])
    np.testing.assert_array_equal(x.get(), [1, 3, 5, 7])


def test_long_chains(x):
    with pygpu.fused():
        y = x
        for _ in range(300):
            y = y + 1
    np.testing.assert_array_equal(y.get(), [301, 302, 303, 304])


def later():
    yield 1


async def awaited():
    return 1


async def both():
    yield 1


@pytest.mark.parametrize("function", [later, awaited, both])
def test_functions_whose_body_runs_later_are_refused(function):
    with pytest.raises(TypeError, match=f"{function.__name__} is .* `with pygpu.fused"):
        pygpu.fuse(function)


CHAIN = """
import numpy as np
import pygpu
import pygpu.autoinit
from pygpu import cumath, gpuarray

x = gpuarray.to_gpu(np.array([1.0, 2.0, 3.0], np.float32))
y = gpuarray.to_gpu(np.array([[1.0], [5.0]], np.float32))
chain = lambda: cumath.sqrt(x * y + 1) - (x < y)
total = lambda: (x * y + 1).sum(axis=1)
target = gpuarray.zeros((2, 3), np.float32)

def stored():
    target[...] = x * y + 1
    return target
"""


@pytest.mark.skipif(BACKEND == "host", reason="the host compiles nothing for arrays")
def test_steps_run_one_by_one_without_a_compiler(tmp_path):
    folder = str(tmp_path / "cache")
    results = "print(*[it().get().tolist() for it in (chain, total, stored)])"
    alone = run_python(CHAIN + results, PYGPU_CACHE_DIR=folder)
    code = (
        CHAIN
        + """
with pygpu.fused():
    results = chain(), total(), stored()
print(*[it.get().tolist() for it in results])
try:
    x - y
except pygpu.driver.Unsupported:
    print("no compiler")
"""
    )
    none = dict.fromkeys(("PYGPU_NVRTC", "PYGPU_HIPRTC"), str(tmp_path / "none.so"))
    fused = run_python(code, PYGPU_CACHE_DIR=folder, **none)
    assert fused.stdout.splitlines() == [*alone.stdout.splitlines(), "no compiler"]
