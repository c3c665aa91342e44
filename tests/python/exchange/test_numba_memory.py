"""Streams, host memory, contexts and sharing of pygpu.cuda, with the rules of numba.cuda."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import gc
import operator
import pickle
import threading
from pathlib import Path

import numpy as np
import pytest
from device import needs_alone, settled_memory
from processes import run_python

from pygpu import cuda, driver
from pygpu.cuda.cudadrv import devicearray
from pygpu.cuda.cudadrv.driver import MemoryPointer, device_to_host, host_to_device

# -- streams, events -------------------------------------------------------------------------


def test_transfers_on_a_stream_with_pinned_memory():
    stream = cuda.stream()
    source, target = cuda.pinned_array(1000), cuda.pinned_array(1000)
    source[:] = np.arange(1000)
    with stream.auto_synchronize() as same:
        assert same is stream
        device = cuda.to_device(source, stream=stream)
        assert device.stream is stream
        device.copy_to_host(target, stream=stream)
    np.testing.assert_array_equal(target, source)


def test_auto_synchronize_passes_exceptions_on():
    stream = cuda.stream()
    with pytest.raises(KeyError), stream.auto_synchronize():
        raise KeyError


def test_streams_have_their_numbers_and_names():
    assert int(cuda.default_stream()) == 0
    assert int(cuda.legacy_default_stream()) == 1
    assert int(cuda.per_thread_default_stream()) == 2
    assert "Default CUDA stream" in repr(cuda.default_stream())
    own = cuda.stream()
    outside = cuda.external_stream(own.handle)
    assert outside.__cuda_stream__() == own.__cuda_stream__() == (0, own.handle)
    assert outside.external
    with pytest.raises(TypeError, match="ptr is of type str"):
        cuda.external_stream("7")
    # All functions of pygpu accept these streams.
    cuda.to_device(np.zeros(3)).fill(1, stream=own)


def test_every_default_stream_carries_work():
    for stream in (
        cuda.default_stream(),
        cuda.legacy_default_stream(),
        cuda.per_thread_default_stream(),
        0,
    ):
        device = cuda.to_device(np.arange(5), stream=stream)
        host = np.zeros(5, int)
        device.copy_to_host(host, stream=stream)
        cuda.synchronize()
        np.testing.assert_array_equal(host, np.arange(5))


def test_callbacks_come_in_turn_with_their_arguments():
    stream, done, seen = cuda.stream(), threading.Event(), []

    def callback(*arguments):
        seen.append(arguments)
        if len(seen) == 5:
            done.set()

    for number in range(4):
        stream.add_callback(callback, number)
    stream.add_callback(callback)
    assert done.wait(60)
    assert seen == [(stream, 0, number) for number in (0, 1, 2, 3, None)]
    with pytest.raises(TypeError, match="callback is of type int"):
        stream.add_callback(3)


def test_a_callback_that_fails_is_a_warning():
    run_python(
        """
        import warnings
        from pygpu import cuda
        warnings.simplefilter("error")
        stream, seen = cuda.stream(), []
        warnings.warn = lambda text, **_: seen.append(text)
        stream.add_callback(lambda *_: 1 / 0)
        stream.add_callback(lambda *_: print(seen))
        """
    ).stdout.index("ZeroDivisionError")


def test_streams_can_be_awaited():
    async def transfer(value):
        stream = cuda.stream()
        source, target = cuda.pinned_array(8), cuda.pinned_array(8)
        source[:] = value
        cuda.to_device(source, stream=stream).copy_to_host(target, stream=stream)
        assert await stream.async_done() is stream
        return target.mean()

    async def all_of_them():
        stream = cuda.stream()
        first, second = stream.async_done(), stream.async_done()
        first.cancel()
        await second
        return await asyncio.gather(*(transfer(value) for value in range(4)))

    assert asyncio.run(all_of_them()) == [0, 1, 2, 3]


def test_events():
    stream, start, end = cuda.stream(), cuda.event(), cuda.event()
    start.record(stream)
    cuda.to_device(np.arange(1000), stream=stream)
    end.record(stream)
    end.wait(cuda.stream())
    end.wait()
    end.synchronize()
    assert end.query()
    assert start.elapsed_time(end) == cuda.event_elapsed_time(start, end) >= 0
    untimed = cuda.event(timing=False)
    untimed.record()
    untimed.synchronize()
    with pytest.raises(driver.Error):
        untimed.elapsed_time(end)


# -- host memory -----------------------------------------------------------------------------


@pytest.mark.parametrize("make", [cuda.pinned_array, cuda.mapped_array, cuda.managed_array])
def test_host_arrays_are_numpys(make):
    for shape, order in ((5, "C"), ((), "C"), ((2, 3), "F"), (0, "C")):
        array = make(shape, np.float32, order=order)
        assert isinstance(array, np.ndarray)
        expected = np.empty(shape, np.float32, order)
        assert array.strides == expected.strides or not array.size
        array[...] = 3
        np.testing.assert_array_equal(cuda.to_device(np.array(array)).copy_to_host(), array)
    reversed_ = make(4, np.int64, strides=-8)
    reversed_[:] = [1, 2, 3, 4]
    assert reversed_[::-1].tolist() == [4, 3, 2, 1]
    with pytest.raises(TypeError, match="shape"):
        make(1.5)


@pytest.mark.parametrize("make", [cuda.mapped_array, cuda.managed_array])
def test_the_device_uses_mapped_and_managed_arrays(make):
    array = make((4, 5), np.float32)
    array[:] = 1
    view = cuda.as_cuda_array(array)
    view.fill(7)
    cuda.synchronize()
    np.testing.assert_array_equal(array, np.full((4, 5), 7))
    cuda.as_cuda_array(array[1:3, ::2]).fill(8)
    cuda.synchronize()
    assert array.sum() == 14 * 7 + 6 * 8
    np.testing.assert_array_equal(array.copy_to_host(), array)
    array += 1
    assert type(array) is type(array[1:])
    for result in (array + 1, array.sum(), np.sqrt(array), array.sum(axis=0)):
        assert type(result) in (np.ndarray, np.float32), "results lie in ordinary memory"
    assert not cuda.is_cuda_array(array.copy())
    stream = cuda.stream()
    assert make(3, stream=stream).__cuda_array_interface__["stream"] == stream.handle


def test_flags_of_mapped_arrays():
    for portable in (False, True):
        for wc in (False, True):
            array = cuda.mapped_array(4, portable=portable, wc=wc)
            array[:] = 2
            assert cuda.as_cuda_array(array)[3] == 2


def test_pinned_and_mapped_end_with_the_block():
    host = np.arange(100.0)
    for _ in range(2):
        with cuda.pinned(host, np.zeros((3, 4))):
            device = cuda.to_device(host)
        with cuda.mapped(host) as device:
            device.fill(5)
            cuda.synchronize()
            assert host.sum() == 500
        with contextlib.suppress(KeyError), cuda.mapped(host, np.zeros(3)) as (first, second):
            raise KeyError
        assert (first.shape, second.shape) == ((100,), (3,))
    with pytest.raises(TypeError, match="numpy arrays are needed"), cuda.pinned([1]):
        pass


def test_parts_of_arrays_are_mapped():
    host = np.arange(24.0).reshape(4, 6)
    with cuda.mapped(host[1:3, ::-2]) as device:
        np.testing.assert_array_equal(device.copy_to_host(), host[1:3, ::-2])


# -- contexts --------------------------------------------------------------------------------


def test_a_context_knows_its_memory():
    context = cuda.current_context()
    free, total = info = context.get_memory_info()
    assert 0 < info.free == free <= info.total == total
    assert context is cuda.gpus[0].get_primary_context()
    memory = context.memalloc(64)
    host_to_device(memory, np.arange(8.0), 64)
    part = memory.view(16, 40)
    target = np.zeros(3)
    device_to_host(target, part, 24)
    np.testing.assert_array_equal(target, [2, 3, 4])
    assert (part.owner, memory.refct) == (memory, 2)
    del part
    assert memory.refct == 1
    for start, stop in ((-1, 3), (0, 65), (5, 4)):
        with pytest.raises(ValueError, match=f"start is {start}"):
            memory.view(start, stop)
    memory.memset(3, 4)
    for count in (-1, 65):
        with pytest.raises(ValueError, match=f"count is {count}; 0 <= count <= 64"):
            memory.memset(1, count)
    with pytest.raises(ValueError, match="bytesize is -1"):
        context.memalloc(-1)
    with pytest.raises(ValueError, match="size is 65"):
        device_to_host(np.zeros(20), memory, 65)
    with pytest.raises(ValueError, match="the nbytes of src is 8"):
        host_to_device(memory, np.zeros(1), 9)


def test_a_finalizer_is_called_once():
    called = []
    pointer = MemoryPointer(None, 0xDEAD, 40, finalizer=lambda: called.append(1))
    view = pointer.view(8)
    del pointer
    gc.collect()
    assert called == [], "the view keeps the memory"
    del view
    assert called == [1]
    pointer = MemoryPointer(None, 0xDEAD, 40, finalizer=lambda: called.append(2))
    pointer.free()
    with pytest.raises(RuntimeError, match="freed already"):
        pointer.free()
    del pointer
    assert called == [1, 2]


def test_devices():
    device = cuda.get_current_device()
    assert (device.id, device.name) == (0, driver.Device(0).name())
    assert device == cuda.gpus[0] == cuda.select_device(0)
    assert device.compute_capability == driver.Device(0).compute_capability()
    assert device.from_identity(device.get_device_identity()) in list(cuda.list_devices())
    assert driver.Device(0).max_threads_per_block == device.MAX_THREADS_PER_BLOCK
    with pytest.raises(AttributeError):
        _ = device.no_such_thing
    with pytest.raises(IndexError, match="device"):
        cuda.select_device(len(cuda.gpus))
    with pytest.raises(RuntimeError, match="identity is"):
        device.from_identity({"pci_bus_id": 999})
    assert cuda.is_available()


def test_a_block_on_a_device_ends_where_it_began():
    before = driver.Context.get_current()
    for device in cuda.gpus:
        with device:
            assert cuda.current_context().device == device
            array = cuda.to_device(np.arange(4.0))
            assert array._ordinal == device.id
        np.testing.assert_array_equal(array.copy_to_host(), np.arange(4.0))
    assert driver.Context.get_current() is before


def test_detect_prints_the_devices(capsys):
    assert cuda.detect()
    printed = capsys.readouterr().out
    assert printed.startswith(f"Found {len(cuda.gpus)} CUDA devices")
    assert driver.Device(0).name() in printed


def test_closing_leaves_a_thread_usable():
    run_python(
        """
        import threading
        import numpy as np
        from pygpu import cuda
        def work():
            for _ in range(2):
                cuda.select_device(0)
                assert cuda.to_device(np.arange(3))[2] == 2
                cuda.close()
        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
        work()
        """
    )


@needs_alone
def test_freeing_is_deferred_until_the_outermost_block_ends():
    before = settled_memory()
    arrays = [cuda.device_array(1 << 20, np.uint8) for _ in range(3)]
    waiting = cuda.current_context().deallocations
    full = settled_memory()
    with cuda.defer_cleanup():
        with cuda.defer_cleanup():
            view = arrays[0][10:]
            del arrays[:]
            assert len(waiting) == 2, "the view keeps the third"
            del view
        assert (len(waiting), waiting.is_disabled) == (3, True)
        waiting.clear()
        assert len(waiting) == 3
        assert settled_memory(full) == full
    assert len(waiting) == 0
    assert settled_memory(before) == before
    array = cuda.device_array(8)
    with contextlib.suppress(KeyError), cuda.defer_cleanup():
        del array
        raise KeyError
    assert len(waiting) == 0


@needs_alone
def test_nothing_leaks():
    before = settled_memory()
    for _ in range(3):
        device = cuda.to_device(np.arange(1000.0))
        parts = list(device.split(300))
        _ = device.T.reshape(10, 100).ravel()[3:].gpu_data.view(8)
        _ = cuda.mapped_array(100), cuda.managed_array(100), cuda.pinned_array(100)
    del device, parts, _
    assert settled_memory(before) == before


# -- other processes -------------------------------------------------------------------------


@pytest.fixture
def shared():
    """Returns an array that other processes can open."""
    array = cuda.to_device(np.arange(24.0).reshape(4, 6))
    try:
        array.get_ipc_handle()
    except driver.Unsupported as error:
        pytest.skip(f"the backend shares no memory: {error}")
    return array


IMPORTER = """
    import base64, pickle, sys
    import numpy as np
    from pygpu import cuda
    handle = pickle.loads(base64.b64decode(sys.argv[1]))
    with handle as array:
        print(array.copy_to_host().tolist())
        try:
            handle.open()
        except ValueError as error:
            print(error)
        array[...] = 5
    with handle as array:
        print(array.shape)
    """


@pytest.mark.parametrize(
    "index",
    [(), (slice(1, 3),), (slice(None), slice(None, None, 2)), (slice(None, None, -1), 2)],
    ids=str,
)
def test_another_process_opens_a_part_and_writes_to_it(shared, index):
    part = shared[(*index, ...)]
    expected = np.arange(24.0).reshape(4, 6)
    handle = base64.b64encode(pickle.dumps(part.get_ipc_handle())).decode()
    printed = run_python(IMPORTER, handle).stdout.splitlines()
    values = expected[index]
    assert printed == [str(values.tolist()), "IpcHandle is already opened", str(values.shape)]
    expected[index] = 5
    np.testing.assert_array_equal(shared.copy_to_host(), expected)


def test_another_process_opens_the_bytes_of_a_handle(shared):
    handle = cuda.current_context().get_ipc_handle(shared[2:].gpu_data)
    assert (handle.offset, handle.size) == (96, 96)
    printed = run_python(
        """
        import sys
        from pygpu import cuda
        with cuda.open_ipc_array(bytes.fromhex(sys.argv[1]), (2, 6), float, offset=96) as array:
            print(array.copy_to_host().sum())
        for shape, offset in (((4, 6), 8), (25, 0), (1, 192)):
            try:
                with cuda.open_ipc_array(bytes.fromhex(sys.argv[1]), shape, float, offset=offset):
                    pass
            except ValueError as error:
                print("the allocation has" in str(error))
        """,
        handle.handle.reserved.hex(),
    ).stdout.split()
    assert printed == [str(np.arange(12.0, 24.0).sum()), "True", "True", "True"]


def test_handles_are_checked(shared):
    handle = shared.get_ipc_handle()
    with pytest.raises(ValueError, match="original process"):
        handle.open()
    with pytest.raises(ValueError, match="not opened"):
        handle.close()
    inner = pickle.loads(pickle.dumps(handle._ipc_handle))
    assert (inner.base, inner.size, inner.handle) == (None, 192, handle._ipc_handle.handle)
    with pytest.raises(ValueError, match=r"span 200; the size of the handle is 192"):
        inner.open_array(cuda.current_context(), 25, float)
    with pytest.raises(ValueError, match="length 63"):
        cuda.IpcHandle(None, bytes(63), 8)
    for size, offset in ((-1, 0), (8, -8), (1.5, 0)):
        with pytest.raises(ValueError, match="is"):
            cuda.IpcHandle(None, bytes(64), size, offset=offset)
    with pytest.raises(ValueError, match="no bytes"):
        devicearray.DeviceNDArray((0,), (8,), float).get_ipc_handle()


def test_the_example_runs():
    example = Path(__file__).parents[3] / "examples" / "numba_memory.py"
    printed = run_python(f"import runpy; runpy.run_path({str(example)!r}, run_name='__main__')")
    assert printed.stdout.splitlines()[1:] == [
        "mapped: [0 1 0 3 0 5 0 7]",
        "shared: [[0.0, 1.0, 2.0], [7.0, 7.0, 7.0]] the same memory: True",
        "split: [0 1 2 3 4] [5 6 7 8 9]",
        "free memory: True",
    ]


def test_what_other_libraries_ask_of_numbas_driver():
    assert cuda.cudadrv.driver.USE_NV_BINDING is True
    array = cuda.to_device(np.arange(5))
    address = array.device_ctypes_pointer
    assert int(address) == address.value == operator.index(address) == array.ptr
    pinned = cuda.mapped_array(4)
    assert int(pinned.device_ctypes_pointer) == pinned.device_ctypes_pointer.value
    manager = cuda.current_context().memory_manager
    manager.deallocations.clear()
    with cuda.defer_cleanup():
        del array
        assert len(manager.deallocations) == 1
    assert len(manager.deallocations) == 0
    assert manager.get_memory_info().total > 0
