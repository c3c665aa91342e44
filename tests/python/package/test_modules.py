"""The smaller modules: curandom, tools, characterize, compiler, autoinit, and vector types."""

from __future__ import annotations

import numpy as np
import pytest
from pairs import check
from processes import run_python

from pygpu import (
    autoinit,
    characterize,
    choose_backend,
    compiler,
    curandom,
    driver,
    gpuarray,
    tools,
)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_rand_floats(dtype):
    a = curandom.rand((100, 200), dtype).get()
    assert (a.shape, a.dtype) == ((100, 200), dtype)
    assert (a >= 0).all()
    assert (a < 1).all()
    assert abs(a.mean() - 0.5) < 0.02
    assert not np.array_equal(a, curandom.rand((100, 200), dtype).get())


@pytest.mark.parametrize("dtype", [np.int32, np.uint32])
def test_rand_integers(dtype):
    a = curandom.rand(20_000, dtype, stream=driver.Stream()).get()
    assert a.dtype == dtype
    limits = np.iinfo(dtype)
    span = float(limits.max) - float(limits.min)
    assert abs((a.astype("f8") - limits.min).mean() / span - 0.5) < 0.02


def test_rand_of_another_type():
    with pytest.raises(NotImplementedError, match="complex64"):
        curandom.rand(3, np.complex64)


def test_context_dependent_memoize():
    calls = []

    @tools.context_dependent_memoize
    def square(x, power=2):
        calls.append(x)
        return x**power

    assert [square(3), square(3), square(3, power=3), square(4)] == [9, 9, 27, 16]
    assert calls == [3, 3, 4]
    context = driver.Device(0).make_context()
    try:
        assert square(3) == 9
    finally:
        context.pop()
    assert calls == [3, 3, 4, 3]
    tools.clear_context_caches()
    assert square(3) == 9
    assert calls == [3, 3, 4, 3, 3]


def test_bitlog2():
    assert [tools.bitlog2(n) for n in (0, 1, 2, 3, 4, 1023, 1024)] == [0, 0, 1, 1, 2, 9, 10]
    assert [tools.bitlog2(n) for n in (0xAFFE, 0xCC3AFFE, 2**62)] == [15, 27, 62]


def test_a_context_around_a_test():
    outside = driver.Context.get_current()

    @tools.mark_cuda_test
    def body():
        return driver.Context.get_current()

    inside = body()
    assert inside is not None
    assert inside != outside
    assert driver.Context.get_current() == outside
    fixture = tools.init_cuda_context_fixture()
    next(fixture)
    assert driver.Context.get_current() != outside
    assert next(fixture, "end") == "end"
    assert driver.Context.get_current() == outside


def test_the_device_that_the_environment_names():
    run_python("import pygpu.autoinit as a; assert a.device.ordinal == 0", CUDA_DEVICE="0")
    for name in ("99", "first"):
        done = run_python("import pygpu.autoinit", check=False, CUDA_DEVICE=name)
        assert done.returncode == 1
        assert name in done.stderr.splitlines()[-1]


def test_autoprimaryctx():
    run_python(
        """
        import numpy as np
        import pygpu.autoprimaryctx as auto
        from pygpu import driver, gpuarray
        assert auto.device == driver.Device(0)
        assert driver.Context.get_current() == auto.context
        assert (gpuarray.ones(3) + 1).get().tolist() == [2, 2, 2]
        """
    )


def test_what_the_device_can_do():
    assert characterize.platform_bits() == 8 * np.dtype(np.uintp).itemsize
    assert characterize.has_double_support()
    assert characterize.has_stack()
    assert autoinit.context is not None


@pytest.mark.skipif(choose_backend() != "host", reason="about the host")
def test_what_only_a_gpu_has_is_refused_by_name():
    source = "__global__ void f() {}"
    for call in (
        lambda: compiler.compile(source, target="ptx"),
        lambda: compiler.compile(source, target="fatbin"),
        driver.Context.get_device().reset,
        lambda: driver.Stream.from_handle(1234567),
    ):
        with pytest.raises(NotImplementedError) as caught:
            call()
        assert isinstance(caught.value, driver.Unsupported)
        assert str(caught.value)


class Device:
    """The attributes that `DeviceData` reads from a device of compute capability 9.0."""

    max_threads_per_block = 1024
    warp_size = 32
    max_registers_per_block = 65536
    max_shared_memory_per_block = 49152

    def compute_capability(self):
        return (9, 0)


def test_occupancy():
    # The values of PyCUDA 2026.1 for the same attributes.
    data = tools.DeviceData(Device())
    assert (data.warps_per_mp, data.thread_blocks_per_mp) == (64, 8)
    assert (data.align(100), data.align(100, 8), data.align_words(8)) == (128, 128, 16)
    assert (data.align_dtype(20, 8), data.coalesce(17)) == (32, 32)
    assert data.make_valid_tex_channel_count(3) == 4
    record = tools.OccupancyRecord(data, 256, 16384, 32)
    assert (record.tb_per_mp, record.limited_by) == (3, "smem")
    assert (record.warps_per_mp, record.occupancy) == (24, 0.375)
    assert tools.OccupancyRecord(data, 128).limited_by == "device"
    for arguments in ((2048,), (1024, 0, 100), (32, 50000)):
        with pytest.raises(ValueError, match="too m"):
            tools.OccupancyRecord(data, *arguments)


def test_vector_types():
    vec = gpuarray.vec
    assert vec.float3 == np.dtype([("x", "f4"), ("y", "f4"), ("z", "f4")])
    assert vec.make_int2(1, 2).tolist() == vec.make_int2(y=2, x=1).tolist() == (1, 2)
    for wrong in (lambda: vec.make_int2(1), lambda: vec.make_int2(1, 2, 3)):
        with pytest.raises(TypeError, match="make_int2 takes the numbers x, y"):
            wrong()
    for named in ({"x": 1}, {"y": 1, "z": 2}):
        with pytest.raises(TypeError, match="make_int2 takes the numbers x, y"):
            vec.make_int2(1, **named)
    a_gpu = gpuarray.empty(100, vec.float3)
    a_gpu.fill(vec.make_float3(1, 2, 3))
    expected = np.array([(1, 2, 3)] * 100, vec.float3)
    np.testing.assert_array_equal(a_gpu.get(), expected)
    check(a_gpu[::7].copy(), expected[::7])
    np.testing.assert_array_equal(gpuarray.to_gpu(expected).get(), expected)
