"""Each driver call fails once while kernels are compiled, loaded and launched."""

from __future__ import annotations

import pytest
from device import ALONE
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
from pygpu.compiler import SourceModule
from pygpu.tools import DeviceMemoryPool

SOURCE = '''
__global__ void add(int *x, int value) { x[threadIdx.x] += value; }
__device__ int number = 3;
'''

def program():
    module = SourceModule(SOURCE)
    add = module.get_function("add")
    add.prepare("Pi")
    pool = DeviceMemoryPool()
    stream = driver.Stream()
    host = np.zeros(8, np.int32)
    a = gpuarray.to_gpu(host, allocator=pool.allocate)
    for kind in (a, a.gpudata):
        add(kind, np.int32(1), block=(8, 1, 1), stream=stream)
    add(driver.InOut(host), np.int32(5), block=(8, 1, 1))
    add.prepared_call((1, 1), (8, 1, 1), a, 10)
    seconds = add.prepared_timed_call((1, 1), (8, 1, 1), a, 100)()
    memory, pitch = driver.mem_alloc_pitch(32, 2, 4)
    driver.memset_d2d32(memory, pitch, 7, 8, 2)
    add(memory, np.int32(1), block=(8, 1, 1), stream=stream)
    rows = driver.from_device(memory, (8,), np.int32)
    memory.free()
    number = driver.from_device(module.get_global("number")[0], (), np.int32)
    assert add.num_regs and seconds >= 0
    driver.Context.synchronize()
    pool.stop_holding()
    parts = (a.get().sum(), host.sum(), rows.sum(), number)
    return [int(part) for part in parts]

def settled():
    gc.collect()
    driver.Context.synchronize()
    driver.Context.trim_memory()
    return driver.mem_get_info() if ALONE else None

expected = program()
assert expected == [8 * 112, 40, 64, 3]
before = settled()
_testing.inject_fault(None)
assert program() == expected
calls, _ = _testing.fault_calls()
kinds = dict(calls)
assert {"LoadModule", "Lookup", "Launch", "Compile", "Allocate"} <= kinds.keys(), kinds
tried = failed = 0
for kind, count in calls:
    # How often a stream is asked whether it is done, is a matter of time.
    for after in range(min(count, 20)):
        _testing.inject_fault(kind, after)
        tried += kind != "Query"
        try:
            program()
        except driver.Error as error:
            failed += kind != "Query"
            assert str(error)
            del error
        _, injected = _testing.fault_calls()
        _testing.inject_fault(None)
        assert settled() == before, (kind, after, before, driver.mem_get_info())
        assert program() == expected, (kind, after)
print(tried, failed)
"""


def test_each_call_fails_once():
    done = run_python(PROGRAM.replace("ALONE", str(ALONE)), PYGPU_FAULT_INJECTION="1")
    tried, failed = map(int, done.stdout.split())
    assert tried > 20
    # Failed frees are only recorded, not raised.
    assert failed > tried / 2
