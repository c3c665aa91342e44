"""Extensions of this package's objects in programs: attributes, derived classes, allocators whose
results they recognise, and private methods of PyCUDA's arrays that they call."""

from __future__ import annotations

import gc
import weakref

import numpy as np
import pytest
from tables import each_row

from pygpu import curandom, driver, gpuarray, tools
from pygpu.compiler import DynamicSourceModule, SourceModule
from pygpu.elementwise import ElementwiseKernel
from pygpu.reduction import ReductionKernel
from pygpu.scan import InclusiveScanKernel


def objects():
    pool, pinned = tools.DeviceMemoryPool(), tools.PageLockedMemoryPool()
    return [
        driver.Stream(),
        driver.Event(),
        driver.Device(0),
        driver.mem_alloc(8),
        driver.pagelocked_empty(4, np.float32).base,
        pool,
        pool.allocate(8),
        pinned,
        pinned.allocate((4,), np.float32).base,
        gpuarray.zeros(3, np.float32),
    ]


@pytest.mark.parametrize("thing", objects(), ids=lambda it: type(it).__name__)
def test_objects_take_attributes(thing):
    thing.grid = (1, 2)
    assert thing.grid == (1, 2)
    del thing.grid
    with pytest.raises(AttributeError):
        _ = thing.grid


def test_attributes_do_not_outlive_their_object():
    class Value:
        pass

    for make in (driver.Event, driver.Stream, lambda: driver.mem_alloc(8)):
        thing, value = make(), Value()
        thing.value, seen = value, weakref.ref(value)
        del thing, value
        gc.collect()
        assert seen() is None


def test_an_event_with_arguments_of_its_own():
    class Timed(driver.Event):
        def __init__(self, since=None):
            super().__init__(driver.event_flags.BLOCKING_SYNC)
            self.since = since

    class Forgetful(driver.Event):
        def __init__(self):
            pass

    class Stream(driver.Stream):
        label = "mine"

    first = Timed().record()
    second = Timed(first)
    second.record(Stream())
    second.synchronize()
    assert second.time_since(second.since) >= 0
    with pytest.raises(RuntimeError, match="__init__"):
        Forgetful().record()
    with pytest.raises(RuntimeError, match="second time"):
        first.__init__()
    with pytest.raises(ValueError, match="flags"):
        driver.Event(64)


def test_gpudata_is_what_the_allocator_returned():
    pool, returned = tools.DeviceMemoryPool(), []

    def allocate(size):
        allocation = pool.allocate(size)
        allocation.number = len(returned)
        returned.append(weakref.ref(allocation))
        return allocation

    a = gpuarray.to_gpu(np.arange(6, dtype=np.float32).reshape(2, 3), allocate)
    made = [
        lambda: gpuarray.GPUArray((4,), np.float32, allocator=allocate),
        lambda: gpuarray.zeros(4, np.float32, allocate),
        lambda: a + 1,
        lambda: a.copy(),
        lambda: -a.T,
        lambda: a @ a.T,
        lambda: gpuarray.empty_like(a),
        lambda: a.sum(axis=0),
    ]
    assert a.gpudata.number == 0
    for make in made:
        array = make()
        assert array.gpudata is returned[array.gpudata.number]()
        assert array.gpudata.number == len(returned) - 1
        assert isinstance(array[1:].gpudata, int)
    del array
    gc.collect()
    assert sum(it() is not None for it in returned) == 1


def test_private_methods_of_arrays():
    x, y = np.arange(6, dtype=np.float32), np.arange(6, dtype=np.float64) + 1
    a, b = gpuarray.to_gpu(x), gpuarray.to_gpu(y)
    dtype = gpuarray._get_common_dtype(a, b)
    assert dtype == np.float64
    assert gpuarray._get_common_dtype(a, 1) == np.float32
    out = gpuarray.empty(6, dtype)
    assert a._axpbyz(2, b, -1, out) is out
    np.testing.assert_array_equal(out.get(), 2 * x - y)
    np.testing.assert_array_equal(a._axpbz(3, 4, out, driver.Stream()).get(), 3 * x + 4)
    np.testing.assert_array_equal(a._elwise_multiply(b, out).get(), x * y)
    two = gpuarray.to_gpu(np.array(2.0, np.float32))
    np.testing.assert_array_equal(a._axpbyz(1, two, 1, a).get(), x + 2)
    with pytest.raises(ValueError, match="shape"):
        a._axpbyz(1, b, 1, gpuarray.empty(7, dtype))
    with pytest.raises(RuntimeError, match="contiguous"):
        b._axpbz(1, 1, gpuarray.empty(12, dtype)[::2])
    np.testing.assert_array_equal(gpuarray.GPUArray.__div__(b, 2).get(), y / 2)


SOURCE = "__global__ void nothing(int *x) {}"

OBJECTS = {
    "allocation": lambda: driver.mem_alloc(16),
    "array": lambda: gpuarray.zeros((3, 3), np.float32),
    "context": driver.Context.attach,
    "device": lambda: driver.Device(0),
    "dynamic module": lambda: DynamicSourceModule(SOURCE),
    "elementwise": lambda: ElementwiseKernel("float *x", "x[i] = 0"),
    "event": driver.Event,
    "function": lambda: SourceModule(SOURCE).get_function("nothing"),
    "generator": lambda: curandom.XORWOWRandomNumberGenerator(),
    "handler": lambda: driver.In(np.zeros(3)),
    "module": lambda: SourceModule(SOURCE).module,
    "page-locked": lambda: driver.pagelocked_empty(3, np.float32).base,
    "pool": tools.DeviceMemoryPool,
    "pooled": lambda: tools.DeviceMemoryPool().allocate(16),
    "page-locked pool": tools.PageLockedMemoryPool,
    "reduction": lambda: ReductionKernel(np.float32, "0", "a+b", "x[i]", "float *x"),
    "scan": lambda: InclusiveScanKernel(np.int32, "a+b"),
    "source module": lambda: SourceModule(SOURCE),
    "stream": driver.Stream,
}

# Attributes that are also read-only in PyCUDA, or that make up the object.
KEPT = {
    "allocation": set(),
    "array": {
        "T", "allocator", "dtype", "flags", "gpudata", "imag", "itemsize", "mem_size", "nbytes",
        "ndim", "ptr", "shape", "size", "strides",
    },
    "context": {"handle"},
    "pool": {"active_blocks", "active_bytes", "held_blocks", "managed_bytes"},
    "page-locked pool": {"active_blocks", "active_bytes", "held_blocks", "managed_bytes"},
    "stream": {"handle"},
}  # fmt: skip


def attributes(thing):
    """Returns the public attributes, but not elements, which take numbers."""
    return [it for it in dir(type(thing)) if not it.startswith("_") and it not in ("flat", "real")]


@each_row("name", OBJECTS)
def test_programs_set_what_they_like(name):
    thing = OBJECTS[name]()
    other = OBJECTS[name]()
    kept = KEPT.get(name, set())
    for attribute in ["name", "label", "a_name_of_the_program", *attributes(thing)]:
        if attribute in kept:
            with pytest.raises((AttributeError, TypeError, driver.LogicError)):
                setattr(thing, attribute, 5)
            continue
        setattr(thing, attribute, "mine")
        assert getattr(thing, attribute) == "mine"
        assert other is thing or str(getattr(other, attribute, None)) != "mine"
        delattr(thing, attribute)
    assert set(attributes(thing)) >= kept
