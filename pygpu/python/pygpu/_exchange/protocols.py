"""Exchange of arrays with other libraries, by DLPack and by ``__cuda_array_interface__``.

Kernels from expressions also take objects with ``gpudata``, the address of their elements.
"""

from __future__ import annotations

import contextlib
import math
import operator
import os
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from .. import _arguments, _core
from .._core import Event, GPUArray, Stream
from .._driver.device import Device
from .._errors import InvalidArgument
from ..compyte.array import c_contiguous_strides, span


class _Kind(NamedTuple):
    """DLPack's numbers for the kinds of devices of a backend."""

    own: int
    # Other types of memory that its kernels use: page-locked and managed.
    others: tuple[int, ...]


_CPU = 1
_KINDS = {"cuda": _Kind(2, (3, 13)), "hip": _Kind(10, (11,)), "host": _Kind(_CPU, ())}

# The latest version of DLPack's capsules that are made.
_VERSION = (1, 1)

# DLPack's codes of kinds of elements.
_CODES = {"i": 0, "u": 1, "f": 2, "c": 5, "b": 6}
# The codes of dtypes that numpy lacks, by name, with the bits of an element.
_EXTENSIONS = _core.extension_dtypes()

# The numbers of the default streams in __cuda_array_interface__, and in DLPack for CUDA.
_LEGACY, _PER_THREAD = 1, 2


def _kind() -> _Kind:
    return _KINDS[_core.choose_backend()]


def _code_of(dtype: np.dtype[Any]) -> int | None:
    extension = _EXTENSIONS.get(dtype.name)
    return extension[0] if extension else _CODES.get(dtype.kind)


def _dtype_of(code: int, bits: int) -> np.dtype[Any] | None:
    """Returns the dtype of DLPack's elements, or None; TypeError if its package is missing."""
    letter = {code: letter for letter, code in _CODES.items()}.get(code)
    for name, extension in _EXTENSIONS.items():
        if extension == (code, bits):
            return _core.extension_dtype(name)
    try:
        if letter is None or bits % 8 or bits > (128 if letter == "c" else 64):
            return None
        return np.dtype("?" if letter == "b" and bits == 8 else f"{letter}{bits // 8}")
    except TypeError:
        return None


def host_memory(address: int, size: int) -> np.ndarray:
    """Returns a copy of host memory. A wrong address raises an error and does not crash."""
    try:
        result = np.empty(size, np.uint8)
        with open("/proc/self/mem", "rb", buffering=0) as memory:
            if not os.pread(memory.fileno(), 1, address + size - 1):
                raise OSError("no memory")
            done = 0
            while done < size:
                count = os.preadv(memory.fileno(), [result.data[done:]], address + done)
                if count == 0:
                    raise OSError("no memory")
                done += count
    except (OSError, OverflowError, MemoryError) as error:
        raise ValueError(f"the address {address:#x} is not in memory of size {size}") from error
    return result


class _HeldAddress(int):
    """An address of memory; this object keeps the memory alive."""

    hold: Any

    def __reduce__(self) -> tuple[Any, ...]:
        return int, (int(self),)


def describe(
    array: Any, address: int, stream: int | None, is_read_only: bool = False, hold: Any = None
) -> dict[str, Any]:
    """Returns the ``__cuda_array_interface__`` of an array, version 3.

    Other libraries may use the memory after the work of ``stream``. ``hold`` is kept alive.
    """
    dtype, held = array.dtype, _HeldAddress(address)
    held.hold = hold
    result = {
        "shape": tuple(array.shape),
        "strides": tuple(array.strides),
        "data": (held, is_read_only),
        "typestr": dtype.str,
        "stream": None if stream is None else stream_number(stream),
        "version": 3,
    }
    if dtype.names:
        # numpy cannot describe overlapping or unordered fields; such elements are bytes.
        with contextlib.suppress(ValueError):
            result["descr"] = dtype.descr
    return result


def stream_number(stream: Any) -> int:
    """Returns a stream's handle as the protocols number it: the default stream is not 0."""
    return int(stream) or _LEGACY


def dlpack_device(array: GPUArray) -> tuple[int, int]:
    """Returns DLPack's type and number of the device that an array is on."""
    own = _kind().own
    return (own, 0 if own == _CPU else array._ordinal)


def dlpack(
    array: GPUArray,
    *,
    stream: Any = None,
    max_version: Any = None,
    dl_device: Any = None,
    copy: bool | None = None,
) -> Any:
    """Exports an array as a DLPack capsule: ``GPUArray.__dlpack__``.

    Raises ``BufferError`` if DLPack does not support the elements or strides, if ``dl_device`` is
    another device, or if a copy is needed and was refused.

    Parameters
    ----------
    array : GPUArray. The array.
    stream : int or None. The consumer's stream; it waits for the work that writes the array. On
        CUDA 1 is the legacy default stream (like None), 2 the thread's; with ROCm 0 is the default
        stream (like None). -1 asks for no order. On the host it is None or -1, and None waits.
    max_version : tuple of int or None. The latest version that the consumer reads. Below (1, 0) the
        capsule is of the old form.
    dl_device : tuple of int or None. The consumer's device: the array's, or (1, 0), the host.
    copy : bool or None. True or False if the result must or must not be a copy.
    """
    device, copy = dlpack_device(array), _arguments.truth("copy", copy)
    latest = None if max_version is None else _arguments.pair("max_version", max_version)
    version = min(latest, _VERSION) if latest and latest[0] >= 1 else None
    if dl_device is not None and _arguments.pair("dl_device", dl_device) != device:
        if _arguments.pair("dl_device", dl_device) != (_CPU, 0):
            raise BufferError(f"dl_device is {dl_device}; the array is on {device}")
        if copy is False:
            raise BufferError("copy is False; an array on a GPU reaches the host by a copy")
        # The export is numpy's. Versions before 2.1 take only the stream.
        host = array.get()
        return host.__dlpack__(max_version=max_version) if version else host.__dlpack__()
    code = _code_of(array.dtype)
    if code is None:
        raise BufferError(f"dtype is {array.dtype}, which DLPack does not support")
    itemsize = array.dtype.itemsize
    handle = _check_stream(stream)
    if copy:
        array = array.copy()
    if any(stride % itemsize for stride in array.strides):
        needed = f"DLPack needs multiples of the itemsize, {itemsize}: export a copy"
        raise BufferError(f"strides are {array.strides}; {needed}")
    _order_consumer(array, handle)
    steps = [stride // itemsize for stride in array.strides]
    kind = (code, 8 * itemsize)
    return _core.dlpack_capsule(array, device, kind, steps, version, bool(copy))


def _check_stream(stream: Any) -> int | None:
    """Returns the number of a consumer's stream; raises BufferError for one that is not allowed."""
    handle = None if stream is None else _arguments.whole("stream", stream)
    backend = _core.choose_backend()
    if backend == "host":
        if handle not in (None, -1):
            raise BufferError(f"stream is {handle}; for an array on the host it is None or -1")
        return handle
    refused = {"cuda": (0,), "hip": (1, 2)}[backend]
    if handle is not None and (not -1 <= handle < 1 << 64 or handle in refused):
        raise BufferError(f"stream is {handle}; on {backend} DLPack does not allow this number")
    return handle


def _order_consumer(array: GPUArray, handle: int | None) -> None:
    """Orders the consumer's stream after the work that writes an array."""
    if handle == -1:
        return
    if _core.choose_backend() == "host":
        _core.wait_for_array(array)
        return
    producer = array.__cuda_array_interface__["stream"]
    consumer = _LEGACY if handle in (None, 0) else handle
    if producer is not None and producer != consumer:
        _wait(Stream.from_handle(consumer), producer)


def _wait(stream: Stream, handle: int, owner: Any = None) -> None:
    """Orders a stream after the work on another library's stream."""
    event = Event()
    event.record(Stream.from_handle(handle, owner))
    stream.wait_for_event(event)


def from_dlpack(x: Any, /, *, device: Any = None, copy: bool | None = None) -> GPUArray:
    """Returns an array of another library as a ``GPUArray``, by DLPack: not in PyCUDA.

    Work on the result is ordered after the other library's queued work. Raises ``BufferError`` if
    no dtype fits the elements of ``x`` and, without ``copy=True``, if ``x`` is read-only or not on
    a device of this backend.

    >>> from_dlpack(np.arange(3.0), copy=True)
    array([0., 1., 2.])

    Parameters
    ----------
    x : object. An array with ``__dlpack__`` and ``__dlpack_device__``: of torch, CuPy, JAX and
        others, and of numpy on the host backend.
    device : pygpu.driver.Device or tuple of int, optional. The device of the result: the device of
        ``x``, or with ``copy=True`` the current one.
    copy : bool, optional. True copies the elements. By default only ordinary memory on the host
        backend is copied; False refuses that.
    """
    try:
        export, device_of = x.__dlpack__, x.__dlpack_device__
    except AttributeError:
        needed = "an array with __dlpack__ and __dlpack_device__ is needed"
        raise _arguments.wrong_type("x", x, needed) from None
    there = _arguments.pair("what __dlpack_device__ returned", device_of())
    kind, copy = _kind(), _arguments.truth("copy", copy)
    is_here = there[0] in (kind.own, *kind.others)
    if device is not None:
        is_own = isinstance(device, Device)
        wanted = (kind.own, device.ordinal) if is_own else _arguments.pair("device", device)
        if kind.own == _CPU:
            wanted = (wanted[0], 0)
        if wanted != there and not (copy and wanted[0] == kind.own):
            raise BufferError(f"device is {device}; x is on {there}, and copy is {copy}")
    is_host = there[0] == _CPU
    if not is_here and not (is_host and copy):
        hint = "; copy=True copies it" if is_host else ""
        here = f"this backend's are {kind.own}{hint}"
        raise BufferError(f"x is on the device {there} of DLPack; {here}")
    tensor = _tensor_of(_export(export, {_CPU: None, 10: 0}.get(there[0], _LEGACY)))
    try:
        # On the host only memory of its own allocator, or page-locked by it, is device memory.
        if is_host and copy is not False and not (is_here and _is_device_memory(tensor.address)):
            return _core.to_gpu(_host_view(tensor))
        result = _array_at(*tensor[:5])
    except (InvalidArgument, ValueError, TypeError) as error:
        raise BufferError(f"x cannot be used where it is: {error}") from error
    if copy:
        return result.copy()
    if tensor.is_read_only:
        raise BufferError("x is read-only, and a GPUArray is writable; copy=True copies it")
    return result


def _export(export: Any, stream: int | None) -> Any:
    """Calls ``__dlpack__`` of a library, which may be too old for versions."""
    try:
        return export(stream=stream, max_version=_VERSION)
    except TypeError:
        return export(stream=stream)


class _Tensor(NamedTuple):
    """The contents of a capsule, with strides in bytes, and the owner of the memory."""

    address: int
    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    strides: tuple[int, ...] | None
    owner: Any
    is_read_only: bool


def _tensor_of(capsule: Any) -> _Tensor:
    """Consumes a capsule, whose memory is on the host or on a device of this backend."""
    owner, address, shape, strides, kind, device, is_read_only = _core.dlpack_tensor(capsule)
    code, bits, lanes = kind
    try:
        dtype = _dtype_of(code, bits) if lanes == 1 else None
    except TypeError as error:
        raise BufferError(f"x has elements that need a package: {error}") from None
    if dtype is None:
        elements = f"code {code}, bits {bits} and lanes {lanes}"
        raise BufferError(f"the elements have {elements}, which is not a dtype of numpy")
    here = _kind()
    if device[0] not in (_CPU, here.own, *here.others):
        raise BufferError(f"the capsule's memory is on the device {device} of DLPack")
    steps = None if strides is None else tuple(step * dtype.itemsize for step in strides)
    return _Tensor(address, tuple(shape), dtype, steps, owner, is_read_only)


def _is_device_memory(address: int) -> bool:
    try:
        return address != 0 and GPUArray(1, np.uint8, gpudata=address).ptr == address
    except InvalidArgument:
        return False


def _host_view(tensor: _Tensor) -> np.ndarray[Any, Any]:
    address, shape, dtype, strides, owner, _ = tensor
    if 0 in shape or min(shape, default=0) < 0:
        # numpy refuses negative extents.
        return np.empty(shape, dtype)
    strides = _steps(shape, strides, dtype.itemsize)
    low, high = span(shape, strides, dtype.itemsize)
    if address == 0 or not 0 < address + low < address + high < 1 << 63:
        raise _unreachable(address, shape, strides)
    # Reading a wrong address would end this process.
    if os.path.exists("/proc/self/mem"):
        for byte in (address + low, address + high - 1):
            host_memory(byte, 1)
    memory = _core.address_as_buffer(address + low, high - low, owner)
    return np.ndarray(shape, dtype, memory, -low, strides)


def _steps(shape: tuple[int, ...], strides: tuple[int, ...] | None, size: int) -> tuple[int, ...]:
    if strides is None:
        return c_contiguous_strides(size, shape)
    if len(strides) != len(shape):
        return strides
    # The stride of an axis of one element may be any number.
    return tuple(size if n == 1 else it for n, it in zip(shape, strides, strict=True))


def _unreachable(address: int, shape: Any, strides: Any) -> InvalidArgument:
    return InvalidArgument(
        f"x has elements at {address:#x}, where there is no memory for shape {shape} and strides "
        f"{strides} in the address space"
    )


def _array_at(
    address: int, shape: tuple[int, ...], dtype: Any, strides: tuple[int, ...] | None, owner: Any
) -> GPUArray:
    if 0 in shape:
        return GPUArray(shape, dtype)
    if strides is not None:
        strides = _steps(shape, strides, dtype.itemsize)
    if address == 0:
        raise _unreachable(address, shape, strides)
    return GPUArray(shape, dtype, base=owner, gpudata=address, strides=strides)


def from_cuda_array_interface(x: Any, /, *, sync: bool = True) -> GPUArray:
    """Returns ``x``, an array of another library, by ``__cuda_array_interface__``: not in PyCUDA.

    The interface has version 2 or 3. Work on the result is ordered after the stream of ``x`` if
    ``sync`` is True. Raises ``BufferError`` if ``x`` is read-only, or has a mask.

    >>> class Other:
    ...     array = gpuarray.to_gpu(np.arange(3.0))
    ...     __cuda_array_interface__ = array.__cuda_array_interface__
    >>> from_cuda_array_interface(Other)
    array([0., 1., 2.])
    """
    interface = getattr(x, "__cuda_array_interface__", None)
    if not isinstance(interface, dict):
        raise _arguments.wrong_type("x", x, "an array with __cuda_array_interface__ is needed")
    return from_description(interface, x, sync)


def from_description(interface: dict[str, Any], owner: Any, sync: bool) -> GPUArray:
    """Returns the array of a ``__cuda_array_interface__``; ``owner`` owns the memory."""
    try:
        address, is_read_only = interface["data"]
        # An address of this library keeps the memory.
        address = address if isinstance(address, int) else operator.index(address)
        shape = tuple(map(operator.index, interface["shape"]))
        typestr, descr = interface["typestr"], interface.get("descr")
        strides = interface.get("strides")
        steps = None if strides is None else tuple(map(operator.index, strides))
    except (KeyError, TypeError, ValueError) as error:
        raise ValueError(f"__cuda_array_interface__ of x is incomplete: {error!r}") from None
    if is_read_only:
        raise BufferError("x is read-only, and a GPUArray is writable; copy it first")
    if interface.get("mask") is not None:
        raise BufferError("x has a mask, which a GPUArray does not support")
    dtype = _described_dtype(typestr, descr)
    # Elements that numpy lacks are bytes to the interface.
    known = getattr(owner, "dtype", None)
    if descr is None and isinstance(known, np.dtype) and known.str == typestr:
        dtype = known
    stream = interface.get("stream")
    if stream is not None and sync and 0 not in shape:
        stream = _arguments.whole("the stream of x", stream)
        if not 0 < stream < 1 << 64:
            raise ValueError(f"the stream of x is {stream}, a number that is not allowed")
        if stream != _LEGACY:
            _wait(Stream.from_handle(_LEGACY), stream, owner)
    return _array_at(address, shape, dtype, steps, owner)


def _described_dtype(typestr: Any, descr: Any) -> np.dtype[Any]:
    """Returns the dtype of a description: the fields of a record are in ``descr``."""
    try:
        dtype: np.dtype[Any] = np.dtype(_arguments.instance("typestr", typestr, str))
        record = None
        if dtype.kind == "V" and descr:
            # Without the gaps, which numpy describes as fields without a name.
            record = np.lib.format.descr_to_dtype([tuple(entry) for entry in descr])
    except (TypeError, ValueError) as error:
        raise ValueError(f"x has elements that have no dtype: {error}") from None
    if record is not None and record.itemsize != dtype.itemsize:
        sizes = f"itemsize {dtype.itemsize}, and a descr of {record.itemsize}"
        raise ValueError(f"x has elements of {sizes}: {descr}")
    return dtype if record is None else record


def adopt(
    arguments: tuple[Any, ...], declared: Sequence[tuple[np.dtype[Any], bool] | None]
) -> tuple[Any, ...]:
    """Returns the arguments of a kernel with arrays in place of objects of other libraries.

    ``declared`` has the dtype of each array, and True if the running index accesses it; None for
    numbers. If the index accesses an object without a shape, the object has the length of the first
    array with a shape. Otherwise its size is not used.
    """
    pairs = list(zip(arguments, declared))
    sizes = (math.prod(it.shape) for it, array in pairs if array and hasattr(it, "shape"))
    size = next(sizes, 1)
    adopted = [
        _foreign(it, array[0], size if array[1] else 1) if array and _is_foreign(it) else it
        for it, array in pairs
    ]
    return (*adopted, *arguments[len(declared) :])


def _is_foreign(argument: Any) -> bool:
    return not isinstance(argument, GPUArray) and getattr(argument, "gpudata", None) is not None


def _foreign(argument: Any, declared: np.dtype[Any], size: int) -> GPUArray:
    if not argument.flags.forc:
        raise RuntimeError("elementwise kernel cannot deal with non-contiguous arrays")
    shape, dtype = getattr(argument, "shape", size), getattr(argument, "dtype", declared)
    return GPUArray(shape, dtype, gpudata=argument.gpudata, base=argument)
