"""Reductions of a program's expressions, with the names of ``pycuda.reduction``.

Arrays may have any strides. Elements are combined in an order that depends on their number alone,
which is not that of the elements: the expression has to be commutative and associative."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from . import _core, _snippets
from ._c_text import without_comments
from ._c_types import dtype_to_ctype, get_arg_type
from ._snippets import THREADS, Declared, Strides
from .tools import context_dependent_memoize

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from .compiler import SourceModule

__all__ = [
    "ReductionKernel",
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

_PARTIALS = "pycuda_reduction_inp"


def _one_line(text: Any) -> str:
    return " ".join(without_comments(str(text)).splitlines())


def _macros(out_type: str, reduce_expr: str, preamble: str, block_size: int) -> str:
    """What the kernels of a module share."""
    return f"""#define BLOCK_SIZE {block_size}
#define REDUCE(a, b) ({_one_line(reduce_expr)})
{_snippets.part("preamble", preamble)}
typedef {out_type} out_type;
struct pygpu_values {{
    alignas(16) unsigned char bytes[BLOCK_SIZE * sizeof(out_type)];
}};
"""


def _kernel(
    name: str, parameters: str, arrays: str, neutral: Any, map_expr: str, block_size: int
) -> str:
    """Returns a kernel whose blocks have one result each: threads first combine what lies a whole
    grid apart, four elements at a time so that their loads wait for memory together. The shared
    memory has no type, so that no constructor runs there."""
    size = block_size - 1
    values = "".join(
        f"        const auto pygpu_{k} = READ_AND_MAP((i + {k} * pygpu_step));\n" for k in range(4)
    )
    combined = "".join(f"        acc = REDUCE(acc, pygpu_{k});\n" for k in range(4))
    return f"""
#define READ_AND_MAP(i) ({_one_line(map_expr)})
extern "C" __global__ void {name}(out_type *out, {parameters})
{{
    __shared__ pygpu_values pygpu_shared;
    out_type *sdata = (out_type *)pygpu_shared.bytes;
    {arrays}
    const unsigned tid = threadIdx.x;
    const size_t pygpu_step = (size_t)gridDim.x * BLOCK_SIZE;
    out_type acc = {_one_line(neutral)};
    size_t i = (size_t)blockIdx.x * BLOCK_SIZE + tid;
    for (; i + 3 * pygpu_step < n; i += 4 * pygpu_step) {{
{values}{combined}    }}
    for (; i < n; i += pygpu_step) {{
        acc = REDUCE(acc, READ_AND_MAP(i));
    }}
    sdata[tid] = acc;
    __syncthreads();
    for (unsigned pygpu_half = {1 << max(size.bit_length() - 1, 0)}; pygpu_half > 0;
         pygpu_half /= 2) {{
        if (tid < pygpu_half && tid + pygpu_half < BLOCK_SIZE) {{
            sdata[tid] = REDUCE(sdata[tid], sdata[tid + pygpu_half]);
        }}
        __syncthreads();
    }}
    if (tid == 0) {{
        out[blockIdx.x] = sdata[0];
    }}
}}
#undef READ_AND_MAP
"""


def get_reduction_module(
    out_type: str,
    block_size: int,
    neutral: Any,
    reduce_expr: str,
    map_expr: str,
    arguments: str,
    name: str = "reduce_kernel",
    keep: bool = False,
    options: Sequence[str] | None = None,
    preamble: str = "",
) -> SourceModule:
    """Compiles one kernel of a reduction.

    Its arguments are ``out``, one element for each block, those of ``arguments``, a number without
    effect, and the number of elements.

    Parameters
    ----------
    out_type : str
        The type in C of the results.
    block_size : int
        The threads of a block.
    neutral, reduce_expr, map_expr, arguments, name, keep, options, preamble
        As for :class:`ReductionKernel`.

    Returns
    -------
    SourceModule
        The module that has the kernel.

    Examples
    --------
    >>> from pygpu import gpuarray
    >>> module = get_reduction_module("float", 32, "0", "a + b", "x[i]", "const float *x", "total")
    >>> x, out = gpuarray.arange(10, dtype=np.float32), gpuarray.empty(1, np.float32)
    >>> total = module.get_function("total")
    >>> total(out, x, np.uint32(1), np.uintp(10), block=(32, 1, 1), grid=(1, 1))
    >>> out
    array([45.], dtype=float32)
    """
    from .compiler import SourceModule

    source = _snippets.headers(Strides())
    source += _macros(out_type, reduce_expr, preamble, block_size)
    parameters = f"{arguments}, unsigned int seq_count, size_t n"
    source += _kernel(name, parameters, "", neutral, map_expr, block_size)
    return SourceModule(source, options=options, keep=keep, no_extern_c=True)


def get_reduction_kernel_and_types(
    stage: int,
    out_type: str,
    block_size: int,
    neutral: Any,
    reduce_expr: str,
    map_expr: str | None = None,
    arguments: str | None = None,
    name: str = "reduce_kernel",
    keep: bool = False,
    options: Sequence[str] | None = None,
    preamble: str = "",
) -> tuple[_core.Function, list[str]]:
    """Compiles one kernel of a reduction, and prepares it.

    Parameters
    ----------
    stage : {1, 2}
        1 for the kernel that reads elements, 2 for the one that reads the results of blocks, which
        are an argument before the others.
    out_type, block_size, neutral, reduce_expr, map_expr, arguments, name, keep, options, preamble
        As for :func:`get_reduction_module`. Without ``map_expr`` it is ``"in[i]"`` in stage 1, the
        result of a block in stage 2.

    Returns
    -------
    kernel : Function
        The prepared kernel.
    codes : list of str
        The format codes of its arguments between ``out`` and the two numbers at the end.

    Raises
    ------
    AssertionError
        ``stage`` is another number.
    ValueError
        ``arguments`` is missing in stage 1.

    Examples
    --------
    >>> from pygpu import gpuarray
    >>> total, codes = get_reduction_kernel_and_types(
    ...     1, "float", 32, "0", "a + b", arguments="const float *in"
    ... )
    >>> codes
    ['P']
    >>> x, out = gpuarray.arange(10, dtype=np.float32), gpuarray.empty(1, np.float32)
    >>> total.prepared_call((1, 1), (32, 1, 1), out.gpudata, x.gpudata, 1, 10)
    >>> out
    array([45.], dtype=float32)
    """
    if stage == 1:
        map_expr = "in[i]" if map_expr is None else map_expr
    elif stage == 2:
        map_expr = f"{_PARTIALS}[i]" if map_expr is None else map_expr
        arguments = ", ".join(filter(None, (f"const {out_type} *{_PARTIALS}", arguments)))
    else:
        raise AssertionError(f"stage is {stage}; allowed are 1 and 2")
    if arguments is None:
        raise ValueError("arguments is None; the declaration of at least one array is needed")
    module = get_reduction_module(
        out_type,
        block_size,
        neutral,
        reduce_expr,
        map_expr,
        arguments,
        name,
        keep,
        options,
        preamble,
    )
    codes = [get_arg_type(text) for text in arguments.split(",")]
    function = module.get_function(name)
    function.prepare(f"P{''.join(codes)}IN")
    return function, codes


class ReductionKernel(_core.ReductionLauncher):
    """A reduction of all elements of arrays to one value.

    Parameters
    ----------
    dtype_out : dtype
        The dtype of the result, and of what is combined.
    neutral : str or number
        What combined with a value ``x`` is ``x``; the result for arrays without elements.
    reduce_expr : str
        An expression of the values ``a`` and ``b``: ``"a + b"``, commutative and associative.
    map_expr : str, optional
        An expression for the element ``i``: ``"x[i] * y[i]"``. ``"in[i]"`` without it.
    arguments : str or sequence of VectorArg and ScalarArg
        The arguments as C declares them; the first array has the number of elements.
    name : str
        The start of the kernels' names.
    keep : bool
        Writes source and code to a folder; see :func:`pygpu.compiler.compile`.
    options : sequence of str, optional
        Options of the compiler.
    preamble : str
        Source before the kernels: functions, structures, ``#include`` lines.

    Raises
    ------
    AssertionError
        There is no array among the arguments.
    ValueError, TypeError
        ``arguments`` is no declaration, or a type has no dtype.

    Notes
    -----
    A call takes the arguments, ``stream``, ``out``, an array of one element for the result, and
    ``allocator``, where a new one gets its memory. It returns the array with the result. Arguments
    are checked as those of :class:`pygpu.elementwise.ElementwiseKernel`. PyCUDA's
    ``kernel_wrapper`` is not taken; it compiles when the object is made, this class at the first
    call.

    Examples
    --------
    >>> from pygpu import gpuarray
    >>> dot = ReductionKernel(
    ...     np.float32, 0, "a + b", "x[i] * y[i]", "const float *x, const float *y"
    ... )
    >>> x = gpuarray.arange(4, dtype=np.float32)
    >>> dot(x, x).get()
    array(14., dtype=float32)
    """

    def __init__(
        self,
        dtype_out: Any,
        neutral: Any,
        reduce_expr: str,
        map_expr: str | None = None,
        arguments: str | Iterable[Any] | None = None,
        name: str = "reduce_kernel",
        keep: bool = False,
        options: Sequence[str] | None = None,
        preamble: str = "",
    ) -> None:
        map_expr = "in[i]" if map_expr is None else map_expr
        _snippets.check_text(
            reduce_expr=reduce_expr, map_expr=map_expr, name=name, preamble=preamble
        )
        if arguments is None:
            raise ValueError("arguments is None; the declaration of at least one array is needed")
        declared = _snippets.parse(arguments)
        if not any(it.is_vector for it in declared):
            raise AssertionError(
                "ReductionKernel can only be used with functions that have at least one vector "
                "argument"
            )
        dtype_out = np.dtype(dtype_out)
        out_type = dtype_to_ctype(dtype_out)
        beside = [reduce_expr, str(neutral)]
        usage = _snippets.Usage(declared, map_expr, preamble, beside, options)
        declaration = _snippets.declaration(declared, usage)
        self._declare(name, declaration, usage.order_free, dtype_out)
        self.dtype_out = dtype_out
        self.block_size = THREADS
        self.stage1_arg_types = [it.argument.struct_char for it in declared]
        self.stage2_arg_types = ["P", *self.stage1_arg_types]
        self._arguments = declared
        self._out_type = out_type
        self._expressions = (neutral, reduce_expr, map_expr, preamble)
        self._compilation = (name, options, keep)

    def _build(
        self, ranged: bool, packed: bool, wide: bool, ranks: tuple[int, ...]
    ) -> tuple[_core.Function, _core.Function]:
        """Compiles a variant, for the launcher."""
        neutral, reduce_expr, map_expr, preamble = self._expressions
        name, options, keep = self._compilation
        names = (f"{name}_stage1", f"{name}_stage2")

        def build(strides: Strides) -> Any:
            from .compiler import SourceModule

            source = _snippets.headers(strides)
            source += _macros(self._out_type, reduce_expr, preamble, THREADS)
            parameters = _snippets.parameters(self._arguments, ["size_t n"], strides)
            arrays = _snippets.strided_arrays(self._arguments, strides)
            source += _kernel(names[0], parameters, arrays, neutral, map_expr, THREADS)
            parameters = f"const out_type *{_PARTIALS}, {parameters}"
            partial = f"{_PARTIALS}[i]"
            source += _kernel(names[1], parameters, arrays, neutral, partial, THREADS)
            return SourceModule(source, options=options, keep=keep, no_extern_c=True)

        module = _snippets.build_strided(build, Strides(ranks, wide), name)
        return module.get_function(names[0]), module.get_function(names[1])


def _array(dtype: Any, name: str) -> Declared:
    from ._c_types import VectorArg

    return Declared(VectorArg(dtype, name), True)


@context_dependent_memoize
def get_sum_kernel(dtype_out: Any, dtype_in: Any) -> ReductionKernel:
    """Returns a reduction to the sum of an array.

    Parameters
    ----------
    dtype_out : dtype or None
        The dtype of the sum; that of the array for None.
    dtype_in : dtype
        The dtype of the array.

    Returns
    -------
    ReductionKernel
        The reduction of one array.

    Examples
    --------
    >>> from pygpu import gpuarray
    >>> get_sum_kernel(None, np.float32)(gpuarray.arange(5, dtype=np.float32))
    array(10., dtype=float32)
    """
    dtype_out = dtype_in if dtype_out is None else dtype_out
    return ReductionKernel(dtype_out, "0", "a+b", arguments=[_array(dtype_in, "in")])


@context_dependent_memoize
def get_any_kernel(dtype_out: Any, dtype_in: Any) -> ReductionKernel:
    """Returns a reduction to whether any element of an array is not zero.

    Parameters
    ----------
    dtype_out : dtype or None
        The dtype of the result, which is 1 or 0; that of the array for None.
    dtype_in : dtype
        The dtype of the array.

    Returns
    -------
    ReductionKernel
        The reduction of one array.

    Examples
    --------
    >>> from pygpu import gpuarray
    >>> get_any_kernel(np.int8, np.int32)(gpuarray.arange(3, dtype=np.int32))
    array(1, dtype=int8)
    """
    dtype_out = dtype_in if dtype_out is None else dtype_out
    arguments = [_array(dtype_in, "in")]
    return ReductionKernel(dtype_out, "0", "(a != 0) || (b != 0)", "in[i] != 0", arguments)


@context_dependent_memoize
def get_all_kernel(dtype_out: Any, dtype_in: Any) -> ReductionKernel:
    """Returns a reduction to whether no element of an array is zero.

    Parameters
    ----------
    dtype_out : dtype or None
        The dtype of the result, which is 1 or 0; that of the array for None.
    dtype_in : dtype
        The dtype of the array.

    Returns
    -------
    ReductionKernel
        The reduction of one array.

    Examples
    --------
    >>> from pygpu import gpuarray
    >>> get_all_kernel(np.int8, np.int32)(gpuarray.arange(3, dtype=np.int32))
    array(0, dtype=int8)
    """
    dtype_out = dtype_in if dtype_out is None else dtype_out
    arguments = [_array(dtype_in, "in")]
    return ReductionKernel(dtype_out, "1", "(a != 0) && (b != 0)", "in[i] != 0", arguments)


@context_dependent_memoize
def get_subset_sum_kernel(dtype_out: Any, dtype_subset: Any, dtype_in: Any) -> ReductionKernel:
    """Returns a reduction to the sum of some elements of an array. Its arguments are an array of
    indices, which are not checked, and the array.

    Parameters
    ----------
    dtype_out : dtype or None
        The dtype of the sum; that of the array for None.
    dtype_subset, dtype_in : dtype
        The dtypes of the indices and of the array.

    Returns
    -------
    ReductionKernel
        The reduction.

    Examples
    --------
    >>> from pygpu import gpuarray
    >>> indices = gpuarray.to_gpu(np.array([1, 3], np.int32))
    >>> total = get_subset_sum_kernel(None, np.int32, np.float32)
    >>> total(indices, gpuarray.arange(5, dtype=np.float32))
    array(4., dtype=float32)
    """
    dtype_out = dtype_in if dtype_out is None else dtype_out
    arguments = [_array(dtype_subset, "lookup_tbl"), _array(dtype_in, "in")]
    return ReductionKernel(dtype_out, "0", "a+b", "in[lookup_tbl[i]]", arguments)


@context_dependent_memoize
def get_dot_kernel(dtype_out: Any, dtype_a: Any, dtype_b: Any) -> ReductionKernel:
    """Returns a reduction to the sum of the products of two arrays' elements.

    Parameters
    ----------
    dtype_out, dtype_a, dtype_b : dtype
        The dtypes of the sum and of the arrays.

    Returns
    -------
    ReductionKernel
        The reduction of two arrays.

    Examples
    --------
    >>> from pygpu import gpuarray
    >>> x = gpuarray.arange(4, dtype=np.float32)
    >>> get_dot_kernel(np.float32, np.float32, np.float32)(x, x)
    array(14., dtype=float32)
    """
    arguments = [_array(dtype_a, "a"), _array(dtype_b, "b")]
    return ReductionKernel(dtype_out, "0", "a+b", "a[i]*b[i]", arguments)


@context_dependent_memoize
def get_subset_dot_kernel(
    dtype_out: Any, dtype_subset: Any, dtype_a: Any = None, dtype_b: Any = None
) -> ReductionKernel:
    """Returns a reduction to the sum of the products of some elements of two arrays. Its arguments
    are an array of indices, which are not checked, and the two arrays.

    Parameters
    ----------
    dtype_out : dtype or None
        The dtype of the sum; ``dtype_a`` for None.
    dtype_subset : dtype
        The dtype of the indices.
    dtype_a, dtype_b : dtype, optional
        The dtypes of the arrays: ``dtype_out``, and that of the first, by default.

    Returns
    -------
    ReductionKernel
        The reduction.

    Examples
    --------
    >>> from pygpu import gpuarray
    >>> indices = gpuarray.to_gpu(np.array([1, 3], np.int32))
    >>> x = gpuarray.arange(5, dtype=np.float32)
    >>> get_subset_dot_kernel(np.float32, np.int32)(indices, x, x)
    array(10., dtype=float32)
    """
    dtype_out = dtype_a if dtype_out is None else dtype_out
    dtype_b = next(it for it in (dtype_b, dtype_a, dtype_out) if it is not None)
    dtype_a = dtype_out if dtype_a is None else dtype_a
    arguments = [_array(dtype_subset, "lookup_tbl"), _array(dtype_a, "a"), _array(dtype_b, "b")]
    mapped = "a[lookup_tbl[i]]*b[lookup_tbl[i]]"
    return ReductionKernel(dtype_out, "0", "a+b", mapped, arguments)


def get_minmax_neutral(what: str, dtype: Any) -> str:
    """Returns what a reduction to the least or the largest element begins with, in CUDA C.

    Parameters
    ----------
    what : {"min", "max"}
        The reduction.
    dtype : dtype
        The dtype of the elements.

    Returns
    -------
    str
        For ``"min"`` what no element is above, for ``"max"`` what none is below; for floats
        ``MY_INFINITY`` or ``-MY_INFINITY``, which the preamble of a kernel has to define.

    Raises
    ------
    ValueError
        ``what`` is neither.

    Examples
    --------
    >>> get_minmax_neutral("min", np.int8), get_minmax_neutral("max", np.float32)
    ('127', '-MY_INFINITY')
    """
    if what not in ("min", "max"):
        raise ValueError(f'what is {what!r}, not "min" or "max"')
    dtype = np.dtype(dtype)
    if issubclass(dtype.type, np.inexact):
        sign = "" if what == "min" else "-"
        return f"{sign}MY_INFINITY"
    limits = np.iinfo(dtype)
    if what == "min":
        return f"{limits.max}{'ull' if limits.max > np.iinfo(np.int64).max else ''}"
    # The least number has no literal of its own in C.
    return f"({limits.min + 1} - 1)" if limits.min else "0"


def _minmax_expression(what: str, dtype: Any) -> str:
    if dtype == np.float64:
        return f"f{what}(a,b)"
    if dtype == np.float32:
        return f"f{what}f(a,b)"
    if np.dtype(dtype).kind in "iu":
        return f"{what}(a,b)"
    raise TypeError(
        f"unsupported dtype specified: {np.dtype(dtype)}; allowed are integers, float32 and float64"
    )


_INFINITY = "#define MY_INFINITY __int_as_float(0x7f800000)"


@context_dependent_memoize
def get_minmax_kernel(what: str, dtype: Any) -> ReductionKernel:
    """Returns a reduction to the least or the largest element of an array.

    Parameters
    ----------
    what : {"min", "max"}
        The reduction.
    dtype : dtype
        The dtype of the array and of the result: integers, float32 or float64.

    Returns
    -------
    ReductionKernel
        The reduction of one array.

    Raises
    ------
    TypeError
        ``dtype`` is another one.
    ValueError
        ``what`` is neither.

    Examples
    --------
    >>> from pygpu import gpuarray
    >>> get_minmax_kernel("max", np.float32)(gpuarray.arange(5, dtype=np.float32))
    array(4., dtype=float32)
    """
    expression, neutral = _minmax_expression(what, dtype), get_minmax_neutral(what, dtype)
    arguments = [_array(dtype, "in")]
    return ReductionKernel(dtype, neutral, expression, None, arguments, preamble=_INFINITY)


@context_dependent_memoize
def get_subset_minmax_kernel(what: str, dtype: Any, dtype_subset: Any) -> ReductionKernel:
    """Returns a reduction to the least or the largest of some elements of an array. Its arguments
    are an array of indices, which are not checked, and the array.

    Parameters
    ----------
    what : {"min", "max"}
        The reduction.
    dtype : dtype
        The dtype of the array and of the result: integers, float32 or float64.
    dtype_subset : dtype
        The dtype of the indices.

    Returns
    -------
    ReductionKernel
        The reduction.

    Raises
    ------
    TypeError
        ``dtype`` is another one.
    ValueError
        ``what`` is neither.

    Examples
    --------
    >>> from pygpu import gpuarray
    >>> indices = gpuarray.to_gpu(np.array([1, 3], np.int32))
    >>> least = get_subset_minmax_kernel("min", np.float32, np.int32)
    >>> least(indices, gpuarray.arange(5, dtype=np.float32))
    array(1., dtype=float32)
    """
    expression, neutral = _minmax_expression(what, dtype), get_minmax_neutral(what, dtype)
    arguments = [_array(dtype_subset, "lookup_tbl"), _array(dtype, "in")]
    mapped = "in[lookup_tbl[i]]"
    return ReductionKernel(dtype, neutral, expression, mapped, arguments, preamble=_INFINITY)
