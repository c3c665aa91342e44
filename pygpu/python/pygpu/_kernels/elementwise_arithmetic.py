"""PyCUDA's functions that make the kernels of arithmetic of its own arrays: for programs that call
them. The arrays of this package have kernels of their own."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from .. import _core
from ..tools import context_dependent_memoize
from .c_types import ScalarArg, VectorArg, dtype_to_ctype
from .elementwise_factories import textured, typed
from .elementwise_source import get_elwise_kernel

if TYPE_CHECKING:
    from collections.abc import Sequence

    from .._driver.textures import TextureReference


@context_dependent_memoize
def get_linear_combination_kernel(
    summand_descriptors: Sequence[tuple[bool, Any, Any]], dtype_z: Any
) -> tuple[_core.Function, list[TextureReference]]:
    """Returns a prepared kernel of ``z = a0 x0 + a1 x1 + ...``, and the texture references through
    which it reads the factors that are in device memory. The kernel's arguments are ``a0``, ``x0``,
    ``a1``, ``x1``, ..., without the factors that it reads so, ``z`` and the number of elements.

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
    textures : list of TextureReference
        What arrays with the factors are bound to (:meth:`GPUArray.bind_to_texref_ext`).

    Raises
    ------
    Unsupported
        A factor is in device memory, and the device has no textures; or the backend compiles no
        kernels.

    Examples
    --------
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
    return textured(arguments, operation, name, textures, loop_prep=";\n".join(factors))


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

    Examples
    --------
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

    Examples
    --------
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

    Raises
    ------
    CompileError
        There is no such operator for these types.

    Examples
    --------
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

    Examples
    --------
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
def get_scalar_op_kernel(dtype_x: Any, dtype_a: Any, dtype_y: Any, operator: str) -> _core.Function:
    """Returns a prepared kernel of ``y = x operator a`` with a number ``a``. Its arguments are
    ``x``, ``a``, ``y`` and the number of elements.

    Parameters
    ----------
    dtype_x, dtype_a, dtype_y : dtype
        The dtypes of the array, the number and the result.
    operator : str
        An operator of C between two values: ``"-"``, ``"=="``.

    Raises
    ------
    CompileError
        There is no such operator for these types.

    Examples
    --------
    >>> x, y = gpuarray.arange(3, dtype=np.int32), gpuarray.empty(3, np.int32)
    >>> subtract = get_scalar_op_kernel(np.int32, np.int32, np.int32, "-")
    >>> subtract.prepared_call(y._grid, y._block, x.gpudata, 1, y.gpudata, 3)
    >>> y
    array([-1,  0,  1], dtype=int32)
    """
    arguments = typed("{x} *x, {a} a, {y} *y", x=dtype_x, a=dtype_a, y=dtype_y)
    return get_elwise_kernel(arguments, f"y[i] = x[i] {operator} a", "scalarop_kernel")
