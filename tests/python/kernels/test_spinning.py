"""Loops that wait for another warp, in the forms that programs use."""

from __future__ import annotations

import numpy as np
import pytest

from pygpu import driver
from pygpu.compiler import SourceModule

LOOPS = {
    "volatile_equal": "while (*vp == 0) {}",
    "volatile_cast_in_for": "for (; *(volatile int *)p == 0;);",
    "volatile_two": "while (*vp == 0 || *vp == 3) {}",
    "volatile_do": "do {} while (*vp == 0);",
    "volatile_assigned": "int v = 0; while (!v) { v = *(volatile int *)p; }",
    "volatile_do_assigned": "int v; do v = *vp; while (v == 0);",
    "volatile_counted": "for (int n = 0; n < 1000000000; n++) if (*(volatile int *)p) break;",
    "volatile_counting": "while (*vp == 0) { turns++; }",
    "atomic_do": "int v; do { v = atomicAdd(p, 0); } while (v == 0);",
    "atomic_break": "while (true) { if (atomicAdd(p, 0)) break; }",
    "atomic_counting": "while (atomicAdd(p, 0) == 0) { turns++; }",
    "atomic_step": "for (int v = 0; v == 0; v = atomicOr(p, 0)) {}",
    "compare_and_swap": "int v = 0; while (v == 0) v = atomicCAS(p, 1, 1);",
    "compare_with_fence": "while (atomicCAS(p, 1u, 1) != 1) { __threadfence(); }",
    "exchange": "while (atomicExch(p, 0) == 0) { turns += 1; }",
}


@pytest.fixture(scope="module")
def spinning():
    return SourceModule(
        "".join(
            f"""
            __global__ void {name}(int *out, int *p)
            {{
                __shared__ int shared;
                volatile int *vp = p;
                int turns = 0, t = threadIdx.x;
                if (t == 0) {{
                    {loop}
                    __threadfence();
                    out[0] = ((volatile int *)&shared)[0] + (turns < 0);
                }} else if (t == 127) {{
                    shared = 7;
                    __threadfence();
                    *vp = 1;
                    atomicExch(p, 1);
                }}
            }}
            """
            for name, loop in LOOPS.items()
        )
    )


@pytest.mark.parametrize("name", LOOPS)
def test_another_warp_ends_a_loop(spinning, name):
    out = np.zeros(1, np.int32)
    flag = driver.InOut(np.zeros(1, np.int32))
    spinning.get_function(name)(driver.Out(out), flag, block=(128, 1, 1))
    assert out[0] == 7
