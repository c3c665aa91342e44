"""High-level arrays: device memory with a copy of its elements in host memory."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

from pygpu._exchange.protocols import describe

from . import backend
from ._arrays import DeviceArray
from ._elements import SUPPORTED_DTYPES, UnsupportedDataType, ptr_wrapper, supported
from .backend import dtype

__all__ = ["SUPPORTED_DTYPES", "Allocator", "GPUArray", "HostAllocator", "PagelockedAllocator"]
__all__ += ["UnsupportedDataType", "dtype", "to_gpu"]


class _Owner:
    """Page-locked or ordinary host memory as an allocator."""

    def __init__(self, shape: Any, dtype: Any) -> None:
        self._dtype = supported(dtype).name
        self._shape = [operator.index(extent) for extent in shape]
        self._size = int(np.prod(self._shape, dtype=object))
        name = f"{type(self).__name__}_{self._dtype}"
        self._alloc = getattr(backend, name)()
        self._alloc.allocate(self._size)

    @property
    def shape(self) -> tuple[int, ...]:
        """The extents."""
        return tuple(self._shape)

    @property
    def dtype(self) -> np.dtype[Any]:
        """The type of the elements."""
        return np.dtype(self._dtype)

    def get(self) -> np.ndarray:
        """Returns a numpy array over the memory; the array keeps the memory alive."""
        self._alloc.last_status().raise_for_status()
        return self._alloc._block.memory.reshape(self._shape)

    def ptr(self) -> ptr_wrapper:
        """Returns the pointer to the memory."""
        return self._alloc.ptr()

    def last_status(self) -> backend.cudaError_t:
        """Returns the status of the allocation."""
        return self._alloc.last_status()


class HostAllocator(_Owner):
    """Ordinary host memory for an array of ``shape`` and ``dtype``, one of the ten types.

    Raises ``UnsupportedDataType`` for another dtype.

    >>> memory = HostAllocator((2, 3), "float32")
    >>> memory.get().shape, memory.ptr().is_safe(), bool(memory.last_status())
    ((2, 3), True, True)
    """


class PagelockedAllocator(_Owner):
    """Page-locked host memory, which devices also access, for an array of ``shape`` and ``dtype``.

    Raises ``UnsupportedDataType`` as :class:`HostAllocator` does.

    >>> memory = PagelockedAllocator((2, 3), "float32")
    >>> memory.get()[:] = 1
    >>> array = GPUArray(allocator=memory)
    >>> array.get().shape
    (2, 3)
    """


class Allocator:
    """Device memory that exists already, for ``GPUArray(allocator=...)``.

    ``data`` owns the memory and is kept alive: a GPUArray, a PagelockedAllocator, or an array of
    another library, with ``__cuda_array_interface__`` and without gaps. ``host_data`` is the host
    memory of arrays, new memory by default. Raises ``UnsupportedDataType`` for another dtype than
    the ten, or another kind of data.

    >>> memory = Allocator(to_gpu(np.arange(3)))
    >>> memory.ptr() != 0, memory.host_ptr() != 0
    (True, True)
    >>> GPUArray(allocator=memory).get()
    array([0, 1, 2])
    """

    def __init__(self, data: Any, host_data: np.ndarray | None = None) -> None:
        self.data = data
        self._order = "C"
        if isinstance(data, _Owner):
            self._shape, found = data.shape, data.dtype
        else:
            self._shape, found, self._address, self._order = _described(data)
        self._dtype = supported(found).name
        if host_data is None:
            host_data = np.empty(self._shape, self._dtype, self._order)  # type: ignore[call-overload]
        needed = int(np.prod(self._shape, dtype=object)) * np.dtype(self._dtype).itemsize
        if not isinstance(host_data, np.ndarray) or host_data.nbytes < needed:
            raise ValueError(f"host_data must be a numpy array of nbytes {needed}")
        if not (host_data.flags.c_contiguous or host_data.flags.f_contiguous):
            raise ValueError("host_data has gaps; a contiguous array is needed")
        self.host_data = host_data
        self._host_ptr = host_data.ctypes.data

    def ptr(self) -> ptr_wrapper | int:
        """Returns the pointer to, or the address of, the device memory."""
        return self.data.ptr() if isinstance(self.data, _Owner) else self._address

    def host_ptr(self) -> int:
        """Returns the address of the host memory."""
        return self._host_ptr


def _described(data: Any) -> tuple[tuple[int, ...], Any, int, str]:
    """Returns shape, dtype, address and order of an array in device memory."""
    interface = getattr(data, "__cuda_array_interface__", None)
    if not isinstance(interface, dict):
        needed = "a GPUArray, a PagelockedAllocator or an array with __cuda_array_interface__"
        raise UnsupportedDataType(f"data is of type {type(data).__name__}; {needed} is needed")
    for name in ("shape", "typestr", "data"):
        if name not in interface:
            raise ValueError(f"the __cuda_array_interface__ of data lacks {name!r}")
    found = np.dtype(interface["typestr"])
    shape = tuple(interface["shape"])
    # numpy determines the order from a stand-in for the array.
    strides = interface.get("strides")
    stand_in = np.lib.stride_tricks.as_strided(np.empty(1, found), shape, strides or None)
    if strides is None or stand_in.flags.c_contiguous:
        order = "C"
    elif stand_in.flags.f_contiguous:
        order = "F"
    else:
        raise ValueError(f"data has gaps (shape {shape}, strides {strides}); pass a copy of it")
    return shape, found, interface["data"][0] or 0, order


class GPUArray:
    """Device memory, and host memory to copy the elements from and to.

    ``GPUArray(array)`` uses the numpy array's own memory as the host side; ``GPUArray(shape)`` has
    its own page-locked memory. The constructor allocates device memory, undefined until
    :meth:`to_device`. Run-time failures leave a status in :attr:`last_status`. Raises
    ``UnsupportedDataType`` for any element type except the ten and for data that are neither an
    array nor a shape, and ``RuntimeError`` for other arguments with an allocator.

    >>> array = GPUArray(np.arange(3))
    >>> bool(array.to_device()), bool(array.set_val(0, 7)), bool(array.to_host())
    (True, True, True)
    >>> array.get()
    array([7, 1, 2])
    >>> bool(array.set(np.ones(3, np.int64))), array.get()
    (True, array([1, 1, 1]))
    >>> array.allocate()  # the constructor has done so
    <CudaError: 'code=1'>

    Parameters
    ----------
    *args : numpy.ndarray, list or tuple. Data, or a shape; ``shape=`` also works.
    **kwargs : object. With a shape: ``dtype``, the type of the elements, and ``order``, "C" or "F".
        With an array: ``copy``, True for a copy as the host side; arrays with gaps are always
        copied. As the only argument: ``allocator``, the owner of the device memory, which is an
        :class:`Allocator`, a :class:`PagelockedAllocator` or an array of another library.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        known = ("shape", "dtype", "order", "copy", "allocator")
        for name in kwargs:
            if name not in known:
                raise TypeError(f"unknown argument {name!r}; allowed are {', '.join(known)}")
        order = "C" if kwargs.get("order") is None else kwargs["order"]
        if not isinstance(order, str) or order not in ("C", "F"):
            raise ValueError(f"order is {order!r}; allowed are 'C' and 'F'")
        self._allocator: Any = None
        if "allocator" in kwargs:
            if "shape" in kwargs or "dtype" in kwargs or args:
                rule = "it must be the only input argument"
                raise RuntimeError(f"When specifying the allocator kwarg, {rule}")
            self._adopt(kwargs["allocator"], kwargs.get("order"))
            return
        if len(args) + ("shape" in kwargs) != 1:
            raise TypeError("one of data, shape and allocator is needed")
        data = kwargs["shape"] if "shape" in kwargs else args[0]
        if isinstance(data, np.ndarray):
            self._dtype = supported(data.dtype)
            has_gaps = not (data.flags.c_contiguous or data.flags.f_contiguous)
            held = data.copy(order="A") if kwargs.get("copy") or has_gaps else data
            self._device_array = self._class()(held)
        elif isinstance(data, list | tuple):
            self._dtype = supported(kwargs.get("dtype", "float64"))
            self._device_array = self._class()(list(data), int(order == "C"))
        else:
            raise UnsupportedDataType("input must either a numpy array -- or a list, or a tuple")
        if self._device_array.last_status():
            self._device_array.allocate()

    def _class(self) -> type[DeviceArray]:
        return getattr(backend, f"DeviceArray_{self._dtype.name}")

    def _adopt(self, allocator: Any, order: str | None) -> None:
        if not isinstance(allocator, Allocator):
            allocator = Allocator(allocator)
        self._allocator = allocator
        self._dtype = np.dtype(allocator._dtype)
        flag = int((order or allocator._order) == "C")
        addresses = allocator.host_ptr(), allocator.ptr()
        self._device_array = self._class()(*addresses, list(allocator._shape), flag)

    @property
    def size(self) -> int:
        """The number of elements."""
        return self._device_array.size()

    @property
    def nbytes(self) -> int:
        """The number of bytes of all elements."""
        return self._device_array.nbytes()

    @property
    def shape(self) -> tuple[int, ...]:
        """The extents."""
        return tuple(self._device_array.shape())

    @property
    def strides(self) -> list[int]:
        """The bytes from one element to the next along each axis."""
        return self._device_array.strides()

    @property
    def dtype(self) -> np.dtype[Any]:
        """The type of the elements."""
        return self._dtype

    @property
    def host_data(self) -> ptr_wrapper:
        """The pointer to the host memory."""
        return self._device_array.host_data()

    @property
    def device_data(self) -> ptr_wrapper:
        """The pointer to the device memory."""
        return self._device_array.device_data()

    @property
    def ptr(self) -> int:
        """The address of the device memory, for ctypes."""
        return int(self.device_data)

    @property
    def last_status(self) -> backend.cudaError_t:
        """The status of the last call; in a DeviceArray this is a method."""
        return self._device_array.last_status()

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        """The description of the device memory that other libraries read, version 3."""
        block = self._device_array._device_source
        return describe(self, self.ptr, None, hold=block and block.memory)

    def get(self, copy: bool = False) -> np.ndarray:
        """Copies the elements to host memory; returns this memory, or a ``copy``, as a numpy array.

        Change the memory, then call :meth:`to_device`. Raises ``pygpu.driver.Error`` if the
        constructor failed. If only the copy fails, :attr:`last_status` has the reason.
        """
        if self._device_array._array is None:
            self.last_status.raise_for_status()
        self._device_array.to_host()
        # A view: setting its shape does not set the array's.
        host = self._device_array._host.view()
        return host.copy(order="K") if copy else host

    def allocate(self) -> backend.cudaError_t:
        """Allocates device memory; fails, because the constructor has done so."""
        return self._device_array.allocate()

    def to_host(self) -> backend.cudaError_t:
        """Copies the elements from device memory to host memory; returns the status."""
        return self._device_array.to_host()

    def to_device(self) -> backend.cudaError_t:
        """Copies the elements from host memory to device memory; returns the status."""
        return self._device_array.to_device()

    def set_val(self, idx: int, val: Any) -> backend.cudaError_t:
        """Sets element ``idx``, in memory order, to ``val`` on the device; returns the status."""
        return self._device_array.set_val(idx, val)

    def set(self, host_data: Any, *val: Any) -> backend.cudaError_t:
        """Copies a numpy array, of the same shape and dtype, to device memory; returns the status.

        With a second argument, it is :meth:`set_val`, as in older versions of PyGPU. Raises
        ``AssertionError`` if ``host_data`` has another shape or dtype.
        """
        if val:
            return self.set_val(host_data, *val)
        fits = isinstance(host_data, np.ndarray) and host_data.shape == self.shape
        if not fits or host_data.dtype != self._dtype:
            self._device_array._attempt(self._refuse, host_data)
            raise AssertionError(self._refusal(host_data))
        order = self._device_array._order
        packed = np.asarray(host_data, order=order)  # type: ignore[call-overload]
        return self._device_array.set(packed)

    def _refusal(self, given: Any) -> str:
        what = type(given).__name__
        if isinstance(given, np.ndarray):
            what = f"an array of shape {given.shape} and dtype {given.dtype}"
        return f"host_data is {what}; shape {self.shape} and dtype {self._dtype} are needed"

    def _refuse(self, given: Any) -> None:
        raise ValueError(self._refusal(given))

    def __getitem__(self, index: Any) -> GPUArray:
        """Copies the elements to host memory; returns the indexed part as a new array."""
        part = GPUArray(np.array(self.get()[index], order="C"))
        part.to_device()
        return part


def to_gpu(cpu_data: np.ndarray) -> GPUArray:
    """Copies the numpy array ``cpu_data`` to device memory; ``cpu_data`` is the result's host side.

    Raises ``UnsupportedDataType`` for elements of another type than the ten.

    >>> to_gpu(np.arange(3)).get()
    array([0, 1, 2])
    """
    gpu_array = GPUArray(cpu_data)
    gpu_array.to_device()
    return gpu_array
