"""Arrow IPC messages in device memory, compared with ``pyarrow``."""

from __future__ import annotations

import struct
from pathlib import Path

import numpy as np
import pytest
from device import BACKEND, IS_DOUBLE, TEST_ALL
from processes import run_python

from pygpu import arrow

pa = pytest.importorskip("pyarrow", reason="pyarrow is not installed")

COUNT = 300 if IS_DOUBLE else 1000
if TEST_ALL:
    COUNT *= 34 if IS_DOUBLE else 102


@pytest.fixture
def context():
    return arrow.Context()


def sample(rows=5):
    numbers = np.arange(rows)
    texts = [None if row % 3 == 1 else "x" * (row % 7) for row in range(rows)]
    return pa.record_batch(
        {
            "int": pa.array(numbers, pa.int32()),
            "nulls": pa.array([None if row % 2 else row for row in range(rows)], pa.int64()),
            "text": pa.array(texts),
            "view": pa.array([text and text * 5 for text in texts], pa.string_view()),
            "bool": pa.array(numbers % 2 == 0),
            "list": pa.array([list(range(row % 4)) for row in range(rows)]),
            "struct": pa.array([{"a": row, "b": str(row)} for row in range(rows)]),
            "fixed": pa.array([[row % 100, 1] for row in range(rows)], pa.list_(pa.int8(), 2)),
            "null": pa.nulls(rows),
        }
    )


@pytest.mark.parametrize("rows", [0, 1, 5, 1000])
def test_a_batch_there_and_back(context, rows):
    batch = sample(rows)
    buffer = arrow.serialize_record_batch(batch, context)
    # The device's bytes equal pyarrow's.
    assert buffer.to_pybytes() == batch.serialize().to_pybytes()
    there = arrow.read_record_batch(buffer, batch.schema)
    assert (there.num_rows, there.num_columns) == (batch.num_rows, batch.num_columns)
    assert there.schema == batch.schema
    assert there.copy_to_host().equals(batch)
    if rows:
        np.testing.assert_array_equal(there["int"].to_gpuarray().get(), np.arange(rows))
    for column in there.columns:
        for part in column.buffers():
            if part is not None:
                inside = buffer.address <= part.address <= buffer.address + buffer.size - part.size
                assert inside
    if BACKEND == "host":
        assert pa.record_batch(there).equals(batch)


@pytest.mark.parametrize("type", [pa.string_view(), pa.binary_view()])
def test_a_batch_of_an_empty_column_of_views(context, type):
    batch = pa.record_batch({"views": pa.array([], type)})
    there = arrow.read_record_batch(arrow.serialize_record_batch(batch, context), batch.schema)
    assert there.copy_to_host().equals(batch)


def test_parts_of_batches(context):
    batch = sample(40)[7:25]
    there = arrow.read_record_batch(arrow.serialize_record_batch(batch, context), batch.schema)
    assert there.copy_to_host().equals(batch)
    assert there[3:9].copy_to_host().equals(batch[3:9])


def test_large_buffers_pass_the_collected_bytes(context):
    batch = pa.record_batch(
        {"big": np.arange(300_000.0), "small": np.arange(300_000, dtype="i1"), "x": ["a"] * 300_000}
    )
    buffer = arrow.serialize_record_batch(batch, context)
    assert buffer.to_pybytes() == batch.serialize().to_pybytes()


def test_the_example():
    example = Path(__file__).parents[3] / "examples" / "arrow_buffers.py"
    done = run_python(f"import runpy; runpy.run_path({str(example)!r}, run_name='__main__')")
    assert done.stdout.endswith("all came back\n")


def test_messages_of_a_stream(context):
    sink, batch = pa.BufferOutputStream(), sample()
    with pa.ipc.new_stream(sink, batch.schema) as stream:
        stream.write_batch(batch)
        stream.write_batch(batch[1:3])
    reader = arrow.BufferReader(context.buffer_from_data(sink.getvalue()))
    message = arrow.read_message(reader)
    assert (message.type, message.metadata_version, message.body.size) == ("schema", "V5", 0)
    with pytest.raises(ValueError, match="the message is a schema"):
        arrow.read_record_batch(message, batch.schema)
    message = arrow.read_message(reader)
    expected = pa.ipc.read_message(batch.serialize())
    assert (message.type, message.body.size) == (expected.type, expected.body.size)
    assert message.metadata == expected.metadata.to_pybytes()
    assert "record batch" in repr(message)
    assert arrow.read_record_batch(message, batch.schema).copy_to_host().equals(batch)
    there = arrow.read_record_batch(arrow.read_message(reader), batch.schema)
    assert there.copy_to_host().equals(batch[1:3])
    place = reader.tell()
    with pytest.raises(EOFError):
        arrow.read_message(reader)
    assert reader.tell() == place
    with pytest.raises(EOFError):
        arrow.read_message(context.new_buffer(0))


def test_the_format_before_continuation_marks(context):
    batch = sample()
    old = batch.serialize().to_pybytes()[4:]
    # The size includes the marker's four bytes of alignment, so that the body is 8-byte aligned
    # again.
    message = arrow.read_message(context.buffer_from_data(old))
    assert message.type == "record batch"


def test_what_is_not_read(context):
    batch = sample()
    buffer = arrow.serialize_record_batch(batch, context)
    with pytest.raises(TypeError, match="schema is of type int"):
        arrow.read_record_batch(buffer, 3)
    with pytest.raises(ValueError, match="more nodes"):
        arrow.read_record_batch(buffer, batch.select(["int"]).schema)
    with pytest.raises(ValueError, match="fewer nodes"):
        arrow.read_record_batch(buffer, batch.schema.append(pa.field("more", pa.int8())))
    with pytest.raises(ValueError, match="'\\+s'"):
        arrow.read_record_batch(buffer, pa.int32())
    options = pa.ipc.IpcWriteOptions(compression="lz4")
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batch.schema, options=options) as stream:
        stream.write_batch(batch)
    compressed = arrow.BufferReader(context.buffer_from_data(sink.getvalue()))
    arrow.read_message(compressed)
    with pytest.raises(NotImplementedError, match="compressed"):
        arrow.read_record_batch(arrow.read_message(compressed), batch.schema)
    coded = pa.record_batch({"d": pa.array(["x", "y"]).dictionary_encode()})
    with pytest.raises(NotImplementedError, match="'d' has a dictionary"):
        arrow.read_record_batch(arrow.serialize_record_batch(coded, context), coded.schema)
    with pytest.raises(TypeError, match="a RecordBatch is needed"):
        arrow.serialize_record_batch(3, context)
    with pytest.raises(TypeError, match="a Context is needed"):
        arrow.serialize_record_batch(batch, 0)


def test_offsets_that_lie_are_found_by_the_copy(context):
    batch = pa.record_batch({"text": ["ab", "cd"]})
    buffer = arrow.serialize_record_batch(batch, context)
    there = arrow.read_record_batch(buffer, batch.schema)
    there["text"].buffers()[1].copy_from_host(struct.pack("<3i", 0, 1 << 30, 4))
    with pytest.raises(ValueError, match=r"[Oo]ffset"):
        there.copy_to_host()


def test_mutated_messages(context):
    """A message with arbitrary bytes is read within its buffer, or refused."""
    batch = sample()
    whole = batch.serialize().to_pybytes()
    metadata = 8 + struct.unpack_from("<i", whole, 4)[0]
    rng = np.random.default_rng(11)
    refused = read = 0
    for _ in range(COUNT):
        data = bytearray(whole)
        for _ in range(rng.integers(1, 4)):
            # Most possible errors are in the metadata, so it is changed more often than the
            # body.
            end = metadata if rng.random() < 0.5 else len(data)
            place = int(rng.integers(min(end, len(data))))
            match rng.integers(10):
                case 0 | 1 | 2 | 3:
                    data[place] = rng.integers(256)
                case 4 | 5 | 6:
                    data[place] ^= 1 << rng.integers(8)
                case 7 | 8:
                    place = min(place - place % 4, max(len(data) - 4, 0))
                    value = rng.choice([-1, 0, 1, 8, 1 << 30, -(1 << 31), (1 << 31) - 1])
                    struct.pack_into("<i", data, place, value)
                case _:
                    del data[int(rng.integers(len(data))) :]
            if len(data) < 4:
                break
        try:
            buffer = context.buffer_from_data(data)
            there = arrow.read_record_batch(buffer, batch.schema)
            read += 1
            there.copy_to_host().to_pylist()
        except (ValueError, EOFError, NotImplementedError):
            refused += 1
    assert refused > COUNT // 4
    assert read > COUNT // 10


class _Unit(pa.ExtensionType):
    """A program's own type, based on any other type."""

    def __init__(self, storage):
        super().__init__(storage, "test.unit")

    def __arrow_ext_serialize__(self):
        return b""

    @classmethod
    def __arrow_ext_deserialize__(cls, storage, serialized):
        return cls(storage)


def _unit(storage):
    return pa.ExtensionArray.from_storage(_Unit(storage.type), storage)


@pytest.fixture
def _registered():
    pa.register_extension_type(_Unit(pa.int32()))
    yield
    pa.unregister_extension_type("test.unit")


NUMBERS, CODED = pa.array([1, 2, None], pa.int32()), pa.array(["a", None, "a"]).dictionary_encode()
OFFSETS = pa.array([0, 1, 2, 3], pa.int32())
EXTENDED = {
    "numbers": lambda: _unit(NUMBERS),
    "texts": lambda: _unit(pa.array(["a", "bb", None])),
    "lists": lambda: _unit(pa.array([[1], [2, 3], None])),
    "in a list": lambda: pa.ListArray.from_arrays(OFFSETS, _unit(NUMBERS)),
    "in a structure": lambda: pa.StructArray.from_arrays([_unit(NUMBERS)], ["z"]),
    "over a dictionary": lambda: _unit(CODED),
    "over lists of codes": lambda: _unit(pa.ListArray.from_arrays(OFFSETS, CODED)),
    "over a dictionary in a list": lambda: pa.ListArray.from_arrays(OFFSETS, _unit(CODED)),
    "over a dictionary in a structure": lambda: pa.StructArray.from_arrays([_unit(CODED)], ["z"]),
    "in a dictionary": lambda: pa.DictionaryArray.from_arrays(OFFSETS[:3], _unit(NUMBERS)),
}


@pytest.mark.usefixtures("_registered")
@pytest.mark.parametrize("name", EXTENDED)
def test_extension_types_are_written_and_read(context, name):
    batch = pa.record_batch({"x": EXTENDED[name](), "k": NUMBERS})
    buffer = arrow.serialize_record_batch(batch, context)
    assert arrow.read_message(buffer).type == "record batch"
    assert buffer.to_pybytes() == batch.serialize().to_pybytes()
    if "dictionary" in name or "codes" in name:
        with pytest.raises(NotImplementedError, match="has a dictionary"):
            arrow.read_record_batch(buffer, batch.schema)
        return
    there = arrow.read_record_batch(buffer, batch.schema)
    assert there.schema == batch.schema
    assert there.copy_to_host().equals(batch)
