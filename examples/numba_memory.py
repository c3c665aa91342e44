"""Device memory with numba's interface, on a GPU or on none.

    .venv/bin/python examples/numba_memory.py

A program written for `from numba import cuda` that only moves and shares memory: transfers in two
streams from page-locked arrays, mapped memory, a view of another library's array, deferred freeing.
With numba installed, its kernels take the same arrays.
"""

import numpy as np

from pygpu import cuda, gpuarray


def overlapped(chunks):
    """Squares each chunk on the device; copies and work of two streams overlap."""
    streams = [cuda.stream(), cuda.stream()]
    results = [cuda.pinned_array_like(chunk) for chunk in chunks]
    # Nothing is freed, and so nothing waits, before all is queued.
    with cuda.pinned(*chunks), cuda.defer_cleanup():
        for number, chunk in enumerate(chunks):
            stream = streams[number % 2]
            device = cuda.to_device(chunk, stream=stream)
            (device * device).copy_to_host(results[number], stream=stream)
        for stream in streams:
            stream.synchronize()
    return results


def main():
    print("devices:", [device.name for device in cuda.gpus])
    chunks = [np.arange(start, start + 1000, dtype=np.float32) for start in range(0, 8000, 1000)]
    for chunk, result in zip(chunks, overlapped(chunks)):
        np.testing.assert_array_equal(result, chunk * chunk)

    # The host and the device use the same memory.
    mapped = cuda.mapped_array(8, dtype=np.int32)
    mapped[:] = range(8)
    cuda.as_cuda_array(mapped)[::2] = 0
    cuda.synchronize()
    print("mapped:", mapped)

    # An array of another library, here PyCUDA's interface, without a copy.
    plain = gpuarray.to_gpu(np.arange(6.0).reshape(2, 3))
    view = cuda.as_cuda_array(plain)
    view[1] = 7
    print("shared:", plain.get().tolist(), "the same memory:", view.ptr == plain.ptr)

    left, right = cuda.to_device(np.arange(10)).split(5)
    print("split:", left.copy_to_host(), right.copy_to_host())
    free, total = cuda.current_context().get_memory_info()
    print("free memory:", free <= total)


if __name__ == "__main__":
    main()
