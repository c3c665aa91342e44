"""Each kind of export with each way to end memory: no memory ends while its address is in use."""

from __future__ import annotations

import ctypes
import gc
import os
import weakref

import numpy as np
import pytest
from device import BACKEND, DEVICE, TEST_ALL
from processes import Peer
from tables import each_row

import PybindGPU
from pygpu import _core, arrow, cuda, driver, gpuarray, ipc, tools

NUMBERS = np.arange(1000, dtype=np.float32)
ON_HOST = BACKEND == "host"
MANAGED = bool(DEVICE.get_attribute(driver.device_attribute.MANAGED_MEMORY))
try:
    import pyarrow
except ImportError:
    pyarrow = None


# ---- memory, and the calls that end it ----------------------------------------------------------


class Memory:
    """An array, and the call that ends its memory explicitly."""

    def __init__(self, array, end, refused="still used by its address"):
        self.array, self.end, self.refused = array, end, refused
        self.array.set(NUMBERS)


def stream_ordered():
    array = gpuarray.empty(NUMBERS.shape, NUMBERS.dtype)
    return Memory(array, array.gpudata.free)


def plain():
    memory = driver.mem_alloc(NUMBERS.nbytes)
    return Memory(gpuarray.GPUArray(NUMBERS.shape, NUMBERS.dtype, gpudata=memory), memory.free)


def pitched():
    memory, _ = driver.mem_alloc_pitch(NUMBERS.nbytes, 1, 4)
    return Memory(gpuarray.GPUArray(NUMBERS.shape, NUMBERS.dtype, gpudata=memory), memory.free)


def managed():
    host = driver.managed_empty(NUMBERS.shape, NUMBERS.dtype)
    memory = host.base
    array = gpuarray.GPUArray(NUMBERS.shape, NUMBERS.dtype, gpudata=memory)
    return Memory(array, memory.free)


def pooled():
    pool = tools.DeviceMemoryPool()
    array = gpuarray.empty(NUMBERS.shape, NUMBERS.dtype, allocator=pool.allocate)

    def end():
        array.gpudata.free()
        # The next user of the block writes to it.
        pool.allocate(NUMBERS.nbytes)

    return Memory(array, end)


def of_numba():
    """Returns memory that another library frees with a finalizer."""
    memory = driver.mem_alloc(NUMBERS.nbytes)
    context = cuda.current_context()
    pointer = cuda.cudadrv.driver.MemoryPointer(
        context, int(memory), NUMBERS.nbytes, finalizer=memory.free
    )
    array = cuda.cudadrv.devicearray.DeviceNDArray(
        NUMBERS.shape, NUMBERS.strides, NUMBERS.dtype, gpu_data=pointer
    )
    return Memory(gpuarray.GPUArray.view(array), pointer.free)


MEMORIES = [stream_ordered, plain, pitched, pooled, of_numba, *[managed] * MANAGED]


# ---- exports, each with a reader if this process can read it ------------------------------------


class Described:
    """Another library's array, which keeps a description of the memory."""

    def __init__(self, array):
        self.__cuda_array_interface__ = array.__cuda_array_interface__


class Wrapped:
    """An array that requests the description at each access."""

    def __init__(self, array):
        self.array = array

    @property
    def __cuda_array_interface__(self):
        return self.array.__cuda_array_interface__ | {"strides": None}


def by_address(export):
    """Returns an export of which only the address is known."""
    return export, None


def column_of(array):
    return arrow.DeviceColumn.from_gpuarray(array)


EXPORTS = {
    "capsule": lambda a: by_address(a.__dlpack__()),
    "capsule of version 1": lambda a: by_address(a.__dlpack__(max_version=(1, 0))),
    "consumed capsule": lambda a: by_address(_core.dlpack_tensor(a.__dlpack__())[0]),
    "array by DLPack": lambda a: readable(gpuarray.from_dlpack(a)),
    "view of one by DLPack": lambda a: readable(gpuarray.from_dlpack(a)[...]),
    "description": lambda a: by_address(a.__cuda_array_interface__),
    "changed description": lambda a: by_address(a.__cuda_array_interface__ | {"strides": None}),
    "array by a description": lambda a: readable(gpuarray.from_cuda_array_interface(Described(a))),
    "array by a wrapper": lambda a: readable(gpuarray.from_cuda_array_interface(Wrapped(a))),
    "numba's array by a description": lambda a: readable(
        cuda.from_cuda_array_interface(a.__cuda_array_interface__)
    ),
    "numba's array by a wrapper": lambda a: readable(cuda.as_cuda_array(Wrapped(a))),
    "DLPack of one by a description": lambda a: by_address(
        gpuarray.from_cuda_array_interface(Wrapped(a)).__dlpack__()
    ),
    "Arrow's buffer by a wrapper": lambda a: (
        lambda buffer: (buffer, lambda: np.frombuffer(buffer.to_pybytes(), np.float32))
    )(arrow.Context().buffer_from_object(Wrapped(a))),
    "PybindGPU's array": lambda a: by_address(
        PybindGPU.gpuarray.GPUArray(allocator=PybindGPU.gpuarray.Allocator(Wrapped(a)))
    ),
    "Arrow's structures": lambda a: by_address(a.__arrow_c_device_array__()),
    "consumed structures": lambda a: by_address(
        _core.arrow_device_array(a.__arrow_c_device_array__()[1])[0]
    ),
    "Arrow's column": lambda a: (lambda column: (column, lambda: column.to_gpuarray().get()))(
        arrow.from_device_array(column_of(a))
    ),
    "descriptor": lambda a: by_address(a.ipc_handle(copy=False)),
    "column for processes": lambda a: by_address(ipc.export_column(a, copy=False)),
    "numba's handle": lambda a: by_address(cuda.as_cuda_array(a).get_ipc_handle()),
    "Arrow's handle": lambda a: by_address(arrow.Context().buffer_from_object(a).export_for_ipc()),
    "buffer": lambda a: (
        lambda view: (view, (lambda: np.frombuffer(view, np.float32)) if ON_HOST else None)
    )(owner_of(a).as_buffer(NUMBERS.nbytes)),
}
if ON_HOST:
    EXPORTS["numpy"] = lambda a: (lambda it: (it, lambda: it))(np.from_dlpack(a))
    EXPORTS["numpy's view"] = lambda a: (lambda it: (it, lambda: it))(np.from_dlpack(a)[:][...])
    EXPORTS["memoryview of numpy's"] = lambda a: (lambda it: (it, lambda: np.asarray(it)))(
        memoryview(np.from_dlpack(a))
    )
if ON_HOST and pyarrow is not None:
    EXPORTS["pyarrow's array"] = lambda a: (lambda it: (it, lambda: np.asarray(it)))(
        pyarrow.array(a)
    )
    EXPORTS["pyarrow's batch"] = lambda a: (lambda it: (it, lambda: np.asarray(it.column(0))))(
        pyarrow.record_batch(arrow.DeviceRecordBatch.from_columns({"x": column_of(a)}))
    )
    EXPORTS["pyarrow's slice"] = lambda a: (lambda it: (it, lambda: np.asarray(it)))(
        pyarrow.array(a).slice(0)
    )
# Exports for other processes are closed explicitly.
CLOSED = ("descriptor", "column for processes")


def readable(array):
    return array, lambda: array.get()


def owner_of(array):
    """Returns the allocation that contains an array."""
    while array.base is not None:
        array = array.base
    if not hasattr(array.gpudata, "as_buffer"):
        pytest.skip("other libraries' memory has no such buffer")
    return array.gpudata


def exported(name, array):
    try:
        return EXPORTS[name](array)
    except driver.LogicError as error:
        if any(text in str(error) for text in ("plain memory", "cannot be shared")):
            return None
        raise


def exported_or_skipped(name, array):
    found = exported(name, array)
    return found or pytest.skip("the memory cannot be shared with other processes")


@each_row("make", MEMORIES, ids=lambda make: make.__name__)
@pytest.mark.parametrize("name", EXPORTS)
def test_memory_does_not_end_while_an_export_of_it_lives(name, make):
    memory = make()
    export, read = exported_or_skipped(name, memory.array)
    for _ in range(2):
        with pytest.raises(driver.LogicError, match=memory.refused):
            memory.end()
    others = [make() for _ in range(4)]
    for other in others:
        other.array.fill(-1)
    # The memory is unchanged on both sides.
    np.testing.assert_array_equal(memory.array.get(), NUMBERS)
    if read is not None:
        np.testing.assert_array_equal(read(), NUMBERS)
    if name in CLOSED:
        export.close()
    del export, read
    gc.collect()
    memory.end()
    with pytest.raises(driver.LogicError, match="freed"):
        memory.array.get()


@each_row("make", MEMORIES, ids=lambda make: make.__name__)
@pytest.mark.parametrize("name", EXPORTS)
def test_memory_stays_when_only_an_export_refers_to_it(name, make):
    memory = make()
    export, read = exported_or_skipped(name, memory.array)
    del memory
    gc.collect()
    pool = tools.DeviceMemoryPool()
    for allocator in (None, pool.allocate):
        others = [gpuarray.to_gpu(-NUMBERS, allocator) for _ in range(10)]
    driver.Context.trim_memory()
    if read is not None:
        np.testing.assert_array_equal(read(), NUMBERS)
    assert len(others) == 10
    if name in CLOSED:
        export.close()


@pytest.mark.parametrize("name", EXPORTS)
def test_a_pool_lets_go_of_no_block_that_is_exported(name):
    pool = tools.DeviceMemoryPool()
    array = gpuarray.to_gpu(NUMBERS, allocator=pool.allocate)
    export, read = exported_or_skipped(name, array)
    del array
    gc.collect()
    for let_go in (pool.free_held, pool.stop_holding, driver.Context.trim_memory):
        let_go()
        assert (pool.active_blocks, pool.held_blocks) == (1, 0)
        gpuarray.to_gpu(-NUMBERS, allocator=pool.allocate)
        if read is not None:
            np.testing.assert_array_equal(read(), NUMBERS)
    if name in CLOSED:
        export.close()
    del export, read
    gc.collect()
    assert pool.active_blocks == 0


@each_row("name", EXPORTS)
def test_what_was_freed_cannot_be_exported(name):
    for make in MEMORIES:
        memory = make()
        memory.end()
        # Other memory may already have its address.
        with pytest.raises(driver.LogicError):
            EXPORTS[name](memory.array)


# ---- memory of another process ------------------------------------------------------------------

EXPORTER = """
    import sys
    import numpy as np
    import pygpu.autoinit
    from pygpu import gpuarray, ipc
    array = ipc.share(gpuarray.to_gpu(np.arange(1000, dtype=np.float32)))
    print(array.ipc_handle().to_json(), flush=True)
    for line in sys.stdin:
        print("done", flush=True)
"""


@pytest.fixture(scope="module")
def peer():
    with Peer(EXPORTER) as process:
        process.text = process.read()
        yield process


@pytest.mark.parametrize("name", [name for name in EXPORTS if name not in CLOSED])
def test_an_opened_array_is_not_closed_while_an_export_of_it_lives(name, peer):
    array = ipc.open(peer.text)
    if name == "buffer":
        view = array.base.as_buffer(NUMBERS.nbytes)
        export, read = view, (lambda it=view: np.frombuffer(it, np.float32)) if ON_HOST else None
        del view
    else:
        export, read = exported_or_skipped(name, array)
    for _ in range(2):
        with pytest.raises(driver.LogicError, match="still used by its address"):
            array.close()
    with pytest.raises(driver.LogicError, match="still used by its address"), array:
        pass
    np.testing.assert_array_equal(array.get(), NUMBERS)
    if read is not None:
        np.testing.assert_array_equal(read(), NUMBERS)
    del export, read
    gc.collect()
    array.close()
    array.close()
    with pytest.raises(driver.LogicError, match="freed"):
        array.get()


# ---- page-locked memory -------------------------------------------------------------------------


@pytest.mark.parametrize("argument", ["gpudata", "base"])
@pytest.mark.parametrize("make", [driver.pagelocked_empty, tools.PageLockedMemoryPool().allocate])
def test_page_locked_memory_stays_with_an_array_on_the_device(make, argument):
    host = make(NUMBERS.shape, NUMBERS.dtype)
    host[:] = NUMBERS
    owner, address = host.base, host.ctypes.data
    if argument == "gpudata" and not hasattr(owner, "get_device_pointer"):
        pytest.skip("the allocation has no address")
    given = {"gpudata": owner} if argument == "gpudata" else {"gpudata": address, "base": owner}
    array = gpuarray.GPUArray(NUMBERS.shape, NUMBERS.dtype, **given)[:]
    del host
    gc.collect()
    owner.free()
    del owner, given
    for _ in range(5):
        make(NUMBERS.shape, NUMBERS.dtype)[:] = -1
    np.testing.assert_array_equal(array.get(), NUMBERS)


def test_memory_is_not_unregistered_under_an_array_on_the_device():
    host = driver.aligned_zeros(4096, np.uint8)
    locked = driver.register_host_memory(host, driver.mem_host_register_flags.DEVICEMAP)
    owner = locked.base
    array = gpuarray.GPUArray(4096, np.uint8, gpudata=owner.get_device_pointer(), base=owner)[:10]
    with pytest.raises(driver.LogicError, match="arrays on the device"):
        owner.unregister()
    np.testing.assert_array_equal(array.get(), host[:10])
    del array
    owner.unregister()
    assert "unregistered" in repr(owner)


def test_mapped_arrays_end_with_their_block():
    host = NUMBERS.copy()
    with cuda.mapped(host) as array:
        view = array[10:]
    for ended in (array, view):
        with pytest.raises(driver.LogicError, match="freed"):
            ended.copy_to_host()
    del array, view, ended
    used = pytest.raises(driver.LogicError, match="still used by its address")
    with used, cuda.mapped(host) as array:
        capsule = array.__dlpack__()
    # It is mapped as long as anything uses it.
    np.testing.assert_array_equal(array.copy_to_host(), NUMBERS)
    del array, capsule, used
    gc.collect()
    with cuda.mapped(host, NUMBERS.copy()) as (array, other):
        assert array.copy_to_host()[7] == other.copy_to_host()[7] == 7


# ---- other libraries' objects, in every argument ------------------------------------------------


class Pointer:
    """Memory in numba's form."""

    def __init__(self, memory, size):
        self.memory, self.size = memory, size
        self.device_ctypes_pointer = ctypes.c_size_t(int(memory))
        self.handle = self.device_pointer = self.device_ctypes_pointer

    def __index__(self):
        return self.device_ctypes_pointer.value

    def __cuda_array_interface__(self):
        raise AttributeError


class Owner:
    """An object that represents memory."""


def pointer_with_finalizer(memory, gone, owner=None):
    return cuda.cudadrv.driver.MemoryPointer(
        cuda.current_context(),
        int(memory),
        NUMBERS.nbytes,
        owner=owner,
        finalizer=lambda: gone.append(1),
    )


def device_array(gpu_data):
    layout = (NUMBERS.shape, NUMBERS.strides, NUMBERS.dtype)
    return cuda.cudadrv.devicearray.DeviceNDArray(*layout, gpu_data=gpu_data)


def watched(gone, kind, *arguments):
    result = kind(*arguments)
    weakref.finalize(result, gone.append, 1)
    return result


def gpu(**arguments):
    return gpuarray.GPUArray(NUMBERS.shape, NUMBERS.dtype, **arguments)


def description(memory):
    return {
        "shape": NUMBERS.shape,
        "typestr": NUMBERS.dtype.str,
        "data": (int(memory), False),
        "version": 3,
    }


def object_described(memory, gone):
    result = watched(gone, Owner)
    result.__cuda_array_interface__ = description(memory)
    return result


FORMS = {
    "MemoryPointer(finalizer=)": lambda m, gone: device_array(pointer_with_finalizer(m, gone)),
    "one with an owner": lambda m, gone: device_array(pointer_with_finalizer(m, gone, Owner())),
    "one of known memory": lambda m, gone: device_array(pointer_with_finalizer(m, gone, m)),
    "one of an array": lambda m, gone: device_array(
        pointer_with_finalizer(m, gone, gpu(gpudata=m))
    ),
    "its view": lambda m, gone: device_array(pointer_with_finalizer(m, gone).view(0)),
    "its own()": lambda m, gone: device_array(pointer_with_finalizer(m, gone).own()),
    "its elements": lambda m, gone: pointer_with_finalizer(m, gone).elements.view(np.float32),
    "one as an owner": lambda m, gone: device_array(
        cuda.cudadrv.driver.MemoryPointer(
            cuda.current_context(),
            int(m),
            NUMBERS.nbytes,
            owner=pointer_with_finalizer(m, gone),
        )
    ),
    "one as gpudata": lambda m, gone: gpu(gpudata=pointer_with_finalizer(m, gone)),
    "one for from_array_like": lambda m, gone: cuda.cudadrv.devicearray.DeviceNDArray(
        NUMBERS.shape, NUMBERS.strides, NUMBERS.dtype, 0, pointer_with_finalizer(m, gone)
    ),
    "one for Arrow": lambda m, gone: arrow.CudaBuffer.from_numba(
        pointer_with_finalizer(m, gone)
    ).to_gpuarray(np.float32),
    "the owner of a MemoryPointer": lambda m, gone: device_array(
        cuda.cudadrv.driver.MemoryPointer(
            cuda.current_context(), int(m), NUMBERS.nbytes, owner=watched(gone, Owner)
        )
    ),
    "numba's own pointer": lambda m, gone: device_array(watched(gone, Pointer, m, NUMBERS.nbytes)),
    "gpudata": lambda m, gone: gpu(gpudata=watched(gone, Pointer, m, NUMBERS.nbytes)),
    "gpudata and base": lambda m, gone: gpu(
        gpudata=watched(gone, Pointer, m, NUMBERS.nbytes), base=m
    ),
    "base": lambda m, gone: gpu(gpudata=int(m), base=watched(gone, Owner)),
    "base of known memory": lambda m, gone: gpu(gpudata=m, base=watched(gone, Owner)),
    "owner of a description": lambda m, gone: cuda.from_cuda_array_interface(
        description(m), owner=watched(gone, Owner)
    ),
    "object with a description": lambda m, gone: gpuarray.from_cuda_array_interface(
        object_described(m, gone)
    ),
    "one for numba": lambda m, gone: cuda.as_cuda_array(object_described(m, gone)),
    "one for an Arrow buffer": lambda m, gone: (
        arrow.Context().buffer_from_object(object_described(m, gone)).to_gpuarray(np.float32)
    ),
    "base of an Arrow buffer": lambda m, gone: (
        arrow.Context()
        .foreign_buffer(int(m), NUMBERS.nbytes, watched(gone, Owner))
        .to_gpuarray(np.float32)
    ),
    "allocator's result": lambda m, gone: gpuarray.empty(
        NUMBERS.shape, NUMBERS.dtype, lambda size: watched(gone, Pointer, m, size)
    ),
}

LAST_VIEWS = {
    "itself": lambda a: a,
    "a slice": lambda a: a[:],
    "a view of a view": lambda a: gpuarray.GPUArray.view(a[:], np.float32)[:][...],
    "a reshaped view": lambda a: a.reshape(10, 100).reshape(-1),
    "an array over it by DLPack": lambda a: gpuarray.from_dlpack(a),
    "one by its description": lambda a: gpuarray.from_cuda_array_interface(Wrapped(a)),
    "numba's array": lambda a: cuda.as_cuda_array(a)[:],
    "numba's memory": lambda a: device_array(cuda.as_cuda_array(a).gpu_data),
    "an Arrow buffer": lambda a: arrow.Context().buffer_from_object(a)[:].to_gpuarray(np.float32),
    "a column": lambda a: arrow.from_device_array(column_of(a)).to_gpuarray(),
}


# Each form with some of the views, so that each view occurs with many forms; or with all.
FORMS_AND_VIEWS = [
    (form, view)
    for number, form in enumerate(FORMS)
    for place, view in enumerate(LAST_VIEWS)
    if TEST_ALL or (number + place) % 3 == 0
]


@each_row(("form", "view"), FORMS_AND_VIEWS)
def test_an_object_is_kept_until_the_last_view_goes(form, view):
    memory, gone = driver.mem_alloc(NUMBERS.nbytes), []
    driver.memcpy_htod(memory, NUMBERS)
    last = LAST_VIEWS[view](FORMS[form](memory, gone))
    gc.collect()
    assert gone == []
    np.testing.assert_array_equal(last.get(), NUMBERS)
    del last
    gc.collect()
    assert gone == [1]


# ---- random programs ----------------------------------------------------------------------------


class Held:
    """The model of one memory: its elements, the call that ends it, and its live exports."""

    def __init__(self, make):
        self.name = make.__name__
        memory = make()
        self.array, self.end = memory.array, memory.end
        self.expected, self.exports, self.ended = NUMBERS.copy(), [], False

    def check(self, context):
        for what, _, read in self.exports:
            if read is not None:
                np.testing.assert_array_equal(read(), self.expected, err_msg=f"{context}: {what}")
        if self.array is not None and not self.ended:
            np.testing.assert_array_equal(self.array.get(), self.expected, err_msg=context)


def run_program(seed, steps):
    """Exports, writes, drops and ends memory at random; compares every byte with numpy."""
    rng = np.random.default_rng(seed)
    draw = lambda items: items[int(rng.integers(len(items)))]  # noqa: E731
    memories, refused, ended = [], 0, 0
    for step in range(steps):
        context = f"seed {seed}, step {step}"
        act = draw(["make", "export", "export", "again", "write", "drop", "drop", "forget", "end"])
        if act == "make" or not memories:
            memories = memories[-6:]
            memories.append(Held(draw(MEMORIES)))
            continue
        held = draw(memories)
        arrays = [it for _, it, _ in held.exports if isinstance(it, gpuarray.GPUArray)]
        if held.array is not None and not held.ended:
            arrays.append(held.array)
        if act in ("export", "again") and arrays:
            # An export may itself be exported again.
            source = draw(arrays) if act == "again" else arrays[-1]
            name = draw([name for name in EXPORTS if name not in CLOSED])
            if name == "buffer" and (source is not held.array or held.name == "of_numba"):
                continue
            found = exported(name, source)
            if found is not None:
                held.exports.append((name, *found))
            del source, found
        elif act == "write" and arrays:
            held.expected[:] = rng.integers(100, size=NUMBERS.size)
            draw(arrays)[...] = held.expected
            driver.Context.synchronize()
        elif act == "drop" and held.exports:
            del held.exports[int(rng.integers(len(held.exports)))]
        elif act == "forget" and held.exports:
            # From here on only the exports keep the memory alive, even when it is ended
            # explicitly.
            held.array = held.end = None
        elif act == "end" and held.end is not None and not held.ended:
            del arrays
            gc.collect()
            if held.exports:
                with pytest.raises(driver.LogicError, match="still used by its address"):
                    held.end()
            else:
                held.end()
                held.ended = True
            refused, ended = refused + (not held.ended), ended + held.ended
            noise = gpuarray.empty(NUMBERS.shape, NUMBERS.dtype)
            noise.fill(-1)
        arrays = None
        for it in memories:
            it.check(context)
    return refused, ended


def test_random_programs_end_no_memory_that_is_exported():
    count = int(os.environ.get("PYGPU_EXPORT_PROGRAMS", 200 if TEST_ALL else 5))
    found = np.sum([run_program(seed, 80) for seed in range(count)], axis=0)
    assert (found > count).all(), found
