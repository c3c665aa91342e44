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
    """Returns True for arrays of this package, and for others with numba's mark."""
    return isinstance(obj, GPUArray) or bool(getattr(obj, "__cuda_ndarray__", False))


def require_cuda_ndarray(obj: Any) -> None:
    """Raises ValueError for what is no device array."""
    if not is_cuda_ndarray(obj):
        raise ValueError(f"obj is of type {type(obj).__name__}; a device array is needed")


def verify_cuda_ndarray_interface(obj: Any) -> None:
    """Raises AttributeError or ValueError for what lacks an attribute of a device array."""
    require_cuda_ndarray(obj)
    for name in ("shape", "strides", "dtype", "size"):
        getattr(obj, name)
