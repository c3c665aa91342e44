"""Kernels that fail while the program does something else: any wait for the work reports it."""

from __future__ import annotations

import time

import numpy as np
import pytest
from device import BACKEND
from processes import run_python

from pygpu import driver, gpuarray
from pygpu.compiler import SourceModule

TRAP = """
__global__ void fail(int *x)
{
    // Longer than the calls behind the launch take.
    for (volatile int i = 0; i < 3000000; i++) {}
    __trap();
}
"""

# Calls that wait for the kernel, which runs on a separate stream.
WAITS = {
    "the array": "x.get()",
    "a copy": "driver.memcpy_dtoh(np.empty(4, 'i4'), x.gpudata)",
    "the context": "driver.Context.synchronize()",
    "the stream": "stream.synchronize()",
    "an event": "event.synchronize()",
    "another stream": "other.wait_for_event(event); other.synchronize()",
    "the array, later": "time.sleep(1); x.get()",
    "the context, later": "del stream; time.sleep(1); driver.Context.synchronize()",
}


ALL_WAITS = [(wait, flags) for wait in WAITS.values() for flags in (0, 1)]


# In separate processes, because the failure destroys the context on a GPU.
@pytest.mark.parametrize("waits", [ALL_WAITS] if BACKEND == "host" else [[it] for it in ALL_WAITS])
def test_what_waits_for_a_kernel_reports_its_failure(waits):
    run_python(
        f"""
        import time
        import numpy as np
        from pygpu import autoinit, driver, gpuarray
        from pygpu.compiler import SourceModule

        fail = SourceModule({TRAP!r}).get_function("fail")
        for wait, flags in {waits!r}:
            x = gpuarray.zeros(4, "i4")
            stream, other, event = driver.Stream(flags), driver.Stream(1), driver.Event()
            fail(x, block=(1, 1, 1), stream=stream)
            event.record(stream)
            try:
                exec(wait)
            except driver.Error as error:
                assert str(error)
            else:
                raise AssertionError(f"nothing was raised by {{wait}} with {{flags}}")
        """
    )


@pytest.mark.skipif(BACKEND != "host", reason="a kernel that fails takes a GPU's context with it")
@pytest.mark.parametrize("flags", [0, 1])
def test_a_failure_is_reported_once_whoever_asks_first(flags):
    fail = SourceModule(TRAP).get_function("fail")
    x, stream, other = gpuarray.zeros(4, np.int32), driver.Stream(flags), driver.Stream(1)
    event, late = driver.Event(), driver.Event()
    host = driver.pagelocked_empty(4, np.int32)

    def ask(query):
        while not query():
            time.sleep(0.001)

    calls = {
        "get": x.get,
        "context": driver.Context.synchronize,
        "stream": stream.synchronize,
        "event": event.synchronize,
        "is_done": lambda: ask(stream.is_done),
        "query": lambda: ask(event.query),
        "later event": lambda: late.record(stream).synchronize(),
        "another stream": lambda: (other.wait_for_event(event), other.synchronize()),
        "page-locked": lambda: (x.get_async(stream, host), stream.synchronize()),
    }
    for name, report in calls.items():
        fail(x, block=(1, 1, 1), stream=stream)
        event.record(stream)
        with pytest.raises(driver.LaunchError, match="kernel fail failed in block"):
            report()
        for call in calls.values():
            call()
        assert (x + 1).get().tolist() == [1] * 4, name


@pytest.mark.skipif(BACKEND != "host", reason="a kernel that fails takes a GPU's context with it")
def test_the_failures_of_two_streams_are_both_reported():
    fail = SourceModule(TRAP).get_function("fail")
    x = gpuarray.zeros(4, np.int32)
    first, second, event = driver.Stream(1), driver.Stream(1), driver.Event()
    fail(x, block=(1, 1, 1), stream=first)
    fail(x, block=(1, 1, 1), stream=second)
    event.record(second)
    for wait in (first.synchronize, event.synchronize):
        with pytest.raises(driver.LaunchError, match="kernel fail failed in block"):
            wait()
    second.synchronize()
    driver.Context.synchronize()


@pytest.mark.skipif(BACKEND != "host", reason="a kernel that fails takes a GPU's context with it")
def test_what_is_freed_behind_a_failed_kernel_leaves_the_report_to_the_program():
    # A thread frees page-locked memory after the work, and queries the stream for that.
    fail = SourceModule(TRAP).get_function("fail")
    x, stream = gpuarray.zeros(4, np.int32), driver.Stream(1)
    host = driver.pagelocked_empty(1 << 16, np.uint8)
    fail(x, block=(1, 1, 1), stream=stream)
    del host
    time.sleep(0.2)
    with pytest.raises(driver.LaunchError, match="kernel fail failed in block"):
        stream.synchronize()


@pytest.mark.skipif(BACKEND != "host", reason="a kernel that fails takes a GPU's context with it")
def test_what_is_freed_beside_a_capture_leaves_the_report_to_the_program():
    # The memory is freed on the capturing stream, and the library waits for the other one.
    fail = SourceModule(TRAP).get_function("fail")
    stream, other = driver.Stream(1), driver.Stream(1)
    x, y = gpuarray.zeros(4, np.int32).on(stream), gpuarray.zeros(4, np.int32).on(other)
    x += 1
    y += x.on(other)
    driver.Context.synchronize()
    with stream.capture():
        # Inside the capture, because beginning a capture would report an earlier failure.
        fail(y, block=(1, 1, 1), stream=other)
        del x
    with pytest.raises(driver.LaunchError, match="kernel fail failed in block"):
        other.synchronize()
