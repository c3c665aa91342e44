"""Devices with numba's names."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

from .. import _core, driver

if TYPE_CHECKING:
    from ._context import Context


class Device:
    """A device with numba's attributes: ``id``, ``name``, ``compute_capability``, ``uuid``, and the
    driver's attributes under their names in capitals (``MULTIPROCESSOR_COUNT``).

    ``with cuda.gpus[1]:`` makes the device the current one of the thread for the block.

    Parameters
    ----------
    ordinal : int
        The number of the device.

    Examples
    --------
    >>> from pygpu import cuda
    >>> cuda.gpus[0].id
    0
    >>> device = cuda.get_current_device()
    >>> device.get_primary_context().device == device
    True
    >>> cuda.cudadrv.driver.Device.from_identity(device.get_device_identity()) == device
    True
    """

    def __init__(self, ordinal: int) -> None:
        self._device = driver.Device(ordinal)
        self._context: Context | None = None
        self._lock = threading.Lock()

    @property
    def id(self) -> int:
        """The device's number."""
        return self._device.ordinal

    @property
    def name(self) -> str:
        """The device's name."""
        return self._device.name()

    @property
    def compute_capability(self) -> tuple[int, int]:
        """The device's generation; (8, 0) for the host, as which it compiles kernels."""
        return self._device.compute_capability()

    @property
    def uuid(self) -> str | None:
        """What no other device has, ``"GPU-..."``; None for the host."""
        return self._device.uuid()

    def __getattr__(self, name: str) -> int:
        if name.startswith("_") or not name.isupper():
            raise AttributeError(f"a device has no attribute {name!r}")
        return getattr(self._device, name)

    def __repr__(self) -> str:
        return f"<CUDA device {self.id} '{self.name}'>"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Device) and self.id == other.id

    def __hash__(self) -> int:
        return hash(("pygpu.cuda.Device", self.id))

    def get_device_identity(self) -> dict[str, int]:
        """Returns where the device is on the bus, which is the same in every process.

        Returns
        -------
        dict
            The numbers ``pci_domain_id``, ``pci_bus_id`` and ``pci_device_id``.
        """
        domain, bus, rest = self._device.pci_bus_id().split(":")
        return {
            "pci_domain_id": int(domain, 16),
            "pci_bus_id": int(bus, 16),
            "pci_device_id": int(rest.split(".")[0], 16),
        }

    @staticmethod
    def from_identity(identity: dict[str, int]) -> Device:
        """Returns the device at a place on the bus.

        Parameters
        ----------
        identity : dict
            What :meth:`get_device_identity` returned, here or in another process.

        Returns
        -------
        Device
            The device.

        Raises
        ------
        RuntimeError
            This process has no such device.
        """
        from ._devices import gpus

        for device in gpus:
            if device.get_device_identity() == identity:
                return device
        raise RuntimeError(f"identity is {identity}; no device of this process is there")

    def get_primary_context(self) -> Context:
        """Returns the device's context.

        Returns
        -------
        Context
            The same object for every call.
        """
        from ._context import Context

        with self._lock:
            if self._context is None:
                self._context = Context(self)
            return self._context

    def reset(self) -> None:
        """Frees what waits to be freed, and resets the device where its driver can.

        A reset destroys all that is on the device; arrays from before are refused afterwards.
        """
        if self._context is not None:
            self._context.reset()
        if _core.choose_backend() != "host":
            self._device.reset()

    def __enter__(self) -> None:
        self.get_primary_context().push()

    def __exit__(self, *_raised: Any) -> None:
        self.get_primary_context().pop()
