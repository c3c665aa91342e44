"""The package PybindGPU under its other name."""

import sys
from typing import TYPE_CHECKING, Any

import PybindGPU
from PybindGPU import backend as backend
from PybindGPU import gpuarray as gpuarray

# `import PyGPU.gpuarray` and `from PyGPU.backend import ...` find the same modules.
sys.modules[f"{__name__}.backend"] = backend
sys.modules[f"{__name__}.gpuarray"] = gpuarray

if TYPE_CHECKING:
    from PybindGPU import *  # noqa: F403
else:
    from PybindGPU import __all__ as __all__
    from PybindGPU import __dir__ as __dir__

    def __getattr__(name: str) -> Any:
        return getattr(PybindGPU, name)
