"""Arrays that processes share: a handle of the driver, and the layout of the array.

The exporting process keeps its exports until :func:`release`, ``descriptor.close()`` or the end of
the process. After that, a GPU's driver decides what happens to arrays that are still open. On the
host backend they read as zeros after a release, and keep their contents if the exporter has ended.

Processes must order their work themselves. An export waits for the work that was queued before it.
For later work, pass an event (:meth:`pygpu.driver.Event.ipc_handle`), or send a message after
``Context.synchronize()``.

Descriptors of other processes are not trusted: all parts are checked. ``pickle.loads`` runs code
from a pickle; :func:`loads` reads descriptors and nothing else.

Examples
--------
>>> from pygpu import ipc
>>> a = ipc.share(gpuarray.arange(6, dtype="f4"))
>>> descriptor = a[2:].ipc_handle()
>>> text = descriptor.to_json()

Another process of the same user then has the same memory, without a copy::

    with ipc.open(text) as b:
        b += 1
"""

from __future__ import annotations

import io
import math
import pickle
import pickletools
import warnings
from typing import Any

import numpy as np

from . import _arguments, _core
from ._array import DType, Order, Shape
from ._core import GPUArray
from ._driver.device import on_device
from ._errors import InvalidArgument
from ._exchange import descriptor as _descriptor
from ._exchange.descriptor import HANDLE_OCTETS, Closing, Column, Descriptor, in_any_form

__all__ = ["Column", "Descriptor", "OpenedArray", "OpenedColumn", "empty", "export"]
__all__ += ["export_column", "loads", "open", "open_column", "release", "share"]


def empty(shape: Shape, dtype: DType = np.float64, order: Order = "C") -> GPUArray:
    """Returns a new array of ``shape``, ``dtype`` and ``order`` that other processes can open.

    The elements are undefined. The memory is from ``cuMemAlloc`` or ``hipMalloc``, on the host from
    a sealed ``memfd``. Other arrays have stream-ordered memory: it is faster and cannot be shared.
    """
    dtype = np.dtype(dtype)
    nbytes = math.prod(_arguments.extents("shape", shape)) * dtype.itemsize
    if nbytes <= 0:
        return GPUArray(shape, dtype, order=order)
    return GPUArray(shape, dtype, gpudata=_core.mem_alloc(nbytes), order=order)


def share(array: GPUArray) -> GPUArray:
    """Returns a copy of ``array`` in memory that other processes can open."""
    _arguments.gpu_array("array", array)
    flags = array.flags
    with on_device(array._ordinal):
        is_fortran = flags.f_contiguous and not flags.c_contiguous
        result = empty(array.shape, array.dtype, "F" if is_fortran else "C")
        if result.size:
            result[...] = array
    return result


def export(array: GPUArray, copy: bool | None = None) -> Descriptor:
    """Returns a descriptor with which other processes open ``array``: ``GPUArray.ipc_handle``.

    The whole allocation is shared; a slice is an offset into it. This process keeps the allocation
    until :func:`release`. The call waits for the device's work. If ``copy`` is True, a copy is
    exported. By default a copy is exported, with a warning, if the memory cannot be shared:
    stream-ordered memory, and memory of a pool or of another process. Raises ``Unsupported`` if the
    device cannot share memory, and ``InvalidArgument`` if ``copy`` is False and a copy is needed.

    >>> a = empty(10, "i4")
    >>> with a[3:].ipc_handle(copy=False) as descriptor:
    ...     descriptor.offset, descriptor.nbytes
    (12, 40)
    """
    _arguments.gpu_array("array", array)
    vendor, ordinal = _core.choose_backend(), array._ordinal
    layout = array.dtype, array.shape, array.strides
    if array.size == 0:
        return Descriptor(*layout, 0, 0, ordinal, vendor, bytes(HANDLE_OCTETS))
    with on_device(ordinal):
        if copy:
            array = share(array)
        try:
            base, nbytes, handle = _handle_of(array)
        except InvalidArgument as error:
            if copy is False:
                raise InvalidArgument(
                    "copy is False, and stream-ordered memory, memory of a pool or of another "
                    "process cannot be shared: make the array with "
                    f"pygpu.ipc.empty(shape, dtype), or copy it with pygpu.ipc.share ({error})"
                ) from None
            warnings.warn(
                "the array's memory cannot be shared, so other processes get a copy, and what they "
                "write is not seen here: make the array with pygpu.ipc.empty(shape, dtype) or "
                "pygpu.ipc.share(array), or pass copy=True",
                stacklevel=2,
            )
            array = share(array)
            base, nbytes, handle = _handle_of(array)
    number = _descriptor.keep(handle, base, array)
    try:
        place = array.ptr - base, nbytes, ordinal, vendor, handle, number
        return Descriptor(array.dtype, array.shape, array.strides, *place)
    except BaseException:
        _descriptor.forget(number)
        raise


def _handle_of(array: GPUArray) -> tuple[int, int, bytes]:
    base, nbytes = _core.mem_get_address_range(array.ptr)
    return base, nbytes, bytes(_core.mem_get_ipc_handle(base))


def release(descriptor: Descriptor) -> None:
    """Releases memory that this process keeps for others under ``descriptor``.

    ``descriptor`` must be the object that :func:`export` returned. A second call, or a call with a
    copy of that object, does nothing. The memory is freed after the last use here.
    """
    _arguments.instance("descriptor", descriptor, Descriptor)
    descriptor.close()


class OpenedArray(Closing, GPUArray):
    """Another process's array, from :func:`open`; arguments are as in :class:`GPUArray`.

    It is closed by :meth:`close`, by the end of ``with``, or when the last reference to the array
    and its views is gone.

    >>> with empty(4).ipc_handle() as descriptor:
    ...     array = open(descriptor)
    ...     array.close()
    """

    _opened: _core.IPCMemoryHandle | None

    def close(self) -> None:
        """Ends the use of the memory after the device's work: later uses raise ``LogicError``.

        Memory that this process exported itself stays open.
        """
        allocation, self._opened = getattr(self, "_opened", None), None
        if allocation is None:
            return
        try:
            allocation.close()
        except BaseException:
            self._opened = allocation
            raise


def open(
    descriptor: Descriptor | dict[str, Any] | str | bytes, device: int | None = None
) -> OpenedArray:
    """Opens an array of another process.

    Two calls return two independent arrays: close each one, and order work on them yourself. In the
    exporting process, the array is over the exported memory itself. Raises ``InvalidArgument`` if
    the backend or the device of the descriptor is not available in this process.

    >>> a = share(gpuarray.arange(6, dtype="i4"))
    >>> with a[::2].ipc_handle() as descriptor, open(descriptor) as b:
    ...     b
    array([0, 2, 4], dtype=int32)

    Parameters
    ----------
    descriptor : Descriptor, dict, str or bytes. The descriptor, its parts
        (:meth:`Descriptor.to_dict`), or their JSON; see also :meth:`Descriptor.from_node` and
        :func:`loads`.
    device : int, optional. The device for the array; on another device than the descriptor's, the
        array is a copy.
    """
    source: Descriptor = in_any_form(Descriptor, "descriptor", descriptor)
    own = _core.choose_backend()
    if source.vendor != own:
        own = f"this process uses {own}, and can only open memory of {own}"
        raise InvalidArgument(f"vendor is {source.vendor}; {own}")
    count = _core.device_count()
    for name, ordinal in (("device of the descriptor", source.device), ("device", device)):
        if ordinal is not None and not 0 <= ordinal < count:
            raise InvalidArgument(f"{name} is {ordinal}; {_arguments.ordinals(count)}")
    with on_device(source.device):
        opened = _open_here(source)
    if device is None or device == source.device:
        return opened
    with opened:
        return _copy_to(opened, device)


def _open_here(descriptor: Descriptor) -> OpenedArray:
    if descriptor.size == 0:
        return OpenedArray(descriptor.shape, descriptor.dtype)
    exported = _descriptor.own_export(descriptor.handle)
    if exported is not None:
        base, array = exported
        allocated = _core.mem_get_address_range(base)[1]
        _check_size(descriptor, allocated)
        return _array(descriptor, base, array)
    allocation = _core.IPCMemoryHandle(descriptor.handle)
    try:
        allocated = allocation.size
        if allocated:
            _check_size(descriptor, allocated)
        result = _array(descriptor, int(allocation), allocation)
    except BaseException:
        allocation.close()
        raise
    result._opened = allocation
    return result


def _check_size(descriptor: Descriptor, allocated: int) -> None:
    if descriptor.nbytes > allocated:
        given = f"nbytes of the descriptor is {descriptor.nbytes}"
        raise InvalidArgument(f"{given}; the allocation has {allocated}")


def _array(descriptor: Descriptor, base: int, keeper: Any) -> OpenedArray:
    """Returns the array inside the allocation at ``base``, which ``keeper`` owns."""
    shape, strides, address = descriptor.shape, descriptor.strides, base + descriptor.offset
    return OpenedArray(shape, descriptor.dtype, base=keeper, gpudata=address, strides=strides)


def _copy_to(array: GPUArray, device: int) -> OpenedArray:
    source = array._ordinal
    with on_device(source):
        compact = array
        if not array.flags.c_contiguous:
            compact = GPUArray(array.shape, array.dtype)
            compact[...] = array
        _core.synchronize()
    with on_device(device):
        result = OpenedArray(array.shape, array.dtype)
        if array.size:
            places = result.gpudata, device, compact.gpudata, source
            _core.copy_between_devices(*places, result.size * result.itemsize, None, True)
    return result


class OpenedColumn(Closing):
    """A column of :func:`open_column`: elements ``data``, and their validity ``mask``, or None.

    >>> with export_column(empty(3, "f4")) as column, open_column(column) as opened:
    ...     opened.valid()
    array([ True,  True,  True])
    >>> opened.close()  # the end of the block has done so already
    """

    def __init__(self, data: OpenedArray, mask: OpenedArray | None) -> None:
        self.data = data
        self.mask = mask

    def valid(self) -> np.ndarray:
        """Returns a numpy array of bool: True for valid elements."""
        length = self.data.size
        if self.mask is None:
            return np.ones(length, bool)
        mask = self.mask.get()
        if mask.dtype.kind == "b":
            return mask[:length]
        bits = np.unpackbits(mask.view(np.uint8), bitorder="little")
        return bits[:length].astype(bool)

    def close(self) -> None:
        """Ends the use of the memory, like ``OpenedArray.close``."""
        try:
            self.data.close()
        finally:
            if self.mask is not None:
                self.mask.close()


def export_column(data: GPUArray, mask: GPUArray | None = None, copy: bool | None = None) -> Column:
    """Returns a column for other processes: a contiguous vector ``data``, and its validity.

    ``mask`` has a bool for each element, or a bit, the least significant bit first. A slice shares
    the whole allocation. ``copy`` has the same effect as in :func:`export`. Raises ``Unsupported``
    or ``InvalidArgument`` as :func:`export` does.

    >>> data = share(gpuarray.arange(3, dtype="f4"))
    >>> mask = share(gpuarray.to_gpu(np.array([0b101], np.uint8)))
    >>> with export_column(data, mask) as column, open_column(column) as opened:
    ...     opened.valid()
    array([ True, False,  True])
    """
    exported = [export(data, copy)]
    try:
        if mask is not None:
            exported.append(export(mask, copy))
        return Column(*exported)
    except BaseException:
        for descriptor in exported:
            descriptor.close()
        raise


def open_column(
    column: Column | dict[str, Any] | str | bytes, device: int | None = None
) -> OpenedColumn:
    """Opens ``column``, the result of :func:`export_column`, its parts, or their JSON.

    If ``device`` is given and is not the column's device, the column is copied to it. Raises
    ``InvalidArgument`` as :func:`open` does.
    """
    source: Column = in_any_form(Column, "column", column)
    data = open(source.data, device)
    try:
        mask = None if source.mask is None else open(source.mask, device)
    except BaseException:
        data.close()
        raise
    return OpenedColumn(data, mask)


# The operations of a descriptor's pickle: a name, a text, a call. Others could set parts after the
# checks, or build objects that take forever to read.
_OPERATIONS = """
    PROTO FRAME GLOBAL STACK_GLOBAL UNICODE BINUNICODE SHORT_BINUNICODE MARK TUPLE TUPLE1 REDUCE PUT
    BINPUT MEMOIZE STOP
"""
# The memory of an unpickler grows with the largest number that an object is stored under.
_MOST_KEPT = 100


def _check_operations(data: bytes) -> None:
    allowed = _OPERATIONS.split()
    for operation, argument, _ in pickletools.genops(data):
        if operation.name not in allowed:
            raise ValueError(f"{operation.name} is not an operation in the pickle of a descriptor")
        if operation.name == "PUT" and (argument or 0) > _MOST_KEPT:
            raise ValueError(f"an object is kept under the number {argument}")


class _Unpickler(pickle.Unpickler):
    """Reads descriptors, and refuses to look up anything else."""

    def find_class(self, module: str, name: str) -> Any:
        if (module, name) == (_descriptor.__name__, "_restore"):
            return _descriptor._restore
        raise pickle.UnpicklingError(f"the pickle needs {module}.{name}; a descriptor is needed")


def loads(data: bytes) -> Descriptor:
    """Returns the descriptor in the pickle ``data``, without running anything else in it."""
    if not isinstance(data, (bytes, bytearray, memoryview)):
        raise _arguments.wrong_type("data", data, "bytes are needed")
    # A copy, which nobody changes after the check.
    data = bytes(data)
    try:
        _check_operations(data)
        result = _Unpickler(io.BytesIO(data)).load()
    except (ValueError, TypeError) as error:
        raise ValueError(f"the pickle has no descriptor: {error}") from None
    except (MemoryError, OverflowError, RecursionError) as error:
        raise ValueError(f"the pickle is damaged: {type(error).__name__}") from None
    except Exception as error:
        # A damaged pickle raises UnpicklingError, EOFError, KeyError and others.
        raise ValueError(f"the pickle is damaged: {error}") from None
    if not isinstance(result, Descriptor):
        raise ValueError(f"the pickle has a {type(result).__name__}; a descriptor is needed")
    return result
