"""Arrays and columns in Dask: importing this module registers their serialisers, and what
``dask.array`` needs for chunks on the device.

``distributed`` then sends a :class:`~pygpu.gpuarray.GPUArray`, a
:class:`~pygpu.arrow.DeviceColumn` and a :class:`~pygpu.arrow.DeviceRecordBatch` between workers as
it does CuPy's arrays: over TCP by one copy from the device and one to the receiver's, over UCX
without the host. An array arrives without gaps, its axes in the same memory order. An object that
does not fit on the receiver's device stays in host memory as a :class:`LeftOnHost`; any use raises
``MemoryError``.

Every process that sends or receives needs the import. Workers that this process starts afterwards
import the module themselves, since it adds itself to ``distributed.worker.preload``. Start other
workers by ``dask worker --preload pygpu.dask``, or call ``client.run(importlib.import_module,
"pygpu.dask")``. The package ``distributed`` has to be installed.

>>> import pygpu.dask
>>> from distributed.protocol import deserialize, serialize
>>> header, frames = serialize(gpuarray.arange(6, dtype="i4")[::2])
>>> [frame.nbytes for frame in frames]
[12]
>>> deserialize(header, frames)
array([0, 2, 4], dtype=int32)
"""

from __future__ import annotations

import builtins
import json
import math
from collections.abc import Callable
from typing import Any

import numpy as np

from . import _core
from ._array.as_numpy.order import bincount, lexsort, unique
from ._array.reductions import shape_of
from ._core import GPUArray
from ._errors import MemoryError
from ._exchange.descriptor import dtype_of, loads_json, members, name_of, whole
from ._exchange.protocols import from_cuda_array_interface
from .arrow import Context, CudaBuffer, DeviceColumn, DeviceRecordBatch
from .arrow._column import column_of, parts_of
from .gpuarray import arange, asarray, broadcast_to, empty
from .ipc import OpenedColumn

try:
    import dask.array
    import dask.config
    from dask.array import routines
    from dask.array.dispatch import empty_lookup, numel_lookup, percentile_lookup
    from dask.array.percentile import _percentile
    from dask.sizeof import sizeof
    from dask.tokenize import normalize_token
    from distributed.protocol import dask_deserialize, dask_serialize
    from distributed.protocol.cuda import cuda_deserialize, cuda_serialize
except ImportError as _error:
    raise ImportError("pygpu.dask needs distributed: pip install distributed") from _error

__all__ = ["LeftOnHost"]

_PARTS = ("dtype", "shape", "order", "repeated")
_MOST_AXES = 64

Header = dict[str, Any]


def _kept(array: Any) -> Any:
    """Returns the array with one element along each axis of stride 0."""
    return array[tuple(slice(None if step else 1) for step in array.strides)]


def _flat(array: Any) -> tuple[Any, list[int]]:
    """Returns an array's bytes and its axes in memory order; refuses arrays with gaps."""
    order = sorted(range(array.ndim), key=lambda axis: -array.strides[axis])
    ordered = array.transpose(order) if order else array
    if not ordered.flags.c_contiguous:
        raise BufferError(f"the strides are {array.strides} for the shape {array.shape}")
    return ordered.reshape(-1).view(np.uint8), order


def _described(array: GPUArray, order: list[int]) -> Header:
    try:
        name = name_of(array.dtype)
        is_named = dtype_of("dtype", json.loads(json.dumps(name))) == array.dtype
    except (TypeError, ValueError):
        is_named = False
    if not is_named:
        raise NotImplementedError(f"dtype {array.dtype} has no name; it is pickled")
    extents = zip(array.shape, array.strides)
    repeated = [axis for axis, (n, step) in enumerate(extents) if step == 0 and n > 1]
    parts = {"dtype": name, "shape": array.shape, "order": order, "repeated": repeated}
    return {"array": json.dumps(parts)}


def _arranged(header: Header, flat: Any) -> tuple[Any, tuple[int, ...]]:
    """Returns the array that bytes contain, broadcast to its shape."""
    parts = members("the header", loads_json("the header", header["array"]), _PARTS)
    dtype = dtype_of("dtype", parts["dtype"])
    for name in _PARTS[1:]:
        if not isinstance(parts[name], list) or len(parts[name]) > _MOST_AXES:
            raise TypeError(f"{name} is {parts[name]!r:.80}; a list of numbers is needed")
    shape = [whole("shape", extent) for extent in parts["shape"]]
    order = [whole("order", axis) for axis in parts["order"]]
    if sorted(order) != list(range(len(shape))):
        raise ValueError(f"order is {order}; each axis of shape {shape} is needed once")
    extents = list(shape)
    for axis in parts["repeated"]:
        extents[whole("repeated", axis, 0, len(shape) - 1)] = 1
    ordered = flat.view(dtype).reshape([extents[axis] for axis in order])
    back = [order.index(axis) for axis in range(len(order))]
    return (ordered.transpose(back) if back else ordered), tuple(shape)


def _repeated(array: GPUArray, shape: tuple[int, ...]) -> GPUArray:
    return array if array.shape == shape else broadcast_to(array, shape)


def _own_class(array: GPUArray) -> None:
    """Returns False for subclasses, which pickle serialises."""
    if type(array) is not GPUArray:
        raise NotImplementedError(f"{type(array).__name__} is pickled")


def _array_to_host(array: GPUArray) -> tuple[Header, list[memoryview]]:
    _own_class(array)
    flat, order = _flat(_kept(array).get())
    return _described(array, order), [flat.data]


def _array_from_host(header: Header, frames: list[Any]) -> GPUArray:
    host, shape = _arranged(header, _host_bytes(*frames))
    return _repeated(_core.to_gpu(host), shape)


def _array_to_device(array: GPUArray) -> tuple[Header, list[GPUArray]]:
    _own_class(array)
    _needs_gpu()
    kept = _kept(array)
    try:
        flat, order = _flat(kept)
    except BufferError:
        flat, order = _flat(kept.copy())
    return _described(array, order), [flat]


def _array_from_device(header: Header, frames: list[Any]) -> GPUArray:
    array, shape = _arranged(header, _device_bytes(*frames))
    return _repeated(array, shape)


def _counts(
    array: GPUArray, axis: Any = None, keepdims: bool = False, dtype: Any = np.float64
) -> GPUArray:
    """Returns how many elements a reduction of an array joins in each of its results."""
    shape = shape_of(array, {"axis": axis, "keepdims": keepdims})
    return _core.full(shape, dtype, array.size // max(math.prod(shape), 1))


_unique_of_numpy, _argwhere_of_numpy = routines._unique_internal, routines.argwhere


def _unique(ar: Any, indices: Any, counts: Any, return_inverse: bool = False) -> Any:
    """Returns a record for each distinct element of a chunk, of ``dask.array.unique``."""
    if not isinstance(ar, GPUArray):
        return _unique_of_numpy(ar, indices, counts, return_inverse)
    values, group = unique(ar, return_inverse=True)
    places = arange(values.size, dtype=np.intp)
    columns: dict[str, Any] = {"values": values}
    if indices is not None:
        # The least index of each value is the first one in this order.
        ordered = asarray(indices)[lexsort((asarray(indices), group))]
        sizes = bincount(group, minlength=values.size)
        columns["indices"] = ordered[sizes.cumsum() - sizes] if values.size else places
    if return_inverse:
        columns["inverse"] = places
    if counts is not None:
        columns["counts"] = bincount(group, asarray(counts), values.size).astype(np.intp)
    records = empty(values.shape, np.dtype([(name, it.dtype) for name, it in columns.items()]))
    for name, it in columns.items():
        records[name] = it
    return records


def _argwhere(a: Any) -> Any:
    """Replaces ``dask.array.argwhere``, and also accepts chunks on the device."""
    a = dask.array.asarray(a)
    if not isinstance(a._meta, GPUArray):
        return _argwhere_of_numpy(a)
    places = dask.array.indices(a.shape, np.intp, a.chunks)
    places = dask.array.stack([it.ravel() for it in places], axis=1)
    places = places.map_blocks(asarray, meta=GPUArray((0, 0), np.intp))
    return dask.array.compress(a.astype(bool).ravel(), places, axis=0)


def _column_parts(column: DeviceColumn) -> tuple[Header, list[CudaBuffer]]:
    value, buffers = parts_of(column)
    return {"column": json.dumps(value)}, buffers


def _column_of(header: Header, buffers: list[CudaBuffer]) -> DeviceColumn:
    value = loads_json("the header", header["column"])
    return column_of(value, buffers, Context(_core.current_ordinal()))


def _column_to_host(column: DeviceColumn) -> tuple[Header, list[memoryview]]:
    header, buffers = _column_parts(column)
    return header, [buffer._host_copy().data for buffer in buffers]


def _column_from_host(header: Header, frames: list[Any]) -> DeviceColumn:
    context = Context(_core.current_ordinal())
    return _column_of(header, [context.buffer_from_data(frame) for frame in frames])


def _column_to_device(column: DeviceColumn) -> tuple[Header, list[GPUArray]]:
    _needs_gpu()
    header, buffers = _column_parts(column)
    return header, [buffer.to_gpuarray() for buffer in buffers]


def _column_from_device(header: Header, frames: list[Any]) -> DeviceColumn:
    context = Context(_core.current_ordinal())
    arrays = [_device_bytes(frame) for frame in frames]
    return _column_of(header, [CudaBuffer._over(array, context) for array in arrays])


class LeftOnHost(np.lib.mixins.NDArrayOperatorsMixin):
    """An array or a column that did not fit on the device when it was received.

    Any use raises ``MemoryError``, so that the task fails; an error while the message is read would
    make ``distributed`` wait for ever. When sent on, it is again the array or column, of class
    ``kind``. ``header`` and ``frames`` are the serialiser's, and ``error`` is the reason.

    >>> from distributed.protocol import serialize
    >>> header, frames = serialize(gpuarray.arange(3))
    >>> left = LeftOnHost(gpuarray.GPUArray, header["sub-header"], frames, MemoryError("no room"))
    >>> left + 1
    Traceback (most recent call last):
        ...
    pygpu._errors.MemoryError: a GPUArray of size 24 was left in host memory when it was ...
    >>> left.restore()
    array([0, 1, 2])
    """

    def __init__(self, kind: type, header: Header, frames: list[Any], error: Exception) -> None:
        self._kind, self._header, self._frames = kind, header, frames
        self._why = str(error)

    @property
    def nbytes(self) -> int:
        """The bytes in host memory."""
        return sum(memoryview(frame).nbytes for frame in self._frames)

    def restore(self) -> Any:
        """Returns the array or column on the device. Raises ``MemoryError`` if it does not fit."""
        return _BY_HOST[self._kind][1](self._header, self._frames)

    def _unusable(self) -> MemoryError:
        return MemoryError(
            f"a {self._kind.__name__} of size {self.nbytes} was left in host memory when it was "
            f"received: {self._why}"
        )

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        raise self._unusable()

    def __array_ufunc__(self, *_: Any, **__: Any) -> Any:
        raise self._unusable()

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        raise self._unusable()

    def __getitem__(self, _: Any) -> Any:
        raise self._unusable()

    def __len__(self) -> int:
        raise self._unusable()

    def __repr__(self) -> str:
        return f"<LeftOnHost, a {self._kind.__name__} of {self.nbytes} bytes>"


def _or_left(kind: type) -> Callable[..., Any]:
    """Returns the function that receives objects of a class, or leaves them on the host."""

    def receive(header: Header, frames: list[Any]) -> Any:
        try:
            return _BY_HOST[kind][1](header, frames)
        except builtins.MemoryError as error:
            return LeftOnHost(kind, header, frames, error)

    return receive


def _left_to_host(left: LeftOnHost) -> tuple[Header, list[Any]]:
    return {"kind": left._kind.__name__, "header": left._header}, left._frames


def _left_from_host(header: Header, frames: list[Any]) -> Any:
    kinds = {kind.__name__: kind for kind in _BY_HOST}
    return _or_left(kinds[header["kind"]])(header["header"], frames)


def _host_bytes(frame: Any) -> np.ndarray:
    view = memoryview(frame)
    return np.frombuffer(view, np.uint8) if view.nbytes else np.empty(0, np.uint8)


def _device_bytes(frame: Any) -> GPUArray:
    """Returns the device memory of a transport."""
    flat = frame if isinstance(frame, GPUArray) else from_cuda_array_interface(frame)
    return flat.reshape(-1).view(np.uint8)


def _needs_gpu() -> None:
    if _core.choose_backend() == "host":
        raise NotImplementedError("the memory of the host backend is not a GPU's")


def _batch(function: Callable[..., Any]) -> Callable[..., Any]:
    return lambda batch: function(batch._column)


def _to_batch(function: Callable[..., DeviceColumn]) -> Callable[..., DeviceRecordBatch]:
    return lambda header, frames: DeviceRecordBatch._over(function(header, frames))


def _register() -> None:
    for kind, (send, _) in _BY_HOST.items():
        dask_serialize.register(kind, send)
        dask_deserialize.register(kind, _or_left(kind))
    dask_serialize.register(LeftOnHost, _left_to_host)
    dask_deserialize.register(LeftOnHost, _left_from_host)
    for kind, (send, receive) in _BY_DEVICE.items():
        cuda_serialize.register(kind, send)
        cuda_deserialize.register(kind, receive)
    for kind in (*_BY_HOST, CudaBuffer, LeftOnHost):
        sizeof.register(kind, _nbytes)
    sizeof.register(OpenedColumn, lambda it: sum(_nbytes(part) for part in (it.data, it.mask)))
    for kind in _BY_HOST:
        normalize_token.register(kind, _token)
    numel_lookup.register(GPUArray, _counts)
    empty_lookup.register(GPUArray, empty)
    percentile_lookup.register(GPUArray, _percentile)
    # No dispatch of dask's is for these.
    routines._unique_internal = _unique
    routines.argwhere = dask.array.argwhere = _argwhere
    preloaded = dask.config.get("distributed.worker.preload")
    if __name__ not in preloaded:
        dask.config.set({"distributed.worker.preload": [*preloaded, __name__]})


def _token(value: Any) -> Any:
    """Returns an argument's part of a task's key: its class and its content."""
    if isinstance(value, GPUArray):
        return type(value).__name__, normalize_token(value.get())
    header, frames = _BY_HOST[type(value)][0](value)
    return type(value).__name__, header, [normalize_token(np.asarray(frame)) for frame in frames]


def _nbytes(value: Any) -> int:
    if isinstance(value, CudaBuffer):
        return value.size
    return 0 if value is None else int(value.nbytes)


_BY_HOST: dict[type, tuple[Callable[..., Any], ...]] = {
    GPUArray: (_array_to_host, _array_from_host),
    DeviceColumn: (_column_to_host, _column_from_host),
    DeviceRecordBatch: (_batch(_column_to_host), _to_batch(_column_from_host)),
}
_BY_DEVICE: dict[type, tuple[Callable[..., Any], ...]] = {
    GPUArray: (_array_to_device, _array_from_device),
    DeviceColumn: (_column_to_device, _column_from_device),
    DeviceRecordBatch: (_batch(_column_to_device), _to_batch(_column_from_device)),
}

_register()
