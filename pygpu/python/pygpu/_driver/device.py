"""Devices."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .. import _arguments, _core
from .._errors import Error, LogicError

if TYPE_CHECKING:
    from .context import Context
    from .enumerations import device_attribute

_COMPUTE_MODE = 20


class Device:
    """A device, by number, by PCI bus id or by UUID (``"GPU-..."``).

    Parameters
    ----------
    number_or_pci_bus_id : int or str
        A number from 0, or the text that names the device.

    Raises
    ------
    TypeError
        The argument is neither a number nor a text.
    LogicError
        There is no such device.

    Examples
    --------
    >>> from pygpu import driver
    >>> driver.Device(0) == driver.Device(driver.Device(0).pci_bus_id())
    True
    >>> device = driver.Device(0)
    >>> driver.Device.count() > 0, device.name() != "", device.total_memory() > 0
    (True, True, True)
    >>> major, minor = device.compute_capability()
    >>> device.architecture() is None, device.uuid() == driver.Device(0).uuid()
    (False, True)
    >>> warp = driver.device_attribute.WARP_SIZE
    >>> device.get_attribute(warp) == device.warp_size == device.get_attributes()[warp]
    True
    >>> least, greatest = device.stream_priority_range()
    >>> least >= greatest, device.can_access_peer(device)
    (True, False)
    >>> shared = device.retain_primary_context()
    >>> shared.push()
    >>> shared.pop()
    """

    def __init__(self, number_or_pci_bus_id: int | str) -> None:
        if isinstance(number_or_pci_bus_id, str):
            self._ordinal = _core.device_by_name(number_or_pci_bus_id)
            return
        try:
            ordinal = number_or_pci_bus_id.__index__()
        except AttributeError:
            raise TypeError(
                f"a device is named by its number or PCI bus id, not by {number_or_pci_bus_id!r}"
            ) from None
        count = _core.device_count()
        if not 0 <= ordinal < count:
            raise LogicError(f"device number is {ordinal}; {_arguments.ordinals(count)}")
        self._ordinal = ordinal

    @staticmethod
    def count() -> int:
        """Returns the number of devices (``cuDeviceGetCount``, ``hipGetDeviceCount``).

        Returns
        -------
        int
            1 on the host.

        Raises
        ------
        BackendUnavailable
            ``PYGPU_BACKEND`` names a backend that is not here.
        """
        return _core.device_count()

    @_core.YieldingProperty
    def ordinal(self) -> int:
        """The device's number."""
        return self._ordinal

    def name(self) -> str:
        """Returns the device's name (``cuDeviceGetName``, ``hipDeviceGetName``).

        Returns
        -------
        str
            The name; that of the processor on the host.
        """
        return _core.device_properties(self._ordinal)[0]

    def pci_bus_id(self) -> str:
        """Returns the device's place on the bus (``cuDeviceGetPCIBusId``,
        ``hipDeviceGetPCIBusId``).

        Returns
        -------
        str
            Domain, bus, device and function in hexadecimal digits, ``0000:01:00.0`` for example.
        """
        return _core.device_properties(self._ordinal)[1]

    def uuid(self) -> str | None:
        """Returns what names the device and no other one (``cuDeviceGetUuid``,
        ``hipDeviceGetUuid``).

        PyCUDA has no such method.

        Returns
        -------
        str or None
            The text, ``GPU-...`` for example; None where there is none, as on the host.
        """
        return _core.device_uuid(self._ordinal)

    def compute_capability(self) -> tuple[int, int]:
        """Returns the device's generation.

        Returns
        -------
        tuple of int
            Major and minor number; (8, 0) for the host, as which it compiles kernels.
        """
        return _core.device_properties(self._ordinal)[2]

    def architecture(self) -> str:
        """Returns what compilers call the device. PyCUDA has no such method.

        Returns
        -------
        str
            ``sm_90`` or ``gfx942`` for example; empty for the host.
        """
        return _core.device_architecture(self._ordinal)

    def total_memory(self) -> int:
        """Returns the size of the device's memory (``cuDeviceTotalMem``, ``hipDeviceTotalMem``).

        Returns
        -------
        int
            Bytes; those of the machine's memory on the host.
        """
        return _core.device_properties(self._ordinal)[3]

    def get_attribute(self, attr: int) -> int:
        """Returns one numbered property (``cuDeviceGetAttribute``, ``hipDeviceGetAttribute``).

        Parameters
        ----------
        attr : device_attribute
            Which property.

        Returns
        -------
        int
            Its value.

        Raises
        ------
        TypeError
            ``attr`` is no whole number.
        Error
            The device does not know the property.
        """
        number = _arguments.whole("attr", attr)
        value = _core.device_attribute(self._ordinal, number)
        if number != _COMPUTE_MODE:
            return value
        from .enumerations import compute_mode

        return compute_mode(value)

    def get_attributes(self) -> dict[device_attribute, int]:
        """Returns all properties that the device knows.

        Returns
        -------
        dict
            The values by their names, which are of ``driver.device_attribute``.
        """
        from .enumerations import device_attribute

        result = {}
        for attribute in device_attribute:
            try:
                result[attribute] = self.get_attribute(attribute)
            except Error:
                continue
        return result

    def __getattr__(self, name: str) -> int:
        from .enumerations import device_attribute

        try:
            attribute = device_attribute[name.upper()]
        except KeyError:
            raise AttributeError(f"Device object has no attribute {name!r}") from None
        return self.get_attribute(attribute)

    def stream_priority_range(self) -> tuple[int, int]:
        """Returns the priorities that streams can have (``cuCtxGetStreamPriorityRange``,
        ``hipDeviceGetStreamPriorityRange``). PyCUDA has no such method.

        Returns
        -------
        tuple of int
            The least and the greatest; the number of the greatest is the smaller one.
        """
        return _core.stream_priority_range(self._ordinal)

    def make_context(self, flags: int = 0) -> Context:
        """Returns a new context on the device, and makes it the current one of this thread.

        It is the device's primary context, as all contexts here are, so that memory, streams and
        modules of one are those of the others. In PyCUDA it has its own.

        Parameters
        ----------
        flags : int
            Values of ``driver.ctx_flags``; they have no effect on a primary context.

        Returns
        -------
        Context
            The context.

        Examples
        --------
        >>> from pygpu import driver
        >>> context = driver.Device(0).make_context()
        >>> context.pop()
        """
        from .context import Context

        context = Context._of(self)
        context.push()
        return context

    def retain_primary_context(self) -> Context:
        """Returns the context that libraries share; it is not made the current one.

        Returns
        -------
        Context
            A new object for the context.
        """
        from .context import Context

        return Context._of(self)

    def can_access_peer(self, dev: Device) -> bool:
        """Returns whether kernels on this device can use the memory of another one
        (``cuDeviceCanAccessPeer``).

        Parameters
        ----------
        dev : Device
            The other device.

        Returns
        -------
        bool
            Whether they can.

        Raises
        ------
        TypeError
            ``dev`` is no device.
        """
        return _core.can_access_peer(self._ordinal, _arguments.instance("dev", dev, Device).ordinal)

    def reset(self) -> None:
        """Destroys everything on the device: memory, streams, events and modules of this and of
        all other libraries in the process. The way to go on after a kernel has failed.

        Raises
        ------
        Unsupported
            The device cannot be reset, as the host cannot.
        """
        _core.reset_device(self._ordinal)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Device) and self._ordinal == other._ordinal

    def __hash__(self) -> int:
        return hash(("Device", self._ordinal))

    def __repr__(self) -> str:
        # Programs assign `name` in classes of their own.
        return f"<Device {self._ordinal}: {Device.name(self)}>"
