"""A program with numba's memory interface: arrays, streams, events, host memory, devices."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from typing_extensions import assert_type

from pygpu import cuda
from pygpu.cuda.cudadrv import devicearray, driver


def copies(host: np.ndarray) -> np.ndarray:
    stream = cuda.stream()
    with cuda.pinned(host), stream.auto_synchronize():
        device = cuda.to_device(host, stream=stream)
        assert_type(device, devicearray.DeviceNDArray)
        assert_type(cuda.to_device(host, to=device), devicearray.DeviceNDArray)
        same = cuda.device_array_like(host, stream=stream)
        same.copy_to_device(device, stream=stream)
    target = np.empty(same.shape, np.float64)
    copied: NDArray[np.float64] = same.copy_to_host(target)
    assert copied is target
    return same.copy_to_host()


def views() -> tuple[int, ...]:
    array = cuda.device_array((2, 3), np.float32, order="F")
    array[0, :] = 7
    for row in array.ravel(order="F").split(2):
        assert row.is_c_contiguous()
        assert row.size <= 2
    pinned = cuda.pinned_array_like(array)
    mapped = cuda.mapped_array(3, dtype="i4")
    mapped[:] = 1
    managed = cuda.managed_array((2, 2))
    one, two = np.zeros(3), np.zeros(4)
    with cuda.mapped(one) as of_one, cuda.mapped(two, np.zeros(2)) as of_two:
        assert_type(of_one, devicearray.DeviceNDArray)
        assert_type(of_two, list[devicearray.DeviceNDArray])
    return (*array.T.shape, pinned.ndim, mapped.ndim, managed.ndim)


def timed() -> float:
    start, end = cuda.event(), cuda.event(timing=True)
    start.record()
    end.record(cuda.default_stream())
    end.synchronize()
    return cuda.event_elapsed_time(start, end)


def memory() -> int:
    context = cuda.current_context()
    info = context.get_memory_info()
    pointer = context.memalloc(16)
    driver.device_memset(pointer, 7, 16)
    assert_type(cuda.gpus[0:1], list[driver.Device])
    with cuda.gpus[0], cuda.defer_cleanup():
        part = pointer.view(4, 8)
    return info.free + part.size + driver.device_memory_size(part)


if __name__ == "__main__":
    assert copies(np.arange(6.0)).tolist() == [0, 1, 2, 3, 4, 5]
    assert views() == (3, 2, 2, 1, 2)
    assert timed() >= 0
    assert memory() > 0
