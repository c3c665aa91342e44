"""Copies of rows and slices: ``Memcpy2D`` and ``Memcpy3D`` of PyCUDA."""

from __future__ import annotations

from typing import Any

from .. import _arguments, _core
from .._errors import LogicError
from .device import Context, on_device, ordinal_of
from .enumerations import memory_type
from .texture_arrays import opened


def _size(name: str, value: Any) -> int:
    number = _arguments.whole(name, value)
    if not 0 <= number < 2**64:
        raise LogicError(f"{name} is {number}; allowed are 0 to 2**64 - 1")
    return number


class _Copy:
    """A copy between two memories: set where from, where to and how much, then call it."""

    def __init__(self) -> None:
        self.width_in_bytes = 0
        self.height = 0
        self.depth = 1
        self.src_memory_type = self.dst_memory_type = memory_type.HOST
        self.src_x_in_bytes = self.dst_x_in_bytes = 0
        self.src_y = self.dst_y = 0
        self.src_z = self.dst_z = 0
        self.src_pitch = self.dst_pitch = 0
        self.src_height = self.dst_height = 0
        self.src_device: Any = 0
        self.dst_device: Any = 0
        self.src_array: Any = None
        self.dst_array: Any = None
        self._src_host: Any = None
        self._dst_host: Any = None

    def set_src_host(self, buf_py: Any) -> None:
        """Reads from host memory.

        Parameters
        ----------
        buf_py : numpy.ndarray or buffer. The memory, contiguous.
        """
        self._src_host = _arguments.host_memory("buf_py", buf_py)
        self.src_memory_type = memory_type.HOST

    def set_src_unified(self, buf_py: Any) -> None:
        """Reads from memory that host and device share.

        Parameters
        ----------
        buf_py : numpy.ndarray or buffer. The memory, contiguous.
        """
        self._src_host = _arguments.host_memory("buf_py", buf_py)
        self.src_memory_type = memory_type.UNIFIED

    def set_src_device(self, devptr: Any) -> None:
        """Reads from device memory.

        Parameters
        ----------
        devptr : DeviceAllocation, GPUArray or int. The memory.
        """
        self.src_memory_type, self.src_device = memory_type.DEVICE, devptr

    def set_src_array(self, ary: Any) -> None:
        """Reads from an array for textures, whose pitch and height need not be set.

        Parameters
        ----------
        ary : Array. The array.
        """
        opened("ary", ary)
        self.src_memory_type, self.src_array = memory_type.ARRAY, ary

    def set_dst_host(self, buf_py: Any) -> None:
        """Writes to host memory.

        Parameters
        ----------
        buf_py : numpy.ndarray or buffer. The memory, contiguous and writable.
        """
        self._dst_host = _arguments.host_memory("buf_py", buf_py)
        self.dst_memory_type = memory_type.HOST

    def set_dst_unified(self, buf_py: Any) -> None:
        """Writes to memory that host and device share.

        Parameters
        ----------
        buf_py : numpy.ndarray or buffer. The memory, contiguous and writable.
        """
        self._dst_host = _arguments.host_memory("buf_py", buf_py)
        self.dst_memory_type = memory_type.UNIFIED

    def set_dst_device(self, devptr: Any) -> None:
        """Writes to device memory.

        Parameters
        ----------
        devptr : DeviceAllocation, GPUArray or int. The memory.
        """
        self.dst_memory_type, self.dst_device = memory_type.DEVICE, devptr

    def set_dst_array(self, ary: Any) -> None:
        """Writes to an array for textures, whose pitch and height need not be set.

        Parameters
        ----------
        ary : Array. The array.
        """
        opened("ary", ary)
        self.dst_memory_type, self.dst_array = memory_type.ARRAY, ary

    def _side(self, name: str) -> tuple[Any, bool, tuple[int, int, int, int, int]]:
        kind = getattr(self, f"{name}_memory_type")
        is_host = kind not in (memory_type.DEVICE, memory_type.ARRAY)
        if kind == memory_type.ARRAY:
            memory = opened(f"{name}_array", getattr(self, f"{name}_array"))
        else:
            memory = getattr(self, f"_{name}_host" if is_host else f"{name}_device")
        if memory is None:
            raise LogicError(f"no memory is set: call set_{name}_host or set_{name}_device")
        x, y, z, pitch, rows = (
            _size(f"{name}_{part}", getattr(self, f"{name}_{part}"))
            for part in ("x_in_bytes", "y", "z", "pitch", "height")
        )
        return memory, is_host, (x, y, z, pitch, rows)

    def _copy(self, stream: Any, wait: bool) -> None:
        _core.copy_rows(self._side("dst"), self._side("src"), self._extent(), stream, wait)

    def _extent(self) -> tuple[int, int, int]:
        return (
            _size("width_in_bytes", self.width_in_bytes),
            _size("height", self.height),
            _size("depth", self.depth),
        )


class Memcpy2D(_Copy):
    """A copy of ``height`` rows of ``width_in_bytes`` bytes between host memory, device memory and
    arrays for textures (``cuMemcpy2D``, ``hipMemcpyParam2D``). Set what it copies, then call it:
    with a bool to copy at once, with a stream to queue the copy.

    Attributes
    ----------
    width_in_bytes, height : int. The bytes of a row, and the number of rows.
    src_x_in_bytes, dst_x_in_bytes, src_y, dst_y : int. Where the first row begins: the byte in its
        row, and the row.
    src_pitch, dst_pitch : int. The row pitch in bytes; 0 for rows without gaps.

    Examples
    --------
    >>> host = np.arange(6, dtype=np.uint8).reshape(2, 3)
    >>> memory, pitch = driver.mem_alloc_pitch(3, 2, 4)
    >>> copy = driver.Memcpy2D()
    >>> copy.set_src_host(host)
    >>> copy.set_dst_device(memory)
    >>> copy.width_in_bytes, copy.height = 3, 2
    >>> copy.src_pitch, copy.dst_pitch = 3, pitch
    >>> copy(aligned=True)
    >>> driver.from_device(int(memory) + pitch, 3, np.uint8)
    array([3, 4, 5], dtype=uint8)
    >>> texels = driver.np_to_array(np.zeros((2, 3), np.uint8), "C")
    >>> copy.set_src_unified(host)  # as set_src_host
    >>> copy.set_dst_array(texels)
    >>> copy(True)
    >>> back = np.empty((2, 3), np.uint8)
    >>> copy.set_src_array(texels)
    >>> copy.set_dst_host(back)
    >>> copy.dst_pitch = 3
    >>> copy(True)
    >>> copy.set_src_device(memory)
    >>> copy.set_dst_unified(back)
    >>> copy.src_pitch = pitch
    >>> copy(True)
    >>> back
    array([[0, 1, 2],
           [3, 4, 5]], dtype=uint8)
    """

    def __call__(self, aligned: Any) -> None:
        """Copies at once, or queues the copy.

        Parameters
        ----------
        aligned : bool or Stream. The stream; or a truth value to copy at once, whichever it is.
        """
        if isinstance(aligned, (bool, int)):
            self._copy(None, True)
        else:
            self._copy(aligned, False)


class Memcpy3D(_Copy):
    """A copy of ``depth`` slices of rows, as :class:`Memcpy2D` otherwise (``cuMemcpy3D``,
    ``hipDrvMemcpy3D``). Call it without an argument to copy at once, with a stream to queue it.

    Attributes
    ----------
    src_z, dst_z : int. The first slice.
    src_height, dst_height : int. The rows from one slice to the next; 0 for slices without gaps.

    Examples
    --------
    >>> host, array = np.arange(24, dtype=np.uint8).reshape(2, 3, 4), gpuarray.zeros(8, np.uint8)
    >>> copy = driver.Memcpy3D()
    >>> copy.set_src_host(host)
    >>> copy.set_dst_device(array.gpudata)
    >>> copy.width_in_bytes, copy.height, copy.depth = 2, 2, 2
    >>> copy.src_pitch, copy.src_height, copy.dst_pitch, copy.dst_height = 4, 3, 2, 2
    >>> copy()
    >>> array
    array([ 0,  1,  4,  5, 12, 13, 16, 17], dtype=uint8)
    """

    def __init__(self) -> None:
        super().__init__()
        self.depth = 0
        self.src_lod = self.dst_lod = 0

    def __call__(self, stream: Any = None) -> None:
        """Copies at once, or queues the copy.

        Parameters
        ----------
        stream : Stream, optional. The stream.
        """
        self._copy(stream, stream is None)


class Memcpy3DPeer(Memcpy3D):
    """A :class:`Memcpy3D` between the memories of two contexts (``cuMemcpy3DPeer``); the current
    one by default.

    >>> from pygpu import autoinit
    >>> source, target = gpuarray.arange(4, dtype=np.uint8), gpuarray.zeros(4, np.uint8)
    >>> copy = driver.Memcpy3DPeer()
    >>> copy.set_src_device(source.gpudata)
    >>> copy.set_dst_device(target.gpudata)
    >>> copy.set_src_context(autoinit.context)
    >>> copy.width_in_bytes, copy.height, copy.depth = 4, 1, 1
    >>> copy()
    >>> target
    array([0, 1, 2, 3], dtype=uint8)
    >>> copy.set_dst_context(autoinit.context)
    """

    def __init__(self) -> None:
        super().__init__()
        self._src_context: Context | None = None
        self._dst_context: Context | None = None

    def set_src_context(self, ctx: Context) -> None:
        """Sets the context whose memory is read.

        Parameters
        ----------
        ctx : Context. The context.
        """
        self._src_context = _arguments.instance("ctx", ctx, Context)

    def set_dst_context(self, ctx: Context) -> None:
        """Sets the context whose memory is written.

        Parameters
        ----------
        ctx : Context. The context.
        """
        self._dst_context = _arguments.instance("ctx", ctx, Context)

    def _copy(self, stream: Any, wait: bool) -> None:
        src, dst = self._side("src"), self._side("dst")
        ordinals = [
            ordinal_of("ctx", context) for context in (self._dst_context, self._src_context)
        ]
        home = ordinals[1 if dst[1] else 0]
        # A driver copies rows with a pitch, and arrays for textures, on the current device only.
        is_of_one = src[1] or dst[1] or ordinals[0] == ordinals[1]
        is_array = memory_type.ARRAY in (self.src_memory_type, self.dst_memory_type)
        if is_of_one and (src[1] or dst[1] or is_array or home == _core.current_ordinal()):
            with on_device(home):
                super()._copy(stream, wait)
            return
        _core.copy_rows_between_devices(
            (dst[0], ordinals[0], dst[2]),
            (src[0], ordinals[1], src[2]),
            self._extent(),
            stream,
            wait,
        )
