"""A table goes to a device and comes back: Arrow's buffers, messages and columns.

    python examples/arrow_buffers.py

It runs on every backend, with pyarrow from PyPI, and prints the result of each check. The exit
status is 1 if a check fails.
"""

import sys

import numpy as np
import pyarrow as pa

import pygpu
from pygpu import arrow, gpuarray


def buffers(context):
    """Bytes of the host in a device buffer, in parts, and as an array that shares the memory."""
    readings = np.arange(10, dtype=np.int32)
    buffer = context.buffer_from_data(readings)
    print(f"{buffer.size} bytes on device {buffer.context.device_number}")
    array = buffer.to_gpuarray(np.int32)
    array *= 2
    back = np.frombuffer(buffer.copy_to_host(), np.int32)
    third = buffer.slice(12, 4).to_pybytes()
    return (back == 2 * readings).all() and third == np.int32(6).tobytes()


def refused(context):
    """Code that reads host memory gets an error for a device buffer."""
    try:
        memoryview(context.buffer_from_data(b"on the device"))
    except BufferError as error:
        print(f"refused: {error}")
        return True
    return False


def messages(context):
    """A record batch as a message in device memory, read there, with its columns as arrays."""
    batch = pa.record_batch(
        {
            "city": ["Oslo", "Lima", None, "Pune"],
            "height": pa.array([23, 154, 8, 560], pa.float64()),
            "visits": pa.array([4, None, 0, 2], pa.int32()),
        }
    )
    buffer = arrow.serialize_record_batch(batch, context)
    there = arrow.read_record_batch(buffer, batch.schema)
    height = there["height"].to_gpuarray()
    height += 1000
    print(there, "of", there.schema.names, "in", buffer.size, "bytes")
    back = there.copy_to_host()
    return (
        back["city"] == batch["city"]
        and back["visits"] == batch["visits"]
        and back["height"].to_pylist() == [1023, 1154, 1008, 1560]
    )


def columns():
    """Arrays as columns that other libraries read where they are."""
    x = gpuarray.to_gpu(np.linspace(0, 1, 5))
    batch = arrow.DeviceRecordBatch.from_columns({"x": x, "y": x * x})
    # Any library with the Arrow C device data interface can take the place of this one.
    shared = arrow.from_device_array(batch)
    same = shared.children[0].to_gpuarray().ptr == x.ptr
    print(f"shared without a copy: {same}")
    return same and batch.copy_to_host()["y"].to_pylist() == [0, 0.0625, 0.25, 0.5625, 1]


def main():
    print("backend:", pygpu.choose_backend())
    context = arrow.Context(0)
    passed = [buffers(context), refused(context), messages(context), columns()]
    print("all came back" if all(passed) else f"failed: {passed}")
    return 0 if all(passed) else 1


if __name__ == "__main__":
    sys.exit(main())
