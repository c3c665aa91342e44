"""Kernels called with their arguments, as `Function.__call__` accepts them."""

from __future__ import annotations

import gc
import sys

import numpy as np
import pytest
from device import BACKEND, DEVICE, needs_parameters

from pygpu import compiler, driver, gpuarray
from pygpu.compiler import SourceModule

SOURCE = """
struct Pair { short first; double second; };

__global__ void axpy(float a, const float *x, float *y, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = a * x[i] + y[i];
}

__global__ void multiply(float *dest, float *a, float *b)
{
    const int i = threadIdx.x;
    dest[i] = a[i] * b[i];
}

__global__ void place(int *out)
{
    int block = blockIdx.x + gridDim.x * (blockIdx.y + gridDim.y * blockIdx.z);
    int thread = threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z);
    out[block * blockDim.x * blockDim.y * blockDim.z + thread] = block * 1000 + thread;
}

__global__ void take_pair(Pair pair, double *out) { out[0] = pair.first; out[1] = pair.second; }

__global__ void reverse(int *data, int n)
{
    extern __shared__ int part[];
    part[threadIdx.x] = data[threadIdx.x];
    __syncthreads();
    data[threadIdx.x] = part[n - 1 - threadIdx.x];
}

__global__ void nothing() {}
"""


@pytest.fixture(scope="module")
def module():
    return SourceModule(SOURCE)


@pytest.fixture(scope="module")
def axpy(module):
    return module.get_function("axpy")


def numbers(n: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(n).astype(np.float32)


# ---- computed results ---------------------------------------------------------------------------


def test_arrays_and_scalars(axpy):
    x, y = numbers(1000), numbers(1000, 1)
    x_gpu, y_gpu = gpuarray.to_gpu(x), gpuarray.to_gpu(y)
    result = axpy(np.float32(2), x_gpu, y_gpu, np.int32(1000), block=(128, 1, 1), grid=(8, 1))
    assert result is None
    np.testing.assert_array_equal(y_gpu.get(), np.float32(2) * x + y)
    np.testing.assert_array_equal(x_gpu.get(), x)


def test_host_arrays_are_copied(module, axpy):
    multiply = module.get_function("multiply")
    a, b = numbers(400), numbers(400, 1)
    dest = np.zeros_like(a)
    multiply(driver.Out(dest), driver.In(a), driver.In(b), block=(400, 1, 1))
    np.testing.assert_array_equal(dest, a * b)
    total = b.copy()
    x_gpu = gpuarray.to_gpu(a)
    arguments = (np.float32(3), x_gpu, driver.InOut(total), np.int32(400))
    axpy(*arguments, block=(400, 1, 1), stream=driver.Stream())
    # A multiplication and an addition may be rounded once or twice.
    np.testing.assert_allclose(total, np.float32(3) * a + b, rtol=1e-5, atol=1e-6)


def test_allocations_and_addresses(module):
    multiply = module.get_function("multiply")
    a, b = numbers(400), numbers(400, 1)
    a_gpu, b_gpu = driver.to_device(a), driver.to_device(b)
    dest = np.zeros_like(a)
    multiply(driver.Out(dest), a_gpu, b_gpu, block=(400, 1, 1))
    np.testing.assert_array_equal(dest, a * b)
    shifted = np.intp(a_gpu) + a.itemsize
    multiply(driver.Out(dest), shifted, b_gpu, block=(399, 1, 1))
    np.testing.assert_array_equal(dest[:-1], a[1:] * b[:-1])


def test_a_view_starts_at_its_first_element(axpy):
    x, y = numbers(100), numbers(100, 1)
    x_gpu, y_gpu = gpuarray.to_gpu(x), gpuarray.to_gpu(y)
    axpy(np.float32(1), x_gpu[10:], y_gpu[20:], np.int32(50), block=(64, 1, 1))
    y[20:70] += x[10:60]
    np.testing.assert_array_equal(y_gpu.get(), y)


@pytest.mark.parametrize("kind", [tuple, list])
@pytest.mark.parametrize(
    ("grid", "block"), [((3,), (4,)), ((2, 3), (4, 2)), ((2, 1, 3), (2, 3, 4)), ((1, 1), (5, 1, 1))]
)
def test_extents(module, grid, block, kind):
    blocks, threads = int(np.prod(grid)), int(np.prod(block))
    out = np.full(blocks * threads, -1, np.int32)
    module.get_function("place")(driver.InOut(out), grid=kind(grid), block=kind(block))
    expected = np.arange(blocks)[:, None] * 1000 + np.arange(threads)
    np.testing.assert_array_equal(out, expected.ravel())


def test_the_grid_is_one_block_by_default(module):
    out = np.full(8, -1, np.int32)
    module.get_function("place")(driver.InOut(out), block=(4, 1, 1))
    np.testing.assert_array_equal(out, [0, 1, 2, 3, -1, -1, -1, -1])


def test_numpy_numbers_as_extents(module):
    out = np.full(6, -1, np.int32)
    extents = {"grid": (np.int64(2), 1), "block": (np.uint8(3), 1, 1)}
    module.get_function("place")(driver.InOut(out), **extents)
    np.testing.assert_array_equal(out, [0, 1, 2, 1000, 1001, 1002])


def test_shared_memory(module):
    data = np.arange(64, dtype=np.int32)
    reverse = module.get_function("reverse")
    reverse(driver.InOut(data), np.int32(64), block=(64, 1, 1), shared=64 * 4)
    np.testing.assert_array_equal(data, np.arange(64)[::-1])


def test_much_shared_memory(module):
    data = np.arange(64, dtype=np.int32)
    reverse = module.get_function("reverse")
    most = DEVICE.get_attribute(driver.device_attribute.MAX_SHARED_MEMORY_PER_BLOCK_OPTIN)
    reverse(driver.InOut(data), np.int32(64), block=(64, 1, 1), shared=most)
    np.testing.assert_array_equal(data, np.arange(64)[::-1])


def test_structures(module):
    dtype = np.dtype([("first", np.int16), ("second", np.float64)], align=True)
    record = np.zeros(1, dtype)
    record["first"], record["second"] = -7, 2.5
    take_pair = module.get_function("take_pair")
    for argument in (record[0], record, record[0].tobytes(), record.reshape(())):
        out = np.zeros(2)
        take_pair(argument, driver.Out(out), block=(1, 1, 1))
        np.testing.assert_array_equal(out, [-7, 2.5])


def test_a_kernel_without_arguments(module):
    module.get_function("nothing")(block=(32, 1, 1), grid=(2, 2))


def test_time_kernel(axpy):
    x = gpuarray.zeros(100, np.float32)
    arguments = (np.float32(2), x, x, np.int32(100))
    seconds = axpy(*arguments, block=(100, 1, 1), time_kernel=True)
    assert isinstance(seconds, float)
    assert 0 < seconds < 60


@pytest.mark.parametrize("stream", [None, 0, 1])
def test_streams_by_number(axpy, stream):
    y = numbers(100)
    y_gpu = gpuarray.to_gpu(y)
    axpy(np.float32(1), y_gpu, y_gpu, np.int32(100), block=(100, 1, 1), stream=stream)
    np.testing.assert_array_equal(y_gpu.get(), y + y)


def test_arrays_dropped_at_once(axpy):
    y_gpu = gpuarray.zeros(1000, np.float32)
    stream = driver.Stream()
    for value in range(1, 21):
        x_gpu = gpuarray.full(1000, value, np.float32)
        arguments = (np.float32(1), x_gpu, y_gpu, np.int32(1000))
        axpy(*arguments, block=(100, 1, 1), grid=(10, 1), stream=stream)
        del x_gpu, arguments
    gc.collect()
    np.testing.assert_array_equal(y_gpu.get(), np.full(1000, 210, np.float32))


# ---- a program's own handlers -------------------------------------------------------------------


def test_a_handler_of_the_program(module):
    calls = []

    class Noted(driver.InOut):
        def pre_call(self, stream):
            calls.append(("pre", stream))
            super().pre_call(stream)

        def post_call(self, stream):
            calls.append(("post", stream))
            super().post_call(stream)

    a = np.ones(4, np.float32)
    stream = driver.Stream()
    multiply = module.get_function("multiply")
    multiply(Noted(a), driver.In(a + 1), driver.In(a + 2), block=(4, 1, 1), stream=stream)
    np.testing.assert_array_equal(a, np.full(4, 6, np.float32))
    assert calls == [("pre", stream), ("post", stream)]


def test_a_handler_is_used_again(module):
    multiply = module.get_function("multiply")
    a, b = numbers(16), numbers(16, 1)
    dest = np.zeros_like(a)
    out, left, right = driver.Out(dest), driver.In(a), driver.In(b)
    for _ in range(3):
        dest[:] = 0
        multiply(out, left, right, block=(16, 1, 1))
        np.testing.assert_array_equal(dest, a * b)
    assert isinstance(left.get_device_alloc(), driver.DeviceAllocation)


def test_handlers_run_no_python(module):
    """Neither their copies nor their arrays call back into the package."""
    multiply, ran = module.get_function("multiply"), []
    dest, a = np.zeros(4, np.float32), numbers(4)
    arguments = driver.Out(dest), driver.In(a), driver.InOut(a + 1)
    sys.setprofile(lambda frame, event, _: event == "call" and ran.append(frame.f_code.co_name))
    try:
        multiply(*arguments, block=(4, 1, 1))
    finally:
        sys.setprofile(None)
    assert ran == []
    np.testing.assert_array_equal(dest, a * (a + 1))


def test_arguments_are_asked_once(module):
    asked = []

    class Other:
        def __init__(self, array):
            self.array = array

        def __getattr__(self, name):
            asked.append(name)
            return getattr(self.array, name)

    class Own(driver.ArgumentHandler):
        def __init__(self, memory, label):
            super().__init__(None)
            self.memory, self.label = memory, label

        def get_device_alloc(self):
            asked.append(self.label)
            return self.memory

    memory = gpuarray.to_gpu(numbers(4))
    other = Other(gpuarray.zeros(4, np.float32))
    own = Own(int(memory.gpudata), label="own")
    module.get_function("multiply")(other, own, driver.In(numbers(4, 1)), block=(4, 1, 1))
    np.testing.assert_array_equal(other.array.get(), numbers(4) * numbers(4, 1))
    assert asked == ["__cuda_array_interface__", "own"]


def test_classes_of_handlers(module):
    class Labelled(driver.Out):
        def __init__(self, *, label, size):
            super().__init__(np.ones(size, np.float32))
            self.label = label

    assert driver.InOut.__mro__[1:4] == (driver.In, driver.Out, driver.ArgumentHandler)
    handler, ones = Labelled(label="result", size=4), np.ones(4, np.float32)
    module.get_function("multiply")(handler, driver.In(ones + 1), driver.In(ones), block=(4, 1, 1))
    assert (handler.label, handler.array.tolist()) == ("result", [2] * 4)
    for wrong in (lambda: driver.In(), lambda: driver.Out(ones, ones)):
        with pytest.raises(TypeError, match="argument"):
            wrong()
    handler.array = ones
    handler.post_call(None)
    assert ones.tolist() == [2] * 4
    unfinished = type("Unfinished", (driver.In,), {"__init__": lambda self: None})()
    with pytest.raises(AttributeError, match="array"):
        unfinished.pre_call(None)


def test_a_handler_of_no_array(module):
    multiply = module.get_function("multiply")
    with pytest.raises(TypeError, match="could not determine array length"):
        multiply(driver.Out(3), driver.In(3), driver.In(3), block=(1, 1, 1))


# ---- refused calls ------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def code():
    """Returns the kernel from compiled code, which does not declare types."""
    return driver.module_from_buffer(compiler.compile(SOURCE)).get_function("axpy")


@pytest.mark.parametrize("value", [1, 2.5, True, "text", None, object(), [1], np.str_("x")])
def test_types_that_kernels_do_not_take(axpy, code, value):
    y = gpuarray.zeros(4, np.float32)
    for function in (code,) if isinstance(value, int | float) else (axpy, code):
        with pytest.raises(TypeError, match=r"invalid type on parameter #3 \(0-based\)"):
            function(np.float32(1), y, y, value, block=(4, 1, 1))


@needs_parameters
def test_number_and_sizes_of_arguments(code):
    y = gpuarray.zeros(4, np.float32)
    block = {"block": (4, 1, 1)}
    with pytest.raises(driver.LogicError, match=r"4 arguments.* 3 "):
        code(np.float32(1), y, y, **block)
    with pytest.raises(driver.LogicError, match="argument 0.* 8 bytes.* 4"):
        code(np.float64(1), y, y, np.int32(4), **block)
    with pytest.raises(driver.LogicError, match="argument 3.* 8 bytes.* 4"):
        code(np.float32(1), y, y, np.int64(4), **block)
    np.testing.assert_array_equal(y.get(), np.zeros(4))


def test_keywords(axpy):
    y = gpuarray.zeros(4, np.float32)
    arguments = (np.float32(1), y, y, np.int32(4))
    with pytest.raises(ValueError, match="must specify block size"):
        axpy(*arguments)
    with pytest.raises(ValueError, match="extra keyword arguments: blocks"):
        axpy(*arguments, block=(1, 1, 1), blocks=3)
    with pytest.raises(AssertionError, match="asynchronous"):
        axpy(*arguments, block=(1, 1, 1), stream=driver.Stream(), time_kernel=True)
    with pytest.raises(TypeError, match="an entry of texrefs is of type object"):
        axpy(*arguments, block=(1, 1, 1), texrefs=[object()])
    with pytest.raises(TypeError, match="stream"):
        axpy(*arguments, block=(1, 1, 1), stream="one")


@pytest.mark.parametrize(
    ("extents", "error", "text"),
    [
        ({"block": 4}, TypeError, "block is of type int"),
        ({"block": ()}, ValueError, "block has length 0"),
        ({"block": (1, 1, 1, 1)}, ValueError, "block has length 4"),
        ({"block": (2.5, 1, 1)}, TypeError, "block has the entry 2.5"),
        ({"block": (-1, 1, 1)}, OverflowError, "block has the entry -1"),
        ({"block": (1, 1, 1), "grid": (2**32, 1)}, OverflowError, "grid has the entry 4294967296"),
        ({"block": (2000, 1, 1)}, driver.Error, "2000"),
        ({"block": (0, 1, 1)}, driver.Error, "0"),
        ({"block": (1, 1, 1), "grid": (0, 1)}, driver.Error, "0"),
        ({"block": (1, 1, 1), "shared": 1 << 30}, driver.Error, str(1 << 30)),
    ],
)
def test_extents_that_are_refused(module, extents, error, text):
    with pytest.raises(error, match=text):
        module.get_function("nothing")(**extents)
    driver.Context.synchronize()


def test_freed_memory(module):
    memory = driver.mem_alloc(64)
    memory.free()
    with pytest.raises(driver.LogicError, match="freed"):
        module.get_function("place")(memory, block=(4, 1, 1))
    with pytest.raises(driver.LogicError, match="freed"):
        memory.free()


# ---- attributes of functions --------------------------------------------------------------------


def test_attributes(axpy):
    kind = driver.function_attribute
    assert axpy.num_regs == axpy.get_attribute(kind.NUM_REGS) > 0
    assert axpy.max_threads_per_block == axpy.get_attribute(kind.MAX_THREADS_PER_BLOCK) >= 32
    for name in ("shared_size_bytes", "local_size_bytes", "const_size_bytes"):
        assert getattr(axpy, name) >= 0
    assert axpy.ptx_version > 0
    assert axpy.binary_version > 0
    with pytest.raises(AttributeError, match="no_such_thing"):
        axpy.no_such_thing  # noqa: B018
    assert not hasattr(axpy, "_private")
    assert axpy.name == "axpy"
    assert "axpy" in repr(axpy)
    assert axpy.active_blocks(128) >= 1


def test_settings(axpy):
    kind = driver.function_attribute
    axpy.set_attribute(kind.MAX_DYNAMIC_SHARED_SIZE_BYTES, 60_000)
    granted = axpy.get_attribute(kind.MAX_DYNAMIC_SHARED_SIZE_BYTES)
    assert granted == 60_000 if BACKEND == "cuda" else granted >= 60_000
    with pytest.raises(driver.LogicError):
        axpy.set_attribute(kind.MAX_DYNAMIC_SHARED_SIZE_BYTES, 1 << 30)
    axpy.set_cache_config(driver.func_cache.PREFER_L1)
    if BACKEND == "cuda":  # elsewhere it is a hint without effect
        assert axpy.get_attribute(kind.PREFERRED_SHARED_MEMORY_CARVEOUT) == 0
    axpy.set_cache_config(driver.func_cache.PREFER_NONE)
    axpy.set_shared_config(driver.shared_config.EIGHT_BYTE_BANK_SIZE)
    for call in (axpy.set_cache_config, axpy.set_shared_config):
        with pytest.raises(ValueError, match="7"):
            call(7)


@pytest.mark.parametrize("stream", [None, "a stream"])
def test_what_a_kernel_leaves_of_an_out_array_is_zero(stream):
    source = "__global__ void two(int *x, int n) { if (threadIdx.x < n) x[threadIdx.x] = 2; }"
    two = SourceModule(source).get_function("two")
    stream = stream and driver.Stream()
    for count in (3, 1, 2, 0):
        # The freed block is reused with its old bytes.
        used = gpuarray.to_gpu(np.full(4, 77, np.int32))
        driver.Context.synchronize()
        del used
        x = np.full(4, 9, np.int32)
        two(driver.Out(x), np.int32(count), block=(4, 1, 1), stream=stream)
        assert x.tolist() == [2] * count + [0] * (4 - count)
