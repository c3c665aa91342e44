"""Waiting for the device: Ctrl-C interrupts it, and other threads continue in the meantime."""

from __future__ import annotations

import threading

import numpy as np
import pytest
from device import BACKEND, IS_DOUBLE
from processes import run_python

from pygpu import driver, gpuarray

# Queues more work than finishes soon, then waits; a signal arrives during the wait.
INTERRUPTED = """
    import os, signal, sys, threading, time
    import numpy as np
    import pygpu.autoinit
    from pygpu import driver, gpuarray
    stream = driver.Stream(1)
    a = gpuarray.zeros(10_000_000, np.float64)
    event = driver.Event()
    # Fewer than the host's queues hold: more would be waited for here.
    for value in range(900):
        a.fill(value, stream)
    event.record(stream)
    other, captured = driver.Stream(), driver.Event()

    def join():
        other.begin_capture()
        captured.record(other)
        stream.wait_for_event(captured)

    waits = {
        "begin_capture": stream.begin_capture,
        "join": join,
        "stream": stream.synchronize,
        "event": event.synchronize,
        "context": driver.Context.synchronize,
        "get": a.get,
        "set": lambda: a[:4].set(np.ones(4)),
        "memcpy_dtoh": lambda: driver.memcpy_dtoh(np.empty(4), a.gpudata),
        "memcpy_htod": lambda: driver.memcpy_htod(a.gpudata, np.ones(4)),
    }
    threading.Timer(0.1, os.kill, (os.getpid(), signal.SIGINT)).start()
    start = time.monotonic()
    try:
        waits[sys.argv[1]]()
    except KeyboardInterrupt:
        assert not stream.is_done()
        print(time.monotonic() - start)
    sys.stdout.flush()
    os._exit(0)
"""


WAITS = ["begin_capture", "join", "stream", "event", "context", "get", "set"]
WAITS += ["memcpy_dtoh", "memcpy_htod"]


@pytest.mark.parametrize("what", WAITS)
def test_an_interrupt_ends_a_wait(what):
    done = run_python(INTERRUPTED, what, PYGPU_BACKEND="host")
    assert 0 < float(done.stdout) < 60


# On a runtime whose queries never report completion, the library stops querying after a while.
UNANSWERED = """
    import numpy as np
    import pygpu.autoinit
    from pygpu import driver, gpuarray
    stream, event, unused = driver.Stream(), driver.Event(), driver.Event()
    a = gpuarray.to_gpu(np.arange(1000.0))
    b = a + a
    event.record(stream)
    stream.synchronize()
    event.synchronize()
    unused.synchronize()
    driver.Context.synchronize()
    print(float((b + 1).get().sum()))
"""


@pytest.mark.skipif(not IS_DOUBLE, reason="only a double can be told not to answer")
@pytest.mark.parametrize("kind", ["1", "2"])
def test_a_wait_ends_where_queries_are_not_answered(kind):
    done = run_python(UNANSWERED, DOUBLE_NOT_READY=kind)
    assert float(done.stdout) == 1_000_000


@pytest.mark.parametrize("what", ["stream", "event", "context"])
def test_other_threads_run_during_a_wait(what):
    stream, event = driver.Stream(), driver.Event()
    a = gpuarray.zeros(4_000_000, np.float64)
    count = 12 if BACKEND == "host" else 100
    for value in range(count):
        a.fill(value, stream)
    event.record(stream)
    ticks = []
    stop = threading.Event()

    def tick():
        while not stop.is_set():
            ticks.append(1)
            stop.wait(0.001)

    thread = threading.Thread(target=tick)
    thread.start()
    {
        "stream": stream.synchronize,
        "event": event.synchronize,
        "context": driver.Context.synchronize,
    }[what]()
    assert event.query()
    stop.set()
    thread.join()
    assert ticks
    assert float(a[-1].get()) == count - 1


def test_a_device_waits_for_every_stream():
    streams = [driver.Stream(flags) for flags in (0, 1, 0, 1)]
    arrays = [gpuarray.zeros(1_000_000, np.float32) for _ in streams]
    for value in range(10):
        for stream, a in zip(streams, arrays):
            a.fill(value, stream)
    driver.Context.synchronize()
    assert all(stream.is_done() for stream in streams)


def test_waiting_for_nothing():
    driver.Context.synchronize()
    assert driver.Stream().synchronize() is None
    event = driver.Event()
    assert event.synchronize() is event


# A thread copies an array that two streams have used, after more work than finishes soon. At the
# same time the main thread uses, copies and frees another such array.
BESIDE_A_COPY = """
    import os, sys, threading
    import numpy as np
    import pygpu.autoinit
    from pygpu import driver, gpuarray
    # The other array is not used on the third, which comes behind the first.
    stream, other, third = driver.Stream(1), driver.Stream(1), driver.Stream(1)
    a, b = gpuarray.zeros(10_000_000, np.float64), gpuarray.zeros(1000, np.float32)
    for shared in (a, b):
        shared.fill(1, stream)
        shared.fill(2, other)
    driver.Context.synchronize()
    for value in range(900):
        a.fill(value, stream)
    copies = {
        "get": a[:4].get,
        "set": lambda: a[:4].set(np.ones(4)),
        "memcpy_dtoh": lambda: driver.memcpy_dtoh(np.empty(4), a.gpudata),
        "memcpy_dtoh_async": lambda: driver.memcpy_dtoh_async(np.empty(4), a.gpudata, stream),
        "memcpy_htod_async": lambda: driver.memcpy_htod_async(a.gpudata, np.ones(4), third),
    }
    begun = threading.Event()
    def copy():
        begun.set()
        copies[sys.argv[1]]()
    threading.Thread(target=copy, daemon=True).start()
    begun.wait()
    # Not on the default stream, behind whose work the copies may be.
    own, found = driver.Stream(1), np.empty(1000, np.float32)
    for value in range(200):
        b.fill(value, own)
        driver.memcpy_dtoh_async(found, b.gpudata, own)
        own.synchronize()
        assert (found == value).all()
    b.gpudata.free()
    if not stream.is_done():
        print("beside")
    sys.stdout.flush()
    os._exit(0)
"""


@pytest.mark.parametrize(
    "what", ["get", "set", "memcpy_dtoh", "memcpy_dtoh_async", "memcpy_htod_async"]
)
def test_others_go_on_beside_a_copy_that_waits(what):
    done = run_python(BESIDE_A_COPY, what, PYGPU_BACKEND="host")
    assert done.stdout.split() == ["beside"]


def test_a_wait_ends_where_another_thread_begins_a_capture():
    # The work before the capture has run by then. Waiting for a capturing stream is refused, and
    # ends the capture.
    run_python(
        """
        import threading
        import numpy as np
        import pygpu.autoinit
        from pygpu import driver, gpuarray
        stream = driver.Stream(1)
        a = gpuarray.zeros(1_000_000, np.float64).on(stream)
        for wait in [stream.synchronize, driver.Context.synchronize, a.get] * 5:
            for value in range(10):
                a.fill(value, stream)
            thread = threading.Thread(target=stream.begin_capture, args=["relaxed"])
            thread.start()
            try:
                wait()
            except driver.Error as error:
                assert "captur" in str(error), error
            thread.join()
            try:
                stream.end_capture()
            except driver.Error as error:
                assert "captur" in str(error), error
        """
    )
