"""Devices, streams and events: the functions that return a status, or a value and a status.

Examples
--------
>>> cudaGetDevice(), bool(cudaSetDevice(0)), bool(cudaDeviceSynchronize())
((0, <CudaError: 'code=0'>), True, True)
>>> start, end = cudaEvent_t(), cudaEvent_t()
>>> all([cudaEventRecord(start), cudaEventRecord(end), cudaEventSynchronize(end)])
True
>>> cudaEventElapsedTime(start, end)[0] >= 0
True
"""

from __future__ import annotations

from typing import Any

from pygpu import _core
from pygpu._arguments import instance, whole
from pygpu._errors import LogicError

from ._elements import handle_wrapper
from ._status import INVALID_DEVICE, INVALID_HANDLE, Keeper, attempt, cudaError_t, refusal

__all__ = ["cudaDeviceProp", "cudaDeviceReset", "cudaDeviceSynchronize", "cudaEventElapsedTime"]
__all__ += ["cudaEventRecord", "cudaEventSynchronize", "cudaEvent_t", "cudaGetDevice"]
__all__ += ["cudaGetDeviceCount", "cudaSetDevice", "cudaStream_t"]


def _ordinal(device: int) -> int:
    """Returns a device's number; refuses negative ones as drivers do."""
    number = whole("device", device)
    if number < 0:
        raise refusal(f"device is {number}; devices count from 0", INVALID_DEVICE)
    return number


class cudaEvent_t(Keeper):
    """An event, which marks a position in a stream's work.

    ``flags`` is a sum of 1 (a waiting thread sleeps), 2 (no timing), 4 (for IPC; needs 2).

    >>> event = cudaEvent_t()
    >>> cudaEventRecord(event), int(event.get()) >= 0
    (<CudaError: 'code=0'>, True)
    """

    def __init__(self, flags: int = 0) -> None:
        self._event = self._attempt(_core.Event, flags)

    def get(self) -> handle_wrapper:
        """Returns the driver's handle, 0 after a failure; pass ``int(handle)`` to C functions."""
        handle = 0 if self._event is None else self._event.handle
        return handle_wrapper("cudaEvent_t", handle, self)


class cudaStream_t(Keeper):
    """A queue of work that the device runs in order.

    With ``flags`` 1 it does not wait for the default stream. Work of streams with a
    smaller ``priority`` runs first if the device supports priorities.

    >>> stream = cudaStream_t(flags=1)
    >>> bool(cudaEventRecord(cudaEvent_t(), stream)), int(stream.get()) > 0
    (True, True)
    """

    def __init__(self, flags: int = 0, priority: int = 0) -> None:
        self._stream = self._attempt(_core.Stream, flags, priority)

    def get(self) -> handle_wrapper:
        """Returns the driver's handle, 0 after a failure; pass ``int(handle)`` to C functions."""
        handle = 0 if self._stream is None else self._stream.handle
        return handle_wrapper("cudaStream_t", handle, self)


def _made(name: str, value: Any, kind: type) -> Any:
    instance(name, value, kind)
    made = value._event if isinstance(value, cudaEvent_t) else value._stream
    if made is None:
        raise refusal(f"{name} was not made: its constructor failed", INVALID_HANDLE, LogicError)
    return made


def cudaDeviceReset() -> cudaError_t:
    """Destroys all objects on the current device; returns the status, 801 on the host."""
    return attempt(lambda: _core.reset_device(_core.current_ordinal()))[1]


def cudaDeviceSynchronize() -> cudaError_t:
    """Waits for all work of the current device; returns the status."""
    return attempt(_core.synchronize)[1]


def cudaGetDevice() -> tuple[int, cudaError_t]:
    """Returns the current device's number (0 if the call fails), and the status."""
    return attempt(_core.current_ordinal, default=0)


def cudaSetDevice(device: int) -> cudaError_t:
    """Makes ``device`` the thread's current one; returns the status, 101 if there is none."""
    return attempt(lambda: _core.set_current_device(_ordinal(device)))[1]


def cudaGetDeviceCount() -> tuple[int, cudaError_t]:
    """Returns the number of devices (0 if the call fails), and the status."""
    return attempt(_core.device_count, default=0)


def cudaEventRecord(event: cudaEvent_t, stream: cudaStream_t | None = None) -> cudaError_t:
    """Records ``event`` in ``stream``, or the default stream; ``event`` keeps the status."""

    def record() -> None:
        mark = _made("event", event, cudaEvent_t)
        mark.record(None if stream is None else _made("stream", stream, cudaStream_t))

    return attempt(record, keeper=_keeper(event))[1]


def cudaEventSynchronize(event: cudaEvent_t) -> cudaError_t:
    """Waits until all work before ``event`` has run; returns the status; ``event`` keeps it."""
    wait = lambda: _made("event", event, cudaEvent_t).synchronize()  # noqa: E731
    return attempt(wait, keeper=_keeper(event))[1]


def cudaEventElapsedTime(start: cudaEvent_t, end: cudaEvent_t) -> tuple[float, cudaError_t]:
    """Returns the milliseconds from ``start`` to ``end`` (0 if that fails), and the status."""

    def elapsed() -> float:
        first = _made("start", start, cudaEvent_t)
        return _made("end", end, cudaEvent_t).time_since(first)

    return attempt(elapsed, default=0.0, keeper=_keeper(end))


def _keeper(event: Any) -> Keeper | None:
    return event if isinstance(event, cudaEvent_t) else None


class cudaDeviceProp(Keeper):
    """The properties of device ``device``; empty texts and zeros if it does not exist.

    >>> device = cudaDeviceProp(0)
    >>> device.name() != "", len(device.uuid()) in (0, 32)
    (True, True)
    >>> min(device.pciDomainID(), device.pciBusID(), device.pciDeviceID()) >= 0
    True
    """

    def __init__(self, device: int) -> None:
        found = self._attempt(self._read, device, default=("", "", (0, 0, 0)))
        self._name, self._uuid, (self._domain, self._bus, self._device) = found

    @staticmethod
    def _read(device: int) -> tuple[str, str, tuple[int, int, int]]:
        number = _ordinal(device)
        name, bus_id, _, _ = _core.device_properties(number)
        uuid = (_core.device_uuid(number) or "").removeprefix("GPU-").replace("-", "")
        # domain:bus:device.function, in hexadecimal.
        domain, bus, slot = bus_id.split(".")[0].split(":")
        return name, uuid, (int(domain, 16), int(bus, 16), int(slot, 16))

    def name(self) -> str:
        """Returns the device's name."""
        return self._name

    def uuid(self) -> str:
        """Returns the device's 16 identifying bytes in hexadecimal; empty on the host."""
        return self._uuid

    def pciBusID(self) -> int:
        """Returns the number of the device's PCI bus."""
        return self._bus

    def pciDeviceID(self) -> int:
        """Returns the number of the device on its PCI bus."""
        return self._device

    def pciDomainID(self) -> int:
        """Returns the number of the device's PCI domain."""
        return self._domain
