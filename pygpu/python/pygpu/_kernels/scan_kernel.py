"""Scans (running sums and similar) by a program's C expression."""

from __future__ import annotations

from typing import Any

import numpy as np

from .. import _core, gpuarray
from .._arguments import gpu_array
from .._array import Allocator, DType, OnStream
from .._array.advanced_indexing import may_overlap
from .._errors import Unsupported
from . import snippets
from .c_types import dtype_to_ctype
from .snippets import THREADS

PART = 1 << 14
"""Elements that the host scans one after the other."""
PARTS = 4
"""Parts that a host thread scans alternately, so that it need not wait for each result."""


def _source(
    name: str, ctype: str, expression: str, preamble: str, start: Any, exclusive: bool, plain: bool
) -> str:
    """Returns the source of a module; an exclusive scan begins with ``start``, and ``plain`` dtypes
    are numbers in C."""
    on_host = _core.runs_kernels_on_host()
    text = "#include <pycuda-complex.hpp>\n"
    if not on_host:
        # NVRTC would warn of the core's functions that are not used.
        text += f"""#pragma nv_diag_suppress 177
{_core.scan_functions()}
#pragma nv_diag_default 177
#undef DEVICE
#undef METHOD
"""
    neutral = snippets.part(f"neutral of {name}", str(start))
    begin = f"static __device__ inline {name}_type {name}_start() {{ return {neutral}; }}"
    text += f"""{snippets.part(f"preamble of {name}", preamble)}
#define PYGPU_EXCLUSIVE {int(exclusive)}
#define PYGPU_PLAIN {int(plain)}
#define PYGPU_ON_HOST {int(on_host)}
#define PYGPU_THREADS {THREADS}
#define PYGPU_ELEMENTS {PART}
#define PYGPU_PARTS {PARTS}
typedef {ctype} {name}_type;
static __device__ inline {name}_type {name}_apply({name}_type a, {name}_type b)
{{
    return {snippets.part(f"scan_expr of {name}", expression)};
}}
{begin if exclusive else ""}
"""
    return text + str(_core.header_text("pygpu-scan.hpp")).replace("pygpu_scan", name)


# A larger value does not fit shared memory as often as a block needs it.
_LARGEST_VALUE = 56
# The kernels and their arguments.
_KERNELS = {"block": "PqPqI", "clear": "PQ", "tiles": "PqPqQQP"}
_HOST_KERNELS = {"totals": "PPqQ", "states": "PQ", "parts": "PqPqQQP"}


class _ScanKernel:
    _exclusive: bool

    def __init__(
        self,
        dtype: DType,
        scan_expr: str,
        neutral: Any = None,
        name_prefix: str = "scan",
        options: Any = None,
        preamble: str = "",
        devices: Any = None,
    ) -> None:
        if self._exclusive and neutral is None:
            raise ValueError("neutral element is required for exclusive scan")
        snippets.check_text(scan_expr=scan_expr, name_prefix=name_prefix, preamble=preamble)
        self.dtype = np.dtype(dtype)
        self.neutral = neutral
        self._texts = (name_prefix, dtype_to_ctype(self.dtype), scan_expr, preamble, options)
        size = self.dtype.itemsize
        if size > _LARGEST_VALUE:
            raise Unsupported(
                f"dtype is {self.dtype} of size {size}; at most {_LARGEST_VALUE} can be scanned"
            )
        self._compiled: dict[tuple[int, int], tuple[_core.Function, ...]] = {}

    def __getstate__(self) -> dict[str, Any]:
        """Returns the attributes without kernels, because a copy compiles its own kernels."""
        return {**self.__dict__, "_compiled": {}}

    def _functions(self) -> tuple[_core.Function, ...]:
        """Returns the kernels for the current device until it is reset."""
        key = _core.current_device_key()
        functions = self._compiled.get(key)
        if functions is None:
            functions = self._compiled[key] = self._compile()
        return functions

    def _compile(self) -> tuple[_core.Function, ...]:
        name, ctype, expression, preamble, options = self._texts
        start = self.neutral if self._exclusive else None
        plain = self.dtype.kind in "biuf"
        text = _source(name, ctype, expression, preamble, start, self._exclusive, plain)
        module = snippets.module_of(text, options)
        kernels = _HOST_KERNELS if _core.runs_kernels_on_host() else _KERNELS
        functions = []
        for kernel, arguments in kernels.items():
            function = module.get_function(f"{name}_{kernel}")
            function.prepare(arguments)
            functions.append(function)
        return tuple(functions)

    def _check(self, name: str, array: Any) -> None:
        if gpu_array(name, array).dtype == self.dtype:
            return
        wrong = f"{name} has dtype {array.dtype}; the scan is one of {self.dtype}"
        if array.dtype.itemsize != self.dtype.itemsize:
            raise TypeError(f"{wrong}; both dtypes must have the same size")
        alignment = self.dtype.alignment
        if any(it % alignment for it in (array._address, *array.strides)):
            raise TypeError(f"{wrong}, whose elements need an alignment of {alignment}")

    def __call__(
        self,
        input_ary: Any,
        output_ary: Any = None,
        allocator: Allocator = None,
        stream: OnStream = None,
    ) -> Any:
        """Queues the scan of ``input_ary``, of one axis, on ``stream``; returns the results.

        They are in ``output_ary``, by default ``input_ary``; ``"new"`` makes a new array by
        ``allocator``.
        """
        self._check("input_ary", input_ary)
        if input_ary.ndim != 1:
            raise ValueError(f"input_ary has {input_ary.ndim} axes; one is needed")
        allocator = allocator or input_ary.allocator
        if output_ary is None:
            output_ary = input_ary
        elif isinstance(output_ary, str) and output_ary == "new":
            output_ary = gpuarray.empty(input_ary.shape, self.dtype, allocator=allocator)
        self._check("output_ary", output_ary)
        if input_ary.shape != output_ary.shape:
            shapes = f"{input_ary.shape} and {output_ary.shape}"
            raise ValueError(f"input and output must have the same shape: they have {shapes}")
        (length,) = input_ary.shape
        if length == 0:
            return output_ary
        is_same = input_ary._address == output_ary._address
        is_same = is_same and input_ary.strides == output_ary.strides
        if not is_same and may_overlap(input_ary, output_ary):
            # Blocks would read what others have written.
            input_ary = input_ary.astype(input_ary.dtype, stream)
        operands = (output_ary, output_ary.strides[0], input_ary, input_ary.strides[0], length)
        if _core.runs_kernels_on_host():
            self._launch_on_host(operands, allocator, stream)
        else:
            self._launch(operands, allocator, stream)
        return output_ary

    def _launch(self, operands: tuple[Any, ...], allocator: Any, stream: Any) -> None:
        by_block, clear, by_tiles = self._functions()
        block = (THREADS, 1, 1)
        plan = _core.scan_plan(self.dtype.itemsize, operands[-1])
        tiles, words, clear_blocks, tile_blocks = plan
        if words == 0:
            by_block.prepared_async_call((1, 1), block, stream, *operands)
            return
        state = gpuarray.empty(words, np.uint64, allocator=allocator)
        clear.prepared_async_call((clear_blocks, 1), block, stream, state, words)
        by_tiles.prepared_async_call((tile_blocks, 1), block, stream, *operands, tiles, state)

    def _launch_on_host(self, operands: tuple[Any, ...], allocator: Any, stream: Any) -> None:
        """Queues a scan by the host's threads, each of which scans a contiguous part."""
        totals, states, by_parts = self._functions()
        parts = -(-operands[-1] // PART)
        block = (1, 1, 1)
        if parts == 1:
            by_parts.prepared_async_call((1, 1), block, stream, *operands, parts, 0)
            return
        state = gpuarray.empty(parts, self.dtype, allocator=allocator)
        grid = (-(-parts // PARTS), 1)
        source, stride = operands[2:4]
        totals.prepared_async_call(grid, block, stream, state, source, stride, parts)
        states.prepared_async_call((1, 1), block, stream, state, parts)
        by_parts.prepared_async_call(grid, block, stream, *operands, parts, state)


class InclusiveScanKernel(_ScanKernel):
    """A scan: result ``n`` combines the elements up to and including element ``n``.

    Raises ``Unsupported`` if an element is too large for the shared memory of a block.

    >>> largest = InclusiveScanKernel(np.int32, "max(a, b)")
    >>> largest(gpuarray.to_gpu(np.int32([3, 1, 4, 1, 5]))).get()
    array([3, 3, 4, 4, 5], dtype=int32)

    Parameters
    ----------
    dtype : dtype. The dtype of the elements.
    scan_expr : str. An expression of the values ``a`` and ``b``, of which ``a`` comes first: ``"a +
        b"``. It must be associative, but not necessarily commutative.
    neutral : str or number, optional. The neutral element, which an inclusive scan does not need.
    name_prefix, preamble : str. The start of the kernels' names, and source before them.
    options, devices : sequence of str, and object. Options of the compiler; devices is not used.
    """

    _exclusive = False


class ExclusiveScanKernel(_ScanKernel):
    """A scan: result ``n`` combines ``neutral`` and the elements before element ``n``.

    Other arguments are as in :class:`InclusiveScanKernel`. Raises ``Unsupported`` if an element is
    too large for the shared memory of a block.

    >>> add = ExclusiveScanKernel(np.int32, "a + b", 0)
    >>> add(gpuarray.to_gpu(np.int32([3, 1, 4]))).get()
    array([0, 3, 4], dtype=int32)
    """

    _exclusive = True
