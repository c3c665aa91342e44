"""PyCUDA's functions that make the kernels of its own arrays: for programs that call them. The
arrays of this package have kernels of their own."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from . import _core
from ._c_types import ScalarArg, VectorArg, dtype_to_ctype
from ._elementwise_factories import no_textures, typed, unary
from ._elementwise_source import get_elwise_kernel
from .tools import context_dependent_memoize

if TYPE_CHECKING:
    from collections.abc import Sequence


@context_dependent_memoize
def get_linear_combination_kernel(
    summand_descriptors: Sequence[tuple[bool, Any, Any]], dtype_z: Any
) -> tuple[_core.Function, list[Any]]:
    """Returns a prepared kernel of ``z = a0 x0 + a1 x1 + ...``, and an empty list, where PyCUDA has
    texture references. The kernel's arguments are ``a0``, ``x0``, ``a1``, ``x1``, ..., ``z`` and
    the number of elements.

    Parameters
    ----------
    summand_descriptors : tuple of tuple
        For each summand: whether its factor is in device memory, the dtype of the factor, and that
        of the array.
    dtype_z : dtype
        The dtype of the result.

    Returns
    -------
    kernel : Function
        The kernel.
    textures : list
        Nothing.

    Raises
    ------
    Unsupported
        A factor is in device memory: PyCUDA reads it through a texture reference.

    Examples
    --------
    >>> from pygpu import gpuarray
    >>> x, z = gpuarray.arange(3, dtype=np.float32), gpuarray.empty(3, np.float32)
    >>> summand = (False, np.float32, np.float32)
    >>> combine, _ = get_linear_combination_kernel((summand, summand), np.float32)
    >>> combine.prepared_call(z._grid, z._block, 2, x.gpudata, 10, x.gpudata, z.gpudata, 3)
    >>> z
    array([ 0., 12., 24.], dtype=float32)
    """
    arguments: list[Any] = []
    for k, (is_gpu_scalar, scalar_dtype, vector_dtype) in enumerate(summand_descriptors):
        if is_gpu_scalar:
            raise no_textures("get_linear_combination_kernel")
        arguments += [ScalarArg(scalar_dtype, f"a{k}"), VectorArg(vector_dtype, f"x{k}")]
    arguments.append(VectorArg(dtype_z, "z"))
    total = " + ".join(f"a{k}*x{k}[i]" for k in range(len(summand_descriptors)))
    return get_elwise_kernel(arguments, f"z[i] = {total}", "linear_combination"), []


def _real_part(dtype_z: Any, dtype: Any) -> Any:
    """The dtype that a number is converted to for arithmetic in ``dtype_z``."""
    dtype_z, dtype = np.dtype(dtype_z), np.dtype(dtype)
    return dtype_z.type(0).real.dtype if dtype_z.kind == "c" != dtype.kind else dtype_z


@context_dependent_memoize
def get_axpbyz_kernel(
    dtype_x: Any, dtype_y: Any, dtype_z: Any, x_is_scalar: bool = False, y_is_scalar: bool = False
) -> _core.Function:
    """Returns a prepared kernel of ``z = a x + b y``. Its arguments are ``a``, ``x``, ``b``, ``y``,
    ``z`` and the number of elements.

    Parameters
    ----------
    dtype_x, dtype_y, dtype_z : dtype
        The dtypes of the arrays; a factor has that of its array.
    x_is_scalar, y_is_scalar : bool
        Whether the array has one element, for all elements of the result.

    Returns
    -------
    Function
        The kernel.

    Examples
    --------
    >>> from pygpu import gpuarray
    >>> x, y = gpuarray.arange(3, dtype=np.float32), gpuarray.ones(3, np.float32)
    >>> z = gpuarray.empty(3, np.float32)
    >>> axpbyz = get_axpbyz_kernel(np.float32, np.float32, np.float32)
    >>> axpbyz.prepared_call(z._grid, z._block, 2, x.gpudata, 5, y.gpudata, z.gpudata, 3)
    >>> z
    array([5., 7., 9.], dtype=float32)
    """
    arguments = typed("{x} a, {x} *x, {y} b, {y} *y, {z} *z", x=dtype_x, y=dtype_y, z=dtype_z)
    x_type = dtype_to_ctype(_real_part(dtype_z, dtype_x))
    y_type = dtype_to_ctype(_real_part(dtype_z, dtype_y))
    x, y = "x[0]" if x_is_scalar else "x[i]", "y[0]" if y_is_scalar else "y[i]"
    total = f"({x_type})a * (({x_type}){x}) + ({y_type})b * (({y_type}){y})"
    return get_elwise_kernel(arguments, f"z[i] = {total}", "axpbyz")


@context_dependent_memoize
def get_axpbz_kernel(dtype_x: Any, dtype_z: Any) -> _core.Function:
    """Returns a prepared kernel of ``z = a x + b``. Its arguments are ``a``, ``x``, ``b``, ``z``
    and the number of elements.

    Parameters
    ----------
    dtype_x, dtype_z : dtype
        The dtypes of the arrays; both numbers have that of ``z``.

    Returns
    -------
    Function
        The kernel.

    Examples
    --------
    >>> from pygpu import gpuarray
    >>> x, z = gpuarray.arange(3, dtype=np.float32), gpuarray.empty(3, np.float32)
    >>> axpbz = get_axpbz_kernel(np.float32, np.float32)
    >>> axpbz.prepared_call(z._grid, z._block, 2, x.gpudata, 1, z.gpudata, 3)
    >>> z
    array([1., 3., 5.], dtype=float32)
    """
    arguments = typed("{z} a, {x} *x, {z} b, {z} *z", x=dtype_x, z=dtype_z)
    return get_elwise_kernel(arguments, "z[i] = a * x[i] + b", "axpb")


@context_dependent_memoize
def get_binary_op_kernel(
    dtype_x: Any,
    dtype_y: Any,
    dtype_z: Any,
    operator: str,
    x_is_scalar: bool = False,
    y_is_scalar: bool = False,
) -> _core.Function:
    """Returns a prepared kernel of ``z = x operator y``. Its arguments are ``x``, ``y``, ``z`` and
    the number of elements.

    Parameters
    ----------
    dtype_x, dtype_y, dtype_z : dtype
        The dtypes of the arrays.
    operator : str
        An operator of C between two values: ``"*"``, ``"<"``.
    x_is_scalar, y_is_scalar : bool
        Whether the array has one element, for all elements of the result.

    Returns
    -------
    Function
        The kernel.

    Examples
    --------
    >>> from pygpu import gpuarray
    >>> x, z = gpuarray.arange(4, dtype=np.float32), gpuarray.empty(4, np.float32)
    >>> multiply = get_binary_op_kernel(np.float32, np.float32, np.float32, "*")
    >>> multiply.prepared_call(z._grid, z._block, x.gpudata, x.gpudata, z.gpudata, 4)
    >>> z
    array([0., 1., 4., 9.], dtype=float32)
    """
    arguments = typed("{x} *x, {y} *y, {z} *z", x=dtype_x, y=dtype_y, z=dtype_z)
    x_type = dtype_to_ctype(_real_part(dtype_z, dtype_x))
    y_type = dtype_to_ctype(_real_part(dtype_z, dtype_y))
    x, y = "x[0]" if x_is_scalar else "x[i]", "y[0]" if y_is_scalar else "y[i]"
    value = f"({dtype_to_ctype(dtype_z)})(({x_type}){x} {operator} ({y_type}){y})"
    return get_elwise_kernel(arguments, f"z[i] = {value}", "multiply")


@context_dependent_memoize
def get_rdivide_elwise_kernel(dtype_x: Any, dtype_z: Any) -> _core.Function:
    """Returns a prepared kernel of ``z = y / x`` with a number ``y``. Its arguments are ``x``,
    ``y``, ``z`` and the number of elements.

    Parameters
    ----------
    dtype_x, dtype_z : dtype
        The dtypes of the arrays; ``y`` has that of ``z``.

    Returns
    -------
    Function
        The kernel.

    Examples
    --------
    >>> from pygpu import gpuarray
    >>> x = gpuarray.to_gpu(np.array([1, 2, 4], np.float32))
    >>> z = gpuarray.empty(3, np.float32)
    >>> divide = get_rdivide_elwise_kernel(np.float32, np.float32)
    >>> divide.prepared_call(z._grid, z._block, x.gpudata, 8, z.gpudata, 3)
    >>> z
    array([8., 4., 2.], dtype=float32)
    """
    arguments = typed("{x} *x, {z} y, {z} *z", x=dtype_x, z=dtype_z)
    return get_elwise_kernel(arguments, "z[i] = y / x[i]", "divide_r")


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

    Returns
    -------
    Function
        The kernel.

    Examples
    --------
    >>> from pygpu import gpuarray
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

    Returns
    -------
    Function
        The kernel.

    Examples
    --------
    >>> from pygpu import gpuarray
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

    Returns
    -------
    Function
        The kernel.

    Examples
    --------
    >>> from pygpu import gpuarray
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

    Returns
    -------
    Function
        The kernel.

    Raises
    ------
    AssertionError
        Neither is an array.

    Examples
    --------
    >>> from pygpu import gpuarray
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

    Returns
    -------
    Function
        The kernel.

    Examples
    --------
    >>> from pygpu import gpuarray
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

    Returns
    -------
    Function
        The kernel.

    Examples
    --------
    >>> from pygpu import gpuarray
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

    Returns
    -------
    Function
        The kernel.

    Examples
    --------
    >>> from pygpu import gpuarray
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

    Returns
    -------
    Function
        The kernel.

    Examples
    --------
    >>> from pygpu import gpuarray
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

    Returns
    -------
    Function
        The kernel.

    Examples
    --------
    >>> from pygpu import gpuarray
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

    Returns
    -------
    Function
        The kernel.

    Examples
    --------
    >>> from pygpu import gpuarray
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

    Returns
    -------
    Function
        The kernel.

    Examples
    --------
    >>> from pygpu import gpuarray
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
def get_scalar_op_kernel(dtype_x: Any, dtype_a: Any, dtype_y: Any, operator: str) -> _core.Function:
    """Returns a prepared kernel of ``y = x operator a`` with a number ``a``. Its arguments are
    ``x``, ``a``, ``y`` and the number of elements.

    Parameters
    ----------
    dtype_x, dtype_a, dtype_y : dtype
        The dtypes of the array, the number and the result.
    operator : str
        An operator of C between two values: ``"-"``, ``"=="``.

    Returns
    -------
    Function
        The kernel.

    Examples
    --------
    >>> from pygpu import gpuarray
    >>> x, y = gpuarray.arange(3, dtype=np.int32), gpuarray.empty(3, np.int32)
    >>> subtract = get_scalar_op_kernel(np.int32, np.int32, np.int32, "-")
    >>> subtract.prepared_call(y._grid, y._block, x.gpudata, 1, y.gpudata, 3)
    >>> y
    array([-1,  0,  1], dtype=int32)
    """
    arguments = typed("{x} *x, {a} a, {y} *y", x=dtype_x, a=dtype_a, y=dtype_y)
    return get_elwise_kernel(arguments, f"y[i] = x[i] {operator} a", "scalarop_kernel")


@context_dependent_memoize
def get_logical_not_kernel(dtype_x: Any, dtype_out: Any) -> _core.Function:
    """Returns a prepared kernel of whether elements are zero. Its arguments are the array, the
    result and the number of elements.

    Parameters
    ----------
    dtype_x, dtype_out : dtype
        The dtypes of the array and of the result, which is 1 or 0.

    Returns
    -------
    Function
        The kernel.

    Examples
    --------
    >>> from pygpu import gpuarray
    >>> x, z = gpuarray.arange(3, dtype=np.int32), gpuarray.empty(3, np.int8)
    >>> is_zero = get_logical_not_kernel(np.int32, np.int8)
    >>> is_zero.prepared_call(z._grid, z._block, x.gpudata, z.gpudata, 3)
    >>> z
    array([1, 0, 0], dtype=int8)
    """
    arguments = [VectorArg(dtype_x, "x"), VectorArg(dtype_out, "out")]
    return get_elwise_kernel(arguments, "out[i] = (x[i] == 0)", "logical_not")
