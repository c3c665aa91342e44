"""Device arrays and device records with numba's methods."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Literal

import numpy as np

from .. import _arguments
from .._core import GPUArray
from .._exchange import protocols
from . import _stream
from ._array_base import DeviceNDArrayBase
from ._layout import contiguous_strides
from ._memory import BYTE, bytes_at, stream_or_none


def _is_view(key: Any) -> bool:
    """Whether elements that an index names are a view, as they are without arrays in the index."""
    return not any(
        isinstance(entry, bool | np.bool_ | np.ndarray | GPUArray | list)
        for entry in (key if isinstance(key, tuple) else (key,))
    )


def _check_fits(source: Any, target: GPUArray) -> None:
    if source.ndim > target.ndim:
        raise ValueError(f"Can't assign {source.ndim}-D array to {target.ndim}-D self")
    pairs = zip(reversed(source.shape), reversed(target.shape), reversed(range(target.ndim)))
    for theirs, ours, axis in pairs:
        if theirs not in (1, ours):
            raise ValueError(
                f"Can't copy sequence with size {theirs} to array axis {axis} with dimension {ours}"
            )


class DeviceNDArray(DeviceNDArrayBase):
    """An array in device memory with numba's methods: what :func:`pygpu.cuda.to_device` returns.

    Parameters
    ----------
    shape, strides : int or tuple of int. The extents, and the bytes between neighbours along each
        axis.
    dtype : dtype. The type of the elements.
    stream : Stream or 0. The stream of the array's transfers, unless they name another one.
    gpu_data : MemoryPointer, GPUArray or int, optional. The memory of the first element; new memory
        by default.

    Examples
    --------
    >>> from pygpu import cuda
    >>> array = cuda.to_device(np.arange(6).reshape(2, 3))
    >>> array[1, 2], array.is_c_contiguous()
    (np.int64(5), True)
    >>> array.ravel().copy_to_host()
    array([0, 1, 2, 3, 4, 5])
    >>> [part.size for part in array.ravel().split(4)]
    [4, 2]
    >>> array.transpose().is_f_contiguous(), array.reshape(1, 6).squeeze().shape
    (False, (6,))
    >>> array.setitem((0, 0), 7)
    >>> array.getitem((0, 0)), array.view("u4").dtype
    (np.int64(7), dtype('uint32'))
    >>> array.copy_to_device(np.ones((2, 3), int))
    >>> array.copy_to_host().sum()
    np.int64(6)
    >>> stream = cuda.stream()
    >>> array.bind(stream).stream is stream
    True
    >>> handle, size = array.get_ipc_handle(), array.as_cuda_arg().size
    """

    def is_c_contiguous(self) -> bool:
        """Returns True if the elements follow each other in C order."""
        return self.flags["C_CONTIGUOUS"]

    def is_f_contiguous(self) -> bool:
        """Returns True if the elements follow each other in Fortran order."""
        return self.flags["F_CONTIGUOUS"]

    def reshape(self, *newshape: Any, order: Literal["C", "F", "A"] = "C") -> DeviceNDArray:  # type: ignore[override]
        """Returns a view with the extents ``*newshape``, one of which may be -1, its elements read
        and placed in ``order``. Raises ``NotImplementedError`` if a view cannot have this shape.
        """
        return self._without_copy(GPUArray.reshape(self, *newshape, order=order))

    def ravel(self, order: Literal["C", "F", "A"] = "C", stream: Any = 0) -> DeviceNDArray:  # type: ignore[override]
        """Returns a view, on ``stream``, of the elements along one axis, read in ``order``. Raises
        ``NotImplementedError`` if they do not follow each other so.
        """
        result = self._without_copy(GPUArray.ravel(self, order), stream)
        if result.size > 1 and result.strides != (self.itemsize,):
            raise NotImplementedError(
                f"operation requires copying: strides {self.strides} leave gaps"
            )
        return result

    def _without_copy(self, result: GPUArray, stream: Any = 0) -> DeviceNDArray:
        if result.size and result.ptr != self.ptr:
            raise NotImplementedError(
                f"operation requires copying: strides {self.strides} allow no view"
            )
        return self._as_own(result, stream)

    def split(self, section: int, stream: Any = 0) -> Iterator[DeviceNDArray]:
        """Yields views, on ``stream``, of ``section`` elements each, the last one of the rest."""
        section = _arguments.whole("section", section)
        if self.ndim != 1:
            raise ValueError(f"the array has {self.ndim} axes; only support 1d array")
        if self.size > 1 and self.strides[0] != self.itemsize:
            raise ValueError(f"the array has stride {self.strides[0]}; only support unit stride")
        if section < 1:
            raise ValueError(f"section is {section}; it must be positive")
        for start in range(0, self.size, section):
            yield self._as_own(GPUArray.__getitem__(self, slice(start, start + section)), stream)

    # -- elements --------------------------------------------------------------------------

    def __getitem__(self, index: Any) -> Any:
        return self.getitem(index)

    def getitem(self, item: Any, stream: Any = 0) -> Any:
        """Returns what ``item`` names: an element as a number on the host or as a record, or a
        view, on ``stream``.

        Arrays of indices and masks are allowed as well, unlike in numba; what they name is a copy.
        """
        view = GPUArray.__getitem__(self, item)
        entries = item if isinstance(item, tuple) else (item,)
        if view.ndim or any(entry is Ellipsis for entry in entries):
            return self._as_own(view, stream)
        stream = self._default_stream(stream)
        if self.dtype.names is not None:
            return DeviceRecord(self.dtype, stream, view)
        return view.get(stream=stream_or_none(stream))[()]

    def __setitem__(self, index: Any, value: Any) -> None:
        self.setitem(index, value)

    def setitem(self, key: Any, value: Any, stream: Any = 0) -> None:
        """Sets the elements that ``key`` names to ``value``, a number or an array that broadcasts,
        converted, in the order of ``stream``. Without one the call returns once it is done.
        """
        stream = self._default_stream(stream)
        target = GPUArray.__getitem__(self, key)
        if hasattr(value, "__cuda_array_interface__"):
            _check_fits(value, target)
            is_own = isinstance(value, GPUArray)
            source = value if is_own else protocols.from_cuda_array_interface(value)
            # The core orders this behind other uses of both.
            GPUArray.__setitem__(self, key, GPUArray.view(source))
            if stream:
                _stream.order_behind_default(stream)
        else:
            host = np.asarray(value)
            _check_fits(host, target)
            host = np.ascontiguousarray(np.broadcast_to(host, target.shape), self.dtype)
            host = host.reshape(target.shape)
            if _is_view(key):
                target.set(host, async_=bool(stream), stream=stream_or_none(stream))
            else:
                GPUArray.__setitem__(self, key, host)
        if not stream:
            _stream.default_stream().synchronize()

    def __iter__(self) -> Iterator[Any]:
        if not self.ndim:
            raise TypeError("iteration over a 0-d array")
        return (self[position] for position in range(len(self)))


class DeviceRecord(DeviceNDArrayBase):
    """One element of a structured ``dtype`` in device memory; ``record["field"]`` reads a field.

    Other arguments are as in :class:`DeviceNDArray`.

    >>> from pygpu import cuda
    >>> record = cuda.to_device(np.array([(1, 2.5)], [("a", "i4"), ("b", "f8")])[0])
    >>> record["b"]
    np.float64(2.5)
    >>> record.setitem("a", 7)
    >>> record.getitem("a")
    np.int32(7)
    """

    def __init__(self, dtype: Any, stream: Any = 0, gpu_data: Any = None, **options: Any) -> None:  # type: ignore[override]
        # Copies and pickles are made by the core, with the arguments of its own class.
        if isinstance(stream, np.dtype):
            super().__init__(dtype, stream, **options)
        else:
            self._set_up((), (), dtype, stream, gpu_data)

    def _field(self, name: Any) -> tuple[np.dtype[Any], int]:
        try:
            return self.dtype.fields[name][:2]  # type: ignore[index]
        except (KeyError, TypeError):
            raise KeyError(
                f"{name!r} is no field of the record; it has {self.dtype.names}"
            ) from None

    def __getitem__(self, item: Any) -> Any:
        return self.getitem(item)

    def getitem(self, item: str, stream: Any = 0) -> Any:
        """Returns the field ``item``, read in the order of ``stream``: a number on the host, a
        record, or a view of a field with a shape. Raises ``KeyError`` if there is no such field.
        """
        dtype, offset = self._field(item)
        stream = self._default_stream(stream)
        if dtype.shape:
            base = dtype.base
            strides = contiguous_strides(dtype.shape, base.itemsize, "C")
            return self._at(dtype.shape, strides, base, stream, offset)
        memory = bytes_at(self, offset, dtype.itemsize)
        if dtype.names is not None:
            return DeviceRecord(dtype, stream, memory)
        return memory.get(stream=stream_or_none(stream)).view(dtype)[0]

    def __setitem__(self, key: Any, value: Any) -> None:
        self.setitem(key, value)

    def setitem(self, key: str, value: Any, stream: Any = 0) -> None:
        """Sets the field ``key`` to ``value``, converted to its dtype, in the order of ``stream``.
        Without one the call returns once it is set.
        """
        dtype, offset = self._field(key)
        stream = self._default_stream(stream)
        field = np.zeros((), dtype.base) if not dtype.shape else np.zeros(dtype.shape, dtype.base)
        field[...] = value
        bytes_at(self, offset, dtype.itemsize).set(
            np.frombuffer(field.tobytes(), BYTE),
            async_=bool(stream),
            stream=stream_or_none(stream),
        )


DeviceNDArrayBase._view_class = DeviceNDArray
