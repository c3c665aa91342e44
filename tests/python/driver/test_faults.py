"""Each device call fails once, in a separate program, and causes only an error.

In wheels built for tests, `PYGPU_FAULT_INJECTION` counts the calls and makes a chosen one
fail. After each failure the same program runs to its end, with the right result and all
memory freed.
"""

from __future__ import annotations

import pytest
from device import ALONE, TEST_ALL
from processes import run_python

from pygpu import _core

pytestmark = pytest.mark.skipif(
    not hasattr(_core, "_testing"),
    reason="this wheel cannot inject faults: it is built without the feature testing",
)

PROGRAM = """
import gc
import numpy as np
from pygpu import driver, gpuarray
from pygpu._core import _testing

def program():
    host = np.arange(5000, dtype=np.float32)
    stream, event = driver.Stream(), driver.Event()
    a = gpuarray.to_gpu_async(host, stream=stream)
    b = a * 2 + a[::-1]
    b += 1
    event.record(stream)
    event.synchronize()
    m = b[:4900].reshape(70, 70)
    c = (m + m.T).astype(np.float64)
    d = gpuarray.where(c > 5000, c, -c)
    d[3:9, ::2] = 7
    total = gpuarray.sum(d) + gpuarray.max(a) + gpuarray.dot(a, a)
    memory = driver.to_device(host)
    driver.memset_d32(memory, 0, 10)
    back = driver.from_device_like(memory, host)
    taken = gpuarray.take(a, gpuarray.to_gpu(np.array([5, 3], np.int32)))
    joined = gpuarray.concatenate([a, taken])
    stream.synchronize()
    driver.Context.synchronize()
    return float(total.get()) + float(back.sum()) + float(joined.get().sum())

def settled():
    gc.collect()
    driver.Context.synchronize()
    driver.Context.trim_memory()
    return driver.mem_get_info() if ALONE else None

expected = program()
before = settled()
_testing.inject_fault(None)
assert program() == expected
calls, _ = _testing.fault_calls()
assert calls
tried = failed = 0
for kind, count in calls:
    # A thread that waits asks as often as it has time for.
    for after in range(min(count, 20) if kind == "Query" else count):
        for out_of_memory in (False, True) if TEST_ALL else (after % 2 == 1,):
            _testing.inject_fault(kind, after, out_of_memory)
            tried += 1
            try:
                program()
            except driver.Error as error:
                failed += 1
                assert isinstance(error, MemoryError) == out_of_memory, (kind, after, error)
                assert str(error)
                del error
            _, injected = _testing.fault_calls()
            # How many events a device at work takes differs.
            assert injected == 1 or not ALONE, (kind, after, injected)
            _testing.inject_fault(None)
            assert settled() == before, (kind, after, before, driver.mem_get_info())
            assert program() == expected, (kind, after)
            assert settled() == before, (kind, after)
print(len(calls), tried, failed)
"""


def test_each_call_fails_once():
    program = PROGRAM.replace("ALONE", str(ALONE)).replace("TEST_ALL", str(TEST_ALL))
    done = run_python(program, PYGPU_FAULT_INJECTION="1")
    kinds, tried, failed = map(int, done.stdout.split())
    assert kinds >= 5
    # Failed frees and queries are only recorded; all other failures are raised.
    assert failed > tried / 2
