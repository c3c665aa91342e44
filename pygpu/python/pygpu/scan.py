"""Scans (running sums and similar) by an expression in C, with the names of ``pycuda.scan``.

Each scan reads and writes an array once. The order in which elements are combined depends on the
length and the dtype alone, so a repeated scan of floating-point numbers returns the same bits.
"""

from typing import TYPE_CHECKING

from ._lazy import names as _names

if TYPE_CHECKING:
    from ._kernels.scan_kernel import ExclusiveScanKernel, InclusiveScanKernel
else:
    __getattr__, __dir__ = _names(
        __name__,
        {
            "._kernels.c_types": "dtype_to_ctype",
            "._kernels.scan_kernel": "ExclusiveScanKernel InclusiveScanKernel",
        },
    )

__all__ = ["ExclusiveScanKernel", "InclusiveScanKernel"]
