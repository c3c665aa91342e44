"""PyCUDA's factories of kernels for arithmetic, functions, selection and copies of elements.

They exist for programs that call PyCUDA's: the arrays of pygpu have their own kernels.
Each returns a prepared kernel for contiguous arrays; its last argument, ``n``, is the number of
elements. They raise ``Unsupported`` if the backend does not compile kernels, and ``CompileError``
if CUDA C does not have an operator or a function for the dtypes.

Parameters
----------
dtype, dtype_x, dtype_y, dtype_z : dtype. The dtypes of the arguments of these names.
dtype_a, dtype_dest, dtype_src, dtype_out, in_dtype, out_dtype : dtype. Likewise.
crit_dtype, real_dtype, conj_dtype, idx_dtype : dtype. Likewise, of criteria, results, indices.
func, func_name : str. The name of a function in CUDA C.
vec_count : int. How many arrays are read or written.

Examples
--------
>>> x, z = gpuarray.arange(3, dtype=np.float32), gpuarray.empty(3, np.float32)
>>> axpbz = get_axpbz_kernel(np.float32, np.float32)
>>> axpbz.prepared_call(z._grid, z._block, 2, x.gpudata, 1, z.gpudata, 3)
>>> z
array([1., 3., 5.], dtype=float32)
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from .._array import DType
from .._core import Function, GPUArray
from .._documentation import member
from ..tools import context_dependent_memoize
from .c_types import ScalarArg, VectorArg, dtype_to_ctype
from .elementwise_kernel import get_elwise_kernel, textured_kernel

if TYPE_CHECKING:
    from .._driver.textures import TextureReference


# A kernel is made once for each text of its arguments, operation and name.
_kernel = context_dependent_memoize(get_elwise_kernel)


def _typed(arguments: str, **types: Any) -> str:
    return arguments.format(**{name: dtype_to_ctype(dtype) for name, dtype in types.items()})


def _unary(value: str, dtype: DType, dtype_z: DType, name: str) -> Function:
    arguments = _typed("{y} *y, {z} *z", y=dtype, z=dtype_z)
    return _kernel(arguments, f"z[i] = {value}", name)


@context_dependent_memoize
def get_linear_combination_kernel(
    summand_descriptors: Sequence[tuple[bool, Any, Any]], dtype_z: DType
) -> tuple[Function, list[TextureReference]]:
    """Returns a kernel of ``z = a0 x0 + a1 x1 + ...``, and texture references.

    The kernel's arguments are ``a0, x0, a1, x1, ..., z, n``, without the factors in device memory:
    it reads these through the references. ``summand_descriptors`` has a tuple for each summand:
    True if its factor is in device memory, the dtype of the factor, and the dtype of the array.
    Raises ``Unsupported`` for factors in device memory if the device does not support textures.
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
    """Returns the C type that an operand is converted to for ``dtype_z``, and the operand."""
    dtype_z, dtype = np.dtype(dtype_z), np.dtype(dtype)
    real = dtype_z.type(0).real.dtype if dtype_z.kind == "c" != dtype.kind else dtype_z
    kind = dtype_to_ctype(real)
    return kind, f"({kind}){name}[{'0' if is_scalar else 'i'}]"


def get_axpbyz_kernel(
    dtype_x: DType,
    dtype_y: DType,
    dtype_z: DType,
    x_is_scalar: bool = False,
    y_is_scalar: bool = False,
) -> Function:
    """Returns a kernel of ``z = a x + b y``, with the arguments ``a, x, b, y, z, n``.

    If ``x_is_scalar`` or ``y_is_scalar`` is True, that array has one element, used for all results.
    """
    arguments = _typed("{x} a, {x} *x, {y} b, {y} *y, {z} *z", x=dtype_x, y=dtype_y, z=dtype_z)
    x_type, x = _operand("x", dtype_z, dtype_x, x_is_scalar)
    y_type, y = _operand("y", dtype_z, dtype_y, y_is_scalar)
    total = f"({x_type})a * ({x}) + ({y_type})b * ({y})"
    return _kernel(arguments, f"z[i] = {total}", "axpbyz")


def get_axpbz_kernel(dtype_x: DType, dtype_z: DType) -> Function:
    """Returns a kernel of ``z = a x + b``, with the arguments ``a, x, b, z, n``."""
    arguments = _typed("{z} a, {x} *x, {z} b, {z} *z", x=dtype_x, z=dtype_z)
    return _kernel(arguments, "z[i] = a * x[i] + b", "axpb")


def get_binary_op_kernel(
    dtype_x: DType,
    dtype_y: DType,
    dtype_z: DType,
    operator: str,
    x_is_scalar: bool = False,
    y_is_scalar: bool = False,
) -> Function:
    """Returns a kernel of ``z = x operator y``, with the arguments ``x, y, z, n``.

    ``operator`` is C's, such as ``"<"``. ``x_is_scalar`` and ``y_is_scalar`` are as in
    :func:`get_axpbyz_kernel`.
    """
    arguments = _typed("{x} *x, {y} *y, {z} *z", x=dtype_x, y=dtype_y, z=dtype_z)
    _, x = _operand("x", dtype_z, dtype_x, x_is_scalar)
    _, y = _operand("y", dtype_z, dtype_y, y_is_scalar)
    value = f"({dtype_to_ctype(dtype_z)})({x} {operator} {y})"
    return _kernel(arguments, f"z[i] = {value}", "multiply")


def get_rdivide_elwise_kernel(dtype_x: DType, dtype_z: DType) -> Function:
    """Returns a kernel of ``z = y / x`` with a number ``y``: it takes ``x, y, z, n``."""
    arguments = _typed("{x} *x, {z} y, {z} *z", x=dtype_x, z=dtype_z)
    return _kernel(arguments, "z[i] = y / x[i]", "divide_r")


def get_scalar_op_kernel(dtype_x: DType, dtype_a: DType, dtype_y: DType, operator: str) -> Function:
    """Returns a kernel of ``y = x operator a``, with C's ``operator``: it takes ``x, a, y, n``."""
    arguments = _typed("{x} *x, {a} a, {y} *y", x=dtype_x, a=dtype_a, y=dtype_y)
    return _kernel(arguments, f"y[i] = x[i] {operator} a", "scalarop_kernel")


def get_binary_func_kernel(func: str, dtype_x: DType, dtype_y: DType, dtype_z: DType) -> Function:
    """Returns a kernel of ``z = func(x, y)``, a function in CUDA C: it takes ``x, y, z, n``."""
    arguments = _typed("{x} *x, {y} *y, {z} *z", x=dtype_x, y=dtype_y, z=dtype_z)
    return _kernel(arguments, f"z[i] = {func}(x[i], y[i])", f"{func}_kernel")


def get_binary_func_scalar_kernel(
    func: str, dtype_x: DType, dtype_y: DType, dtype_z: DType
) -> Function:
    """Returns :func:`get_binary_func_kernel` of ``func`` for a number ``y``."""
    arguments = _typed("{x} *x, {y} y, {z} *z", x=dtype_x, y=dtype_y, z=dtype_z)
    return _kernel(arguments, f"z[i] = {func}(x[i], y)", f"{func}_kernel")


def get_binary_minmax_kernel(
    func: str, dtype_x: DType, dtype_y: DType, dtype_z: DType, use_scalar: bool
) -> Function:
    """Returns a kernel of ``func`` ("min" or "max"), by the C function for the dtypes: it takes
    ``x, y, z, n``; ``y`` is a number if ``use_scalar`` is True.
    """
    if np.float64 not in [dtype_x, dtype_y]:
        func += "f"
    if any(np.dtype(dtype).kind == "f" for dtype in (dtype_x, dtype_y, dtype_z)):
        func = f"f{func}"
    elif func.endswith("f"):
        func = func[:-1]
    make = get_binary_func_scalar_kernel if use_scalar else get_binary_func_kernel
    return make(func, dtype_x, dtype_y, dtype_z)


def get_pow_array_kernel(
    dtype_x: DType, dtype_y: DType, dtype_z: DType, is_base_array: bool, is_exp_array: bool
) -> Function:
    """Returns a kernel of ``z = x ** y``, by ``powf`` for float32 ``z``: it takes ``x, y, z, n``.

    ``is_base_array`` and ``is_exp_array`` say which are arrays. Raises ``AssertionError`` if
    neither is.
    """
    if not (is_base_array or is_exp_array):
        raise AssertionError("base and exponent are numbers; one of them has to be an array")
    function = "powf" if dtype_z == np.float32 else "pow"
    x, y = "x[i]" if is_base_array else "x", "y[i]" if is_exp_array else "y"
    stars = ("*" if is_base_array else "", "*" if is_exp_array else "")
    declared = f"{{x}} {stars[0]}x, {{y}} {stars[1]}y, {{z}} *z"
    arguments = _typed(declared, x=dtype_x, y=dtype_y, z=dtype_z)
    return _kernel(arguments, f"z[i] = {function}({x}, {y})", "pow_method")


def get_pow_kernel(dtype: DType) -> Function:
    """Returns a kernel of ``z = y ** value``, which PyCUDA had until 2021: ``value, y, z, n``."""
    body = f"z[i] = pow{'f' * (dtype == np.float32)}(y[i], value)"
    return _kernel(_typed("{z} value, {z} *y, {z} *z", z=dtype), body, "pow_method")


def get_fmod_kernel() -> Function:
    """Returns a kernel of ``z = fmod(arg, mod)``, all of float32: it takes ``arg, mod, z, n``."""
    arguments = "float *arg, float *mod, float *z"
    return _kernel(arguments, "z[i] = fmod(arg[i], mod[i])", "fmod_kernel")


def get_modf_kernel() -> Function:
    """Returns a kernel that splits float32 numbers: it takes ``x, intpart, fracpart, n``."""
    arguments = "float *x, float *intpart, float *fracpart"
    return _kernel(arguments, "fracpart[i] = modf(x[i], &intpart[i])", "modf_kernel")


def get_frexp_kernel() -> Function:
    """Returns a kernel that splits float32 numbers: it takes ``x, significand, exponent, n``."""
    body = "int expt = 0; significand[i] = frexp(x[i], &expt); exponent[i] = expt"
    return _kernel("float *x, float *significand, float *exponent", body, "frexp_kernel")


def get_ldexp_kernel() -> Function:
    """Returns a kernel of ``z = sig * 2**expt``, all of float32: it takes ``sig, expt, z, n``."""
    arguments = "float *sig, float *expt, float *z"
    return _kernel(arguments, "z[i] = ldexp(sig[i], int(expt[i]))", "ldexp_kernel")


def get_unary_func_kernel(func_name: str, in_dtype: DType, out_dtype: DType = None) -> Function:
    """Returns a kernel of ``z = func_name(y)``, a function in CUDA C: it takes ``y, z, n``."""
    out_dtype = in_dtype if out_dtype is None else out_dtype
    return _unary(f"{func_name}(y[i])", in_dtype, out_dtype, f"{func_name}_kernel")


def _selection(condition: str, crit_dtype: DType, dtype: DType) -> Function:
    declared = "{crit} *crit, {of} *then_, {of} *else_, {of} *result"
    arguments = _typed(declared, crit=crit_dtype, of=dtype)
    body = f"result[i] = crit[i] {condition} 0 ? then_[i] : else_[i]"
    return _kernel(arguments, body, "if_positive")


_SELECTION = (
    "Returns a kernel of ``crit {} 0 ? then_ : else_``; it takes those, ``result`` and ``n``."
)
get_if_positive_kernel = member(_selection, ">", "get_if_positive_kernel", _SELECTION.format(">"))
get_where_kernel = member(_selection, "!=", "get_where_kernel", _SELECTION.format("!="))


def get_logical_not_kernel(dtype_x: DType, dtype_out: DType) -> Function:
    """Returns a kernel of ``out = x == 0`` (1 or 0), with the arguments ``x, out, n``."""
    arguments = _typed("{x} *x, {out} *out", x=dtype_x, out=dtype_out)
    return _kernel(arguments, "out[i] = (x[i] == 0)", "logical_not")


def get_copy_kernel(dtype_dest: DType, dtype_src: DType) -> Function:
    """Returns a kernel of ``dest = src``, converted as in C; its arguments: ``dest, src, n``."""
    arguments = _typed("{to} *dest, {of} *src", to=dtype_dest, of=dtype_src)
    return _kernel(arguments, "dest[i] = src[i]", "copy")


def get_fill_kernel(dtype: DType) -> Function:
    """Returns a kernel of ``z = a`` with a number ``a``: the arguments are ``a, z, n``."""
    return _kernel(_typed("{z} a, {z} *z", z=dtype), "z[i] = a", "fill")


def get_reverse_kernel(dtype: DType) -> Function:
    """Returns a kernel that copies an array ``y`` backwards: its arguments are ``y, z, n``."""
    return _kernel(_typed("{z} *y, {z} *z", z=dtype), "z[i] = y[n-1-i]", "reverse")


def get_real_kernel(dtype: DType, real_dtype: DType) -> Function:
    """Returns a kernel of the real parts of an array ``y``: its arguments are ``y, z, n``."""
    return _unary("real(y[i])", dtype, real_dtype, "real")


def get_imag_kernel(dtype: DType, real_dtype: DType) -> Function:
    """Returns a kernel of the imaginary parts of an array ``y``: its arguments are ``y, z, n``."""
    return _unary("imag(y[i])", dtype, real_dtype, "imag")


def get_conj_kernel(dtype: DType, conj_dtype: DType) -> Function:
    """Returns a kernel of the conjugates of an array ``y``: its arguments are ``y, z, n``."""
    return _unary("pycuda::conj(y[i])", dtype, conj_dtype, "conj_kernel")


def get_arange_kernel(dtype: DType) -> Function:
    """Returns a kernel of ``z[i] = start + i step``: its arguments are ``z, start, step, n``."""
    arguments = _typed("{z} *z, {z} start, {z} step", z=dtype)
    return _kernel(arguments, "z[i] = start + i*step", "arange")


@context_dependent_memoize
def get_take_kernel(
    dtype: DType, idx_dtype: DType, vec_count: int = 1
) -> tuple[Function, list[TextureReference]]:
    """Returns a kernel that reads ``vec_count`` sources at indices, through texture references.

    Also returns the references, to be bound to the sources. The kernel's arguments are the indices,
    ``vec_count`` targets, and the number of indices. Indices outside a source read 0.
    Raises ``Unsupported`` without textures; :func:`pygpu.gpuarray.take` does not need them.

    >>> source, target = gpuarray.arange(5, dtype=np.float32), gpuarray.zeros(2, np.float32)
    >>> indices = gpuarray.to_gpu(np.array([3, 1], np.int32))
    >>> take, (texture,) = get_take_kernel(np.float32, np.int32)
    >>> _ = source.bind_to_texref_ext(texture)
    >>> take.prepared_call(indices._grid, indices._block, indices.gpudata, target.gpudata, 2)
    >>> target
    array([3., 1.], dtype=float32)
    """
    targets = [VectorArg(dtype, f"dest{k}") for k in range(vec_count)]
    body = f"{dtype_to_ctype(idx_dtype)} src_idx = idx[i];\n"
    body += "\n".join(f"dest{k}[i] = fp_tex1Dfetch(tex_src{k}, src_idx);" for k in range(vec_count))
    textures = {f"tex_src{k}": dtype for k in range(vec_count)}
    return textured_kernel([VectorArg(idx_dtype, "idx"), *targets], body, "take", textures)


@context_dependent_memoize
def get_take_put_kernel(
    dtype: DType, idx_dtype: DType, with_offsets: bool, vec_count: int = 1
) -> tuple[Function, list[TextureReference]]:
    """Returns a kernel that reads like that of :func:`get_take_kernel` and writes at indices.

    Also returns the texture references. The kernel's arguments are the indices of targets, the
    indices of sources, ``vec_count`` targets and the number of indices. If ``with_offsets`` is
    True, an offset for each source's indices precedes the last argument. Raises ``Unsupported``
    without textures; :func:`pygpu.gpuarray.multi_take_put` does not need them.
    """
    index = dtype_to_ctype(idx_dtype)
    numbers = range(vec_count)
    arguments: list[Any] = [VectorArg(idx_dtype, f"gmem_{it}_idx") for it in ("dest", "src")]
    arguments += [VectorArg(dtype, f"dest{k}") for k in numbers]
    places = dict.fromkeys(numbers, "src_idx")
    if with_offsets:
        arguments += [ScalarArg(idx_dtype, f"offset{k}") for k in numbers]
        places = {k: f"src_idx + offset{k}" for k in numbers}
    body = f"{index} src_idx = gmem_src_idx[i];\n{index} dest_idx = gmem_dest_idx[i];\n"
    body += "\n".join(
        f"dest{k}[dest_idx] = fp_tex1Dfetch(tex_src{k}, {place});" for k, place in places.items()
    )
    return textured_kernel(arguments, body, "take_put", {f"tex_src{k}": dtype for k in numbers})


@context_dependent_memoize
def get_put_kernel(dtype: DType, idx_dtype: DType, vec_count: int = 1) -> Function:
    """Returns a kernel that writes each source to a target, at indices that are not checked.

    Its arguments: the indices, ``vec_count`` targets, ``vec_count`` sources, and how many indices.
    """
    targets = [VectorArg(dtype, f"dest{k}") for k in range(vec_count)]
    sources = [VectorArg(dtype, f"src{k}") for k in range(vec_count)]
    body = f"{dtype_to_ctype(idx_dtype)} dest_idx = gmem_dest_idx[i];\n"
    body += "\n".join(f"dest{k}[dest_idx] = src{k}[i];" for k in range(vec_count))
    arguments = [VectorArg(idx_dtype, "gmem_dest_idx"), *targets, *sources]
    return get_elwise_kernel(arguments, body, "put")


# Methods of PyCUDA's arrays that packages call although their names are private.


def _check_shapes(out: GPUArray, *others: GPUArray) -> None:
    for array in (out, *others):
        if not array.flags.forc:
            raise RuntimeError("only contiguous arrays may be used as arguments to this operation")
        if array.shape not in ((), out.shape):
            raise ValueError(f"an argument has shape {array.shape}; the result has {out.shape}")


def _run(factory: Any, dtypes: tuple[Any, ...], operands: tuple[Any, ...], stream: Any) -> None:
    """Queues a factory's kernel, whose last operand is the result."""
    out = operands[-1]
    addresses = (it.gpudata if isinstance(it, GPUArray) else it for it in operands)
    factory(*dtypes).prepared_async_call(out._grid, out._block, stream, *addresses, out.mem_size)


def _axpbyz(
    self: GPUArray, selffac: Any, other: GPUArray, otherfac: Any, out: GPUArray, stream: Any = None
) -> GPUArray:
    """Writes ``selffac * self + otherfac * other`` to ``out`` and returns that."""
    _check_shapes(out, self, other)
    dtypes = self.dtype, other.dtype, out.dtype, self.shape == (), other.shape == ()
    factors = self.dtype.type(selffac), other.dtype.type(otherfac)
    _run(get_axpbyz_kernel, dtypes, (factors[0], self, factors[1], other, out), stream)
    return out


def _axpbz(self: GPUArray, selffac: Any, other: Any, out: GPUArray, stream: Any = None) -> GPUArray:
    """Writes ``selffac * self`` plus a number to ``out`` and returns that."""
    _check_shapes(out, self)
    numbers = out.dtype.type(selffac), out.dtype.type(other)
    dtypes = self.dtype, out.dtype
    _run(get_axpbz_kernel, dtypes, (numbers[0], self, numbers[1], out), stream)
    return out


def _elwise_multiply(
    self: GPUArray, other: GPUArray, out: GPUArray, stream: Any = None
) -> GPUArray:
    """Writes the product of two arrays to ``out`` and returns that."""
    _check_shapes(out, self, other)
    dtypes = self.dtype, other.dtype, out.dtype, "*", self.shape == (), other.shape == ()
    _run(get_binary_op_kernel, dtypes, (self, other, out), stream)
    return out
