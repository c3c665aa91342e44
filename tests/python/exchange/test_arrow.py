"""``pygpu.arrow``: contexts, device buffers, page-locked buffers and files."""

from __future__ import annotations

import gc
import pickle

import numpy as np
import pytest
from device import BACKEND

from pygpu import arrow, cuda, driver, gpuarray

DATA = bytes(range(1, 65))


@pytest.fixture
def context():
    return arrow.Context()


@pytest.fixture
def buffer(context):
    return context.buffer_from_data(DATA)


def test_contexts(context):
    assert context.device_number == 0
    assert context == arrow.Context(0) == arrow.Context.from_numba()
    assert len({context, arrow.Context(0)}) == 1
    assert arrow.Context.get_num_devices() == driver.Device.count()
    for number in (-1, driver.Device.count(), 10**30):
        with pytest.raises(ValueError, match=f"device_number is {number}"):
            arrow.Context(number)
    with pytest.raises(TypeError, match="device_number"):
        arrow.Context("0")
    with pytest.raises(driver.Unsupported, match="handle is 0x10"):
        arrow.Context(0, 16)
    assert context.handle == driver.Context.get_current().handle > 0
    assert arrow.Context(0, context.handle) == context
    context.synchronize()

    class Numba:
        class device:
            id = 0

    assert arrow.Context.from_numba(Numba()) == context
    with pytest.raises(TypeError, match="a context of numba"):
        arrow.Context.from_numba(3)


def test_the_bytes_in_use_are_counted(context):
    gc.collect()
    before = context.bytes_allocated
    first = context.new_buffer(1000)
    second = context.buffer_from_data(DATA)
    assert context.bytes_allocated == before + 1000 + len(DATA)
    part = second.slice(3, 4)
    del first, second
    gc.collect()
    assert context.bytes_allocated == before + len(DATA)
    del part
    gc.collect()
    assert context.bytes_allocated == before


def test_what_a_buffer_says(context, buffer):
    assert (buffer.size, len(buffer), buffer.is_mutable, buffer.is_cpu) == (64, 64, True, False)
    assert buffer.context == context
    assert buffer.parent is None
    assert context.get_device_address(buffer.address) == buffer.address
    assert buffer.to_pybytes() == DATA
    assert "64 bytes" in repr(buffer)
    assert arrow.CudaBuffer.from_buffer(buffer) is buffer
    for kind in (arrow.CudaBuffer, arrow.HostBuffer, arrow.IpcMemHandle, arrow.DeviceColumn):
        with pytest.raises(TypeError, match=r"made by|constructor directly"):
            kind()
    with pytest.raises(TypeError, match="a CudaBuffer is needed"):
        arrow.CudaBuffer.from_buffer(DATA)


@pytest.mark.parametrize(
    "read",
    [memoryview, bytes, np.frombuffer, lambda b: memoryview(b.slice(1))],
)
def test_the_host_cannot_read_a_device_buffer(buffer, read):
    with pytest.raises(BufferError, match="copy_to_host"):
        read(buffer)


def test_numpy_cannot_read_a_device_buffer(buffer):
    with pytest.raises(TypeError, match="copy_to_host"):
        np.asarray(buffer)


def test_parts(buffer):
    part = buffer.slice(8, 16)
    assert part.address == buffer.address + 8
    assert part.parent is buffer
    assert part.to_pybytes() == DATA[8:24]
    assert buffer.slice(60, 100).to_pybytes() == DATA[60:]
    assert buffer.slice(60).to_pybytes() == DATA[60:]
    assert buffer[2:5].to_pybytes() == DATA[2:5]
    assert buffer[50:10].size == 0
    assert (buffer[0], buffer[63], buffer[-1]) == (1, 64, 64)
    assert part.slice(2, 3).to_pybytes() == DATA[10:13]
    for offset in (-1, 64, 65):
        with pytest.raises(ValueError, match=f"offset is {offset}"):
            buffer.slice(offset)
    with pytest.raises(ValueError, match="length is -1"):
        buffer.slice(0, -1)
    for index in (64, -65):
        with pytest.raises(IndexError, match=f"the index is {index}"):
            _ = buffer[index]
    with pytest.raises(IndexError, match="step"):
        _ = buffer[::2]


def test_a_part_keeps_the_memory(context):
    part = context.buffer_from_data(DATA).slice(4, 4)
    gc.collect()
    others = [context.buffer_from_data(bytes(64)) for _ in range(4)]
    assert part.to_pybytes() == DATA[4:8]
    del others


def test_comparison(context, buffer):
    same, other = context.buffer_from_data(DATA), context.buffer_from_data(DATA[::-1])
    assert buffer.equals(same)
    assert buffer == same
    assert buffer != other
    assert not buffer.equals(buffer.slice(1))
    assert context.new_buffer(0).equals(context.new_buffer(0))
    assert buffer != DATA
    with pytest.raises(TypeError, match="unhashable"):
        hash(buffer)


def test_copies_to_the_host(buffer):
    target = bytearray(16)
    assert buffer.copy_to_host(10, buf=target) is target
    assert target == DATA[10:26]
    buffer.copy_to_host(60, buf=target)
    assert target == DATA[60:] + DATA[14:26]
    buffer.copy_to_host(0, 2, buf=target)
    assert target[:4] == DATA[:2] + DATA[62:]
    for position in (-1, 65):
        with pytest.raises(ValueError, match=f"position is {position}; allowed are 0 to 64"):
            buffer.copy_to_host(position, buf=target)
    with pytest.raises(ValueError, match="nbytes is 17; the size of buf is 16"):
        buffer.copy_to_host(0, 17, buf=target)
    with pytest.raises(ValueError, match="nbytes is 5; the room after position 60 is 4"):
        buffer.copy_to_host(60, 5, buf=target)
    with pytest.raises(ValueError, match="read-only"):
        buffer.copy_to_host(buf=bytes(16))
    with pytest.raises(TypeError, match="buf is of type int"):
        buffer.copy_to_host(buf=3)
    with pytest.raises(BufferError, match="device memory"):
        buffer.copy_to_host(buf=buffer)


def test_copies_from_the_host(context):
    buffer = context.buffer_from_data(bytes(16))
    assert buffer.copy_from_host(b"abc") == 3
    assert buffer.copy_from_host(b"defgh", 14) == 2
    assert buffer.copy_from_host(b"xyz", 8, 2) == 2
    assert buffer.copy_from_host(b"", 16) == 0
    assert buffer.to_pybytes() == b"abc\0\0\0\0\0xy\0\0\0\0de"
    assert buffer.copy_from_host(np.arange(4, dtype="i4").reshape(2, 2)) == 16
    assert buffer.to_pybytes() == np.arange(4, dtype="i4").tobytes()
    # In memory order, like pyarrow.py_buffer.
    buffer.copy_from_host(np.arange(4, dtype="i4").reshape(2, 2).T)
    assert buffer.to_pybytes() == np.arange(4, dtype="i4").tobytes()
    with pytest.raises(ValueError, match="gaps"):
        buffer.copy_from_host(np.arange(8)[::2])
    with pytest.raises(ValueError, match="nbytes is 3; the room after position 14 is 2"):
        buffer.copy_from_host(b"abc", 14, 3)
    with pytest.raises(ValueError, match="nbytes is 3; the size of data is 2"):
        buffer.copy_from_host(b"ab", 0, 3)
    with pytest.raises(BufferError, match="device memory"):
        buffer.copy_from_host(buffer)


def test_copies_on_the_device(context, buffer):
    target = context.buffer_from_data(bytes(16))
    assert target.copy_from_device(buffer.slice(3)) == 16
    assert target.copy_from_device(buffer, 12) == 4
    assert target.copy_from_device(buffer, 0, 2) == 2
    assert target.to_pybytes() == DATA[:2] + DATA[5:15] + DATA[:4]
    with pytest.raises(ValueError, match="nbytes is 65; the size of buf is 64"):
        context.new_buffer(100).copy_from_device(buffer, 0, 65)
    with pytest.raises(TypeError, match="a CudaBuffer is needed"):
        target.copy_from_device(DATA)


@pytest.mark.parametrize("distance", [1, 3, 8, 63])
def test_copies_between_overlapping_parts(context, distance):
    count = len(DATA) - distance
    up, down = context.buffer_from_data(DATA), context.buffer_from_data(DATA)
    assert up.slice(distance).copy_from_device(up.slice(0, count)) == count
    assert up.to_pybytes() == DATA[:distance] + DATA[:count]
    assert down.copy_from_device(down.slice(distance)) == count
    assert down.to_pybytes() == DATA[distance:] + DATA[count:]


def test_data_and_its_parts(context, buffer):
    assert context.buffer_from_data(DATA, 60).to_pybytes() == DATA[60:]
    assert context.buffer_from_data(DATA, 2, 3).to_pybytes() == DATA[2:5]
    copy = context.buffer_from_data(buffer, 2, 3)
    assert copy.to_pybytes() == DATA[2:5]
    assert copy.address != buffer.address + 2
    assert context.buffer_from_data(b"").size == 0
    assert context.new_buffer(0).to_pybytes() == b""
    assert context.new_buffer(0).address == 0
    for data in (DATA, buffer):
        for offset, size in ((-1, -1), (64, -1), (0, 65), (60, 5)):
            with pytest.raises(ValueError, match=f"offset is {offset}"):
                context.buffer_from_data(data, offset, size)
    with pytest.raises(ValueError, match="nbytes is -1"):
        context.new_buffer(-1)
    with pytest.raises(TypeError, match="data is of type int"):
        context.buffer_from_data(3)


def test_memory_of_others(context):
    array = gpuarray.to_gpu(np.arange(12, dtype="i4").reshape(3, 4))
    whole = context.foreign_buffer(array.ptr, array.nbytes, base=array)
    address = array.ptr
    expected = array.get().tobytes()
    view = array[1:, ::2]
    del array
    gc.collect()
    assert whole.address == address
    assert whole.to_pybytes() == expected
    assert context.buffer_from_object(whole) is whole
    # The buffer covers the first to the last element, with the gaps.
    span = context.buffer_from_object(view)
    assert (span.address, span.to_pybytes()) == (address + 16, expected[16:44])
    assert context.buffer_from_object(gpuarray.zeros((0, 3), "f4")).size == 0
    for bad in (3, DATA, None, np.arange(3)):
        with pytest.raises(TypeError, match="object of type '"):
            context.buffer_from_object(bad)
    for address, size in ((16, 8), (whole.address, 1 << 46), (1 << 63, 8)):
        with pytest.raises(ValueError, match="address is 0x"):
            context.foreign_buffer(address, size)
    with pytest.raises(ValueError, match="size is -1"):
        context.foreign_buffer(whole.address, -1)
    assert context.foreign_buffer(0, 0).size == 0


def test_incomplete_interfaces(context):
    class Other:
        pass

    for interface in ({}, {"data": (1, False)}, {"data": 3, "shape": (1,), "typestr": "|u1"}):
        Other.__cuda_array_interface__ = interface
        with pytest.raises(ValueError, match="incomplete"):
            context.buffer_from_object(Other())


def test_arrays_over_buffers(buffer):
    array = buffer.to_gpuarray("<u4")
    assert array.ptr == buffer.address
    np.testing.assert_array_equal(array.get(), np.frombuffer(DATA, "<u4"))
    assert gpuarray.from_cuda_array_interface(buffer).ptr == buffer.address
    with pytest.raises(ValueError, match="multiple|buffer is 62"):
        buffer.slice(2).to_gpuarray("<u4")


def test_a_pickled_buffer_is_a_copy(buffer):
    copy = pickle.loads(pickle.dumps(buffer))
    assert copy.equals(buffer)
    assert copy.address != buffer.address


def test_numba_pointers(context, buffer):
    class Pointer:
        class context:
            class device:
                id = 0

        class device_pointer:
            value = buffer.address

        size = 10

    view = arrow.CudaBuffer.from_numba(Pointer())
    assert (view.address, view.size) == (buffer.address, 10)
    with pytest.raises(TypeError, match="a MemoryPointer is needed"):
        arrow.CudaBuffer.from_numba(3)


def test_numbas_memory(context, buffer):
    memory = buffer.to_numba()
    assert (memory.size, memory.device_pointer) == (64, buffer.address)
    assert memory.context.device.id == 0
    back = arrow.CudaBuffer.from_numba(memory)
    assert (back.address, back.size) == (buffer.address, 64)
    assert arrow.Context.from_numba(context.to_numba()) == context
    array = cuda.as_cuda_array(buffer)
    assert array.ptr == buffer.address
    np.testing.assert_array_equal(array.copy_to_host(), list(DATA))


def test_page_locked_buffers(context):
    host = arrow.new_host_buffer(16)
    assert (host.size, len(host), host.is_cpu, host.is_mutable) == (16, 16, True, True)
    view = np.frombuffer(host, np.uint32)
    view[:] = (1, 2, 3, 4)
    assert view.ctypes.data == host.address
    assert host.to_pybytes() == view.tobytes()
    assert context.buffer_from_data(host).to_pybytes() == view.tobytes()
    assert context.buffer_from_object(host).to_pybytes() == view.tobytes()
    assert arrow.new_host_buffer(0).size == 0
    with pytest.raises(ValueError, match="size is -1"):
        arrow.new_host_buffer(-1)
    with pytest.raises(ValueError, match="device_number is 99"):
        arrow.new_host_buffer(1, 99)


def test_reading_as_a_file(buffer):
    with arrow.BufferReader(buffer) as reader:
        assert (reader.size(), reader.tell(), reader.readable(), reader.writable()) == (
            64,
            0,
            True,
            False,
        )
        assert reader.read(3) == DATA[:3]
        part = reader.read_buffer(4)
        assert (part.address, part.size) == (buffer.address + 3, 4)
        assert reader.seek(-4, 2) == 60
        assert reader.read(100) == DATA[60:]
        assert reader.read() == b""
        assert reader.seek(1) == 1
        assert reader.seek(2, 1) == 3
        for position, whence in ((-1, 0), (65, 0), (1, 2), (-4, 1)):
            with pytest.raises(ValueError, match=f"position is {position}"):
                reader.seek(position, whence)
        with pytest.raises(ValueError, match="whence is 3"):
            reader.seek(0, 3)
        assert reader.tell() == 3
    assert reader.closed
    with pytest.raises(ValueError, match="closed"):
        reader.read(1)
    with pytest.raises(TypeError, match="a CudaBuffer is needed"):
        arrow.BufferReader(DATA)


@pytest.mark.parametrize("buffer_size", [0, 5, 1000])
def test_writing_as_a_file(context, buffer_size):
    expected = bytearray(64)
    buffer = context.buffer_from_data(bytes(64))
    rng = np.random.default_rng(7)
    with arrow.BufferWriter(buffer) as writer:
        assert (writer.readable(), writer.writable(), writer.seekable()) == (False, True, True)
        writer.buffer_size = buffer_size
        assert writer.buffer_size == buffer_size
        for _ in range(200):
            data = rng.bytes(int(rng.integers(0, 12)))
            place = writer.tell()
            match rng.integers(5):
                case 0:
                    place = writer.seek(int(rng.integers(64)))
                case 1:
                    writer.flush()
                    assert writer.num_bytes_buffered == 0
                    assert buffer.to_pybytes() == expected
                case 2 if len(data) < 30:
                    place = int(rng.integers(64 - len(data)))
                    writer.writeat(place, data)
                    expected[place : place + len(data)] = data
                    assert writer.tell() == place + len(data)
                    continue
            if place + len(data) > 64:
                with pytest.raises(ValueError, match=f"position is {64 - place}"):
                    writer.write(data)
                continue
            assert writer.write(data) == len(data)
            expected[place : place + len(data)] = data
            assert writer.num_bytes_buffered <= buffer_size
    assert writer.closed
    assert buffer.to_pybytes() == expected
    with pytest.raises(ValueError, match="closed"):
        writer.write(b"")


def test_what_a_writer_refuses(buffer):
    writer = arrow.BufferWriter(buffer)
    with pytest.raises(ValueError, match="buffer_size is -1"):
        writer.buffer_size = -1
    for position in (-1, 62):
        with pytest.raises(ValueError, match=f"position is {position} and data.size 3"):
            writer.writeat(position, b"abc")
    with pytest.raises(BufferError, match="device memory"):
        writer.write(buffer)
    assert buffer.to_pybytes() == DATA


def test_handles_between_processes(context, buffer):
    from multiprocessing import get_context

    try:
        handle = buffer.slice(8, 16).export_for_ipc()
    except driver.Unsupported:
        assert BACKEND == "host"
        pytest.skip("the host backend does not share memory")
    data = handle.to_pybytes()
    with get_context("spawn").Pool(1) as pool:
        assert pool.apply(opened, (data,)) == DATA[8:24]
    assert buffer.to_pybytes() == DATA[:8] + bytes(16) + DATA[24:]


def opened(data):
    buffer = arrow.Context().open_ipc_buffer(arrow.IpcMemHandle.from_buffer(data))
    content = buffer.to_pybytes()
    buffer.copy_from_host(bytes(buffer.size))
    buffer.context.synchronize()
    return content


def test_handles_that_are_no_handles(context):
    for data in (b"", bytes(71), bytes(73), bytes(81)):
        with pytest.raises(ValueError, match=f"opaque_handle has length {len(data)}"):
            arrow.IpcMemHandle.from_buffer(data)
    negative = (-1).to_bytes(8, "little", signed=True)
    for data in (negative + bytes(64), bytes(72) + negative):
        with pytest.raises(ValueError, match="-1"):
            arrow.IpcMemHandle.from_buffer(data)
    empty = context.new_buffer(0).export_for_ipc()
    assert context.open_ipc_buffer(empty).size == 0
    assert "0 bytes" in repr(empty)
    forged = arrow.IpcMemHandle.from_buffer((8).to_bytes(8, "little") + b"x" * 64)
    with pytest.raises(driver.Error):
        context.open_ipc_buffer(forged)
    with pytest.raises(TypeError, match="an? IpcMemHandle is needed"):
        context.open_ipc_buffer(bytes(72))


def test_parts_of_page_locked_buffers():
    buffer = arrow.new_host_buffer(len(DATA))
    memoryview(buffer)[:] = DATA
    part = buffer.slice(3, 1000)
    assert (part.to_pybytes(), part.parent is buffer) == (DATA[3:], True)
    assert buffer[2:5].to_pybytes() == DATA[2:5]
    assert (buffer[0], buffer[-1]) == (DATA[0], DATA[-1])
    assert part == buffer[3:] != buffer[4:]
    memoryview(part)[:1] = b"?"
    assert buffer[3] == ord("?")
    for wrong in (len(DATA), -1 - len(DATA), slice(None, None, 2)):
        with pytest.raises(IndexError):
            buffer[wrong]
    with pytest.raises(ValueError, match="offset is -1"):
        buffer.slice(-1)
    assert arrow.new_host_buffer(0).slice().size == 0


def test_a_reader_fills_memory_of_the_host():
    reader = arrow.BufferReader(arrow.Context().buffer_from_data(DATA))
    reader.seek(2)
    target = np.zeros(5, np.uint8)
    assert (reader.readinto(target), target.tobytes()) == (5, DATA[2:7])
    reader.seek(len(DATA) - 3)
    assert (reader.readinto(target), target[:3].tobytes()) == (3, DATA[-3:])
    assert reader.readinto(target) == 0
    with pytest.raises(ValueError, match="read-only"):
        reader.readinto(b"abc")


def test_messages_begin_as_those_of_pyarrow():
    buffer = arrow.Context().new_buffer(4)
    other, host = arrow.Context().new_buffer(9), bytes(9)
    for call, text in [
        (lambda: buffer.copy_to_host(5), "position argument is out-of-range"),
        (lambda: buffer.copy_to_host(1, 4), "requested more to copy than available from device"),
        (lambda: buffer.copy_to_host(0, 4, bytearray(3)), "requested copy does not fit into host"),
        (lambda: buffer.copy_from_host(host, 0, 10), "more to copy than available from host"),
        (lambda: buffer.copy_from_host(host, 0, 5), "more to copy than available in device"),
        (lambda: buffer.copy_from_device(other, 0, 10), "more to copy than available from device"),
        (lambda: buffer.copy_from_device(other, 0, 5), "more to copy than available in device"),
    ]:
        with pytest.raises(ValueError, match=text):
            call()


def test_what_is_no_device_memory_is_refused_as_by_pyarrow():
    pa = pytest.importorskip("pyarrow")
    context = arrow.Context()
    with pytest.raises(pa.ArrowTypeError, match="buffer is not backed by a CudaBuffer"):
        context.buffer_from_object(pa.py_buffer(b"123"))
    with pytest.raises(pa.ArrowTypeError, match="view from object of type 'numpy.ndarray'"):
        context.buffer_from_object(np.arange(3))


def test_columns_print_as_those_of_pyarrow():
    pa = pytest.importorskip("pyarrow")
    batch = pa.record_batch({"a": [1, None, 3], "b": ["x", "yz", None]})
    there = arrow.read_record_batch(
        arrow.serialize_record_batch(batch, arrow.Context()), batch.schema
    )
    assert str(there) == str(batch)
    assert str(there.column(1)) == str(batch.column(1))
    assert repr(there) == "<DeviceRecordBatch of 3 rows and 2 columns>"
