"""Devices and contexts, with the names of ``numba.cuda.cudadrv.devices``."""

from .._context import close as reset
from .._context import current_context as get_context
from .._context import gpus, require_context

__all__ = ["get_context", "gpus", "require_context", "reset"]
