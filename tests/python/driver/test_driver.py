"""pygpu.driver: devices, contexts, streams, events, memory."""

from __future__ import annotations

import gc
import pickle
import subprocess
import sys

import numpy as np
import pytest
from device import BACKEND, needs_alone, settled_memory
from pairs import numbers

import pygpu
from pygpu import _errors, autoinit, compiler, cuda, driver, gpuarray

# ---- driver and devices -------------------------------------------------------------------------


def test_init_may_be_called_again():
    driver.init()
    driver.init(0)


def test_versions():
    version = driver.get_version()
    assert isinstance(version, tuple)
    assert len(version) == 3
    # Programs check for CUDA versions from 2.0 to 11.
    assert version >= (12, 0, 0)
    assert cuda.cudadrv.driver.get_version() == version[:2]
    assert isinstance(driver.get_driver_version(), int)


@pytest.mark.skipif(BACKEND != "host", reason="kernels see the version of their compiler")
def test_kernels_of_the_host_see_the_same_version():
    text = "__global__ void version(int *out) { *out = CUDART_VERSION; }"
    seen = np.zeros(1, np.int32)
    compiler.SourceModule(text).get_function("version")(driver.Out(seen), block=(1, 1, 1))
    major, minor, _ = driver.get_version()
    assert seen[0] == 1000 * major + 10 * minor


def test_device():
    assert driver.Device.count() >= 1
    device = driver.Device(0)
    assert isinstance(device.name(), str)
    assert device.name()
    major, minor = device.compute_capability()
    assert isinstance(major, int)
    assert isinstance(minor, int)
    assert device.total_memory() > 0
    assert isinstance(device.pci_bus_id(), str)


def test_device_by_bus_id_and_equality():
    device = driver.Device(0)
    same = driver.Device(device.pci_bus_id())
    assert same == device
    assert not same != device  # noqa: SIM202
    assert hash(same) == hash(device)
    assert autoinit.device == autoinit.context.get_device()


def test_device_attributes():
    device = driver.Device(0)
    attributes = device.get_attributes()
    assert isinstance(attributes, dict)
    assert attributes
    kind = driver.device_attribute
    assert attributes[kind.WARP_SIZE] == device.get_attribute(kind.WARP_SIZE)
    assert device.warp_size == device.get_attribute(kind.WARP_SIZE)
    assert device.max_threads_per_block == device.get_attribute(kind.MAX_THREADS_PER_BLOCK)
    assert device.multiprocessor_count >= 1
    # Attributes that programs read before they choose a device or a way to copy.
    for name in ("MAX_PITCH", "KERNEL_EXEC_TIMEOUT", "COMPUTE_MODE", "PCI_DOMAIN_ID"):
        assert attributes[kind[name]] == device.get_attribute(kind[name]) >= 0
    assert attributes[kind.MAX_PITCH] >= 1 << 20
    if BACKEND == "host":
        # NVIDIA's GPUs have all attributes, so programs read them without a check.
        assert attributes.keys() == set(kind.values.values())
        assert attributes[kind.MAXIMUM_TEXTURE2D_LAYERED_LAYERS] == 2048


@pytest.mark.parametrize("ordinal", [99, -1])
def test_no_such_device(ordinal):
    with pytest.raises(driver.LogicError, match=str(ordinal)):
        driver.Device(ordinal)


# ---- contexts -----------------------------------------------------------------------------------


def test_context_stack():
    outer = driver.Context.get_current()
    assert outer is not None
    inner = driver.Device(0).make_context()
    assert driver.Context.get_current() == inner
    assert driver.Context.get_device() == driver.Device(0)
    inner.push()
    assert driver.Context.get_current() == inner
    driver.Context.pop()
    inner.pop()
    assert driver.Context.get_current() == outer
    inner.push()
    np.testing.assert_array_equal((gpuarray.zeros(3) + 1).get(), np.ones(3))
    driver.Context.pop()
    inner.detach()
    assert driver.Context.get_current() == outer


def test_primary_context():
    context = driver.Device(0).retain_primary_context()
    context.push()
    try:
        np.testing.assert_array_equal((gpuarray.zeros(3) + 1).get(), np.ones(3))
        driver.Context.synchronize()
    finally:
        driver.Context.pop()


def test_pop_of_an_empty_stack():
    code = "from pygpu import driver; driver.init(); driver.Context.pop()"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 1
    assert "LogicError" in done.stderr.splitlines()[-1]


# ---- streams and events -------------------------------------------------------------------------


def test_stream():
    stream = driver.Stream()
    stream.synchronize()
    assert stream.is_done() is True
    assert isinstance(stream.handle, int)
    assert driver.Stream(1).is_done()


def test_a_stream_becomes_done():
    stream = driver.Stream()
    a_gpu = gpuarray.zeros(1_000_000)
    for value in range(10):
        a_gpu.fill(value, stream)
    stream.synchronize()
    assert stream.is_done()
    assert float(a_gpu[-1].get()) == 9


def test_a_stream_that_is_dropped_finishes_its_work():
    a = numbers(300_000, "f4", 97)
    for value in range(10):
        a_gpu = gpuarray.to_gpu_async(a, stream=driver.Stream())
        a_gpu.fill(value, driver.Stream())
        b_gpu = a_gpu + 1
        np.testing.assert_array_equal(b_gpu.get(), np.float32(value + 1))


def test_event_timing():
    stream = driver.Stream()
    start, middle, end = driver.Event(), driver.Event(), driver.Event()
    a_gpu = gpuarray.zeros(100_000)
    assert start.record(stream) is start
    a_gpu.fill(1, stream)
    middle.record(stream)
    a_gpu.fill(2, stream)
    assert end.record(stream).synchronize() is end
    assert start.query()
    assert end.query()
    assert middle.time_since(start) >= 0
    assert end.time_since(start) >= middle.time_since(start)
    assert start.time_till(end) == end.time_since(start)


def test_events_that_cannot_be_timed():
    recorded = driver.Event().record()
    recorded.synchronize()
    with pytest.raises(driver.Error):
        recorded.time_since(driver.Event())
    untimed = driver.Event(driver.event_flags.DISABLE_TIMING).record()
    untimed.synchronize()
    with pytest.raises(driver.Error):
        untimed.time_since(recorded)


def test_a_stream_waits_for_an_event_of_another():
    one, other = driver.Stream(), driver.Stream()
    event = driver.Event()
    memory = driver.mem_alloc(8 << 20)
    for value in range(1, 6):
        # The memory is raw, so only the event orders the two streams.
        driver.memset_d8_async(int(memory), value, 8 << 20, one)
        event.record(one)
        other.wait_for_event(event)
        host = driver.pagelocked_empty(8 << 20, np.uint8)
        driver.memcpy_dtoh_async(host, int(memory), other)
        other.synchronize()
        assert (host == value).all()


# ---- memory -------------------------------------------------------------------------------------


@needs_alone
def test_mem_alloc():
    free, total = settled_memory()
    assert 0 < free <= total
    memory = driver.mem_alloc(16 << 20)
    assert int(memory) != 0
    assert driver.mem_get_info()[0] <= free - (16 << 20)
    memory.free()
    assert driver.mem_get_info()[0] == free


@needs_alone
def test_dropping_memory_frees_it():
    free, _ = settled_memory()
    arrays = [gpuarray.zeros(1_000_000) for _ in range(4)]
    view = arrays[0][5:]
    assert driver.mem_get_info()[0] <= free - 32_000_000
    del arrays
    gc.collect()
    assert driver.mem_get_info()[0] <= free - 8_000_000
    del view
    gc.collect()
    driver.Context.synchronize()
    assert driver.mem_get_info()[0] == free


def test_copies_of_raw_memory():
    a = numbers(1000, "f4", 94)
    memory = driver.to_device(a)
    np.testing.assert_array_equal(driver.from_device(memory, a.shape, a.dtype), a)
    np.testing.assert_array_equal(driver.from_device_like(memory, a), a)
    other = driver.mem_alloc_like(a)
    driver.memcpy_dtod(other, memory, a.nbytes)
    b = np.empty_like(a)
    driver.memcpy_dtoh(b, other)
    np.testing.assert_array_equal(b, a)
    driver.memcpy_htod(other, -a)
    driver.memcpy_dtoh(b, other)
    np.testing.assert_array_equal(b, -a)


def test_copies_at_an_offset():
    a = np.arange(10, dtype=np.int32)
    memory = driver.to_device(a)
    driver.memcpy_htod(int(memory) + 8, np.array([-1, -2], np.int32))
    a[2:4] = -1, -2
    np.testing.assert_array_equal(driver.from_device_like(memory, a), a)
    tail = np.empty(3, np.int32)
    driver.memcpy_dtoh(tail, int(memory) + 28)
    np.testing.assert_array_equal(tail, a[7:])


def test_copies_take_any_buffer():
    memory = driver.mem_alloc(4)
    driver.memcpy_htod(memory, b"abcd")
    got = bytearray(4)
    driver.memcpy_dtoh(got, memory)
    assert got == b"abcd"
    driver.memcpy_htod(memory, np.uint32(7))
    number = np.empty((), np.uint32)
    driver.memcpy_dtoh(number, memory)
    assert number == 7


def test_asynchronous_copies():
    stream = driver.Stream()
    a = driver.pagelocked_empty(100_000, np.float64)
    a[:] = numbers(100_000, "f8", 95)
    memory, other = driver.mem_alloc(a.nbytes), driver.mem_alloc(a.nbytes)
    b = driver.pagelocked_zeros(a.shape, a.dtype)
    driver.memcpy_htod_async(memory, a, stream)
    driver.memcpy_dtod_async(other, memory, a.nbytes, stream)
    driver.memcpy_dtoh_async(b, other, stream)
    stream.synchronize()
    np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize(("bits", "value"), [(8, 0xA5), (16, 0xBEEF), (32, 0xDEADBEEF)])
def test_memset(bits, value):
    dtype = np.dtype(f"u{bits // 8}")
    memory = driver.to_device(np.zeros(100, dtype))
    getattr(driver, f"memset_d{bits}")(int(memory) + 10 * dtype.itemsize, value, 50)
    expected = np.zeros(100, dtype)
    expected[10:60] = value
    np.testing.assert_array_equal(driver.from_device(memory, 100, dtype), expected)
    stream = driver.Stream()
    getattr(driver, f"memset_d{bits}_async")(memory, 0, 100, stream)
    stream.synchronize()
    np.testing.assert_array_equal(driver.from_device(memory, 100, dtype), np.zeros(100, dtype))


@pytest.mark.parametrize("bits", [8, 16, 32])
def test_pitched_memory(bits):
    dtype = np.dtype(f"u{bits // 8}")
    width, height = 10 * dtype.itemsize, 5
    memory, pitch = driver.mem_alloc_pitch(width, height, 4)
    assert pitch >= width
    driver.memset_d8(memory, 0, pitch * height)
    getattr(driver, f"memset_d2d{bits}")(memory, pitch, 7, 9, height)
    rows = driver.from_device(memory, (height, pitch // dtype.itemsize), dtype)
    expected = np.zeros_like(rows)
    expected[:, :9] = 7
    np.testing.assert_array_equal(rows, expected)


@pytest.mark.parametrize("order", ["C", "F"])
def test_aligned_host_memory(order):
    a = driver.aligned_zeros((3, 5), np.float64, order=order, alignment=1024)
    assert a.ctypes.data % 1024 == 0
    assert a.flags.f_contiguous == (order == "F")
    np.testing.assert_array_equal(a, np.zeros((3, 5)))
    for make in (driver.aligned_empty_like, driver.aligned_zeros_like):
        assert make(a).strides == a.strides
    assert driver.aligned_empty(7, np.int8).ctypes.data % 4096 == 0


@pytest.mark.parametrize("make", [driver.aligned_empty, driver.aligned_zeros])
def test_shapes_of_aligned_memory(make):
    assert make((), "i4").shape == ()
    for shape in (-1, (-1,), (2, -3), (-1, -1)):
        with pytest.raises(ValueError, match="shape is .*negative"):
            make(shape, "f4")
    with pytest.raises(MemoryError, match="shape"):
        make((2**62, 4), "f4")
    with pytest.raises(TypeError, match="shape is 'a'"):
        make("a", "f4")


# ---- page-locked memory -------------------------------------------------------------------------


@pytest.mark.parametrize("order", ["C", "F"])
def test_pagelocked(order):
    a = driver.pagelocked_empty((3, 4), np.float32, order=order)
    assert isinstance(a, np.ndarray)
    assert (a.shape, a.dtype) == ((3, 4), np.float32)
    assert a.flags.c_contiguous == (order == "C")
    assert a.flags.f_contiguous == (order == "F")
    assert a.flags.writeable
    assert isinstance(a.base, driver.PagelockedHostAllocation)
    zeros = driver.pagelocked_zeros((3, 4), np.float32, order=order)
    np.testing.assert_array_equal(zeros, np.zeros((3, 4)))
    for make in (driver.pagelocked_empty_like, driver.pagelocked_zeros_like):
        made = make(a)
        assert (made.shape, made.dtype, made.strides) == (a.shape, a.dtype, a.strides)


def test_pagelocked_memory_outlives_its_name():
    a = driver.pagelocked_zeros(1000, np.int32)
    part = a[10:20]
    del a
    gc.collect()
    part += 1
    assert part.sum() == 10


def test_registered_memory():
    a = np.arange(4096, dtype=np.float64)
    registered = driver.register_host_memory(a)
    assert np.shares_memory(registered, a)
    assert isinstance(registered.base, driver.RegisteredHostMemory)
    a_gpu = gpuarray.zeros(4096)
    a_gpu.set(registered)
    np.testing.assert_array_equal(a_gpu.get(), a)
    assert a_gpu.get(registered) is registered
    registered.base.unregister()


# ---- exceptions ---------------------------------------------------------------------------------


def test_exception_classes():
    for name in ("MemoryError", "LogicError", "LaunchError", "RuntimeError", "CompileError"):
        assert issubclass(getattr(driver, name), driver.Error)
    assert issubclass(driver.MemoryError, MemoryError)


def test_code_that_is_none_is_refused_as_pycuda_does():
    with pytest.raises(driver.LogicError):
        driver.module_from_buffer(b"this is no code")
    with pytest.raises(driver.LogicError):
        driver.module_from_buffer(b"\x7fELF" + bytes(100))
    for code in (200, 218, 222, 223, 300, 302, 303):
        with pytest.raises(driver.LogicError) as raised:
            pygpu.Status(code).raise_for_status()
        assert isinstance(raised.value, driver.CompileError)
    with pytest.raises(driver.RuntimeError) as raised:
        pygpu.Status(209).raise_for_status()
    assert isinstance(raised.value, driver.CompileError)
    with pytest.raises(driver.CompileError) as raised:
        compiler.compile("no C")
    assert not isinstance(raised.value, driver.LogicError)


def test_exceptions_pass_between_processes():
    classes = [value for value in vars(_errors).values() if isinstance(value, type)]
    for cls in classes:
        if issubclass(cls, Exception):
            # Libraries that pickle exceptions with their attributes, such as tblib, create them
            # like this.
            assert type(cls.__new__(cls)) is cls
    with pytest.raises(driver.MemoryError) as raised:
        driver.mem_alloc(1 << 60)
    found = pickle.loads(pickle.dumps(raised.value))
    assert type(found) is driver.MemoryError
    assert (str(found), found.__dict__) == (str(raised.value), raised.value.__dict__)


def test_a_number_with_a_fraction_is_no_address():
    with pytest.raises(TypeError, match="dest"):
        driver.memcpy_htod(2.5, np.zeros(1))


def test_a_registered_array_knows_the_original():
    original = np.arange(4.0)
    registered = driver.register_host_memory(original)
    assert registered.base.base is original
    registered[0] = 7
    assert original[0] == 7


@pytest.mark.parametrize("value", [3, None, "e", driver.Event])
def test_what_is_no_event_is_named(value):
    event, stream = driver.Event(), driver.Stream()
    for call in (stream.wait_for_event, event.time_since, event.time_till):
        with pytest.raises(TypeError, match=rf"event is of type {type(value).__name__}; an Event"):
            call(value)
