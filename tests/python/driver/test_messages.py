"""The texts of the driver's objects and errors."""

from __future__ import annotations

import inspect

import numpy as np
import pytest
from processes import run_python

from pygpu import driver, gpuarray, tools


class Odd:
    pass


def objects():
    memory = driver.mem_alloc(64)
    pool, host_pool = tools.DeviceMemoryPool(), tools.PageLockedMemoryPool()
    yield "DeviceAllocation", memory
    yield "PooledDeviceAllocation", pool.allocate(64)
    yield "DeviceMemoryPool", pool
    yield "PageLockedMemoryPool", host_pool
    yield "PooledHostAllocation", host_pool.allocate(8, np.uint8).base
    yield "PagelockedHostAllocation", driver.pagelocked_empty(8, np.uint8).base
    yield "RegisteredHostMemory", driver.register_host_memory(np.zeros(4096, np.uint8)).base
    yield "PageLockedAllocator", tools.PageLockedAllocator()
    yield "Stream", driver.Stream()
    yield "Event", driver.Event()
    yield "Linker", driver.Linker()
    yield "Device", driver.Device(0)
    yield "Context", driver.Device(0).retain_primary_context()


def test_objects_say_what_they_are():
    for name, it in objects():
        text = repr(it)
        assert text.startswith(f"<{name}"), text
        assert text.endswith(">"), text
        assert f"{name} object at" not in text
        assert "\n" not in text


def test_a_pool_says_what_it_has():
    pool = tools.DeviceMemoryPool()
    held = [pool.allocate(100) for _ in range(3)]
    del held[0]
    text = repr(pool)
    assert "2 blocks in use (200 bytes)" in text
    assert "1 kept" in text


def members(cls):
    for name in dir(cls):
        if not name.startswith("_"):
            yield name, inspect.getattr_static(cls, name), getattr(cls, name)


@pytest.mark.parametrize("module", [driver, tools], ids=["driver", "tools"])
def test_everything_is_documented_with_its_arguments(module):
    missing = []
    for name in module.__all__:
        it = getattr(module, name)
        if inspect.isclass(it):
            assert it.__doc__, name
            if issubclass(it, BaseException) or hasattr(it, "__members__"):
                continue
            for member, static, value in members(it):
                if not static.__doc__:
                    missing.append(f"{name}.{member}: documentation")
                if callable(value) and not has_signature(value):
                    missing.append(f"{name}.{member}: arguments")
        elif callable(it):
            if not it.__doc__:
                missing.append(f"{name}: documentation")
            if not has_signature(it):
                missing.append(f"{name}: arguments")
    assert not missing


def has_signature(it):
    try:
        signature = inspect.signature(it)
    except (ValueError, TypeError):
        return False
    return "_args" not in signature.parameters


@pytest.mark.parametrize("size", [2**63, 2**64, 2**100])
def test_a_size_that_is_too_large_is_not_called_too_small(size):
    for use in (
        lambda: driver.mem_alloc(size),
        lambda: driver.mem_alloc_pitch(size, 1, 4),
        lambda: driver.mem_alloc_pitch(1, size, 4),
    ):
        with pytest.raises(driver.LogicError) as caught:
            use()
        text = str(caught.value)
        assert str(size) in text
        assert str(2**63 - 1) in text
        assert "above 0" not in text


@pytest.mark.parametrize("use", [gpuarray.empty, gpuarray.GPUArray, driver.pagelocked_empty])
def test_a_shape_that_is_too_large_is_told_with_the_elements_size(use):
    with pytest.raises((driver.Error, ValueError), match="4-byte elements"):
        use((2**40, 2**40), np.float32)


def test_memory_that_the_system_refuses_is_not_said_to_be_there():
    done = run_python(
        """
        import resource
        import pygpu.autoinit
        from pygpu import driver
        resource.setrlimit(resource.RLIMIT_AS, (4 << 30, 4 << 30))
        try:
            driver.mem_alloc(8 << 30)
        except MemoryError as error:
            print(error)
        """,
        PYGPU_BACKEND="host",
        PYGPU_HOST_MEMORY="64G",
    )
    assert "8589934592 bytes" in done.stdout
    assert "the system" in done.stdout
    assert "available" not in done.stdout


memory = driver.mem_alloc(64)
host = np.zeros(4, np.float32)


@pytest.mark.parametrize(
    ("name", "use"),
    {
        "dest": lambda bad: driver.memcpy_htod(bad, host),
        "src": lambda bad: driver.memcpy_htod(memory, bad),
        "devptr": lambda bad: driver.mem_get_address_range(bad),
        "bytes": driver.mem_alloc,
        "width": lambda bad: driver.mem_alloc_pitch(bad, 1, 4),
        "data": lambda bad: driver.memset_d8(memory, bad, 4),
        "count": lambda bad: driver.memset_d32(memory, 0, bad),
        "pitch": lambda bad: driver.memset_d2d8(memory, bad, 0, 4, 4),
        "height": lambda bad: driver.memset_d2d16(memory, 16, 0, 4, bad),
        "dest_context": lambda bad: driver.memcpy_peer(memory, memory, 4, bad),
        "stream": lambda bad: driver.memcpy_htod_async(memory, host, bad),
        "ary": driver.register_host_memory,
        "bf_obj": driver.to_device,
        "other_ary": lambda bad: driver.from_device_like(memory, bad),
        "array": driver.pagelocked_empty_like,
        "alignment": lambda bad: driver.aligned_empty(4, "f4", alignment=bad),
        "dev": lambda bad: driver.Device(0).can_access_peer(bad),
        "attr": lambda bad: driver.Device(0).get_attribute(bad),
        "limit": lambda bad: driver.Context.get_limit(bad),
        "value": lambda bad: driver.Context.set_limit(0, bad),
        "peer": lambda bad: driver.Context.enable_peer_access(bad),
        "buffer": driver.module_from_buffer,
    }.items(),
)
def test_an_argument_of_a_wrong_type_is_named(name, use):
    for bad in (Odd(), 2.5):
        with pytest.raises(TypeError, match=rf"\b{name}\b.*{type(bad).__name__}|{name} is 2.5"):
            use(bad)


@pytest.mark.parametrize("kind", [driver.Memcpy2D, driver.Memcpy3D])
@pytest.mark.parametrize(
    "name", ["width_in_bytes", "height", "src_pitch", "dst_pitch", "src_x_in_bytes", "dst_y"]
)
def test_a_part_of_a_copy_that_is_no_size_is_named(kind, name):
    copy = kind()
    copy.set_src_host(host)
    copy.set_dst_device(memory)
    copy.width_in_bytes, copy.height, copy.depth = 4, 1, 1
    for bad, error in ((Odd(), TypeError), (-4, driver.LogicError)):
        setattr(copy, name, bad)
        with pytest.raises(error, match=name):
            copy(True) if kind is driver.Memcpy2D else copy()


def refusals():
    memory = driver.mem_alloc(64)
    largest = 2**64 - 1
    yield "count is", "allowed are up to", lambda: driver.memset_d32(memory, 0, 2**62)
    yield "height is", "address space", lambda: driver.memset_d2d32(memory, 64, 0, 1, largest)
    yield "handle has length 3", "64 is needed", lambda: driver.IPCMemoryHandle(b"abc")


@pytest.mark.parametrize("number", range(3))
def test_a_refusal_names_the_argument_its_value_and_what_is_allowed(number):
    argument, allowed, use = list(refusals())[number]
    with pytest.raises(Exception, match=argument) as caught:
        use()
    assert allowed in str(caught.value)


def test_an_order_of_another_type_is_named():
    array = gpuarray.zeros((2, 3), np.float32)
    for call in (
        lambda: array.ravel(3),
        lambda: array.reshape(6, order=3),
        lambda: gpuarray.zeros(2, np.float32, order=3),
        lambda: gpuarray.GPUArray(2, np.float32, order=3),
        lambda: driver.pagelocked_empty(2, np.float32, order=3),
        lambda: driver.managed_empty(2, np.float32, order=3),
        lambda: tools.PageLockedMemoryPool().allocate(2, np.float32, order=3),
    ):
        with pytest.raises(TypeError, match="^order is 3; a string is needed"):
            call()
