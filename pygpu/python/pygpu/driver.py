"""Devices, contexts, streams, events and memory, with the names of ``pycuda.driver``."""

from __future__ import annotations

import enum
import threading
from typing import Any

import numpy as np

from . import _core
from ._core import (
    DeviceAllocation,
    Event,
    PagelockedHostAllocation,
    RegisteredHostMemory,
    Stream,
    mem_alloc,
    mem_get_info,
    pagelocked_empty,
    register_host_memory,
)
from ._errors import (
    BackendUnavailable,
    CompileError,
    Error,
    LaunchError,
    LogicError,
    MemoryError,
    RuntimeError,
    Unsupported,
)

__all__ = [
    "BackendUnavailable",
    "CompileError",
    "Context",
    "Device",
    "DeviceAllocation",
    "Error",
    "Event",
    "LaunchError",
    "LogicError",
    "MemoryError",
    "PagelockedHostAllocation",
    "RegisteredHostMemory",
    "RuntimeError",
    "Stream",
    "Unsupported",
    "aligned_empty",
    "aligned_empty_like",
    "aligned_zeros",
    "aligned_zeros_like",
    "ctx_flags",
    "device_attribute",
    "event_flags",
    "from_device",
    "from_device_like",
    "get_driver_version",
    "get_version",
    "host_alloc_flags",
    "init",
    "mem_alloc",
    "mem_alloc_like",
    "mem_alloc_pitch",
    "mem_get_info",
    "mem_host_register_flags",
    "memcpy_dtod",
    "memcpy_dtod_async",
    "memcpy_dtoh",
    "memcpy_dtoh_async",
    "memcpy_htod",
    "memcpy_htod_async",
    "memset_d2d8",
    "memset_d2d16",
    "memset_d2d32",
    "memset_d8",
    "memset_d8_async",
    "memset_d16",
    "memset_d16_async",
    "memset_d32",
    "memset_d32_async",
    "pagelocked_empty",
    "pagelocked_empty_like",
    "pagelocked_zeros",
    "pagelocked_zeros_like",
    "register_host_memory",
    "to_device",
]


# -- flags --------------------------------------------------------------------------------


class device_attribute(enum.IntEnum):
    """Numbered properties of a device."""

    MAX_THREADS_PER_BLOCK = 1
    MAX_BLOCK_DIM_X = 2
    MAX_BLOCK_DIM_Y = 3
    MAX_BLOCK_DIM_Z = 4
    MAX_GRID_DIM_X = 5
    MAX_GRID_DIM_Y = 6
    MAX_GRID_DIM_Z = 7
    MAX_SHARED_MEMORY_PER_BLOCK = 8
    SHARED_MEMORY_PER_BLOCK = 8
    TOTAL_CONSTANT_MEMORY = 9
    WARP_SIZE = 10
    CLOCK_RATE = 13
    MULTIPROCESSOR_COUNT = 16
    INTEGRATED = 18
    CAN_MAP_HOST_MEMORY = 19
    CONCURRENT_KERNELS = 31
    PCI_BUS_ID = 33
    PCI_DEVICE_ID = 34
    MAX_THREADS_PER_MULTIPROCESSOR = 39
    ASYNC_ENGINE_COUNT = 40
    UNIFIED_ADDRESSING = 41
    COMPUTE_CAPABILITY_MAJOR = 75
    COMPUTE_CAPABILITY_MINOR = 76
    MANAGED_MEMORY = 83


class ctx_flags(enum.IntFlag):
    """How a context waits."""

    SCHED_AUTO = 0
    SCHED_SPIN = 1
    SCHED_YIELD = 2
    SCHED_BLOCKING_SYNC = 4
    SCHED_MASK = 7
    MAP_HOST = 8
    LMEM_RESIZE_TO_MAX = 16
    FLAGS_MASK = 31


class event_flags(enum.IntFlag):
    """How an event is made."""

    DEFAULT = 0
    BLOCKING_SYNC = 1
    DISABLE_TIMING = 2
    INTERPROCESS = 4


class host_alloc_flags(enum.IntFlag):
    """How page-locked memory is allocated."""

    PORTABLE = 1
    DEVICEMAP = 2
    WRITECOMBINED = 4


class mem_host_register_flags(enum.IntFlag):
    """How host memory is page-locked."""

    PORTABLE = 1
    DEVICEMAP = 2


# -- devices and contexts -----------------------------------------------------------------


def init(flags: int = 0) -> None:
    """Opens the backend: the one that ``PYGPU_BACKEND`` names, else the best one here."""
    if flags != 0:
        raise LogicError(f"flags is {flags}; only 0 is allowed")
    _core.init()


def get_driver_version() -> int:
    """The version of the driver, as ``1000 * major + 10 * minor``."""
    return _core.driver_version()


def get_version() -> tuple[int, int, int]:
    """The version of the driver as three numbers."""
    version = _core.driver_version()
    return (version // 1000, version % 1000 // 10, version % 10)


class Device:
    """A device, by number or by PCI bus id."""

    def __init__(self, number_or_pci_bus_id: int | str) -> None:
        count = _core.device_count()
        if isinstance(number_or_pci_bus_id, str):
            ids = [_core.device_properties(number)[1].lower() for number in range(count)]
            if number_or_pci_bus_id.lower() not in ids:
                raise LogicError(
                    f"no device has the PCI bus id {number_or_pci_bus_id!r}; there are {ids}"
                )
            self._ordinal = ids.index(number_or_pci_bus_id.lower())
            return
        try:
            ordinal = number_or_pci_bus_id.__index__()
        except AttributeError:
            raise TypeError(
                f"a device is named by its number or PCI bus id, not by {number_or_pci_bus_id!r}"
            ) from None
        if not 0 <= ordinal < count:
            raise LogicError(f"device number is {ordinal}; there are {count} devices, from 0")
        self._ordinal = ordinal

    @staticmethod
    def count() -> int:
        """The number of devices."""
        return _core.device_count()

    @property
    def ordinal(self) -> int:
        """The device's number."""
        return self._ordinal

    def name(self) -> str:
        """The device's name."""
        return _core.device_properties(self._ordinal)[0]

    def pci_bus_id(self) -> str:
        """The device's place on the bus."""
        return _core.device_properties(self._ordinal)[1]

    def compute_capability(self) -> tuple[int, int]:
        """The device's generation; (0, 0) for the host."""
        return _core.device_properties(self._ordinal)[2]

    def total_memory(self) -> int:
        """Bytes of device memory."""
        return _core.device_properties(self._ordinal)[3]

    def get_attribute(self, attr: int) -> int:
        """One numbered property."""
        return _core.device_attribute(self._ordinal, int(attr))

    def get_attributes(self) -> dict[device_attribute, int]:
        """All properties that the device knows."""
        result = {}
        for attribute in device_attribute:
            try:
                result[attribute] = self.get_attribute(attribute)
            except Error:
                continue
        return result

    def __getattr__(self, name: str) -> int:
        try:
            attribute = device_attribute[name.upper()]
        except KeyError:
            raise AttributeError(f"Device object has no attribute {name!r}") from None
        return self.get_attribute(attribute)

    def make_context(self, flags: int = 0) -> Context:
        """A new context on the device, made the current one of this thread."""
        context = Context(self, _TOKEN)
        context.push()
        return context

    def retain_primary_context(self) -> Context:
        """The context that libraries share; it is not made the current one."""
        return Context(self, _TOKEN, primary=True)

    def can_access_peer(self, dev: Device) -> bool:
        """True if kernels on this device can use the other one's memory."""
        return False

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Device) and self._ordinal == other._ordinal

    def __hash__(self) -> int:
        return hash(("Device", self._ordinal))

    def __repr__(self) -> str:
        return f"<Device {self._ordinal}: {self.name()}>"


_TOKEN = object()
_local = threading.local()


def _stack() -> list[Context]:
    try:
        return _local.stack
    except AttributeError:
        _local.stack = []
        return _local.stack


def _activate() -> None:
    stack = _stack()
    _core.set_current_device(stack[-1]._device.ordinal if stack else None)


class Context:
    """The use of a device by a thread: a stack of them, the last one current.

    All contexts of a device share its memory and its default stream, as users of a primary
    context do.
    """

    def __init__(self, device: Device, token: object, primary: bool = False) -> None:
        if token is not _TOKEN:
            raise TypeError("contexts are made by Device.make_context")
        self._device = device
        self._uses = 1
        self._primary = primary

    def _check(self) -> None:
        if self._uses < 1:
            raise LogicError("the context has been detached")

    def attach(self, flags: int = 0) -> Context:
        """Counts one more use, ended by :meth:`detach`."""
        self._check()
        self._uses += 1
        return self

    def detach(self) -> None:
        """Ends one use; the last one takes the context from this thread's stack."""
        self._check()
        self._uses -= 1
        stack = _stack()
        if self._uses == 0 and self in stack:
            stack[:] = [context for context in stack if context is not self]
            _activate()

    def push(self) -> None:
        """Makes the context the current one of this thread."""
        self._check()
        _stack().append(self)
        _activate()

    @staticmethod
    def pop() -> None:
        """Makes the context before the current one current again."""
        stack = _stack()
        if not stack:
            raise LogicError("cannot pop: this thread has no current context")
        stack.pop()
        _activate()

    @staticmethod
    def get_current() -> Context | None:
        """The current context of this thread."""
        stack = _stack()
        return stack[-1] if stack else None

    @staticmethod
    def get_device() -> Device:
        """The device of the current context; without one the device that arrays go to."""
        return Device(_core.current_ordinal())

    @staticmethod
    def synchronize() -> None:
        """Waits for all work of the device."""
        _core.synchronize()

    @staticmethod
    def get_api_version() -> int:
        """The version of the interface: that of the driver."""
        return _core.driver_version()


# -- host memory --------------------------------------------------------------------------


def pagelocked_zeros(shape: Any, dtype: Any, order: str = "C", mem_flags: int = 0) -> np.ndarray:
    """A numpy array of zeros in page-locked memory."""
    result = pagelocked_empty(shape, dtype, order, mem_flags)
    result.fill(0)
    return result


def _order(array: Any) -> str:
    return "F" if array.flags.f_contiguous and not array.flags.c_contiguous else "C"


def pagelocked_empty_like(array: Any, mem_flags: int = 0) -> np.ndarray:
    """A numpy array like ``array`` in page-locked memory, its elements undefined."""
    return pagelocked_empty(array.shape, array.dtype, _order(array), mem_flags)


def pagelocked_zeros_like(array: Any, mem_flags: int = 0) -> np.ndarray:
    """A numpy array of zeros like ``array`` in page-locked memory."""
    return pagelocked_zeros(array.shape, array.dtype, _order(array), mem_flags)


def aligned_empty(shape: Any, dtype: Any, order: str = "C", alignment: int = 4096) -> np.ndarray:
    """A numpy array in ordinary memory whose address is a multiple of ``alignment``."""
    if alignment < 1 or alignment & (alignment - 1):
        raise ValueError(f"alignment is {alignment}; a power of two is needed")
    dtype = np.dtype(dtype)
    size = int(np.prod(shape, dtype=np.intp)) * dtype.itemsize
    block = np.empty(size + alignment, np.uint8)
    start = -block.ctypes.data % alignment
    return block[start : start + size].view(dtype).reshape(shape, order=order)  # type: ignore[call-overload]


def aligned_zeros(shape: Any, dtype: Any, order: str = "C", alignment: int = 4096) -> np.ndarray:
    """As :func:`aligned_empty`, filled with zeros."""
    result = aligned_empty(shape, dtype, order, alignment)
    result.fill(0)
    return result


def aligned_empty_like(array: Any, alignment: int = 4096) -> np.ndarray:
    """As :func:`aligned_empty`, with shape, dtype and order of ``array``."""
    return aligned_empty(array.shape, array.dtype, _order(array), alignment)


def aligned_zeros_like(array: Any, alignment: int = 4096) -> np.ndarray:
    """As :func:`aligned_zeros`, with shape, dtype and order of ``array``."""
    return aligned_zeros(array.shape, array.dtype, _order(array), alignment)


# -- device memory ------------------------------------------------------------------------


def mem_alloc_like(ary: Any) -> DeviceAllocation:
    """Device memory for as many bytes as an array has."""
    return mem_alloc(ary.nbytes)


def mem_alloc_pitch(width: int, height: int, access_size: int) -> tuple[DeviceAllocation, int]:
    """Device memory for ``height`` rows of ``width`` bytes, and the bytes from one row to the
    next. ``access_size`` is that of the elements: 4, 8 or 16."""
    if access_size not in (4, 8, 16):
        raise LogicError(f"access_size is {access_size}; allowed are 4, 8 and 16")
    if width < 1 or height < 1:
        raise LogicError(f"width is {width} and height {height}; both must be above 0")
    pitch = -(-width // 512) * 512
    return mem_alloc(pitch * height), pitch


def memcpy_htod(dest: Any, src: Any) -> None:
    """Copies host memory to the device."""
    _core.copy_to_device(dest, src, None, True)


def memcpy_htod_async(dest: Any, src: Any, stream: Stream | None = None) -> None:
    """Queues a copy of host memory to the device."""
    _core.copy_to_device(dest, src, stream, False)


def memcpy_dtoh(dest: Any, src: Any) -> None:
    """Copies device memory to the host."""
    _core.copy_to_host(dest, src, None, True)


def memcpy_dtoh_async(dest: Any, src: Any, stream: Stream | None = None) -> None:
    """Queues a copy of device memory to the host."""
    _core.copy_to_host(dest, src, stream, False)


def memcpy_dtod(dest: Any, src: Any, size: int) -> None:
    """Copies ``size`` bytes inside device memory."""
    _core.copy_on_device(dest, src, size, None, True)


def memcpy_dtod_async(dest: Any, src: Any, size: int, stream: Stream | None = None) -> None:
    """Queues a copy of ``size`` bytes inside device memory."""
    _core.copy_on_device(dest, src, size, stream, False)


def _memset(dest: Any, data: int, width: int, count: int, stream: Any) -> None:
    limit = 1 << (8 * width)
    if not -(limit >> 1) <= data < limit:
        raise OverflowError(f"data is {data}; it must fit {8 * width} bits")
    if count < 0:
        raise LogicError(f"count is {count}; it must not be negative")
    _core.fill_memory(dest, data % limit, width, count, stream)


def memset_d8(dest: Any, data: int, count: int) -> None:
    """Fills ``count`` bytes."""
    _memset(dest, data, 1, count, None)


def memset_d16(dest: Any, data: int, count: int) -> None:
    """Fills ``count`` elements of 16 bits."""
    _memset(dest, data, 2, count, None)


def memset_d32(dest: Any, data: int, count: int) -> None:
    """Fills ``count`` elements of 32 bits."""
    _memset(dest, data, 4, count, None)


def memset_d8_async(dest: Any, data: int, count: int, stream: Stream | None = None) -> None:
    """Queues a fill of ``count`` bytes."""
    _memset(dest, data, 1, count, stream)


def memset_d16_async(dest: Any, data: int, count: int, stream: Stream | None = None) -> None:
    """Queues a fill of ``count`` elements of 16 bits."""
    _memset(dest, data, 2, count, stream)


def memset_d32_async(dest: Any, data: int, count: int, stream: Stream | None = None) -> None:
    """Queues a fill of ``count`` elements of 32 bits."""
    _memset(dest, data, 4, count, stream)


def _memset_rows(dest: Any, pitch: int, data: int, element: int, width: int, height: int) -> None:
    if pitch < width * element:
        raise LogicError(f"pitch is {pitch}; a row of {width} elements needs {width * element}")
    if (
        isinstance(dest, DeviceAllocation)
        and height
        and (height - 1) * pitch + width * element > dest.size
    ):
        raise LogicError(f"{height} rows with pitch {pitch} do not fit {dest.size} bytes")
    for row in range(height):
        _memset(int(dest) + row * pitch, data, element, width, None)


def memset_d2d8(dest: Any, pitch: int, data: int, width: int, height: int) -> None:
    """Fills ``height`` rows of ``width`` bytes, ``pitch`` bytes apart."""
    _memset_rows(dest, pitch, data, 1, width, height)


def memset_d2d16(dest: Any, pitch: int, data: int, width: int, height: int) -> None:
    """Fills rows of elements of 16 bits."""
    _memset_rows(dest, pitch, data, 2, width, height)


def memset_d2d32(dest: Any, pitch: int, data: int, width: int, height: int) -> None:
    """Fills rows of elements of 32 bits."""
    _memset_rows(dest, pitch, data, 4, width, height)


def to_device(bf_obj: Any) -> DeviceAllocation:
    """New device memory with the bytes of an object."""
    view = memoryview(bf_obj)
    result = mem_alloc(view.nbytes)
    memcpy_htod(result, bf_obj)
    return result


def from_device(devptr: Any, shape: Any, dtype: Any, order: str = "C") -> np.ndarray:
    """The bytes at a device address as a numpy array."""
    result = np.empty(shape, dtype, order)  # type: ignore[call-overload]
    memcpy_dtoh(result, devptr)
    return result


def from_device_like(devptr: Any, other_ary: Any) -> np.ndarray:
    """The bytes at a device address as a numpy array like another."""
    result = np.empty_like(other_ary)
    memcpy_dtoh(result, devptr)
    return result
