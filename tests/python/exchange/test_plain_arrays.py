"""Arrays whose memory other processes open by address: `PYGPU_ARRAY_MEMORY=plain`."""

from __future__ import annotations

import numpy as np
import pytest
from processes import Peer, run_python

from pygpu import driver, gpuarray

# Creates arrays as PyCUDA programs do, and prints the handles of their addresses. Then prints the
# elements of the first one, also after a capture.
PROGRAM_OF_PYCUDA = """
import numpy as np
import pygpu.autoinit
from pygpu import driver, gpuarray

made = [gpuarray.to_gpu(np.arange(10.0)), gpuarray.zeros(10, float), gpuarray.empty(10, float)]
made[2].fill(3)
made.append(made[0] * 2)
driver.Context.synchronize()
for array in made:
    print(driver.mem_get_ipc_handle(array.ptr).hex(), flush=True)
input()
print(made[0].get().tolist(), flush=True)
stream = driver.Stream()
with stream.capture() as graph:
    doubled = made[0].on(stream) * 2
graph.launch(stream)
print(doubled.get().tolist(), flush=True)
"""


def test_arrays_have_memory_to_share_where_the_environment_asks_for_it():
    with Peer(PROGRAM_OF_PYCUDA, PYGPU_ARRAY_MEMORY="plain") as peer:
        memories = [driver.IPCMemoryHandle(bytes.fromhex(peer.read())) for _ in range(4)]
        arrays = [gpuarray.GPUArray((10,), float, gpudata=memory) for memory in memories]
        expected = [np.arange(10.0), np.zeros(10), np.full(10, 3.0), np.arange(10.0) * 2]
        for array, values in zip(arrays, expected, strict=True):
            np.testing.assert_array_equal(array.get(), values)
        arrays[0] += 1
        driver.Context.synchronize()
        assert peer.ask() == str((np.arange(10.0) + 1).tolist())
        assert peer.read() == str((2 * (np.arange(10.0) + 1)).tolist())


# Plain memory counts as allocated on the default stream, which does not wait for this stream.
ON_ANOTHER_STREAM = """
import numpy as np
import pygpu.autoinit
from pygpu import cumath, driver, gpuarray

stream = driver.Stream(1)
busy = gpuarray.zeros(1 << 18, float)
x = gpuarray.to_gpu(np.full(1 << 20, 2.0))
driver.Context.synchronize()

def work():
    for _ in range(10):
        cumath.sin(busy, out=busy, stream=stream)

work()
doubled = x.on(stream) * 2
assert (doubled.on(None).copy().get() == 4).all()
work()
numbers = gpuarray.arange(1000, dtype=float, stream=stream)
assert (numbers.on(None).copy().get() == np.arange(1000)).all()
"""


def test_results_on_a_stream_are_ordered_with_others():
    run_python(ON_ANOTHER_STREAM, PYGPU_ARRAY_MEMORY="plain")


def test_a_kind_of_memory_that_there_is_not_is_refused():
    refused = pytest.raises(AssertionError, match="PYGPU_ARRAY_MEMORY is .shared.; allowed are")
    with Peer(PROGRAM_OF_PYCUDA, PYGPU_ARRAY_MEMORY="shared") as peer, refused:
        peer.read()
