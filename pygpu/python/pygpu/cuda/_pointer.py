"""Device memory by its address, and copies between it and the host, as numba has them."""

from __future__ import annotations

import ctypes
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np

from .. import _core
from .._arguments import whole
from .._core import GPUArray

BYTE = np.dtype(np.uint8)


def stream_or_none(stream: Any) -> Any:
    """Returns a stream argument of numba's as the core takes it: 0 is the default stream."""
    return None if isinstance(stream, int) and stream == 0 else stream


class DeviceAddress(ctypes.c_size_t):
    """An address of device memory as an object of ctypes, which is a number to Python, too.

    Examples
    --------
    >>> from pygpu import cuda
    >>> address = cuda.device_array(4).device_ctypes_pointer
    >>> int(address) == address.value
    True
    """

    def __int__(self) -> int:
        return self.value

    def __index__(self) -> int:
        return self.value


class MemoryPointer:
    """A range of device memory.

    Parameters
    ----------
    context : Context
        The context that the memory belongs to.
    pointer : int or number of ctypes
        The base address.
    size : int
        The number of bytes.
    owner : object, optional
        What keeps the memory alive, and is kept as long as this object and its views.
    finalizer : callable, optional
        Called without arguments once this object is gone, or by :meth:`free`.

    Raises
    ------
    TypeError
        ``pointer`` is no whole number.

    Examples
    --------
    >>> from pygpu import cuda
    >>> memory = cuda.current_context().memalloc(16)
    >>> memory.memset(7)
    >>> memory.view(4, 8).size
    4
    >>> other = memory.own()
    >>> memory.refct
    2
    >>> memory.free()  # does nothing: it has no finalizer
    >>> cuda.cudadrv.driver.MemoryPointer.of(None, memory.elements).size
    16
    """

    __cuda_memory__ = True

    def __init__(
        self,
        context: Any,
        pointer: Any,
        size: int,
        owner: Any = None,
        finalizer: Callable[[], Any] | None = None,
    ) -> None:
        self.context = context
        # Numbers of ctypes, whose null pointer has the value None.
        address = getattr(pointer, "value", pointer)
        self.handle = 0 if address is None else whole("pointer", address)
        self.size = size
        self.is_managed = finalizer is not None
        self._owner = owner
        self._elements: GPUArray | None = None
        self._made: weakref.ref[GPUArray] | None = None
        self._views: weakref.WeakSet[MemoryPointer] = weakref.WeakSet()
        self._finalizer = None if finalizer is None else weakref.finalize(self, finalizer)

    @classmethod
    def of(cls, context: Any, elements: GPUArray, owner: Any = None) -> MemoryPointer:
        """Returns a pointer to the bytes of an array of uint8.

        Parameters
        ----------
        context : Context
            The context that the memory is of.
        elements : GPUArray
            The bytes, which the pointer keeps.
        owner : object, optional
            What else it keeps, and has as ``owner``.

        Returns
        -------
        MemoryPointer
            The pointer.
        """
        result = cls(context, elements.ptr, elements.size, owner=owner)
        result._elements = elements
        return result

    @property
    def elements(self) -> GPUArray:
        """The bytes, as an array of uint8, which keeps the pointer."""
        if self._elements is not None:
            return self._elements
        if not self.size:
            return GPUArray((0,), BYTE)
        made = None if self._made is None else self._made()
        if made is None:
            owner = self._owner.elements if isinstance(self._owner, MemoryPointer) else self._owner
            made = GPUArray((self.size,), BYTE, gpudata=self, base=owner)
            self._made = weakref.ref(made)
        return made

    @property
    def owner(self) -> Any:
        """The memory that this is a view of; the pointer itself if it is none."""
        return self if self._owner is None else self._owner

    @property
    def refct(self) -> int:
        """The number of pointers to the memory: this one and its views."""
        return 1 + len(self._views)

    @property
    def device_pointer(self) -> int:
        """The base address."""
        return self.handle

    @property
    def device_pointer_value(self) -> int | None:
        """The base address; None without memory."""
        return self.handle or None

    @property
    def device_ctypes_pointer(self) -> DeviceAddress:
        """The base address as an object of ctypes."""
        return DeviceAddress(self.handle)

    @property
    def _cuda_memsize_(self) -> int:
        return self.size

    def __int__(self) -> int:
        return self.handle

    def __index__(self) -> int:
        return self.handle

    def __repr__(self) -> str:
        return f"<{type(self).__name__} of {self.size} bytes at {self.handle:#x}>"

    def own(self) -> MemoryPointer:
        """Returns a pointer to the same memory, which keeps this one alive.

        Returns
        -------
        MemoryPointer
            A view of all bytes.
        """
        return self.view(0)

    def free(self) -> None:
        """Calls the finalizer now, once; pointers without one are left alone.

        Later uses of arrays in the memory raise ``LogicError``.

        Raises
        ------
        RuntimeError
            It has been called already.
        LogicError
            Another library's array or a buffer still uses the memory.
        """
        if self._finalizer is None:
            return
        if not self._finalizer.alive:
            raise RuntimeError("the memory has been freed already")
        made = None if self._made is None else self._made()
        if made is not None and not isinstance(self._owner, MemoryPointer):
            _core.end_foreign_memory(made)
        self._finalizer()

    def memset(self, byte: int, count: int | None = None, stream: Any = 0) -> None:
        """Sets bytes, in a stream's order.

        Parameters
        ----------
        byte : int
            The value, 0 to 255.
        count : int, optional
            How many bytes from the start; all by default.
        stream : Stream or 0
            The stream.

        Raises
        ------
        OverflowError
            ``byte`` is outside that range.
        ValueError
            ``count`` is negative, or more than the memory has.
        """
        if count is not None and not 0 <= count <= self.size:
            raise ValueError(f"count is {count}; 0 <= count <= {self.size} is needed")
        elements = self.elements if count is None else self.elements[:count]
        elements.fill(byte, stream_or_none(stream))

    def view(self, start: int, stop: int | None = None) -> MemoryPointer:
        """Returns a part of the memory, from byte ``start`` to before byte ``stop``.

        Parameters
        ----------
        start : int
            The first byte.
        stop : int, optional
            The byte behind the last one; the end of the memory by default.

        Returns
        -------
        MemoryPointer
            The part, which keeps the whole.

        Raises
        ------
        ValueError
            The part does not lie within the memory.
        """
        end = self.size if stop is None else stop
        if not 0 <= start <= end <= self.size:
            raise ValueError(
                f"start is {start} and stop {stop}; 0 <= start <= stop <= {self.size} is needed"
            )
        root = self.owner if isinstance(self.owner, MemoryPointer) else self
        result = MemoryPointer(self.context, self.handle + start, end - start, owner=root)
        root._views.add(result)
        return result


# -- copies --------------------------------------------------------------------------------
