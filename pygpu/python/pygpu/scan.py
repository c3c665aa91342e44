"""Running results of a program's expression, with the names of ``pycuda.scan``.

An array is read and written once. Elements are combined in an order that depends on the length and
the dtype alone, so that a scan of floating-point numbers repeats to the last bit.
"""

from __future__ import annotations

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
