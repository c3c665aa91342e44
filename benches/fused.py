"""Element-wise chains: one operation after the other, fused, and as a kernel written in C.

    PYGPU_BACKEND=host python benches/fused.py
    PYGPU_BACKEND=cuda python benches/fused.py --sizes 1000 67108864

Each chain is computed into an array, and summed; the C form of the sum is a ReductionKernel. The
forms run by turns, and the best time of each counts. Where they are installed, numexpr, numba and
jax compute the same on the CPU, and CuPy on the GPU. GB/s counts the two arrays that the fused form
has to read, and the one that it has to write. On the CPU, a chain that has run for --warm-up is one
compiled loop; with CXX=none it stays in pieces, and there is no form in C.
"""

from __future__ import annotations

import argparse
import itertools
import re
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import numpy as np

import pygpu
import pygpu.autoinit
from pygpu import cumath, driver, gpuarray
from pygpu.compiler import SourceModule
from pygpu.reduction import ReductionKernel

C = """
__global__ void chain(float *z, const float *x, const float *y, long n) {
    long step = (long)gridDim.x * blockDim.x;
    for (long i = blockIdx.x * (long)blockDim.x + threadIdx.x; i < n / 4; i += step) {
        float4 a = ((const float4 *)x)[i], b = ((const float4 *)y)[i], c;
        c.x = EXPRESSION(a.x, b.x); c.y = EXPRESSION(a.y, b.y);
        c.z = EXPRESSION(a.z, b.z); c.w = EXPRESSION(a.w, b.w);
        ((float4 *)z)[i] = c;
    }
}
"""


def polynomial(x: Any, y: Any, _: Any) -> Any:
    return x * y + x * 2 - y


def curve(x: Any, y: Any, m: Any) -> Any:
    return m.exp(-x) * m.sqrt(y) / (x * x + 1)


def blend(x: Any, y: Any, _: Any) -> Any:
    return (x - y) * (x > y) + x * y * (x <= y) + 1


def rational(x: Any, y: Any, _: Any) -> Any:
    return ((x * y + 1) * x - y) / ((x * x + y) * y + x * 2 + y * 3)


CHAINS = {
    "x*y + x*2 - y": (polynomial, "a * b + a * 2 - b", "x*y + x*2 - y"),
    "exp(-x)*sqrt(y)/(x*x+1)": (
        curve,
        "expf(-a) * sqrtf(b) / (a * a + 1)",
        "exp(-x)*sqrt(y)/(x*x+1)",
    ),
    "(x-y)*(x>y)+x*y*(x<=y)+1": (
        blend,
        "(a > b ? a - b : a * b) + 1",
        "where(x > y, x - y, x*y) + 1",
    ),
    "((x*y+1)*x-y)/((x*x+y)*y+x*2+y*3)": (
        rational,
        "((a*b + 1)*a - b) / ((a*a + b)*b + a*2 + b*3)",
        "((x*y+1)*x-y)/((x*x+y)*y+x*2+y*3)",
    ),
}


def chain_in_c(c: str, x: gpuarray.GPUArray, y: gpuarray.GPUArray) -> Callable[[], Any]:
    n = x.size
    module = SourceModule(C.replace("long step", f"#define EXPRESSION(a, b) ({c})\n    long step"))
    kernel, z = module.get_function("chain"), gpuarray.empty_like(x)
    block = 256
    grid = (max(1, min((n // 4 + block - 1) // block, 1 << 20)), 1)
    kernel.prepare("PPPl")
    return lambda: kernel.prepared_call(grid, (block, 1, 1), z.gpudata, x.gpudata, y.gpudata, n)


def in_numba(text: str, host: list[Any], found: dict[str, Any]) -> None:
    import numba

    body = text.replace("where(x > y, x - y, x*y)", "(x - y if x > y else x*y)")
    scope = {"exp": np.exp, "sqrt": np.sqrt}
    exec(f"def f(x, y): return {body}", scope)
    vectorized = numba.vectorize(["float32(float32, float32)"], target="parallel")(scope["f"])
    found["numba"] = lambda: vectorized(*host)


def forms(chain: Callable[..., Any], c: str, text: str, n: int, is_summed: bool) -> dict[str, Any]:
    def summed(x: Any, y: Any, m: Any) -> Any:
        return chain(x, y, m).sum()

    function = summed if is_summed else chain
    rng = np.random.default_rng(1)
    host = [rng.uniform(0.5, 2, n).astype(np.float32) for _ in range(2)]
    x, y = (gpuarray.to_gpu(one) for one in host)
    fused = pygpu.fuse(function)
    found = {
        "unfused": lambda: function(x, y, cumath),
        "fused": lambda: fused(x, y, cumath),
    }
    if is_summed:
        expression = re.sub(r"\b([ab])\b", lambda it: {"a": "x[i]", "b": "y[i]"}[it[0]], c)
        kernel = ReductionKernel(
            np.float32, "0", "a+b", expression, "const float *x, const float *y"
        )
        found["C"] = lambda: kernel(x, y)
    else:
        with suppress(RuntimeError):
            found["C"] = chain_in_c(c, x, y)
    name = driver.Context.get_device().name()
    if "NVIDIA" in name:
        with suppress(ImportError):
            import cupy

            a, b = (cupy.asarray(one) for one in host)
            # CuPy names the kernel after the function.
            in_cupy = cupy.fuse(kernel_name="chain")(lambda x, y: function(x, y, cupy))
            found["cupy.fuse"] = lambda: in_cupy(a, b)
        return found
    found["numpy"] = lambda: function(*host, np)
    with suppress(ImportError):
        import numexpr

        names = dict(zip("xy", host))
        evaluated = f"sum({text})" if is_summed else text
        found["numexpr"] = lambda: numexpr.evaluate(evaluated, names)
    with suppress(ImportError):
        if not is_summed:
            in_numba(text, host, found)
    with suppress(ImportError):
        import jax

        a, b = (jax.numpy.asarray(one) for one in host)
        jitted = jax.jit(lambda x, y: function(x, y, jax.numpy))
        found["jax"] = lambda: jitted(a, b).block_until_ready()
    return found


def measure(
    found: dict[str, Callable[[], Any]], n: int, seconds: float, warm_up: float
) -> dict[str, float]:
    """Returns the best time of each form in seconds."""
    best = dict.fromkeys(found, float("inf"))
    repeats = max(5, min(200, 2_000_000 // n))
    end = time.perf_counter() + warm_up
    while time.perf_counter() < end:
        found["fused"]()
    for run in found.values():
        run()
    end = time.perf_counter() + seconds
    for _ in range(1_000_000):
        if time.perf_counter() > end and min(best.values()) < float("inf"):
            break
        for name, run in found.items():
            driver.Context.synchronize()
            start = time.perf_counter()
            for _ in range(repeats):
                run()
            driver.Context.synchronize()
            best[name] = min(best[name], (time.perf_counter() - start) / repeats)
    return best


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sizes", type=int, nargs="+", default=[1000, 100_000, 10_000_000])
    parser.add_argument("--seconds", type=float, default=2.0)
    parser.add_argument("--warm-up", type=float, default=0.0)
    arguments = parser.parse_args()
    print(driver.Context.get_device().name())
    for title, (function, c, text) in CHAINS.items():
        for n, is_summed in itertools.product(arguments.sizes, (False, True)):
            found = forms(function, c, text, n, is_summed)
            times = measure(found, n, arguments.seconds, arguments.warm_up)
            rate = (8 if is_summed else 12) * n / times["fused"] / 1e9
            row = "  ".join(f"{name} {seconds * 1e6:.2f}" for name, seconds in times.items())
            name = f"sum of {title}" if is_summed else title
            print(f"{name:33} {n:>9}  {rate:7.1f} GB/s  {row}")


if __name__ == "__main__":
    main()
