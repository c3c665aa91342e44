"""Handles with which other processes open device buffers."""

from __future__ import annotations

import struct
from typing import Any

import numpy as np

from ._host import host_bytes, require_pyarrow

# The buffer's bytes, the driver's handle, and for a part of an allocation where it starts: the
# first two are what Arrow's C++ library writes.
_WHOLE, _PART = struct.Struct("<q64s"), struct.Struct("<q64sq")


class IpcMemHandle:
    """What other processes need to open a device buffer. It is made by
    :meth:`CudaBuffer.export_for_ipc`, or by :meth:`from_buffer`.

    Examples
    --------
    >>> from pygpu import arrow
    >>> context = arrow.Context()
    >>> sent = context.new_buffer(0).export_for_ipc().to_pybytes()
    >>> context.open_ipc_buffer(arrow.IpcMemHandle.from_buffer(sent)).size
    0
    >>> arrow.IpcMemHandle.from_buffer(context.new_buffer(0).export_for_ipc().serialize())
    <IpcMemHandle of 0 bytes from 0>
    """

    def __init__(self) -> None:
        raise TypeError("an IpcMemHandle is made by export_for_ipc of a CudaBuffer")

    _handle: bytes
    _size: int
    _offset: int
    _keeps: Any

    @staticmethod
    def _new(handle: bytes, size: int, offset: int, keeps: Any = None) -> IpcMemHandle:
        result = IpcMemHandle.__new__(IpcMemHandle)
        result._handle, result._size, result._offset = handle, size, offset
        result._keeps = keeps
        return result

    @staticmethod
    def from_buffer(opaque_handle: Any) -> IpcMemHandle:
        """Returns the handle from what :meth:`serialize` returned in another process.

        Parameters
        ----------
        opaque_handle : pyarrow.Buffer, bytes or another object with the buffer protocol
            72 bytes, or 80 for a part of an allocation.
        """
        data = host_bytes("opaque_handle", opaque_handle).tobytes()
        if len(data) not in (_WHOLE.size, _PART.size):
            raise ValueError(
                f"opaque_handle has {len(data)} bytes; allowed are {_WHOLE.size} and {_PART.size}"
            )
        size, handle = _WHOLE.unpack_from(data)
        offset = _PART.unpack(data)[2] if len(data) == _PART.size else 0
        if size < 0 or offset < 0:
            raise ValueError(f"opaque_handle has the size {size} and the offset {offset}")
        return IpcMemHandle._new(handle, size, offset)

    def serialize(self, pool: Any = None) -> Any:
        """Returns the handle as a ``pyarrow.Buffer``.

        Parameters
        ----------
        pool : pyarrow.MemoryPool, optional
            Where the memory comes from.

        Raises
        ------
        ImportError
            ``pyarrow`` is not installed.
        """
        data = self.to_pybytes()
        buffer = require_pyarrow("serialize").allocate_buffer(len(data), memory_pool=pool)
        host_bytes("buffer", buffer, writable=True)[:] = np.frombuffer(data, np.uint8)
        return buffer

    def to_pybytes(self) -> bytes:
        """Returns the handle as bytes: 72, or 80 for a part of an allocation."""
        if self._offset:
            return _PART.pack(self._size, self._handle, self._offset)
        return _WHOLE.pack(self._size, self._handle)

    def __repr__(self) -> str:
        return f"<IpcMemHandle of {self._size} bytes from {self._offset}>"
