"""PyCUDA's functions that make the kernels of functions of its own arrays, and of selections: for
programs that call them. The arrays of this package have kernels of their own."""

from __future__ import annotations

from typing import Any

import numpy as np

from .. import _core
from ..tools import context_dependent_memoize
from .c_types import VectorArg
from .elementwise_factories import typed, unary
from .elementwise_source import get_elwise_kernel


@context_dependent_memoize
def get_binary_func_kernel(func: str, dtype_x: Any, dtype_y: Any, dtype_z: Any) -> _core.Function:
    """Returns a prepared kernel of ``z = func(x, y)``. Its arguments are ``x``, ``y``, ``z`` and
    the number of elements.

    Parameters
    ----------
    func : str
        The name of a function in CUDA C, which is part of the kernel's name, too.
    dtype_x, dtype_y, dtype_z : dtype
        The dtypes of the arrays.

    Raises
    ------
    CompileError
        There is no such function.

    Examples
    --------
    >>> x, y = gpuarray.arange(3, dtype=np.float32), gpuarray.ones(3, np.float32)
    >>> z = gpuarray.empty(3, np.float32)
    >>> largest = get_binary_func_kernel("fmaxf", np.float32, np.float32, np.float32)
    >>> largest.prepared_call(z._grid, z._block, x.gpudata, y.gpudata, z.gpudata, 3)
    >>> z
    array([1., 1., 2.], dtype=float32)
    """
    arguments = typed("{x} *x, {y} *y, {z} *z", x=dtype_x, y=dtype_y, z=dtype_z)
    return get_elwise_kernel(arguments, f"z[i] = {func}(x[i], y[i])", f"{func}_kernel")


@context_dependent_memoize
def get_binary_func_scalar_kernel(
    func: str, dtype_x: Any, dtype_y: Any, dtype_z: Any
) -> _core.Function:
    """Returns a prepared kernel of ``z = func(x, y)`` with a number ``y``. Its arguments are ``x``,
    ``y``, ``z`` and the number of elements.

    Parameters
    ----------
    func : str
        The name of a function in CUDA C, which is part of the kernel's name, too.
    dtype_x, dtype_y, dtype_z : dtype
        The dtypes of the array, the number and the result.

    Raises
    ------
    CompileError
        There is no such function.

    Examples
    --------
    >>> x, z = gpuarray.arange(3, dtype=np.float32), gpuarray.empty(3, np.float32)
    >>> power = get_binary_func_scalar_kernel("powf", np.float32, np.float32, np.float32)
    >>> power.prepared_call(z._grid, z._block, x.gpudata, 2, z.gpudata, 3)
    >>> z
    array([0., 1., 4.], dtype=float32)
    """
    arguments = typed("{x} *x, {y} y, {z} *z", x=dtype_x, y=dtype_y, z=dtype_z)
    return get_elwise_kernel(arguments, f"z[i] = {func}(x[i], y)", f"{func}_kernel")


def get_binary_minmax_kernel(
    func: str, dtype_x: Any, dtype_y: Any, dtype_z: Any, use_scalar: bool
) -> _core.Function:
    """Returns a prepared kernel of the smaller or the larger of two values: the function of CUDA C
    for the dtypes, ``min``, ``fmin`` or ``fminf``. Its arguments are ``x``, ``y``, ``z`` and the
    number of elements.

    Parameters
    ----------
    func : {"min", "max"}
        Which of the two values the result is.
    dtype_x, dtype_y, dtype_z : dtype
        The dtypes of the arguments and of the result.
    use_scalar : bool
        Whether ``y`` is a number, not an array.

    Examples
    --------
    >>> x, z = gpuarray.arange(4, dtype=np.int32), gpuarray.empty(4, np.int32)
    >>> smaller = get_binary_minmax_kernel("min", np.int32, np.int32, np.int32, True)
    >>> smaller.prepared_call(z._grid, z._block, x.gpudata, 2, z.gpudata, 4)
    >>> z
    array([0, 1, 2, 2], dtype=int32)
    """
    if np.float64 not in [dtype_x, dtype_y]:
        func += "f"
    if any(np.dtype(dtype).kind == "f" for dtype in (dtype_x, dtype_y, dtype_z)):
        func = f"f{func}"
    elif func.endswith("f"):
        func = func[:-1]
    make = get_binary_func_scalar_kernel if use_scalar else get_binary_func_kernel
    return make(func, dtype_x, dtype_y, dtype_z)


@context_dependent_memoize
def get_pow_array_kernel(
    dtype_x: Any, dtype_y: Any, dtype_z: Any, is_base_array: bool, is_exp_array: bool
) -> _core.Function:
    """Returns a prepared kernel of ``z = x ** y``, by ``powf`` if ``z`` is of float32, else by
    ``pow``. Its arguments are ``x``, ``y``, ``z`` and the number of elements.

    Parameters
    ----------
    dtype_x, dtype_y, dtype_z : dtype
        The dtypes of base, exponent and result.
    is_base_array, is_exp_array : bool
        Whether the base and the exponent are arrays; one of them has to be.

    Raises
    ------
    AssertionError
        Neither is an array.

    Examples
    --------
    >>> x, z = gpuarray.arange(4, dtype=np.float32), gpuarray.empty(4, np.float32)
    >>> power = get_pow_array_kernel(np.float32, np.float32, np.float32, True, False)
    >>> power.prepared_call(z._grid, z._block, x.gpudata, 2, z.gpudata, 4)
    >>> z
    array([0., 1., 4., 9.], dtype=float32)
    """
    if not (is_base_array or is_exp_array):
        raise AssertionError("base and exponent are numbers; one of them has to be an array")
    function = "powf" if dtype_z == np.float32 else "pow"
    x, y = (
        ("*x", "x[i]") if is_base_array else ("x", "x"),
        ("*y", "y[i]") if is_exp_array else ("y",) * 2,
    )
    arguments = typed(f"{{x}} {x[0]}, {{y}} {y[0]}, {{z}} *z", x=dtype_x, y=dtype_y, z=dtype_z)
    return get_elwise_kernel(arguments, f"z[i] = {function}({x[1]}, {y[1]})", "pow_method")


@context_dependent_memoize
def get_fmod_kernel() -> _core.Function:
    """Returns a prepared kernel of ``fmod(arg, mod)``, of float32. Its arguments are ``arg``,
    ``mod``, the result and the number of elements.

    Examples
    --------
    >>> x = gpuarray.to_gpu(np.array([5, -5], np.float32))
    >>> y, z = gpuarray.full(2, 3, np.float32), gpuarray.empty(2, np.float32)
    >>> get_fmod_kernel().prepared_call(z._grid, z._block, x.gpudata, y.gpudata, z.gpudata, 2)
    >>> z
    array([ 2., -2.], dtype=float32)
    """
    arguments = "float *arg, float *mod, float *z"
    return get_elwise_kernel(arguments, "z[i] = fmod(arg[i], mod[i])", "fmod_kernel")


@context_dependent_memoize
def get_modf_kernel() -> _core.Function:
    """Returns a prepared kernel that splits numbers of float32 into whole numbers and fractions.
    Its arguments are the numbers, the whole numbers, the fractions and the number of elements.

    Examples
    --------
    >>> x = gpuarray.to_gpu(np.array([1.5, -2.25], np.float32))
    >>> whole, rest = gpuarray.empty_like(x), gpuarray.empty_like(x)
    >>> get_modf_kernel().prepared_call(
    ...     x._grid, x._block, x.gpudata, whole.gpudata, rest.gpudata, 2
    ... )
    >>> whole, rest
    (array([ 1., -2.], dtype=float32), array([ 0.5 , -0.25], dtype=float32))
    """
    arguments = "float *x, float *intpart, float *fracpart"
    return get_elwise_kernel(arguments, "fracpart[i] = modf(x[i], &intpart[i])", "modf_kernel")


@context_dependent_memoize
def get_frexp_kernel() -> _core.Function:
    """Returns a prepared kernel that splits numbers of float32 into a significand, from 0.5 to 1,
    and an exponent of 2. Its arguments are the numbers, the significands, the exponents, which are
    of float32, too, and the number of elements.

    Examples
    --------
    >>> x = gpuarray.to_gpu(np.array([3, 8], np.float32))
    >>> significand, exponent = gpuarray.empty_like(x), gpuarray.empty_like(x)
    >>> get_frexp_kernel().prepared_call(
    ...     x._grid, x._block, x.gpudata, significand.gpudata, exponent.gpudata, 2
    ... )
    >>> significand, exponent
    (array([0.75, 0.5 ], dtype=float32), array([2., 4.], dtype=float32))
    """
    body = "int expt = 0; significand[i] = frexp(x[i], &expt); exponent[i] = expt"
    return get_elwise_kernel("float *x, float *significand, float *exponent", body, "frexp_kernel")


@context_dependent_memoize
def get_ldexp_kernel() -> _core.Function:
    """Returns a prepared kernel of ``sig * 2**expt``, of float32. Its arguments are ``sig``,
    ``expt``, whose elements are whole numbers of float32, the result and the number of elements.

    Examples
    --------
    >>> x = gpuarray.to_gpu(np.array([0.75, 0.5], np.float32))
    >>> y, z = gpuarray.full(2, 4, np.float32), gpuarray.empty(2, np.float32)
    >>> get_ldexp_kernel().prepared_call(z._grid, z._block, x.gpudata, y.gpudata, z.gpudata, 2)
    >>> z
    array([12.,  8.], dtype=float32)
    """
    arguments = "float *sig, float *expt, float *z"
    return get_elwise_kernel(arguments, "z[i] = ldexp(sig[i], int(expt[i]))", "ldexp_kernel")


@context_dependent_memoize
def get_unary_func_kernel(func_name: str, in_dtype: Any, out_dtype: Any = None) -> _core.Function:
    """Returns a prepared kernel of a function of one argument. Its arguments are the array, the
    result and the number of elements.

    Parameters
    ----------
    func_name : str
        The name of a function in CUDA C, which is part of the kernel's name, too.
    in_dtype : dtype
        The dtype of the array.
    out_dtype : dtype, optional
        The dtype of the result; that of the array without it.

    Raises
    ------
    CompileError
        There is no such function.

    Examples
    --------
    >>> y = gpuarray.to_gpu(np.array([1, 4, 9], np.float32))
    >>> z = gpuarray.empty_like(y)
    >>> root = get_unary_func_kernel("sqrtf", np.float32)
    >>> root.prepared_call(z._grid, z._block, y.gpudata, z.gpudata, 3)
    >>> z
    array([1., 2., 3.], dtype=float32)
    """
    out_dtype = in_dtype if out_dtype is None else out_dtype
    return unary(f"{func_name}(y[i])", in_dtype, out_dtype, f"{func_name}_kernel")


def _selection(condition: str, crit_dtype: Any, dtype: Any) -> _core.Function:
    names = ("then_", "else_", "result")
    arguments = [VectorArg(crit_dtype, "crit"), *(VectorArg(dtype, name) for name in names)]
    body = f"result[i] = crit[i] {condition} 0 ? then_[i] : else_[i]"
    return get_elwise_kernel(arguments, body, "if_positive")


@context_dependent_memoize
def get_if_positive_kernel(crit_dtype: Any, dtype: Any) -> _core.Function:
    """Returns a prepared kernel that selects from two arrays by whether a third is above zero. Its
    arguments are the criterion, the array for where it is, the one for where it is not, the result
    and the number of elements.

    Parameters
    ----------
    crit_dtype : dtype
        The dtype of the criterion.
    dtype : dtype
        The dtype of the other arrays.

    Examples
    --------
    >>> crit = gpuarray.to_gpu(np.array([-1, 0, 1], np.int32))
    >>> x, y = gpuarray.ones(3, np.float32), gpuarray.zeros(3, np.float32)
    >>> z = gpuarray.empty(3, np.float32)
    >>> select = get_if_positive_kernel(np.int32, np.float32)
    >>> select.prepared_call(
    ...     z._grid, z._block, crit.gpudata, x.gpudata, y.gpudata, z.gpudata, 3
    ... )
    >>> z
    array([0., 0., 1.], dtype=float32)
    """
    return _selection(">", crit_dtype, dtype)


@context_dependent_memoize
def get_where_kernel(crit_dtype: Any, dtype: Any) -> _core.Function:
    """Returns a prepared kernel that selects from two arrays by whether a third is not zero. Its
    arguments are the criterion, the array for where it is not zero, the one for where it is, the
    result and the number of elements.

    Parameters
    ----------
    crit_dtype : dtype
        The dtype of the criterion.
    dtype : dtype
        The dtype of the other arrays.

    Examples
    --------
    >>> crit = gpuarray.to_gpu(np.array([-1, 0, 1], np.int32))
    >>> x, y = gpuarray.ones(3, np.float32), gpuarray.zeros(3, np.float32)
    >>> z = gpuarray.empty(3, np.float32)
    >>> select = get_where_kernel(np.int32, np.float32)
    >>> select.prepared_call(
    ...     z._grid, z._block, crit.gpudata, x.gpudata, y.gpudata, z.gpudata, 3
    ... )
    >>> z
    array([1., 0., 1.], dtype=float32)
    """
    return _selection("!=", crit_dtype, dtype)


@context_dependent_memoize
def get_logical_not_kernel(dtype_x: Any, dtype_out: Any) -> _core.Function:
    """Returns a prepared kernel of whether elements are zero. Its arguments are the array, the
    result and the number of elements.

    Parameters
    ----------
    dtype_x, dtype_out : dtype
        The dtypes of the array and of the result, which is 1 or 0.

    Examples
    --------
    >>> x, z = gpuarray.arange(3, dtype=np.int32), gpuarray.empty(3, np.int8)
    >>> is_zero = get_logical_not_kernel(np.int32, np.int8)
    >>> is_zero.prepared_call(z._grid, z._block, x.gpudata, z.gpudata, 3)
    >>> z
    array([1, 0, 0], dtype=int8)
    """
    arguments = [VectorArg(dtype_x, "x"), VectorArg(dtype_out, "out")]
    return get_elwise_kernel(arguments, "out[i] = (x[i] == 0)", "logical_not")
