"""Exchange with other libraries in both directions: DLPack and ``__cuda_array_interface__``."""

from __future__ import annotations

import gc
import re
import weakref
from pathlib import Path

import numpy as np
import pytest
from device import BACKEND
from pairs import check
from tables import each_row

from pygpu import _core, driver, gpuarray, tools

KIND = {"host": 1, "cuda": 2, "hip": 10}[BACKEND]
on_host = pytest.mark.skipif(BACKEND != "host", reason="about the host")
on_gpu = pytest.mark.skipif(BACKEND == "host", reason="about GPUs")

# DLPack's codes and bits.
DTYPES = {
    "?": (6, 8),
    "i1": (0, 8),
    "u2": (1, 16),
    "i4": (0, 32),
    "u8": (1, 64),
    "f2": (2, 16),
    "f4": (2, 32),
    "f8": (2, 64),
    "c8": (5, 64),
    "c16": (5, 128),
}


def sample(dtype, shape=(3, 4)):
    return np.arange(np.prod(shape)).reshape(shape).astype(dtype)


class Other:
    """Another library's array: it exports with given changes, and records the requests."""

    def __init__(self, array, device=None, **changes):
        self.array, self.device, self.changes = array, device, changes
        self.asked = []

    def __dlpack_device__(self):
        return self.device or self.array.__dlpack_device__()

    def __dlpack__(self, **options):
        self.asked.append(options)
        return self.array.__dlpack__(**options | self.changes)


class Old(Other):
    """An array of a library without versioned capsules."""

    def __dlpack__(self, stream=None):
        self.asked.append(stream)
        return self.array.__dlpack__(stream=stream)


@each_row("other", [Other, Old])
@each_row("dtype", DTYPES)
def test_there_and_back(dtype, other):
    expected = sample(dtype)
    a = gpuarray.to_gpu(expected)
    b = gpuarray.from_dlpack(other(a))
    assert b.ptr == a.ptr
    check(b, expected)
    b.fill(1)
    check(a, np.ones_like(expected))


@pytest.mark.parametrize(
    "view",
    [
        np.s_[::2, 1:],
        np.s_[:, ::-1],
        np.s_[1],
        np.s_[1, 2],
        np.s_[2:2],
    ],
    ids=str,
)
def test_views(view):
    expected = sample("f4")
    check(gpuarray.from_dlpack(gpuarray.to_gpu(expected)[view]), expected[view])
    check(gpuarray.from_dlpack(gpuarray.to_gpu(expected).T), expected.T)


def test_bfloat16():
    ml_dtypes = pytest.importorskip("ml_dtypes", reason="ml_dtypes is not installed")
    expected = sample("f4").astype(ml_dtypes.bfloat16)
    a = gpuarray.to_gpu(expected)
    assert _core.dlpack_tensor(a.__dlpack__())[4] == (4, 16, 1)
    b = gpuarray.from_dlpack(a)
    assert (b.ptr, b.dtype) == (a.ptr, expected.dtype)
    np.testing.assert_array_equal(b.get(), expected)


def test_what_a_capsule_says():
    a = gpuarray.to_gpu(sample("f4"))[:, 1::2]
    for options, is_copied in (
        ({}, False),
        ({"max_version": (1, 0)}, False),
        ({"copy": True}, True),
    ):
        capsule = a.__dlpack__(**options)
        assert ("versioned" in repr(capsule)) == ("max_version" in options)
        owner, address, shape, strides, dtype, device, is_read_only = _core.dlpack_tensor(capsule)
        assert shape == [3, 2]
        assert strides == ([2, 1] if is_copied else [4, 2])
        assert (address != a.ptr) == is_copied
        assert dtype == (2, 32, 1)
        assert device == (KIND, 0)
        assert not is_read_only
        with pytest.raises(BufferError, match="consumed before"):
            _core.dlpack_tensor(capsule)
        del owner
    for bad in (None, 3, "dltensor"):
        with pytest.raises(TypeError, match="no capsule"):
            _core.dlpack_tensor(bad)


def test_memory_lives_as_long_as_its_users():
    class Array(gpuarray.GPUArray):
        pass

    def ends(use):
        a = Array((5,), np.float32)
        seen = weakref.ref(a)
        held = use(a)
        del a
        gc.collect()
        assert seen() is not None
        del held
        gc.collect()
        assert seen() is None

    # Capsules of both forms that are not consumed; one that is; an array over it, and its view.
    ends(lambda a: a.__dlpack__())
    ends(lambda a: a.__dlpack__(max_version=(1, 1)))
    ends(lambda a: _core.dlpack_tensor(a.__dlpack__())[0])
    ends(lambda a: gpuarray.from_dlpack(a))
    ends(lambda a: gpuarray.from_dlpack(a)[1:])
    ends(lambda a: gpuarray.from_cuda_array_interface(a)[1:])


def from_plain_memory():
    return gpuarray.GPUArray(10, "f4", gpudata=driver.mem_alloc(40))


def from_pool():
    return gpuarray.GPUArray(10, "f4", allocator=tools.DeviceMemoryPool().allocate)


@pytest.mark.parametrize("make", [lambda: gpuarray.zeros(10), from_plain_memory, from_pool])
def test_memory_is_not_freed_while_a_consumer_has_it(make):
    array = make()
    capsule = array.__dlpack__()
    with pytest.raises(driver.LogicError, match="still used by its address"):
        array.gpudata.free()
    array.fill(1)
    del capsule
    array.gpudata.free()
    with pytest.raises(driver.LogicError, match="freed"):
        array.__dlpack__()


def test_copies():
    a = gpuarray.to_gpu(sample("f8"))
    b = gpuarray.from_dlpack(a, copy=True)
    assert b.ptr != a.ptr
    check(b, a.get())
    assert gpuarray.from_dlpack(a, copy=False).ptr == a.ptr
    assert gpuarray.from_dlpack(a, device=driver.Device(0)).ptr == a.ptr
    with pytest.raises(BufferError, match="device is"):
        gpuarray.from_dlpack(a, device=(7, 0))
    check(gpuarray.from_dlpack(sample("i4"), copy=True), sample("i4"))


def test_what_cannot_be_exported():
    a = gpuarray.zeros(4, np.dtype([("a", "c8"), ("b", "f4")]))
    with pytest.raises(BufferError, match="which DLPack does not support"):
        a.__dlpack__()
    with pytest.raises(BufferError, match="multiples of the itemsize, 8"):
        a["a"].__dlpack__()
    check(gpuarray.from_dlpack(a["a"].copy()), np.zeros(4, "c8"))
    with pytest.raises(BufferError, match="dl_device is"):
        a["a"].__dlpack__(dl_device=(7, 0))
    for stream in {"host": (1, 5), "cuda": (0, -2), "hip": (1, 2)}[BACKEND]:
        with pytest.raises(BufferError, match=f"stream is {stream}"):
            gpuarray.zeros(3).__dlpack__(stream=stream)
    with pytest.raises(TypeError, match="stream"):
        gpuarray.zeros(3).__dlpack__(stream="x")


def test_what_cannot_be_imported():
    a = gpuarray.zeros(3, np.float32)
    with pytest.raises(TypeError, match="__dlpack__"):
        gpuarray.from_dlpack([1, 2])
    with pytest.raises(BufferError, match="on the device"):
        gpuarray.from_dlpack(Other(a, (4, 0)))
    capsule = a.__dlpack__()
    _core.dlpack_tensor(capsule)

    class Again(Other):
        def __dlpack__(self, **options):
            return capsule

    with pytest.raises(BufferError, match="consumed before"):
        gpuarray.from_dlpack(Again(a))


@on_host
def test_numpy_reads_memory_of_the_host_where_it_is():
    expected = sample("f4")
    a = gpuarray.to_gpu(expected)
    stream = driver.Stream()
    a.fill(7, stream=stream)
    there = np.from_dlpack(a[:, ::2])
    assert there.ctypes.data == a.ptr
    np.testing.assert_array_equal(there, np.full((3, 2), 7, "f4"))
    # numpy's memory is copied, because it is not device memory.
    check(gpuarray.from_dlpack(expected), expected)
    with pytest.raises(BufferError, match="where it is"):
        gpuarray.from_dlpack(expected, copy=False)
    read_only = np.zeros(3)
    read_only.flags.writeable = False
    check(gpuarray.from_dlpack(read_only), read_only)
    locked = driver.pagelocked_zeros(8, np.float32)
    b = gpuarray.from_dlpack(locked, copy=False)
    b.fill(3)
    driver.Context.synchronize()
    assert locked.tolist() == [3] * 8


@on_gpu
def test_an_array_reaches_the_host_by_a_copy():
    expected = sample("f4")
    a = gpuarray.to_gpu(expected)
    found = np.from_dlpack(Other(a, (1, 0), dl_device=(1, 0)))
    np.testing.assert_array_equal(found, expected)
    with pytest.raises((RuntimeError, BufferError), match="device"):
        np.from_dlpack(a)
    if np.lib.NumpyVersion(np.__version__) >= "2.1.0":
        np.testing.assert_array_equal(np.from_dlpack(a, device="cpu"), expected)
    with pytest.raises(BufferError, match="copy is False"):
        a.__dlpack__(dl_device=(1, 0), copy=False)
    with pytest.raises(BufferError, match="copy=True copies it"):
        gpuarray.from_dlpack(expected)


@on_gpu
def test_streams_are_ordered():
    default = {"cuda": 1, "hip": 0}[BACKEND]
    a = gpuarray.zeros(1 << 20, np.float32)
    other = Other(a)
    gpuarray.from_dlpack(other)
    assert other.asked == [{"stream": default, "max_version": (1, 1)}]
    # A copy on another stream reads the result of long work on the first one.
    busy, consumer = driver.Stream(1), driver.Stream(1)
    for _ in range(20):
        a.fill(0, stream=busy)
    a.fill(5, stream=busy)
    capsule = a.__dlpack__(stream=consumer.handle)
    result = driver.pagelocked_zeros(a.shape, a.dtype)
    driver.memcpy_dtoh_async(result, a.ptr, consumer)
    consumer.synchronize()
    assert (result == 5).all()
    del capsule


class Described:
    """Another library's array with a description."""

    def __init__(self, array, **changes):
        self.array = array
        self.__cuda_array_interface__ = array.__cuda_array_interface__ | changes


@pytest.mark.parametrize("dtype", [*DTYPES, [("a", "i4"), ("b", "f8")]])
def test_a_described_array(dtype):
    expected = np.zeros((3, 4), dtype)
    expected[1] = 1
    a = gpuarray.to_gpu(expected)
    b = gpuarray.from_cuda_array_interface(Described(a))
    assert b.ptr == a.ptr
    check(b, expected)
    check(gpuarray.from_cuda_array_interface(Described(a[::2, ::-1])), expected[::2, ::-1])
    check(gpuarray.from_cuda_array_interface(Described(a, strides=None)), expected)
    empty = Described(a[:0], data=(0, False))
    check(gpuarray.from_cuda_array_interface(empty), expected[:0])


def test_descriptions_that_are_wrong():
    a = gpuarray.zeros(3, np.float32)
    for changes, error, text in (
        ({"data": (a.ptr, True)}, BufferError, "read-only"),
        ({"mask": a}, BufferError, "mask"),
        ({"stream": 0}, ValueError, "stream of x is 0"),
        ({"data": None}, ValueError, "incomplete"),
        ({"shape": 3}, ValueError, "incomplete"),
        ({"shape": (1 << 50,), "strides": None}, ValueError, "no memory"),
        ({"data": (16, False)}, ValueError, "no memory"),
    ):
        with pytest.raises(error, match=text):
            gpuarray.from_cuda_array_interface(Described(a, **changes))
    for other in (object(), np.zeros(3)):
        with pytest.raises(TypeError, match="__cuda_array_interface__"):
            gpuarray.from_cuda_array_interface(other)


@on_gpu
def test_a_described_stream_is_waited_for():
    a = gpuarray.zeros(1 << 20, np.float32)
    busy = driver.Stream(1)
    for _ in range(20):
        a.fill(0, stream=busy)
    driver.memset_d32_async(a.ptr, 5, a.size, busy)
    b = gpuarray.from_cuda_array_interface(Described(a, stream=busy.handle))
    assert (b.view(np.int32).get() == 5).all()


# ---- docs/exchange.md ---------------------------------------------------------------------------

PAGE = Path(__file__).parents[3] / "docs" / "exchange.md"


def lines_of_the_table():
    return [line for line in PAGE.read_text().splitlines() if line.startswith("| ")]


def test_each_line_of_the_table_names_tests_that_exist():
    lines = [line for line in lines_of_the_table() if "from → to" not in line]
    assert len(lines) > 20
    for line in lines:
        named = re.findall(r"`([\w/]+\.py)::(\w+)`", line)
        assert named, line
        for file, test in named:
            (path,) = (PAGE.parents[1] / "tests").rglob(file)
            text = path.read_text()
            assert f"\ndef {test}(" in text, f"{file} has no {test}"


def test_nothing_is_copied_to_the_host_unasked():
    a = gpuarray.to_gpu(sample("f4"))
    for function in (
        np.asarray,
        np.array,
        np.ascontiguousarray,
        lambda a: np.asarray(a, dtype="f8"),
        lambda a: np.zeros((3, 4)) @ np.asanyarray(a),
        lambda a: np.copyto(np.zeros((3, 4)), a),
        lambda a: np.zeros((3, 4)).__setitem__(..., a),
        memoryview,
        bytes,
        bytearray,
    ):
        with pytest.raises((TypeError, BufferError)):
            function(a)
