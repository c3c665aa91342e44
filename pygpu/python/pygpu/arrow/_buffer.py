"""Contexts, and the device buffers that they make."""

from __future__ import annotations

import threading
import weakref
from typing import TYPE_CHECKING, Any

import numpy as np

from .. import _arguments, _core
from .._core import DeviceAllocation, GPUArray
from .._driver.device import Device, on_device
from .._errors import InvalidArgument, Unsupported
from ..compyte.array import c_contiguous_strides, span
from ._host import (
    Buffer,
    HostBuffer,
    IpcMemHandle,
    host_bytes,
    no_device_buffer,
    number_of_device,
    require_pyarrow,
)

if TYPE_CHECKING:
    from numpy.typing import DTypeLike

    from ..cuda._context import Context as _CudaContext
    from ..cuda._memory import MemoryPointer

# The beginning of pyarrow's messages about copies, which programs know.
_MORE = "requested more to copy than available"

_lock = threading.Lock()
# The memory of new_buffer that is in use, for each device.
_allocated: dict[int, weakref.WeakSet[DeviceAllocation]] = {}


def _is_primary(number: int, handle: int) -> bool:
    """Returns True for the handle of a device's primary context, which the host does not have."""
    try:
        return _core.context_handle(number) == handle
    except Unsupported:
        return False


class Context:
    """Makes buffers on device ``device_number``; all contexts of one device compare equal.

    ``handle`` is 0, or the driver's handle of the primary context, which numba uses.
    Raises ``Unsupported`` for any other context; ``pyarrow`` accepts those.

    >>> context = Context(0)
    >>> buffer = context.buffer_from_data(b"abcdef")
    >>> buffer.slice(2, 3).to_pybytes()
    b'cde'
    >>> Context.get_num_devices() > 0
    True
    >>> Context.from_numba(context.to_numba()) == context
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
        number = number_of_device(device_number)
        if _arguments.whole("handle", handle) != 0 and not _is_primary(number, handle):
            allowed = "only the primary context, 0 or its handle, can be used"
            raise Unsupported(f"handle is {handle:#x}; {allowed}")
        self._number = number

    @staticmethod
    def from_numba(context: Any = None) -> Context:
        """Returns the context for ``context`` of numba or :mod:`pygpu.cuda`, or the current one."""
        if context is None:
            return Context(_core.current_ordinal())
        device: Any = getattr(context, "device", None)
        if not hasattr(device, "id"):
            raise _arguments.wrong_type("context", context, "a context of numba is needed")
        return Context(device.id)

    def to_numba(self) -> _CudaContext:
        """Returns the same device's context in :mod:`pygpu.cuda`, a substitute for numba's."""
        # Few programs use both; each is imported alone.
        from ..cuda import gpus

        return gpus[self._number].get_primary_context()

    @staticmethod
    def get_num_devices() -> int:
        """Returns the number of devices."""
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
        """Waits until all work of the device has run; raises an error if the work failed."""
        with on_device(self._number):
            _core.synchronize()

    @property
    def bytes_allocated(self) -> int:
        """The bytes in use that :meth:`new_buffer` and methods that copy have allocated."""
        with _lock:
            return sum(memory.size for memory in _allocated.get(self._number, ()))

    def get_device_address(self, address: int) -> int:
        """Returns the address by which kernels access the device or host memory at ``address``."""
        return self._bytes_at(address, 1, None).ptr

    def new_buffer(self, nbytes: int) -> CudaBuffer:
        """Returns a new buffer of ``nbytes`` undefined bytes; other processes can open it."""
        nbytes = _arguments.not_negative("nbytes", nbytes)
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
                where = f"where device {self._number} cannot use memory of size {size}"
                raise ValueError(f"address is {address:#x}, {where}") from error

    def foreign_buffer(self, address: int, size: int, base: Any = None) -> CudaBuffer:
        """Returns a buffer over ``size`` bytes at ``address``; the device must have access.

        The buffer and its slices keep ``base``, the owner of the memory, alive.
        """
        address, size = _arguments.whole("address", address), _arguments.not_negative("size", size)
        if size == 0:
            return self.new_buffer(0)
        return CudaBuffer._over(self._bytes_at(address, size, base), self)

    def open_ipc_buffer(self, ipc_handle: IpcMemHandle) -> CudaBuffer:
        """Returns a buffer of another process, whose ``export_for_ipc`` made ``ipc_handle``.

        The memory is closed with the last buffer over it.
        """
        _arguments.instance("ipc_handle", ipc_handle, IpcMemHandle)
        size, offset = ipc_handle._size, ipc_handle._offset
        if size == 0:
            return self.new_buffer(0)
        with on_device(self._number):
            memory = _core.IPCMemoryHandle(ipc_handle._handle)
            total = memory.size
            if offset + size > total:
                memory.close()
                part = f"size {size} and offset {offset}"
                raise ValueError(f"ipc_handle has {part}; the memory that it opens has {total}")
            whole = GPUArray((total,), np.uint8, gpudata=memory)
        return CudaBuffer._over(whole[offset : offset + size], self, owner=memory)

    def buffer_from_data(self, data: Any, offset: int = 0, size: int = -1) -> CudaBuffer:
        """Returns a copy of ``size`` bytes of ``data`` from ``offset`` on; -1 means the rest.

        The data are a CudaBuffer, or an object with the buffer protocol.
        """
        source: Any = data if isinstance(data, CudaBuffer) else host_bytes("data", data)
        total = source.size
        offset, size = _arguments.whole("offset", offset), _arguments.whole("size", size)
        if offset < 0 or (total and offset >= total) or (not total and offset):
            raise ValueError(f"offset is {offset}; data.size is {total}")
        if size < 0:
            size = total - offset
        elif offset + size > total:
            raise ValueError(f"offset is {offset} and size {size}; data.size is {total}")
        result, part = self.new_buffer(size), source[offset : offset + size]
        if isinstance(part, CudaBuffer):
            result.copy_from_device(part)
        else:
            result.copy_from_host(part)
        return result

    def buffer_from_object(self, obj: Any) -> CudaBuffer:
        """Returns a buffer over the memory of ``obj``, gaps included, and keeps ``obj`` alive.

        ``obj`` is a CudaBuffer, HostBuffer or GPUArray, or has ``__cuda_array_interface__``.
        """
        if isinstance(obj, CudaBuffer):
            return obj
        if isinstance(obj, HostBuffer):
            return self.foreign_buffer(obj.address, obj.size, base=obj)
        interface = getattr(obj, "__cuda_array_interface__", None)
        if not isinstance(interface, dict):
            raise no_device_buffer(obj)
        try:
            address, shape = interface["data"][0], tuple(map(int, interface["shape"]))
            itemsize = np.dtype(interface["typestr"]).itemsize
            strides = interface.get("strides")
            if strides is None:
                strides = c_contiguous_strides(itemsize, shape)
            strides = tuple(map(int, strides))
        except (KeyError, TypeError, ValueError, IndexError) as error:
            raise ValueError(f"__cuda_array_interface__ of obj is incomplete: {error!r}") from None
        start, end = span(shape, strides, itemsize)
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


class CudaBuffer(Buffer):
    """A buffer of bytes in device memory, on every backend; named as in ``pyarrow.cuda``.

    A buffer is made by a :class:`Context`. Copies are ordered after the work that uses the memory.
    The host cannot read the bytes in place: ``memoryview(buffer)``, ``numpy.frombuffer(buffer)``,
    ``pyarrow.py_buffer(buffer)`` raise ``BufferError`` on every backend. It does not derive from
    ``pyarrow.Buffer``, because code that takes one reads at its address.

    >>> buffer = Context().buffer_from_data(b"abc")
    >>> buffer.size, buffer[1]
    (3, 98)
    >>> memoryview(buffer)
    Traceback (most recent call last):
        ...
    BufferError: the buffer is in device memory: copy_to_host copies it
    >>> buffer.slice(1).to_pybytes(), buffer.to_gpuarray()
    (b'bc', array([97, 98, 99], dtype=uint8))
    >>> buffer.copy_from_host(b"xy", position=1), buffer.to_pybytes()
    (2, b'axy')
    >>> buffer.copy_from_device(buffer.slice(2)), buffer.to_pybytes()
    (1, b'yxy')
    >>> target = bytearray(2)
    >>> bytes(buffer.copy_to_host(buf=target))
    b'yx'
    >>> CudaBuffer.from_buffer(buffer) is buffer
    True
    >>> CudaBuffer.from_numba(buffer.to_numba()).equals(buffer)
    True
    >>> len(buffer.export_for_ipc().to_pybytes()) >= 72
    True
    """

    _bytes: GPUArray
    _context: Context
    _owner: Any

    def __init__(self) -> None:
        advice = "a Context's new_buffer makes one"
        raise TypeError(f"Do not call CudaBuffer's constructor directly: {advice}")

    @classmethod
    def _over(
        cls, array: GPUArray, context: Context, parent: CudaBuffer | None = None, owner: Any = None
    ) -> CudaBuffer:
        """Returns the buffer over an array of bytes without gaps."""
        buffer = cls.__new__(cls)
        buffer._bytes, buffer._context = array, context
        buffer._parent, buffer._owner = parent, owner
        return buffer

    @staticmethod
    def from_buffer(buf: Any) -> CudaBuffer:
        """Returns ``buf`` itself; ``buf`` must be a device buffer."""
        return _arguments.instance("buf", buf, CudaBuffer)

    @staticmethod
    def from_numba(mem: Any) -> CudaBuffer:
        """Returns a buffer over ``mem``, a ``MemoryPointer`` of numba or :mod:`pygpu.cuda`."""
        pointer = getattr(mem, "device_pointer", None)
        if not hasattr(mem, "context") or not hasattr(mem, "size") or pointer is None:
            raise _arguments.wrong_type("mem", mem, "a MemoryPointer is needed")
        context = Context.from_numba(mem.context)
        base = getattr(mem, "elements", mem)
        return context.foreign_buffer(int(getattr(pointer, "value", pointer) or 0), mem.size, base)

    def to_numba(self) -> MemoryPointer:
        """Returns a ``MemoryPointer`` of :mod:`pygpu.cuda` that keeps the memory alive.

        For numba itself call ``numba.cuda.as_cuda_array(buffer)``.
        """
        # As in `Context.to_numba`.
        from ..cuda.cudadrv.driver import MemoryPointer

        return MemoryPointer.of(self._context.to_numba(), self._bytes, owner=self)

    def to_gpuarray(self, dtype: DTypeLike = np.uint8) -> GPUArray:
        """Returns an array of ``dtype`` with one axis that shares the memory."""
        dtype = np.dtype(dtype)
        if self.size % dtype.itemsize:
            sizes = f"itemsize {dtype.itemsize}; the size of the buffer is {self.size}"
            raise ValueError(f"dtype is {dtype} of {sizes}")
        return self._bytes.view(dtype)

    @property
    def size(self) -> int:
        """The number of bytes."""
        return self._bytes.size

    @property
    def address(self) -> int:
        """The device address; 0 for a buffer without bytes."""
        return self._bytes.ptr if self.size else 0

    @property
    def context(self) -> Context:
        """The context of the device that the memory is on."""
        return self._context

    @property
    def is_cpu(self) -> bool:
        """False: the host cannot read the bytes in place."""
        return False

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        return self._bytes.__cuda_array_interface__

    @property
    def _host(self) -> Any:
        raise BufferError("the buffer is in device memory: copy_to_host copies it")

    def __array__(self, dtype: Any = None, copy: Any = None) -> None:
        raise TypeError("the buffer is in device memory: copy_to_host copies it")

    def __repr__(self) -> str:
        return f"{super().__repr__()[:-1]} on {self._context!r}>"

    def __reduce__(self) -> tuple[Any, Any]:
        return _unpickled, (self._host_copy(), self._context.device_number)

    def _part(self, offset: int, length: int) -> CudaBuffer:
        part = self._bytes[offset : offset + length]
        return CudaBuffer._over(part, self._context, parent=self, owner=self._owner)

    def _equals(self, other: CudaBuffer) -> bool:
        if self.size != other.size or self._context != other._context:
            return self.size == other.size and self.to_pybytes() == other.to_pybytes()
        if self.size == 0 or self.address == other.address:
            return True
        with on_device(self._context.device_number):
            return not (self._bytes != other._bytes).any().item()

    def _read_into(self, target: np.ndarray, position: int) -> None:
        if target.size:
            part = self._bytes[position : position + target.size]
            with on_device(self._context.device_number):
                _core.copy_to_host(target, part, None, True)

    def _host_copy(self) -> np.ndarray:
        target = np.empty(self.size, np.uint8)
        self._read_into(target, 0)
        return target

    def _read(self, position: int, nbytes: int) -> bytes:
        target = np.empty(nbytes, np.uint8)
        self._read_into(target, position)
        return target.tobytes()

    def _write(self, position: int, source: np.ndarray) -> None:
        if source.size:
            part = self._bytes[position : position + source.size]
            with on_device(self._context.device_number):
                _core.copy_to_device(part, source, None, True)

    def _gather(self, ranges: list[tuple[int, int]]) -> None:
        """Copies ranges of host memory, each an address and a number of bytes, to the start."""
        if self.size:
            with on_device(self._context.device_number):
                _core.gather_to_device(self._bytes, ranges)

    def _position(self, position: int) -> int:
        position = _arguments.whole("position", position)
        if not 0 <= position <= self.size:
            allowed = f"position is {position}; allowed are 0 to {self.size}"
            raise ValueError(f"position argument is out-of-range: {allowed}")
        return position

    def _count(self, nbytes: int, position: int, other: tuple[str, int, str], own: str) -> int:
        """Returns the number of bytes to copy between this buffer and another one."""
        nbytes, room = _arguments.whole("nbytes", nbytes), self.size - position
        name, size, too_small = other
        if nbytes < 0:
            return min(room, size)
        if nbytes > size:
            raise ValueError(f"{too_small}: nbytes is {nbytes}; the size of {name} is {size}")
        if nbytes > room:
            given = f"nbytes is {nbytes}; the room after position {position} is {room}"
            raise ValueError(f"{_MORE} {own} device buffer: {given}")
        return nbytes

    def copy_to_host(
        self,
        position: int = 0,
        nbytes: int = -1,
        buf: Any = None,
        memory_pool: Any = None,
        resizable: bool = False,
    ) -> Any:
        """Copies bytes to the host after the work that writes them; returns ``buf``.

        Copies ``nbytes`` bytes from ``position`` on; -1 means all, or as many as fit. ``buf`` is an
        object with a writable buffer; by default it is a new ``pyarrow.Buffer``, made by
        ``pyarrow.allocate_buffer`` with ``memory_pool`` and ``resizable``. Raises ``ImportError``
        if ``pyarrow`` is needed and not installed.
        """
        position = self._position(position)
        if buf is None:
            whole = ("the buffer", self.size, f"{_MORE} from device buffer")
            nbytes = self._count(nbytes, position, whole, "from")
            pyarrow = require_pyarrow("a new host buffer")
            buf = pyarrow.allocate_buffer(nbytes, memory_pool=memory_pool, resizable=resizable)
        target = host_bytes("buf", buf, writable=True)
        room = ("buf", target.size, "requested copy does not fit into host buffer")
        nbytes = self._count(nbytes, position, room, "from")
        self._read_into(target[:nbytes], position)
        return buf

    def copy_from_host(self, data: Any, position: int = 0, nbytes: int = -1) -> int:
        """Copies ``nbytes`` bytes of ``data``, an object with the buffer protocol, to ``position``.

        Returns the number of bytes copied; if ``nbytes`` is -1, as many as exist and fit.
        """
        position, source = self._position(position), host_bytes("data", data)
        from_host = ("data", source.size, f"{_MORE} from host buffer")
        nbytes = self._count(nbytes, position, from_host, "in")
        self._write(position, source[:nbytes])
        return nbytes

    def copy_from_device(self, buf: CudaBuffer, position: int = 0, nbytes: int = -1) -> int:
        """Copies the first ``nbytes`` bytes of ``buf``, of any device, to ``position``.

        Returns the number of bytes copied, as :meth:`copy_from_host` does.
        """
        position = self._position(position)
        _arguments.instance("buf", buf, CudaBuffer)
        from_device = ("buf", buf.size, f"{_MORE} from device buffer")
        nbytes = self._count(nbytes, position, from_device, "in")
        if nbytes:
            here, there = self._context.device_number, buf._context.device_number
            target, source = self._bytes[position : position + nbytes], buf._bytes[:nbytes]
            with on_device(here):
                if here == there:
                    _core.copy_on_device(target, source, nbytes, None, False)
                else:
                    _core.copy_between_devices(target, here, source, there, nbytes, None, True)
        return nbytes

    def export_for_ipc(self) -> IpcMemHandle:
        """Returns a handle with which other processes open the buffer.

        Waits for all queued work of the device. The memory is freed when the handle and the last
        buffer over it in this process are gone; other processes must have closed it before.
        ``pyarrow`` never frees it. Raises ``Unsupported`` or ``LogicError`` if the memory cannot be
        shared, such as the memory of arrays in the driver's pool.
        """
        if self.size == 0:
            return IpcMemHandle._new(bytes(64), 0, 0)
        with on_device(self._context.device_number):
            base, _ = _core.mem_get_address_range(self.address)
            handle = bytes(_core.mem_get_ipc_handle(base))
        keeps = (self, _core.hold_memory(self._bytes))
        return IpcMemHandle._new(handle, self.size, self.address - base, keeps)


def _unpickled(data: Any, device_number: int) -> CudaBuffer:
    number = device_number if device_number < _core.device_count() else 0
    return Context(number).buffer_from_data(data)
