"""CUDA C on the host, OpenCL C on the CPU, and loops in C, compared in one run.

    PYGPU_BACKEND=host python benches/opencl.py

The kernels are those in `backend-host/executor/examples/speed.cu`, and the same in
OpenCL C for the first OpenCL CPU device (`pip install pyopencl
pocl-binary-distribution`). All run in turn. For each, prints the shortest time in
milliseconds and the shortest total processor time, which other work on the machine
changes less.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyopencl as cl

import pygpu.autoinit  # noqa: F401
from pygpu import driver
from pygpu.compiler import SourceModule

ROUNDS = 30
FOLDER = Path(__file__).parent.parent / "backend-host" / "executor" / "examples"

OPENCL = r"""
#define PARAMETERS float a, __global const float *x, __global float *y, int n
__kernel void axpy(PARAMETERS) {
    int i = get_global_id(0);
    if (i < n) y[i] = a * x[i] + y[i];
}
__kernel void sum(PARAMETERS) {
    __local float part[256];
    int t = get_local_id(0);
    float own = 0;
    for (int i = get_global_id(0); i < n; i += get_global_size(0)) own += x[i];
    part[t] = own;
    for (int half_size = 128; half_size > 0; half_size /= 2) {
        barrier(CLK_LOCAL_MEM_FENCE);
        if (t < half_size) part[t] += part[t + half_size];
    }
    if (t == 0) y[get_group_id(0)] = part[0];
}
__kernel void product(PARAMETERS) {
    __local float left[16][16], right[16][16];
    int tx = get_local_id(0), ty = get_local_id(1);
    int row = get_global_id(1), column = get_global_id(0);
    float sum = 0;
    for (int tile = 0; tile < n; tile += 16) {
        left[ty][tx] = x[row * n + tile + tx];
        right[ty][tx] = x[(tile + ty) * n + column];
        barrier(CLK_LOCAL_MEM_FENCE);
        for (int k = 0; k < 16; ++k) sum += left[ty][k] * right[k][tx];
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    y[row * n + column] = sum;
}
__kernel void stencil(PARAMETERS) {
    __local float tile[10][34];
    int i = get_global_id(0), j = get_global_id(1);
    int tx = get_local_id(0) + 1, ty = get_local_id(1) + 1;
    int here = j * n + i, slice = n * n;
    float behind = 0, own = x[here], ahead;
    for (int k = 0; k < n; ++k, here += slice) {
        ahead = k + 1 < n ? x[here + slice] : 0;
        tile[ty][tx] = own;
        if (tx == 1) tile[ty][0] = i > 0 ? x[here - 1] : 0;
        if (tx == 32) tile[ty][tx + 1] = i + 1 < n ? x[here + 1] : 0;
        if (ty == 1) tile[0][tx] = j > 0 ? x[here - n] : 0;
        if (ty == 8) tile[ty + 1][tx] = j + 1 < n ? x[here + n] : 0;
        barrier(CLK_LOCAL_MEM_FENCE);
        y[here] = a * own + tile[ty][tx - 1] + tile[ty][tx + 1] + tile[ty - 1][tx]
            + tile[ty + 1][tx] + behind + ahead;
        barrier(CLK_LOCAL_MEM_FENCE);
        behind = own;
        own = ahead;
    }
}
"""

ELEMENTS = 16 << 20
# Grid, block, blocks of the loop in C, the meaning of `n`, and the number of written
# elements.
KERNELS = {
    "axpy": ((ELEMENTS // 256, 1), (256, 1), 128, ELEMENTS, ELEMENTS),
    "sum": ((256, 1), (256, 1), 256, ELEMENTS, 256),
    "product": ((32, 32), (16, 16), 512, 512, 512 * 512),
    "stencil": ((8, 32), (32, 8), 256, 256, ELEMENTS),
}


def of_opencl() -> tuple[Callable[..., Callable[[], np.ndarray]], str]:
    """Returns a factory of kernel calls, and the platform's name."""
    devices = [
        device
        for platform in cl.get_platforms()
        for device in platform.get_devices()
        if device.type & cl.device_type.CPU
    ]
    context = cl.Context(devices[:1])
    queue = cl.CommandQueue(context)
    program = cl.Program(context, OPENCL).build()

    def make(name: str, x: np.ndarray, y: np.ndarray) -> Callable[[], np.ndarray]:
        (grid, block, _, n, _), flags = KERNELS[name], cl.mem_flags
        source = cl.Buffer(context, flags.READ_ONLY | flags.COPY_HOST_PTR, hostbuf=x)
        target = cl.Buffer(context, flags.READ_WRITE | flags.COPY_HOST_PTR, hostbuf=y)
        kernel = cl.Kernel(program, name)
        arguments = np.float32(0.5), source, target, np.int32(n)
        threads = tuple(a * b for a, b in zip(grid, block, strict=True))

        def call(fetch: bool = False) -> np.ndarray:
            kernel(queue, threads, block, *arguments)
            queue.finish()
            if fetch:
                cl.enqueue_copy(queue, y, target)
            return y

        return call

    return make, devices[0].platform.version


def of_pygpu() -> Callable[..., Callable[[], np.ndarray]]:
    """Returns a factory of calls of a kernel, or of the corresponding loop in C."""
    module = SourceModule((FOLDER / "speed.cu").read_text(), no_extern_c=True)

    def make(
        name: str, x: np.ndarray, y: np.ndarray, loop: bool = False
    ) -> Callable[[], np.ndarray]:
        grid, block, blocks, n, _ = KERNELS[name]
        if loop:
            name, grid, block = f"{name}_loop", (blocks, 1), (1, 1)
        function = module.get_function(name)
        source, target = driver.to_device(x), driver.to_device(y)
        arguments = (np.float32(0.5), source, target, np.int32(n))

        def call(fetch: bool = False) -> np.ndarray:
            function(*arguments, grid=(*grid, 1), block=(*block, 1))
            driver.Context.synchronize()
            if fetch:
                driver.memcpy_dtoh(y, target)
            return y

        return call

    return make


def main() -> None:
    make_opencl, version = of_opencl()
    make = of_pygpu()
    print(version)
    for name, (*_, written) in KERNELS.items():
        x = np.random.default_rng(1).standard_normal(ELEMENTS, np.float32)
        new = lambda: np.zeros(ELEMENTS, np.float32)  # noqa: E731
        calls = {
            "pygpu": make(name, x, new()),
            "loops in C": make(name, x, new(), loop=True),
            "OpenCL": make_opencl(name, x, new()),
        }
        results = [call(fetch=True)[:written].copy() for call in calls.values()]
        if name == "sum":
            # The loop in C splits the sum into other parts.
            results = [result.sum(dtype=np.float64, keepdims=True) for result in results]
        for result in results[1:]:
            np.testing.assert_allclose(results[0], result, rtol=1e-3, atol=1e-2)
        best = {which: [float("inf"), float("inf")] for which in calls}
        for _ in range(ROUNDS):
            for which, call in calls.items():
                start = time.perf_counter(), time.process_time()
                call()
                times = time.perf_counter() - start[0], time.process_time() - start[1]
                best[which] = [min(pair) for pair in zip(best[which], times, strict=True)]
        text = ", ".join(f"{it} {a * 1e3:.2f} ({b * 1e3:.2f})" for it, (a, b) in best.items())
        print(f"{name:8} {text}", flush=True)


if __name__ == "__main__":
    main()
