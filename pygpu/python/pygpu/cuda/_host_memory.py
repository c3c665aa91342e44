"""Page-locked, mapped and managed memory as bytes."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from .. import _arguments
from ._pointer import BYTE, DeviceAddress

if TYPE_CHECKING:
    from ._context import Context


class HostMemory(np.ndarray):
    """Page-locked, mapped or managed host memory as an array of bytes.

    ``handle`` is its address on the host, ``device_ctypes_pointer`` that on the device.
    """

    context: Any = None
    _device_address: int | None = None

    @staticmethod
    def over(memory: np.ndarray[Any, Any], context: Context, mapped: bool) -> HostMemory:
        """Returns an array of bytes from the core as an object of this class."""
        result = memory.view(HostMemory)
        result.context = context
        if mapped:
            result._device_address = memory.base.get_device_pointer()  # type: ignore[union-attr]
        return result

    @property
    def __cuda_memory__(self) -> bool:
        return self._device_address is not None

    @property
    def handle(self) -> int:
        """The address on the host."""
        return self.ctypes.data

    @property
    def device_ctypes_pointer(self) -> DeviceAddress:
        """The address on the device as an object of ctypes."""
        if self._device_address is None:
            raise TypeError("the memory is not mapped; a device cannot use it")
        return DeviceAddress(self._device_address)

    @property
    def _cuda_memsize_(self) -> int:
        return self.size

    def own(self) -> HostMemory:
        """Returns the memory itself, which lives as long as anything refers to it."""
        return self

    def free(self) -> None:
        """Ends the page-locking of memory from :meth:`Context.mempin`."""
        owner = self.base
        while isinstance(owner, np.ndarray):
            owner = owner.base
        unregister = getattr(owner, "unregister", None)
        if unregister is not None:
            unregister()


def new_host_memory(
    allocate: Callable[..., Any], bytesize: int, flags: int, context: Context, mapped: bool
) -> HostMemory:
    bytesize = _arguments.whole("bytesize", bytesize)
    if bytesize < 0:
        raise ValueError(f"bytesize is {bytesize}; it must not be negative")
    if not bytesize:
        return np.empty(0, BYTE).view(HostMemory)
    return HostMemory.over(allocate((bytesize,), BYTE, mem_flags=flags), context, mapped)
