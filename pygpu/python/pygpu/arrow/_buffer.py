"""Buffers in device memory."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from .. import _arguments, _core
from .._core import GPUArray
from ._context import Context, on_device
from ._host import host_bytes, require_pyarrow
from ._slicing import indexed, part_of

if TYPE_CHECKING:
    from ._ipc import IpcMemHandle


# How pyarrow begins its messages of copies, which programs know.
_MORE = "requested more to copy than available"


class CudaBuffer(_core.BufferExporter):
    """Bytes in device memory, on every backend; the name is that of ``pyarrow.cuda``.

    A buffer is made by a :class:`Context`. Copies are ordered behind the work that uses the memory.
    The host cannot read the bytes in place: ``memoryview(buffer)``, ``numpy.frombuffer(buffer)``,
    ``pyarrow.py_buffer(buffer)`` raise ``BufferError`` on every backend. It is no subclass of
    ``pyarrow.Buffer``, whose users would read the address.

    Raises
    ------
    TypeError
        Always: a :class:`Context` makes buffers.

    Examples
    --------
    >>> from pygpu import arrow
    >>> buffer = arrow.Context().buffer_from_data(b"abc")
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
    >>> arrow.CudaBuffer.from_buffer(buffer) is buffer
    True
    >>> arrow.CudaBuffer.from_numba(buffer.to_numba()).equals(buffer)
    True
    >>> len(buffer.export_for_ipc().to_pybytes()) >= 72
    True
    """

    _bytes: GPUArray
    _context: Context
    _parent: CudaBuffer | None
    _owner: Any

    def __init__(self) -> None:
        raise TypeError(
            "Do not call CudaBuffer's constructor directly: a Context's new_buffer makes one"
        )

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
        """Returns the device buffer behind a buffer: ``buf`` itself.

        Parameters
        ----------
        buf : CudaBuffer
            The buffer.

        Returns
        -------
        CudaBuffer
            The same object.

        Raises
        ------
        TypeError
            ``buf`` is no device buffer.
        """
        return _arguments.instance("buf", buf, CudaBuffer)

    @staticmethod
    def from_numba(mem: Any) -> CudaBuffer:
        """Returns a buffer over the memory of numba's ``MemoryPointer``, which it keeps alive.

        Parameters
        ----------
        mem : numba.cuda.cudadrv.driver.MemoryPointer or pygpu.cuda's
            The memory.

        Returns
        -------
        CudaBuffer
            The buffer.

        Raises
        ------
        TypeError
            ``mem`` is no memory of numba.
        """
        pointer = getattr(mem, "device_pointer", None)
        if not hasattr(mem, "context") or not hasattr(mem, "size") or pointer is None:
            raise TypeError(f"mem is of type {type(mem).__name__}; a MemoryPointer is needed")
        context = Context.from_numba(mem.context)
        base = getattr(mem, "elements", mem)
        return context.foreign_buffer(int(getattr(pointer, "value", pointer) or 0), mem.size, base)

    def to_numba(self) -> Any:
        """Returns the memory as a ``MemoryPointer`` of :mod:`pygpu.cuda`, which keeps it alive.

        numba itself takes the buffer by ``__cuda_array_interface__``:
        ``numba.cuda.as_cuda_array(buffer)``.

        Returns
        -------
        pygpu.cuda.cudadrv.driver.MemoryPointer
            The memory.
        """
        from ..cuda.cudadrv.driver import MemoryPointer

        return MemoryPointer.of(self._context.to_numba(), self._bytes, owner=self)

    def to_gpuarray(self, dtype: Any = np.uint8) -> GPUArray:
        """Returns the memory as an array of one axis, which shares it.

        Parameters
        ----------
        dtype : dtype
            The type of the elements.

        Returns
        -------
        GPUArray
            The array.

        Raises
        ------
        ValueError
            The size is no multiple of an element's.
        """
        dtype = np.dtype(dtype)
        if self.size % dtype.itemsize:
            raise ValueError(
                f"dtype is {dtype} of {dtype.itemsize} bytes; the buffer has {self.size} bytes"
            )
        return self._bytes.view(dtype)

    # -- what it is

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
    def is_mutable(self) -> bool:
        """True: copies can write to it."""
        return True

    @property
    def parent(self) -> CudaBuffer | None:
        """The buffer that this one is a slice of."""
        return self._parent

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        return self._bytes.__cuda_array_interface__

    @property
    def _host(self) -> Any:
        raise BufferError("the buffer is in device memory: copy_to_host copies it")

    def __array__(self, dtype: Any = None, copy: Any = None) -> None:
        raise TypeError("the buffer is in device memory: copy_to_host copies it")

    def __len__(self) -> int:
        return self.size

    def __repr__(self) -> str:
        return f"<CudaBuffer of {self.size} bytes at {self.address:#x} on {self._context!r}>"

    def __reduce__(self) -> tuple[Any, Any]:
        return _unpickled, (self._host_copy(), self._context.device_number)

    # -- parts and comparison

    def slice(self, offset: int = 0, length: int | None = None) -> CudaBuffer:
        """Returns a buffer over a part of the memory, at most to the end.

        Parameters
        ----------
        offset : int
            The first byte.
        length : int, optional
            The number of bytes; all that follow without it.

        Returns
        -------
        CudaBuffer
            The part, which keeps the memory; its ``parent`` is this buffer.

        Raises
        ------
        TypeError
            ``offset`` or ``length`` is no whole number.
        ValueError
            ``offset`` is not inside the buffer, or ``length`` is negative.
        """
        return self._part(*part_of(self.size, offset, length))

    def _part(self, offset: int, length: int) -> CudaBuffer:
        part = self._bytes[offset : offset + length]
        return CudaBuffer._over(part, self._context, parent=self, owner=self._owner)

    def __getitem__(self, key: Any) -> Any:
        found = indexed(self.size, key)
        return self._part(*found) if isinstance(found, tuple) else self._read(found, 1)[0]

    def equals(self, other: CudaBuffer) -> bool:
        """Returns whether two buffers have the same bytes, which are compared on the device.

        Parameters
        ----------
        other : CudaBuffer
            The other buffer.

        Returns
        -------
        bool
            Whether they have.

        Raises
        ------
        TypeError
            ``other`` is no device buffer.

        Examples
        --------
        >>> from pygpu import arrow
        >>> buffer = arrow.Context().buffer_from_data(b"abcabc")
        >>> buffer[:3].equals(buffer[3:])
        True
        """
        _arguments.instance("other", other, CudaBuffer)
        if self.size != other.size or self._context != other._context:
            return self.size == other.size and self.to_pybytes() == other.to_pybytes()
        if self.size == 0 or self.address == other.address:
            return True
        with on_device(self._context.device_number):
            return not (self._bytes != other._bytes).any().item()

    def __eq__(self, other: object) -> bool:
        return self.equals(other) if isinstance(other, CudaBuffer) else NotImplemented

    __hash__ = None  # type: ignore[assignment]

    # -- copies

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
            raise ValueError(
                f"position argument is out-of-range: position is {position}; allowed are 0 to "
                f"{self.size}"
            )
        return position

    def _count(self, nbytes: int, position: int, other: tuple[str, int, str], own: str) -> int:
        """Returns how many bytes a copy between this and another buffer has.

        `other` is that buffer's name, its size, and what pyarrow says where it is too small; `own`
        is what pyarrow says of this one.
        """
        nbytes, room = _arguments.whole("nbytes", nbytes), self.size - position
        name, size, too_small = other
        if nbytes < 0:
            return min(room, size)
        if nbytes > size:
            raise ValueError(f"{too_small}: nbytes is {nbytes}; {name} has {size} bytes")
        if nbytes > room:
            raise ValueError(
                f"{_MORE} {own} device buffer: nbytes is {nbytes}; "
                f"from {position} the buffer has {room} bytes"
            )
        return nbytes

    def copy_to_host(
        self,
        position: int = 0,
        nbytes: int = -1,
        buf: Any = None,
        memory_pool: Any = None,
        resizable: bool = False,
    ) -> Any:
        """Copies bytes to the host, when the work that writes them has run.

        Parameters
        ----------
        position : int
            The first byte.
        nbytes : int
            The number of bytes; -1: all, or as many as ``buf`` takes.
        buf : pyarrow.Buffer or object with a writable buffer, optional
            Where the bytes go. By default they go to a new ``pyarrow.Buffer``.
        memory_pool : pyarrow.MemoryPool, optional
            Where the memory of a new buffer comes from.
        resizable : bool
            Whether a new buffer can be resized.

        Returns
        -------
        pyarrow.Buffer or object
            The new buffer, or ``buf``.

        Raises
        ------
        TypeError
            ``buf`` has no buffer, or a number is no whole one.
        ValueError
            This buffer has no such bytes, or ``buf`` is too small or for reading only.
        ImportError
            ``pyarrow`` is not installed, and ``buf`` is None.
        """
        position = self._position(position)
        if buf is None:
            whole = ("the buffer", self.size, f"{_MORE} from device buffer")
            nbytes = self._count(nbytes, position, whole, "from")
            pyarrow = require_pyarrow("a new host buffer")
            buf = pyarrow.allocate_buffer(nbytes, memory_pool=memory_pool, resizable=resizable)
            target = host_bytes("buf", buf, writable=True)
        else:
            target = host_bytes("buf", buf, writable=True)
            room = ("buf", target.size, "requested copy does not fit into host buffer")
            nbytes = self._count(nbytes, position, room, "from")
        self._read_into(target[:nbytes], position)
        return buf

    def copy_from_host(self, data: Any, position: int = 0, nbytes: int = -1) -> int:
        """Copies bytes of an object with the buffer protocol to the device.

        Parameters
        ----------
        data : object with the buffer protocol
            Where the bytes come from.
        position : int
            The first byte that is written.
        nbytes : int
            The number of bytes; -1: as many as there are and fit.

        Returns
        -------
        int
            The number of bytes.

        Raises
        ------
        TypeError
            ``data`` has no buffer, or a number is no whole one.
        ValueError
            Either side has fewer bytes.
        """
        position, source = self._position(position), host_bytes("data", data)
        from_host = ("data", source.size, f"{_MORE} from host buffer")
        nbytes = self._count(nbytes, position, from_host, "in")
        self._write(position, source[:nbytes])
        return nbytes

    def copy_from_device(self, buf: CudaBuffer, position: int = 0, nbytes: int = -1) -> int:
        """Copies bytes of a device buffer, which may be on another device.

        Parameters
        ----------
        buf : CudaBuffer
            Where the bytes come from, from its start on.
        position : int
            The first byte that is written.
        nbytes : int
            The number of bytes; -1: as many as there are and fit.

        Returns
        -------
        int
            The number of bytes.

        Raises
        ------
        TypeError
            ``buf`` is no device buffer, or a number is no whole one.
        ValueError
            Either side has fewer bytes.
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

    def to_pybytes(self) -> bytes:
        """Returns the bytes.

        Returns
        -------
        bytes
            A copy, made when the work that writes the bytes has run.
        """
        return self._read(0, self.size)

    def export_for_ipc(self) -> IpcMemHandle:
        """Returns a handle with which other processes can open the buffer (``cuIpcGetMemHandle``,
        ``hipIpcGetMemHandle``).

        The memory is freed with the last buffer over it in this process and the handle itself;
        other processes must have closed it by then. In ``pyarrow`` it is never freed.

        Returns
        -------
        IpcMemHandle
            The handle. All work of the device queued so far has run.

        Raises
        ------
        Unsupported, LogicError
            The memory cannot be shared: that of :meth:`Context.new_buffer` can be, that of arrays
            from the driver's pool cannot.
        """
        from ._ipc import export_buffer

        return export_buffer(self)


def _unpickled(data: Any, device_number: int) -> CudaBuffer:
    number = device_number if device_number < _core.device_count() else 0
    return Context(number).buffer_from_data(data)
