"""Reductions by expressions in C, with the names of ``pycuda.reduction``.

Arrays may have any strides. Elements are combined in an order that depends only on their number,
not on their positions: the expression must be commutative and associative."""

from typing import TYPE_CHECKING

from ._lazy import exports as _exports

if TYPE_CHECKING:
    from ._kernels.c_types import dtype_to_ctype as dtype_to_ctype
    from ._kernels.reduction_kernel import *  # noqa: F403
    from .tools import context_dependent_memoize as context_dependent_memoize
else:
    __getattr__, __dir__, __all__ = _exports(
        __name__,
        {
            "._kernels.c_types": "dtype_to_ctype",
            "._kernels.reduction_kernel": """
                ReductionKernel get_all_kernel get_any_kernel get_dot_kernel get_minmax_kernel
                get_minmax_neutral get_reduction_kernel_and_types get_reduction_module
                get_subset_dot_kernel get_subset_minmax_kernel get_subset_sum_kernel
                get_sum_kernel""",
            ".tools": "context_dependent_memoize",
        },
    )
