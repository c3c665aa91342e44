"""The source of reductions of a program's expressions, for a device's blocks and the host."""

from __future__ import annotations

from typing import Any

from .._compile.c_text import without_comments
from . import snippets

PARTIALS = "pycuda_reduction_inp"
# Values that a thread of the host combines elements into: a power of two.
_LANES = 16


def _one_line(text: Any) -> str:
    return " ".join(without_comments(str(text)).splitlines())


def macros(out_type: str, reduce_expr: str, preamble: str, block_size: int) -> str:
    """What the kernels of a module share."""
    return f"""#define BLOCK_SIZE {block_size}
#define REDUCE(a, b) ({_one_line(reduce_expr)})
{snippets.part("preamble", preamble)}
typedef {out_type} out_type;
struct pygpu_values {{
    alignas(16) unsigned char bytes[BLOCK_SIZE * sizeof(out_type)];
}};
"""


def kernel(
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


def kernel_of_host(name: str, parameters: str, arrays: str, neutral: Any, map_expr: str) -> str:
    """Returns the same kernel for the host, where a block is one thread: it combines a part of the
    elements, in :data:`_LANES` values at a time so that none waits for the one before."""
    neutral = _one_line(neutral)
    halves = []
    half = _LANES
    while half := half // 2:
        halves.append(
            f"        for (int pygpu_k = 0; pygpu_k < {half}; ++pygpu_k) {{\n"
            f"            pygpu_lanes[pygpu_k] = "
            f"REDUCE(pygpu_lanes[pygpu_k], pygpu_lanes[pygpu_k + {half}]);\n"
            "        }\n"
        )
    return f"""
#define READ_AND_MAP(i) ({_one_line(map_expr)})
extern "C" __global__ void {name}(out_type *out, {parameters})
{{
    {arrays}
    const size_t pygpu_most = n / gridDim.x, pygpu_more = n % gridDim.x, pygpu_block = blockIdx.x;
    size_t i = pygpu_block * pygpu_most + (pygpu_block < pygpu_more ? pygpu_block : pygpu_more);
    const size_t pygpu_end = i + pygpu_most + (pygpu_block < pygpu_more);
    out_type acc = {neutral};
    if (pygpu_end - i >= {_LANES}) {{
        out_type pygpu_lanes[{_LANES}] = {{{", ".join([neutral] * _LANES)}}};
        for (; pygpu_end - i >= {_LANES}; i += {_LANES}) {{
            for (int pygpu_k = 0; pygpu_k < {_LANES}; ++pygpu_k) {{
                const auto pygpu_value = READ_AND_MAP((i + pygpu_k));
                pygpu_lanes[pygpu_k] = REDUCE(pygpu_lanes[pygpu_k], pygpu_value);
            }}
        }}
{"".join(halves)}        acc = REDUCE(acc, pygpu_lanes[0]);
    }}
    for (; i < pygpu_end; ++i) {{
        acc = REDUCE(acc, READ_AND_MAP(i));
    }}
    out[blockIdx.x] = acc;
}}
#undef READ_AND_MAP
"""
