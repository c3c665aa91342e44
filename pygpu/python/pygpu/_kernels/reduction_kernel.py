"""Reductions by a program's C expressions, and PyCUDA's factories of common reductions.

Reductions of subsets take indices before the arrays; the indices are not checked.

Parameters
----------
dtype, dtype_in, dtype_a, dtype_b, dtype_subset : dtype. The dtypes of the arrays, and of indices.
dtype_out : dtype. The dtype of the result; if None, the dtype of the elements.

Examples
--------
>>> get_sum_kernel(None, np.float32)(gpuarray.arange(4, dtype=np.float32))
array(6., dtype=float32)
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from .. import _core
from .._array import DType
from .._documentation import member
from ..tools import context_dependent_memoize
from . import snippets
from .c_types import VectorArg, dtype_to_ctype, get_arg_type
from .snippets import THREADS, Declared, Strides

if TYPE_CHECKING:
    from ..compiler import SourceModule


_PARTIALS = "pycuda_reduction_inp"
# The kernels for threads and for the host, where a block is one thread, and the words in them that
# pieces of the program replace.
_HEADER, _HOST_HEADER = "pygpu-reduction.hpp", "pygpu-host-reduction.hpp"
_WORD = re.compile(r"\bPYGPU_([A-Z]+)\b(?:\(([^;\n]+)\);)?")


def _begin(name: str, out_type: str, preamble: str, block_size: int) -> str:
    return f"""#define BLOCK_SIZE {block_size}
{snippets.part(f"preamble of {name}", preamble)}
typedef {out_type} out_type;
struct pygpu_values {{
    alignas(16) unsigned char bytes[BLOCK_SIZE * sizeof(out_type)];
}};
"""


def _kernel(
    header: str, kernel: str, parameters: str, arrays: str, texts: tuple[str, Any, str, str | None]
) -> str:
    """Returns a kernel whose blocks have one result each: a header with pieces of the program.

    The texts are the reduction's name, its neutral element, the expression that combines two values
    ``a`` and ``b`` (whatever the arrays are called), and the expression of an element. Without the
    last text, the kernel's elements are results of another kernel.
    """
    name, neutral, reduce_expr, map_expr = texts
    mapped = f"{_PARTIALS}[i]"
    if map_expr is not None:
        mapped = snippets.part(f"map_expr of {name}", map_expr)
    reduced = snippets.part(f"reduce_expr of {name}", reduce_expr)
    pieces = {
        "reduction": kernel,
        "parameters": parameters,
        "arrays": arrays,
        "neutral": snippets.part(f"neutral of {name}", str(neutral)),
    }

    def piece(found: re.Match[str]) -> str:
        word, values = found[1].lower(), found[2]
        if word == "map":
            return f"const auto {values} = ({mapped});"
        if word == "reduce":
            target, other = values.split(", ")
            return f"{{ out_type &a = {target}; auto &b = {other}; a = ({reduced}); }}"
        return pieces[word]

    # The comment at the beginning has the words as well.
    _, _, code = str(_core.header_text(header)).partition("\n\n")
    return _WORD.sub(piece, code.removesuffix("#endif\n"))


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

    The kernel's arguments are ``out`` with one element for each block, the given ``arguments``, a
    number without effect, and the number of elements. ``out_type`` is the results' type in C, and
    ``block_size`` the threads of a block. Other arguments are as in :class:`ReductionKernel`.
    Raises ``CompileError`` if the compiler refused the source.

    >>> module = get_reduction_module("float", 32, "0", "a + b", "x[i]", "const float *x", "total")
    >>> x, out = gpuarray.arange(10, dtype=np.float32), gpuarray.empty(1, np.float32)
    >>> total = module.get_function("total")
    >>> total(out, x, np.uint32(1), np.uintp(10), block=(32, 1, 1), grid=(1, 1))
    >>> out
    array([45.], dtype=float32)
    """
    source = snippets.headers(Strides())
    source += _begin(name, out_type, preamble, block_size)
    parameters = f"{arguments}, unsigned int seq_count, size_t n"
    texts = name, neutral, reduce_expr, map_expr
    source += _kernel(_HEADER, name, parameters, "", texts)
    return snippets.module_of(source, options, keep)


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
    """Returns one prepared kernel of a reduction, and the format codes of ``arguments``.

    ``stage`` is 1 for the kernel that reads elements, 2 for the kernel that reads the results of
    the blocks from its first array. Other arguments are as in :func:`get_reduction_module`. By
    default ``map_expr`` is ``"in[i]"``; in stage 2 that is the result of a block. Raises
    ``AssertionError`` for another stage.

    >>> total, codes = get_reduction_kernel_and_types(
    ...     1, "float", 32, "0", "a + b", arguments="const float *in"
    ... )
    >>> x, out = gpuarray.arange(10, dtype=np.float32), gpuarray.empty(1, np.float32)
    >>> total.prepared_call((1, 1), (32, 1, 1), out.gpudata, x.gpudata, 1, 10)
    >>> out, codes
    (array([45.], dtype=float32), ['P'])
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
    texts = neutral, reduce_expr, map_expr, arguments
    module = get_reduction_module(out_type, block_size, *texts, name, keep, options, preamble)
    codes = [get_arg_type(text) for text in arguments.split(",")]
    function = module.get_function(name)
    function.prepare(f"P{''.join(codes)}IN")
    return function, codes


class ReductionKernel(_core.ReductionLauncher):
    """A reduction of all elements of arrays to one value, compiled at its first call.

    Other arguments are as in :class:`pygpu.compiler.SourceModule`. Raises ``AssertionError`` if
    the arguments do not include an array.

    >>> dot = ReductionKernel(
    ...     np.float32, 0, "a + b", "x[i] * y[i]", "const float *x, const float *y"
    ... )
    >>> x = gpuarray.arange(4, dtype=np.float32)
    >>> dot(x, x).get()
    array(14., dtype=float32)

    A call takes the arguments, ``stream``, ``out`` (an array of one element for the result),
    ``allocator``, and ``kernel_wrapper``; it returns the array with the result. Arguments are
    checked as by :class:`pygpu.elementwise.ElementwiseKernel`.

    ``kernel_wrapper`` is called with the ``prepared_async_call`` of both kernels, and the functions
    that ``kernel_wrapper`` returns are called instead. Their arguments are grid, block, stream, the
    array for the blocks' results, the first kernel's results (for the second kernel), the
    arguments, the number of elements, and ``shared_size``. Arrays must then be contiguous. PyCUDA's
    kernels have one more number.

    Parameters
    ----------
    dtype_out : dtype. The dtype of the result, and of the values that are combined.
    neutral : str or number. The neutral element, which is also the result for empty arrays.
    reduce_expr : str. An expression of the values ``a`` and ``b``: ``"a + b"``, commutative and
        associative.
    map_expr : str, optional. An expression for the element ``i``: ``"x[i] * y[i]"``, and
        ``"in[i]"`` by default.
    arguments : str or sequence of VectorArg and ScalarArg. The arguments as C declares them; the
        first array gives the number of elements.
    name : str. The start of the kernels' names.
    preamble : str. Source before the kernels: functions, structures, ``#include`` lines.
    """

    def __init__(
        self,
        dtype_out: DType,
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
        snippets.check_text(
            reduce_expr=reduce_expr, map_expr=map_expr, name=name, preamble=preamble
        )
        if arguments is None:
            raise ValueError("arguments is None; the declaration of at least one array is needed")
        arguments = arguments if isinstance(arguments, str) else list(arguments)
        declared = snippets.parse(arguments, map_expr, preamble)
        if not any(it.is_vector for it in declared):
            raise AssertionError(
                "ReductionKernel can only be used with functions that have at least one vector "
                "argument"
            )
        dtype_out = np.dtype(dtype_out)
        out_type = dtype_to_ctype(dtype_out)
        beside = [reduce_expr, str(neutral)]
        launched, order_free, *_ = snippets.usage(declared, map_expr, preamble, beside, options)
        self._declare(name, launched, order_free, dtype_out)
        self.dtype_out = dtype_out
        self.block_size = THREADS
        self.stage1_arg_types = [it.argument.struct_char for it in declared]
        self.stage2_arg_types = ["P", *self.stage1_arg_types]
        self._arguments = declared
        self._out_type = out_type
        self._expressions = (neutral, reduce_expr, map_expr, preamble)
        self._compilation = (name, options, keep)
        texts = neutral, reduce_expr, map_expr, arguments, name, keep, options, preamble
        self._given = dtype_out, *texts

    def __reduce__(self) -> tuple[Any, ...]:
        """Returns the constructor's arguments: copies and pickles compile the source themselves."""
        return type(self), self._given

    def _build(
        self, ranged: bool, packed: bool, wide: bool, ranks: tuple[int, ...]
    ) -> tuple[_core.Function, _core.Function]:
        neutral, reduce_expr, map_expr, preamble = self._expressions
        name, options, keep = self._compilation
        names = (f"{name}_stage1", f"{name}_stage2")
        header = _HOST_HEADER if _core.runs_kernels_on_host() else _HEADER

        def build(strides: Strides) -> Any:
            source = snippets.headers(strides)
            source += _begin(name, self._out_type, preamble, THREADS)
            parameters = snippets.parameters(self._arguments, ["size_t n"], strides)
            arrays = snippets.strided_arrays(self._arguments, strides)
            inputs = f"const out_type *{_PARTIALS}, {parameters}"
            stages = (names[0], parameters, map_expr), (names[1], inputs, None)
            for stage, own, expression in stages:
                texts = name, neutral, reduce_expr, expression
                source += _kernel(header, stage, own, arrays, texts)
            return snippets.module_of(source, options, keep)

        module = snippets.build_strided(build, Strides(ranks, wide), name)
        return module.get_function(names[0]), module.get_function(names[1])


_INFINITY = "#define MY_INFINITY __int_as_float(0x7f800000)"


@context_dependent_memoize
def _kernel_of(
    dtype_out: Any,
    texts: tuple[str, str, str],
    arrays: tuple[tuple[Any, str], ...],
    preamble: str = "",
) -> ReductionKernel:
    """Returns a cached kernel that only reads arrays of these dtypes and names."""
    arguments = [Declared(VectorArg(*array), True) for array in arrays]
    return ReductionKernel(dtype_out, *texts, arguments, preamble=preamble)


def _of_elements(texts: tuple[str, str, str], dtype_out: DType, dtype_in: DType) -> ReductionKernel:
    return _kernel_of(dtype_in if dtype_out is None else dtype_out, texts, ((dtype_in, "in"),))


_SUM, _SUM_TEXT = ("0", "a+b", "in[i]"), "Returns a reduction of an array to its sum."
get_sum_kernel = member(_of_elements, _SUM, "get_sum_kernel", _SUM_TEXT)
_ANY = "0", "(a != 0) || (b != 0)", "in[i] != 0"
_ALL = "1", "(a != 0) && (b != 0)", "in[i] != 0"
_TRUTH = "Returns a reduction of an array to 1 if {} element is {}zero, else 0."
get_any_kernel = member(_of_elements, _ANY, "get_any_kernel", _TRUTH.format("any", "not "))
get_all_kernel = member(_of_elements, _ALL, "get_all_kernel", _TRUTH.format("no", ""))


def get_subset_sum_kernel(
    dtype_out: DType, dtype_subset: DType, dtype_in: DType
) -> ReductionKernel:
    """Returns a reduction to the sum of some elements of an array."""
    dtype_out = dtype_in if dtype_out is None else dtype_out
    arrays = (dtype_subset, "lookup_tbl"), (dtype_in, "in")
    return _kernel_of(dtype_out, ("0", "a+b", "in[lookup_tbl[i]]"), arrays)


def get_dot_kernel(dtype_out: DType, dtype_a: DType, dtype_b: DType) -> ReductionKernel:
    """Returns a reduction to the sum of the products of two arrays' elements."""
    return _kernel_of(dtype_out, ("0", "a+b", "a[i]*b[i]"), ((dtype_a, "a"), (dtype_b, "b")))


def get_subset_dot_kernel(
    dtype_out: DType, dtype_subset: DType, dtype_a: DType = None, dtype_b: DType = None
) -> ReductionKernel:
    """Returns a reduction to the sum of the products of some elements of two arrays.

    The default of ``dtype_a`` is ``dtype_out``, and of ``dtype_b`` the dtype of the first array.
    """
    dtype_out = dtype_a if dtype_out is None else dtype_out
    dtype_b = next(it for it in (dtype_b, dtype_a, dtype_out) if it is not None)
    dtype_a = dtype_out if dtype_a is None else dtype_a
    arrays = (dtype_subset, "lookup_tbl"), (dtype_a, "a"), (dtype_b, "b")
    return _kernel_of(dtype_out, ("0", "a+b", "a[lookup_tbl[i]]*b[lookup_tbl[i]]"), arrays)


def get_minmax_neutral(what: str, dtype: DType) -> str:
    """Returns the neutral element of ``what``, "min" or "max", in CUDA C.

    For floats it is ``MY_INFINITY`` or ``-MY_INFINITY``; the preamble must define that name.

    >>> get_minmax_neutral("min", np.int8), get_minmax_neutral("max", np.float32)
    ('127', '-MY_INFINITY')
    """
    if what not in ("min", "max"):
        raise ValueError(f'what is {what!r}; "min" or "max" is needed')
    dtype = np.dtype(dtype)
    if issubclass(dtype.type, np.inexact):
        sign = "-" if what == "max" else ""
        return f"{sign}MY_INFINITY"
    limits = np.iinfo(dtype)
    if what == "min":
        return f"{limits.max}{'ull' if limits.max > np.iinfo(np.int64).max else ''}"
    return f"({limits.min + 1} - 1)" if limits.min else "0"  # C has no literal of the least number


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


def _minmax(what: str, dtype: Any, mapped: str, *indices: tuple[Any, str]) -> ReductionKernel:
    expression, neutral = _minmax_expression(what, dtype), get_minmax_neutral(what, dtype)
    texts = neutral, expression, mapped
    return _kernel_of(dtype, texts, (*indices, (dtype, "in")), _INFINITY)


def get_minmax_kernel(what: str, dtype: DType) -> ReductionKernel:
    """Returns a reduction of integers or floats to their ``what``, "min" or "max"."""
    return _minmax(what, dtype, "in[i]")


def get_subset_minmax_kernel(what: str, dtype: DType, dtype_subset: DType) -> ReductionKernel:
    """Returns :func:`get_minmax_kernel` of ``what`` for some elements of an array."""
    return _minmax(what, dtype, "in[lookup_tbl[i]]", (dtype_subset, "lookup_tbl"))
