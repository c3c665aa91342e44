"""Reductions of a program's expressions, with the names of ``pycuda.reduction``.

Arrays may have any strides. Elements are combined in an order that depends on their number alone,
which is not that of the elements: the expression has to be commutative and associative."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ._lazy import names as _names

if TYPE_CHECKING:
    from ._kernels.c_types import dtype_to_ctype
    from ._kernels.reduction_functions import (
        get_all_kernel,
        get_any_kernel,
        get_dot_kernel,
        get_minmax_kernel,
        get_minmax_neutral,
        get_subset_dot_kernel,
        get_subset_minmax_kernel,
        get_subset_sum_kernel,
        get_sum_kernel,
    )
    from ._kernels.reduction_kernel import (
        ReductionKernel,
        get_reduction_kernel_and_types,
        get_reduction_module,
    )
    from .tools import context_dependent_memoize
else:
    __getattr__, __dir__ = _names(
        __name__,
        {
            "._kernels.c_types": "dtype_to_ctype",
            "._kernels.reduction_functions": """
                get_all_kernel get_any_kernel get_dot_kernel get_minmax_kernel get_minmax_neutral
                get_subset_dot_kernel get_subset_minmax_kernel get_subset_sum_kernel
                get_sum_kernel""",
            "._kernels.reduction_kernel": """
                ReductionKernel get_reduction_kernel_and_types get_reduction_module""",
            ".tools": "context_dependent_memoize",
        },
    )

__all__ = [
    "ReductionKernel",
    "context_dependent_memoize",
    "dtype_to_ctype",
    "get_all_kernel",
    "get_any_kernel",
    "get_dot_kernel",
    "get_minmax_kernel",
    "get_minmax_neutral",
    "get_reduction_kernel_and_types",
    "get_reduction_module",
    "get_subset_dot_kernel",
    "get_subset_minmax_kernel",
    "get_subset_sum_kernel",
    "get_sum_kernel",
]
