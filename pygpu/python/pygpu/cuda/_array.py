"""Device arrays and device records with numba's methods, and their common base."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, ClassVar, Literal, TypeVar, overload

import numpy as np

from .. import _arguments
from .._core import GPUArray
from .._exchange import protocols
from ..compyte.array import span
from . import _devices, _memory, _stream
from ._context import IpcHandle

if TYPE_CHECKING:
    from numpy.typing import DTypeLike

_Host = TypeVar("_Host")


class IpcArrayHandle:
    """A picklable handle with which another process opens an array, once at a time.

    ``with handle as array:`` opens and closes it. ``ipc_handle`` is the :class:`IpcHandle` of the
    array's memory, ``array_desc`` a dict with shape, strides and dtype.

    >>> import pickle
    >>> handle = cuda.to_device([1, 2, 3]).get_ipc_handle()
    >>> data = pickle.dumps(handle)
    >>> def receive(data):  # in another process
    ...     handle = pickle.loads(data)
    ...     total = handle.open().copy_to_host().sum()
    ...     handle.close()
    ...     return total
    """

    def __init__(self, ipc_handle: IpcHandle, array_desc: dict[str, Any]) -> None:
        self._ipc_handle = ipc_handle
        self._array_desc = array_desc

    def open(self) -> DeviceNDArray:
        """Returns the array, in the memory of the exporting process."""
        return self._ipc_handle.open_array(_devices.current_context(), **self._array_desc)

    def close(self) -> None:
        """Ends the use of the memory. The program must not use the array afterwards."""
        self._ipc_handle.close()

    def __enter__(self) -> DeviceNDArray:
        return self.open()

    def __exit__(self, *_raised: Any) -> None:
        self.close()


class DeviceNDArrayBase(GPUArray):
    """The base of device arrays and device records.

    Each is a :class:`pygpu.gpuarray.GPUArray` with numba's form of the methods that numba has: an
    element is a number on the host, ``reshape`` and ``ravel`` raise ``NotImplementedError`` rather
    than copy, and ``transpose`` always copies. Arguments are as in
    :class:`pygpu.cuda.cudadrv.devicearray.DeviceNDArray`.

    >>> isinstance(cuda.device_array(3), DeviceNDArrayBase)
    True
    """

    stream: Any = 0
    # The class of views, set where it is defined.
    _view_class: ClassVar[type[DeviceNDArray]]

    @overload
    def __init__(
        self, shape: Any, strides: Any, dtype: Any, stream: Any = 0, gpu_data: Any = None
    ) -> None: ...
    @overload
    def __init__(
        self,
        shape: Any,
        dtype: np.dtype[Any],
        *,
        allocator: Any = None,
        gpudata: Any = None,
        strides: Any = None,
    ) -> None: ...
    def __init__(self, shape: Any, *layout: Any, **options: Any) -> None:
        # Results of operators are made by the core, with the arguments of its own class.
        if layout and isinstance(layout[0], np.dtype):
            super().__init__(shape, *layout, **options)
        else:
            self._set_up(shape, *layout, **options)

    def _set_up(
        self, shape: Any, strides: Any, dtype: Any, stream: Any = 0, gpu_data: Any = None
    ) -> None:
        shape, strides, dtype = _memory.prepare(shape, strides, dtype, "C")
        low, high = span(shape, strides, dtype.itemsize)
        if low == high:
            super().__init__(shape, dtype, strides=strides)
        elif isinstance(gpu_data, int):
            super().__init__(shape, dtype, gpudata=gpu_data, strides=strides)
        else:
            if gpu_data is None:
                base = _devices.current_context().allocate(high - low)
                address = base.ptr - low
            else:
                base = (
                    gpu_data.elements if isinstance(gpu_data, _memory.MemoryPointer) else gpu_data
                )
                address = (
                    base.ptr if isinstance(base, GPUArray) else base.device_ctypes_pointer.value
                )
            super().__init__(shape, dtype, base=base, gpudata=address, strides=strides)
        if stream:
            self.stream = stream

    def _at(
        self, shape: Any, strides: Any, dtype: Any = None, stream: Any = 0, offset: int = 0
    ) -> DeviceNDArray:
        """Returns a view of this array's memory, ``offset`` bytes from its first element."""
        source = GPUArray.view(self) if not offset else _memory.bytes_at(self, offset, 1)
        dtype = self.dtype if dtype is None else dtype
        return self._view_class(shape, strides, dtype, self._default_stream(stream), source)

    def _as_own(self, view: GPUArray, stream: Any = 0) -> DeviceNDArray:
        """Returns a view that the extension module has made as an object of numba's class."""
        stream = self._default_stream(stream)
        return self._view_class(view.shape, view.strides, view.dtype, stream, view)

    def _default_stream(self, stream: Any) -> Any:
        return stream if stream else self.stream

    @property
    def flags(self) -> _memory.Flags:  # type: ignore[override]
        """The contiguity of the array: ``flags["C_CONTIGUOUS"]``, ``flags["F_CONTIGUOUS"]``."""
        flags = super().flags
        return _memory.Flags(C_CONTIGUOUS=flags.c_contiguous, F_CONTIGUOUS=flags.f_contiguous)

    @property
    def alloc_size(self) -> int:
        """The bytes from the array's first address to its last; 0 for an empty array."""
        return _memory.bytes_spanned(self)

    _cuda_memsize_ = alloc_size

    @property
    def gpu_data(self) -> _memory.MemoryPointer:
        """The memory that the array spans."""
        low, high = span(self.shape, self.strides, self.itemsize)
        context = _devices.gpus[self._ordinal].get_primary_context()
        return _memory.MemoryPointer.of(context, _memory.bytes_at(self, low, high - low))

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        """Has strides unless the array is C-contiguous, and the array's stream, if any."""
        interface = super().__cuda_array_interface__
        if _memory.is_contiguous(self):
            interface["strides"] = None
        if self.stream:
            _stream.order_behind_default(self.stream)
            interface["stream"] = protocols.stream_number(self.stream)
        return interface

    def as_cuda_arg(self) -> _memory.MemoryPointer:
        """Returns :attr:`gpu_data`."""
        return self.gpu_data

    @property
    def device_ctypes_pointer(self) -> _memory.DeviceAddress:
        """The address of the first element as an object of ctypes."""
        return _memory.DeviceAddress(self.ptr)

    def get_ipc_handle(self) -> IpcArrayHandle:
        """Returns a handle that another process opens; keep the array until that is done.

        Raises ``pygpu.driver.Unsupported`` if the backend or the kind of memory cannot be shared.
        """
        handle = _devices.current_context().get_ipc_handle(self.gpu_data)
        described = {"shape": self.shape, "strides": self.strides, "dtype": self.dtype}
        return IpcArrayHandle(handle, described)

    @overload
    def copy_to_host(self, ary: None = None, stream: Any = 0) -> np.ndarray[Any, Any]: ...
    @overload
    def copy_to_host(self, ary: _Host, stream: Any = 0) -> _Host: ...
    def copy_to_host(self, ary: Any = None, stream: Any = 0) -> Any:
        """Copies to ``ary``, a numpy array of this shape, dtype and strides, or to a new one.

        On a ``stream`` the copy to page-locked memory is asynchronous.
        """
        stream = self._default_stream(stream)
        if ary is None:
            return self.get(async_=bool(stream), stream=_memory.stream_or_none(stream))
        if not isinstance(ary, np.ndarray | np.void):
            raise _arguments.wrong_type("ary", ary, "a numpy array is needed")
        _memory.check_array_compatibility(self, ary)
        if not ary.size:
            return ary
        if isinstance(ary, np.void):
            record = self.get(stream=_memory.stream_or_none(stream))
            for name in record.dtype.names or ():
                ary[name] = record[name]
            return ary
        # The strides for this shape; axes of extent 1 may differ.
        steps = iter([step for step, side in zip(ary.strides, ary.shape) if side != 1])
        strides = tuple(next(steps) if side != 1 else self.itemsize for side in self.shape)
        target = np.lib.stride_tricks.as_strided(ary, self.shape, strides)
        self.get(target, async_=bool(stream), stream=_memory.stream_or_none(stream))
        return ary

    def copy_to_device(self, ary: Any, stream: Any = 0) -> None:
        """Copies ``ary``, on the host or a device, of the same shape and dtype, into the array.

        The copy is queued on ``stream``; if that is 0, host elements are copied on return.
        """
        is_on_device = hasattr(ary, "__cuda_array_interface__")
        if not is_on_device:
            ary = np.asanyarray(ary)
        if ary.size == 0:
            return
        _memory.sentry_contiguous(self)
        stream = self._default_stream(stream)
        core = _memory.array_core(GPUArray.view(self))
        if not is_on_device:
            order = "C" if core.flags.c_contiguous else "F"
            host = np.asarray(_memory.array_core(ary), order=order)  # type: ignore[call-overload]
            _memory.check_array_compatibility(core, host)
            core.set(
                host.reshape(core.shape), async_=bool(stream), stream=_memory.stream_or_none(stream)
            )
            if not stream:
                _stream.default_stream().synchronize()
            return
        other = ary if isinstance(ary, GPUArray) else protocols.from_cuda_array_interface(ary)
        _memory.sentry_contiguous(other)
        source = _memory.array_core(GPUArray.view(other))
        _memory.check_array_compatibility(core, source)
        _memory.copy_elements(core, source, stream)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray[Any, Any]:
        """Copies the elements to the host; numpy's functions call this method."""
        if copy is False:
            raise ValueError("`copy=False` is not supported: reaching the host takes a copy")
        host = self.copy_to_host()
        return host if dtype is None else host.astype(dtype, copy=False)

    def __array_function__(self, func: Any, types: Any, args: Any, kwargs: Any) -> Any:
        if func.__name__ in ("shape", "ndim", "size"):
            return super().__array_function__(func, types, args, kwargs)
        # As with numba: these call the method of the same name, all others work on copies.
        if func.__name__ in ("transpose", "reshape", "ravel", "squeeze"):
            return func._implementation(*args, **kwargs)
        return func(*_on_host(args), **{name: _on_host(value) for name, value in kwargs.items()})

    def bind(self, stream: Any = 0) -> DeviceNDArray:
        """Returns a view whose transfers use ``stream`` unless they name another one."""
        view = self._as_own(GPUArray.view(self))
        view.stream = stream
        return view

    @property
    def T(self) -> DeviceNDArray:
        """The array with its axes reversed: see :meth:`transpose`."""
        return self.transpose()

    def transpose(self, *positions: Any, axes: Any = None) -> DeviceNDArray:
        """Returns a copy in C order, its axes in the order ``*positions`` or ``axes``, or reversed.

        If the order does not change, returns the array itself. Unlike in numba, any number of axes
        is allowed.
        """
        if axes is None and positions:
            axes = positions if isinstance(positions[0], int) else positions[0]
        order = tuple(reversed(range(self.ndim))) if axes is None else tuple(axes)
        if sorted(order) != list(range(self.ndim)):
            raise ValueError(f"invalid axes list {axes!r}")
        if order == tuple(range(self.ndim)) and isinstance(self, self._view_class):
            return self
        view = GPUArray.transpose(self, order)
        strides = _memory.contiguous_strides(view.shape, self.itemsize, "C")
        result = self._view_class(view.shape, strides, self.dtype, self.stream)
        GPUArray.__setitem__(result, ..., view)
        return result

    def squeeze(self, axis: Any = None, stream: Any = 0) -> DeviceNDArray:  # type: ignore[override]
        """Returns a view on ``stream`` without the axes ``axis``, by default all of extent 1."""
        if axis is None:
            axes = {axis for axis, side in enumerate(self.shape) if side == 1}
        else:
            axes = set()
            for entry in axis if isinstance(axis, tuple | list) else (axis,):
                number = _arguments.whole("axis", entry)
                if not -self.ndim <= number < self.ndim:
                    raise ValueError(f"axis is {number}; the ndim of the array is {self.ndim}")
                if self.shape[number] != 1:
                    raise ValueError(
                        f"axis is {number}, whose extent is {self.shape[number]}; only axes of "
                        "extent 1 can be left out"
                    )
                axes.add(number % self.ndim)
        kept = [axis for axis in range(self.ndim) if axis not in axes]
        shape = tuple(self.shape[axis] for axis in kept)
        return self._at(shape, tuple(self.strides[axis] for axis in kept), stream=stream)

    def view(self, dtype: DTypeLike) -> DeviceNDArray:  # type: ignore[override]
        """Returns a view of the bytes as ``dtype``; the last axis is resized with the itemsize."""
        dtype = np.dtype(dtype)
        shape, strides = list(self.shape), list(self.strides)
        if dtype.itemsize != self.itemsize:
            if not self.flags["C_CONTIGUOUS"] or not shape:
                raise ValueError(
                    "To change to a dtype of a different size, the array must be C-contiguous"
                )
            shape[-1], rest = divmod(shape[-1] * self.itemsize, dtype.itemsize or 1)
            if rest or not dtype.itemsize:
                raise ValueError(
                    "When changing to a larger dtype, its size must be a divisor of the total "
                    "size in bytes of the last axis of the array."
                )
            strides[-1] = dtype.itemsize
        return self._at(tuple(shape), tuple(strides), dtype)


def _on_host(value: Any) -> Any:
    """Returns an argument of a numpy function, with device arrays copied to the host."""
    if isinstance(value, DeviceNDArrayBase):
        return value.copy_to_host()
    if isinstance(value, tuple | list):
        return type(value)(map(_on_host, value))
    return value


def _is_view(key: Any) -> bool:
    entries = key if isinstance(key, tuple) else (key,)
    return not any(isinstance(it, bool | np.bool_ | np.ndarray | GPUArray | list) for it in entries)


def _check_fits(source: Any, target: GPUArray) -> None:
    if source.ndim > target.ndim:
        raise ValueError(f"Can't assign {source.ndim}-D array to {target.ndim}-D self")
    for axis in range(-1, -source.ndim - 1, -1):
        theirs, ours = source.shape[axis], target.shape[axis]
        if theirs not in (1, ours):
            raise ValueError(
                f"Can't copy sequence with size {theirs} to array axis {axis % target.ndim} with "
                f"dimension {ours}"
            )


class DeviceNDArray(_memory.Contiguity, DeviceNDArrayBase):
    """An array in device memory with numba's methods; :func:`pygpu.cuda.to_device` returns it.

    ``shape`` and ``strides`` (in bytes) are ints or tuples; ``dtype`` is the type of the elements.
    Transfers are on ``stream`` unless they name another. ``gpu_data`` is a MemoryPointer, a
    GPUArray or an address; by default the memory is new.

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

    def reshape(self, *newshape: Any, order: Literal["C", "F", "A"] = "C") -> DeviceNDArray:  # type: ignore[override]
        """Returns a view with extents ``*newshape``, one of which may be -1, in ``order``."""
        return self._without_copy(GPUArray.reshape(self, *newshape, order=order))

    def ravel(self, order: Literal["C", "F", "A"] = "C", stream: Any = 0) -> DeviceNDArray:  # type: ignore[override]
        """Returns the elements as one axis in ``order``: a view on ``stream``.

        Raises ``NotImplementedError`` if a view is not possible.
        """
        result = self._without_copy(GPUArray.ravel(self, order), stream)
        if result.size > 1 and result.strides != (self.itemsize,):
            raise NotImplementedError(f"operation requires copying: {self.strides} leave gaps")
        return result

    def _without_copy(self, result: GPUArray, stream: Any = 0) -> DeviceNDArray:
        if result.size and result.ptr != self.ptr:
            raise NotImplementedError(f"operation requires copying: {self.strides} allow no view")
        return self._as_own(result, stream)

    def split(self, section: int, stream: Any = 0) -> Iterator[DeviceNDArray]:
        """Yields views, on ``stream``, of ``section`` elements each; the last may be shorter."""
        section = _arguments.whole("section", section)
        if self.ndim != 1:
            raise ValueError(f"the ndim of the array is {self.ndim}; only support 1d array")
        if self.size > 1 and self.strides[0] != self.itemsize:
            raise ValueError(f"the array has stride {self.strides[0]}; only support unit stride")
        if section < 1:
            raise ValueError(f"section is {section}; it must be positive")
        for start in range(0, self.size, section):
            yield self._as_own(GPUArray.__getitem__(self, slice(start, start + section)), stream)

    def __getitem__(self, index: Any) -> Any:
        return self.getitem(index)

    def getitem(self, item: Any, stream: Any = 0) -> Any:
        """Returns an element as a number on the host or a record, or a view on ``stream``.

        ``item`` may also be an array of indices or a mask, unlike in numba; the result is a copy.
        """
        view = GPUArray.__getitem__(self, item)
        entries = item if isinstance(item, tuple) else (item,)
        if view.ndim or any(entry is Ellipsis for entry in entries):
            return self._as_own(view, stream)
        stream = self._default_stream(stream)
        if self.dtype.names is not None:
            return DeviceRecord(self.dtype, stream, view)
        return view.get(stream=_memory.stream_or_none(stream))[()]

    def __setitem__(self, index: Any, value: Any) -> None:
        self.setitem(index, value)

    def setitem(self, key: Any, value: Any, stream: Any = 0) -> None:
        """Sets the elements ``key`` to ``value``, a number or an array that broadcasts.

        The work is queued on ``stream``; if that is 0, the call returns once it is done.
        """
        stream = self._default_stream(stream)
        target = GPUArray.__getitem__(self, key)
        if hasattr(value, "__cuda_array_interface__"):
            _check_fits(value, target)
            is_own = isinstance(value, GPUArray)
            source = value if is_own else protocols.from_cuda_array_interface(value)
            # The core orders this after other uses of both.
            GPUArray.__setitem__(self, key, GPUArray.view(source))
            if stream:
                _stream.order_behind_default(stream)
        else:
            host = np.asarray(value)
            _check_fits(host, target)
            host = np.ascontiguousarray(np.broadcast_to(host, target.shape), self.dtype)
            host = host.reshape(target.shape)
            if _is_view(key):
                target.set(host, async_=bool(stream), stream=_memory.stream_or_none(stream))
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
            names = self.dtype.names
            raise KeyError(f"{name!r} is not a field of the record; it has {names}") from None

    def __getitem__(self, item: Any) -> Any:
        return self.getitem(item)

    def getitem(self, item: str, stream: Any = 0) -> Any:
        """Returns the field ``item``, read in the order of ``stream``: a number on the host, a
        record, or a view of a field with a shape.
        """
        dtype, offset = self._field(item)
        stream = self._default_stream(stream)
        if dtype.shape:
            base = dtype.base
            strides = _memory.contiguous_strides(dtype.shape, base.itemsize, "C")
            return self._at(dtype.shape, strides, base, stream, offset)
        memory = _memory.bytes_at(self, offset, dtype.itemsize)
        if dtype.names is not None:
            return DeviceRecord(dtype, stream, memory)
        return memory.get(stream=_memory.stream_or_none(stream)).view(dtype)[0]

    def __setitem__(self, key: Any, value: Any) -> None:
        self.setitem(key, value)

    def setitem(self, key: str, value: Any, stream: Any = 0) -> None:
        """Sets the field ``key`` to ``value``, converted; ``stream`` is as for a DeviceNDArray."""
        dtype, offset = self._field(key)
        stream = self._default_stream(stream)
        host = np.zeros(dtype.shape, dtype.base)
        host[...] = value
        _memory.bytes_at(self, offset, dtype.itemsize).set(
            np.frombuffer(host.tobytes(), _memory.BYTE),
            bool(stream),
            _memory.stream_or_none(stream),
        )


DeviceNDArrayBase._view_class = DeviceNDArray
