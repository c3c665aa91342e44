"""Buffers in page-locked host memory."""

from __future__ import annotations

from typing import Any

import numpy as np

from .. import _arguments, _core
from ._context import Context, on_device
from ._slicing import indexed, part_of


class HostBuffer(_core.BufferExporter):
    """Bytes in page-locked host memory, which copies to and from a device are fastest with.

    ``memoryview(buffer)``, ``numpy.frombuffer(buffer)`` and ``pyarrow.py_buffer(buffer)`` are views
    of the memory. It is made by :func:`new_host_buffer`.

    Raises
    ------
    TypeError
        Always: :func:`new_host_buffer` makes them.

    Examples
    --------
    >>> from pygpu import arrow
    >>> buffer = arrow.new_host_buffer(3)
    >>> memoryview(buffer)[:] = b"abc"
    >>> buffer.to_pybytes()
    b'abc'
    >>> buffer.equals(buffer[:2])
    False
    """

    _host: np.ndarray
    _parent: HostBuffer | None = None

    def __init__(self) -> None:
        raise TypeError("Do not call HostBuffer's constructor directly: use new_host_buffer")

    @property
    def size(self) -> int:
        """The number of bytes."""
        return self._host.size

    @property
    def address(self) -> int:
        """The address in host memory."""
        return self._host.ctypes.data

    @property
    def is_cpu(self) -> bool:
        """True: it is host memory."""
        return True

    @property
    def is_mutable(self) -> bool:
        """True."""
        return True

    @property
    def parent(self) -> HostBuffer | None:
        """The buffer that this one is a slice of."""
        return self._parent

    def slice(self, offset: int = 0, length: int | None = None) -> HostBuffer:
        """Returns a buffer over a part of the memory, at most to the end.

        Parameters
        ----------
        offset : int
            The first byte.
        length : int, optional
            The number of bytes; all from ``offset`` on by default.

        Returns
        -------
        HostBuffer
            A buffer over the same memory, which it keeps alive.

        Raises
        ------
        TypeError
            ``offset`` or ``length`` is no whole number.
        ValueError
            ``offset`` is not inside the buffer, or ``length`` is negative.

        Examples
        --------
        >>> from pygpu import arrow
        >>> buffer = arrow.new_host_buffer(6)
        >>> memoryview(buffer)[:] = b"abcdef"
        >>> buffer.slice(2, 3).to_pybytes()
        b'cde'
        """
        return self._part(*part_of(self.size, offset, length))

    def _part(self, offset: int, length: int) -> HostBuffer:
        part = HostBuffer.__new__(HostBuffer)
        part._host, part._parent = self._host[offset : offset + length], self
        return part

    def __getitem__(self, key: Any) -> Any:
        found = indexed(self.size, key)
        return self._part(*found) if isinstance(found, tuple) else int(self._host[found])

    def equals(self, other: HostBuffer) -> bool:
        """Returns whether two buffers have the same bytes.

        Parameters
        ----------
        other : HostBuffer
            The other buffer.

        Returns
        -------
        bool
            Whether they have.

        Raises
        ------
        TypeError
            ``other`` is no host buffer.
        """
        return np.array_equal(self._host, _arguments.instance("other", other, HostBuffer)._host)

    def __eq__(self, other: object) -> bool:
        return self.equals(other) if isinstance(other, HostBuffer) else NotImplemented

    __hash__ = None  # type: ignore[assignment]

    def to_pybytes(self) -> bytes:
        """Returns a copy of the bytes.

        Returns
        -------
        bytes
            The bytes.
        """
        return self._host.tobytes()

    def __len__(self) -> int:
        return self.size

    def __repr__(self) -> str:
        return f"<HostBuffer of {self.size} bytes at {self.address:#x}>"


def new_host_buffer(size: int, device: int = 0) -> HostBuffer:
    """Returns a buffer in page-locked host memory (``cuMemHostAlloc``, ``hipHostMalloc``).

    Parameters
    ----------
    size : int
        The number of bytes.
    device : int
        The number of the device that makes it.

    Returns
    -------
    HostBuffer
        The buffer, whose bytes are undefined.

    Raises
    ------
    TypeError
        ``size`` or ``device`` is no whole number.
    ValueError
        ``size`` is negative, or there is no such device.

    Examples
    --------
    >>> import numpy as np
    >>> from pygpu import arrow
    >>> buffer = arrow.new_host_buffer(8)
    >>> np.frombuffer(buffer, np.int32)[:] = 5
    >>> arrow.Context().buffer_from_data(buffer)[4]
    5
    """
    size = _arguments.whole("size", size)
    if size < 0:
        raise ValueError(f"size is {size}; it must not be negative")
    result = HostBuffer.__new__(HostBuffer)
    with on_device(Context(device).device_number):
        result._host = _core.pagelocked_empty(size, np.uint8)
    return result
