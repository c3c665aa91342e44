"""Captured work and graphs."""

from __future__ import annotations

import contextlib
import threading
import weakref

import numpy as np
import pytest
from device import BACKEND
from processes import run_python

from pygpu import cumath, driver, gpuarray
from pygpu.compiler import SourceModule

SOURCE = "__global__ void add(int *x, int value) { x[threadIdx.x] += value; }"

on_the_host = pytest.mark.skipif(
    BACKEND != "host", reason="a kernel that fails, or a fork, ends the use of a GPU"
)


@pytest.fixture
def add():
    return SourceModule(SOURCE).get_function("add")


def test_capture_and_launch(add):
    stream = driver.Stream()
    memory = driver.mem_alloc(32)
    driver.memset_d32(memory, 0, 8)
    address = np.uintp(memory)
    driver.Context.synchronize()
    assert not stream.is_capturing()
    stream.begin_capture()
    assert stream.is_capturing()
    for value in (1, 10):
        add(address, np.int32(value), block=(8, 1, 1), stream=stream)
    graph = stream.end_capture()
    assert not stream.is_capturing()
    assert isinstance(graph, driver.Graph)
    assert graph.node_count == 2
    assert driver.from_device(memory, 8, np.int32).tolist() == [0] * 8
    for _ in range(3):
        graph.launch(stream)
    stream.synchronize()
    assert driver.from_device(memory, 8, np.int32).tolist() == [33] * 8
    graph.launch()
    driver.Context.synchronize()
    assert driver.from_device(memory, 8, np.int32).tolist() == [44] * 8


def test_prepared_launches_are_recorded(add):
    stream = driver.Stream(1)
    memory = driver.mem_alloc(32)
    driver.memset_d32(memory, 0, 8)
    add.prepare("Pi")
    driver.Context.synchronize()
    stream.begin_capture("relaxed")
    for _ in range(600):
        add.prepared_async_call((1, 1), (8, 1, 1), stream, int(memory), 1)
    graph = stream.end_capture()
    assert graph.node_count == 600
    graph.launch(stream)
    stream.synchronize()
    assert driver.from_device(memory, 8, np.int32).tolist() == [600] * 8


def test_a_body_is_recorded():
    stream = driver.Stream()
    start = np.arange(6, dtype=np.float32).reshape(2, 3)
    a = gpuarray.to_gpu(start).on(stream)
    total = gpuarray.zeros((), np.float32).on(stream)
    driver.Context.synchronize()
    with stream.capture() as graph:
        assert stream.is_capturing()
        assert repr(graph) == "<Graph without a finished capture>"
        for use in (graph.launch, lambda: graph.node_count):
            with pytest.raises(ValueError, match="not ended"):
                use()
        a *= 2
        b = a.T + 1
        gpuarray.sum(b, out=total)
    assert not stream.is_capturing()
    assert graph.node_count >= 3
    stream.synchronize()
    np.testing.assert_array_equal(a.get(), start)  # nothing has run
    for times in (1, 2, 3):
        graph.launch(stream)
        expected = start * 2**times
        np.testing.assert_array_equal(a.get(), expected)
        np.testing.assert_array_equal(b.get(), expected.T + 1)
        assert total.get() == (expected + 1).sum()


def test_a_body_that_raises_drops_its_recording():
    stream = driver.Stream()
    a = gpuarray.zeros(3, np.int32).on(stream)
    driver.Context.synchronize()
    capture = stream.capture("relaxed")
    graphs = []

    def body():
        with capture as graph:
            graphs.append(graph)
            a.fill(1)
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        body()
    (graph,) = graphs
    assert not stream.is_capturing()
    with pytest.raises(ValueError, match="dropped"):
        graph.launch(stream)
    with pytest.raises(RuntimeError, match="not entered"):
        capture.__exit__(None, None, None)
    with capture as again:  # it can be used again, for another graph
        a += 5
    assert again is not graph
    again.launch(stream)
    assert a.get().tolist() == [5, 5, 5]
    with pytest.raises(ValueError, match="thread_local"):
        stream.capture("sometimes")


def test_a_capture_within_a_capture_is_refused():
    stream = driver.Stream()
    inner = stream.capture()
    # The second call may have invalidated the first capture.
    with contextlib.suppress(driver.Error), stream.capture(), pytest.raises(driver.Error):
        inner.__enter__()
    stream.synchronize()
    assert not stream.is_capturing()


def test_what_is_refused(add):
    stream = driver.Stream()
    with pytest.raises(ValueError, match="thread_local"):
        stream.begin_capture("sometimes")
    with pytest.raises(driver.Error):
        stream.end_capture()
    stream.begin_capture()
    with pytest.raises(driver.Error):
        stream.begin_capture()
    # The second call may have invalidated the first capture; in either case the stream works again.
    with contextlib.suppress(driver.Error):
        stream.end_capture()
    stream.synchronize()
    assert stream.is_done()


@pytest.mark.parametrize("flags", [0, 1])
def test_waiting_for_a_stream_that_captures_is_refused(flags):
    # The wait would never end, because captured work does not run.
    run_python(
        f"""
        import numpy as np
        from pygpu import autoinit, driver

        stream = driver.Stream({flags})
        stream.begin_capture()
        try:
            stream.synchronize()
        except driver.LogicError as error:
            assert "captur" in str(error), error
        else:
            raise AssertionError("nothing was raised")
        try:
            stream.end_capture()
        except driver.Error:
            pass  # The driver ends a capture whose stream was waited for.
        stream.synchronize()
        """
    )


def test_nothing_waits_for_the_end_of_a_capture_to_lock_pages():
    # Page-locked memory that is freed during a capture is kept until the capture ends.
    run_python(
        """
        import numpy as np
        from pygpu import autoinit, driver

        stream, other = driver.Stream(), driver.Stream()
        dropped, memory = driver.pagelocked_empty(4096, np.uint8), np.zeros(1 << 16, np.uint8)
        stream.begin_capture("relaxed")
        del dropped
        registered = driver.register_host_memory(memory)
        try:
            driver.register_host_memory(memory)
        except driver.Error:
            pass
        else:
            raise AssertionError("nothing was raised")
        stream.end_capture()
        """
    )


@pytest.mark.parametrize("made", ["before", "inside"])
@pytest.mark.parametrize("first", ["stream", "array"])
def test_a_capture_ends_with_the_objects_of_its_stream(made, first):
    # The captured work refers to the stream and keeps it alive, so the program could not end it.
    stream = driver.Stream()
    array = gpuarray.zeros(100, np.float32)
    driver.Context.synchronize()
    stream.begin_capture()
    array.fill(1, stream)
    if made == "inside":
        array = cumath.sqrt(array, stream=stream)
    again = driver.Stream.from_handle(stream.handle)
    del stream
    assert again.is_capturing()
    if first == "array":
        del array
    del again
    np.testing.assert_array_equal((gpuarray.zeros(3, np.int32) + 1).get(), [1, 1, 1])


@pytest.mark.skipif(
    BACKEND != "host", reason="a driver lets no other thread end a capture that is not relaxed"
)
def test_a_capture_of_another_thread_ends_with_the_objects_of_its_stream():
    # The collector drops the objects on any thread, but only the thread that began the capture may
    # end it.
    streams, array = [driver.Stream(1)], gpuarray.zeros(100, np.float32)
    array.fill(1, streams[0])
    driver.Context.synchronize()

    def begin():
        streams[0].begin_capture()
        array.fill(2, streams[0])

    thread = threading.Thread(target=begin)
    thread.start()
    thread.join()
    with pytest.raises(driver.LogicError, match="another thread"):
        streams[0].end_capture()
    streams.clear()
    driver.Context.synchronize()
    np.testing.assert_array_equal(array.get(), np.ones(100))


FAILING = """
__global__ void divide(int *x, const int *by) { if (*by == 0) __trap(); x[threadIdx.x] /= *by; }
__global__ void never_ends(volatile int *x) { while (*x == 0) { } }
"""


@on_the_host
@pytest.mark.parametrize("where", ["the default stream", "the stream", "another stream"])
def test_a_launch_ends_with_the_first_node_that_fails(where):
    divide = SourceModule(FAILING).get_function("divide")
    stream = driver.Stream()
    x, by = gpuarray.to_gpu(np.full(4, 8, "i4")).on(stream), gpuarray.to_gpu(np.array([2], "i4"))
    after = gpuarray.zeros(3, "i4").on(stream)
    driver.Context.synchronize()
    with stream.capture() as graph:
        divide(x, by.on(stream), block=(4, 1, 1), stream=stream)
        after += 1
    on = {"the default stream": None, "the stream": stream}.get(where, driver.Stream())
    graph.launch(on)
    assert (x.get().tolist(), after.get().tolist()) == ([4] * 4, [1] * 3)
    by.fill(0)
    driver.Context.synchronize()

    def launch_and_wait():
        graph.launch(on)
        (on or driver.Context).synchronize()

    with pytest.raises(driver.LaunchError, match="divide"):
        launch_and_wait()
    driver.Context.synchronize()
    assert after.get().tolist() == [1] * 3
    # The graph still uses the recorded values.
    by.fill(4)
    graph.launch(on)
    assert (x.get().tolist(), after.get().tolist()) == ([1] * 4, [2] * 3)


@on_the_host
def test_a_launch_that_never_ends_is_interrupted():
    run_python(
        f"""
        import os, signal, threading, time
        import numpy as np
        from pygpu import autoinit, driver, gpuarray
        from pygpu.compiler import SourceModule

        kernel = SourceModule({FAILING!r}).get_function("never_ends")
        stream = driver.Stream()
        flag = gpuarray.zeros(1, np.int32)
        driver.Context.synchronize()
        with stream.capture() as graph:
            kernel(flag.on(stream), block=(1, 1, 1), stream=stream)
        main = threading.get_ident()
        threading.Timer(0.3, lambda: signal.pthread_kill(main, signal.SIGINT)).start()
        try:
            graph.launch()
        except KeyboardInterrupt:
            pass
        else:
            raise AssertionError("nothing was raised")
        assert flag.get()[0] == 0
        flag.fill(1)
        graph.launch()
        """
    )


@on_the_host
def test_a_forked_child_makes_its_own_graphs():
    run_python(
        """
        import os
        import numpy as np
        from pygpu import autoinit, driver, gpuarray

        def adding():
            stream = driver.Stream()
            x = gpuarray.zeros(3, np.int32).on(stream)
            driver.Context.synchronize()
            with stream.capture() as graph:
                y = x + 1
                x += y
            return stream, x, graph

        stream, x, graph = adding()
        graph.launch(stream)
        stream.synchronize()
        stream.begin_capture()  # It goes on in the parent alone.
        child = os.fork()
        if child == 0:
            try:
                try:
                    graph.launch()
                except driver.Error as error:
                    assert "parent" in str(error), error
                else:
                    raise AssertionError("nothing was raised")
                assert not stream.is_capturing()
                own, y, again = adding()
                again.launch(own)
                assert y.get().tolist() == [1, 1, 1]
                del stream, x, graph
                driver.Context.synchronize()
            except BaseException as error:
                print(repr(error), flush=True)
                os._exit(1)
            os._exit(0)
        assert os.waitpid(child, 0)[1] == 0
        stream.end_capture()
        graph.launch(stream)
        assert x.get().tolist() == [3, 3, 3]
        """
    )


def test_a_graph_outlives_what_it_was_made_of():
    def recorded():
        stream, other = driver.Stream(1), driver.Stream(1)
        fork, join = driver.Event(), driver.Event()
        x = gpuarray.zeros(1000, "i4").on(stream)
        total = gpuarray.zeros((), "i4")
        driver.Context.synchronize()
        with stream.capture() as graph:
            x += 1
            fork.record(stream)
            other.wait_for_event(fork)
            y = x.on(other) * 2
            join.record(other)
            stream.wait_for_event(join)
            gpuarray.sum(y.on(stream), out=total.on(stream))
        return graph, total

    graph, total = recorded()
    others = [gpuarray.zeros(1000, "i4") for _ in range(5)]
    for times in range(1, 4):
        graph.launch()
        assert total.get() == 2000 * times
    graph.launch()
    del graph
    assert total.get() == 8000
    assert all((other.get() == 0).all() for other in others)


def test_a_graph_keeps_the_host_memory_of_its_copies():
    stream = driver.Stream(1)
    x = gpuarray.zeros((8, 16), np.int32).on(stream)
    rows, plain = gpuarray.zeros((8, 16), np.int32), driver.mem_alloc(512)

    def recorded():
        upload = driver.pagelocked_empty((8, 16), np.int32)
        download = driver.pagelocked_empty((8, 16), np.int32)
        locked = driver.register_host_memory(driver.aligned_zeros((8, 16), np.int32))
        second = driver.pagelocked_empty((8, 16), np.int32)
        upload[:], locked[:] = 3, 4
        copy = driver.Memcpy2D()
        copy.set_src_host(second)
        copy.set_dst_device(rows.gpudata)
        copy.src_pitch = copy.dst_pitch = copy.width_in_bytes = 64
        copy.height = 8
        second[:] = 5
        driver.Context.synchronize()
        with stream.capture() as graph:
            x.set_async(upload, stream=stream)
            x.get_async(stream, download)
            driver.memcpy_htod_async(plain, locked, stream)
            copy(stream)
        kept = [weakref.ref(it.base) for it in (upload, download, locked, second)]
        return graph, kept, download.ctypes.data

    graph, kept, address = recorded()
    # New allocations would reuse the graph's memory if it had been freed.
    others = [driver.pagelocked_zeros((8, 16), np.int32) for _ in range(8)]
    assert address not in [other.ctypes.data for other in others]
    graph.launch(stream)
    stream.synchronize()
    assert (x.get() == 3).all()
    assert (rows.get() == 5).all()
    assert (driver.from_device(plain, (8, 16), np.int32) == 4).all()
    assert not any(other.any() for other in others)
    assert all(it() is not None for it in kept)
    del graph
    assert all(it() is None for it in kept)


def test_a_graph_keeps_the_code_of_its_kernels():
    stream = driver.Stream(1)
    x = gpuarray.zeros(4, np.int32).on(stream)

    def recorded():
        kernel = SourceModule(SOURCE).get_function("add")
        driver.Context.synchronize()
        with stream.capture() as graph:
            kernel(x, np.int32(7), block=(4, 1, 1), stream=stream)
        return graph

    graph = recorded()
    for times in (1, 2):
        graph.launch(stream)
        assert x.get().tolist() == [7 * times] * 4


@pytest.mark.parametrize("flags", [0, 1])
@pytest.mark.parametrize("handler", [driver.In, driver.Out, driver.InOut])
def test_arguments_that_copy_during_the_call_are_not_captured(add, handler, flags):
    # The graph would run the kernel without the copies.
    stream, values = driver.Stream(flags), np.arange(4, dtype=np.int32)
    stream.begin_capture()
    with pytest.raises(driver.Error, match="captur"):
        add(handler(values), np.int32(1), block=(4, 1, 1), stream=stream)
    with contextlib.suppress(driver.Error):  # the default stream may have invalidated it
        stream.end_capture()
    add(handler(values), np.int32(1), block=(4, 1, 1), stream=stream)
    driver.Context.synchronize()
