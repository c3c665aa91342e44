"""Lifetimes: memory of captures, streams of other libraries, objects that a reset destroyed."""

from __future__ import annotations

import ctypes
import gc
import os
import weakref
from pathlib import Path

import numpy as np
import pytest
from device import BACKEND, IS_DOUBLE, busy
from processes import run_python

from pygpu import cumath, driver, gpuarray, tools

# For programs that import this file.
FOLDERS = [str(it) for it in Path(__file__).parents[:2]]

on_a_gpu = pytest.mark.skipif(BACKEND == "host", reason="the host has no resets and no handles")
COUNT = 1000


class RawStream:
    """A stream that another library made."""

    def __init__(self):
        driver.Context.synchronize()
        prefix, variable, name = (
            ("hip", "PYGPU_HIP_LIBRARY", "libamdhip64.so")
            if BACKEND == "hip"
            else ("cu", "PYGPU_CUDA_LIBRARY", "libcuda.so.1")
        )
        library = ctypes.CDLL(os.environ.get(variable, name))
        self._destroy = library[f"{prefix}StreamDestroy" + ("" if BACKEND == "hip" else "_v2")]
        self._destroy.argtypes = [ctypes.c_void_p]
        handle = ctypes.c_void_p()
        create = library[f"{prefix}StreamCreateWithPriority"]
        assert create(ctypes.byref(handle), 1, 0) == 0
        self.handle = handle.value

    def __cuda_stream__(self):
        return 0, self.handle

    def __del__(self):
        assert self._destroy(self.handle) == 0


# ---- captures --------------------------------------------------------------------------------


def from_pool():
    return tools.DeviceMemoryPool().allocate


def from_callable():
    return lambda size: driver.mem_alloc(size)


@pytest.mark.parametrize("make", [from_pool, from_callable])
def test_temporaries_of_a_capture_are_the_graphs(make):
    allocate = make()
    a = gpuarray.to_gpu(np.full(COUNT, 16, np.float32), allocator=allocate)
    stream = driver.Stream(1)
    # Frees a block on the capture's stream, in the array's allocator.
    a.fill(16, stream)
    result = gpuarray.empty(COUNT, np.float32, allocator=allocate)
    driver.Context.synchronize()
    stream.begin_capture()
    between = gpuarray.empty(COUNT, np.float32, allocator=allocate)
    cumath.sqrt(a, out=between, stream=stream)
    cumath.sqrt(between, out=result, stream=stream)
    del between
    graph = stream.end_capture()
    others = [gpuarray.empty(COUNT, np.float32, allocator=allocate) for _ in range(5)]
    for other in others:
        other.fill(7)
    graph.launch(stream)
    stream.synchronize()
    assert (result.get() == 2).all()
    for other in others:
        assert (other.get() == 7).all()


@pytest.mark.parametrize("pooled", [False, True])
def test_freed_memory_stays_for_the_graph(pooled):
    pool = tools.DeviceMemoryPool()
    allocate = pool.allocate if pooled else driver.mem_alloc
    memory = allocate(4 * COUNT)
    stream = driver.Stream(1)
    driver.Context.synchronize()
    stream.begin_capture()
    driver.memset_d32_async(memory, 1, COUNT, stream)
    graph = stream.end_capture()
    memory.free()
    with pytest.raises(driver.LogicError, match=r"freed|returned to its pool"):
        memory.free()
    others = [allocate(4 * COUNT) for _ in range(5)]
    for other in others:
        driver.memset_d32(other, 7, COUNT)
    graph.launch(stream)
    stream.synchronize()
    for other in others:
        assert (driver.from_device(other, COUNT, np.int32) == 7).all()
    if pooled:
        assert pool.active_blocks == 5
    del graph
    gc.collect()


def test_rows_that_a_graph_uses_outlive_their_free():
    memory, pitch = driver.mem_alloc_pitch(400, 10, 4)
    stream = driver.Stream(1)
    driver.Context.synchronize()
    stream.begin_capture()
    driver.memset_d32_async(memory, 1, pitch // 4 * 10, stream)
    graph = stream.end_capture()
    memory.free()
    for _ in range(3):
        graph.launch(stream)
    stream.synchronize()
    driver.Context.synchronize()


# ---- resets ----------------------------------------------------------------------------------


@on_a_gpu
def test_rows_are_not_freed_once_more_after_a_reset():
    run_python(
        """
        import logging
        from pygpu import driver, gpuarray

        rows, _ = driver.mem_alloc_pitch(400, 10, 4)
        dropped, _ = driver.mem_alloc_pitch(400, 10, 4)
        driver.Device(0).reset()
        new, _ = driver.mem_alloc_pitch(400, 10, 4)
        # The reset took the memory: there is nothing left to free at its address.
        rows.free()
        del dropped
        new.free()
        """
    )


@on_a_gpu
def test_a_device_that_was_reset_is_waited_for_beside_an_old_stream():
    run_python(
        """
        from pygpu import driver, gpuarray

        old = driver.Stream()
        gpuarray.zeros(100, "i4").fill(1, old)
        driver.Context.synchronize()
        driver.Device(0).reset()
        x = gpuarray.zeros(100, "i4")
        x.fill(2, driver.Stream())
        driver.Context.synchronize()
        assert (x.get() == 2).all()
        driver.mem_alloc(100).free()
        """
    )


@on_a_gpu
def test_the_handle_of_a_stream_from_before_a_reset_is_refused():
    run_python(
        """
        import sys
        sys.path[:0] = sys.argv[1:]
        from test_lifetimes import RawStream
        import pytest
        from pygpu import cuda, driver

        raw, own = RawStream(), driver.Stream()
        stream, numbas = driver.Stream.from_handle(raw.handle), cuda.stream()
        stream.synchronize()
        handles = [raw.handle, own.handle, int(numbas)]
        RawStream.__del__ = lambda self: None
        driver.Device(0).reset()
        # A driver would follow the numbers.
        for handle in handles:
            with pytest.raises(driver.LogicError, match="before device .* was reset"):
                driver.Stream.from_handle(handle)
        for old in (stream, own, numbas):
            with pytest.raises(driver.LogicError, match="before device .* was reset"):
                old.handle
            with pytest.raises(driver.LogicError, match="before device .* was reset"):
                cuda.to_device([1, 2, 3], stream=old)
            repr(old)
        # One that another library made since then may have the same number: its object says so.
        new = RawStream()
        driver.Stream.from_handle(new).synchronize()
        """,
        *FOLDERS,
    )


# ---- streams of other libraries ----------------------------------------------------------------


@on_a_gpu
def test_an_owner_is_kept_though_the_handle_was_known():
    raw = RawStream()
    gone = weakref.ref(raw)
    first = driver.Stream.from_handle(raw.handle)
    second = driver.Stream.from_handle(raw)
    a = gpuarray.zeros(COUNT, np.float32)
    a.fill(1, second)
    del raw
    gc.collect()
    assert gone() is not None
    first.synchronize()
    del second, first
    gc.collect()
    assert gone() is None
    # Earlier work on the array is waited for.
    assert (a.get() == 1).all()
    a.fill(2)
    assert (a.get() == 2).all()


@on_a_gpu
def test_an_owner_whose_array_was_used_on_its_stream_is_freed():
    raw = RawStream()
    raw.array = gpuarray.zeros(COUNT, np.float32)
    raw.array.fill(3, raw)
    array = gpuarray.zeros(COUNT, np.float32)
    array.fill(4, raw)
    gone = weakref.ref(raw)
    gc.collect()
    assert gone() is raw
    del raw
    gc.collect()
    assert gone() is None
    assert (array.get() == 4).all()


@on_a_gpu
def test_the_interface_names_no_stream_where_nothing_is_queued():
    a = gpuarray.zeros(COUNT, np.float32)
    driver.Context.synchronize()
    assert a.__cuda_array_interface__["stream"] is None
    assert gpuarray.zeros(0).__cuda_array_interface__["stream"] is None


@on_a_gpu
@pytest.mark.skipif(not IS_DOUBLE, reason="whether work is still queued is not known on a GPU")
def test_the_interface_names_the_stream_that_wrote_last():
    # More writes than a reader waits for individually.
    many = 200
    stream = driver.Stream(1)
    a = gpuarray.zeros(COUNT, np.float32)
    for _ in range(many):
        a.fill(1)
    assert a.__cuda_array_interface__["stream"] == 1
    driver.Context.synchronize()
    for _ in range(many):
        a.fill(1, stream)
    assert a.__cuda_array_interface__["stream"] == stream.handle
    assert a[10:].__cuda_array_interface__["stream"] == stream.handle
    stream.synchronize()
    assert a.__cuda_array_interface__["stream"] is None
    own = driver.Stream.from_handle(2)
    for _ in range(many):
        a.fill(1, own)
    # On another thread the handle 2 means another stream, so the work has been waited for
    # instead.
    assert a.__cuda_array_interface__["stream"] is None


# ---- the interpreter -------------------------------------------------------------------------

WHILE = """
import sys, threading, time
import numpy as np
from pygpu import driver, gpuarray

a = gpuarray.to_gpu(np.arange(8, dtype=np.float32))
driver.Context.synchronize()
ticks, end = 0, False

def count():
    global ticks
    while not end:
        ticks += 1
        time.sleep(0)

thread = threading.Thread(target=count)
thread.start()
while not ticks:
    time.sleep(0.001)
# From here on the other thread runs only when this one lets it.
sys.setswitchinterval(1000)
before = ticks
b = {work}
after = ticks
end = True
sys.setswitchinterval(0.005)
thread.join()
assert after > before, "the interpreter was held"
assert {check}
"""


@on_a_gpu
@pytest.mark.parametrize(
    ("work", "check"),
    [
        ("a * a + a", "(b.get() == np.arange(8.0) ** 2 + np.arange(8.0)).all()"),
        ("gpuarray.sum(a)", "b.get() == 28"),
    ],
)
def test_a_first_use_lets_other_threads_work(work, check, tmp_path):
    # No cached code from earlier runs, because loading it would be too fast to observe.
    run_python(WHILE.format(work=work, check=check), PYGPU_CACHE_DIR=str(tmp_path), DOUBLE_CACHE="")


FIRST_USE_ON_ANOTHER_STREAM = """
import sys, threading, time
import numpy as np
from pygpu import driver, gpuarray

ROUNDS = 20
streams = [driver.Stream(1) for _ in range(ROUNDS)]
gpuarray.zeros(8, np.int8).fill(1, streams[0])
host = np.empty(int(sys.argv[1]), np.int8)
arrays = [gpuarray.zeros(host.size, np.int8) for _ in range(3)]
driver.Context.synchronize()
ticks, end = 0, False

def count():
    global ticks
    while not end:
        ticks += 1
        time.sleep(0)

def download(array):
    copying.set()
    array.get(host)

counter = threading.Thread(target=count)
counter.start()
while not ticks:
    time.sleep(0.001)
# From here on the other threads run only when this one lets them.
sys.setswitchinterval(1000)
released = 0
for stream in streams:
    array = gpuarray.zeros(host.size, np.int8)
    view = array[:8]
    driver.Context.synchronize()
    copying = threading.Event()
    copier = threading.Thread(target=download, args=(array,))
    copier.start()
    copying.wait()
    before = ticks
    # The first use on another stream waits until the copy no longer uses the array.
    view.fill(1, stream)
    released += ticks > before
    copier.join()
    assert (array.get()[:9] == [1] * 8 + [0]).all()
end = True
sys.setswitchinterval(0.005)
counter.join()
assert released > 0, "the interpreter was held"
"""


def test_a_first_use_on_another_stream_lets_other_threads_work():
    run_python(FIRST_USE_ON_ANOTHER_STREAM, str(busy(1 << 25)))


# ---- reused identifiers ------------------------------------------------------------------------

REUSED = """
import gc, sys
sys.path[:0] = sys.argv[1:]
import numpy as np
import test_lifetimes
from test_lifetimes import RawStream
from pygpu import driver, gpuarray

def check(stream, raw):
    # The object is of the new stream, and keeps its owner.
    assert stream.handle == raw.handle
    a = gpuarray.zeros(1000, np.float32)
    a.fill(3, stream)
    stream.synchronize()
    assert (a.get() == 3).all()

# The first has gone, and its objects with it.
raw = RawStream()
number = raw.handle
driver.Stream.from_handle(number).synchronize()
gc.collect()
del raw
raw = RawStream()
assert raw.handle == number, "the double gives numbers twice"
stream = driver.Stream.from_handle(raw)
check(stream, raw)

# The first was the owner's, which went with the last object that needed it.
del stream, raw
gc.collect()
raw = RawStream()
assert raw.handle == number
stream = driver.Stream.from_handle(raw)
check(stream, raw)

# A reset has taken the first, whose object lives on.
destroy, RawStream.__del__ = RawStream.__del__, lambda self: None
driver.Device(0).reset()
old, stream = stream, None
new = RawStream()
while new.handle != number:
    new = RawStream()
stream = driver.Stream.from_handle(new)
check(stream, new)
assert driver.Stream.from_handle(number).is_done()
try:
    old.synchronize()
    raise SystemExit("the object of before the reset works")
except driver.LogicError as error:
    assert "reset" in str(error), error
"""


@on_a_gpu
@pytest.mark.skipif(not IS_DOUBLE, reason="a driver does not say when it gives a number twice")
def test_a_number_that_is_given_twice_is_the_new_stream():
    run_python(REUSED, *FOLDERS, DOUBLE_REUSE="1")
