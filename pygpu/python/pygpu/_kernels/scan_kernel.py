"""The classes of scans around a program's expression."""

from __future__ import annotations

from typing import Any

import numpy as np

from .. import _core, gpuarray
from .._arguments import gpu_array
from .._errors import Unsupported
from . import snippets
from . import snippets as _snippets
from .c_types import dtype_to_ctype
from .snippets import THREADS

PART = 1 << 14
"""Elements that the host scans one after the other."""
PARTS = 4
"""Parts that a thread of the host scans in turns, so that none waits for itself."""

# The widest word that the alignment of a type allows.
_WORDS = """
template <unsigned ALIGNMENT> struct pygpu_word { typedef unsigned long long type; };
template <> struct pygpu_word<1> { typedef unsigned char type; };
template <> struct pygpu_word<2> { typedef unsigned short type; };
template <> struct pygpu_word<4> { typedef unsigned type; };
"""


def _scan_functions() -> str:
    """Returns the core's functions; NVRTC would warn of those that are not used."""
    text = _core.scan_functions()
    return f"""#pragma nv_diag_suppress 177
{text}
#pragma nv_diag_default 177
#undef DEVICE
#undef METHOD
{_WORDS}"""


def _operator(name: str, ctype: str, expression: str, start: Any, plain: bool) -> str:
    """Returns the operator for the core's scan functions; an exclusive scan begins with ``start``.

    A structure with constructors is kept as words, since none can run in shared memory.
    """
    text = f"""
typedef {ctype} {name}_type;
static __device__ inline {name}_type {name}_apply({name}_type a, {name}_type b)
{{
    return {snippets.part("scan_expr", expression)};
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
    """Returns kernels of a scan by one block, and of clearing the state and scanning by many."""
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


def _kernels_of_host(name: str, exclusive: bool) -> str:
    """Returns the host's kernels, whose blocks are one thread.

    They compute the totals of all parts except the last, at the next part's place; the state that
    each part begins with; and the scan.
    """
    return f"""
typedef {name}_operator::value {name}_at;
template <unsigned COUNT>
static inline void {name}_total(
    {name}_at *states, const char *in, long long stride, unsigned long long part)
{{
    const char *const first = in + (long long)(part * {PART}) * stride;
    {name}_at own[COUNT];
    for (unsigned k = 0; k < COUNT; ++k) {{
        own[k] = *(const {name}_at *)(first + (long long)k * {PART} * stride);
    }}
    for (long long j = 1; j < {PART}; ++j) {{
        for (unsigned k = 0; k < COUNT; ++k) {{
            const char *const at = first + ((long long)k * {PART} + j) * stride;
            own[k] = {name}_operator::combine(own[k], *(const {name}_at *)at);
        }}
    }}
    for (unsigned k = 0; k < COUNT; ++k) {{
        states[part + k + 1] = own[k];
    }}
}}
extern "C" __global__ void {name}_totals(
    char *states, const char *in, long long stride, unsigned long long parts)
{{
    unsigned long long part = (unsigned long long)blockIdx.x * {PARTS};
    if (part + {PARTS} < parts) {{
        {name}_total<{PARTS}>(({name}_at *)states, in, stride, part);
        return;
    }}
    for (; part + 1 < parts; ++part) {{
        {name}_total<1>(({name}_at *)states, in, stride, part);
    }}
}}
extern "C" __global__ void {name}_states(char *states, unsigned long long parts)
{{
    {name}_at *const all = ({name}_at *)states;
    {f"all[0] = {name}_operator::start();" if exclusive else ""}
    for (unsigned long long part = {1 if exclusive else 2}; part < parts; ++part) {{
        all[part] = {name}_operator::combine(all[part - 1], all[part]);
    }}
}}
template <unsigned COUNT>
static inline void {name}_part(
    char *out, long long out_stride, const char *in, long long in_stride, long long length,
    const {name}_at *states, unsigned long long part)
{{
    out += (long long)(part * {PART}) * out_stride;
    in += (long long)(part * {PART}) * in_stride;
    {name}_at own[COUNT];
    for (unsigned k = 0; k < COUNT; ++k) {{
        const {name}_at value = *(const {name}_at *)(in + (long long)k * {PART} * in_stride);
        {name}_at *const to = ({name}_at *)(out + (long long)k * {PART} * out_stride);
        {_FIRST_EXCLUSIVE if exclusive else _FIRST_INCLUSIVE}
    }}
    for (long long j = 1; j < length; ++j) {{
        for (unsigned k = 0; k < COUNT; ++k) {{
            const long long at = (long long)k * {PART} + j;
            const {name}_at value = *(const {name}_at *)(in + at * in_stride);
            {name}_at *const to = ({name}_at *)(out + at * out_stride);
            {_NEXT_EXCLUSIVE if exclusive else _NEXT_INCLUSIVE}
        }}
    }}
}}
extern "C" __global__ void {name}_parts(
    char *out, long long out_stride, const char *in, long long in_stride,
    unsigned long long length, unsigned long long parts, const char *states)
{{
    const {name}_at *const all = (const {name}_at *)states;
    unsigned long long part = (unsigned long long)blockIdx.x * {PARTS};
    if (part + {PARTS} < parts) {{
        {name}_part<{PARTS}>(out, out_stride, in, in_stride, {PART}, all, part);
        return;
    }}
    for (unsigned k = 0; k < {PARTS} && part < parts; ++k, ++part) {{
        const unsigned long long rest = length - part * {PART};
        {name}_part<1>(
            out, out_stride, in, in_stride, rest < {PART} ? rest : {PART}, all, part);
    }}
}}
""".replace("OPERATOR", f"{name}_operator")


# A scan of one part does not have states.
_FIRST_INCLUSIVE = "*to = own[k] = part + k ? OPERATOR::combine(states[part + k], value) : value;"
_NEXT_INCLUSIVE = "*to = own[k] = OPERATOR::combine(own[k], value);"
_FIRST_EXCLUSIVE = """*to = own[k] = part + k ? states[part + k] : OPERATOR::start();
        own[k] = OPERATOR::combine(own[k], value);"""
_NEXT_EXCLUSIVE = """*to = own[k];
            own[k] = OPERATOR::combine(own[k], value);"""


def _source(
    name: str, ctype: str, expression: str, preamble: str, start: Any, exclusive: bool, plain: bool
) -> str:
    """Returns the source of a module; an exclusive scan begins with ``start``, and ``plain`` dtypes
    are numbers in C."""
    on_host = _core.runs_kernels_on_host()
    text = "#include <pycuda-complex.hpp>\n" + (_WORDS if on_host else _scan_functions())
    text += snippets.part("preamble", preamble)
    text += _operator(name, ctype, expression, start, plain)
    return text + (_kernels_of_host if on_host else _kernels)(name, exclusive)


# Arrays of at most so many tiles are scanned by one block, in one launch.
_BLOCK_TILES = 4
# Tiles of a team of blocks, the most blocks that share the tiles, and the most of a launch: as in
# the core.
_TEAM = 256
_TILE_BLOCKS = 1024
_MOST_BLOCKS = 1 << 20
# A larger value does not fit shared memory as often as a block needs it.
_LARGEST_VALUE = 56
# The kernels and their arguments.
_KERNELS = {"block": "PqPqI", "clear": "PQ", "tiles": "PqPqQQP"}
_HOST_KERNELS = {"totals": "PPqQ", "states": "PQ", "parts": "PqPqQQP"}


def _overlap(source: Any, target: Any) -> bool:
    """Returns True if different elements of two arrays may share memory."""
    if source is target:
        return False
    begin, first = source.ptr, target.ptr
    (step,), (stride,) = source.strides, target.strides
    if begin == first and step == stride:
        return False
    steps, size = source.size - 1, source.dtype.itemsize
    reach, extent = steps * step, steps * stride
    end = begin + max(reach, 0) + size
    last = first + max(extent, 0) + size
    return bool(begin + min(reach, 0) < last and first + min(extent, 0) < end)


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

    def __getstate__(self) -> dict[str, Any]:
        """Returns the attributes without kernels, which a copy compiles itself."""
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
        module = _snippets.module_of(text, options)
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
            raise TypeError(f"{wrong}, and only dtypes of one size stand for one another")
        alignment = self.dtype.alignment
        if any(it % alignment for it in (array.ptr, *array.strides)):
            raise TypeError(f"{wrong}, whose elements lie at multiples of {alignment} bytes")

    def __call__(
        self, input_ary: Any, output_ary: Any = None, allocator: Any = None, stream: Any = None
    ) -> Any:
        """Queues the scan, and returns the array with the results.

        Parameters
        ----------
        input_ary : GPUArray. An array of one axis, of any stride.
        output_ary : GPUArray or "new", optional. The array of results; ``input_ary`` by default.
        allocator, stream : callable and Stream, optional. The allocator of new memory, and the
            stream of the work.
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
        if _overlap(input_ary, output_ary):
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
        length = operands[-1]
        block = (THREADS, 1, 1)
        if length <= _BLOCK_TILES * self._tile:
            by_block.prepared_async_call((1, 1), block, stream, *operands)
            return
        tiles = -(-length // self._tile)
        words = 1 + (-(-tiles // _TEAM) + tiles) * self._words
        state = gpuarray.empty(words, np.uint64, allocator=allocator)
        grid = (min(-(-words // THREADS), _MOST_BLOCKS), 1)
        clear.prepared_async_call(grid, block, stream, state, words)
        grid = (min(tiles, _TILE_BLOCKS), 1)
        by_tiles.prepared_async_call(grid, block, stream, *operands, tiles, state)

    def _launch_on_host(self, operands: tuple[Any, ...], allocator: Any, stream: Any) -> None:
        """Queues a scan by the host's threads, each of which scans neighbours."""
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
    """Combines each element with all before it.

    Raises ``Unsupported`` if an element is too large for the shared memory of a block.

    >>> largest = InclusiveScanKernel(np.int32, "max(a, b)")
    >>> largest(gpuarray.to_gpu(np.int32([3, 1, 4, 1, 5]))).get()
    array([3, 3, 4, 4, 5], dtype=int32)

    Parameters
    ----------
    dtype : dtype. The dtype of the elements.
    scan_expr : str. An expression of the values ``a`` and ``b``, of which ``a`` comes first: ``"a +
        b"``. It has to be associative, and need not be commutative.
    neutral : str or number, optional. The neutral element, which an inclusive scan does not need.
    name_prefix, preamble : str. The start of the kernels' names, and source before them.
    options, devices : sequence of str, and object. Options of the compiler; the other is not used.
    """

    _exclusive = False


class ExclusiveScanKernel(_ScanKernel):
    """Combines all elements before each element, and the neutral element.

    Other arguments are as in :class:`InclusiveScanKernel`. Raises ``Unsupported`` if an element is
    too large for the shared memory of a block.

    >>> add = ExclusiveScanKernel(np.int32, "a + b", 0)
    >>> add(gpuarray.to_gpu(np.int32([3, 1, 4]))).get()
    array([0, 3, 4], dtype=int32)

    Parameters
    ----------
    neutral : str or number. The neutral element, which is the first result.
    """

    _exclusive = True
