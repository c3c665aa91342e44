"""Reductions of a program's expressions: the modules, and the class that launches them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from .. import _core
from . import reduction_source, snippets
from .c_types import dtype_to_ctype, get_arg_type
from .reduction_source import PARTIALS
from .snippets import THREADS, Strides

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from ..compiler import SourceModule


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
    neutral : str or number
        What combined with a value ``x`` is ``x``.
    reduce_expr : str
        An expression of the values ``a`` and ``b``: ``"a + b"``, commutative and associative.
    map_expr : str
        An expression for the element ``i``: ``"x[i] * y[i]"``.
    arguments : str
        The arguments as C declares them; the first array has the number of elements.
    name : str
        The kernel's name.
    keep : bool
        Writes source and code to a new folder and prints its name.
    options : sequence of str, optional
        Options of the compiler; ``DEFAULT_NVCC_FLAGS`` without it.
    preamble : str
        Source before the kernel: functions, structures, ``#include`` lines.

    Raises
    ------
    CompileError
        The compiler refused the source.

    Examples
    --------
    >>> module = get_reduction_module("float", 32, "0", "a + b", "x[i]", "const float *x", "total")
    >>> x, out = gpuarray.arange(10, dtype=np.float32), gpuarray.empty(1, np.float32)
    >>> total = module.get_function("total")
    >>> total(out, x, np.uint32(1), np.uintp(10), block=(32, 1, 1), grid=(1, 1))
    >>> out
    array([45.], dtype=float32)
    """
    from ..compiler import SourceModule

    source = snippets.headers(Strides())
    source += reduction_source.macros(out_type, reduce_expr, preamble, block_size)
    parameters = f"{arguments}, unsigned int seq_count, size_t n"
    source += reduction_source.kernel(name, parameters, "", neutral, map_expr, block_size)
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
    out_type : str
        The type in C of the results.
    block_size : int
        The threads of a block.
    neutral : str or number
        What combined with a value ``x`` is ``x``.
    reduce_expr : str
        An expression of the values ``a`` and ``b``: ``"a + b"``, commutative and associative.
    map_expr : str, optional
        An expression for the element ``i``: ``"x[i] * y[i]"``. Without it ``"in[i]"`` in
        stage 1, the result of a block in stage 2.
    arguments : str, optional
        The arguments as C declares them; the first array has the number of elements.
    name : str
        The kernel's name.
    keep : bool
        Writes source and code to a new folder and prints its name.
    options : sequence of str, optional
        Options of the compiler; ``DEFAULT_NVCC_FLAGS`` without it.
    preamble : str
        Source before the kernel: functions, structures, ``#include`` lines.

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
    CompileError
        The compiler refused the source.

    Examples
    --------
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
        map_expr = f"{PARTIALS}[i]" if map_expr is None else map_expr
        arguments = ", ".join(filter(None, (f"const {out_type} *{PARTIALS}", arguments)))
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

    Notes
    -----
    A call takes the arguments, ``stream``, ``out``, an array of one element for the result,
    ``allocator``, where a new one gets its memory, and ``kernel_wrapper``. It returns the array
    with the result. Arguments are checked as those of
    :class:`pygpu.elementwise.ElementwiseKernel`. PyCUDA compiles when the object is made, this
    class at the first call.

    ``kernel_wrapper`` is called with the ``prepared_async_call`` of both kernels, and what it
    returns is called in their place: with grid, block, stream, the array for the results of blocks,
    that of the first kernel's for the second, the arguments, the number of elements, and
    ``shared_size``. Arrays have to be contiguous then. PyCUDA's kernels have one more number.

    Examples
    --------
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
        snippets.check_text(
            reduce_expr=reduce_expr, map_expr=map_expr, name=name, preamble=preamble
        )
        if arguments is None:
            raise ValueError("arguments is None; the declaration of at least one array is needed")
        declared = snippets.parse(arguments, map_expr, preamble)
        if not any(it.is_vector for it in declared):
            raise AssertionError(
                "ReductionKernel can only be used with functions that have at least one vector "
                "argument"
            )
        dtype_out = np.dtype(dtype_out)
        out_type = dtype_to_ctype(dtype_out)
        beside = [reduce_expr, str(neutral)]
        usage = snippets.Usage(declared, map_expr, preamble, beside, options)
        declaration = snippets.declaration(declared, usage)
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
        on_host = _core.runs_kernels_on_host()

        def build(strides: Strides) -> Any:
            from ..compiler import SourceModule

            source = snippets.headers(strides)
            source += reduction_source.macros(self._out_type, reduce_expr, preamble, THREADS)
            parameters = snippets.parameters(self._arguments, ["size_t n"], strides)
            arrays = snippets.strided_arrays(self._arguments, strides)
            inputs = f"const out_type *{PARTIALS}, {parameters}"
            for text in (
                (names[0], parameters, arrays, neutral, map_expr),
                (names[1], inputs, arrays, neutral, f"{PARTIALS}[i]"),
            ):
                if on_host:
                    source += reduction_source.kernel_of_host(*text)
                else:
                    source += reduction_source.kernel(*text, THREADS)
            return SourceModule(source, options=options, keep=keep, no_extern_c=True)

        module = snippets.build_strided(build, Strides(ranks, wide), name)
        return module.get_function(names[0]), module.get_function(names[1])
