"""PybindGPU's backend: arrays, pointers, allocators, streams and events, and their statuses.

Importing it touches no GPU. ``use_hip`` opens the backend when it is read, and so does
``from PybindGPU.backend import *``.
"""

from typing import Any

from . import _driver, _management, _status
from ._arrays import ARRAYS
from ._driver import *  # noqa: F403
from ._elements import POINTERS, DeviceAllocator, HostAllocator, PagelockedAllocator, per_dtype
from ._elements import dtype as dtype
from ._management import *  # noqa: F403
from ._status import *  # noqa: F403
from ._status import interface

# The version of PybindGPU's interface.
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

__all__ = [*_driver.__all__, *_management.__all__, *_status.__all__, *_made]
__all__ += ["cuda_enabled", "dtype", "major_version", "minor_version", "release_version", "use_hip"]


def __getattr__(name: str) -> Any:
    if name == "use_hip":
        return interface() == "hip"
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), "use_hip"})
