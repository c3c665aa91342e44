"""Element-wise kernels from statements in C, with the names of ``pycuda.elementwise``.

Arrays may have any strides. If all arrays are in C order, or all in Fortran order, ``i`` counts
elements in memory order. Otherwise ``i`` counts in C order; PyCUDA refuses such arrays. The
functions ``get_*_kernel`` take the dtypes of a kernel's arguments: ``dtype_x`` is that of ``x``.
"""

from typing import TYPE_CHECKING

from ._lazy import exports as _exports

if TYPE_CHECKING:
    from ._kernels.c_types import ScalarArg as ScalarArg
    from ._kernels.c_types import VectorArg as VectorArg
    from ._kernels.c_types import dtype_to_ctype as dtype_to_ctype
    from ._kernels.elementwise_factories import *  # noqa: F403
    from ._kernels.elementwise_kernel import *  # noqa: F403
    from .tools import context_dependent_memoize as context_dependent_memoize
else:
    __getattr__, __dir__, __all__ = _exports(
        __name__,
        {
            "._kernels.c_types": "ScalarArg VectorArg dtype_to_ctype",
            "._kernels.elementwise_kernel": """
                ElementwiseKernel get_elwise_kernel get_elwise_kernel_and_types
                get_elwise_module get_elwise_range_module""",
            "._kernels.elementwise_factories": """
                get_arange_kernel get_axpbyz_kernel get_axpbz_kernel get_binary_func_kernel
                get_binary_func_scalar_kernel get_binary_minmax_kernel get_binary_op_kernel
                get_conj_kernel get_copy_kernel get_fill_kernel get_fmod_kernel get_frexp_kernel
                get_if_positive_kernel get_imag_kernel get_ldexp_kernel
                get_linear_combination_kernel get_logical_not_kernel get_modf_kernel
                get_pow_array_kernel get_pow_kernel get_put_kernel get_rdivide_elwise_kernel
                get_real_kernel get_reverse_kernel get_scalar_op_kernel get_take_kernel
                get_take_put_kernel get_unary_func_kernel get_where_kernel""",
            ".tools": "context_dependent_memoize",
        },
    )
