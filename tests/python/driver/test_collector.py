"""The garbage collector finds reference cycles through arrays, streams and linkers."""

from __future__ import annotations

import gc
import weakref

import numpy as np
import pytest
from device import BACKEND, needs_alone, settled_memory
from processes import run_python

from pygpu import _core, cumath, driver, gpuarray, tools


class Holder:
    """An object of the program that can be part of a cycle."""


def _through_allocator(holder):
    def allocate(size):
        assert holder
        return driver.mem_alloc(size)

    holder.array = gpuarray.zeros((1000, 1000), np.float32, allocator=allocate)
    return holder.array


def _through_results(holder):
    a = _through_allocator(holder)
    holder.more = [a + 1, (a + 1)[2:], a.reshape(-1), gpuarray.sum(a)]
    return a


def _through_bound_method(holder):
    class Pool(tools.DeviceMemoryPool):
        pass

    pool = Pool()
    pool.holder = holder
    holder.array = gpuarray.empty((1000, 1000), np.float32, allocator=pool.allocate)
    return holder.array


class Owned(driver.PointerHolderBase):
    """Memory of a program's own type, such as another library's."""

    def __init__(self, size):
        super().__init__()
        self.memory = driver.mem_alloc(size)

    def get_pointer(self):
        return int(self.memory)


def _through_pointer_holder(holder):
    owned = Owned(4_000_000)
    owned.holder = holder
    holder.array = gpuarray.GPUArray((1000, 1000), np.float32, gpudata=owned)
    holder.views = [holder.array[1:], holder.array.T]
    return holder.array


def _through_base(holder):
    memory = driver.mem_alloc(4_000_000)
    holder.array = gpuarray.GPUArray((1000, 1000), np.float32, base=holder, gpudata=int(memory))
    holder.memory = memory
    return holder.array


def _through_allocator_of_holders(holder):
    def allocate(size):
        owned = Owned(size)
        owned.holder = holder
        return owned

    holder.array = gpuarray.zeros((1000, 1000), np.float32, allocator=allocate)
    holder.array += 1
    return holder.array


def _through_attribute(holder):
    holder.array = gpuarray.zeros((1000, 1000), np.float32)
    holder.array.holder = holder
    return holder.array


def _through_view_attribute(holder):
    a = gpuarray.zeros((1000, 1000), np.float32)
    a.view_of_itself = a[1:]
    a.holder, holder.array = holder, a
    return a


class Sub(gpuarray.GPUArray):
    pass


def _through_subclass(holder):
    def allocate(size):
        assert holder
        return driver.mem_alloc(size)

    holder.array = Sub((1000, 1000), np.float32, allocator=allocate)
    holder.more = holder.array + 1
    return holder.array


MAKERS = [value for name, value in sorted(globals().items()) if name.startswith("_through_")]


@needs_alone
@pytest.mark.parametrize("make", MAKERS, ids=lambda make: make.__name__)
def test_a_cycle_through_an_array_frees_its_memory(make):
    before = settled_memory()
    holder = Holder()
    gone = weakref.ref(holder)
    arrays = weakref.ref(make(holder))
    used = driver.mem_get_info()
    assert used[0] <= before[0] - 4_000_000
    gc.collect()
    assert gone() is holder, "collected while in use"
    del holder
    gc.collect()
    assert (gone(), arrays()) == (None, None)
    # Objects of an earlier test may have been freed as well.
    assert settled_memory()[0] >= before[0]


def test_what_is_still_used_is_kept():
    """Memory keeps its owner alive after the array that showed it to the collector is gone."""
    owned = Owned(4000)
    gone = weakref.ref(owned)
    a_gpu = gpuarray.GPUArray(1000, np.float32, gpudata=owned)
    a_gpu.fill(2)
    view = a_gpu[10:]
    flat = a_gpu.reshape(10, 100).ravel()
    owned.cycle = owned
    del owned, a_gpu
    gc.collect()
    assert gone() is not None
    assert (view.get() == 2).all()
    assert (flat.get() == 2).all()
    del view
    gc.collect()
    assert gone() is not None
    assert (flat.get() == 2).all()
    del flat
    gc.collect()
    assert gone() is None


@pytest.mark.parametrize("other", [lambda a: a[10:], lambda a: a.gpudata, lambda a: a.reshape(-1)])
def test_an_owner_is_kept_though_only_a_cycle_shows_it(other):
    owned = Owned(4000)
    gone = weakref.ref(owned)
    owned.array = gpuarray.GPUArray(1000, np.float32, gpudata=owned)
    owned.array.fill(2)
    still_used = other(owned.array)
    del owned
    gc.collect()
    assert gone() is not None
    assert gone().array is not None, "it was cleared"
    del still_used
    gc.collect()
    assert gone() is None


# The handle of each thread's own default stream. All drivers have it; the host backend does not.
PER_THREAD = 2
needs_external_streams = pytest.mark.skipif(
    BACKEND == "host", reason="the host backend takes no streams of other libraries"
)


@needs_external_streams
def test_a_cycle_through_the_owner_of_a_stream():
    holder = Holder()
    holder.stream = driver.Stream.from_handle(PER_THREAD, holder)
    gone = weakref.ref(holder)
    gc.collect()
    assert gone() is holder
    del holder
    gc.collect()
    assert gone() is None


@needs_external_streams
def test_the_owner_of_a_stream_is_kept_for_arrays_of_the_stream():
    holder = Holder()
    holder.stream = driver.Stream.from_handle(PER_THREAD, holder)
    a_gpu = cumath.sqrt(gpuarray.zeros(4), stream=holder.stream)
    gone = weakref.ref(holder)
    del holder
    gc.collect()
    assert gone() is not None
    assert gone().stream is not None, "it was cleared"
    a_gpu.fill(3)
    assert (a_gpu.get() == 3).all()
    del a_gpu
    gc.collect()
    assert gone() is None


@needs_external_streams
def test_memory_is_behind_the_work_of_a_stream_whose_owner_is_gone():
    holder = Holder()
    gone = weakref.ref(holder)
    stream = driver.Stream.from_handle(PER_THREAD, holder)
    a_gpu = gpuarray.zeros(4)
    a_gpu.fill(1, stream)
    holder.cycle = holder
    del holder
    gc.collect()
    assert gone() is not None
    del stream
    gc.collect()
    assert gone() is None
    assert (a_gpu.get() == 1).all()


def _with_linker(holder):
    holder.linker = _core.Linker(lambda *_: holder)


class Array(np.ndarray):
    """A numpy array that can be part of a cycle."""


def test_a_cycle_through_a_linker():
    holder = Holder()
    _with_linker(holder)
    gone = weakref.ref(holder)
    del holder
    gc.collect()
    assert gone() is None


def test_a_cycle_through_registered_memory():
    a = np.zeros(4096, np.float32).view(Array)
    gone = weakref.ref(a)
    a.registration = driver.register_host_memory(a).base
    del a
    gc.collect()
    assert gone() is None


def test_objects_that_are_being_made_are_visited():
    # CPython 3.11 and 3.12 may collect garbage between the allocation of an object and its
    # initialisation. Kept dictionaries make every one an allocation, so that every second or
    # third starts a collection.
    run_python("""
        import gc
        import numpy as np
        import pygpu.autoinit
        from pygpu import driver, gpuarray, tools

        class Derived(driver.Stream):
            pass

        arrays = [np.zeros(4096) for _ in range(60)]
        kept = [{} for _ in range(200)]
        gc.set_threshold(1, 1000, 1000)
        for i in range(60):
            kept += [
                driver.Stream(), driver.Event(), driver.Linker(), Derived(),
                gpuarray.empty(3, np.float32), driver.register_host_memory(arrays[i]),
                driver.mem_alloc(8), tools.DeviceMemoryPool(),
            ]
            kept += [[]] * (i % 2)
            kept.append([])
            if i % 3 == 0:
                kept.append([])
    """)
