"""Contexts."""

from __future__ import annotations

import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING

from .. import _arguments, _core
from .._errors import LogicError
from .device import Device

if TYPE_CHECKING:
    from collections.abc import Iterator

    from .enumerations import func_cache, shared_config

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


@contextmanager
def on_device(ordinal: int) -> Iterator[None]:
    """Makes a device the thread's current one for a while."""
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
    """The use of a device by a thread: a stack of them, the last one current.

    All contexts of a device share its memory and its default stream, as users of a primary
    context do. `Device.make_context` and `Device.retain_primary_context` return them.

    Parameters
    ----------
    device : Device
        The device.
    token : object
        Known to these methods only.

    Raises
    ------
    TypeError
        ``token`` is another object.

    Examples
    --------
    >>> from pygpu import driver
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
        """Returns a new context on a device."""
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
        """Ends one use; the last one takes the context from this thread's stack.

        Raises
        ------
        LogicError
            All uses have ended already.
        """
        self._check()
        self._uses -= 1
        stack = _stack()
        if self._uses == 0 and self in stack:
            stack[:] = [context for context in stack if context is not self]
            _activate(stack)

    def push(self) -> None:
        """Makes the context the current one of this thread, for this library and for the
        driver's calls of others.

        Raises
        ------
        LogicError
            The context has been detached.
        """
        self._check()
        stack = _stack()
        _activate([self])
        stack.append(self)

    @staticmethod
    def pop() -> None:
        """Makes the context before the current one current again.

        Raises
        ------
        LogicError
            The thread has no current context.
        """
        stack = _stack()
        if not stack:
            raise LogicError("cannot pop: this thread has no current context")
        _activate(stack[:-1])
        stack.pop()

    @staticmethod
    def get_current() -> Context | None:
        """Returns the current context of this thread.

        Returns
        -------
        Context or None
            What was pushed last; None if nothing was, although arrays can be used then, too.
        """
        stack = _stack()
        return stack[-1] if stack else None

    @staticmethod
    def get_device() -> Device:
        """Returns the device of the current context; without one the device that arrays go to. In
        PyCUDA the thread has to have a context.

        Returns
        -------
        Device
            The device.
        """
        return Device(_core.current_ordinal())

    @staticmethod
    def synchronize() -> None:
        """Waits for all work of the device (``cuCtxSynchronize``, ``hipDeviceSynchronize``).

        Raises
        ------
        Error
            Work that was queued has failed: a kernel that accesses what is no memory, for example.
        """
        _core.synchronize()

    @staticmethod
    def get_api_version() -> int:
        """Returns the version of the driver, whose interface the context has.

        Returns
        -------
        int
            What ``driver.get_driver_version`` returns.
        """
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

        Raises
        ------
        TypeError
            ``limit`` is no whole number.
        Unsupported
            The device has no such limit.
        LogicError
            There is no such limit.

        Examples
        --------
        >>> from pygpu import autoinit, driver
        >>> try:
        ...     size = driver.Context.get_limit(driver.limit.STACK_SIZE)  # bytes a thread
        ... except driver.Unsupported:
        ...     size = None
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

        Raises
        ------
        TypeError
            An argument is no whole number.
        Unsupported
            The device has no such limit.
        LogicError
            There is no such limit, or the value is not allowed.

        Examples
        --------
        >>> from pygpu import autoinit, driver
        >>> try:
        ...     driver.Context.set_limit(driver.limit.STACK_SIZE, 2048)  # bytes a thread
        ... except driver.Unsupported:
        ...     pass
        """
        _core.set_limit(_arguments.whole("limit", limit), _arguments.whole("value", value))

    @staticmethod
    def get_cache_config() -> func_cache:
        """Returns how kernels prefer on-chip memory to be divided.

        Returns
        -------
        func_cache
            What :meth:`set_cache_config` was given.

        Raises
        ------
        LogicError
            The thread has no current context.
        """
        from .enumerations import func_cache

        return func_cache(Context._current()._cache_config)

    @staticmethod
    def set_cache_config(cc: int) -> None:
        """Remembers how kernels prefer on-chip memory to be divided. A kernel's own
        :meth:`pygpu.driver.Function.set_cache_config` is what has an effect.

        Parameters
        ----------
        cc : func_cache
            The preference.

        Raises
        ------
        LogicError
            The thread has no current context.
        ValueError
            There is no such preference.
        """
        from .enumeration_types import known
        from .enumerations import func_cache

        Context._current()._cache_config = known("cc", func_cache, cc)

    @staticmethod
    def get_shared_config() -> shared_config:
        """Returns how wide the banks of shared memory should be.

        Returns
        -------
        shared_config
            What :meth:`set_shared_config` was given.

        Raises
        ------
        LogicError
            The thread has no current context.
        """
        from .enumerations import shared_config

        return shared_config(Context._current()._shared_config)

    @staticmethod
    def set_shared_config(config: int) -> None:
        """Remembers how wide the banks of shared memory should be, which no device that current
        drivers know can change.

        Parameters
        ----------
        config : shared_config
            The width.

        Raises
        ------
        LogicError
            The thread has no current context.
        ValueError
            There is no such width.
        """
        from .enumeration_types import known
        from .enumerations import shared_config

        Context._current()._shared_config = known("config", shared_config, config)

    @staticmethod
    def kept_memory() -> int:
        """Returns how much freed memory the current device keeps for later arrays, and
        :meth:`trim_memory` gives back. PyCUDA keeps none.

        Returns
        -------
        int
            Bytes.
        """
        return _core.kept_memory()

    @staticmethod
    def trim_memory(keep: int = 0) -> None:
        """Returns memory that arrays no longer use to the driver, or on the host to the system.

        PyCUDA has no such method.

        Parameters
        ----------
        keep : int
            The bytes that the device's pool may keep.

        Raises
        ------
        OverflowError
            ``keep`` is negative.
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
        TypeError
            ``peer`` is no context.
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

        Raises
        ------
        TypeError
            ``peer`` is no context.
        Error
            There is no such access.
        """
        _core.set_peer_access(ordinal_of("peer", peer), False)

    @property
    def handle(self) -> int:
        """The driver's handle of the context, for other libraries (``CUcontext``, ``hipCtx_t``).

        It is that of the device's primary context, which the libraries of the process share, and it
        ends with a reset of the device. On the host, which has no driver, it is a number of the
        device's own.
        """
        return _core.context_handle(self._device.ordinal)
