"""A program with arrays and numpy's functions of them, in which the types of results matter."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from typing_extensions import assert_type

from pygpu import autoinit, driver, gpuarray
from pygpu.gpuarray import GPUArray
from pygpu.tools import DeviceMemoryPool


def host_copies(a: GPUArray) -> NDArray[np.float32]:
    target = np.empty(a.shape, np.float32)
    assert_type(a.get(), NDArray[Any])
    copied: NDArray[np.float32] = a.get_async(ary=target)
    assert copied is target
    return a.get(target)


def reductions(a: GPUArray) -> list[float]:
    assert_type(a.sum(axis=0), GPUArray)
    assert_type(a.mean(), GPUArray)
    assert_type(gpuarray.max(a, axis=-1, keepdims=True), GPUArray)
    assert_type(a.argmax(), GPUArray)
    assert_type(a.cumsum(axis=1), GPUArray)
    total: float = float(a.sum())
    return [total, a.min().item(), *(float(row.max()) for row in a)]


def shapes(a: GPUArray) -> tuple[int, ...]:
    assert_type(a.reshape(2, -1), GPUArray)
    assert_type(a.reshape((-1,), order="F"), GPUArray)
    assert_type(a.T[:, 0], GPUArray)
    assert_type(gpuarray.split(a, 2), list[GPUArray])
    assert_type(gpuarray.nonzero(a), tuple[GPUArray, ...])
    assert_type(divmod(a, 2), tuple[GPUArray, GPUArray])
    assert_type(a == 1, GPUArray)
    return (a[None] + a).shape


def sets(a: GPUArray) -> None:
    values, counts = gpuarray.unique(a, return_counts=True)
    mean, total = gpuarray.average(a, axis=0, returned=True)
    assert (mean.size, values.shape) == (total.size, counts.shape)
    assert_type(gpuarray.unique(a), GPUArray)
    assert_type(gpuarray.average(a, weights=a + 1), GPUArray)
    assert_type(gpuarray.intersect1d(a, a), GPUArray)
    shared, first, second = gpuarray.intersect1d(a, a, return_indices=True)
    assert shared.shape == first.shape == second.shape
    assert_type(gpuarray.gradient(a, axis=1), GPUArray)
    assert_type(gpuarray.atleast_2d(a), GPUArray)
    assert_type(gpuarray.atleast_2d(a, a[0]), tuple[GPUArray, ...])
    assert_type(gpuarray.isin(a, [1, 2]), GPUArray)
    assert_type(gpuarray.meshgrid(a[0], a[1]), tuple[GPUArray, ...])
    assert_type(gpuarray.histogram(a, 3), tuple[GPUArray, GPUArray])


def arguments(a: GPUArray, host: NDArray[np.float32]) -> None:
    stream, pool = driver.Stream(), DeviceMemoryPool()
    gpuarray.sum(a, axis=(0, 1), dtype="f8", stream=stream, where=a > 0, initial=1)
    gpuarray.sum(a, np.float64, stream, pool.allocate)
    gpuarray.max(a, axis=0, where=[True, False, True], initial=np.float32(0))
    gpuarray.zeros(host.size, order="F", allocator=pool.allocate)
    gpuarray.full(np.int64(3), 1.5, np.dtype(np.float32))
    gpuarray.concatenate([a, a], axis=None, casting="unsafe")
    gpuarray.stack((row for row in a), axis=1)
    gpuarray.percentile(a, [25, 75], axis=[0, 1])
    gpuarray.where(a > 1, a, 0.0)
    gpuarray.searchsorted([1, 2], host.ravel())
    gpuarray.tensordot(a, host, ([0, 1], [0, 1]))
    gpuarray.roll(a, (1, 2), axis=(0, 1))
    gpuarray.split(a, [1], axis=1)
    gpuarray.isclose(a, host)
    gpuarray.linspace(0, [1, 2], 5, retstep=True)
    gpuarray.clip(a, None, 3).transpose(1, 0).reshape(3, 2).fill(np.float32(1))
    gpuarray.norm(a @ [1, 2, 3], 2)
    gpuarray.norm(a, "fro", keepdims=True)
    a.real = host + a.get()
    a[...] = gpuarray.minimum(a, range(3))


def numpys(a: GPUArray) -> float:
    # numpy's stubs return Any, or a type of their own, for arrays of other libraries.
    total: Any = np.sum(a, axis=0)
    scaled: Any = np.multiply(a, 2.0)
    return float(total.sum()) + float(np.max(scaled))


def main() -> None:
    host = np.arange(6, dtype=np.float32).reshape(2, 3)
    a = gpuarray.to_gpu(host)
    assert (host_copies(a) == host).all()
    assert reductions(a) == [15.0, 0.0, 2.0, 5.0]
    assert shapes(a) == (1, 2, 3)
    sets(a)
    arguments(a.copy(), host)
    assert numpys(a) == 25.0
    assert autoinit.device == a.device


main()
