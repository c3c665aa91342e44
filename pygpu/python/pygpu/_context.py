"""Devices and contexts."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

from . import _arguments, _core
from ._errors import Error, LogicError

if TYPE_CHECKING:
    from ._enumerations import device_attribute, func_cache, shared_config

_COMPUTE_MODE = 20


class Device:
    """A device, by number, by PCI bus id or by UUID (``"GPU-..."``).

    Parameters
    ----------
    number_or_pci_bus_id : int or str
        A number from 0, or the text that names the device.

    Raises
    ------
    LogicError
        There is no such device.

    Examples
    --------
    >>> from pygpu import driver
    >>> driver.Device(0) == driver.Device(driver.Device(0).pci_bus_id())
    True
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

    def uuid(self) -> str | None:
        """The device's number that no other device has; ``None`` where there is none."""
        return _core.device_uuid(self._ordinal)

    def compute_capability(self) -> tuple[int, int]:
        """The device's generation; (8, 0) for the host, as which it compiles kernels."""
        return _core.device_properties(self._ordinal)[2]

    def architecture(self) -> str:
        """What compilers call the device, ``sm_90`` for example; empty for the host."""
        return _core.device_architecture(self._ordinal)

    def total_memory(self) -> int:
        """Bytes of device memory."""
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
        Error
            The device does not know the property.
        """
        number = _arguments.whole("attr", attr)
        value = _core.device_attribute(self._ordinal, number)
        if number != _COMPUTE_MODE:
            return value
        from ._enumerations import compute_mode

        return compute_mode(value)

    def get_attributes(self) -> dict[device_attribute, int]:
        """All properties that the device knows."""
        from ._enumerations import device_attribute

        result = {}
        for attribute in device_attribute:
            try:
                result[attribute] = self.get_attribute(attribute)
            except Error:
                continue
        return result

    def __getattr__(self, name: str) -> int:
        from ._enumerations import device_attribute

        try:
            attribute = device_attribute[name.upper()]
        except KeyError:
            raise AttributeError(f"Device object has no attribute {name!r}") from None
        return self.get_attribute(attribute)

    def stream_priority_range(self) -> tuple[int, int]:
        """The least and the greatest priority that streams can have; smaller runs first."""
        return _core.stream_priority_range(self._ordinal)

    def make_context(self, flags: int = 0) -> Context:
        """Returns a new context on the device, and makes it the current one of this thread.

        Parameters
        ----------
        flags : int
            Values of ``driver.ctx_flags``; they have no effect on a primary context.

        Returns
        -------
        Context
            The context.
        """
        context = Context(self, _TOKEN)
        context.push()
        return context

    def retain_primary_context(self) -> Context:
        """The context that libraries share; it is not made the current one."""
        return Context(self, _TOKEN)

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
        """
        return _core.can_access_peer(self._ordinal, _arguments.instance("dev", dev, Device).ordinal)

    def reset(self) -> None:
        """Destroys everything on the device: memory, streams, events and modules of this and of
        all other libraries in the process. The way to go on after a kernel has failed."""
        _core.reset_device(self._ordinal)

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


def _activate(stack: list[Context]) -> None:
    _core.set_current_device(stack[-1]._device.ordinal if stack else None)


def ordinal_of(name: str, context: Context | None) -> int:
    """The number of a context's device; of the current one without a context."""
    if context is None:
        return _core.current_ordinal()
    return _arguments.instance(name, context, Context)._device.ordinal


class Context:
    """The use of a device by a thread: a stack of them, the last one current.

    All contexts of a device share its memory and its default stream, as users of a primary
    context do. `Device.make_context` and `Device.retain_primary_context` return them.

    Parameters
    ----------
    device : Device
        The device.
    token : object
        Known to these methods only.

    Examples
    --------
    >>> from pygpu import driver
    >>> context = driver.Device(0).make_context()
    >>> driver.Context.get_device() == driver.Device(0)
    True
    >>> context.pop()
    """

    def __init__(self, device: Device, token: object) -> None:
        if token is not _TOKEN:
            raise TypeError("contexts are made by Device.make_context")
        self._device = device
        self._uses = 1
        # `PREFER_NONE` and `DEFAULT_BANK_SIZE`.
        self._cache_config = self._shared_config = 0

    def __repr__(self) -> str:
        detached = "" if self._uses else ", detached"
        return f"<Context of {self._device!r}{detached}>"

    def _check(self) -> None:
        if self._uses < 1:
            raise LogicError("the context has been detached")

    @staticmethod
    def _current() -> Context:
        context = Context.get_current()
        if context is None:
            raise LogicError("this thread has no current context")
        return context

    @staticmethod
    def attach(flags: int = 0) -> Context:
        """Returns the current context with one more use, which :meth:`detach` ends.

        Parameters
        ----------
        flags : int
            Has no effect.

        Returns
        -------
        Context
            The context.

        Raises
        ------
        LogicError
            The thread has no current context.
        """
        context = Context._current()
        context._uses += 1
        return context

    def detach(self) -> None:
        """Ends one use; the last one takes the context from this thread's stack."""
        self._check()
        self._uses -= 1
        stack = _stack()
        if self._uses == 0 and self in stack:
            stack[:] = [context for context in stack if context is not self]
            _activate(stack)

    def push(self) -> None:
        """Makes the context the current one of this thread, for this library and for the
        driver's calls of others."""
        self._check()
        stack = _stack()
        _activate([self])
        stack.append(self)

    @staticmethod
    def pop() -> None:
        """Makes the context before the current one current again."""
        stack = _stack()
        if not stack:
            raise LogicError("cannot pop: this thread has no current context")
        _activate(stack[:-1])
        stack.pop()

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

    @staticmethod
    def get_limit(limit: int) -> int:
        """Returns a limit of kernels (``cuCtxGetLimit``, ``hipDeviceGetLimit``).

        Parameters
        ----------
        limit : driver.limit
            Which limit.

        Returns
        -------
        int
            Its value.
        """
        return _core.get_limit(_arguments.whole("limit", limit))

    @staticmethod
    def set_limit(limit: int, value: int) -> None:
        """Sets a limit of kernels; the driver may round it (``cuCtxSetLimit``,
        ``hipDeviceSetLimit``).

        Parameters
        ----------
        limit : driver.limit
            Which limit.
        value : int
            Its value.
        """
        _core.set_limit(_arguments.whole("limit", limit), _arguments.whole("value", value))

    @staticmethod
    def get_cache_config() -> func_cache:
        """How kernels prefer on-chip memory to be divided."""
        from ._enumerations import func_cache

        return func_cache(Context._current()._cache_config)

    @staticmethod
    def set_cache_config(cc: int) -> None:
        """Remembers how kernels prefer on-chip memory to be divided. A kernel's own
        :meth:`pygpu.driver.Function.set_cache_config` is what has an effect.

        Parameters
        ----------
        cc : func_cache
            The preference.
        """
        from ._enumerations import func_cache

        Context._current()._cache_config = func_cache(cc)

    @staticmethod
    def get_shared_config() -> shared_config:
        """How wide the banks of shared memory are."""
        from ._enumerations import shared_config

        return shared_config(Context._current()._shared_config)

    @staticmethod
    def set_shared_config(config: int) -> None:
        """Remembers how wide the banks of shared memory should be, which no device that current
        drivers know can change.

        Parameters
        ----------
        config : shared_config
            The width.
        """
        from ._enumerations import shared_config

        Context._current()._shared_config = shared_config(config)

    @staticmethod
    def kept_memory() -> int:
        """Bytes of freed memory that the current device keeps for later arrays, and that
        :meth:`trim_memory` gives back."""
        return _core.kept_memory()

    @staticmethod
    def trim_memory(keep: int = 0) -> None:
        """Returns memory that arrays no longer use to the driver, or on the host to the system.

        Parameters
        ----------
        keep : int
            The bytes that the device's pool may keep.
        """
        _core.trim_memory(keep)

    @staticmethod
    def enable_peer_access(peer: Context, flags: int = 0) -> None:
        """Lets kernels of the current context use the memory of another one
        (``cuCtxEnablePeerAccess``).

        Parameters
        ----------
        peer : Context
            The other context.
        flags : int
            0.

        Raises
        ------
        LogicError
            ``flags`` is another number, or the devices have no access to each other.
        """
        if flags != 0:
            raise LogicError(f"flags is {flags}; only 0 is allowed")
        _core.set_peer_access(ordinal_of("peer", peer), True)

    @staticmethod
    def disable_peer_access(peer: Context) -> None:
        """Ends what :meth:`enable_peer_access` began (``cuCtxDisablePeerAccess``).

        Parameters
        ----------
        peer : Context
            The other context.
        """
        _core.set_peer_access(ordinal_of("peer", peer), False)

    @property
    def handle(self) -> int:
        """The driver's handle of the context, for other libraries (``CUcontext``, ``hipCtx_t``).

        It is that of the device's primary context, which the libraries of the process share, and it
        ends with a reset of the device. Raises ``Unsupported`` on the host, which has no driver.
        """
        return _core.context_handle(self._device.ordinal)
