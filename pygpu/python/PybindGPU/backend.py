"""PybindGPU's backend: arrays, pointers, allocators, streams and events, and their statuses.

Importing it touches no GPU. ``use_hip`` opens the backend when it is read, and so does
``from PybindGPU.backend import *``.
"""

from __future__ import annotations

from typing import Any

from ._arrays import ARRAYS
from ._driver import (
    cudaDeviceProp,
    cudaDeviceReset,
    cudaDeviceSynchronize,
    cudaEvent_t,
    cudaEventElapsedTime,
    cudaEventRecord,
    cudaEventSynchronize,
    cudaGetDevice,
    cudaGetDeviceCount,
    cudaSetDevice,
    cudaStream_t,
)
from ._elements import (
    POINTERS,
    DeviceAllocator,
    HostAllocator,
    PagelockedAllocator,
    dtype,
    per_dtype,
)
from ._management import nvmlDevice, nvmlInit, nvmlReturn_t, nvmlShutdown
from ._status import (
    StatusWarning,
    cudaError_t,
    cudaGetErrorName,
    cudaGetErrorString,
    cudaGetLastError,
    interface,
)

# The interface that this package has: that of PybindGPU 0.2.2.
major_version = 0
minor_version = 2
release_version = 2
# PybindGPU sets it in every build that has a GPU's interface, HIP's too.
cuda_enabled = True

# True on HIP; see `__getattr__`.
use_hip: bool

_made = ARRAYS | POINTERS
for _base in (HostAllocator, DeviceAllocator, PagelockedAllocator):
    _made |= per_dtype(_base)
globals().update(_made)

__all__ = [
    "StatusWarning",
    "cudaDeviceProp",
    "cudaDeviceReset",
    "cudaDeviceSynchronize",
    "cudaError_t",
    "cudaEventElapsedTime",
    "cudaEventRecord",
    "cudaEventSynchronize",
    "cudaEvent_t",
    "cudaGetDevice",
    "cudaGetDeviceCount",
    "cudaGetErrorName",
    "cudaGetErrorString",
    "cudaGetLastError",
    "cudaSetDevice",
    "cudaStream_t",
    "cuda_enabled",
    "dtype",
    "major_version",
    "minor_version",
    "nvmlDevice",
    "nvmlInit",
    "nvmlReturn_t",
    "nvmlShutdown",
    "release_version",
    "use_hip",
    *_made,
]


def __getattr__(name: str) -> Any:
    if name == "use_hip":
        return interface() == "hip"
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), "use_hip"})
