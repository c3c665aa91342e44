"""The utilization and the memory of devices, from the vendors' management libraries.

NVML on NVIDIA; on AMD, ROCm SMI or AMD SMI. Only :func:`nvmlInit` opens them.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from ctypes import byref, c_char_p, c_int, c_uint32, c_uint64, c_void_p
from typing import Any

from pygpu._arguments import whole
from pygpu._errors import LogicError

from ._status import Code, announce, interface, refusal

__all__ = ["nvmlDevice", "nvmlInit", "nvmlReturn_t", "nvmlShutdown"]


# nvmlReturn_t of nvml.h.
_ERRORS = (
    "SUCCESS UNINITIALIZED INVALID_ARGUMENT NOT_SUPPORTED NO_PERMISSION "
    "ALREADY_INITIALIZED NOT_FOUND INSUFFICIENT_SIZE INSUFFICIENT_POWER DRIVER_NOT_LOADED "
    "TIMEOUT IRQ_ISSUE LIBRARY_NOT_FOUND FUNCTION_NOT_FOUND CORRUPTED_INFOROM GPU_IS_LOST "
    "RESET_REQUIRED OPERATING_SYSTEM LIB_RM_VERSION_MISMATCH IN_USE MEMORY NO_DATA"
)
NAMES = {code: f"ERROR_{name}" for code, name in enumerate(_ERRORS.split())}
NAMES |= {0: "SUCCESS", 999: "ERROR_UNKNOWN"}
UNINITIALIZED, INVALID_ARGUMENT, NOT_SUPPORTED = 1, 2, 3
LIBRARY_NOT_FOUND, FUNCTION_NOT_FOUND, UNKNOWN = 12, 13, 999


class nvmlReturn_t(Code):
    """The status of a call of the management library: ``code``, one of NVML's numbers.

    >>> nvmlReturn_t(0)
    <NvmlReturn: 'code=0'>
    >>> nvmlReturn_t(12).name
    'NVML_ERROR_LIBRARY_NOT_FOUND'
    >>> nvmlReturn_t(12).as_int(), nvmlReturn_t(0).raise_for_status()
    (12, None)
    """

    __slots__ = ()
    _apis = ("nvml",)
    _label = "NvmlReturn"

    def __init__(self, code: int) -> None:
        super().__init__(code, "nvml")

    @property
    def name(self) -> str:
        """NVML's name of the number, or ``status N``."""
        name = NAMES.get(self._code)
        return f"status {self._code}" if name is None else f"NVML_{name}"

    @property
    def message(self) -> str:
        """The meaning of the number: the library's sentence if it is open."""
        said = _library.say(self._code) if _library is not None else None
        return said or self.name.removeprefix("NVML_ERROR_").replace("_", " ").lower()

    def raise_for_status(self) -> None:
        """Does nothing for a success."""
        if self._code:
            raise refusal(f"{self.name}: {self.message}", self._code, LogicError)


class _Failure(Exception):
    """The failure of a call: a number other than 0."""


class _Library:
    """One management library. Failing calls raise `_Failure` with NVML's number."""

    files: tuple[str, ...]
    prefix: str
    init: str
    init_arguments: tuple[Any, ...] = ()
    shutdown: str
    # NVML's number for each number of the library.
    numbers: dict[int, int] = {}  # noqa: RUF012
    utilization: Callable[..., tuple[int, int]]
    memory: Callable[..., tuple[int, int, int]]

    def __init__(self, handle: ctypes.CDLL) -> None:
        self.handle = handle
        self.call(self.init, *self.init_arguments)

    def call(self, name: str, *arguments: Any) -> None:
        try:
            function = getattr(self.handle, self.prefix + name)
        except AttributeError:
            raise _Failure(FUNCTION_NOT_FOUND) from None
        function.restype = c_int
        code = function(*arguments)
        if code:
            raise _Failure(self.numbers.get(code, UNKNOWN) if self.numbers else code)

    def close(self) -> None:
        self.call(self.shutdown)

    def read(self, kind: type, name: str, *arguments: Any) -> Any:
        value = kind()
        self.call(name, *arguments, byref(value))
        return value

    def say(self, code: int) -> str | None:
        return None

    def check(self, index: int) -> None:
        """Fails if the device does not exist."""
        self.memory(index)


class _Nvml(_Library):
    files = ("libnvidia-ml.so.1",)
    prefix, init, shutdown = "nvml", "Init_v2", "Shutdown"

    class Utilization(ctypes.Structure):
        _fields_ = (("gpu", c_uint32), ("memory", c_uint32))

    class Memory(ctypes.Structure):
        _fields_ = (("total", c_uint64), ("free", c_uint64), ("used", c_uint64))

    def device(self, index: int) -> c_void_p:
        return self.read(c_void_p, "DeviceGetHandleByIndex_v2", c_uint32(index))

    def check(self, index: int) -> None:
        self.device(index)

    def utilization(self, index: int) -> tuple[int, int]:
        found = self.read(self.Utilization, "DeviceGetUtilizationRates", self.device(index))
        return found.gpu, found.memory

    def memory(self, index: int) -> tuple[int, int, int]:
        found = self.read(self.Memory, "DeviceGetMemoryInfo", self.device(index))
        return found.free, found.total, found.used

    def say(self, code: int) -> str | None:
        try:
            text = self.handle.nvmlErrorString
        except AttributeError:
            return None
        text.restype = c_char_p
        return (text(code) or b"").decode(errors="replace")


class _Rocm(_Library):
    """`rocm_smi.h`."""

    files = ("librocm_smi64.so.1", "librocm_smi64.so.7", "librocm_smi64.so.6", "librocm_smi64.so")
    prefix, init, shutdown = "rsmi_", "init", "shut_down"
    init_arguments = (c_uint64(0),)
    numbers = {1: 2, 2: 3, 4: 4, 5: 20, 7: 2, 8: 1, 9: 3, 10: 6, 11: 7}  # noqa: RUF012

    def utilization(self, index: int) -> tuple[int, int]:
        read = lambda name: self.read(c_uint32, name, c_uint32(index)).value  # noqa: E731
        return read("dev_busy_percent_get"), read("dev_memory_busy_percent_get")

    def memory(self, index: int) -> tuple[int, int, int]:
        # The second argument: memory of the device itself.
        read = lambda name: self.read(c_uint64, name, c_uint32(index), c_int(0)).value  # noqa: E731
        total, used = read("dev_memory_total_get"), read("dev_memory_usage_get")
        return total - used, total, used


class _Amd(_Library):
    """`amdsmi.h`."""

    files = ("libamd_smi.so.26", "libamd_smi.so.25", "libamd_smi.so.24", "libamd_smi.so")
    prefix, init, shutdown = "amdsmi_", "init", "shut_down"
    init_arguments = (c_uint64(2),)  # devices that are GPUs
    numbers = {1: 2, 2: 3, 3: 3, 10: 4, 15: 20, 31: 6, 32: 1}  # noqa: RUF012

    class Activity(ctypes.Structure):
        _fields_ = (("graphics", c_uint32), ("memory", c_uint32), ("rest", c_uint32 * 14))

    def handles(self, name: str, *of: Any) -> list[c_void_p]:
        count = c_uint32(0)
        self.call(name, *of, byref(count), None)
        found = (c_void_p * count.value)()
        self.call(name, *of, byref(count), found)
        return [c_void_p(handle) for handle in found[: count.value]]

    def device(self, index: int) -> c_void_p:
        sockets = self.handles("get_socket_handles")
        all_ = [gpu for socket in sockets for gpu in self.handles("get_processor_handles", socket)]
        if not 0 <= index < len(all_):
            raise _Failure(INVALID_ARGUMENT)
        return all_[index]

    def check(self, index: int) -> None:
        self.device(index)

    def utilization(self, index: int) -> tuple[int, int]:
        found = self.read(self.Activity, "get_gpu_activity", self.device(index))
        return found.graphics, found.memory

    def memory(self, index: int) -> tuple[int, int, int]:
        device = self.device(index)
        read = lambda name: self.read(c_uint64, name, device, c_int(0)).value  # noqa: E731
        total, used = read("get_gpu_memory_total"), read("get_gpu_memory_usage")
        return total - used, total, used


LIBRARIES: dict[str, tuple[type[_Library], ...]] = {
    "cuda": (_Nvml,),
    "hip": (_Rocm, _Amd),
    "host": (_Nvml, _Rocm, _Amd),
}

_library: _Library | None = None
_opened = 0  # calls of nvmlInit that nvmlShutdown has not balanced


def _load(name: str) -> ctypes.CDLL | None:
    try:
        return ctypes.CDLL(name)
    except OSError:
        return None


def _open() -> _Library:
    for kind in LIBRARIES[interface()]:
        for name in kind.files:
            handle = _load(name)
            if handle is not None:
                return kind(handle)
    raise _Failure(LIBRARY_NOT_FOUND)


def _attempt(call: Callable[..., Any], *args: Any, default: Any = None) -> tuple[Any, nvmlReturn_t]:
    try:
        return call(*args), nvmlReturn_t(0)
    except _Failure as failure:
        return default, nvmlReturn_t(failure.args[0])


def _announced(status: nvmlReturn_t) -> nvmlReturn_t:
    try:
        status.raise_for_status()
    except Exception as failure:  # a failure in this style
        announce(failure)
    return status


def nvmlInit() -> nvmlReturn_t:
    """Opens the vendor's management library; returns the status, 12 if it is not installed.

    Each call needs a later call of :func:`nvmlShutdown`.

    >>> if nvmlInit():  # where the vendor's library is installed
    ...     free, total, used = nvmlDevice(0).memory_info()  # bytes
    ...     busy, memory_busy = nvmlDevice(0).utilization_rates()  # percent
    ...     done = nvmlShutdown()
    """
    global _library, _opened
    if _library is None:
        _library, status = _attempt(_open)
    else:
        status = nvmlReturn_t(0)
    _opened += bool(status)
    return _announced(status)


def nvmlShutdown() -> nvmlReturn_t:
    """Closes the library of :func:`nvmlInit`; returns the status, 1 if nothing is open.

    >>> if nvmlInit():
    ...     done = nvmlShutdown()
    """
    global _library, _opened
    if _library is None:
        return _announced(nvmlReturn_t(UNINITIALIZED))
    _opened -= 1
    if _opened:
        return nvmlReturn_t(0)
    library, _library = _library, None
    return _announced(_attempt(library.close)[1])


class nvmlDevice:
    """The device number ``device`` of the management library.

    NVML and ROCm SMI also count devices that ``CUDA_VISIBLE_DEVICES`` hides.

    >>> if nvmlInit():
    ...     device = nvmlDevice(0)
    ...     free, total, used = device.memory_info()  # bytes
    ...     busy, memory_busy = device.utilization_rates()  # percent
    ...     valid, done = bool(device.last_status()), nvmlShutdown()
    """

    def __init__(self, device: int) -> None:
        number = whole("device", device)
        valid = 0 <= number < 2**32
        self._index = number
        self._status = nvmlReturn_t(0)
        if not valid:
            self._status = _announced(nvmlReturn_t(INVALID_ARGUMENT))
            self._index = 2**32 - 1
        else:
            self._read("check", ())

    def _read(self, what: str, default: tuple[int, ...]) -> tuple[int, ...]:
        if _library is None:
            value, status = default, nvmlReturn_t(UNINITIALIZED)
        else:
            value, status = _attempt(getattr(_library, what), self._index, default=default)
        self._status = status
        _announced(status)
        return value

    def utilization_rates(self) -> tuple[int, ...]:
        """Returns the percentages of time in which kernels ran and used memory; 0 on failure."""
        return self._read("utilization", (0, 0))

    def memory_info(self) -> tuple[int, ...]:
        """Returns free, total and used bytes of memory; zeros if the call fails."""
        return self._read("memory", (0, 0, 0))

    def last_status(self) -> nvmlReturn_t:
        """Returns the status of the last call."""
        return self._status
