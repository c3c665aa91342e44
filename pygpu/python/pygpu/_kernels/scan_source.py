"""The source of scans around a program's operator, for a device's blocks and the host's threads."""

from __future__ import annotations

from typing import Any

from .. import _core
from . import snippets
from .snippets import THREADS

PART = 1 << 14
"""Elements that the host scans one after the other."""
PARTS = 4
"""Parts that a thread of the host goes through side by side, so that none waits for itself."""

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


def _kernels_of_host(name: str, exclusive: bool) -> str:
    """Returns the kernels of the host, whose blocks are one thread: what the elements of each part
    but the last come to, in the next part's place; what each part begins with; and the scan."""
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


# A scan of one part has no states.
_FIRST_INCLUSIVE = "*to = own[k] = part + k ? OPERATOR::combine(states[part + k], value) : value;"
_NEXT_INCLUSIVE = "*to = own[k] = OPERATOR::combine(own[k], value);"
_FIRST_EXCLUSIVE = """*to = own[k] = part + k ? states[part + k] : OPERATOR::start();
        own[k] = OPERATOR::combine(own[k], value);"""
_NEXT_EXCLUSIVE = """*to = own[k];
            own[k] = OPERATOR::combine(own[k], value);"""


def source(
    name: str, ctype: str, expression: str, preamble: str, start: Any, exclusive: bool, plain: bool
) -> str:
    """Returns the text of a module; ``start`` is what an exclusive scan begins with, and ``plain``
    dtypes are numbers in C."""
    on_host = _core.runs_kernels_on_host()
    text = "#include <pycuda-complex.hpp>\n" + (_WORDS if on_host else _scan_functions())
    text += snippets.part("preamble", preamble)
    text += _operator(name, ctype, expression, start, plain)
    return text + (_kernels_of_host if on_host else _kernels)(name, exclusive)
