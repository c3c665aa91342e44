"""Arrays that processes share: descriptors in both directions, and the end of a process."""

from __future__ import annotations

import json
import os
import pickle
import signal

import numpy as np
import pytest
from device import ALONE, BACKEND, needs_alone, settled_memory
from processes import Peer, run_python
from shared_arrays import rounds, shared

from pygpu import driver, gpuarray, ipc

needs_host = pytest.mark.skipif(BACKEND != "host", reason="what the host's own memory promises")

# Opens the descriptors that it receives, and prints the elements.
READER = """
    import sys
    import numpy as np
    import pygpu.autoinit
    from pygpu import driver, ipc
    for line in sys.stdin:
        command, _, text = line.rstrip("\\n").partition(" ")
        try:
            if command == "open":
                array = ipc.open(text)
                print(array.get().tolist(), flush=True)
            elif command == "add":
                array += int(text)
                driver.Context.synchronize()
                print("added", flush=True)
            elif command == "read":
                print(array.get().tolist(), flush=True)
            elif command == "close":
                array.close()
                print("closed", flush=True)
        except driver.Error as error:
            print(f"{type(error).__name__}: {error}", flush=True)
"""

# Exports an array, and keeps it until it receives a command to release it.
EXPORTER = """
    import sys
    import numpy as np
    import pygpu.autoinit
    from pygpu import driver, gpuarray, ipc
    array = ipc.share(gpuarray.to_gpu(np.arange(1000, dtype=np.int32)))
    descriptor = array.ipc_handle()
    print(descriptor.to_json(), flush=True)
    for line in sys.stdin:
        if line == "release\\n":
            del array
            descriptor.close()
            driver.Context.synchronize()
        print("done", flush=True)
"""


# ---- memory that cannot be shared ---------------------------------------------------------------


def test_stream_ordered_memory_is_exported_through_a_copy_or_refused():
    a = gpuarray.to_gpu(np.arange(10, dtype=np.int64))
    with pytest.raises(driver.LogicError, match=r"ipc.empty.*ipc.share"):
        a.ipc_handle(copy=False)
    # The warning names the remedies, and points to the program's line.
    with pytest.warns(UserWarning, match=r"ipc.empty.*ipc.share") as warned:
        descriptor = a[2:].ipc_handle()
    assert [it.filename for it in warned] == [__file__]
    with pytest.warns(UserWarning, match=r"ipc.empty.*ipc.share"):
        ipc.export_column(a[2:]).close()
    with descriptor, ipc.open(descriptor) as copy:
        assert copy.ptr != a[2:].ptr
        copy += 1
        np.testing.assert_array_equal(copy.get(), np.arange(2, 10) + 1)
        np.testing.assert_array_equal(a.get(), np.arange(10))
    own = ipc.share(a)
    with own.ipc_handle(copy=False) as descriptor, ipc.open(descriptor) as same:
        assert same.ptr == own.ptr
    with own.ipc_handle(copy=True) as descriptor, ipc.open(descriptor) as copy:
        assert copy.ptr != own.ptr
    with pytest.raises(TypeError, match="array"):
        ipc.export(np.zeros(3))


def test_a_shared_copy_keeps_order_and_elements():
    host = np.arange(24, dtype=np.float32).reshape(2, 3, 4)
    for values in (host, host.T, np.asfortranarray(host)):
        a = ipc.share(gpuarray.to_gpu(values))
        np.testing.assert_array_equal(a.get(), values)
        assert a.strides == values.strides
    a = ipc.share(gpuarray.to_gpu(host)[:, ::-1, ::2])
    np.testing.assert_array_equal(a.get(), host[:, ::-1, ::2])
    assert a.flags.c_contiguous


def test_another_vendor_or_device_is_refused():
    with ipc.empty(4).ipc_handle() as descriptor:
        other = "hip" if BACKEND != "hip" else "cuda"
        parts = descriptor.to_dict()
        with pytest.raises(driver.LogicError, match=f"vendor is {other}; this process uses"):
            ipc.open(ipc.Descriptor.from_dict(parts | {"vendor": other}))
        with pytest.raises(driver.LogicError, match="device of the descriptor is 99"):
            ipc.open(ipc.Descriptor.from_dict(parts | {"device": 99}))
        with pytest.raises(driver.LogicError, match="device is 99"):
            ipc.open(descriptor, device=99)
        with pytest.raises(driver.LogicError, match="the allocation has 32"):
            ipc.open(ipc.Descriptor.from_dict(parts | {"nbytes": 1000}))
        with pytest.raises(TypeError, match="Descriptor is needed"):
            ipc.open(5)
        for bad in ({}, parts | {"more": 1}, "{", "[]", b"\xff", descriptor.to_json()[:-1]):
            with pytest.raises((TypeError, ValueError)):
                ipc.open(bad)


@pytest.mark.skipif(driver.Device.count() < 2, reason="one device")
def test_an_array_of_another_device_is_a_copy():
    with shared(np.arange(12, dtype=np.int32)).ipc_handle() as descriptor:
        copy = ipc.open(descriptor, device=1)
        assert copy._ordinal == 1
        np.testing.assert_array_equal(copy.get(), np.arange(12))


# ---- two processes ------------------------------------------------------------------------------


def test_both_processes_see_the_same_memory():
    a = shared(np.arange(20, dtype=np.int32))
    with a[3:15:2].ipc_handle() as descriptor, Peer(READER) as peer:
        assert peer.ask(f"open {descriptor.to_json()}") == str(list(range(3, 15, 2)))
        assert peer.ask("add 100") == "added"
        expected = np.arange(20)
        expected[3:15:2] += 100
        np.testing.assert_array_equal(a.get(), expected)
        a -= 1
        driver.Context.synchronize()
        assert peer.ask("read") == str((expected - 1)[3:15:2].tolist())
        assert peer.ask("close") == "closed"
        assert "freed" in peer.ask("read")
        # Opened again after it was closed.
        assert peer.ask(f"open {descriptor.to_json()}") == str((expected - 1)[3:15:2].tolist())


def test_opened_twice_each_has_an_end_of_its_own():
    with Peer(EXPORTER) as peer:
        descriptor = ipc.Descriptor.from_json(peer.read())
        first, second = ipc.open(descriptor), ipc.open(descriptor)
        view = first[10:]
        first.close()
        first.close()
        with pytest.raises(driver.LogicError, match="freed"):
            view.get()
        with pytest.raises(driver.LogicError, match="freed"):
            first.get()
        np.testing.assert_array_equal(second.get(), np.arange(1000))
        tail = second[990:]
        del second
        # A view keeps the memory open.
        np.testing.assert_array_equal(tail.get(), np.arange(990, 1000))


def test_an_opened_array_is_an_array():
    with Peer(EXPORTER) as peer, ipc.open(ipc.Descriptor.from_json(peer.read())) as a:
        assert isinstance(a, gpuarray.GPUArray)
        assert int(gpuarray.sum(a).get()) == 499500
        np.testing.assert_array_equal((a[::-1] + a).get(), np.full(1000, 999))
        # It can be exported again only through a copy.
        with pytest.raises(driver.LogicError, match="copy is False"):
            a.ipc_handle(copy=False)


@needs_alone
def test_an_exporter_that_is_killed_leaves_the_memory_to_whoever_has_it():
    with Peer(EXPORTER) as peer:
        descriptor = ipc.Descriptor.from_json(peer.read())
        a = ipc.open(descriptor)
        peer.kill()
        a += 1
        np.testing.assert_array_equal(a.get(), np.arange(1000) + 1)
        a.close()
        with pytest.raises(driver.Error):
            ipc.open(descriptor)


def test_an_importer_that_is_killed_leaves_the_exporter_alone():
    a = shared(np.arange(20, dtype=np.int32))
    with a.ipc_handle() as descriptor, Peer(READER) as peer:
        peer.ask(f"open {descriptor.to_json()}")
        peer.ask("add 5")
        os.kill(peer.process.pid, signal.SIGKILL)
        peer.process.wait()
        np.testing.assert_array_equal(a.get(), np.arange(20) + 5)
        with Peer(READER) as another:
            assert another.ask(f"open {descriptor.to_json()}") == str((np.arange(20) + 5).tolist())


def test_the_exporter_keeps_what_it_exported_until_it_lets_go():
    with Peer(READER) as peer:
        a = shared(np.arange(8, dtype=np.int32))
        descriptor = a.ipc_handle()
        text = descriptor.to_json()
        del a
        assert peer.ask(f"open {text}") == str(list(range(8)))
        peer.ask("close")
        # Closing a copy of a descriptor does not release the export.
        pickle.loads(pickle.dumps(descriptor)).close()
        assert peer.ask(f"open {text}") == str(list(range(8)))


@needs_host
def test_what_was_let_go_cannot_be_opened_and_reads_as_zeros():
    with Peer(EXPORTER) as peer:
        descriptor = ipc.Descriptor.from_json(peer.read())
        with ipc.open(descriptor) as a:
            assert peer.ask("release") == "done"
            np.testing.assert_array_equal(a.get(), np.zeros(1000))
        with pytest.raises(driver.LogicError, match="freed"):
            ipc.open(descriptor)


@needs_host
def test_mutated_handles_are_refused():
    generator = np.random.default_rng(64)
    with Peer(EXPORTER) as peer:
        descriptor = ipc.Descriptor.from_json(peer.read())
        files = len(os.listdir("/proc/self/fd"))
        for _ in range(rounds()):
            handle = bytearray(descriptor.handle)
            for at in generator.integers(0, 64, int(generator.integers(1, 4))):
                handle[at] ^= int(generator.integers(1, 256))
            if bytes(handle) == descriptor.handle:
                continue
            with pytest.raises(driver.Error):
                driver.IPCMemoryHandle(handle)
        # The handle with other descriptors of that process, another process, and no process.
        for at, number in ((24, 0), (24, 1), (12, 1), (12, os.getpid()), (12, 2**31)):
            handle = bytearray(descriptor.handle)
            handle[at : at + 4] = number.to_bytes(4, "little")
            with pytest.raises(driver.Error):
                driver.IPCMemoryHandle(handle)
        assert len(os.listdir("/proc/self/fd")) == files
        assert ipc.open(descriptor).get()[7] == 7


@needs_host
def test_nothing_is_left_behind():
    def names():
        # Tests in other processes create Python semaphores at the same time.
        return sorted(it for it in os.listdir("/dev/shm") if not it.startswith("sem."))

    def files():
        return len(os.listdir("/proc/self/fd"))

    before = names()
    with Peer(EXPORTER) as peer:
        descriptor = ipc.Descriptor.from_json(peer.read())
        ipc.open(descriptor).close()
        at_first, memory = files(), settled_memory()
        for _ in range(300):
            with ipc.open(descriptor) as a:
                assert a.get()[3] == 3
        for _ in range(300):
            ipc.open(descriptor)
            with ipc.empty(1 << 21, np.uint8).ipc_handle():
                pass
            with ipc.empty(5 << 20, np.uint8).ipc_handle():
                pass
        assert settled_memory(memory) == memory
        assert files() <= at_first + 1
        peer.kill()
    with open("/proc/self/maps") as maps:
        text = maps.read()
    assert descriptor.handle[32:48].hex() not in text
    assert names() == before


@needs_alone
def test_shared_memory_counts():
    before = settled_memory()
    a = ipc.empty(3 << 20, np.uint8)
    assert settled_memory() == (before[0] - (3 << 20), before[1])
    with a.ipc_handle():
        del a
        assert settled_memory() == (before[0] - (3 << 20), before[1])
    assert settled_memory(before) == before
    assert ALONE


@needs_host
def test_small_arrays_need_few_files():
    before = len(os.listdir("/proc/self/fd"))
    arrays = [ipc.empty(10, np.float32) for _ in range(1000)]
    assert len(os.listdir("/proc/self/fd")) <= before + 2
    assert len({array.ptr for array in arrays}) == 1000


@needs_host
def test_large_blocks_leave_file_descriptors_to_the_program():
    run_python(
        """
        import os, resource
        import pygpu.autoinit
        from pygpu import driver
        used = len(os.listdir("/proc/self/fd"))
        hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
        resource.setrlimit(resource.RLIMIT_NOFILE, (used + 60, hard))
        blocks = [driver.mem_alloc(5 << 20) for _ in range(100)]
        files = [open(os.devnull) for _ in range(20)]
        driver.memset_d8(blocks[-1], 7, 5 << 20)
        """
    )


@needs_host
def test_without_file_descriptors_memory_is_private():
    run_python(
        """
        import resource
        import numpy as np, pygpu.autoinit
        from pygpu import driver, gpuarray, ipc
        gpuarray.zeros(4).get()
        # What is used below has to be imported while files can be opened.
        driver.from_device(gpuarray.zeros(1), 1, np.uint8)
        used = len(__import__("os").listdir("/proc/self/fd"))
        hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
        resource.setrlimit(resource.RLIMIT_NOFILE, (used - 1, hard))
        memory = driver.mem_alloc(1000)
        driver.memset_d8(memory, 7, 1000)
        assert driver.from_device(memory, 1000, np.uint8).tolist() == [7] * 1000
        try:
            driver.mem_get_ipc_handle(memory)
        except driver.LogicError as error:
            assert "cannot be shared" in str(error), error
        else:
            raise AssertionError("it was shared")
        memory.free()
        """
    )


@needs_host
def test_a_forked_child_opens_what_its_parent_exported():
    run_python(
        """
        import os
        import numpy as np, pygpu.autoinit
        from pygpu import gpuarray, ipc
        a = ipc.share(gpuarray.to_gpu(np.arange(10, dtype=np.int32)))
        descriptor = a.ipc_handle()
        child = os.fork()
        if child == 0:
            try:
                with ipc.open(descriptor) as b:
                    b += 1
                    own = ipc.empty(10, np.int32)
                    own.fill(5)
                    assert own.get().tolist() == [5] * 10
                os._exit(0)
            except BaseException:
                import traceback
                traceback.print_exc()
                os._exit(1)
        assert os.waitpid(child, 0)[1] == 0
        np.testing.assert_array_equal(a.get(), np.arange(10) + 1)
        """
    )


# ---- events -------------------------------------------------------------------------------------

RECORDER = """
    import sys
    import numpy as np
    import pygpu.autoinit
    from pygpu import driver, ipc
    flags = driver.event_flags
    event = driver.Event(flags.INTERPROCESS | flags.DISABLE_TIMING)
    array = ipc.empty(1 << 20, np.int32)
    array.fill(1)
    print(event.ipc_handle().hex(), flush=True)
    print(array.ipc_handle().to_json(), flush=True)
    stream = driver.Stream()
    for line in sys.stdin:
        driver.memset_d32_async(array.gpudata, int(line), array.size, stream)
        event.record(stream)
        print("recorded", flush=True)
"""


def test_an_event_of_another_process_orders_reads_behind_its_work():
    with Peer(RECORDER) as peer:
        event = driver.Event.from_ipc_handle(bytes.fromhex(peer.read()))
        array = ipc.open(ipc.Descriptor.from_json(peer.read()))
        assert event.query()
        for number in (7, 8, 9):
            assert peer.ask(str(number)) == "recorded"
            driver.Stream().wait_for_event(event)
            event.synchronize()
            assert event.query()
            assert (array.get() == number).all()
        with pytest.raises(driver.Error):
            driver.Event.from_ipc_handle(bytes(64))


# ---- columns ------------------------------------------------------------------------------------

COLUMN_READER = """
    import sys
    import numpy as np
    import pygpu.autoinit
    from pygpu import ipc
    with ipc.open_column(sys.argv[1]) as column:
        print(column.data.get().tolist())
        print(column.valid().tolist())
        column.data *= 2
        import pygpu.driver
        pygpu.driver.Context.synchronize()
"""


@pytest.mark.parametrize("mask", ["bits", "bool", None])
def test_a_column_with_a_mask(mask):
    valid = np.arange(20) % 3 > 0
    data = shared(np.arange(30, dtype=np.float64))
    packed = {
        "bits": lambda: shared(np.packbits(valid, bitorder="little")),
        "bool": lambda: shared(valid),
        None: lambda: None,
    }[mask]()
    with ipc.export_column(data[5:25], packed) as column:
        parts = column.to_dict()
        assert (parts["data"]["length"], parts["data"]["offset"]) == (20, 5)
        assert ipc.Column.from_json(column.to_json()) == column
        done = run_python(COLUMN_READER, column.to_json())
        values, seen = map(json.loads, done.stdout.replace("T", "t").replace("F", "f").splitlines())
        assert values == list(range(5, 25))
        assert seen == (valid.tolist() if mask else [True] * 20)
    expected = np.arange(30.0)
    expected[5:25] *= 2
    np.testing.assert_array_equal(data.get(), expected)


def test_columns_that_are_none():
    data = shared(np.arange(20, dtype=np.float32))
    bits = shared(np.zeros(2, np.uint8))
    for arrays, named in (
        ((data[::2],), "gaps"),
        ((data.reshape(4, 5),), "one axis"),
        ((data, bits), "mask is 16"),
        ((data, shared(np.zeros(20, np.float32))), "dtype float32"),
    ):
        with pytest.raises(ValueError, match=named):
            ipc.export_column(*arrays)
    for value in ({}, {"data": None, "mask": None}, "[]", "{", {"data": {}, "mask": None}):
        with pytest.raises((ValueError, TypeError)):
            ipc.open_column(value)
    with pytest.raises(TypeError, match="Column"):
        ipc.open_column(3)


def test_the_json_of_node_rapids():
    a = shared(np.arange(10, dtype=np.int32))
    with a[2:8].ipc_handle() as descriptor:
        parts = descriptor.to_node()
        assert parts == {
            "device": 0,
            "handle": list(descriptor.handle),
            "byteOffset": 8,
            "byteLength": 24,
        }
        again = ipc.Descriptor.from_node(json.dumps(parts), BACKEND, np.int32)
        with ipc.open(again) as opened:
            np.testing.assert_array_equal(opened.get(), np.arange(2, 8))
        with ipc.open(ipc.Descriptor.from_node(parts, BACKEND)) as opened:
            assert (opened.dtype, opened.size) == (np.uint8, 24)
        with pytest.raises(ValueError, match="byteLength"):
            ipc.Descriptor.from_node(parts | {"byteLength": 23}, BACKEND, np.int32)
        for name, value in (("byteOffset", -1), ("handle", [1]), ("device", None)):
            with pytest.raises((ValueError, TypeError), match=name):
                ipc.Descriptor.from_node(parts | {name: value}, BACKEND)
    with a[::2].ipc_handle() as descriptor, pytest.raises(ValueError, match="strides"):
        descriptor.to_node()
