"""PyCUDA's functions that make the kernels of its own arrays: for programs that call them. The
arrays of this package have kernels of their own."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from . import _core
from ._c_types import ScalarArg, VectorArg, dtype_to_ctype
from ._elementwise_source import get_elwise_kernel
from ._errors import Unsupported
from .tools import context_dependent_memoize

if TYPE_CHECKING:
    from collections.abc import Sequence


def _no_textures(name: str) -> Unsupported:
    return Unsupported(
        f"{name}: its kernel reads through texture references, which drivers since CUDA 12 have not"
    )


@context_dependent_memoize
def get_take_kernel(dtype: Any, idx_dtype: Any, vec_count: int = 1) -> Any:
    """Raises ``Unsupported``: the kernel reads through textures. ``gpuarray.take`` does the
    work."""
    raise _no_textures("get_take_kernel")


@context_dependent_memoize
def get_take_put_kernel(dtype: Any, idx_dtype: Any, with_offsets: bool, vec_count: int = 1) -> Any:
    """Raises ``Unsupported``: the kernel reads through textures. ``gpuarray.multi_take_put`` does
    the work."""
    raise _no_textures("get_take_put_kernel")


@context_dependent_memoize
def get_put_kernel(dtype: Any, idx_dtype: Any, vec_count: int = 1) -> _core.Function:
    """Returns a kernel of indices, ``vec_count`` targets and as many sources: the elements of each
    source go to the target's elements with these indices."""
    targets = [VectorArg(dtype, f"dest{k}") for k in range(vec_count)]
    sources = [VectorArg(dtype, f"src{k}") for k in range(vec_count)]
    body = f"{dtype_to_ctype(idx_dtype)} dest_idx = gmem_dest_idx[i];\n"
    body += "\n".join(f"dest{k}[dest_idx] = src{k}[i];" for k in range(vec_count))
    return get_elwise_kernel(
        [VectorArg(idx_dtype, "gmem_dest_idx"), *targets, *sources], body, "put"
    )


def _typed(arguments: str, **types: Any) -> str:
    """Fills the C names of dtypes into a declaration."""
    return arguments.format(**{name: dtype_to_ctype(dtype) for name, dtype in types.items()})


@context_dependent_memoize
def get_copy_kernel(dtype_dest: Any, dtype_src: Any) -> _core.Function:
    """Returns the kernel of ``dest[i] = src[i]``, converted."""
    arguments = _typed("{to} *dest, {of} *src", to=dtype_dest, of=dtype_src)
    return get_elwise_kernel(arguments, "dest[i] = src[i]", "copy")


@context_dependent_memoize
def get_linear_combination_kernel(
    summand_descriptors: Sequence[tuple[bool, Any, Any]], dtype_z: Any
) -> tuple[_core.Function, list[Any]]:
    """Returns the kernel of ``z = a0 x0 + a1 x1 + ...`` and an empty list.

    A descriptor has whether the factor is in device memory, its dtype, and that of the array. A
    factor in device memory raises ``Unsupported``: PyCUDA reads it through a texture."""
    arguments: list[Any] = []
    for k, (is_gpu_scalar, scalar_dtype, vector_dtype) in enumerate(summand_descriptors):
        if is_gpu_scalar:
            raise _no_textures("get_linear_combination_kernel")
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
    """Returns the kernel of ``z = a x + b y``; an array that is a scalar has one element."""
    arguments = _typed("{x} a, {x} *x, {y} b, {y} *y, {z} *z", x=dtype_x, y=dtype_y, z=dtype_z)
    x_type = dtype_to_ctype(_real_part(dtype_z, dtype_x))
    y_type = dtype_to_ctype(_real_part(dtype_z, dtype_y))
    x, y = "x[0]" if x_is_scalar else "x[i]", "y[0]" if y_is_scalar else "y[i]"
    total = f"({x_type})a * (({x_type}){x}) + ({y_type})b * (({y_type}){y})"
    return get_elwise_kernel(arguments, f"z[i] = {total}", "axpbyz")


@context_dependent_memoize
def get_axpbz_kernel(dtype_x: Any, dtype_z: Any) -> _core.Function:
    """Returns the kernel of ``z = a x + b``."""
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
    """Returns the kernel of an operator between two arrays; one that is a scalar has one
    element."""
    arguments = _typed("{x} *x, {y} *y, {z} *z", x=dtype_x, y=dtype_y, z=dtype_z)
    x_type = dtype_to_ctype(_real_part(dtype_z, dtype_x))
    y_type = dtype_to_ctype(_real_part(dtype_z, dtype_y))
    x, y = "x[0]" if x_is_scalar else "x[i]", "y[0]" if y_is_scalar else "y[i]"
    value = f"({dtype_to_ctype(dtype_z)})(({x_type}){x} {operator} ({y_type}){y})"
    return get_elwise_kernel(arguments, f"z[i] = {value}", "multiply")


@context_dependent_memoize
def get_rdivide_elwise_kernel(dtype_x: Any, dtype_z: Any) -> _core.Function:
    """Returns the kernel of ``z = y / x`` with a number ``y``."""
    arguments = _typed("{x} *x, {z} y, {z} *z", x=dtype_x, z=dtype_z)
    return get_elwise_kernel(arguments, "z[i] = y / x[i]", "divide_r")


@context_dependent_memoize
def get_binary_func_kernel(func: str, dtype_x: Any, dtype_y: Any, dtype_z: Any) -> _core.Function:
    """Returns the kernel of ``z = func(x, y)``."""
    arguments = _typed("{x} *x, {y} *y, {z} *z", x=dtype_x, y=dtype_y, z=dtype_z)
    return get_elwise_kernel(arguments, f"z[i] = {func}(x[i], y[i])", f"{func}_kernel")


@context_dependent_memoize
def get_binary_func_scalar_kernel(
    func: str, dtype_x: Any, dtype_y: Any, dtype_z: Any
) -> _core.Function:
    """Returns the kernel of ``z = func(x, y)`` with a number ``y``."""
    arguments = _typed("{x} *x, {y} y, {z} *z", x=dtype_x, y=dtype_y, z=dtype_z)
    return get_elwise_kernel(arguments, f"z[i] = {func}(x[i], y)", f"{func}_kernel")


def get_binary_minmax_kernel(
    func: str, dtype_x: Any, dtype_y: Any, dtype_z: Any, use_scalar: bool
) -> _core.Function:
    """Returns the kernel of ``min`` or ``max`` of two arrays, or of an array and a number."""
    if np.float64 not in [dtype_x, dtype_y]:
        func += "f"
    if any(np.dtype(dtype).kind == "f" for dtype in (dtype_x, dtype_y, dtype_z)):
        func = f"f{func}"
    elif func.endswith("f"):
        func = func[:-1]
    make = get_binary_func_scalar_kernel if use_scalar else get_binary_func_kernel
    return make(func, dtype_x, dtype_y, dtype_z)


@context_dependent_memoize
def get_fill_kernel(dtype: Any) -> _core.Function:
    """Returns the kernel of ``z = a`` with a number ``a``."""
    return get_elwise_kernel(_typed("{z} a, {z} *z", z=dtype), "z[i] = a", "fill")


@context_dependent_memoize
def get_reverse_kernel(dtype: Any) -> _core.Function:
    """Returns the kernel that copies an array backwards."""
    return get_elwise_kernel(_typed("{z} *y, {z} *z", z=dtype), "z[i] = y[n-1-i]", "reverse")


def _unary(value: str, dtype: Any, dtype_z: Any, name: str) -> _core.Function:
    arguments = _typed("{y} *y, {z} *z", y=dtype, z=dtype_z)
    return get_elwise_kernel(arguments, f"z[i] = {value}", name)


@context_dependent_memoize
def get_real_kernel(dtype: Any, real_dtype: Any) -> _core.Function:
    """Returns the kernel of the real parts."""
    return _unary("real(y[i])", dtype, real_dtype, "real")


@context_dependent_memoize
def get_imag_kernel(dtype: Any, real_dtype: Any) -> _core.Function:
    """Returns the kernel of the imaginary parts."""
    return _unary("imag(y[i])", dtype, real_dtype, "imag")


@context_dependent_memoize
def get_conj_kernel(dtype: Any, conj_dtype: Any) -> _core.Function:
    """Returns the kernel of the complex conjugates."""
    return _unary("pycuda::conj(y[i])", dtype, conj_dtype, "conj")


@context_dependent_memoize
def get_arange_kernel(dtype: Any) -> _core.Function:
    """Returns the kernel of ``z = start + i step``."""
    arguments = _typed("{z} *z, {z} start, {z} step", z=dtype)
    return get_elwise_kernel(arguments, "z[i] = start + i*step", "arange")


@context_dependent_memoize
def get_pow_array_kernel(
    dtype_x: Any, dtype_y: Any, dtype_z: Any, is_base_array: bool, is_exp_array: bool
) -> _core.Function:
    """Returns the kernel of ``z = x ** y``; at least one of the two is an array."""
    if not (is_base_array or is_exp_array):
        raise AssertionError("base and exponent are numbers; one of them has to be an array")
    function = "powf" if dtype_z == np.float32 else "pow"
    x, y = (
        ("*x", "x[i]") if is_base_array else ("x", "x"),
        ("*y", "y[i]") if is_exp_array else ("y",) * 2,
    )
    arguments = _typed(f"{{x}} {x[0]}, {{y}} {y[0]}, {{z}} *z", x=dtype_x, y=dtype_y, z=dtype_z)
    return get_elwise_kernel(arguments, f"z[i] = {function}({x[1]}, {y[1]})", "pow_method")


@context_dependent_memoize
def get_fmod_kernel() -> _core.Function:
    """Returns the kernel of the remainder of a division, in float32."""
    arguments = "float *arg, float *mod, float *z"
    return get_elwise_kernel(arguments, "z[i] = fmod(arg[i], mod[i])", "fmod_kernel")


@context_dependent_memoize
def get_modf_kernel() -> _core.Function:
    """Returns the kernel that splits float32 into whole numbers and fractions."""
    arguments = "float *x, float *intpart, float *fracpart"
    return get_elwise_kernel(arguments, "fracpart[i] = modf(x[i], &intpart[i])", "modf_kernel")


@context_dependent_memoize
def get_frexp_kernel() -> _core.Function:
    """Returns the kernel that splits float32 into significands and exponents."""
    body = "int expt = 0; significand[i] = frexp(x[i], &expt); exponent[i] = expt"
    return get_elwise_kernel("float *x, float *significand, float *exponent", body, "frexp_kernel")


@context_dependent_memoize
def get_ldexp_kernel() -> _core.Function:
    """Returns the kernel of ``sig * 2**expt``, in float32."""
    arguments = "float *sig, float *expt, float *z"
    return get_elwise_kernel(arguments, "z[i] = ldexp(sig[i], int(expt[i]))", "ldexp_kernel")


@context_dependent_memoize
def get_unary_func_kernel(func_name: str, in_dtype: Any, out_dtype: Any = None) -> _core.Function:
    """Returns the kernel of a function of one argument."""
    out_dtype = in_dtype if out_dtype is None else out_dtype
    return _unary(f"{func_name}(y[i])", in_dtype, out_dtype, f"{func_name}_kernel")


def _selection(condition: str, crit_dtype: Any, dtype: Any) -> _core.Function:
    names = ("then_", "else_", "result")
    arguments = [VectorArg(crit_dtype, "crit"), *(VectorArg(dtype, name) for name in names)]
    body = f"result[i] = crit[i] {condition} 0 ? then_[i] : else_[i]"
    return get_elwise_kernel(arguments, body, "if_positive")


@context_dependent_memoize
def get_if_positive_kernel(crit_dtype: Any, dtype: Any) -> _core.Function:
    """Returns the kernel that selects from two arrays by whether a third is positive."""
    return _selection(">", crit_dtype, dtype)


@context_dependent_memoize
def get_where_kernel(crit_dtype: Any, dtype: Any) -> _core.Function:
    """Returns the kernel that selects from two arrays by whether a third is not zero."""
    return _selection("!=", crit_dtype, dtype)


@context_dependent_memoize
def get_scalar_op_kernel(dtype_x: Any, dtype_a: Any, dtype_y: Any, operator: str) -> _core.Function:
    """Returns the kernel of an operator between an array and a number."""
    arguments = _typed("{x} *x, {a} a, {y} *y", x=dtype_x, a=dtype_a, y=dtype_y)
    return get_elwise_kernel(arguments, f"y[i] = x[i] {operator} a", "scalarop_kernel")


@context_dependent_memoize
def get_logical_not_kernel(dtype_x: Any, dtype_out: Any) -> _core.Function:
    """Returns the kernel that says which elements are zero."""
    arguments = [VectorArg(dtype_x, "x"), VectorArg(dtype_out, "out")]
    return get_elwise_kernel(arguments, "out[i] = (x[i] == 0)", "logical_not")
