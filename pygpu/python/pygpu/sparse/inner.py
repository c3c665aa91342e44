"""An inner product whose value reaches the host later, as ``pycuda.sparse.inner`` has it."""

import atexit
from collections.abc import Callable
from typing import Any

import numpy as np

from pygpu import driver, gpuarray

__all__ = ["STREAM_POOL", "AsyncInnerProduct", "get_stream"]

STREAM_POOL: list[driver.Stream] = []
"""Streams that are not in use by a product."""


def get_stream() -> driver.Stream:
    """Returns a stream out of the pool, or a new one; append it to ``STREAM_POOL`` after use.

    >>> stream = get_stream()
    >>> STREAM_POOL.append(stream)
    >>> get_stream() is stream
    True
    """
    return STREAM_POOL.pop() if STREAM_POOL else driver.Stream()


class AsyncInnerProduct:
    """The inner product of two vectors, computed on the device without waiting for it.

    ``a`` and ``b`` are the vectors, and ``gpu_result`` the value, an array without axes.
    ``pagelocked_allocator`` is called with a shape and a dtype, and returns the page-locked array
    for the value. (PyCUDA also passes the stream, and PyCUDA's pool takes it for a memory order.)

    >>> x = gpuarray.arange(4, dtype=np.float64)
    >>> product = AsyncInnerProduct(x, x, driver.pagelocked_empty)
    >>> product.gpu_result
    array(14.)
    >>> product.get_host_result() is None  # queues the copy
    True
    >>> product.copy_stream.synchronize()
    >>> product.get_host_result()
    array(14.)
    """

    def __init__(
        self,
        a: gpuarray.GPUArray,
        b: gpuarray.GPUArray,
        pagelocked_allocator: Callable[[tuple[int, ...], np.dtype[Any]], np.ndarray],
    ) -> None:
        self.gpu_result = gpuarray.dot(a, b)
        self.gpu_finished_evt = driver.Event()
        self.gpu_finished_evt.record()
        self.gpu_finished = False
        self.pagelocked_allocator = pagelocked_allocator

    def get_host_result(self) -> np.ndarray | None:
        """Returns the value as a page-locked array without axes; None before the value arrives.

        Once the device's work has ended, a call queues the copy; a later call returns the value.
        """
        if not self.gpu_finished:
            if self.gpu_finished_evt.query():
                self.gpu_finished = True
                self.copy_stream = get_stream()
                shape, dtype = self.gpu_result.shape, self.gpu_result.dtype
                self.host_dest = self.pagelocked_allocator(shape, dtype)
                driver.memcpy_dtoh_async(self.host_dest, self.gpu_result.gpudata, self.copy_stream)
                self.copy_finished_evt = driver.Event()
                self.copy_finished_evt.record(self.copy_stream)
        elif self.copy_finished_evt.query():
            STREAM_POOL.append(self.copy_stream)
            return self.host_dest
        return None


atexit.register(STREAM_POOL.clear)
