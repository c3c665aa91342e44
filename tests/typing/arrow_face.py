"""A program with the Arrow interface: buffers, files, columns, batches and messages."""

from __future__ import annotations

import numpy as np
from typing_extensions import assert_type

from pygpu import arrow, gpuarray


def buffers(context: arrow.Context) -> bytes:
    buffer = context.buffer_from_data(b"abcdef")
    part: arrow.CudaBuffer = buffer.slice(2, 3)
    host: arrow.HostBuffer = arrow.new_host_buffer(6).slice(1)
    written: int = part.copy_from_host(b"xyz")
    assert written == 3
    assert part.parent is buffer
    assert host.size == 5
    assert host.is_mutable
    target = bytearray(6)
    buffer.copy_to_host(buf=target)
    assert not part.equals(buffer)
    assert len(buffer) == buffer.size
    assert_type(buffer[0], int)
    assert_type(buffer[1:], arrow.CudaBuffer)
    handle = buffer.export_for_ipc()
    return bytes(target) + handle.to_pybytes()[:0]


def files(buffer: arrow.CudaBuffer) -> int:
    with arrow.BufferWriter(buffer) as writer:
        writer.buffer_size = 16
        count: int = writer.write(b"ab")
    reader = arrow.BufferReader(buffer)
    assert reader.read(count) == b"ab"
    assert reader.readable()
    assert not reader.writable()
    rest: arrow.CudaBuffer = reader.read_buffer()
    return rest.size + reader.tell()


def columns() -> list[int]:
    array = gpuarray.to_gpu(np.arange(3, dtype=np.int32))
    column = arrow.DeviceColumn.from_gpuarray(array, name="x")
    batch = arrow.DeviceRecordBatch.from_columns({"x": column, "y": array})
    same: arrow.DeviceColumn = arrow.from_device_array(array, copy=True)
    assert_type(batch["x"], arrow.DeviceColumn)
    assert_type(batch[1:], arrow.DeviceRecordBatch)
    values = batch.slice(1).column("y").to_gpuarray().get()
    return [same.length, batch.num_rows, batch.num_columns, *values.tolist()]


if __name__ == "__main__":
    context = arrow.Context(0)
    assert buffers(context) == b"abxyzf"
    assert files(context.new_buffer(8)) == 14
    assert columns() == [3, 3, 2, 1, 2]
