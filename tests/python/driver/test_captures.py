"""Stream captures, and work that runs in parallel with them."""

from __future__ import annotations

import threading

import numpy as np
import pytest
from device import BACKEND
from processes import run_python

from pygpu import driver, gpuarray

FIRST = """
import numpy as np
from pygpu import driver, gpuarray
driver.init()
driver.Device(0).retain_primary_context().push()
capturing, other = driver.Stream(), driver.Stream(1)
with capturing.capture({mode!r}) as graph:
    memory = driver.mem_alloc(256)
    array = gpuarray.GPUArray(8, "f4").on({stream})
    del array
assert graph.node_count == 0
graph.launch(capturing)
"""


@pytest.mark.parametrize("mode", ["global", "thread_local", "relaxed"])
@pytest.mark.parametrize("stream", ["capturing", "other", "None"])
def test_the_first_memory_of_a_process_is_allocated_beside_a_capture(mode, stream):
    run_python(FIRST.format(mode=mode, stream=stream))


@pytest.mark.parametrize("modes", [("global", "relaxed"), ("thread_local", "global")])
def test_a_capture_ends_inside_another(modes):
    inner, outer = driver.Stream(), driver.Stream()
    a, b = (gpuarray.zeros(3, np.int32).on(stream) for stream in (inner, outer))
    driver.Context.synchronize()
    with outer.capture(modes[0]) as outer_graph:
        b += 2
        with inner.capture(modes[1]) as inner_graph:
            a += 1
        b += 3
        buffer = np.zeros(4096, np.uint8)
        driver.register_host_memory(buffer).base.unregister()
    inner_graph.launch(inner)
    outer_graph.launch(outer)
    np.testing.assert_array_equal(a.get(), [1] * 3)
    np.testing.assert_array_equal(b.get(), [5] * 3)


def test_a_capture_that_another_thread_could_not_end_goes_on():
    stream = driver.Stream()
    a = gpuarray.zeros(3, np.int32).on(stream)
    stream.synchronize()
    capture = stream.capture("thread_local")
    graph = capture.__enter__()
    a += 1
    errors = []

    def leave():
        try:
            capture.__exit__(None, None, None)
        except driver.Error as error:
            errors.append(error.status)

    thread = threading.Thread(target=leave)
    thread.start()
    thread.join()
    assert errors == [908]
    # A driver may end the capture.
    goes_on = stream.is_capturing()
    assert goes_on or BACKEND != "host"
    if goes_on:
        capture.__exit__(None, None, None)
        graph.launch(stream)
    np.testing.assert_array_equal(a.get(), [int(goes_on)] * 3)
    # In either case nothing of the capture remains: the default stream works.
    np.testing.assert_array_equal((gpuarray.zeros(3, np.int32) + 1).get(), [1] * 3)
    with pytest.raises(RuntimeError, match="not entered"):
        capture.__exit__(None, None, None)


@pytest.mark.skipif(BACKEND != "host", reason="elsewhere a consumer's stream waits, not the host")
def test_an_export_beside_a_capture_leaves_it_alone():
    stream = driver.Stream()
    a = gpuarray.zeros(3, np.int32).on(stream)
    b = gpuarray.arange(4, dtype=np.float32) * 2
    stream.synchronize()
    with stream.capture() as graph:
        a += 1
        exported = np.from_dlpack(b)
        with pytest.raises(BufferError, match="stream is 5"):
            b.__dlpack__(stream=5, copy=True)
    np.testing.assert_array_equal(exported, [0, 2, 4, 6])
    graph.launch(stream)
    np.testing.assert_array_equal(a.get(), [1] * 3)
    # The captured addition has not run.
    stream.begin_capture()
    a += 1
    with pytest.raises(driver.Error):
        np.from_dlpack(a)
    with pytest.raises(driver.Error):
        stream.end_capture()
    assert not stream.is_capturing()


@pytest.mark.skipif(BACKEND != "host", reason="elsewhere a consumer's stream waits, not the host")
def test_an_export_waits_for_other_streams_work_on_the_array():
    stream = driver.Stream()
    a = gpuarray.zeros(1 << 20, np.float64)
    for value in range(1, 20):
        a.fill(value, stream)
    assert np.from_dlpack(a)[-1] == 19
