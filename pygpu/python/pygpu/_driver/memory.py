"""Device memory: the functions of ``pycuda.driver`` that allocate and copy."""

from __future__ import annotations

from typing import Any

import numpy as np

from .. import _arguments, _core
from .._arguments import plain_dtype
from .._core import DeviceAllocation, Stream, mem_alloc
from .context import Context, ordinal_of


class PointerHolderBase:
    """The base of a program's own allocations: wherever device memory is an argument, an object of
    a subclass stands for the address that its ``get_pointer`` returns.

    Examples
    --------
    >>> import numpy as np
    >>> from pygpu import driver
    >>> class Part(driver.PointerHolderBase):
    ...     def __init__(self, memory, offset):
    ...         self.memory, self.offset = memory, offset
    ...
    ...     def get_pointer(self):
    ...         return int(self.memory) + self.offset
    >>> memory = driver.to_device(np.arange(4, dtype=np.uint8))
    >>> driver.from_device(Part(memory, 2), 2, np.uint8)
    array([2, 3], dtype=uint8)
    >>> import pygpu
    >>> view = Part(memory, 2).as_buffer(2)
    >>> view.nbytes, Part(memory, 0).get_pointer() == int(memory)
    (2, True)
    """

    def get_pointer(self) -> int:
        """Returns the device address: a subclass has it.

        Returns
        -------
        int
            The address.

        Raises
        ------
        NotImplementedError
            The subclass has none.
        """
        raise NotImplementedError(f"{type(self).__name__} has no get_pointer")

    def __int__(self) -> int:
        return self.get_pointer()

    def __index__(self) -> int:
        return self.get_pointer()

    def as_buffer(self, size: int, offset: int = 0) -> memoryview:
        """Returns a buffer over the memory for libraries that take device addresses as buffers, as
        those of MPI do.

        Parameters
        ----------
        size : int
            The number of bytes.
        offset : int
            The first byte.

        Returns
        -------
        memoryview
            The buffer, which keeps this object. Reading it on the host is possible on the host
            backend only.

        Raises
        ------
        NotImplementedError
            The subclass has no address.
        """
        return _core.address_as_buffer(self.get_pointer() + offset, size, self)


def mem_alloc_like(ary: Any) -> DeviceAllocation:
    """Allocates device memory for as many bytes as an array has.

    Parameters
    ----------
    ary : numpy.ndarray or GPUArray
        What has the number of bytes.

    Returns
    -------
    DeviceAllocation
        The memory, its bytes undefined.

    Raises
    ------
    TypeError
        ``ary`` is no array.
    MemoryError
        The device has not so much free memory.

    Examples
    --------
    >>> import numpy as np
    >>> from pygpu import autoinit, driver
    >>> driver.mem_alloc_like(np.zeros(4, np.float32)).size
    16
    """
    return mem_alloc(_arguments.array("ary", ary).nbytes)


def memcpy_htod(dest: Any, src: Any) -> None:
    """Copies host memory to the device.

    Parameters
    ----------
    dest : DeviceAllocation, GPUArray or int
        The device memory.
    src : numpy.ndarray or buffer
        The host memory, contiguous.

    Raises
    ------
    TypeError
        ``dest`` is no device memory, or ``src`` has no buffer.
    LogicError
        The device memory is smaller than the host memory.
    ValueError
        ``src`` is not contiguous.

    Notes
    -----
    The call returns when `src` may be changed. The driver's function is ``cuMemcpyHtoD``.

    Examples
    --------
    >>> import numpy as np
    >>> from pygpu import autoinit, driver
    >>> a = np.arange(3)
    >>> memory = driver.mem_alloc(a.nbytes)
    >>> driver.memcpy_htod(memory, a)
    >>> driver.from_device(memory, 3, np.int64)
    array([0, 1, 2])
    """
    _core.copy_to_device(dest, src, None, True)


def memcpy_htod_async(dest: Any, src: Any, stream: Stream | None = None) -> None:
    """Queues a copy of host memory to the device.

    Parameters
    ----------
    dest : DeviceAllocation, GPUArray or int
        The device memory.
    src : numpy.ndarray or buffer
        The host memory, contiguous.
    stream : Stream, optional
        Where the work is queued; the default stream without it.

    Raises
    ------
    TypeError
        ``dest`` is no device memory, or ``src`` has no buffer.
    LogicError
        The device memory is smaller than the host memory.
    ValueError
        ``src`` is not contiguous.

    Notes
    -----
    Page-locked memory may be changed when the stream has reached the end of the copy, other memory
    when the call returns. The driver's function is ``cuMemcpyHtoDAsync``.

    Examples
    --------
    >>> import numpy as np
    >>> from pygpu import autoinit, driver
    >>> a = np.arange(3)
    >>> memory = driver.mem_alloc(a.nbytes)
    >>> stream = driver.Stream()
    >>> driver.memcpy_htod_async(memory, a, stream)
    >>> stream.synchronize()
    """
    _core.copy_to_device(dest, src, stream, False)


def memcpy_dtoh(dest: Any, src: Any) -> None:
    """Copies device memory to the host, and waits for it.

    Parameters
    ----------
    dest : numpy.ndarray or buffer
        The host memory, contiguous and writable.
    src : DeviceAllocation, GPUArray or int
        The device memory.

    Raises
    ------
    TypeError
        ``src`` is no device memory, or ``dest`` has no buffer.
    LogicError
        The device memory is smaller than the host memory.
    ValueError
        ``dest`` is not contiguous, or is for reading only.

    Notes
    -----
    The driver's function is ``cuMemcpyDtoH``.

    Examples
    --------
    >>> import numpy as np
    >>> from pygpu import autoinit, driver
    >>> memory = driver.to_device(np.arange(3))
    >>> a = np.empty(3, np.int64)
    >>> driver.memcpy_dtoh(a, memory)
    >>> a
    array([0, 1, 2])
    """
    _core.copy_to_host(dest, src, None, True)


def memcpy_dtoh_async(dest: Any, src: Any, stream: Stream | None = None) -> None:
    """Queues a copy of device memory to the host.

    Parameters
    ----------
    dest : numpy.ndarray or buffer
        The host memory, contiguous and writable.
    src : DeviceAllocation, GPUArray or int
        The device memory.
    stream : Stream, optional
        Where the work is queued; the default stream without it.

    Raises
    ------
    TypeError
        ``src`` is no device memory, or ``dest`` has no buffer.
    LogicError
        The device memory is smaller than the host memory.
    ValueError
        ``dest`` is not contiguous, or is for reading only.

    Notes
    -----
    Page-locked memory has the bytes when the stream has reached the end of the copy, other memory
    when the call returns. The driver's function is ``cuMemcpyDtoHAsync``.

    Examples
    --------
    >>> import numpy as np
    >>> from pygpu import autoinit, driver
    >>> memory = driver.to_device(np.arange(3))
    >>> a = driver.pagelocked_empty(3, np.int64)
    >>> stream = driver.Stream()
    >>> driver.memcpy_dtoh_async(a, memory, stream)
    >>> stream.synchronize()
    >>> a
    array([0, 1, 2])
    """
    _core.copy_to_host(dest, src, stream, False)


def memcpy_dtod(dest: Any, src: Any, size: int) -> None:
    """Copies bytes inside device memory.

    Parameters
    ----------
    dest, src : DeviceAllocation, GPUArray or int
        The device memory.
    size : int
        The number of bytes.

    Raises
    ------
    LogicError
        An allocation has fewer bytes, or has been freed.
    TypeError
        An argument is no device memory.

    Notes
    -----
    The driver's function is ``cuMemcpyDtoD``. As there, the host does not wait for the copy; what
    uses the memory next, does.

    Examples
    --------
    >>> import numpy as np
    >>> from pygpu import autoinit, driver
    >>> src = driver.to_device(np.arange(3))
    >>> dest = driver.mem_alloc(24)
    >>> driver.memcpy_dtod(dest, src, 24)
    >>> driver.from_device(dest, 3, np.int64)
    array([0, 1, 2])
    """
    _core.copy_on_device(dest, src, size, None, True)


def memcpy_dtod_async(dest: Any, src: Any, size: int, stream: Stream | None = None) -> None:
    """Queues a copy of bytes inside device memory.

    Parameters
    ----------
    dest, src : DeviceAllocation, GPUArray or int
        The device memory.
    size : int
        The number of bytes.
    stream : Stream, optional
        Where the work is queued; the default stream without it.

    Raises
    ------
    LogicError
        An allocation has fewer bytes, or has been freed.
    TypeError
        An argument is no device memory.

    Notes
    -----
    The driver's function is ``cuMemcpyDtoDAsync``.

    Examples
    --------
    >>> import numpy as np
    >>> from pygpu import autoinit, driver
    >>> src = driver.to_device(np.arange(3))
    >>> dest = driver.mem_alloc(24)
    >>> driver.memcpy_dtod_async(dest, src, 24, driver.Stream())
    """
    _core.copy_on_device(dest, src, size, stream, False)


def memcpy_peer(
    dest: Any,
    src: Any,
    size: int,
    dest_context: Context | None = None,
    src_context: Context | None = None,
) -> None:
    """Copies bytes from one context's memory to another's (``cuMemcpyPeer``).

    Parameters
    ----------
    dest, src : DeviceAllocation, GPUArray or int
        The device memory.
    size : int
        The number of bytes.
    dest_context, src_context : Context, optional
        The contexts that the memory belongs to; the current one by default.

    Raises
    ------
    TypeError
        An argument is no device memory, or a context is none.
    LogicError
        Either memory is smaller.

    Examples
    --------
    >>> import numpy as np
    >>> from pygpu import autoinit, driver
    >>> src, dest = driver.to_device(np.arange(3)), driver.mem_alloc(24)
    >>> driver.memcpy_peer(dest, src, 24, src_context=autoinit.context)
    >>> driver.from_device(dest, 3, np.int64)
    array([0, 1, 2])
    """
    _core.copy_between_devices(
        dest,
        ordinal_of("dest_context", dest_context),
        src,
        ordinal_of("src_context", src_context),
        size,
        None,
        True,
    )


def memcpy_peer_async(
    dest: Any,
    src: Any,
    size: int,
    dest_context: Context | None = None,
    src_context: Context | None = None,
    stream: Stream | None = None,
) -> None:
    """Queues a copy of bytes from one context's memory to another's (``cuMemcpyPeerAsync``).

    Parameters
    ----------
    dest, src : DeviceAllocation, GPUArray or int
        The device memory.
    size : int
        The number of bytes.
    dest_context, src_context : Context, optional
        The contexts that the memory belongs to; the current one by default.
    stream : Stream, optional
        Where the work is queued; the default stream without it.

    Raises
    ------
    TypeError
        An argument is no device memory, or a context is none.
    LogicError
        Either memory is smaller.

    Examples
    --------
    >>> import numpy as np
    >>> from pygpu import driver
    >>> src, dest, stream = driver.to_device(np.arange(3)), driver.mem_alloc(24), driver.Stream()
    >>> driver.memcpy_peer_async(dest, src, 24, stream=stream)
    >>> stream.synchronize()
    >>> driver.from_device(dest, 3, np.int64)
    array([0, 1, 2])
    """
    _core.copy_between_devices(
        dest,
        ordinal_of("dest_context", dest_context),
        src,
        ordinal_of("src_context", src_context),
        size,
        stream,
        False,
    )


def to_device(bf_obj: Any) -> DeviceAllocation:
    """Allocates device memory for the bytes of an object, and copies them there.

    Parameters
    ----------
    bf_obj : numpy.ndarray or buffer
        The host memory, contiguous.

    Returns
    -------
    DeviceAllocation
        New memory.

    Raises
    ------
    TypeError
        ``bf_obj`` has no buffer.
    MemoryError
        The device has not so much free memory.

    Examples
    --------
    >>> import numpy as np
    >>> from pygpu import autoinit, driver
    >>> driver.to_device(np.arange(3)).size
    24
    """
    result = mem_alloc(_core.host_memory_size("bf_obj", bf_obj, False))
    memcpy_htod(result, bf_obj)
    return result


def from_device(devptr: Any, shape: Any, dtype: Any, order: str | None = "C") -> np.ndarray:
    """Copies bytes at a device address to a new numpy array.

    Parameters
    ----------
    devptr : DeviceAllocation, GPUArray or int
        The device memory.
    shape : int or sequence of int
        The extents of the axes.
    dtype : dtype
        The type of the elements, which are plain bytes.
    order : {"C", "F"}
        The memory order.

    Returns
    -------
    numpy.ndarray
        A new array.

    Raises
    ------
    LogicError
        The allocation has fewer bytes, or has been freed.
    TypeError
        The elements are Python objects; or ``devptr`` is no device memory.

    Examples
    --------
    >>> import numpy as np
    >>> from pygpu import autoinit, driver
    >>> memory = driver.to_device(np.arange(3))
    >>> driver.from_device(memory, 3, np.int64)
    array([0, 1, 2])
    """
    result = np.empty(shape, plain_dtype(dtype), order)  # type: ignore[call-overload, arg-type]
    memcpy_dtoh(result, devptr)
    return result


def from_device_like(devptr: Any, other_ary: Any) -> np.ndarray:
    """Copies bytes at a device address to a new numpy array like another.

    Parameters
    ----------
    devptr : DeviceAllocation, GPUArray or int
        The device memory.
    other_ary : numpy.ndarray or GPUArray
        What has the shape, the dtype and the order.

    Returns
    -------
    numpy.ndarray
        A new array.

    Raises
    ------
    LogicError
        The allocation has fewer bytes, or has been freed.
    TypeError
        The elements are Python objects; or ``devptr`` is no device memory.

    Examples
    --------
    >>> import numpy as np
    >>> from pygpu import autoinit, driver
    >>> memory = driver.to_device(np.arange(3))
    >>> driver.from_device_like(memory, np.empty(3, np.int64))
    array([0, 1, 2])
    """
    dtype = plain_dtype(_arguments.array("other_ary", other_ary).dtype)
    if not isinstance(other_ary, np.ndarray):
        # Nobody reads the elements: numpy takes shape and order from it.
        other_ary = np.lib.stride_tricks.as_strided(
            np.empty((), dtype), other_ary.shape, other_ary.strides
        )
    result = np.empty_like(other_ary)
    memcpy_dtoh(result, devptr)
    return result
