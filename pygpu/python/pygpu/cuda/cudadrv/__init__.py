"""The modules of ``numba.cuda.cudadrv`` that programs import for memory."""

from . import devicearray, devices, driver, error

__all__ = ["devicearray", "devices", "driver", "error"]
