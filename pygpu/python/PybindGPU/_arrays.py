"""Low-level arrays: host memory, device memory, and copies between the two."""

from __future__ import annotations

import contextlib
import ctypes
import math
import mmap
from typing import Any, Literal

import numpy as np

from pygpu import _core
from pygpu._arguments import whole

from ._elements import Block, per_dtype, pointer_class, ptr_wrapper
from ._status import Keeper, cudaError_t, refusal

_libc = ctypes.CDLL(None, use_errno=True)
_libc.msync.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
_MS_ASYNC = 1
_PAGE = mmap.PAGESIZE


class DeviceArray(Keeper, _core.BufferExporter):
    """Elements in host memory, and device memory of the same size once it is allocated.

    ``DeviceArray(size)`` and ``DeviceArray(shape, flag_c_contiguous=1)`` make page-locked host
    memory. The other constructors use the caller's memory: ``DeviceArray(pointer, shape,
    flag_c_contiguous)``, ``DeviceArray(host_address, device_address, shape, flag_c_contiguous)``,
    and ``DeviceArray(buffer)``, which keeps the buffer alive. A flag of 0 means Fortran's order.

    Device memory is allocated by :meth:`allocate`, unless its address is passed. Copies wait until
    they are done. Types are not compared: a contiguous buffer with enough bytes is read as elements
    of this class. Addresses are the caller's responsibility: memory must stay in place as long as
    the array lives. These failures leave a status in :meth:`last_status`: an address that is zero,
    not aligned or not mapped, and unknown device memory.

    >>> from PybindGPU import backend
    >>> x = np.arange(6).reshape(2, 3)
    >>> array = backend.DeviceArray_int64(x)
    >>> array.allocate(), array.to_device(), array.set_val(0, 7), array.to_host()
    (<CudaError: 'code=0'>, <CudaError: 'code=0'>, <CudaError: 'code=0'>, <CudaError: 'code=0'>)
    >>> x[0, 0], array.size(), array.nbytes(), array.shape(), array.strides()
    (np.int64(7), 6, 48, [2, 3], [24, 8])
    >>> array.set(np.ones(6, np.int64)), array.allocated(), array.last_status()
    (<CudaError: 'code=0'>, True, <CudaError: 'code=0'>)
    >>> array.host_data().is_safe(), array.device_data().is_safe()
    (True, False)

    Parameters
    ----------
    *args : int, sequence of int, pointer or buffer. A number of elements, a shape or a buffer. A
        ``ptr_wrapper`` to host memory, or addresses of host and device memory, may precede a shape.
    **flags : int. ``flag_c_contiguous``: 1 for C's order, 0 for Fortran's. The last of ``args`` may
        be this flag.
    """

    dtype: np.dtype[Any]

    def __init__(self, *args: Any, **flags: Any) -> None:
        self._array: np.ndarray | None = None
        self._source: Block | None = None  # of the host memory
        self._device: Any = None
        self._device_source: Block | None = None
        self._shape: tuple[int, ...] = (0,)
        self._order: Literal["C", "F"] = "C"
        self._keep: Any = None
        self._raw = False  # True if the host memory is a number of the caller's
        make, given = _constructor(self, *args, **flags)
        self._attempt(make, *given)
        if not self._status:
            self._array = self._source = None

    def _make_own(self, shape: Any, flag: Any = 1) -> None:
        self._set_shape(shape, flag)
        self._array = _core.pagelocked_empty(self._shape, self.dtype, self._order)
        self._source = Block.of_array(self._array)

    def _make_at_pointer(self, pointer: ptr_wrapper, shape: Any, flag: Any = 1) -> None:
        self._set_shape(shape, flag)
        self._point_to(pointer)

    def _make_at_addresses(self, host: Any, device: Any, shape: Any, flag: Any = 1) -> None:
        self._set_shape(shape, flag)
        self._point_to(host)
        address, block = _address("device_addr", device)
        if self.nbytes():
            _check_address("device_addr", address, self.dtype)
            _check_size("device_addr", block, self.nbytes())
        self._device, self._keep = address, (host, device)
        self._device_source = block or Block(device, address, self.nbytes())

    def _make_over(self, buffer: Any) -> None:
        array = buffer if isinstance(buffer, np.ndarray) else np.asarray(memoryview(buffer))
        if array.dtype.hasobject:
            raise refusal("the elements of the buffer are Python objects")
        if not (array.flags.c_contiguous or array.flags.f_contiguous):
            layout = f"shape {array.shape}, strides {array.strides}"
            raise refusal(f"the buffer has gaps ({layout}); pass a copy of it")
        fortran = not array.flags.c_contiguous
        self._set_shape(array.shape, not fortran)
        if self.nbytes() > array.nbytes:
            needed = f"its shape {array.shape} of {self.dtype} has {self.nbytes()}"
            raise refusal(f"the buffer's nbytes is {array.nbytes}; {needed}")
        memory = array.T if fortran else array
        self._array = np.ndarray(self._shape, self.dtype, buffer=memory, order=self._order)
        self._source = Block.of_array(self._array)

    def _set_shape(self, shape: Any, flag: Any) -> None:
        extents = tuple(shape)
        for extent in extents:
            if extent < 0:
                raise refusal(f"shape is {list(extents)}; extents must not be negative")
        if math.prod(extents) * self.dtype.itemsize >= 2**63:
            raise refusal(f"shape is {list(extents)}; its elements exceed the address space")
        self._shape, self._order = extents, ("C" if flag else "F")

    def _point_to(self, host: Any) -> None:
        address, block = _host_address("the host pointer", host)
        nbytes = self.nbytes()
        if not nbytes:
            self._array = np.empty(self._shape, self.dtype, self._order)
            self._source = Block.of_array(self._array)
            return
        _check_address("the host pointer", address, self.dtype)
        _check_size("the host pointer", block, nbytes)
        self._raw = block is None
        memory: Any = (ctypes.c_char * nbytes).from_address(address)
        # Users of the array's buffer also keep the memory's owner alive.
        memory._keep = (host, block and block.memory)
        self._array = np.ndarray(self._shape, self.dtype, buffer=memory, order=self._order)
        self._source = block or Block(None, address, nbytes)

    def size(self) -> int:
        """Returns the number of elements."""
        return math.prod(self._shape)

    def nbytes(self) -> int:
        """Returns the number of bytes of all elements."""
        return self.size() * self.dtype.itemsize

    def shape(self) -> list[int]:
        """Returns the extents."""
        return list(self._shape)

    def strides(self) -> list[int]:
        """Returns the bytes from one element to the next along each axis."""
        steps, step = [], self.dtype.itemsize
        extents = self._shape if self._order == "F" else self._shape[::-1]
        for extent in extents:
            steps.append(step)
            step *= extent
        return steps if self._order == "F" else steps[::-1]

    def allocated(self) -> bool:
        """Returns True if there is device memory."""
        return self._device is not None

    def host_data(self) -> ptr_wrapper:
        """Returns the pointer to the host memory; a null pointer if there is none."""
        array = self._array
        address = 0 if array is None or not self._is_live(self._source) else array.ctypes.data
        return pointer_class(self.dtype)._to(address, True, self._source, keep=self)

    def device_data(self) -> ptr_wrapper:
        """Returns the pointer to device memory, perhaps null; C functions take ``int(pointer)``."""
        block = self._device_source
        address = 0 if block is None else block.address
        return pointer_class(self.dtype)._to(address, False, block, keep=self)

    @property
    def _host(self) -> np.ndarray:
        """The host memory, for the buffer protocol."""
        if self._array is None:
            raise BufferError("the array has no host memory; its last_status() says why")
        if not self._is_live(self._source):
            raise BufferError("the array's host memory was freed")
        return self._array

    @staticmethod
    def _is_live(block: Block | None) -> bool:
        return block is None or block.alive

    def allocate(self) -> cudaError_t:
        """Allocates undefined device memory; returns the status, a failure at a second call."""
        return self._status_of(self._allocate)

    def to_device(self) -> cudaError_t:
        """Copies the elements from host memory to device memory; returns the status."""
        return self._status_of(self._copy, True)

    def to_host(self) -> cudaError_t:
        """Copies the elements from device memory to host memory; returns the status."""
        return self._status_of(self._copy, False)

    def set(self, source: Any, *val: Any) -> cudaError_t:
        """Copies elements from other host memory to device memory; returns the status.

        ``source`` is a contiguous buffer, a pointer or an address, with as many bytes as the array.
        With a second argument, it is :meth:`set_val`, as in older versions of PyGPU.
        """
        if val:
            return self.set_val(source, *val)
        return self._status_of(self._set, source)

    def set_val(self, idx: int, val: Any) -> cudaError_t:
        """Sets element ``idx``, in memory order, to ``val`` on the device; returns the status."""
        return self._status_of(self._set_value, idx, val)

    def _allocate(self) -> None:
        if self._device is not None:
            raise refusal("the array has device memory already")
        if self._array is None:
            raise refusal("the array was not made: its constructor failed")
        nbytes = self.nbytes()
        self._device = _core.mem_alloc(nbytes) if nbytes else 0
        self._device_source = Block(self._device, int(self._device), nbytes)

    def _device_memory(self) -> Any:
        if self._device is None:
            raise refusal("the array has no device memory; call allocate() first")
        if not self._is_live(self._device_source):
            raise refusal("the array's device memory was freed")
        return self._device

    def _host_memory(self) -> np.ndarray:
        try:
            host = self._host
        except BufferError as reason:
            raise refusal(str(reason)) from None
        if self._raw:
            _check_mapped("host_addr", host.ctypes.data, host.nbytes)
        return host

    def _copy(self, to_device: bool) -> None:
        device, host = self._device_memory(), self._host_memory()
        if not host.nbytes:
            return
        if to_device:
            _core.copy_to_device(device, host, None, True)
        else:
            _core.copy_to_host(host, device, None, True)

    def _set(self, source: Any) -> None:
        device, nbytes = self._device_memory(), self.nbytes()
        if isinstance(source, ptr_wrapper) or _is_number(source):
            address, block = _host_address("source", source)
            if not nbytes:
                return
            _check_address("source", address, np.dtype(np.uint8))
            _check_size("source", block, nbytes)
            if block is None:
                _check_mapped("source", address, nbytes)
            source = (ctypes.c_char * nbytes).from_address(address)
        given = source.nbytes if isinstance(source, np.ndarray) else memoryview(source).nbytes
        if given != nbytes:
            raise refusal(f"the nbytes of source is {given}; the array needs {nbytes}")
        if nbytes:
            _core.copy_to_device(device, source, None, True)

    def _set_value(self, idx: Any, val: Any) -> None:
        device, size = self._device_memory(), self.size()
        index = whole("idx", idx)
        if not 0 <= index < size:
            raise refusal(f"idx is {index}; the size of the array is {size}")
        element = np.empty(1, self.dtype)
        element[0] = val
        _core.copy_to_device(int(device) + element.nbytes * index, element, None, True)


def _constructor(array: DeviceArray, *args: Any, **flags: Any) -> tuple[Any, tuple[Any, ...]]:
    """Returns the constructor that the arguments are for, and the arguments for it."""
    flag = flags.pop("flag_c_contiguous", None)
    if flags:
        raise TypeError(f"unknown argument {next(iter(flags))!r}")
    at = next((i for i, value in enumerate(args) if isinstance(value, list | tuple)), None)
    if at is None:
        if len(args) != 1 or flag is not None:
            raise TypeError(f"too many arguments, {len(args)}: one size or one buffer is needed")
        (value,) = args
        if _is_number(value):
            return array._make_own, ((whole("size", value),),)
        with contextlib.suppress(BufferError, ValueError):  # a dead buffer: a status
            memoryview(value)  # raises TypeError for anything else
        return array._make_over, (value,)
    rest = args[at + 1 :] if flag is None else (*args[at + 1 :], flag)
    makes = {0: array._make_own, 1: array._make_at_pointer, 2: array._make_at_addresses}
    if at not in makes or len(rest) > 1:
        forms = "(size), (shape, flag), (pointer, shape, flag)"
        more = "(host_addr, device_addr, shape, flag) and (buffer)"
        raise TypeError(f"the arguments match none of {forms}, {more}")
    if at == 1 and not isinstance(args[0], ptr_wrapper):
        raise TypeError(f"the pointer is of type {type(args[0]).__name__}, not a ptr_wrapper")
    shape = tuple(whole("an extent of the shape", extent) for extent in args[at])
    for name, value in zip(("host_addr", "device_addr"), args[:at]):
        _address(name, value)
    return makes[at], (*args[:at], shape, *rest)


def _is_number(value: Any) -> bool:
    return hasattr(value, "__index__") and not isinstance(value, np.ndarray)


def _address(name: str, value: Any) -> tuple[int, Block | None]:
    """Returns the address in an argument, and the memory at that address if known."""
    if isinstance(value, ptr_wrapper):
        return value.unsafe_get(), value._block
    return whole(name, value), None


def _host_address(name: str, value: Any) -> tuple[int, Block | None]:
    """Like :func:`_address`, for host memory."""
    if isinstance(value, ptr_wrapper) and not value.is_safe():
        raise refusal(f"{name} is {value!r}; host memory that Python manages is needed")
    return _address(name, value)


def _check_address(name: str, address: int, dtype: np.dtype[Any]) -> None:
    if address <= 0 or address >= 2**64:
        raise refusal(f"{name} is {address}; an address is needed")
    if address % dtype.alignment:
        raise refusal(f"{name} is {address:#x}; {dtype} needs a multiple of {dtype.alignment}")


def _check_size(name: str, block: Block | None, nbytes: int) -> None:
    if block is None:
        return
    if not block.alive:
        raise refusal(f"{name} points to memory that was freed")
    if block.nbytes < nbytes:
        raise refusal(f"{name} points to memory of size {block.nbytes}; the array has {nbytes}")


def _check_mapped(name: str, address: int, nbytes: int) -> None:
    """Refuses addresses that are not mapped in this process."""
    start = address // _PAGE * _PAGE
    if _libc.msync(start, address + nbytes - start, _MS_ASYNC) != 0:
        raise refusal(f"{name} is {address:#x}, where the process has no memory of size {nbytes}")


ARRAYS = per_dtype(DeviceArray)
