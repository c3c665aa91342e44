"""Device arrays with numba's methods: views over :class:`pygpu.gpuarray.GPUArray`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from .. import _arguments
from .._core import GPUArray
from .._exchange import protocols
from . import _stream
from ._array_base import DeviceNDArrayBase
from ._pointer import stream_or_none


class DeviceNDArray(DeviceNDArrayBase):
    """An array in device memory with numba's methods: what :func:`pygpu.cuda.to_device` returns. It
    is a :class:`pygpu.gpuarray.GPUArray`, too.

    Parameters
    ----------
    shape : int or tuple of int
        The extents.
    strides : int or tuple of int
        The bytes between neighbours along each axis.
    dtype : dtype
        The type of the elements.
    stream : Stream or 0
        The stream of the array's transfers, unless they name another one.
    gpu_data : MemoryPointer, GPUArray or int, optional
        The memory of the first element; new memory by default.

    Raises
    ------
    TypeError
        An argument is missing, unknown or no number where one is needed.
    ValueError
        An extent is negative, or the strides do not belong to the shape.

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
    """

    def is_c_contiguous(self) -> bool:
        """Returns True if the elements follow each other in C order, the last axis fastest.

        Returns
        -------
        bool
            True for an array without elements, too.
        """
        return self.flags["C_CONTIGUOUS"]

    def is_f_contiguous(self) -> bool:
        """Returns True if the elements follow each other in Fortran order, the first axis
        fastest.

        Returns
        -------
        bool
            True for an array without elements, too.
        """
        return self.flags["F_CONTIGUOUS"]

    def reshape(self, *newshape: Any, order: str = "C") -> DeviceNDArray:  # type: ignore[override]
        """Returns a view under another shape.

        Parameters
        ----------
        *newshape : int, or one sequence of int
            The extents; one may be -1, which is worked out from the others.
        order : {"C", "F", "A"}
            The order in which elements are read and placed.

        Returns
        -------
        DeviceNDArray
            The view.

        Raises
        ------
        NotImplementedError
            A view cannot have this shape.
        ValueError
            The sizes differ.
        """
        return self._without_copy(GPUArray.reshape(self, *newshape, order=order))

    def ravel(self, order: str = "C", stream: Any = 0) -> DeviceNDArray:  # type: ignore[override]
        """Returns a view of the elements along one axis.

        Parameters
        ----------
        order : {"C", "F", "A"}
            The order in which elements are read.
        stream : Stream or 0
            The stream of the view.

        Returns
        -------
        DeviceNDArray
            The view.

        Raises
        ------
        NotImplementedError
            The elements do not follow each other in this order.
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
        """Yields views of ``section`` elements each, the last one of what remains.

        Parameters
        ----------
        section : int
            The elements of each view.
        stream : Stream or 0
            The stream of the views.

        Yields
        ------
        DeviceNDArray
            The views in order.

        Raises
        ------
        TypeError
            ``section`` is no whole number.
        ValueError
            The array has not one axis, its elements are not adjacent, or ``section`` is not
            positive.
        """
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
        """Returns an element as a number on the host, or a view.

        Parameters
        ----------
        item : int, slice, None, Ellipsis or a tuple of them
            As in ``array[item]``. Arrays of indices and masks are allowed as well, unlike in
            numba; what they name is a copy.
        stream : Stream or 0
            The stream of the view, or in whose order the element is read.

        Returns
        -------
        number, DeviceNDArray or DeviceRecord
            A record where the element has fields.

        Raises
        ------
        IndexError
            An index is out of bounds.
        """
        view = GPUArray.__getitem__(self, item)
        entries = item if isinstance(item, tuple) else (item,)
        if view.ndim or any(entry is Ellipsis for entry in entries):
            return self._as_own(view, stream)
        stream = self._default_stream(stream)
        if self.dtype.names is not None:
            return self._record_class(self.dtype, stream, view)
        return view.get(stream=stream_or_none(stream))[()]

    def __setitem__(self, index: Any, value: Any) -> None:
        self.setitem(index, value)

    def setitem(self, key: Any, value: Any, stream: Any = 0) -> None:
        """Sets elements to a number, or to those of an array that broadcasts to them.

        Parameters
        ----------
        key : int, slice, None, Ellipsis or a tuple of them
            As in ``array[key] = value``.
        value : number or array
            The new elements; they are converted to the array's dtype.
        stream : Stream or 0
            The stream in whose order they are set. Without one the call returns once they are.

        Raises
        ------
        ValueError
            The value does not broadcast to the elements.
        IndexError
            An index is out of bounds.
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


DeviceNDArrayBase._view_class = DeviceNDArray
