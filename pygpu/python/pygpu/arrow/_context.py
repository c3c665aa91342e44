"""Contexts: where device buffers are made."""

from __future__ import annotations

import threading
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np

from .. import _arguments, _core
from .._core import DeviceAllocation, GPUArray
from .._driver.device import Device
from .._errors import InvalidArgument, Unsupported
from ..compyte.array import c_contiguous_strides

if TYPE_CHECKING:
    from ._buffer import CudaBuffer
    from ._ipc import IpcMemHandle

_lock = threading.Lock()
# The memory of new_buffer that is in use, for each device.
_allocated: dict[int, weakref.WeakSet[DeviceAllocation]] = {}


@contextmanager
def on_device(number: int) -> Iterator[None]:
    """Makes a device the current one of this thread meanwhile."""
    if _core.current_ordinal() == number:
        yield
        return
    context = Device(number).retain_primary_context()
    context.push()
    try:
        yield
    finally:
        context.pop()


def _is_primary(number: int, handle: int) -> bool:
    """Returns whether a handle is that of a device's primary context; the host has none."""
    try:
        return _core.context_handle(number) == handle
    except Unsupported:
        return False


def _no_device_buffer(obj: Any) -> str:
    """How pyarrow begins the message of an object that names no device memory."""
    if type(obj).__module__.partition(".")[0] == "pyarrow":
        return f"buffer is not backed by a CudaBuffer, but of type {type(obj).__name__}"
    kind = type(obj)
    place = "" if kind.__module__ == "builtins" else f"{kind.__module__}."
    return f"cannot create device buffer view from object of type '{place}{kind.__qualname__}'"


class Context:
    """The use of a device: what makes device buffers.

    Contexts of one device are equal; all of them are its primary context.

    Parameters
    ----------
    device_number : int
        The number of the device.
    handle : int
        0, or the driver's handle of the device's primary context, which is that of CUDA's runtime,
        of numba and of others. Any other context, which ``pyarrow`` takes here, is refused.

    Raises
    ------
    TypeError
        ``device_number`` or ``handle`` is no whole number.
    ValueError
        There is no such device.
    Unsupported
        ``handle`` is another context's.

    Examples
    --------
    >>> from pygpu import arrow
    >>> context = arrow.Context(0)
    >>> buffer = context.buffer_from_data(b"abcdef")
    >>> buffer.slice(2, 3).to_pybytes()
    b'cde'
    >>> arrow.Context.get_num_devices() > 0
    True
    >>> arrow.Context.from_numba(context.to_numba()) == context
    True
    >>> context.new_buffer(16).size
    16
    >>> context.get_device_address(buffer.address) == buffer.address
    True
    >>> context.foreign_buffer(buffer.address, 3, base=buffer).to_pybytes()
    b'abc'
    >>> context.buffer_from_object(buffer.to_gpuarray()[1:3]).to_pybytes()
    b'bc'
    >>> handle = buffer.export_for_ipc()  # for context.open_ipc_buffer(handle) in another process
    >>> context.synchronize()
    """

    def __init__(self, device_number: int = 0, handle: int = 0) -> None:
        number, count = _arguments.whole("device_number", device_number), _core.device_count()
        if not 0 <= number < count:
            raise ValueError(
                f"device_number argument must be non-negative less than {count}: "
                f"device_number is {number}"
            )
        if _arguments.whole("handle", handle) != 0 and not _is_primary(number, handle):
            raise Unsupported(
                f"handle is {handle:#x}; only the primary context, 0 or its handle, can be used"
            )
        self._number = number

    @staticmethod
    def from_numba(context: Any = None) -> Context:
        """Returns the context of the device of a context of numba; without one of the current
        context.

        Parameters
        ----------
        context : numba.cuda.cudadrv.driver.Context or pygpu.cuda's, optional
            A context; the current device's without it.

        Returns
        -------
        Context
            The context.

        Raises
        ------
        TypeError
            ``context`` is no context of numba.
        """
        if context is None:
            return Context(_core.current_ordinal())
        device: Any = getattr(context, "device", None)
        if not hasattr(device, "id"):
            raise TypeError(
                f"context is of type {type(context).__name__}; a context of numba is needed"
            )
        return Context(device.id)

    def to_numba(self) -> Any:
        """Returns the context of the device in :mod:`pygpu.cuda`, which stands for numba's.

        Returns
        -------
        pygpu.cuda.cudadrv.driver.Context
            The same object for every call.
        """
        from ..cuda import gpus

        return gpus[self._number].get_primary_context()

    @staticmethod
    def get_num_devices() -> int:
        """Returns the number of devices.

        Returns
        -------
        int
            The number of devices; 1 on the host.
        """
        return _core.device_count()

    @property
    def device_number(self) -> int:
        """The number of the device."""
        return self._number

    @property
    def handle(self) -> int:
        """The driver's handle of the context; see :attr:`pygpu.driver.Context.handle`."""
        return Device(self._number).retain_primary_context().handle

    def synchronize(self) -> None:
        """Waits until all work of the device has run.

        Raises
        ------
        pygpu.driver.Error
            Work that was queued has failed.
        """
        with on_device(self._number):
            _core.synchronize()

    @property
    def bytes_allocated(self) -> int:
        """The bytes of device memory in use that :meth:`new_buffer` has allocated there, for
        itself or for other functions."""
        with _lock:
            return sum(memory.size for memory in _allocated.get(self._number, ()))

    def get_device_address(self, address: int) -> int:
        """Returns the address under which kernels reach the memory at an address.

        Parameters
        ----------
        address : int
            An address of device memory, or of host memory that the device reaches.

        Returns
        -------
        int
            The address on the device.

        Raises
        ------
        ValueError
            The device cannot reach the memory.
        """
        return self._bytes_at(address, 1, None).ptr

    def new_buffer(self, nbytes: int) -> CudaBuffer:
        """Returns a new buffer of ``nbytes`` bytes, which other processes can open.

        Parameters
        ----------
        nbytes : int
            The number of bytes.

        Returns
        -------
        CudaBuffer
            The buffer, whose bytes are undefined.

        Raises
        ------
        TypeError
            ``nbytes`` is no whole number.
        ValueError
            ``nbytes`` is negative.
        MemoryError
            The device has not so much free memory.
        """
        from ._buffer import CudaBuffer

        nbytes = _arguments.whole("nbytes", nbytes)
        if nbytes < 0:
            raise ValueError(f"nbytes is {nbytes}; it must not be negative")
        with on_device(self._number):
            if nbytes == 0:
                return CudaBuffer._over(GPUArray((0,), np.uint8), self)
            memory = _core.mem_alloc(nbytes)
            with _lock:
                _allocated.setdefault(self._number, weakref.WeakSet()).add(memory)
            array = GPUArray((nbytes,), np.uint8, gpudata=memory)
        return CudaBuffer._over(array, self, owner=memory)

    def _bytes_at(self, address: Any, size: int, base: Any) -> GPUArray:
        with on_device(self._number):
            try:
                return GPUArray((size,), np.uint8, gpudata=address, base=base)
            except InvalidArgument as error:
                raise ValueError(
                    f"address is {address:#x}, where device {self._number} reaches no {size} bytes"
                ) from error

    def foreign_buffer(self, address: int, size: int, base: Any = None) -> CudaBuffer:
        """Returns a buffer over memory that somebody else owns.

        Parameters
        ----------
        address : int
            The address of device memory, or of host memory that the device reaches.
        size : int
            The number of bytes.
        base : object, optional
            What keeps the memory; the buffer and its slices keep it alive.

        Returns
        -------
        CudaBuffer
            The buffer.

        Raises
        ------
        TypeError
            ``address`` or ``size`` is no whole number.
        ValueError
            The device cannot reach so many bytes there.
        """
        from ._buffer import CudaBuffer

        address, size = _arguments.whole("address", address), _arguments.whole("size", size)
        if size < 0:
            raise ValueError(f"size is {size}; it must not be negative")
        if size == 0:
            return self.new_buffer(0)
        return CudaBuffer._over(self._bytes_at(address, size, base), self)

    def open_ipc_buffer(self, ipc_handle: IpcMemHandle) -> CudaBuffer:
        """Returns the buffer of another process (``cuIpcOpenMemHandle``, ``hipIpcOpenMemHandle``).

        Parameters
        ----------
        ipc_handle : IpcMemHandle
            The result of :meth:`CudaBuffer.export_for_ipc` in the other process.

        Returns
        -------
        CudaBuffer
            The buffer; the memory is closed with the last buffer over it.

        Raises
        ------
        ValueError
            The handle's size and offset lie outside the memory.
        """
        from ._ipc import open_handle

        return open_handle(self, ipc_handle)

    def buffer_from_data(self, data: Any, offset: int = 0, size: int = -1) -> CudaBuffer:
        """Returns a new buffer with a copy of bytes.

        Parameters
        ----------
        data : CudaBuffer or object with the buffer protocol
            What is copied.
        offset : int
            The first byte that is copied.
        size : int
            The number of bytes; -1: all from ``offset`` on.

        Returns
        -------
        CudaBuffer
            The buffer.

        Raises
        ------
        TypeError
            ``data`` has no buffer, or a number is no whole one.
        ValueError
            ``data`` has no such bytes.
        """
        from ._buffer import CudaBuffer
        from ._host import host_bytes

        source: Any = data if isinstance(data, CudaBuffer) else host_bytes("data", data)
        total = source.size
        offset, size = _arguments.whole("offset", offset), _arguments.whole("size", size)
        if offset < 0 or (total and offset >= total) or (not total and offset):
            raise ValueError(f"offset is {offset}; data has {total} bytes")
        if size < 0:
            size = total - offset
        elif offset + size > total:
            raise ValueError(f"offset is {offset} and size {size}; data has {total} bytes")
        result, part = self.new_buffer(size), source[offset : offset + size]
        if isinstance(part, CudaBuffer):
            result.copy_from_device(part)
        else:
            result.copy_from_host(part)
        return result

    def buffer_from_object(self, obj: Any) -> CudaBuffer:
        """Returns a buffer over the memory of an object, which it keeps alive.

        Parameters
        ----------
        obj : CudaBuffer, HostBuffer, GPUArray or object with ``__cuda_array_interface__``
            If its elements have gaps between them, the buffer has the gaps, too.

        Returns
        -------
        CudaBuffer
            The buffer; ``obj`` itself if it is one.

        Raises
        ------
        TypeError
            The object names no memory that a device reaches.
        ValueError
            What the object says of its memory is incomplete, or the device does not reach it.
        """
        from .._exchange.protocols import extent
        from ._buffer import CudaBuffer
        from ._host import arrow_type_error
        from ._host_buffer import HostBuffer

        if isinstance(obj, CudaBuffer):
            return obj
        if isinstance(obj, HostBuffer):
            return self.foreign_buffer(obj.address, obj.size, base=obj)
        interface = getattr(obj, "__cuda_array_interface__", None)
        if not isinstance(interface, dict):
            raise arrow_type_error()(
                f"{_no_device_buffer(obj)}: a device buffer, a HostBuffer or an object with "
                "__cuda_array_interface__ is needed"
            )
        try:
            address, shape = interface["data"][0], tuple(map(int, interface["shape"]))
            itemsize = np.dtype(interface["typestr"]).itemsize
            strides = interface.get("strides")
            if strides is None:
                strides = c_contiguous_strides(itemsize, shape)
            strides = tuple(map(int, strides))
        except (KeyError, TypeError, ValueError, IndexError) as error:
            raise ValueError(f"__cuda_array_interface__ of obj is incomplete: {error!r}") from None
        start, end = extent(shape, strides, itemsize)
        if not address or start == end:
            return self.new_buffer(0)
        base = obj if isinstance(obj, GPUArray) else (obj, address)
        return self.foreign_buffer(int(address) + start, end - start, base=base)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Context) and self._number == other._number

    def __hash__(self) -> int:
        return hash(("pygpu.arrow.Context", self._number))

    def __repr__(self) -> str:
        return f"<Context of device {self._number}>"
