"""Devices and contexts, with the names of ``numba.cuda.cudadrv.devices``."""

from .._devices import close as reset
from .._devices import current_context as get_context
from .._devices import gpus, require_context

__all__ = ["get_context", "gpus", "require_context", "reset"]
