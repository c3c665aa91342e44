"""``with`` blocks that make a stream current."""

from __future__ import annotations

import threading

import numpy as np
import pytest

from pygpu import autoinit, driver, gpuarray  # noqa: F401


def _is_of(a_gpu, stream):
    """Returns true if the array's work goes to the stream, so that a capture records it."""
    before = a_gpu.get()
    stream.begin_capture()
    a_gpu += 1
    stream.end_capture()
    return np.array_equal(a_gpu.get(), before)


def test_a_block_makes_a_stream_current():
    stream, inner = driver.Stream(1), driver.Stream(1)
    assert not _is_of(gpuarray.zeros(3), stream)
    with stream as entered:
        assert entered is stream
        made = gpuarray.ones(3)
        assert _is_of(made, stream)
        with inner:
            assert _is_of(gpuarray.zeros(3), inner)
            assert _is_of(made, stream)
        assert _is_of(gpuarray.to_gpu(np.ones(3)), stream)
        with pytest.raises(ZeroDivisionError), inner:
            raise ZeroDivisionError
        with inner, inner:
            pass
        assert _is_of(gpuarray.zeros(3), stream)
    assert not _is_of(gpuarray.zeros(3), stream)


def test_a_block_is_of_its_thread():
    stream, found = driver.Stream(1), []

    def leave():
        found.append(_is_of(gpuarray.zeros(3), stream))
        with pytest.raises(RuntimeError, match="entered in another thread"):
            stream.__exit__(None, None, None)
        found.append("refused")

    with stream:
        thread = threading.Thread(target=leave)
        thread.start()
        thread.join()
    assert found == [False, "refused"]


def test_a_kernel_in_a_block_is_captured_by_its_stream():
    a_gpu = gpuarray.zeros(4)
    stream = driver.Stream(1)
    with stream:
        here = a_gpu.on(stream)
        stream.synchronize()
        stream.begin_capture()
        here += 1
        graph = stream.end_capture()
    for _ in range(3):
        graph.launch(stream)
    stream.synchronize()
    assert a_gpu.get().tolist() == [3] * 4


@pytest.mark.skipif(driver.Device.count() < 2, reason="there is one device")
def test_a_block_is_of_the_streams_device():
    context = driver.Device(1).make_context()
    stream = driver.Stream(1)
    context.pop()
    before = gpuarray.zeros(3)._ordinal
    with stream:
        assert (gpuarray.zeros(3) + 1)._ordinal == 1
        with driver.Stream(1):
            assert gpuarray.zeros(3)._ordinal == 1
    assert gpuarray.zeros(3)._ordinal == before == 0
