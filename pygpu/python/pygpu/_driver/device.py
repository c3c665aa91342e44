"""Devices and contexts."""

from __future__ import annotations

import atexit
from _thread import _local as thread_local
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from .. import _arguments, _core, driver
from .._errors import Error, LogicError

if TYPE_CHECKING:
    from .enumerations import device_attribute, func_cache, shared_config

_COMPUTE_MODE = 20


class Device:
    """A device, by ``number_or_pci_bus_id``: number, PCI bus id or UUID (``"GPU-..."``).

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
            given = f"not by {number_or_pci_bus_id!r}"
            raise TypeError(f"a device is named by its number or PCI bus id, {given}") from None
        count = _core.device_count()
        if not 0 <= ordinal < count:
            raise LogicError(f"device number is {ordinal}; {_arguments.ordinals(count)}")
        self._ordinal = ordinal

    @staticmethod
    def count() -> int:
        """Returns the number of devices.

        Raises ``BackendUnavailable`` if ``PYGPU_BACKEND`` names an unavailable backend.
        """
        return _core.device_count()

    @_core.YieldingProperty
    def ordinal(self) -> int:
        """The device's number."""
        return self._ordinal

    def name(self) -> str:
        """Returns the device's name."""
        return _core.device_properties(self._ordinal)[0]

    def pci_bus_id(self) -> str:
        """Returns the device's address on the PCI bus, a string."""
        return _core.device_properties(self._ordinal)[1]

    def uuid(self) -> str | None:
        """Returns the device's UUID, or None if it does not have one: not in PyCUDA."""
        return _core.device_uuid(self._ordinal)

    def compute_capability(self) -> tuple[int, int]:
        """Returns the device's compute capability, major and minor."""
        return _core.device_properties(self._ordinal)[2]

    def architecture(self) -> str:
        """Returns the name of the device's architecture, such as ``sm_90``: not in PyCUDA."""
        return _core.device_architecture(self._ordinal)

    def total_memory(self) -> int:
        """Returns the size of the device's memory in bytes."""
        return _core.device_properties(self._ordinal)[3]

    def get_attribute(self, attr: int) -> int:
        """Returns the attribute ``attr``, a ``device_attribute``. Raises ``Error`` if unknown."""
        number = _arguments.whole("attr", attr)
        value = _core.device_attribute(self._ordinal, number)
        return driver.compute_mode(value) if number == _COMPUTE_MODE else value

    def get_attributes(self) -> dict[device_attribute, int]:
        """Returns all attributes that the driver knows for the device."""
        result = {}
        for attribute in driver.device_attribute:
            try:
                result[attribute] = self.get_attribute(attribute)
            except Error:
                continue
        return result

    def __getattr__(self, name: str) -> int:
        try:
            attribute = driver.device_attribute[name.upper()]
        except KeyError:
            raise AttributeError(f"Device object has no attribute {name!r}") from None
        return self.get_attribute(attribute)

    def stream_priority_range(self) -> tuple[int, int]:
        """Returns the least and the greatest priority of streams: not in PyCUDA."""
        return _core.stream_priority_range(self._ordinal)

    def make_context(self, flags: int = 0) -> Context:
        """Returns a new context on the device, and makes it the current one of this thread.

        All contexts are the device's primary context: they share memory, streams and modules. In
        PyCUDA they share nothing. ``flags``, of ``driver.ctx_flags``, have no effect.

        >>> context = driver.Device(0).make_context()
        >>> context.pop()
        """
        context = Context._of(self)
        context.push()
        return context

    def retain_primary_context(self) -> Context:
        """Returns the primary context (libraries share it) without making it current."""
        return Context._of(self)

    def can_access_peer(self, dev: Device) -> bool:
        """Returns True if kernels on this device can use the memory of device ``dev``."""
        return _core.can_access_peer(self._ordinal, _arguments.instance("dev", dev, Device).ordinal)

    def reset(self) -> None:
        """Destroys all objects on the device: memory, streams, events and modules of this and all
        other libraries in the process. Use it after a kernel has failed.

        Raises ``Unsupported`` if the device cannot be reset, as the host cannot.
        """
        _core.reset_device(self._ordinal)

    def _label(self) -> str:
        return f"{_core.choose_backend()}:{self._ordinal} {Device.name(self)}"

    def _repr_html_(self) -> str:
        """Returns name, architecture and memory in HTML, for a notebook."""
        from html import escape  # for notebooks alone

        major, minor = self.compute_capability()
        memory = self.total_memory() / 2**30
        text = f"{self._label()}, compute capability {major}.{minor}, {memory:.1f} GiB"
        return f"<div><code>{escape(text)}</code></div>"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Device) and self._ordinal == other._ordinal

    def __hash__(self) -> int:
        return hash(("Device", self._ordinal))

    def __repr__(self) -> str:
        # Programs assign `name` in classes of their own.
        return f"<Device {self._ordinal}: {Device.name(self)}>"


_TOKEN = object()
_local = thread_local()


def _stack() -> list[Context]:
    try:
        return _local.stack
    except AttributeError:
        _local.stack = []
        return _local.stack


def _activate(stack: list[Context]) -> None:
    _core.set_current_device(stack[-1]._device.ordinal if stack else None)


def ordinal_of(name: str, context: Context | None) -> int:
    """Returns the number of a context's device, or of the current one."""
    if context is None:
        return _core.current_ordinal()
    return _arguments.instance(name, context, Context)._device.ordinal


def detach_at_exit(module: dict[str, Any]) -> None:
    """Detaches the variable ``context`` of a module, and sets it to None, at exit."""

    def finish() -> None:
        # The program may have ended it.
        if module["context"] is not None and module["context"]._uses:
            module["context"].detach()
            module["context"] = None

    atexit.register(finish)


@contextmanager
def on_device(ordinal: int) -> Iterator[None]:
    """Makes a device the thread's current device for the ``with`` block."""
    before = _core.current_ordinal()
    if before == ordinal:
        yield
        return
    _core.set_current_device(ordinal)
    try:
        yield
    finally:
        _core.set_current_device(before)


class Context:
    """A context of a device. Each thread has a stack of contexts, the last of which is current.

    All contexts of a device share its memory and its default stream. `Device.make_context` and
    `Device.retain_primary_context` return them; only these use ``device`` and ``token``.

    >>> context = driver.Device(0).make_context()
    >>> driver.Context.get_device() == driver.Device(0)
    True
    >>> context.pop()
    >>> context.push()
    >>> attached = driver.Context.attach()
    >>> attached is driver.Context.get_current() is context
    True
    >>> attached.detach()
    >>> driver.Context.set_cache_config(driver.func_cache.PREFER_L1)
    >>> print(driver.Context.get_cache_config(), driver.Context.get_shared_config())
    PREFER_L1 DEFAULT_BANK_SIZE
    >>> driver.Context.set_shared_config(driver.shared_config.EIGHT_BYTE_BANK_SIZE)
    >>> driver.Context.get_api_version() == driver.get_driver_version()
    True
    >>> driver.Context.synchronize()
    >>> driver.Context.trim_memory()
    >>> driver.Context.kept_memory() >= 0
    True
    >>> try:
    ...     size = driver.Context.get_limit(driver.limit.STACK_SIZE)  # bytes a thread
    ...     driver.Context.set_limit(driver.limit.STACK_SIZE, 2048)
    ... except driver.Unsupported:
    ...     size = None
    >>> driver.Context.pop()
    """

    def __init__(self, device: Device, token: object) -> None:
        if token is not _TOKEN:
            raise TypeError("contexts are made by Device.make_context")
        self._device = device
        self._uses = 1
        # `PREFER_NONE` and `DEFAULT_BANK_SIZE`.
        self._cache_config = self._shared_config = 0

    @classmethod
    def _of(cls, device: Device) -> Context:
        return cls(device, _TOKEN)

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
        """Returns the current context, to be ended by :meth:`detach`; ``flags`` are ignored."""
        context = Context._current()
        context._uses += 1
        return context

    def detach(self) -> None:
        """Ends one :meth:`attach`; the last call removes the context from this thread's stack."""
        self._check()
        self._uses -= 1
        stack = _stack()
        if self._uses == 0 and self in stack:
            stack[:] = [context for context in stack if context is not self]
            _activate(stack)

    def push(self) -> None:
        """Makes the context current on this thread, also for other libraries."""
        self._check()
        stack = _stack()
        _activate([self])
        stack.append(self)

    @staticmethod
    def pop() -> None:
        """Removes the current context from the stack; the context below it becomes current."""
        stack = _stack()
        if not stack:
            raise LogicError("cannot pop: this thread has no current context")
        _activate(stack[:-1])
        stack.pop()

    @staticmethod
    def get_current() -> Context | None:
        """Returns the current context of this thread."""
        stack = _stack()
        return stack[-1] if stack else None

    @staticmethod
    def get_device() -> Device:
        """Returns the current context's device, or the default device; PyCUDA needs a context."""
        return Device(_core.current_ordinal())

    @staticmethod
    def synchronize() -> None:
        """Waits for all work of the device. Raises ``Error`` if it failed."""
        _core.synchronize()

    @staticmethod
    def get_api_version() -> int:
        """Returns the version of the driver."""
        return _core.driver_version()

    @staticmethod
    def get_limit(limit: int) -> int:
        """Returns a ``limit`` of ``driver.limit``. Raises ``Unsupported`` for unknown limits."""
        return _core.get_limit(_arguments.whole("limit", limit))

    @staticmethod
    def set_limit(limit: int, value: int) -> None:
        """Sets the ``limit`` of :meth:`get_limit` to ``value``; the driver may round ``value``."""
        _core.set_limit(_arguments.whole("limit", limit), _arguments.whole("value", value))

    @staticmethod
    def get_cache_config() -> func_cache:
        """Returns the value that :meth:`set_cache_config` has stored."""
        return driver.func_cache(Context._current()._cache_config)

    @staticmethod
    def set_cache_config(cc: int) -> None:
        """Only stores ``cc``; to change the cache, use ``Function.set_cache_config``."""
        Context._current()._cache_config = _arguments.member("cc", driver.func_cache, cc)

    @staticmethod
    def get_shared_config() -> shared_config:
        """Returns the value that :meth:`set_shared_config` has stored."""
        return driver.shared_config(Context._current()._shared_config)

    @staticmethod
    def set_shared_config(config: int) -> None:
        """Only stores ``config``: no device can change the width of shared memory's banks."""
        config = _arguments.member("config", driver.shared_config, config)
        Context._current()._shared_config = config

    @staticmethod
    def kept_memory() -> int:
        """Returns how many freed bytes the device keeps for later arrays: not in PyCUDA."""
        return _core.kept_memory()

    @staticmethod
    def trim_memory(keep: int = 0) -> None:
        """Gives freed memory, except ``keep`` bytes, back to driver or system: not in PyCUDA."""
        _core.trim_memory(keep)

    @staticmethod
    def enable_peer_access(peer: Context, flags: int = 0) -> None:
        """Lets kernels of the current context use the memory of ``peer``; ``flags`` is 0."""
        if flags != 0:
            raise LogicError(f"flags is {flags}; only 0 is allowed")
        _core.set_peer_access(ordinal_of("peer", peer), True)

    @staticmethod
    def disable_peer_access(peer: Context) -> None:
        """Ends the access to ``peer``. Raises ``Error`` if there was none."""
        _core.set_peer_access(ordinal_of("peer", peer), False)

    @property
    def handle(self) -> int:
        """The driver's handle of the primary context, until a reset; on the host, a number."""
        return _core.context_handle(self._device.ordinal)
