"""Device arrays, with the names of ``numba.cuda.cudadrv.devicearray``."""

from __future__ import annotations

from typing import Any

from ..._core import GPUArray
from .._array import DeviceNDArray
from .._array_base import DeviceNDArrayBase
from .._host_array import ManagedNDArray, MappedNDArray
from .._interface import auto_device, from_array_like, from_record_like
from .._ipc import IpcArrayHandle
from .._layout import (
    array_core,
    check_array_compatibility,
    errmsg_contiguous_buffer,
    is_contiguous,
    sentry_contiguous,
)
from .._record import DeviceRecord

__all__ = [
    "DeviceNDArray",
    "DeviceNDArrayBase",
    "DeviceRecord",
    "IpcArrayHandle",
    "ManagedNDArray",
    "MappedNDArray",
    "array_core",
    "auto_device",
    "check_array_compatibility",
    "errmsg_contiguous_buffer",
    "from_array_like",
    "from_record_like",
    "is_contiguous",
    "is_cuda_ndarray",
    "require_cuda_ndarray",
    "sentry_contiguous",
    "verify_cuda_ndarray_interface",
]


def is_cuda_ndarray(obj: Any) -> bool:
    """Returns whether an object is a device array.

    Parameters
    ----------
    obj : object
        Any object.

    Returns
    -------
    bool
        True for arrays of this package, and for others with numba's mark ``__cuda_ndarray__``.

    Examples
    --------
    >>> from pygpu import cuda
    >>> is_cuda_ndarray(cuda.device_array(3)), is_cuda_ndarray([1, 2])
    (True, False)
    """
    return isinstance(obj, GPUArray) or bool(getattr(obj, "__cuda_ndarray__", False))


def require_cuda_ndarray(obj: Any) -> None:
    """Raises an error for what is no device array.

    Parameters
    ----------
    obj : object
        Any object.

    Raises
    ------
    ValueError
        :func:`is_cuda_ndarray` is False for it.

    Examples
    --------
    >>> from pygpu import cuda
    >>> require_cuda_ndarray(cuda.device_array(3))
    """
    if not is_cuda_ndarray(obj):
        raise ValueError(f"obj is of type {type(obj).__name__}; a device array is needed")


def verify_cuda_ndarray_interface(obj: Any) -> None:
    """Raises an error for what lacks an attribute of a device array.

    Parameters
    ----------
    obj : object
        Any object.

    Raises
    ------
    ValueError
        It is no device array.
    AttributeError
        It has no ``shape``, ``strides``, ``dtype`` or ``size``.

    Examples
    --------
    >>> from pygpu import cuda
    >>> verify_cuda_ndarray_interface(cuda.device_array(3))
    """
    require_cuda_ndarray(obj)
    for name in ("shape", "strides", "dtype", "size"):
        getattr(obj, name)
