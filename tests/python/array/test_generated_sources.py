"""NVIDIA's compiler accepts the generated sources without a warning; no GPU is needed."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from device import BACKEND

from pygpu import _core, compiler, tools
from pygpu.elementwise import ElementwiseKernel
from pygpu.reduction import ReductionKernel, get_minmax_kernel
from pygpu.scan import ExclusiveScanKernel, InclusiveScanKernel

SCRIPT = Path(__file__).parents[3] / "hal/codegen/tests/source/compile_with_nvrtc.py"

pytestmark = pytest.mark.skipif(
    importlib.util.find_spec("nvidia") is None, reason="NVRTC is not installed as a package"
)

HEADERS = """
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <math.h>
#include <assert.h>
#include <stdint.h>
#include <stddef.h>
#include <float.h>
#include <limits.h>
#include <pycuda-complex.hpp>
#include <pycuda-helpers.hpp>
__global__ void f(double *x, uint64_t n)
{
    assert(n > offsetof(int2, y));
    x[0] = M_PI * INFINITY + FLT_MAX + INT_MAX;
    printf("%f\\n", x[0]);
}
"""


class Refused(Exception):
    pass


@pytest.fixture
def sources(monkeypatch, tmp_path):
    """Returns calls that compile; their sources are written to a folder instead of compiled."""

    def keep(program):
        text = _core.adapted_program("cuda", True, program)[0]
        (tmp_path / f"{len(list(tmp_path.iterdir()))}.cu").write_text(text)
        raise Refused

    monkeypatch.setattr(_core, "compile_program", keep)
    monkeypatch.setattr(_core, "runs_kernels_on_host", lambda: False)
    monkeypatch.setattr("pygpu._compile.compilation.CompileError", ())
    return tmp_path


@pytest.mark.skipif(BACKEND == "hip", reason="programs for AMD's devices have headers of their own")
def test_nvrtc_takes_them_without_a_warning(sources):
    complex_numbers = "pycuda::complex<float> *x, pycuda::complex<double> *y, float *z"
    elementwise = [
        ElementwiseKernel("float a, const float *x, float *z", "z[i] = a * x[i]"),
        ElementwiseKernel("char *x, long *z", "if (x[i] > 1) z[i] += x[i]; else z[i] = i"),
        ElementwiseKernel(complex_numbers, "y[i] = exp(x[i] * 2) + x[n - 1 - i]; z[i] = abs(x[i])"),
        ElementwiseKernel("double *z", "z[i] = k", loop_prep="int k = 3", after_loop="k = 0"),
    ]
    point = np.dtype([("u", np.float32), ("v", np.float32)])
    tools.get_or_register_dtype("sources_point", point)
    preamble = """
    struct sources_point {
        float u, v;
        __device__ sources_point() {}
        __device__ sources_point(float u, float v) : u(u), v(v) {}
    };
    __device__ sources_point add(sources_point a, sources_point b)
    {
        return sources_point(a.u + b.u, a.v + b.v);
    }
    """
    structure = {"reduce_expr": "add(a, b)", "preamble": preamble}
    zero = "sources_point(0, 0)"
    reductions = [
        ReductionKernel(np.float32, 0, "a + b", "x[i] * y[i]", "const float *x, double *y"),
        ReductionKernel(point, zero, map_expr="x[i]", arguments="sources_point *x", **structure),
        get_minmax_kernel("min", np.dtype(np.int64)),
        get_minmax_kernel("max", np.dtype(np.float32)),
    ]
    scans = [
        InclusiveScanKernel(np.float64, "max(a, b)"),
        ExclusiveScanKernel(np.uint8, "a + b", 0),
        InclusiveScanKernel(np.complex64, "a * b"),
        ExclusiveScanKernel(point, "add(a, b)", zero, preamble=preamble),
    ]
    calls = [
        lambda: compiler.compile(HEADERS),
        lambda: elementwise[0]._define()[0]._build(False, True, False, ()),
    ]
    for number, kernel in enumerate([*elementwise, *reductions]):
        generator = kernel._define()[0] if isinstance(kernel, ElementwiseKernel) else kernel
        ranged = number % 2 == 1 and isinstance(kernel, ElementwiseKernel)
        vectors = sum(it.is_vector for it in generator._arguments)
        for ranks in ((), (number % 2,) * (vectors - 1) + (3,)):
            wide = bool(ranks) and number % 3 == 0
            calls.append(lambda k=generator, g=ranged, r=ranks, w=wide: k._build(g, False, w, r))
    calls += [lambda s=scan: s._compile() for scan in scans]
    for call in calls:
        with pytest.raises(Refused):
            call()
    assert len(list(sources.iterdir())) == len(calls)
    command = [sys.executable, SCRIPT, "--no-warnings", sources, "sm_90"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert done.stdout.splitlines()[-1:] == [f"{len(calls)} passed, 0 failed"], done.stdout[:4000]
