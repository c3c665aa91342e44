"""Elements of structured dtypes in device memory."""

from __future__ import annotations

from typing import Any

import numpy as np

from ._array_base import DeviceNDArrayBase
from ._driver_copies import bytes_at
from ._layout import contiguous_strides
from ._pointer import BYTE, stream_or_none


class DeviceRecord(DeviceNDArrayBase):
    """One element of a structured dtype in device memory; ``record["field"]`` reads a field.

    Parameters
    ----------
    dtype : dtype
        The structured dtype.
    stream : Stream or 0
        The stream of the record's transfers.
    gpu_data : MemoryPointer or GPUArray, optional
        The memory; new by default.

    Examples
    --------
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
        """Returns a field: a number on the host, a record, or a view of a field with a shape.

        Parameters
        ----------
        item : str
            The field's name.
        stream : Stream or 0
            The stream in whose order the field is read, or that of the view.

        Returns
        -------
        number, DeviceRecord or DeviceNDArray
            The field.

        Raises
        ------
        KeyError
            The record has no such field.
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
        """Sets a field, converted to its dtype.

        Parameters
        ----------
        key : str
            The field's name.
        value : number or array
            The value, of the field's shape or one that broadcasts to it.
        stream : Stream or 0
            The stream in whose order it is set. Without one the call returns once it is.

        Raises
        ------
        KeyError
            The record has no such field.
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


DeviceNDArrayBase._record_class = DeviceRecord
