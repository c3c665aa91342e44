"""Array functions in captured work: a launch computes with the data at that time."""

from __future__ import annotations

import numpy as np
import pytest
from pairs import numbers
from tables import each_row

from pygpu import curandom, driver, gpuarray

INDICES = np.array([3, 0, -1, 2, 3], "i4")


def stored(x, index, value):
    x[index] = value
    return x


def sorted_in_place(x):
    x.sort()
    return x


# Functions of an array of shape (4, 5) in numpy, and on the device if the call differs.
FUNCTIONS = {
    "repeat": lambda x: np.repeat(x, 3, 1),
    "tile": lambda x: np.tile(x, (2, 2)),
    "roll": lambda x: np.roll(x, 3),
    "tril": lambda x: np.tril(x, 1),
    "argmax": lambda x: np.argmax(x, 1),
    "broadcast_to": lambda x: np.broadcast_to(x, (2, 4, 5)) + x,
    "diagonal": lambda x: np.diagonal(x) * 2,
    "sort": lambda x: np.sort(x, 0),
    "sorted in place": sorted_in_place,
    "argsort": lambda x: np.argsort(x, 1, kind="stable"),
    "cumsum": lambda x: np.cumsum(x, 1),
    "sum": lambda x: np.sum(x, axis=0),
    "matmul": lambda x: x @ x.T,
    "concatenate": lambda x: np.concatenate([x, x[::-1]]),
    "clip": lambda x: np.clip(x, -2, 2),
    "empty_like": lambda x: np.add(x, 1, out=np.empty_like(x)),
}
WITH_INDICES = {
    "named elements": lambda x, indices, mask: x[indices],
    "stored elements": lambda x, indices, mask: stored(x, indices, 7),
    "masked elements": lambda x, indices, mask: stored(x, mask, 7),
    "under a mask": lambda x, indices, mask: np.add(x, 1, out=x, where=mask),
}


@each_row("flags", [0, 1])
@each_row("name", [*FUNCTIONS, *WITH_INDICES])
def test_a_launch_calculates_anew(name, flags):
    data = [numbers((4, 5), "i4", seed) for seed in (1, 2, 3)]
    stream = driver.Stream(flags)
    a = gpuarray.to_gpu(data[0])
    x, mask = a.on(stream), np.arange(5) % 2 == 0
    more, more_gpu = (), ()
    function = FUNCTIONS.get(name)
    if function is None:
        function, more = WITH_INDICES[name], (INDICES, np.broadcast_to(mask, (4, 5)).copy())
        more_gpu = tuple(gpuarray.to_gpu(one).on(stream) for one in more)
    # Kernels are compiled before the capture.
    function(x.copy(), *more_gpu)
    driver.Context.synchronize()
    with stream.capture() as graph:
        result = function(x, *more_gpu)
    assert graph.node_count > 0
    for host in data:
        a.set(host)
        graph.launch(stream)
        stream.synchronize()
        np.testing.assert_array_equal(result.get(), function(host.copy(), *more))


@pytest.mark.parametrize("kind", ["XORWOW", "Sobol32"])
def test_a_launch_draws_the_next_numbers(kind):
    def generator():
        made = getattr(curandom, f"{kind}RandomNumberGenerator")
        return made(lambda n: gpuarray.zeros(n, "i4")) if kind == "XORWOW" else made()

    stream, first, second = driver.Stream(), generator(), generator()
    drawn, recorded = gpuarray.empty(1000, "f4"), gpuarray.empty(1000, "f4")
    second.fill_uniform(gpuarray.empty(0, "f4"))
    driver.Context.synchronize()
    with stream.capture() as graph:
        second.fill_uniform(recorded, stream=stream)
    for _ in range(3):
        first.fill_uniform(drawn)
        graph.launch(stream)
        stream.synchronize()
        np.testing.assert_array_equal(recorded.get(), drawn.get())
