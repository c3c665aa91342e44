"""The memory manager for numba, with classes that follow numba's documented interface.

`tests/numba/kernels.py` runs numba's own tests with it, if numba is installed.
"""

from __future__ import annotations

import contextlib
import ctypes
import sys
import types
import weakref
from collections import namedtuple

import numpy as np
import pytest
from device import BACKEND, settled_memory
from processes import run_python

from pygpu import driver

pytestmark = pytest.mark.skipif(BACKEND != "cuda", reason="numba's memory is CUDA's")


class CudaAPIError(Exception):
    pass


class Pending:
    """Memory that waits to be freed: numba's `deallocations`."""

    memory_capacity = 0

    def __init__(self):
        self.items, self.disabled = [], 0

    def add_item(self, dtor, handle, size=0):
        assert dtor.__name__, "numba writes it to its log"
        self.items.append((dtor, handle))

    def clear(self):
        while self.items and not self.disabled:
            dtor, handle = self.items.pop(0)
            dtor(handle)


class HostOnly:
    """The base class that a plugin inherits from in numba."""

    def __init__(self, *, context):
        self.context, self.allocations, self.deallocations = context, {}, Pending()

    @contextlib.contextmanager
    def defer_cleanup(self):
        self.deallocations.disabled += 1
        yield
        self.deallocations.disabled -= 1

    def reset(self):
        self.allocations.clear()
        self.deallocations.clear()


class Pointer:
    """Numba's pointers: the last counted reference releases the memory."""

    def __init__(self, context, pointer, size, owner=None, finalizer=None):
        self.pointer, self.size, self.owner = self.read(pointer), size, owner
        self.finalizer = weakref.finalize(self, finalizer)

    def own(self):
        counted = Counted()
        counted.pointer, counted.size = self.pointer, self.size
        weakref.finalize(counted, self.finalizer)
        return counted


class DevicePointer(Pointer):
    """A pointer to device memory, whose value has the type of the binding in use."""

    read = staticmethod(lambda pointer: pointer.address)


class HostPointer(Pointer):
    """A pointer to host memory."""

    read = staticmethod(int)


class DeviceAddress:
    """The device address of NVIDIA's bindings."""

    def __init__(self, address):
        self.address = address


def by_ctypes(kind):
    """Returns numba's pointer classes for calls through ctypes, which writes into the values."""

    def read(pointer):
        assert type(pointer) is kind
        return pointer.value

    return {"read": staticmethod(read)}


class Counted:
    """A reference that numba counts."""


class Owner:
    """An owner of host memory."""


Owner.array = np.arange(100.0)


@pytest.fixture(params=["bindings", "ctypes"])
def manager(monkeypatch, request):
    cuda = types.ModuleType("numba.cuda")
    cuda.HostOnlyCUDAMemoryManager = HostOnly
    cuda.GetIpcHandleMixin = type("GetIpcHandleMixin", (), {})
    cuda.MemoryInfo = namedtuple("MemoryInfo", "free,total")
    numba_driver = types.ModuleType("numba.cuda.cudadrv.driver")
    numba_driver.CudaAPIError = CudaAPIError
    numba_driver.binding = types.SimpleNamespace(CUdeviceptr=DeviceAddress)
    names = {
        DevicePointer: ("AutoFreePointer", "ManagedMemory"),
        HostPointer: ("MappedMemory", "PinnedMemory"),
    }
    reads = {DevicePointer: {}, HostPointer: {}}
    if request.param == "ctypes":
        numba_driver.USE_NV_BINDING = False
        numba_driver.drvapi = types.SimpleNamespace(cu_device_ptr=ctypes.c_size_t)
        reads[DevicePointer] = by_ctypes(ctypes.c_size_t)
        reads[HostPointer] = by_ctypes(ctypes.c_void_p)
    for base, of_base in names.items():
        for name in of_base:
            setattr(numba_driver, name, type(name, (base,), reads[base]))
    monkeypatch.setitem(sys.modules, "numba.cuda", cuda)
    monkeypatch.setitem(sys.modules, "numba.cuda.cudadrv.driver", numba_driver)
    import pygpu.numba

    device = type("Device", (), {"id": 0})()
    context = type("Context", (), {"device": device})()
    made = pygpu.numba._define()(context=context)
    made.kept = context
    made.initialize()
    return made


def test_memory_is_freed_when_numba_says_so(manager):
    before = settled_memory()
    assert manager.interface_version == 1
    assert manager.get_memory_info() == driver.mem_get_info()
    assert manager.deallocations.memory_capacity == driver.mem_get_info()[1]
    memory = manager.memalloc(1 << 20)
    assert driver.mem_get_address_range(memory.pointer) == (memory.pointer, 1 << 20)
    full = settled_memory()
    with manager.defer_cleanup():
        del memory
        assert len(manager.deallocations.items) == 1
        manager.deallocations.clear()
        assert settled_memory(full) == full
    assert not manager.allocations
    manager.deallocations.clear()
    assert settled_memory(before) == before


def test_host_memory(manager):
    before = settled_memory()
    for mapped in (False, True):
        memory = manager.memhostalloc(4096, mapped=mapped, portable=True, wc=True)
        assert type(memory).__name__ == ("Counted" if mapped else "PinnedMemory")
        memory = manager.mempin(Owner, Owner.array.ctypes.data, Owner.array.nbytes, mapped)
        with pytest.raises(CudaAPIError):
            manager.mempin(Owner, Owner.array.ctypes.data, Owner.array.nbytes)
        # Page-locking ends immediately.
        del memory
        manager.mempin(Owner, Owner.array.ctypes.data, Owner.array.nbytes)
    managed = manager.memallocmanaged(4096, attach_global=True)
    assert managed.size == 4096
    del managed
    manager.reset()
    assert not manager.allocations
    assert settled_memory(before) == before


def test_memory_that_waits_is_freed_before_it_is_short(manager):
    free, total = driver.mem_get_info()
    if total > 1 << 32:
        pytest.skip("the device's memory is not to be filled")
    half = free // 4 * 3
    first = manager.memalloc(half)
    del first
    second = manager.memalloc(half)
    assert second.size == half
    with pytest.raises(CudaAPIError) as caught:
        manager.memalloc(half)
    assert caught.value.args[0] == 2, "CUDA_ERROR_OUT_OF_MEMORY"


def test_other_backends_are_refused(manager):
    assert (
        run_python(
            """
            import sys
            import pygpu.numba
            assert "numba" not in sys.modules, "numba is imported when it asks"
            try:
                pygpu.numba.no_such_name
            except AttributeError as error:
                print(error)
            """
        ).stdout
        == "module 'pygpu.numba' has no attribute 'no_such_name'\n"
    )
