"""Running results of a program's expression, with the names of ``pycuda.scan``.

The functions that scans are made of are those of ``gpuarray.cumsum`` and the like; the operator is
the program's."""

from __future__ import annotations

from typing import Any

import numpy as np

from . import _core, _snippets, gpuarray
from ._c_types import dtype_to_ctype
from ._context import Context
from ._errors import Unsupported
from ._snippets import THREADS

__all__ = ["ExclusiveScanKernel", "InclusiveScanKernel"]

# Arrays of at most so many tiles are one chunk, and chunks are at least as long.
_CHUNK_TILES = 4
# The most chunks, whose totals one block scans.
_MOST_CHUNKS = 4096
# A larger value does not fit shared memory as often as a block needs it.
_LARGEST_VALUE = 56


# The total of a range in the order of its elements, for every thread of the block. The operators of
# the core's own scans are commutative, so that their totals need no order.
_ORDERED_TOTAL = """
template <class Op, class Index, class Read>
static __device__ typename Op::value pygpu_ordered_total(const Read &read, Index begin, Index end)
{
    typedef typename Op::value A;
    constexpr unsigned COUNT = gpuarray::Neighbours<A>::count;
    __shared__ A items[256 * (COUNT + gpuarray::Neighbours<A>::gap)];
    __shared__ A totals[256];
    const unsigned thread = threadIdx.x;
    A total = Op::identity();
    for (Index base = begin; base < end; base += 256 * COUNT) {
        const Index first = base + thread;
#pragma unroll
        for (unsigned k = 0; k < COUNT; ++k) {
            items[gpuarray::bank<A>(k * 256 + thread)] =
                first + k * 256 < end ? read(first + k * 256) : Op::identity();
        }
        __syncthreads();
        A own = items[gpuarray::bank<A>(COUNT * thread)];
#pragma unroll
        for (unsigned k = 1; k < COUNT; ++k) {
            own = Op::combine(own, items[gpuarray::bank<A>(COUNT * thread + k)]);
        }
        totals[thread] = own;
        __syncthreads();
        for (unsigned reach = 1; reach < 256; reach *= 2) {
            if (thread % (2 * reach) == 0) {
                totals[thread] = Op::combine(totals[thread], totals[thread + reach]);
            }
            __syncthreads();
        }
        total = Op::combine(total, totals[0]);
        __syncthreads();
    }
    return total;
}
"""


def _scan_functions() -> str:
    """Returns the core's functions, some of which are not used; NVRTC would warn of those."""
    text = _core.scan_functions()
    return f"""#pragma nv_diag_suppress 177
{text}
#pragma nv_diag_default 177
#undef DEVICE
#undef METHOD
"""


def _operator(name: str, ctype: str, expression: str, neutral: Any, plain: bool) -> str:
    """Returns the operator as the functions of scans take it.

    Without a neutral element a value may be absent. A structure with constructors is kept as bytes,
    since none can run in shared memory.
    """
    text = f"""
typedef {ctype} {name}_type;
static __device__ inline {name}_type {name}_apply({name}_type a, {name}_type b)
{{
    return {_snippets.part("scan_expr", expression)};
}}
"""
    if plain and neutral is not None:
        return f"""{text}
struct {name}_operator {{
    typedef {name}_type value;
    static __device__ value of({name}_type x) {{ return x; }}
    static __device__ {name}_type item(value x) {{ return x; }}
    static __device__ value identity() {{ return {neutral}; }}
    static __device__ value combine(value a, value b) {{ return {name}_apply(a, b); }}
}};
"""
    absent, neither, some = "", "", ""
    identity = f"return of({neutral});"
    if neutral is None:
        absent, some = "    bool some;\n", "        held.some = true;\n"
        identity = "value held;\n        held.some = false;\n        return held;"
        neither = "if (!a.some) return b;\n        if (!b.some) return a;\n        "
    return f"""{text}
struct {name}_value {{
    alignas({name}_type) unsigned char bytes[sizeof({name}_type)];
{absent}}};
struct {name}_operator {{
    typedef {name}_value value;
    static __device__ value of(const {name}_type &x)
    {{
        value held;
        *({name}_type *)held.bytes = x;
{some}        return held;
    }}
    static __device__ {name}_type item(const value &x) {{ return *(const {name}_type *)x.bytes; }}
    static __device__ value identity()
    {{
        {identity}
    }}
    static __device__ value combine(const value &a, const value &b)
    {{
        {neither}return of({name}_apply(item(a), item(b)));
    }}
}};
"""


def _kernels(name: str, exclusive: bool, index: str) -> str:
    """Returns the kernels: totals of chunks, their scan, the values."""
    scan = f"gpuarray::scan_range<{name}_operator, {'true' if exclusive else 'false'}, {index}>"
    return f"""
struct {name}_read {{
    const char *in;
    long long stride;
    __device__ {name}_operator::value operator()({index} i) const
    {{
        return {name}_operator::of(*(const {name}_type *)(in + (long long)i * stride));
    }}
}};
struct {name}_write {{
    char *out;
    long long stride;
    __device__ void operator()({index} i, const {name}_operator::value &value) const
    {{
        *({name}_type *)(out + (long long)i * stride) = {name}_operator::item(value);
    }}
}};
extern "C" __global__ void {name}_totals(
    const char *in, long long stride, unsigned long long length, unsigned long long chunk,
    {name}_operator::value *carries)
{{
    const {index} begin = blockIdx.x * ({index})chunk;
    const {index} end = length - begin < chunk ? ({index})length : begin + ({index})chunk;
    const {name}_read read = {{in, stride}};
    const {name}_operator::value total =
        pygpu_ordered_total<{name}_operator, {index}>(read, begin, end);
    if (threadIdx.x == 0) {{
        carries[blockIdx.x] = total;
    }}
}}
extern "C" __global__ void {name}_carries(unsigned chunks, {name}_operator::value *carries)
{{
    gpuarray::Carries<{name}_operator::value, unsigned> carry;
    carry.values = carries;
    carry.step = 1;
    gpuarray::scan_range<{name}_operator, true, unsigned>(
        carry, carry, 0u, chunks, {name}_operator::identity());
}}
extern "C" __global__ void {name}_values(
    char *out, long long out_stride, const char *in, long long in_stride,
    unsigned long long length, unsigned long long chunk, const {name}_operator::value *carries)
{{
    // What was read last may still be in a cache.
    const {index} part = gridDim.x - 1 - blockIdx.x;
    const {index} begin = part * ({index})chunk;
    const {index} end = length - begin < chunk ? ({index})length : begin + ({index})chunk;
    const {name}_read read = {{in, in_stride}};
    const {name}_write write = {{out, out_stride}};
    {scan}(read, write, begin, end, carries ? carries[part] : {name}_operator::identity());
}}
"""


class _ScanKernel:
    _exclusive: bool

    def __init__(
        self,
        dtype: Any,
        scan_expr: str,
        neutral: Any = None,
        name_prefix: str = "scan",
        options: Any = None,
        preamble: str = "",
        devices: Any = None,
    ) -> None:
        if self._exclusive and neutral is None:
            raise ValueError("neutral element is required for exclusive scan")
        _snippets.check_text(scan_expr=scan_expr, name_prefix=name_prefix, preamble=preamble)
        self.dtype = np.dtype(dtype)
        self.neutral = neutral
        self._plain = self.dtype.kind in "biuf"
        self._texts = (name_prefix, dtype_to_ctype(self.dtype), scan_expr, preamble, options)
        # The size of a value, with its flag and what aligns it.
        size = self.dtype.itemsize
        if neutral is None:
            size += size if self._plain else min(size, 16)
        if size > _LARGEST_VALUE:
            raise Unsupported(
                f"values of dtype {self.dtype} take {size} bytes; at most {_LARGEST_VALUE} can be "
                "scanned"
            )
        self._size = size
        self._compiled: dict[tuple[int, int, bool], tuple[_core.Function, ...]] = {}

    def _functions(self, wide: bool) -> tuple[_core.Function, ...]:
        """The kernels for the current device, whose contexts are one until it is reset."""
        ordinal = Context.get_device().ordinal
        key = (ordinal, _core.device_epoch(ordinal), wide)
        if key not in self._compiled:
            self._compiled[key] = self._compile(wide)
        return self._compiled[key]

    def _compile(self, wide: bool) -> tuple[_core.Function, ...]:
        from .compiler import SourceModule

        name, ctype, expression, preamble, options = self._texts
        source = "#include <pycuda-complex.hpp>\n" + _scan_functions() + _ORDERED_TOTAL
        source += _snippets.part("preamble", preamble)
        source += _operator(name, ctype, expression, self.neutral, self._plain)
        index = "unsigned long long" if wide else "unsigned"
        source += _kernels(name, self._exclusive, index)
        module = SourceModule(source, options=options, no_extern_c=True)
        functions = [module.get_function(f"{name}_{it}") for it in ("totals", "carries", "values")]
        for function, arguments in zip(functions, ("PqQQP", "IP", "PqPqQQP"), strict=True):
            function.prepare(arguments)
        return tuple(functions)

    def _check(self, name: str, array: Any) -> None:
        if not isinstance(array, gpuarray.GPUArray):
            raise TypeError(f"{name} is of type {type(array).__name__}; a GPUArray is needed")
        if array.dtype != self.dtype:
            raise TypeError(f"{name} has dtype {array.dtype}; the scan is one of {self.dtype}")

    def __call__(
        self, input_ary: Any, output_ary: Any = None, allocator: Any = None, stream: Any = None
    ) -> Any:
        """Queues the scan.

        Parameters
        ----------
        input_ary : GPUArray
            An array of one axis, of any stride.
        output_ary : GPUArray or "new", optional
            Where the results go: another array, a new one, or ``input_ary`` without it.
        allocator : callable, optional
            Where new memory comes from; that of ``input_ary`` without it.
        stream : Stream, optional
            Where the work is queued.

        Returns
        -------
        GPUArray
            The array with the results.

        Raises
        ------
        TypeError
            An argument is no array, or has another dtype.
        ValueError
            ``input_ary`` has not one axis, or the shapes differ.
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
            raise ValueError(
                f"input and output must have the same shape: they have {input_ary.shape} and "
                f"{output_ary.shape}"
            )
        (length,) = input_ary.shape
        arrays = (input_ary, output_ary)
        reach = max(length * max(abs(array.strides[0]), 1) for array in arrays)
        totals, carries, values = self._functions(max(reach, length) >= 2**31)
        if length == 0:
            return output_ary
        tile = THREADS * (64 // self._size if self._size > 4 else 16)
        source = (input_ary, input_ary.strides[0])
        target = (output_ary, output_ary.strides[0])
        block = (THREADS, 1, 1)
        if length <= _CHUNK_TILES * tile:
            values.prepared_async_call((1, 1), block, stream, *target, *source, length, length, 0)
            return output_ary
        chunk = max(-(-length // _MOST_CHUNKS), _CHUNK_TILES * tile)
        chunk = -(-chunk // tile) * tile
        chunks = -(-length // chunk)
        kept = gpuarray.empty(chunks * self._size, np.uint8, allocator=allocator)
        totals.prepared_async_call((chunks, 1), block, stream, *source, length, chunk, kept)
        carries.prepared_async_call((1, 1), block, stream, chunks, kept)
        grid = (chunks, 1)
        values.prepared_async_call(grid, block, stream, *target, *source, length, chunk, kept)
        return output_ary


class InclusiveScanKernel(_ScanKernel):
    """Combines each element with all before it.

    Parameters
    ----------
    dtype : dtype
        The dtype of the elements.
    scan_expr : str
        An expression of the values ``a`` and ``b``, of which ``a`` comes first: ``"a + b"``. It has
        to be associative, and need not be commutative.
    neutral : str or number, optional
        What combined with a value ``x`` is ``x``. With it a scan takes less shared memory.
    name_prefix : str
        The start of the kernels' names.
    options : sequence of str, optional
        Options of the compiler.
    preamble : str
        Source before the kernels: functions, structures, ``#include`` lines.
    devices : object, optional
        Not used.

    Examples
    --------
    >>> largest = InclusiveScanKernel(np.int32, "max(a, b)")
    >>> x = gpuarray.to_gpu(np.int32([3, 1, 4, 1, 5]))
    >>> largest(x).get()
    array([3, 3, 4, 4, 5], dtype=int32)
    """

    _exclusive = False


class ExclusiveScanKernel(_ScanKernel):
    """Combines all elements before each element, and the neutral element.

    Parameters
    ----------
    dtype, scan_expr, name_prefix, options, preamble, devices
        As for :class:`InclusiveScanKernel`.
    neutral : str or number
        What combined with a value ``x`` is ``x``: the first result.

    Raises
    ------
    ValueError
        There is no neutral element.

    Examples
    --------
    >>> add = ExclusiveScanKernel(np.int32, "a + b", 0)
    >>> x = gpuarray.to_gpu(np.int32([3, 1, 4]))
    >>> add(x).get()
    array([0, 3, 4], dtype=int32)
    """

    _exclusive = True
