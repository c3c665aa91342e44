"""Memory, streams and events, with the names of ``numba.cuda.cudadrv.driver``."""

from __future__ import annotations

from ... import _core
from ..._driver.device import Context as _DriverContext
from ..._errors import BackendUnavailable, Error
from .._context import Context, IpcHandle, MemoryInfo
from .._devices import Device, gpus, is_available, profile_start, profile_stop, profiling
from .._memory import (
    MemoryPointer,
    device_ctypes_pointer,
    device_extents,
    device_memory_size,
    device_memset,
    device_pointer,
    device_to_device,
    device_to_host,
    host_memory_extents,
    host_memory_size,
    host_pointer,
    host_to_device,
    is_device_memory,
    memory_size_from_info,
    require_device_memory,
)
from .._stream import Event, Stream, event_elapsed_time

# Memory is freed with the last reference to it, however it was made.
AutoFreePointer = MemoryPointer
CudaAPIError = Error
# Handles are numbers, and calls return their results, as with NVIDIA's package of bindings.
USE_NV_BINDING = True

__all__ = ["USE_NV_BINDING", "AutoFreePointer", "Context", "CudaAPIError", "Device", "Driver"]
__all__ += ["Event", "IpcHandle", "MemoryInfo", "MemoryPointer", "Stream", "device_ctypes_pointer"]
__all__ += ["device_extents", "device_memory_size", "device_memset", "device_pointer"]
__all__ += ["device_to_device", "device_to_host", "driver", "event_elapsed_time", "get_version"]
__all__ += ["host_memory_extents", "host_memory_size", "host_pointer", "host_to_device"]
__all__ += ["is_device_memory", "memory_size_from_info", "profile_start", "profile_stop"]
__all__ += ["profiling", "require_device_memory"]


def get_version() -> tuple[int, int]:
    """Returns the major and minor number of the interface's version.

    >>> len(get_version())
    2
    """
    # Importing all of PyCUDA's driver takes longer than the rest of this package.
    from ...driver import get_version

    return get_version()[:2]


class Driver:
    """The calls of numba's driver object that concern devices and memory; ``driver`` is one.

    >>> from pygpu.cuda.cudadrv.driver import driver
    >>> driver.is_available, driver.get_device_count() > 0
    (True, True)
    >>> driver.get_device(0) in driver.list_devices()
    True
    >>> free, total = driver.cuMemGetInfo()
    >>> driver.get_version()[0] >= 12
    True
    >>> driver.get_device(0).get_primary_context().push()
    >>> driver.pop_active_context()
    <CUDA context of device 0>
    """

    @property
    def is_available(self) -> bool:
        """True if there is a device."""
        return is_available()

    @property
    def initialization_error(self) -> str | None:
        """Why no device is available."""
        try:
            _core.init()
        except BackendUnavailable as error:
            return str(error)
        return None

    def get_device(self, devnum: int = 0) -> Device:
        """Returns the device number ``devnum``."""
        return gpus[devnum]

    def get_device_count(self) -> int:
        """Returns the number of devices."""
        return len(gpus)

    def list_devices(self) -> list[Device]:
        """Returns the devices."""
        return list(gpus)

    def get_version(self) -> tuple[int, int]:
        """Returns the major and minor number of the interface's version."""
        return get_version()

    def pop_active_context(self) -> Context | None:
        """Ends the thread's last selection of a device; returns its context, or None."""
        active = _DriverContext.get_current()
        if active is None:
            return None
        _DriverContext.pop()
        return gpus[active._device.ordinal].get_primary_context()

    def reset(self) -> None:
        """Resets the devices that were used; their arrays from before are refused afterwards."""
        for device in gpus:
            device.reset()

    def cuMemGetInfo(self) -> tuple[int, int]:
        """Returns the current device's free and total bytes."""
        return _core.mem_get_info()


driver = Driver()
