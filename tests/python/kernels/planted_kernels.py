"""Kernels with planted faults, for tools that detect memory errors: scripts/memcheck.

    python tests/python/kernels/planted_kernels.py FORM FAULT

FORM chooses how the host runs the kernel: ``loops``, ``regions`` (loops between barriers) or
``fibres``. FAULT is ``overrun``, ``freed``, ``uninitialised``, or ``none`` for the same kernel
without a fault.
"""

from __future__ import annotations

import sys

import numpy as np

import pygpu.autoinit
from pygpu import driver, gpuarray
from pygpu.compiler import SourceModule

TEXT = """
__device__ void count(const int *x, int *out, int i, int n) {
    if (i < n) {
        if (x[i] == 7) atomicAdd(out + i, 100);
        out[i] += i;
    }
}
__global__ void loops(const int *x, int *out, int n) {
    count(x, out, blockIdx.x * blockDim.x + threadIdx.x, n);
}
__global__ void regions(const int *x, int *out, int n) {
    __shared__ int limit;
    if (threadIdx.x == 0) limit = n;
    __syncthreads();
    count(x, out, blockIdx.x * blockDim.x + threadIdx.x, limit);
}
__global__ void fibres(const int *x, int *out, int n) {
    count(x, out, blockIdx.x * blockDim.x + threadIdx.x, __shfl_sync(~0u, n, 0));
}
"""

COUNT = 101


def launch(form: str, fault: str) -> None:
    x = np.arange(COUNT, dtype=np.int32) % 11
    source = driver.mem_alloc(x.nbytes)
    if fault != "uninitialised":
        driver.memcpy_htod(source, x)
    out = gpuarray.to_gpu(np.zeros(COUNT, np.int32))
    address = np.intp(int(source))
    if fault == "freed":
        source.free()
    n = np.int32(COUNT + 1 if fault == "overrun" else COUNT)
    SourceModule(TEXT).get_function(form)(address, out, n, grid=(2, 1), block=(64, 1, 1))
    if fault == "none":
        expected = np.arange(COUNT) + np.where(x == 7, 100, 0)
        assert (out.get() == expected).all()
    pygpu.autoinit.context.synchronize()


if __name__ == "__main__":
    launch(*sys.argv[1:])
