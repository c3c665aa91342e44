"""Values that only some lanes have set, in programs for AMD's devices.

CUDA programs pass such values to warp functions: after `if (lane == leader) first =
atomicAdd(...)`, all lanes call `__shfl_sync`. To clang, passing an unset argument is undefined
behaviour, so it would assume that the condition is always true. The fake driver cannot show that,
because it uses another compiler. The real compiler's code would be equal to that of the kernel
without the condition.
"""

from __future__ import annotations

import pytest
from rocm_compilers import COMPILERS, compiled, symbols

from pygpu import choose_backend

pytestmark = pytest.mark.skipif(
    choose_backend() != "hip", reason="devices of HIP are needed to ask its compiler"
)

START = """
#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>
#include <cooperative_groups/scan.h>
#include <cuda_bf16.h>
namespace cg = cooperative_groups;
struct pair { int first, second; };
struct wide { long long x, y, z; };
__device__ int broadcast(int value, int from) { return __shfl_sync(~0u, value, from); }
struct leader { int lane; __device__ int of(int x) const { return broadcast(x, lane); } };
extern "C++" template <class T> __device__ T sum(T x) { return x + __shfl_xor_sync(~0u, x, 1); }
struct longer {
    int *log;
    __device__ int operator()(int x, int y) const {
        if (x < y) atomicAdd(log, y);
        return x < y ? y : x * 3;
    }
};
"""
KERNEL = """
__global__ void {name}(int *counter, const int *given, {type} *out) {{
    const int t = threadIdx.x;
    auto warp = cg::tiled_partition<32>(cg::this_thread_block());
    auto tile = cg::tiled_partition<8>(cg::this_thread_block());
    auto here = cg::coalesced_threads();
    {type} v;
    int all;
    {condition} v = {made};
    out[t] = {use};
}}
"""
ATOMIC = "atomicAdd(counter, 32)"
# Expressions that make a value of a type from it; other types use a conversion.
MADE = {
    "bool": f"{ATOMIC} & 1",
    "pair": f"{{{ATOMIC}, t}}",
    "wide": f"{{{ATOMIC}, t, 1}}",
    "__nv_bfloat16": f"__float2bfloat16({ATOMIC})",
    "__nv_bfloat162": f"__float2bfloat162_rn({ATOMIC})",
}
SHUFFLES = [
    f"__shfl{it}_sync(~0u, v, 3{width})"
    for it in ("", "_up", "_down", "_xor")
    for width in ("", ", 16")
]
VOTES = ["__ballot_sync(~0u, v)", "__any_sync(~0u, v)", "__all_sync(~0u, v)"]
OF_NUMBERS = [
    *SHUFFLES,
    "__match_any_sync(~0u, v)",
    "__match_all_sync(~0u, v, &all)",
    "warp.shfl_xor(v, 3)",
    "sum(v)",
]
OF_INT = [
    *VOTES,
    *(f"__reduce_{it}_sync(~0u, v)" for it in ("add", "min", "max", "and", "or", "xor")),
    # Values that select lanes, widths, masks and labels.
    *("__shfl_sync(~0u, 3 * t, v)", "__shfl_up_sync(~0u, 3 * t, v)", "__shfl_sync(~0u, t, 3, v)"),
    *("__shfl_sync(v, t, 3)", "__ballot_sync(v, t)", "(__syncwarp(v), t)", "warp.shfl(3 * t, v)"),
    *("__syncthreads_count(v)", "__syncthreads_and(v)", "__syncthreads_or(v)"),
    *("cg::labeled_partition(warp, v).size()", "cg::labeled_partition(here, v).shfl(t, 0)"),
    # Values passed through a program's own functions.
    *("broadcast(v, 3)", "leader{3}.of(v)"),
]
OF_GROUPS = {
    "int": ["match_any(v)", "match_all(v, all)", "any(v)", "all(v)", "ballot(v)"],
    "bool": ["any(v)", "all(v)", "ballot(v)"],
}
MOVED = ["shfl(v, 3)", "shfl_up(v, 3)", "shfl_down(v, 3)"]
ORDERED = ["reduce({}, v, cg::less<{}>())", "inclusive_scan({}, v)"]
ORDERED += ["exclusive_scan({}, v, cg::greater<{}>())"]


def cases():
    """Yields pairs of a type and an expression that uses a value of it."""
    for of in ("int", "long long", "double"):
        yield from ((of, use) for use in OF_NUMBERS)
        for group in ("warp", "tile", "here"):
            yield from ((of, f"{group}.{use}") for use in MOVED)
            yield from ((of, f"cg::{use.format(group, of)}") for use in ORDERED)
    yield from (("int", use) for use in OF_INT)
    yield from (("bool", use) for use in VOTES)
    for group in ("warp", "tile", "here"):
        yield from ((of, f"{group}.{use}") for of, uses in OF_GROUPS.items() for use in uses)
        yield "int", f"cg::reduce({group}, v, longer{{counter}})"
        yield "bool", f"cg::binary_partition({group}, v).size()"
        yield from ((of, f"{group}.{use}") for of in ("pair", "wide") for use in MOVED)
    yield from ((of, use) for of in ("__nv_bfloat16", "__nv_bfloat162") for use in SHUFFLES)


def without_condition(generation, target, folder, *options):
    """Returns the cases whose code equals that of a kernel without the condition."""
    text, all_cases = START, list(cases())
    for i, (of, use) in enumerate(all_cases):
        made = MADE.get(of, f"({of}){ATOMIC}")
        for name, condition in ((f"kept{i}", "if (given[t])"), (f"always{i}", "")):
            text += KERNEL.format(name=name, type=of, made=made, use=use, condition=condition)
    code = symbols(compiled(generation, target, folder, text, *options))
    return [it for i, it in enumerate(all_cases) if code[f"kept{i}"] == code[f"always{i}"]]


@pytest.mark.parametrize(("generation", "target"), COMPILERS)
def test_the_condition_of_a_value_stays(tmp_path, generation, target):
    assert without_condition(generation, target, tmp_path) == []


def test_this_would_see_a_condition_that_is_lost(tmp_path):
    lost = without_condition("7", "gfx942", tmp_path, "-Xclang", "-enable-noundef-analysis")
    for use in (*OF_NUMBERS, "here.shfl(v, 3)", "cg::inclusive_scan(tile, v)"):
        assert {"int", "double"} <= {of for of, it in lost if it == use}, use
    assert {("int", use) for use in OF_INT} <= set(lost)
