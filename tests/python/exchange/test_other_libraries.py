"""Arrays and streams shared with CuPy and PyTorch, if they are installed and have a GPU.

The tests look for two errors: a consumer that reads before a stream's work has run, and
reuse of memory that belongs to a graph captured by PyTorch.
"""

from __future__ import annotations

import numpy as np
import pytest
from device import BACKEND

from pygpu import cumath, driver, gpuarray

if BACKEND == "host":
    pytest.skip("other libraries need a GPU", allow_module_level=True)

SIZE = 1 << 24
ROUNDS = 20


def library(name: str):
    """Returns an imported library that can use this GPU."""
    module = pytest.importorskip(name, reason=f"{name} is not installed")
    check = getattr(module, "cuda", None)
    try:
        if not check.is_available():
            pytest.skip(f"{name} sees no GPU")
    except Exception as error:  # the causes raise many kinds of exceptions
        pytest.skip(f"{name} cannot use the GPU: {error}")
    return module


def busy(array: gpuarray.GPUArray, stream: driver.Stream, value: float) -> None:
    """Queues work on a stream that finally stores `value` in every element."""
    for k in range(8):
        array.fill(-1.0 - k, stream)
    array.fill(value, stream)


@pytest.mark.parametrize("flags", [0, 1], ids=["blocking", "non-blocking"])
def test_cupy_reads_behind_the_stream_that_wrote(flags):
    cupy = library("cupy")
    stream, array = driver.Stream(flags), gpuarray.zeros(SIZE, np.float32)
    driver.Context.synchronize()
    for k in range(ROUNDS):
        busy(array, stream, float(k))
        view = cupy.asarray(array)
        assert view.data.ptr == int(array.gpudata)
        assert (float(view.min()), float(view.max())) == (k, k)


def test_cupy_writes_before_a_stream_that_reads():
    cupy = library("cupy")
    theirs = cupy.cuda.Stream(non_blocking=True)
    ours = driver.Stream.from_handle(theirs.ptr, theirs)
    for k in range(ROUNDS):
        with theirs:
            source = cupy.full(SIZE, -1.0, cupy.float32)
            for _ in range(8):
                source += 0
            source[...] = k
        result = gpuarray.empty(SIZE, np.float32)
        driver.memcpy_dtod_async(result.gpudata, source.data.ptr, source.nbytes, ours)
        ours.synchronize()
        found = result.get()
        assert (found.min(), found.max()) == (k, k)


def test_torch_reads_behind_a_blocking_stream():
    torch = library("torch")
    stream, array = driver.Stream(0), gpuarray.zeros(SIZE, np.float32)
    driver.Context.synchronize()
    for k in range(ROUNDS):
        busy(array, stream, float(k))
        # PyTorch works on the default stream, after blocking streams.
        view = torch.as_tensor(array, device="cuda")
        assert view.data_ptr() == int(array.gpudata)
        assert (view.min().item(), view.max().item()) == (k, k)


def test_torch_tensors_are_arrays():
    torch = library("torch")
    tensor = torch.arange(1000, dtype=torch.float32, device="cuda")
    array = gpuarray.GPUArray((1000,), np.float32, gpudata=tensor.data_ptr(), base=tensor)
    torch.cuda.synchronize()
    np.testing.assert_array_equal((array * 2).get(), np.arange(1000, dtype=np.float32) * 2)


def test_a_graph_that_torch_captured_keeps_its_memory():
    torch = library("torch")
    side = torch.cuda.Stream()
    ours = driver.Stream.from_handle(side.cuda_stream, side)
    x = gpuarray.to_gpu(np.full(SIZE // 16, 4.0, np.float32))
    # Compile and load everything before the capture.
    warm = cumath.sqrt(cumath.sqrt(x, stream=ours), stream=ours)
    ours.synchronize()
    expected = warm.get()
    del warm
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph, stream=side):
        result = cumath.sqrt(cumath.sqrt(x, stream=ours), stream=ours)
    # The temporary's memory belongs to the graph, so no other array gets it.
    others = [gpuarray.to_gpu(np.full(SIZE // 16, float(k), np.float32)) for k in range(20)]
    with torch.cuda.stream(side):
        for _ in range(3):
            graph.replay()
    torch.cuda.synchronize()
    for k, other in enumerate(others):
        found = other.get()
        assert (found.min(), found.max()) == (k, k)
    np.testing.assert_array_equal(result.get(), expected)
