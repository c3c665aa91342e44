"""PybindGPU's interface on NVIDIA GPUs, AMD GPUs and the CPU: calls return a status.

``import PyGPU as gpuarray`` is the same package. A call that fails returns a status, or leaves it
in ``last_status``. It raises an error only if ``PYGPU_STATUS`` is ``raise``.
"""

from typing import TYPE_CHECKING, Any

from . import backend as backend
from . import gpuarray as gpuarray
from .gpuarray import *  # noqa: F403

if TYPE_CHECKING:
    from .backend import *  # noqa: F403
else:
    __all__ = sorted({*gpuarray.__all__, *backend.__all__})

    def __getattr__(name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        return getattr(backend, name)

    def __dir__() -> list[str]:
        return sorted({*globals(), *backend.__all__})
