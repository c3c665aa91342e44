"""Device arrays, with the names of ``numba.cuda.cudadrv.devicearray``.

Examples
--------
>>> verify_cuda_ndarray_interface(gpuarray.zeros(3, "f4"))
>>> is_cuda_ndarray(gpuarray.zeros(3, "f4")), is_cuda_ndarray([1, 2])
(True, False)
"""

from __future__ import annotations

from typing import Any

from ..._core import GPUArray
from .._array import DeviceNDArray, DeviceNDArrayBase, DeviceRecord, IpcArrayHandle
from .._creation import (
    ManagedNDArray,
    MappedNDArray,
    auto_device,
    from_array_like,
    from_record_like,
)
from .._memory import (
    array_core,
    check_array_compatibility,
    errmsg_contiguous_buffer,
    is_contiguous,
    sentry_contiguous,
)

__all__ = ["DeviceNDArray", "DeviceNDArrayBase", "DeviceRecord", "IpcArrayHandle", "ManagedNDArray"]
__all__ += ["MappedNDArray", "array_core", "auto_device", "check_array_compatibility"]
__all__ += ["errmsg_contiguous_buffer", "from_array_like", "from_record_like", "is_contiguous"]
__all__ += ["is_cuda_ndarray", "require_cuda_ndarray", "sentry_contiguous"]
__all__ += ["verify_cuda_ndarray_interface"]


def is_cuda_ndarray(obj: Any) -> bool:
    """Returns whether ``obj`` is a device array: of this package, or with numba's mark."""
    return isinstance(obj, GPUArray) or bool(getattr(obj, "__cuda_ndarray__", False))


def require_cuda_ndarray(obj: Any) -> None:
    """Raises ValueError unless :func:`is_cuda_ndarray` is True for ``obj``."""
    if not is_cuda_ndarray(obj):
        raise ValueError(f"obj is of type {type(obj).__name__}; a device array is needed")


def verify_cuda_ndarray_interface(obj: Any) -> None:
    """Raises an error if ``obj`` is not a device array, or lacks an attribute of one."""
    require_cuda_ndarray(obj)
    for name in ("shape", "strides", "dtype", "size"):
        getattr(obj, name)
