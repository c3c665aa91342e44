"""Running results of a program's expression, with the names of ``pycuda.scan``.

The functions that scans are made of are those of ``gpuarray.cumsum`` and the like; the operator is
the program's. An array is read and written once. Elements are combined in an order that depends on
the length and the dtype alone, so that a scan of floating-point numbers repeats to the last bit."""

from __future__ import annotations

from typing import Any

import numpy as np

from . import _core, _snippets, gpuarray
from ._c_types import dtype_to_ctype
from ._context import Context
from ._errors import Unsupported
from ._snippets import THREADS

__all__ = ["ExclusiveScanKernel", "InclusiveScanKernel"]

# Arrays of at most so many tiles are scanned by one block, in one launch.
_BLOCK_TILES = 4
# Tiles whose blocks are a team, the most blocks that share the tiles, and the most of a launch:
# those of the core.
_TEAM = 256
_TILE_BLOCKS = 1024
_MOST_BLOCKS = 1 << 20
# A larger value does not fit shared memory as often as a block needs it.
_LARGEST_VALUE = 56


# The widest word that the alignment of a type allows.
_WORDS = """
template <unsigned ALIGNMENT> struct pygpu_word { typedef unsigned long long type; };
template <> struct pygpu_word<1> { typedef unsigned char type; };
template <> struct pygpu_word<2> { typedef unsigned short type; };
template <> struct pygpu_word<4> { typedef unsigned type; };
"""


def _scan_functions() -> str:
    """Returns the core's functions, some of which are not used; NVRTC would warn of those."""
    text = _core.scan_functions()
    return f"""#pragma nv_diag_suppress 177
{text}
#pragma nv_diag_default 177
#undef DEVICE
#undef METHOD
{_WORDS}"""


def _operator(name: str, ctype: str, expression: str, start: Any, plain: bool) -> str:
    """Returns the operator as the functions of scans take it; ``start`` is what an exclusive scan
    begins with.

    A structure with constructors is kept as words, since none can run in shared memory.
    """
    text = f"""
typedef {ctype} {name}_type;
static __device__ inline {name}_type {name}_apply({name}_type a, {name}_type b)
{{
    return {_snippets.part("scan_expr", expression)};
}}
"""
    if plain:
        value, begin = f"{name}_type", f"return {start};"
        combine = f"return {name}_apply(a, b);"
    else:
        value, begin = f"{name}_value", f"return of({start});"
        combine = f"return of({name}_apply(*(const {name}_type *)&a, *(const {name}_type *)&b));"
        text += f"""
typedef pygpu_word<alignof({name}_type)>::type {name}_word;
struct {name}_value {{
    alignas({name}_type) {name}_word words[sizeof({name}_type) / sizeof({name}_word)];
}};
"""
    begins = f"    static __device__ value start() {{ {begin} }}\n" if start is not None else ""
    return f"""{text}
struct {name}_operator {{
    typedef {value} value;
    static __device__ value of(const {name}_type &x) {{ return *(const value *)&x; }}
{begins}    static __device__ value combine(value a, value b) {{ {combine} }}
}};
"""


def _kernels(name: str, exclusive: bool) -> str:
    """Returns the kernels: a scan by one block; the clearing of the state of a scan by many, and
    that scan."""
    operator = f"{name}_operator, {'true' if exclusive else 'false'}"
    start = f"{name}_operator::start()" if exclusive else f"{name}_operator::value()"
    return f"""
struct {name}_read {{
    const char *in;
    long long stride;
    __device__ {name}_operator::value operator()(unsigned long long i) const
    {{
        return *(const {name}_operator::value *)(in + (long long)i * stride);
    }}
    __device__ bool packs() const
    {{
        typedef {name}_operator::value value;
        return stride == sizeof(value) &&
               (unsigned long long)in % (gpuarray::Tile<value>::width * sizeof(value)) == 0;
    }}
    template <unsigned COUNT>
    __device__ void pack(unsigned i, {name}_operator::value *own) const
    {{
        gpuarray::Neighbours<{name}_operator::value, COUNT>::get(
            own, (const {name}_operator::value *)in + i);
    }}
    __device__ void advance(long long by) {{ in += by * stride; }}
    __device__ void prefetch(long long first, unsigned count) const
    {{
        if (stride == sizeof({name}_operator::value)) {{
            gpuarray::prefetch(in + first * stride, count * (unsigned)stride);
        }}
    }}
}};
struct {name}_write {{
    char *out;
    long long stride;
    __device__ void operator()(unsigned long long i, const {name}_operator::value &value) const
    {{
        *({name}_operator::value *)(out + (long long)i * stride) = value;
    }}
    __device__ bool packs() const
    {{
        typedef {name}_operator::value value;
        return stride == sizeof(value) &&
               (unsigned long long)out % (gpuarray::Tile<value>::width * sizeof(value)) == 0;
    }}
    template <unsigned COUNT>
    __device__ void pack(unsigned i, const {name}_operator::value *own) const
    {{
        gpuarray::Neighbours<{name}_operator::value, COUNT>::put(
            ({name}_operator::value *)out + i, own);
    }}
    __device__ void advance(long long by) {{ out += by * stride; }}
}};
struct {name}_rows {{
    typedef {name}_read Read;
    typedef {name}_write Write;
    Read read;
    Write write;
    __device__ void at(unsigned long long, Read *to_read, Write *to_write) const
    {{
        *to_read = read;
        *to_write = write;
    }}
}};
extern "C" __global__ void __launch_bounds__({THREADS}) {name}_block(
    char *out, long long out_stride, const char *in, long long in_stride, unsigned length)
{{
    const {name}_read read = {{in, in_stride}};
    const {name}_write write = {{out, out_stride}};
    gpuarray::scan_range<{operator}, unsigned>(read, write, length, {start});
}}
extern "C" __global__ void __launch_bounds__({THREADS}) {name}_clear(
    unsigned long long *state, unsigned long long words)
{{
    gpuarray::clear_state(state, words);
}}
extern "C" __global__ void GPUARRAY_BOUNDS(gpuarray::Tile<{name}_operator::value>::blocks)
{name}_tiles(
    char *out, long long out_stride, const char *in, long long in_stride,
    unsigned long long length, unsigned long long tiles, unsigned long long *state)
{{
    const {name}_rows rows = {{{{in, in_stride}}, {{out, out_stride}}}};
    gpuarray::scan_tiles<{operator}>(rows, length, 1, tiles, state, {start});
}}
"""


def _overlap(source: Any, target: Any) -> bool:
    """Whether an element of one array may lie where another element of the other does."""

    def extent(array: Any) -> tuple[int, int]:
        reach = (array.size - 1) * array.strides[0]
        return array.ptr + min(reach, 0), array.ptr + max(reach, 0) + array.dtype.itemsize

    if source is target or (source.ptr, source.strides) == (target.ptr, target.strides):
        return False
    (begin, end), (first, last) = extent(source), extent(target)
    return begin < last and first < end


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
        self._texts = (name_prefix, dtype_to_ctype(self.dtype), scan_expr, preamble, options)
        size = self.dtype.itemsize
        if size > _LARGEST_VALUE:
            raise Unsupported(
                f"values of dtype {self.dtype} take {size} bytes; at most {_LARGEST_VALUE} can be "
                "scanned"
            )
        thread_bytes = 64 if size > 8 else 112 if size in (4, 8) else 96
        self._tile = THREADS * (thread_bytes // max(size, 4))
        self._words = -(-size // 4)
        self._compiled: dict[tuple[int, int], tuple[_core.Function, ...]] = {}

    def _functions(self) -> tuple[_core.Function, ...]:
        """The kernels for the current device, whose contexts are one until it is reset."""
        ordinal = Context.get_device().ordinal
        key = (ordinal, _core.device_epoch(ordinal))
        if key not in self._compiled:
            self._compiled[key] = self._compile()
        return self._compiled[key]

    def _compile(self) -> tuple[_core.Function, ...]:
        from .compiler import SourceModule

        name, ctype, expression, preamble, options = self._texts
        source = "#include <pycuda-complex.hpp>\n" + _scan_functions()
        source += _snippets.part("preamble", preamble)
        start = self.neutral if self._exclusive else None
        source += _operator(name, ctype, expression, start, self.dtype.kind in "biuf")
        source += _kernels(name, self._exclusive)
        module = SourceModule(source, options=options, no_extern_c=True)
        functions = [module.get_function(f"{name}_{it}") for it in ("block", "clear", "tiles")]
        for function, arguments in zip(functions, ("PqPqI", "PQ", "PqPqQQP"), strict=True):
            function.prepare(arguments)
        return tuple(functions)

    def _check(self, name: str, array: Any) -> None:
        if not isinstance(array, gpuarray.GPUArray):
            raise TypeError(f"{name} is of type {type(array).__name__}; a GPUArray is needed")
        if array.dtype == self.dtype:
            return
        wrong = f"{name} has dtype {array.dtype}; the scan is one of {self.dtype}"
        if array.dtype.itemsize != self.dtype.itemsize:
            raise TypeError(f"{wrong}, and only dtypes of one size stand for one another")
        alignment = self.dtype.alignment
        if any(it % alignment for it in (array.ptr, *array.strides)):
            raise TypeError(f"{wrong}, whose elements lie at multiples of {alignment} bytes")

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
            An argument is no array, or its elements have another size. Those of another dtype and
            the same size are read as the scan's, as PyCUDA reads them.
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
        if length == 0:
            return output_ary
        if _overlap(input_ary, output_ary):
            # Blocks would read what others have written.
            input_ary = input_ary.astype(input_ary.dtype, stream)
        by_block, clear, by_tiles = self._functions()
        operands = (output_ary, output_ary.strides[0], input_ary, input_ary.strides[0])
        block = (THREADS, 1, 1)
        if length <= _BLOCK_TILES * self._tile:
            by_block.prepared_async_call((1, 1), block, stream, *operands, length)
            return output_ary
        tiles = -(-length // self._tile)
        words = 1 + (-(-tiles // _TEAM) + tiles) * self._words
        state = gpuarray.empty(words, np.uint64, allocator=allocator)
        grid = (min(-(-words // THREADS), _MOST_BLOCKS), 1)
        clear.prepared_async_call(grid, block, stream, state, words)
        grid = (min(tiles, _TILE_BLOCKS), 1)
        by_tiles.prepared_async_call(grid, block, stream, *operands, length, tiles, state)
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
        What combined with a value ``x`` is ``x``. An inclusive scan does not need it.
    name_prefix : str
        The start of the kernels' names.
    options : sequence of str, optional
        Options of the compiler.
    preamble : str
        Source before the kernels: functions, structures, ``#include`` lines.
    devices : object, optional
        Not used.

    Raises
    ------
    TypeError
        A piece of source is no text.
    ValueError
        The dtype has no name in CUDA C.
    Unsupported
        An element is too large for the shared memory of a block.

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
    dtype : dtype
        The dtype of the elements.
    scan_expr : str
        An expression of the values ``a`` and ``b``, of which ``a`` comes first: ``"a + b"``. It has
        to be associative, and need not be commutative.
    neutral : str or number
        What combined with a value ``x`` is ``x``: the first result.
    name_prefix : str
        The start of the kernels' names.
    options : sequence of str, optional
        Options of the compiler.
    preamble : str
        Source before the kernels: functions, structures, ``#include`` lines.
    devices : object, optional
        Not used.

    Raises
    ------
    TypeError
        A piece of source is no text.
    ValueError
        There is no neutral element, or the dtype has no name in CUDA C.
    Unsupported
        An element is too large for the shared memory of a block.

    Examples
    --------
    >>> add = ExclusiveScanKernel(np.int32, "a + b", 0)
    >>> x = gpuarray.to_gpu(np.int32([3, 1, 4]))
    >>> add(x).get()
    array([0, 3, 4], dtype=int32)
    """

    _exclusive = True
