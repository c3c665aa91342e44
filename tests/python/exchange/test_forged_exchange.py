"""Invalid capsules and descriptions: each is refused by name, and its owner is released."""

from __future__ import annotations

import ctypes
import gc
import math
import os

import numpy as np
import pytest
from device import BACKEND
from exchange_rules import DELETER, Managed, Versioned

from pygpu import driver, gpuarray
from pygpu.compiler import SourceModule

KIND = {"host": 1, "cuda": 2, "hip": 10}[BACKEND]
SIZE = 100


new_capsule = ctypes.pythonapi.PyCapsule_New
new_capsule.restype = ctypes.py_object
new_capsule.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]


FORGED: list[Forged] = []


class Forged:
    """Another library's array in the memory of `array`, with given changes in its capsule."""

    def __init__(self, array, shape=(4,), strides=None, versioned=True, deleter=True, **changes):
        self.frees, self.taken = 0, 0
        self.kept = []
        self.managed = (Versioned if versioned else Managed)()
        if versioned:
            self.managed.major, self.managed.minor = changes.pop("major", 1), 1
            self.managed.flags = changes.pop("flags", 0)
        tensor = self.managed.tensor
        tensor.data, tensor.device_type, tensor.ndim = array.ptr, KIND, len(shape)
        tensor.code, tensor.bits, tensor.lanes = 2, 32, 1
        tensor.shape = self.numbers(shape)
        if strides is not None:
            tensor.strides = self.numbers(strides)
        self.device = changes.pop("device", (KIND, 0))
        name = changes.pop("name", b"dltensor_versioned" if versioned else b"dltensor")
        for field, value in changes.items():
            setattr(tensor, field, value)

        def free(_):
            self.frees += 1

        self.kept += [DELETER(free), name]
        if deleter:
            self.managed.deleter = self.kept[-2]
        # The struct must live until it is freed.
        FORGED.append(self)
        self.capsule = new_capsule(ctypes.addressof(self.managed), name, None)

    def numbers(self, values):
        array = (ctypes.c_int64 * max(1, len(values)))(*values)
        self.kept.append(array)
        return array

    def __dlpack_device__(self):
        return self.device

    def __dlpack__(self, **options):
        return self.capsule


@pytest.fixture(scope="module")
def memory():
    return gpuarray.to_gpu(np.arange(SIZE, dtype=np.float32))


@pytest.mark.parametrize(
    ("forged", "text"),
    [
        ({"ndim": -1}, "ndim -1; allowed are 0 to 64"),
        ({"ndim": -(2**31)}, "ndim .*; allowed"),
        ({"ndim": 2**31 - 1}, "ndim .*; allowed"),
        ({"shape": (1,) * 65}, "ndim 65; allowed"),
        ({"ndim": 2, "shape": None}, "ndim 2 and no shape"),
        ({"shape": (-4,)}, "negative dimensions"),
        ({"shape": (0, -1)}, "negative dimensions"),
        ({"shape": (2**62,)}, "address space"),
        ({"shape": (2**40, 2**40)}, "address space"),
        ({"shape": (SIZE * 100_000,)}, "no memory"),
        ({"strides": (2**62,)}, "address space"),
        ({"strides": (-(2**63),)}, "address space"),
        ({"strides": (-1,)}, "no memory"),
        ({"data": None}, "no memory"),
        ({"byte_offset": 2}, "not aligned"),
        ({"bits": 0}, "not a dtype"),
        ({"bits": 128}, "not a dtype"),
        ({"code": 9}, "not a dtype"),
        ({"lanes": 0}, "not a dtype"),
        ({"lanes": 4}, "not a dtype"),
        ({"device_type": 99}, "device .99, 0. of DLPack"),
        ({"major": 2}, "version 2"),
        ({"major": 0}, "version 0"),
        ({"flags": 1}, "read-only"),
        ({"name": b"used_dltensor_versioned"}, "consumed before"),
        ({"name": b"used_dltensor", "versioned": False}, "consumed before"),
    ],
)
def test_a_capsule_that_is_refused(memory, forged, text):
    if "shape" in forged and forged["shape"] is None:
        other = Forged(memory, **{name: it for name, it in forged.items() if name != "shape"})
        other.managed.tensor.shape = None
    else:
        other = Forged(memory, **forged)
    with pytest.raises(BufferError, match=text):
        gpuarray.from_dlpack(other)
    gc.collect()
    # If the capsule is refused before it is read, its own destructor frees the struct.
    unread = "name" in forged or "major" in forged
    assert other.frees == (0 if unread else 1)


@pytest.mark.parametrize(
    ("forged", "view"),
    [
        ({}, np.s_[:4]),
        ({"versioned": False}, np.s_[:4]),
        ({"deleter": False}, np.s_[:4]),
        ({"flags": 2}, np.s_[:4]),
        ({"byte_offset": 8}, np.s_[2:6]),
        ({"strides": (-1,), "byte_offset": 16}, np.s_[4:0:-1]),
        ({"shape": (4, 1), "strides": (3, 2**63 - 1)}, np.s_[:12:3, None]),
        ({"shape": (1,), "strides": (-(2**63),)}, np.s_[:1]),
        ({"shape": (0,), "strides": (2**63 - 1,), "data": None}, np.s_[:0]),
        ({"shape": ()}, np.s_[0]),
    ],
)
def test_a_capsule_that_is_taken(memory, forged, view):
    other = Forged(memory, **forged)
    array = gpuarray.from_dlpack(other)
    np.testing.assert_array_equal(array.get(), np.arange(SIZE, dtype=np.float32)[view])
    with pytest.raises(BufferError, match="consumed before"):
        gpuarray.from_dlpack(other)
    del array
    gc.collect()
    assert other.frees == forged.get("deleter", 1)


@pytest.mark.parametrize("device", [(), (KIND,), (KIND, 0, 0), 5, None, "ab", ("x", 0), (1.5, 0)])
def test_devices_that_are_none(memory, device):
    with pytest.raises(TypeError, match="tuple of two whole numbers"):
        gpuarray.from_dlpack(Forged(memory, device=device))
    if device is not None:
        with pytest.raises(TypeError, match="device is"):
            gpuarray.from_dlpack(memory, device=device)
        with pytest.raises(TypeError, match="dl_device is"):
            memory.__dlpack__(dl_device=device)
        with pytest.raises(TypeError, match="max_version is"):
            memory.__dlpack__(max_version=device)


@pytest.mark.parametrize("copy", [0, 1, "no", ()])
def test_whether_to_copy_is_true_or_false(memory, copy):
    with pytest.raises(TypeError, match="copy is"):
        gpuarray.from_dlpack(memory, copy=copy)
    with pytest.raises(TypeError, match="copy is"):
        memory.__dlpack__(copy=copy)


@pytest.mark.skipif(BACKEND == "host", reason="the host has no handles of streams")
@pytest.mark.parametrize("stream", [2**64, 2**70, -2])
def test_handles_that_are_none(memory, stream):
    with pytest.raises(BufferError, match="stream is"):
        memory.__dlpack__(stream=stream)


@pytest.mark.parametrize(
    ("changes", "error", "text"),
    [
        ({"data": (None, False)}, ValueError, "incomplete"),
        ({"data": ("abc", False)}, ValueError, "incomplete"),
        ({"data": (1e5, False)}, ValueError, "incomplete"),
        ({"data": (0, False)}, ValueError, "no memory"),
        ({"data": (-5, False)}, OverflowError, "gpudata is -5"),
        ({"data": (2**70, False)}, OverflowError, "gpudata"),
        ({"typestr": None}, ValueError, "no dtype"),
        ({"typestr": np.float32}, ValueError, "no dtype"),
        ({"typestr": "xx"}, ValueError, "no dtype"),
        ({"typestr": "|O8"}, TypeError, "object"),
        ({"typestr": "(2,)f4"}, TypeError, "cannot be on a device"),
        ({"typestr": ">f4"}, TypeError, "byte order"),
        ({"typestr": "|V8", "descr": [("a", "<f4")]}, ValueError, "descr of 4"),
        ({"typestr": "|V8", "descr": 5}, ValueError, "no dtype"),
        ({"shape": (2.5,)}, ValueError, "incomplete"),
        ({"shape": "4"}, ValueError, "incomplete"),
        ({"shape": (2**70,)}, ValueError, "address space"),
        ({"shape": (-4,)}, ValueError, "negative"),
        ({"strides": "4"}, ValueError, "incomplete"),
        ({"strides": 5}, ValueError, "incomplete"),
        ({"strides": (1.5,)}, ValueError, "incomplete"),
        ({"strides": (4, 4)}, ValueError, "different lengths"),
        ({"strides": (2**70,)}, ValueError, "address space"),
        ({"stream": -1}, ValueError, "stream of x is -1"),
        ({"stream": 2**64}, ValueError, "stream of x is"),
        ({"stream": "1"}, TypeError, "stream of x"),
    ],
)
def test_a_description_that_is_refused(memory, changes, error, text):
    class Described:
        __cuda_array_interface__ = {
            "shape": (4,),
            "typestr": "<f4",
            "data": (memory.ptr, False),
            "version": 3,
        } | changes

    with pytest.raises(error, match=text):
        gpuarray.from_cuda_array_interface(Described)


@pytest.mark.parametrize("interface", [{"shape": (4,)}, {"data": None}, {"data": ()}, 5])
def test_a_kernel_asks_for_an_address(interface):
    class Described:
        __cuda_array_interface__ = interface

    module = SourceModule("__global__ void nothing(float *a) {}")
    with pytest.raises(TypeError, match=r"type Described has no address as data\[0\]"):
        module.get_function("nothing")(Described(), block=(1, 1, 1))


def test_what_has_no_memory_has_no_description(memory):
    nothing = memory[1:1].__cuda_array_interface__
    assert (nothing["shape"], nothing["data"]) == ((0,), (0, False))
    allocation = driver.mem_alloc(16)
    array = gpuarray.GPUArray((4,), np.float32, gpudata=allocation)
    allocation.free()
    with pytest.raises(driver.LogicError):
        array.__cuda_array_interface__  # noqa: B018


def test_elements_with_axes_of_their_own(memory):
    dtype = np.dtype("(2,)f4")
    for use in (
        lambda: gpuarray.GPUArray((3,), dtype),
        lambda: gpuarray.zeros(3, dtype),
        lambda: gpuarray.ones(3, dtype),
        lambda: memory.view(dtype),
    ):
        # Only fields of records have this dtype, not numpy's own arrays.
        with pytest.raises(TypeError, match="cannot be on a device"):
            use()


@pytest.mark.parametrize("entry", [2**63, -(2**70), 2**200])
def test_entries_of_more_than_64_bits(memory, entry):
    for use in (
        lambda: gpuarray.GPUArray((4,), np.float32, gpudata=memory.gpudata, strides=(entry,)),
        lambda: memory.reshape(entry),
        lambda: gpuarray.zeros((entry,), np.float32),
    ):
        with pytest.raises(ValueError, match="larger than the address space"):
            use()


EDGES = [-(2**63), -(2**31), -5, -1, 0, 1, 2, 3, 7, SIZE, SIZE + 1, 2**31, 2**61, 2**62, 2**63 - 1]


def test_random_capsules_lie_in_memory_or_are_refused(memory):
    rng = np.random.default_rng(20261122)
    numbers = np.arange(SIZE, dtype=np.float32)
    accepted, refused_wrongly = 0, []
    for case in range(20_000 if os.environ.get("PYGPU_TEST_ALL") else 500):
        ndim = int(rng.integers(0, 4))
        edge = [EDGES[k] for k in rng.integers(len(EDGES), size=9)]
        draw = lambda low, high: int(rng.integers(low, high))  # noqa: E731
        shape = [draw(0, 5) if draw(0, 4) else edge.pop() for _ in range(ndim)]
        strides = [draw(-9, 9) if draw(0, 4) else edge.pop() for _ in range(ndim)]
        offset = draw(0, SIZE) if draw(0, 4) else edge.pop()
        # The first and the last element, computed without overflow.
        steps = [(n - 1) * step for n, step in zip(shape, strides, strict=True)]
        first = offset + sum(it for it in steps if it < 0)
        last = offset + sum(it for it in steps if it > 0)
        count = math.prod(shape) if min(shape, default=1) > 0 else 0
        is_inside = 0 < count < 2**60 and first >= 0 and last < SIZE
        other = Forged(memory, shape, strides, byte_offset=offset * 4 % 2**64)
        try:
            array = gpuarray.from_dlpack(other)
        except BufferError:
            refused_wrongly += [(case, shape, strides, offset)] * is_inside
            continue
        assert array.shape == tuple(shape)
        if is_inside and array.size < 1000:
            accepted += 1
            steps = [4 * step if n > 1 else 4 for n, step in zip(shape, strides, strict=True)]
            view = np.lib.stride_tricks.as_strided(numbers[offset:], shape, steps)
            np.testing.assert_array_equal(array.get(), view, err_msg=str(case))
    assert accepted > 50
    assert refused_wrongly == []
