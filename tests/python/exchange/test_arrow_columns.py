"""``pygpu.arrow`` columns, and their exchange through the Arrow C device data interface."""

from __future__ import annotations

import ctypes
import gc
import os
import threading

import numpy as np
import pytest
from arrow_structures import RELEASE_ARRAY, Array, Forged, opened
from device import BACKEND
from processes import run_python

from pygpu import arrow, driver, gpuarray

DEVICE_TYPE = {"host": 1, "cuda": 2, "hip": 10}[BACKEND]
on_host = pytest.mark.skipif(BACKEND != "host", reason="about the host")
on_gpu = pytest.mark.skipif(BACKEND == "host", reason="about GPUs")
FORMATS = {
    **dict(zip(("i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8"), "cCsSiIlL")),
    **dict(zip(("f2", "f4", "f8"), "efg")),
}


@pytest.fixture
def pa():
    return pytest.importorskip("pyarrow", reason="pyarrow is not installed")


def device_bytes(data):
    return arrow.Context().buffer_from_data(data)


@pytest.mark.parametrize(("dtype", "format"), FORMATS.items())
def test_what_an_array_exports(dtype, format):
    array = gpuarray.to_gpu(np.arange(6).astype(dtype))[1:5]
    capsules = array.__arrow_c_device_array__()
    schema, device = opened(capsules)
    assert (schema.format, schema.name, schema.flags) == (format.encode(), b"", 0)
    assert (schema.n_children, bool(schema.dictionary), schema.metadata) == (0, False, None)
    found = device.array
    assert (found.length, found.null_count, found.offset) == (4, 0, 0)
    assert (found.n_buffers, found.n_children, bool(found.dictionary)) == (2, 0, False)
    assert (found.buffers[0], found.buffers[1]) == (None, array.ptr)
    assert device.device_type == DEVICE_TYPE
    assert device.device_id == (-1 if BACKEND == "host" else 0)
    assert bool(device.sync_event) == (BACKEND != "host")
    assert list(device.reserved) == [0, 0, 0]
    back = arrow.from_device_array(array)
    assert back.format == format
    assert back.to_gpuarray().ptr == array.ptr
    np.testing.assert_array_equal(back.to_gpuarray().get(), np.arange(1, 5).astype(dtype))


@pytest.mark.parametrize(
    ("array", "what"),
    [
        (np.zeros(3, "?"), "dtype is bool.*one bit"),
        (np.zeros(3, "c8"), "dtype is complex64"),
        (np.zeros((2, 3), "f4"), "one axis without gaps"),
        (np.zeros((), "f4"), "one axis without gaps"),
    ],
)
def test_arrays_that_are_no_columns(array, what):
    with pytest.raises(BufferError, match=what):
        gpuarray.to_gpu(array).__arrow_c_device_array__()


def test_gaps_and_unknown_arguments():
    array = gpuarray.to_gpu(np.arange(6, dtype="i4"))
    with pytest.raises(BufferError, match="export a copy"):
        array[::2].__arrow_c_device_array__()
    with pytest.raises(NotImplementedError, match="later"):
        array.__arrow_c_device_array__(later=1)
    array.__arrow_c_device_array__(None, later=None)
    column = arrow.DeviceColumn.from_gpuarray(array)
    array.__arrow_c_device_array__(column.__arrow_c_schema__())
    other = arrow.DeviceColumn.from_gpuarray(array.view("f4"))
    with pytest.raises(NotImplementedError, match="'f' is requested.*'i'"):
        array.__arrow_c_device_array__(other.__arrow_c_schema__())


def test_a_capsule_is_consumed_once():
    array = gpuarray.to_gpu(np.arange(6, dtype="i4"))

    class Same:
        capsules = array.__arrow_c_device_array__()

        def __arrow_c_device_array__(self):
            return self.capsules

    arrow.from_device_array(Same())
    with pytest.raises(BufferError, match="consumed or released before"):
        arrow.from_device_array(Same())


def test_structures_keep_the_memory_until_they_are_released():
    array = gpuarray.to_gpu(np.arange(6, dtype="i4"))
    owner = weak(array)
    column = arrow.from_device_array(array)
    del array
    gc.collect()
    assert owner() is not None
    del column
    gc.collect()
    assert owner() is None


def weak(array):
    import weakref

    return weakref.ref(array)


def test_a_capsule_that_nobody_consumes_is_freed():
    array = gpuarray.to_gpu(np.arange(6, dtype="i4"))
    owner, capsules = weak(array), array.__arrow_c_device_array__()
    del array
    gc.collect()
    assert owner() is not None
    del capsules
    gc.collect()
    assert owner() is None


def test_a_child_outlives_its_parent():
    """A consumer may move a child out of a structure, and release the parent."""
    array = gpuarray.to_gpu(np.arange(6, dtype="i4"))
    owner = weak(array)
    capsules = arrow.DeviceRecordBatch.from_columns({"a": array}).__arrow_c_device_array__()
    address = array.ptr
    del array
    schema, device = opened(capsules)
    child, inner = Array(), device.array.children[0]
    ctypes.memmove(ctypes.byref(child), inner, ctypes.sizeof(Array))
    inner.contents.release = RELEASE_ARRAY()
    assert schema.children[0].contents.name == b"a"
    del capsules, schema, device, inner
    gc.collect()
    assert child.buffers[1] == address
    assert owner() is not None
    # ctypes creates a new object for the function field at each access.
    release = RELEASE_ARRAY(ctypes.cast(child.release, ctypes.c_void_p).value)
    release(ctypes.byref(child))
    assert not child.release
    gc.collect()
    assert owner() is None
    # A second release does nothing.
    release(ctypes.byref(child))


def test_release_on_another_thread_and_at_exit():
    array = gpuarray.to_gpu(np.arange(6, dtype="i4"))
    owner, held = weak(array), [array.__arrow_c_device_array__()]
    del array
    thread = threading.Thread(target=held.clear)
    thread.start()
    thread.join()
    gc.collect()
    assert owner() is None
    run_python(
        """
        import sys
        import numpy as np
        from pygpu import arrow, gpuarray
        sys.kept = gpuarray.to_gpu(np.arange(6.0)).__arrow_c_device_array__()
        sys.column = arrow.from_device_array(gpuarray.to_gpu(np.arange(6.0)))
        """
    )


def nested_batch():
    """Returns a batch with each kind of layout that this module builds by hand."""
    rows = gpuarray.to_gpu(np.arange(8, dtype="i4"))
    bits = device_bytes(bytes([0b10110101]))
    return arrow.DeviceRecordBatch.from_columns(
        {
            "whole": rows,
            "nulls": arrow.DeviceColumn.from_gpuarray(rows, bits),
            "part": arrow.DeviceColumn.from_gpuarray(gpuarray.to_gpu(np.arange(12.0))).slice(3, 8),
        }
    )


def test_batches():
    batch = nested_batch()
    assert (batch.num_rows, batch.num_columns, len(batch)) == (8, 3, 8)
    assert batch.column_names == ["whole", "nulls", "part"]
    assert [column.name for column in batch.columns] == batch.column_names
    assert batch.column(1) is batch["nulls"] is batch.column(-2)
    assert batch.nbytes == 32 + 32 + 1 + 96
    np.testing.assert_array_equal(batch["part"].to_gpuarray().get(), np.arange(3.0, 11))
    part = batch[2:5]
    np.testing.assert_array_equal(part["part"].to_gpuarray().get(), [5, 6, 7])
    assert (part.num_rows, part["nulls"].offset, part["nulls"].null_count) == (3, 2, -1)
    for key, error in ((3, IndexError), ("x", KeyError), (1.5, TypeError)):
        with pytest.raises(error):
            batch[key]
    with pytest.raises(IndexError, match="step"):
        batch[::2]
    with pytest.raises(IndexError, match="offset is 9"):
        batch.slice(9)
    with pytest.raises(ValueError, match="lengths"):
        arrow.DeviceRecordBatch.from_columns({"a": batch["part"], "b": batch["part"].slice(1)})
    with pytest.raises(ValueError, match="empty"):
        arrow.DeviceRecordBatch.from_columns({})
    assert "8 rows" in repr(batch)
    assert "'part' of 8 'g'" in repr(batch["part"])


def test_a_batch_there_and_back():
    batch = nested_batch()
    struct = arrow.from_device_array(batch)
    assert (struct.format, struct.length) == ("+s", 8)
    for there, here in zip(struct.children, batch.columns):
        assert (there.name, there.format, there.offset) == (here.name, here.format, here.offset)
        assert there.to_gpuarray().ptr == here.to_gpuarray().ptr
    assert struct.children[1].validity.to_pybytes() == bytes([0b10110101])


def test_a_copy_has_memory_of_its_own():
    array = gpuarray.to_gpu(np.arange(6, dtype="i4"))
    copy = arrow.from_device_array(array, copy=True).to_gpuarray()
    assert copy.ptr != array.ptr
    np.testing.assert_array_equal(copy.get(), np.arange(6))


def test_objects_that_export_nothing():
    with pytest.raises(TypeError, match="__arrow_c_device_array__ is needed"):
        arrow.from_device_array(3)

    class Wrong:
        def __arrow_c_device_array__(self):
            return self.result

    for result in (None, (1, 2), (1,), "ab"):
        Wrong.result = result
        with pytest.raises(TypeError, match="capsule"):
            arrow.from_device_array(Wrong())
    schema, array = gpuarray.to_gpu(np.arange(3.0)).__arrow_c_device_array__()
    Wrong.result = array, schema
    with pytest.raises(BufferError, match="is no"):
        arrow.from_device_array(Wrong())


# -- forged structures -----------------------------------------------------------------------------


@pytest.fixture
def data():
    return device_bytes(np.arange(8, dtype="i4").tobytes())


def forged(data, **changes):
    """Returns an exporter of eight 32-bit numbers."""
    exporter = Forged(b"i", (DEVICE_TYPE, 0))
    values = {"length": 8, "buffers": (None, data.address)} | changes
    exporter.device.array = exporter.new_array(**values)
    return exporter


def test_a_forged_structure_is_read_and_released(data):
    exporter = forged(data)
    column = arrow.from_device_array(exporter)
    np.testing.assert_array_equal(column.to_gpuarray().get(), np.arange(8))
    assert exporter.released == ["schema"]
    del column
    gc.collect()
    assert exporter.released == ["schema", "array"]


@pytest.mark.parametrize(
    ("changes", "what"),
    [
        ({"length": -1}, "length is -1"),
        ({"length": 1 << 62}, "size 18446744073709551616"),
        ({"length": 9 << 40}, "no .* bytes|memory"),
        ({"offset": -1}, "offset -1"),
        ({"offset": (1 << 63) - 1}, "do not fit"),
        ({"offset": 1 << 60}, "memory of size"),
        ({"null_count": -2}, "null_count -2"),
        ({"null_count": 9}, "null_count 9"),
        ({"null_count": 3}, "no validity"),
        ({"buffers": ()}, "buffers: 0"),
        ({"buffers": (None,)}, "buffers: 1"),
        ({"buffers": (None, None)}, "at 0x0"),
        ({"buffers": (None, 64)}, "0x40"),
        ({"buffers": (None, (1 << 64) - 64)}, "0xffff"),
        ({"buffers": (64, None), "null_count": -1}, "0x40"),
        ({"buffers": (None, None, None)}, "buffers: 3"),
    ],
)
def test_forged_arrays(data, changes, what):
    exporter = forged(data, **changes)
    with pytest.raises(BufferError, match=what):
        arrow.from_device_array(exporter)
    gc.collect()
    assert "array" in exporter.released


def test_forged_counts_and_pointers(data):
    def check(what, change):
        exporter = forged(data)
        change(exporter, exporter.device.array, exporter.schema)
        with pytest.raises(BufferError, match=what):
            arrow.from_device_array(exporter)

    check("n_buffers is -1", lambda e, a, s: setattr(a, "n_buffers", -1))
    check("n_buffers is 1073741824", lambda e, a, s: setattr(a, "n_buffers", 1 << 30))
    check("n_buffers is 2, and buffers is 0x0", lambda e, a, s: setattr(a, "buffers", None))
    check("n_children is -5", lambda e, a, s: setattr(a, "n_children", -5))
    check("n_children is 2, and children is 0x0", lambda e, a, s: (
        setattr(a, "n_children", 2), setattr(a, "children", None)
    ))  # fmt: skip
    check("a child is 0x0", lambda e, a, s: setattr(a, "n_children", 1))
    check("children: 1", lambda e, a, s: e.__dict__.update(
        device=type(e.device)(e.new_array(8, (None, data.address), [e.new_array()]), 0, DEVICE_TYPE)
    ))  # fmt: skip
    check("n_children is -1", lambda e, a, s: setattr(s, "n_children", -1))
    check("a child is 0x0", lambda e, a, s: setattr(s, "n_children", 1))
    check("the format is null", lambda e, a, s: setattr(s, "format", None))
    check("not UTF-8", lambda e, a, s: setattr(s, "format", b"\xff"))
    check("not UTF-8", lambda e, a, s: setattr(s, "name", b"\xff"))
    check("released before", lambda e, a, s: setattr(s, "release", type(s.release)()))
    check("released before", lambda e, a, s: setattr(a, "release", type(a.release)()))
    if BACKEND != "host":
        check("on device 5", lambda e, a, s: setattr(e.device, "device_id", 5))
    check("device type 4", lambda e, a, s: setattr(e.device, "device_type", 4))
    for format in (b"", b"x", b"w:", b"w:-1", b"w:99999999999", b"d:1", b"d:1,2,3", b"+l", b"+s:",
                   b"+w:2", b"ts", b"tsx:", b"i:"):  # fmt: skip
        check("format|children", lambda e, a, s, f=format: setattr(s, "format", f))
    for numbers in ((-1,), (1, -1), (1 << 30,), (1, 1 << 30)):
        block = (ctypes.c_int32 * 8)(*numbers)
        check("metadata", lambda e, a, s, b=block: setattr(s, "metadata", ctypes.addressof(b)))


def test_a_structure_that_contains_itself(data):
    exporter = forged(data)
    child = exporter.new_schema(b"+s", [exporter.schema])
    child.children[0] = ctypes.pointer(child)
    exporter.schema = exporter.new_schema(b"+s", [child])
    with pytest.raises(BufferError, match="nested more than 64"):
        arrow.from_device_array(exporter)
    exporter = forged(data)
    child = exporter.new_array(8, (None,), [exporter.new_array()])
    child.children[0] = ctypes.pointer(child)
    exporter.device.array = exporter.new_array(8, (None,), [child])
    with pytest.raises(BufferError, match="nested more than 64"):
        arrow.from_device_array(exporter)


def test_forged_offsets_of_texts():
    def column(offsets, count):
        exporter = Forged(b"u", (DEVICE_TYPE, 0))
        buffers = (None, device_bytes(np.array(offsets, "i4").tobytes()), device_bytes(b"abcdef"))
        exporter.keeps.append(buffers)
        exporter.device.array = exporter.new_array(
            count, [buffer and buffer.address for buffer in buffers]
        )
        return arrow.from_device_array(exporter)

    found = column([0, 2, 6], 2)
    assert [buffer and buffer.size for buffer in found.buffers()] == [None, 12, 6]
    with pytest.raises(BufferError, match="is -1"):
        column([0, 2, -1], 2)
    with pytest.raises(BufferError, match="memory of size"):
        column([0, 2, 0x7FFFFFFF], 2)


def test_mutated_structures(data):
    """A structure with arbitrary numbers is read or refused."""
    rng = np.random.default_rng(3)
    values = [-(1 << 63), -1, 0, 1, 2, 7, 8, 9, 64, 1 << 31, 1 << 40, (1 << 63) - 1]
    refused, rounds = 0, 100_000 if os.environ.get("PYGPU_TEST_ALL") else 500
    for _ in range(rounds):
        exporter = forged(data)
        for _ in range(rng.integers(1, 3)):
            name = rng.choice(["length", "null_count", "offset", "n_buffers", "buffer"])
            value = values[rng.integers(len(values))]
            if name == "n_buffers":
                # At most the real length, because the producer guarantees that the list has
                # `n_buffers` entries.
                value = min(value, 2) if value < 1 << 31 else value
            if name == "buffer":
                exporter.device.array.buffers[int(rng.integers(2))] = value & ((1 << 64) - 1)
            else:
                setattr(exporter.device.array, name, value)
        try:
            column = arrow.from_device_array(exporter)
            column.to_gpuarray().get()
        except BufferError:
            refused += 1
    assert 0 < refused < rounds


@on_gpu
def test_the_event_is_waited_for_and_may_be_destroyed(data):
    event = driver.Event(driver.event_flags.DISABLE_TIMING)
    event.record()
    exporter = forged(data)
    handle = ctypes.c_void_p(event.handle)
    exporter.device.sync_event = ctypes.pointer(handle)
    column = arrow.from_device_array(exporter)
    np.testing.assert_array_equal(column.to_gpuarray().get(), np.arange(8))
    # The event still belongs to the other library.
    assert event.synchronize().query()
    event.record()


@on_gpu
def test_an_exported_event_is_behind_the_work():
    stream = driver.Stream(1)
    array = gpuarray.to_gpu_async(np.arange(1 << 16, dtype="i4"), stream=stream)
    capsules = array.__arrow_c_device_array__()
    _, device = opened(capsules)
    assert device.sync_event.contents.value


# -- with pyarrow and nanoarrow --------------------------------------------------------------------


@on_host
def test_pyarrow_reads_an_array_in_place(pa):
    array = gpuarray.to_gpu(np.arange(6, dtype="i4"))
    there = pa.array(array)
    assert there.type == pa.int32()
    assert there.buffers()[1].address == array.ptr
    assert there.to_pylist() == list(range(6))
    del array
    gc.collect()
    assert there.to_pylist() == list(range(6))


@on_host
def test_pyarrow_reads_a_batch_in_place(pa):
    batch = nested_batch()
    there = pa.record_batch(batch)
    there.validate(full=True)
    assert there.schema == batch.schema
    assert there.column("nulls").to_pylist() == [0, None, 2, None, 4, 5, None, 7]
    assert there.column("part").to_pylist() == list(np.arange(3.0, 11))
    assert there.column("whole").buffers()[1].address == batch["whole"].to_gpuarray().ptr
    assert there.equals(batch.copy_to_host())


@on_gpu
def test_a_library_for_the_host_refuses_a_column_of_a_gpu(pa):
    batch = nested_batch()
    for read in (
        lambda: pa.array(batch["whole"]),
        lambda: pa.array(gpuarray.to_gpu(np.arange(3.0))),
        lambda: pa.record_batch(batch),
        lambda: pa.py_buffer(batch["whole"].buffers()[1]),
        lambda: pa.table(batch),
    ):
        with pytest.raises((NotImplementedError, ImportError, BufferError, TypeError, KeyError,
                            pa.ArrowException)):  # fmt: skip
            read()


def host_arrays(pa):
    texts = ["a", None, "", "grün", "a longer text than twelve bytes"]
    struct = [
        {"x": 1, "y": "a"},
        None,
        {"x": None, "y": "c"},
        {"x": 4, "y": None},
        {"x": 5, "y": ""},
    ]
    from decimal import Decimal

    return {
        "int8": pa.array([1, None, 3, 4, 5], pa.int8()),
        "bool": pa.array([True, None, False, True, True]),
        "null": pa.nulls(5),
        "float16": pa.array(np.arange(5, dtype="f2")),
        "string": pa.array(texts),
        "large_string": pa.array(texts, pa.large_string()),
        "string_view": pa.array(texts, pa.string_view()),
        "binary": pa.array([b"a", b"", None, b"xyz", b"\0"]),
        "fixed": pa.array([b"ab", None, b"cd", b"ef", b"gh"], pa.binary(2)),
        "list": pa.array([[1, 2], None, [], [3], [4, 5, None]]),
        "large_list": pa.array([[1, 2], None, [], [3], [4]], pa.large_list(pa.int16())),
        "list_view": pa.array([[1, 2], None, [], [3], [4]], pa.list_view(pa.int16())),
        "fixed_list": pa.array([[1, 2], None, [3, 4], [5, 6], [7, 8]], pa.list_(pa.int32(), 2)),
        "struct": pa.array(struct),
        "map": pa.array([[("a", 1)], None, [], [("b", 2), ("c", 3)], []], pa.map_("str", "int8")),
        "decimal": pa.array([Decimal("1.25"), None, Decimal("3"), Decimal(4), Decimal(5)]),
        "decimal256": pa.array([Decimal(1), None, Decimal(3)] * 2, pa.decimal256(40, 2))[:5],
        "date": pa.array([1, 2, None, 4, 5], pa.date32()),
        "timestamp": pa.array([1, 2, None, 4, 5], pa.timestamp("us", "UTC")),
        "duration": pa.array([1, 2, None, 4, 5], pa.duration("ns")),
        "interval": pa.array([(1, 2, 3), None, (4, 5, 6), (7, 8, 9), (1, 1, 1)],
                             pa.month_day_nano_interval()),
        "dictionary": pa.array(["x", "y", None, "x", "y"]).dictionary_encode(),
        "run_end": pa.RunEndEncodedArray.from_arrays([2, 5], ["x", "y"]),
        "sparse": pa.UnionArray.from_sparse(
            pa.array([0, 1, 0, 1, 0], pa.int8()), [pa.array(range(5)), pa.array(list("abcde"))]
        ),
        "dense": pa.UnionArray.from_dense(
            pa.array([0, 1, 0, 1, 0], pa.int8()), pa.array([0, 0, 1, 1, 2], pa.int32()),
            [pa.array([1, 2, 3]), pa.array(["a", "b"])],
        ),
    }  # fmt: skip


@pytest.mark.parametrize("part", [slice(0, 5), slice(1, 4), slice(2, 2)], ids=str)
def test_types_there_and_back(pa, part):
    for name, whole in host_arrays(pa).items():
        array = whole[part]
        column = arrow.from_device_array(array, copy=True)
        assert column.length == len(array), name
        assert column.copy_to_host().equals(array), name
        assert column.type == array.type
        middle = min(1, len(array))
        assert column.slice(middle, 1).copy_to_host().equals(array[middle : middle + 1]), name
        again = arrow.from_device_array(column)
        assert again.copy_to_host().equals(array), name
        # The bitmap is omitted for columns without nulls.
        for mine, there in zip(column.buffers(), again.buffers() if len(array) else ()):
            assert there is None or not there.size or there.address == mine.address, name
        if BACKEND == "host":
            assert pa.array(column).equals(array), name


@on_host
def test_ordinary_memory_is_copied_unless_that_is_refused(pa):
    array = pa.array([1, 2, None, 4])
    assert arrow.from_device_array(array).copy_to_host().equals(array)
    with pytest.raises(BufferError, match="cannot use memory"):
        arrow.from_device_array(array, copy=False)


@on_gpu
def test_host_memory_reaches_a_gpu_only_as_a_copy(pa):
    with pytest.raises(BufferError, match="device type 1.*copy=True"):
        arrow.from_device_array(pa.array([1, 2]))


def test_nanoarrow(pa):
    device = pytest.importorskip("nanoarrow.device", reason="nanoarrow is not installed")
    batch = nested_batch()
    # After an export and an import a column is at the same address.
    whole = batch["whole"]
    back = arrow.from_device_array(device.c_device_array(whole))
    assert back.to_gpuarray().ptr == whole.to_gpuarray().ptr
    np.testing.assert_array_equal(back.to_gpuarray().get(), whole.to_gpuarray().get())
    if BACKEND != "host":
        assert device.c_device_array(batch).device_type_id == DEVICE_TYPE
        return
    there = device.c_device_array(batch)
    assert there.array.length == 8
    addresses = [child.buffers[1] for child in there.array.children]
    assert [column.buffers()[1].address for column in batch.columns] == addresses
