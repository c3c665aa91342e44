"""PyCUDA's factories of kernels of its own arrays' arithmetic, functions, selections and moves, for
programs that call them: the arrays of this package have kernels of their own.

Each returns a prepared kernel for contiguous arrays, whose last argument ``n`` is the number of
elements. They raise ``Unsupported`` where the backend compiles no kernels, and ``CompileError`` for
an operator or a function that CUDA C does not have for the dtypes.

Parameters
----------
dtype, dtype_x, dtype_y, dtype_z : dtype. The dtypes of the arrays, or numbers, of these names.
dtype_a, dtype_dest, dtype_src, dtype_out, in_dtype, out_dtype : dtype. Likewise.
crit_dtype, real_dtype, conj_dtype : dtype. Likewise, of a criterion and of results.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from .. import _core
from ..tools import context_dependent_memoize
from .c_types import ScalarArg, VectorArg, dtype_to_ctype
from .elementwise_source import get_elwise_kernel, textured_kernel

if TYPE_CHECKING:
    from collections.abc import Sequence

    from .._driver.textures import TextureReference

__all__ = [
    "get_arange_kernel",
    "get_axpbyz_kernel",
    "get_axpbz_kernel",
    "get_binary_func_kernel",
    "get_binary_func_scalar_kernel",
    "get_binary_minmax_kernel",
    "get_binary_op_kernel",
    "get_conj_kernel",
    "get_copy_kernel",
    "get_fill_kernel",
    "get_fmod_kernel",
    "get_frexp_kernel",
    "get_if_positive_kernel",
    "get_imag_kernel",
    "get_ldexp_kernel",
    "get_linear_combination_kernel",
    "get_logical_not_kernel",
    "get_modf_kernel",
    "get_pow_array_kernel",
    "get_rdivide_elwise_kernel",
    "get_real_kernel",
    "get_reverse_kernel",
    "get_scalar_op_kernel",
    "get_unary_func_kernel",
    "get_where_kernel",
]


def _typed(arguments: str, **types: Any) -> str:
    """Fills the C names of dtypes into a declaration."""
    return arguments.format(**{name: dtype_to_ctype(dtype) for name, dtype in types.items()})


def _unary(value: str, dtype: Any, dtype_z: Any, name: str) -> _core.Function:
    arguments = _typed("{y} *y, {z} *z", y=dtype, z=dtype_z)
    return get_elwise_kernel(arguments, f"z[i] = {value}", name)


@context_dependent_memoize
def get_linear_combination_kernel(
    summand_descriptors: Sequence[tuple[bool, Any, Any]], dtype_z: Any
) -> tuple[_core.Function, list[TextureReference]]:
    """Returns a kernel of ``z = a0 x0 + a1 x1 + ...``, and texture references.

    The kernel's arguments are ``a0, x0, a1, x1, ..., z, n``, without the factors that are in device
    memory: it reads those through the references. ``summand_descriptors`` has a tuple for each
    summand: whether its factor is in device memory, the dtype of the factor, and that of the array.
    Raises ``Unsupported`` if there are such factors and the device has no textures.

    >>> x, z = gpuarray.arange(3, dtype=np.float32), gpuarray.empty(3, np.float32)
    >>> summand = (False, np.float32, np.float32)
    >>> combine, _ = get_linear_combination_kernel((summand, summand), np.float32)
    >>> combine.prepared_call(z._grid, z._block, 2, x.gpudata, 10, x.gpudata, z.gpudata, 3)
    >>> z
    array([ 0., 12., 24.], dtype=float32)
    """
    arguments: list[Any] = []
    textures: dict[str, Any] = {}
    factors = []
    for k, (is_gpu_scalar, scalar_dtype, vector_dtype) in enumerate(summand_descriptors):
        if is_gpu_scalar:
            textures[f"tex_a{k}"] = scalar_dtype
            factors.append(f"{dtype_to_ctype(scalar_dtype)} a{k} = fp_tex1Dfetch(tex_a{k}, 0)")
        else:
            arguments.append(ScalarArg(scalar_dtype, f"a{k}"))
        arguments.append(VectorArg(vector_dtype, f"x{k}"))
    arguments.append(VectorArg(dtype_z, "z"))
    total = " + ".join(f"a{k}*x{k}[i]" for k in range(len(summand_descriptors)))
    operation, name = f"z[i] = {total}", "linear_combination"
    if not textures:
        return get_elwise_kernel(arguments, operation, name), []
    return textured_kernel(arguments, operation, name, textures, loop_prep=";\n".join(factors))


def _operand(name: str, dtype_z: Any, dtype: Any, is_scalar: bool) -> tuple[str, str]:
    """An operand of arithmetic in ``dtype_z``: the type that it is converted to, and itself."""
    dtype_z, dtype = np.dtype(dtype_z), np.dtype(dtype)
    real = dtype_z.type(0).real.dtype if dtype_z.kind == "c" != dtype.kind else dtype_z
    kind = dtype_to_ctype(real)
    return kind, f"({kind}){name}[{'0' if is_scalar else 'i'}]"


@context_dependent_memoize
def get_axpbyz_kernel(
    dtype_x: Any, dtype_y: Any, dtype_z: Any, x_is_scalar: bool = False, y_is_scalar: bool = False
) -> _core.Function:
    """Returns a kernel of ``z = a x + b y``, with the arguments ``a, x, b, y, z, n``.

    An array has one element, for all of the result, if ``x_is_scalar`` or ``y_is_scalar`` is True.

    >>> x, z = gpuarray.arange(3, dtype=np.float32), gpuarray.empty(3, np.float32)
    >>> axpbyz = get_axpbyz_kernel(np.float32, np.float32, np.float32)
    >>> axpbyz.prepared_call(z._grid, z._block, 2, x.gpudata, 5, x.gpudata, z.gpudata, 3)
    >>> z
    array([ 0.,  7., 14.], dtype=float32)
    """
    arguments = _typed("{x} a, {x} *x, {y} b, {y} *y, {z} *z", x=dtype_x, y=dtype_y, z=dtype_z)
    x_type, x = _operand("x", dtype_z, dtype_x, x_is_scalar)
    y_type, y = _operand("y", dtype_z, dtype_y, y_is_scalar)
    total = f"({x_type})a * ({x}) + ({y_type})b * ({y})"
    return get_elwise_kernel(arguments, f"z[i] = {total}", "axpbyz")


@context_dependent_memoize
def get_axpbz_kernel(dtype_x: Any, dtype_z: Any) -> _core.Function:
    """Returns a kernel of ``z = a x + b``, with the arguments ``a, x, b, z, n``.

    >>> x, z = gpuarray.arange(3, dtype=np.float32), gpuarray.empty(3, np.float32)
    >>> axpbz = get_axpbz_kernel(np.float32, np.float32)
    >>> axpbz.prepared_call(z._grid, z._block, 2, x.gpudata, 1, z.gpudata, 3)
    >>> z
    array([1., 3., 5.], dtype=float32)
    """
    arguments = _typed("{z} a, {x} *x, {z} b, {z} *z", x=dtype_x, z=dtype_z)
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
    """Returns a kernel of ``z = x operator y``, with the arguments ``x, y, z, n``.

    ``operator`` is one of C: ``"*"``, ``"<"``. ``x_is_scalar`` and ``y_is_scalar`` are those of
    :func:`get_axpbyz_kernel`.

    >>> x, z = gpuarray.arange(4, dtype=np.float32), gpuarray.empty(4, np.float32)
    >>> multiply = get_binary_op_kernel(np.float32, np.float32, np.float32, "*")
    >>> multiply.prepared_call(z._grid, z._block, x.gpudata, x.gpudata, z.gpudata, 4)
    >>> z
    array([0., 1., 4., 9.], dtype=float32)
    """
    arguments = _typed("{x} *x, {y} *y, {z} *z", x=dtype_x, y=dtype_y, z=dtype_z)
    _, x = _operand("x", dtype_z, dtype_x, x_is_scalar)
    _, y = _operand("y", dtype_z, dtype_y, y_is_scalar)
    value = f"({dtype_to_ctype(dtype_z)})({x} {operator} {y})"
    return get_elwise_kernel(arguments, f"z[i] = {value}", "multiply")


@context_dependent_memoize
def get_rdivide_elwise_kernel(dtype_x: Any, dtype_z: Any) -> _core.Function:
    """Returns a kernel of ``z = y / x`` with a number ``y`` of the dtype of ``z``: it takes ``x, y,
    z, n``.

    >>> x, z = gpuarray.full(2, 4, np.float32), gpuarray.empty(2, np.float32)
    >>> divide = get_rdivide_elwise_kernel(np.float32, np.float32)
    >>> divide.prepared_call(z._grid, z._block, x.gpudata, 8, z.gpudata, 2)
    >>> z
    array([2., 2.], dtype=float32)
    """
    arguments = _typed("{x} *x, {z} y, {z} *z", x=dtype_x, z=dtype_z)
    return get_elwise_kernel(arguments, "z[i] = y / x[i]", "divide_r")


@context_dependent_memoize
def get_scalar_op_kernel(dtype_x: Any, dtype_a: Any, dtype_y: Any, operator: str) -> _core.Function:
    """Returns a kernel of ``y = x operator a`` with a number ``a``: it takes ``x, a, y, n``.

    ``operator`` is one of C: ``"-"``, ``"=="``.

    >>> x, y = gpuarray.arange(3, dtype=np.int32), gpuarray.empty(3, np.int32)
    >>> subtract = get_scalar_op_kernel(np.int32, np.int32, np.int32, "-")
    >>> subtract.prepared_call(y._grid, y._block, x.gpudata, 1, y.gpudata, 3)
    >>> y
    array([-1,  0,  1], dtype=int32)
    """
    arguments = _typed("{x} *x, {a} a, {y} *y", x=dtype_x, a=dtype_a, y=dtype_y)
    return get_elwise_kernel(arguments, f"y[i] = x[i] {operator} a", "scalarop_kernel")


@context_dependent_memoize
def get_binary_func_kernel(func: str, dtype_x: Any, dtype_y: Any, dtype_z: Any) -> _core.Function:
    """Returns a kernel of ``z = func(x, y)``, with the arguments ``x, y, z, n``.

    ``func`` is a function in CUDA C, whose name is part of the kernel's.

    >>> x, z = gpuarray.arange(3, dtype=np.float32), gpuarray.empty(3, np.float32)
    >>> largest = get_binary_func_kernel("fmaxf", np.float32, np.float32, np.float32)
    >>> largest.prepared_call(z._grid, z._block, x.gpudata, x.gpudata, z.gpudata, 3)
    >>> z
    array([0., 1., 2.], dtype=float32)
    """
    arguments = _typed("{x} *x, {y} *y, {z} *z", x=dtype_x, y=dtype_y, z=dtype_z)
    return get_elwise_kernel(arguments, f"z[i] = {func}(x[i], y[i])", f"{func}_kernel")


@context_dependent_memoize
def get_binary_func_scalar_kernel(
    func: str, dtype_x: Any, dtype_y: Any, dtype_z: Any
) -> _core.Function:
    """Returns a kernel of ``z = func(x, y)`` with a number ``y``: it takes ``x, y, z, n``.

    ``func`` is as in :func:`get_binary_func_kernel`.

    >>> x, z = gpuarray.arange(3, dtype=np.float32), gpuarray.empty(3, np.float32)
    >>> power = get_binary_func_scalar_kernel("powf", np.float32, np.float32, np.float32)
    >>> power.prepared_call(z._grid, z._block, x.gpudata, 2, z.gpudata, 3)
    >>> z
    array([0., 1., 4.], dtype=float32)
    """
    arguments = _typed("{x} *x, {y} y, {z} *z", x=dtype_x, y=dtype_y, z=dtype_z)
    return get_elwise_kernel(arguments, f"z[i] = {func}(x[i], y)", f"{func}_kernel")


def get_binary_minmax_kernel(
    func: str, dtype_x: Any, dtype_y: Any, dtype_z: Any, use_scalar: bool
) -> _core.Function:
    """Returns a kernel of the smaller or the larger of two values, as ``func`` is ``"min"`` or
    ``"max"``: it takes ``x, y, z, n``.

    It calls ``min``, ``fmin`` or ``fminf`` as the dtypes need it. ``y`` is a number if
    ``use_scalar`` is True.

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
    """Returns a kernel of ``z = x ** y``, by ``powf`` if ``z`` is of float32, else by ``pow``: it
    takes ``x, y, z, n``.

    ``is_base_array`` and ``is_exp_array`` say which are arrays. Raises ``AssertionError`` if
    neither is.

    >>> x, z = gpuarray.arange(4, dtype=np.float32), gpuarray.empty(4, np.float32)
    >>> power = get_pow_array_kernel(np.float32, np.float32, np.float32, True, False)
    >>> power.prepared_call(z._grid, z._block, x.gpudata, 2, z.gpudata, 4)
    >>> z
    array([0., 1., 4., 9.], dtype=float32)
    """
    if not (is_base_array or is_exp_array):
        raise AssertionError("base and exponent are numbers; one of them has to be an array")
    function = "powf" if dtype_z == np.float32 else "pow"
    x, y = "x[i]" if is_base_array else "x", "y[i]" if is_exp_array else "y"
    stars = ("*" if is_base_array else "", "*" if is_exp_array else "")
    declared = f"{{x}} {stars[0]}x, {{y}} {stars[1]}y, {{z}} *z"
    arguments = _typed(declared, x=dtype_x, y=dtype_y, z=dtype_z)
    return get_elwise_kernel(arguments, f"z[i] = {function}({x}, {y})", "pow_method")


@context_dependent_memoize
def get_fmod_kernel() -> _core.Function:
    """Returns a kernel of ``z = fmod(arg, mod)``, all of float32: it takes ``arg, mod, z, n``.

    >>> x, y = gpuarray.full(2, -5, np.float32), gpuarray.full(2, 3, np.float32)
    >>> get_fmod_kernel().prepared_call(x._grid, x._block, x.gpudata, y.gpudata, x.gpudata, 2)
    >>> x
    array([-2., -2.], dtype=float32)
    """
    arguments = "float *arg, float *mod, float *z"
    return get_elwise_kernel(arguments, "z[i] = fmod(arg[i], mod[i])", "fmod_kernel")


@context_dependent_memoize
def get_modf_kernel() -> _core.Function:
    """Returns a kernel that splits float32 numbers: it takes ``x, intpart, fracpart, n``.

    >>> x, y = gpuarray.full(2, -2.25, np.float32), gpuarray.empty(2, np.float32)
    >>> get_modf_kernel().prepared_call(x._grid, x._block, x.gpudata, y.gpudata, x.gpudata, 2)
    >>> y, x
    (array([-2., -2.], dtype=float32), array([-0.25, -0.25], dtype=float32))
    """
    arguments = "float *x, float *intpart, float *fracpart"
    return get_elwise_kernel(arguments, "fracpart[i] = modf(x[i], &intpart[i])", "modf_kernel")


@context_dependent_memoize
def get_frexp_kernel() -> _core.Function:
    """Returns a kernel that splits numbers ``x`` into a significand, from 0.5 to 1, and an exponent
    of 2, all of float32. Its arguments are ``x, significand, exponent, n``.

    >>> x, y = gpuarray.full(2, 3, np.float32), gpuarray.empty(2, np.float32)
    >>> get_frexp_kernel().prepared_call(x._grid, x._block, x.gpudata, x.gpudata, y.gpudata, 2)
    >>> x, y
    (array([0.75, 0.75], dtype=float32), array([2., 2.], dtype=float32))
    """
    body = "int expt = 0; significand[i] = frexp(x[i], &expt); exponent[i] = expt"
    return get_elwise_kernel("float *x, float *significand, float *exponent", body, "frexp_kernel")


@context_dependent_memoize
def get_ldexp_kernel() -> _core.Function:
    """Returns a kernel of ``z = sig * 2**expt``, all of float32: it takes ``sig, expt, z, n``.

    >>> x, y = gpuarray.full(2, 0.75, np.float32), gpuarray.full(2, 4, np.float32)
    >>> get_ldexp_kernel().prepared_call(x._grid, x._block, x.gpudata, y.gpudata, x.gpudata, 2)
    >>> x
    array([12., 12.], dtype=float32)
    """
    arguments = "float *sig, float *expt, float *z"
    return get_elwise_kernel(arguments, "z[i] = ldexp(sig[i], int(expt[i]))", "ldexp_kernel")


@context_dependent_memoize
def get_unary_func_kernel(func_name: str, in_dtype: Any, out_dtype: Any = None) -> _core.Function:
    """Returns a kernel of ``z = func_name(y)``, with the arguments ``y, z, n``.

    ``func_name`` is a function in CUDA C, whose name is part of the kernel's.

    >>> y = gpuarray.full(3, 9, np.float32)
    >>> root = get_unary_func_kernel("sqrtf", np.float32)
    >>> root.prepared_call(y._grid, y._block, y.gpudata, y.gpudata, 3)
    >>> y
    array([3., 3., 3.], dtype=float32)
    """
    out_dtype = in_dtype if out_dtype is None else out_dtype
    return _unary(f"{func_name}(y[i])", in_dtype, out_dtype, f"{func_name}_kernel")


def _selection(condition: str, crit_dtype: Any, dtype: Any) -> _core.Function:
    names = ("then_", "else_", "result")
    arguments = [VectorArg(crit_dtype, "crit"), *(VectorArg(dtype, name) for name in names)]
    body = f"result[i] = crit[i] {condition} 0 ? then_[i] : else_[i]"
    return get_elwise_kernel(arguments, body, "if_positive")


@context_dependent_memoize
def get_if_positive_kernel(crit_dtype: Any, dtype: Any) -> _core.Function:
    """Returns a kernel of ``result = crit > 0 ? then_ : else_``, with the arguments ``crit, then_,
    else_, result, n``.

    >>> x, z = gpuarray.arange(-1, 2, dtype=np.int32), gpuarray.empty(3, np.int32)
    >>> select = get_if_positive_kernel(np.int32, np.int32)
    >>> select.prepared_call(z._grid, z._block, *[x.gpudata] * 2, z.gpudata, z.gpudata, 3)
    >>> int(z[2].get())
    1
    """
    return _selection(">", crit_dtype, dtype)


@context_dependent_memoize
def get_where_kernel(crit_dtype: Any, dtype: Any) -> _core.Function:
    """Returns a kernel of ``result = crit != 0 ? then_ : else_``, with the arguments ``crit, then_,
    else_, result, n``.

    >>> x, z = gpuarray.arange(-1, 2, dtype=np.int32), gpuarray.ones(3, np.int32)
    >>> select = get_where_kernel(np.int32, np.int32)
    >>> select.prepared_call(z._grid, z._block, *[x.gpudata] * 2, z.gpudata, z.gpudata, 3)
    >>> z
    array([-1,  1,  1], dtype=int32)
    """
    return _selection("!=", crit_dtype, dtype)


@context_dependent_memoize
def get_logical_not_kernel(dtype_x: Any, dtype_out: Any) -> _core.Function:
    """Returns a kernel of ``out = x == 0``, which is 1 or 0, with the arguments ``x, out, n``.

    >>> x, z = gpuarray.arange(3, dtype=np.int32), gpuarray.empty(3, np.int8)
    >>> is_zero = get_logical_not_kernel(np.int32, np.int8)
    >>> is_zero.prepared_call(z._grid, z._block, x.gpudata, z.gpudata, 3)
    >>> z
    array([1, 0, 0], dtype=int8)
    """
    arguments = [VectorArg(dtype_x, "x"), VectorArg(dtype_out, "out")]
    return get_elwise_kernel(arguments, "out[i] = (x[i] == 0)", "logical_not")


# -- kernels that move elements ---------------------------------------------------------


@context_dependent_memoize
def get_copy_kernel(dtype_dest: Any, dtype_src: Any) -> _core.Function:
    """Returns a kernel of ``dest = src``, as C converts, with the arguments ``dest, src, n``.

    >>> x, z = gpuarray.arange(3, dtype=np.float32), gpuarray.empty(3, np.int32)
    >>> copy = get_copy_kernel(np.int32, np.float32)
    >>> copy.prepared_call(z._grid, z._block, z.gpudata, x.gpudata, 3)
    >>> z
    array([0, 1, 2], dtype=int32)
    """
    arguments = _typed("{to} *dest, {of} *src", to=dtype_dest, of=dtype_src)
    return get_elwise_kernel(arguments, "dest[i] = src[i]", "copy")


@context_dependent_memoize
def get_fill_kernel(dtype: Any) -> _core.Function:
    """Returns a kernel of ``z = a`` with a number ``a``: the arguments are ``a, z, n``.

    >>> z = gpuarray.empty(3, np.int32)
    >>> get_fill_kernel(np.int32).prepared_call(z._grid, z._block, 7, z.gpudata, 3)
    >>> z
    array([7, 7, 7], dtype=int32)
    """
    return get_elwise_kernel(_typed("{z} a, {z} *z", z=dtype), "z[i] = a", "fill")


@context_dependent_memoize
def get_reverse_kernel(dtype: Any) -> _core.Function:
    """Returns a kernel that copies an array ``y`` backwards: its arguments are ``y, z, n``.

    >>> y, z = gpuarray.arange(3, dtype=np.int32), gpuarray.empty(3, np.int32)
    >>> get_reverse_kernel(np.int32).prepared_call(z._grid, z._block, y.gpudata, z.gpudata, 3)
    >>> z
    array([2, 1, 0], dtype=int32)
    """
    return get_elwise_kernel(_typed("{z} *y, {z} *z", z=dtype), "z[i] = y[n-1-i]", "reverse")


@context_dependent_memoize
def get_real_kernel(dtype: Any, real_dtype: Any) -> _core.Function:
    """Returns a kernel of the real parts of an array ``y``: its arguments are ``y, z, n``.

    >>> y, z = gpuarray.full(2, 1 + 2j, np.complex64), gpuarray.empty(2, np.float32)
    >>> real = get_real_kernel(np.complex64, np.float32)
    >>> real.prepared_call(z._grid, z._block, y.gpudata, z.gpudata, 2)
    >>> z
    array([1., 1.], dtype=float32)
    """
    return _unary("real(y[i])", dtype, real_dtype, "real")


@context_dependent_memoize
def get_imag_kernel(dtype: Any, real_dtype: Any) -> _core.Function:
    """Returns a kernel of the imaginary parts of an array ``y``: its arguments are ``y, z, n``.

    >>> y, z = gpuarray.full(2, 1 + 2j, np.complex64), gpuarray.empty(2, np.float32)
    >>> imag = get_imag_kernel(np.complex64, np.float32)
    >>> imag.prepared_call(z._grid, z._block, y.gpudata, z.gpudata, 2)
    >>> z
    array([2., 2.], dtype=float32)
    """
    return _unary("imag(y[i])", dtype, real_dtype, "imag")


@context_dependent_memoize
def get_conj_kernel(dtype: Any, conj_dtype: Any) -> _core.Function:
    """Returns a kernel of the conjugates of an array ``y``: its arguments are ``y, z, n``.

    >>> y = gpuarray.full(2, 1 + 2j, np.complex64)
    >>> conj = get_conj_kernel(np.complex64, np.complex64)
    >>> conj.prepared_call(y._grid, y._block, y.gpudata, y.gpudata, 2)
    >>> y
    array([1.-2.j, 1.-2.j], dtype=complex64)
    """
    return _unary("pycuda::conj(y[i])", dtype, conj_dtype, "conj_kernel")


@context_dependent_memoize
def get_arange_kernel(dtype: Any) -> _core.Function:
    """Returns a kernel of ``z[i] = start + i step``: its arguments are ``z, start, step, n``.

    >>> z = gpuarray.empty(3, np.float32)
    >>> get_arange_kernel(np.float32).prepared_call(z._grid, z._block, z.gpudata, 1, 0.5, 3)
    >>> z
    array([1. , 1.5, 2. ], dtype=float32)
    """
    arguments = _typed("{z} *z, {z} start, {z} step", z=dtype)
    return get_elwise_kernel(arguments, "z[i] = start + i*step", "arange")
