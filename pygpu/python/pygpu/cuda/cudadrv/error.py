"""The names of ``numba.cuda.cudadrv.error``, for the exceptions that pygpu raises instead."""

from ..._errors import BackendUnavailable as CudaSupportError
from ..._errors import Error as CudaDriverError
from ..._errors import RuntimeError as CudaRuntimeError

__all__ = ["CudaDriverError", "CudaRuntimeError", "CudaSupportError"]
