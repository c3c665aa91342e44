"""Device copies whose source and destination overlap give the same result as an assignment."""

from __future__ import annotations

import numpy as np
import pytest

from pygpu import cuda, driver, gpuarray

BYTES = 4000


def _block(seed: int, count: int = BYTES) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, 256, count, np.uint8)


def _numba(stream):
    def copy(array, to, start, count):
        x = cuda.as_cuda_array(array)
        x[to : to + count].copy_to_device(x[start : start + count], stream or 0)

    return copy


def _of_addresses(function, *more):
    def copy(array, to, start, count):
        function(int(array.gpudata) + to, int(array.gpudata) + start, count, *more)

    return copy


def _arrow(array, to, start, count):
    arrow = pytest.importorskip("pygpu.arrow")
    pytest.importorskip("pyarrow")
    context = arrow.Context()
    target = context.foreign_buffer(int(array.gpudata) + to, count, array)
    target.copy_from_device(context.foreign_buffer(int(array.gpudata) + start, count, array))


WAYS = {
    "copy_to_device": lambda stream: _numba(0),
    "copy_to_device on a stream": lambda stream: _numba(cuda.stream()),
    "memcpy_dtod": lambda stream: _of_addresses(driver.memcpy_dtod),
    "memcpy_dtod_async": lambda stream: _of_addresses(driver.memcpy_dtod_async, stream),
    "memcpy_peer": lambda stream: _of_addresses(driver.memcpy_peer),
    "memcpy_peer_async": lambda stream: (
        lambda array, to, start, count: driver.memcpy_peer_async(
            int(array.gpudata) + to, int(array.gpudata) + start, count, stream=stream
        )
    ),
    "arrow": lambda stream: _arrow,
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(("count", "most"), [(3000, 900), (9_000_000, 5000)])
def test_a_copy_within_an_array_reads_before_it_writes(way, count, most):
    stream = driver.Stream()
    copy = WAYS[way](stream)
    random = np.random.default_rng(0)
    block = _block(0, count + most)
    for shift in (1, int(random.integers(2, most)), most):
        for to, start in ((0, shift), (shift, 0), (shift, shift)):
            array = gpuarray.to_gpu(block)
            expected = block.copy()
            expected[to : to + count] = block[start : start + count]
            copy(array, to, start, count)
            driver.Context.synchronize()
            assert np.array_equal(array.get(), expected), (to, start)


def _pitched(random, kind):
    """Returns a copy of rows within a block, and the expected bytes."""
    depth = 1 if kind is driver.Memcpy2D else int(random.integers(1, 5))
    height, width = (int(random.integers(1, 9)) for _ in range(2))
    pitch, rows = width + int(random.integers(0, 30)), height + int(random.integers(0, 3))
    block = _block(int(random.integers(1000)))
    room = BYTES - ((depth - 1) * rows + height - 1) * pitch - width
    start = int(random.integers(0, room))
    to = int(np.clip(start + random.integers(-40, 40), 0, room - 1))
    expected = block.copy()
    for z in range(depth):
        for y in range(height):
            place = (z * rows + y) * pitch
            expected[to + place :][:width] = block[start + place :][:width]
    copy = kind()
    copy.width_in_bytes, copy.height = width, height
    copy.src_pitch = copy.dst_pitch = pitch
    if kind is not driver.Memcpy2D:
        copy.depth, copy.src_height, copy.dst_height = depth, rows, rows
    array = gpuarray.to_gpu(block)
    copy.set_src_device(int(array.gpudata) + start)
    copy.set_dst_device(int(array.gpudata) + to)
    if kind is driver.Memcpy3DPeer:
        context = driver.Context.get_current()
        copy.set_src_context(context)
        copy.set_dst_context(context)
    return copy, array, expected


@pytest.mark.parametrize("kind", [driver.Memcpy2D, driver.Memcpy3D, driver.Memcpy3DPeer])
@pytest.mark.parametrize("way", ["waiting", "queued", "captured"])
def test_rows_within_an_array_are_read_before_they_are_written(kind, way):
    random = np.random.default_rng(1)
    for _ in range(40):
        copy, array, expected = _pitched(random, kind)
        stream = driver.Stream()
        if way == "waiting":
            copy(True) if kind is driver.Memcpy2D else copy()
        elif way == "queued":
            copy(stream)
        else:
            stream.begin_capture()
            copy(stream)
            stream.end_capture().launch(stream)
        stream.synchronize()
        assert np.array_equal(array.get(), expected)
