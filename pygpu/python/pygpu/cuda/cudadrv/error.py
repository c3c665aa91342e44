"""The exceptions of ``numba.cuda.cudadrv.error``: those that this package raises in their place."""

from ..._errors import BackendUnavailable as CudaSupportError
from ..._errors import Error as CudaDriverError
from ..._errors import RuntimeError as CudaRuntimeError

__all__ = ["CudaDriverError", "CudaRuntimeError", "CudaSupportError"]
