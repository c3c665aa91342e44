"""A program with PyGPU's interface: arrays with statuses, pointers, streams and events."""

from __future__ import annotations

import numpy as np

import PybindGPU
import PyGPU as gpuarray
from PybindGPU import backend


def high_level() -> list[float]:
    array: gpuarray.GPUArray = gpuarray.to_gpu(np.arange(3.0))
    status: gpuarray.cudaError_t = array.set_val(0, 7)
    if not status:
        status.raise_for_status()
    assert array.last_status == 0
    assert array.shape == (3,)
    assert int(array.device_data) == array.ptr
    other = gpuarray.GPUArray((2, 3), dtype="float32", order="F")
    assert other.dtype == np.float32
    assert other.nbytes == 24
    values: list[float] = array.get().tolist()
    return values


def low_level() -> int:
    host = np.arange(4, dtype=np.int64)
    array = backend.DeviceArray_int64(host)
    for status in (array.allocate(), array.to_device(), array.to_host()):
        assert status, (status.name, backend.cudaGetErrorString(status))
    pointer: backend.ptr_wrapper_int64 = backend.ptr_wrapper_int64()
    pointer.create(4)
    address, is_safe = pointer.get()
    assert is_safe
    assert address == pointer.unsafe_get()
    memory = backend.HostAllocator_float32()
    memory.allocate(10)
    return array.size() + int(memory.ptr().is_safe())


def timed() -> float:
    stream, start, end = PybindGPU.cudaStream_t(1), gpuarray.cudaEvent_t(), gpuarray.cudaEvent_t()
    assert gpuarray.cudaEventRecord(start, stream)
    assert gpuarray.cudaEventRecord(end, stream)
    assert gpuarray.cudaEventSynchronize(end)
    milliseconds, status = gpuarray.cudaEventElapsedTime(start, end)
    count, found = gpuarray.cudaGetDeviceCount()
    assert status
    assert found
    assert count > 0
    return milliseconds


if __name__ == "__main__":
    assert high_level() == [7, 1, 2]
    assert low_level() == 5
    assert timed() >= 0
