"""Contexts and deferred freeing with numba's names."""

from __future__ import annotations

import contextlib
import weakref
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from .. import _arguments, _core, driver
from .._core import GPUArray
from . import _ipc, _stream
from ._deallocations import Deallocations
from ._host_memory import HostMemory, new_host_memory
from ._pointer import BYTE, MemoryPointer

if TYPE_CHECKING:
    from ._device import Device


class MemoryInfo(NamedTuple):
    """Free and total bytes of a device's memory.

    Parameters
    ----------
    free : int
        Free bytes.
    total : int
        All bytes.

    Examples
    --------
    >>> from pygpu import cuda
    >>> free, total = cuda.current_context().get_memory_info()
    >>> free <= total
    True
    """

    free: int
    total: int


class Context:
    """The memory of a device: what :func:`pygpu.cuda.current_context` returns.

    Parameters
    ----------
    device : Device
        The device.

    Examples
    --------
    >>> from pygpu import cuda
    >>> free, total = cuda.current_context().get_memory_info()
    >>> free <= total
    True
    >>> context = cuda.current_context()
    >>> memory = context.memalloc(16)
    >>> memory.size
    16
    >>> context.allocate(16).dtype
    dtype('uint8')
    >>> context.memhostalloc(8).nbytes, context.memallocmanaged(8).nbytes
    (8, 8)
    >>> stream = context.create_stream()
    >>> int(context.get_default_stream())
    0
    >>> int(context.get_legacy_default_stream()), int(context.get_per_thread_default_stream())
    (1, 2)
    >>> context.create_external_stream(stream.handle)
    <External CUDA stream ...>
    >>> context.can_access_peer(context.device.id)
    False
    >>> context.synchronize()
    >>> context.create_event(timing=False).query()
    True
    >>> with context.defer_cleanup():
    ...     del memory  # freed behind the block
    >>> context.push()
    >>> context.pop()
    >>> context.reset()
    """

    def __init__(self, device: Device) -> None:
        self.device = device
        self.deallocations = Deallocations()

    def __repr__(self) -> str:
        return f"<CUDA context of device {self.device.id}>"

    @property
    def memory_manager(self) -> Context:
        """What allocates memory and has ``deallocations``: the context itself."""
        return self

    def push(self) -> None:
        """Makes the device the current one of this thread."""
        self.device._device.retain_primary_context().push()

    def pop(self) -> None:
        """Makes the device before this one the current one again.

        Raises
        ------
        RuntimeError
            The device is not the one that was pushed last.
        """
        current = driver.Context.get_current()
        if current is None or current._device != self.device._device:
            raise RuntimeError(f"device {self.device.id} is not the one that was pushed last")
        driver.Context.pop()

    def reset(self) -> None:
        """Frees memory that waits to be freed, and what the device keeps for later arrays.

        Arrays that are in use stay valid.
        """
        self.deallocations.clear()
        with self._current():
            driver.Context.trim_memory()

    @contextlib.contextmanager
    def _current(self) -> Iterator[None]:
        """Has the core allocate on this device, whichever is current."""
        if _core.current_ordinal() == self.device.id:
            yield
            return
        self.push()
        try:
            yield
        finally:
            self.pop()

    def synchronize(self) -> None:
        """Waits for all work of the device.

        Raises
        ------
        pygpu.driver.Error
            Work that was queued has failed.
        """
        with self._current():
            _core.synchronize()

    def get_memory_info(self) -> MemoryInfo:
        """Returns the device's free and total bytes.

        Returns
        -------
        MemoryInfo
            The pair of them.
        """
        with self._current():
            return MemoryInfo(*driver.mem_get_info())

    # -- memory ----------------------------------------------------------------------------

    def allocate(self, bytesize: int) -> GPUArray:
        """Returns new device memory as an array of bytes.

        It is plain memory, as numba's: every stream can use it at once, and other processes can
        open it. Its freeing is deferred by :meth:`defer_cleanup`.

        Parameters
        ----------
        bytesize : int
            The number of bytes.

        Returns
        -------
        GPUArray
            The memory, of dtype uint8.

        Raises
        ------
        TypeError
            ``bytesize`` is no whole number.
        ValueError
            ``bytesize`` is negative.
        MemoryError
            The device has not so much free memory.
        """
        bytesize = _arguments.whole("bytesize", bytesize)
        if bytesize < 0:
            raise ValueError(f"bytesize is {bytesize}; it must not be negative")
        with self._current():
            if not bytesize:
                return GPUArray((0,), BYTE)
            allocation = driver.mem_alloc(bytesize)
            elements = GPUArray((bytesize,), BYTE, gpudata=allocation)
        weakref.finalize(elements, self.deallocations.release, allocation).atexit = False
        return elements

    def memalloc(self, bytesize: int) -> MemoryPointer:
        """Returns new device memory of a number of bytes.

        Parameters
        ----------
        bytesize : int
            The number of bytes.

        Returns
        -------
        MemoryPointer
            The memory, freed when nothing refers to it.

        Raises
        ------
        TypeError
            ``bytesize`` is no whole number.
        ValueError
            ``bytesize`` is negative.
        MemoryError
            The device has not so much free memory.
        """
        return MemoryPointer.of(self, self.allocate(bytesize))

    def memhostalloc(
        self, bytesize: int, mapped: bool = False, portable: bool = False, wc: bool = False
    ) -> Any:
        """Returns new page-locked host memory: bytes that ``numpy.ndarray(buffer=...)`` and the
        functions of this package take.

        Parameters
        ----------
        bytesize : int
            The number of bytes.
        mapped : bool
            Whether kernels can use it, too.
        portable : bool
            Whether it is page-locked for all devices.
        wc : bool
            Whether it is write-combined: faster to write on the host, and slow to read there.

        Returns
        -------
        numpy.ndarray
            The bytes, of dtype uint8.

        Raises
        ------
        TypeError
            ``bytesize`` is no whole number.
        ValueError
            ``bytesize`` is negative.
        MemoryError
            There is not so much memory.
        """
        flags = 2 * bool(mapped) | bool(portable) | 4 * bool(wc)
        with self._current():
            return new_host_memory(driver.pagelocked_empty, bytesize, flags, self, bool(mapped))

    def memallocmanaged(self, bytesize: int, attach_global: bool = True) -> Any:
        """Returns new memory that both the host and the device use, as bytes.

        Parameters
        ----------
        bytesize : int
            The number of bytes.
        attach_global : bool
            Whether any stream can use it, or the host first.

        Returns
        -------
        numpy.ndarray
            The bytes, of dtype uint8.

        Raises
        ------
        TypeError
            ``bytesize`` is no whole number.
        pygpu.driver.Unsupported
            The device has no managed memory.
        ValueError
            ``bytesize`` is negative.
        MemoryError
            There is not so much memory.
        """
        with self._current():
            flags = 1 if attach_global else 2
            return new_host_memory(driver.managed_empty, bytesize, flags, self, True)

    def mempin(self, owner: Any, pointer: int, size: int, mapped: bool = False) -> Any:
        """Page-locks host memory until the result is freed or gone.

        Parameters
        ----------
        owner : object
            What the memory belongs to; it is kept.
        pointer : int
            The memory's address.
        size : int
            The number of bytes.
        mapped : bool
            Whether kernels can use it meanwhile.

        Returns
        -------
        numpy.ndarray
            The same bytes, of dtype uint8; their ``free`` ends the registration.

        Raises
        ------
        TypeError
            ``pointer`` or ``size`` is no whole number.
        pygpu.driver.LogicError
            The memory is page-locked already.

        Examples
        --------
        >>> import numpy as np
        >>> from pygpu import cuda
        >>> host = np.zeros(100)
        >>> pinned = cuda.current_context().mempin(host, host.ctypes.data, host.nbytes)
        >>> pinned.free()
        """
        buffer = np.frombuffer(_core.address_as_buffer(pointer, size, owner), BYTE)
        with self._current():
            registered = driver.register_host_memory(buffer, 2 * bool(mapped))
        return HostMemory.over(registered, self, bool(mapped))

    # -- other processes, other devices ----------------------------------------------------

    def get_ipc_handle(self, memory: Any) -> _ipc.IpcHandle:
        """Returns a handle with which another process opens device memory.

        Parameters
        ----------
        memory : MemoryPointer or DeviceNDArray
            The memory; the handle keeps it in this process.

        Returns
        -------
        IpcHandle
            The handle, which can be pickled. All work of the device queued so far has run.

        Raises
        ------
        TypeError
            ``memory`` is no device memory.
        pygpu.driver.Unsupported
            The backend or the kind of memory cannot be shared.
        ValueError
            The memory has no bytes.

        Examples
        --------
        >>> from pygpu import cuda
        >>> context = cuda.current_context()
        >>> context.get_ipc_handle(context.memalloc(100)).size
        100
        """
        return _ipc.export(self, memory)

    def open_ipc_handle(self, handle: Any, size: int) -> MemoryPointer:
        """Returns the first ``size`` bytes of another process's allocation.

        Parameters
        ----------
        handle : HandleBytes or bytes
            The 64 bytes of the driver's handle.
        size : int
            The number of bytes.

        Returns
        -------
        MemoryPointer
            The memory, which is closed when nothing refers to it.

        Raises
        ------
        ValueError
            The allocation has fewer bytes.
        pygpu.driver.LogicError
            The handle is none of memory that exists, or (on CUDA and HIP) of this process.
        """
        return _ipc.import_memory(self, handle, size)

    def can_access_peer(self, peer_device: int) -> bool:
        """Returns True if kernels on this device can use another one's memory.

        Parameters
        ----------
        peer_device : int
            The number of the other device.

        Returns
        -------
        bool
            False for the device itself.

        Raises
        ------
        TypeError
            ``peer_device`` is no whole number.
        """
        return _core.can_access_peer(self.device.id, _arguments.whole("peer_device", peer_device))

    def enable_peer_access(self, peer_context: Context, flags: int = 0) -> None:
        """Lets kernels on this device use the memory of another one.

        Parameters
        ----------
        peer_context : Context
            The context of the other device.
        flags : int
            0.

        Raises
        ------
        ValueError
            ``flags`` is another number.
        pygpu.driver.Error
            The devices have no access to each other, or have it already.
        """
        if flags != 0:
            raise ValueError(f"flags is {flags}; only 0 is allowed")
        with self._current():
            _core.set_peer_access(peer_context.device.id, True)

    # -- streams, events -------------------------------------------------------------------

    def create_stream(self) -> _stream.Stream:
        """Returns a new stream.

        Returns
        -------
        Stream
            The stream.
        """
        return _stream.stream()

    def create_external_stream(self, ptr: int) -> _stream.Stream:
        """Returns another library's stream by its handle.

        Parameters
        ----------
        ptr : int
            The handle. The stream has to exist as long as it is used.

        Returns
        -------
        Stream
            The stream.

        Raises
        ------
        TypeError
            ``ptr`` is no int.
        """
        return _stream.external_stream(ptr)

    def get_default_stream(self) -> _stream.Stream:
        """Returns the default stream.

        Returns
        -------
        Stream
            A new object for the stream.
        """
        return _stream.default_stream()

    def get_legacy_default_stream(self) -> _stream.Stream:
        """Returns the legacy default stream.

        Returns
        -------
        Stream
            The stream under the number 1.
        """
        return _stream.legacy_default_stream()

    def get_per_thread_default_stream(self) -> _stream.Stream:
        """Returns the default stream of this thread.

        Returns
        -------
        Stream
            The stream under the number 2.
        """
        return _stream.per_thread_default_stream()

    def create_event(self, timing: bool = True) -> _stream.Event:
        """Returns a new event.

        Parameters
        ----------
        timing : bool
            Whether its time can be asked for.

        Returns
        -------
        Event
            The event.
        """
        return _stream.event(timing)

    @contextlib.contextmanager
    def defer_cleanup(self) -> Iterator[None]:
        """Defers the freeing of memory from :meth:`allocate` for the ``with`` block.

        Yields
        ------
        None
            Nothing; memory that is freed in the block is freed when the outermost block ends.
        """
        with self.deallocations.disable():
            yield
