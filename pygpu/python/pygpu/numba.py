"""A memory manager by which numba uses pygpu's memory: ``NUMBA_CUDA_MEMORY_MANAGER=pygpu.numba``.

With that variable set, or after ``numba.cuda.set_memory_manager(pygpu.numba.MemoryManager)``, numba
takes device, page-locked and managed memory from this package: an External Memory Manager plugin.
It needs the CUDA backend; importing this module does not need numba.
"""

from __future__ import annotations

import ctypes
import importlib
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np

from . import _core, driver
from ._errors import Error, MemoryError

_BYTE = np.dtype(np.uint8)


def _addresses(numba_driver: Any) -> tuple[Callable[[int], Any], Callable[[int], Any]]:
    """Returns the constructors of device and host addresses, for the bindings that numba uses."""
    if getattr(numba_driver, "USE_NV_BINDING", True):
        return numba_driver.binding.CUdeviceptr, int
    return numba_driver.drvapi.cu_device_ptr, ctypes.c_void_p


def _define() -> type[Any]:
    cuda = importlib.import_module("numba.cuda")
    numba_driver = importlib.import_module("numba.cuda.cudadrv.driver")
    device_address, host_address = _addresses(numba_driver)

    class MemoryManager(cuda.GetIpcHandleMixin, cuda.HostOnlyCUDAMemoryManager):  # type: ignore[misc, name-defined]
        """Allocates numba's memory from this package; numba decides when the memory is freed."""

        interface_version = 1

        def initialize(self) -> None:
            """Opens the backend; raises RuntimeError if it is not CUDA."""
            backend = _core.choose_backend()
            if backend != "cuda":
                raise RuntimeError(f"numba's memory is CUDA's; the backend of pygpu is {backend}")
            if not self.deallocations.memory_capacity:
                self.deallocations.memory_capacity = self.get_memory_info().total

        def _on_device(self, allocate: Callable[[], Any]) -> Any:
            """Allocates on numba's device; if that fails, frees unused memory and tries again."""
            device = self.context.device
            ordinal = int(getattr(device, "id", device))
            is_current = _core.current_ordinal() == ordinal
            if not is_current:
                driver.Device(ordinal).retain_primary_context().push()
            try:
                try:
                    return allocate()
                except MemoryError:
                    self.deallocations.clear()
                    return allocate()
            except Error as error:
                raise numba_driver.CudaAPIError(int(error.status), str(error)) from error
            finally:
                if not is_current:
                    driver.Context.pop()

        def _finalizer(self, memory: Any, key: Any, size: int) -> Callable[[], None]:
            allocations, deallocations = self.allocations, self.deallocations

            def finalize() -> None:
                allocations.pop(key, None)
                deallocations.add_item(type(memory).free, memory, size)

            return finalize

        def _keep(self, pointer: Any, key: Any) -> Any:
            """Returns a counted reference: the memory lives until its last view is deleted."""
            self.allocations[key] = pointer
            return pointer.own()

        def _counted(self, kind: Any, memory: Any, key: int, size: int) -> Any:
            address, finalizer = device_address(key), self._finalizer(memory, key, size)
            context = weakref.proxy(self.context)
            return self._keep(kind(context, address, size, finalizer=finalizer), key)

        def memalloc(self, size: int) -> Any:
            """Allocates device memory."""
            memory = self._on_device(lambda: driver.mem_alloc(size))
            return self._counted(numba_driver.AutoFreePointer, memory, int(memory), size)

        def memhostalloc(
            self, size: int, mapped: bool = False, portable: bool = False, wc: bool = False
        ) -> Any:
            """Allocates page-locked host memory."""
            flags = 2 * bool(mapped) | bool(portable) | 4 * bool(wc)
            array = self._on_device(lambda: driver.pagelocked_empty(size, _BYTE, mem_flags=flags))
            key = array.ctypes.data
            finalizer = self._finalizer(array.base, key, size)
            context, address = weakref.proxy(self.context), host_address(key)
            if not mapped:
                return numba_driver.PinnedMemory(context, address, size, finalizer=finalizer)
            return self._keep(
                numba_driver.MappedMemory(context, address, size, finalizer=finalizer), key
            )

        def mempin(self, owner: Any, pointer: int, size: int, mapped: bool = False) -> Any:
            """Page-locks host memory until numba no longer uses it."""
            buffer = np.frombuffer(_core.address_as_buffer(pointer, size, owner), _BYTE)
            flags = 2 * bool(mapped)
            registered = self._on_device(lambda: driver.register_host_memory(buffer, flags))
            allocations = self.allocations

            def finalize() -> None:
                allocations.pop(pointer, None)
                # Immediately: the same memory can be page-locked again.
                registered.base.unregister()

            context, address = weakref.proxy(self.context), host_address(pointer)
            if not mapped:
                return numba_driver.PinnedMemory(
                    context, address, size, owner=owner, finalizer=finalize
                )
            memory = numba_driver.MappedMemory(
                context, address, size, owner=owner, finalizer=finalize
            )
            return self._keep(memory, pointer)

        def memallocmanaged(self, size: int, attach_global: bool) -> Any:
            """Allocates managed memory."""
            flags = 1 if attach_global else 2
            array = self._on_device(lambda: driver.managed_empty((size,), _BYTE, "C", flags))
            kind = numba_driver.ManagedMemory
            return self._counted(kind, array.base, array.ctypes.data, size)

        def get_memory_info(self) -> Any:
            """Returns the device's free and total bytes."""
            return cuda.MemoryInfo(*self._on_device(driver.mem_get_info))

    return MemoryManager


def __getattr__(name: str) -> Any:
    if name in ("MemoryManager", "_numba_memory_manager"):
        globals().update(dict.fromkeys(("MemoryManager", "_numba_memory_manager"), _define()))
        return globals()[name]
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
