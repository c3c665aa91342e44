"""Arrays and columns in Dask's ``distributed``: serialisers, and a multi-process cluster."""

from __future__ import annotations

import json
import os
import pickle
import random

import numpy as np
import pytest
from device import ALONE, BACKEND, IS_DOUBLE, TEST_ALL
from hypothesis import given
from pairs import check, pairs
from processes import run_python

from pygpu import arrow, cuda, gpuarray, ipc

pytest.importorskip("distributed", reason="distributed is not installed")

import dask.array as dask_array
from dask.array import from_array
from dask.sizeof import sizeof
from distributed.protocol import deserialize, dumps, loads, serialize, to_serialize

import pygpu.dask

on_gpu = pytest.mark.skipif(BACKEND == "host", reason="about GPUs")
needs_counts = pytest.mark.skipif(
    not hasattr(pygpu._core, "_testing"),
    reason="this wheel cannot count calls: it is built without the feature testing",
)

RECORD = np.dtype([("a", "<i2"), ("b", "<f8", (2, 3)), ("c", [("x", "u1"), ("y", "<f4")])])


def sent(value):
    """Returns the value that a worker receives, from read-only bytes like a socket's."""
    frames = dumps({"value": to_serialize(value)})
    return loads([bytes(frame) for frame in frames])["value"]


# ---- arrays -------------------------------------------------------------------------------------


@given(pairs())
def test_arrays_of_any_strides(pair):
    header, frames = serialize(pair.device)
    assert header["serializer"] == "dask"
    assert [frame.nbytes for frame in frames] == [pair.host.nbytes]
    check(sent(pair.device), pair.host)


ALIGNED = np.dtype({"names": ["a", "b"], "formats": ["i1", "f8"], "offsets": [0, 8]})
OVERLAPPING = np.dtype({"names": ["a", "b"], "formats": ["i4", "i2"], "offsets": [0, 0]})


@pytest.mark.parametrize("dtype", ["?", "f2", "c16", "V3", RECORD, ALIGNED, OVERLAPPING], ids=str)
def test_elements_of_any_dtype(dtype):
    host = np.zeros((3, 4), dtype)
    host.view(np.uint8)[1] = 1
    found = sent(gpuarray.to_gpu(host)[:, ::3])
    assert found.dtype == host.dtype
    assert (found.get() == host[:, ::3]).all()
    assert not (found.get() == np.zeros((), dtype)).all()


def test_bfloat16():
    ml_dtypes = pytest.importorskip("ml_dtypes", reason="ml_dtypes is not installed")
    host = np.arange(6).astype(ml_dtypes.bfloat16)
    check(sent(gpuarray.to_gpu(host)), host)


def test_axes_keep_their_order_in_memory():
    host = np.arange(24.0).reshape(2, 3, 4).transpose(2, 0, 1)
    found = sent(gpuarray.to_gpu(host))
    check(found, host)
    assert found.strides == host.strides


@pytest.mark.parametrize("shape", [(0,), (3, 0, 2), (1, 1), ()], ids=str)
def test_small_and_empty_arrays(shape):
    host = np.ones(shape, "f4")
    check(sent(gpuarray.to_gpu(host)), host)


def test_repeated_elements_travel_once():
    host = np.broadcast_to(np.arange(3.0)[:, None], (4, 3, 1000))
    array = gpuarray.broadcast_to(gpuarray.to_gpu(np.arange(3.0)[:, None]), (4, 3, 1000))
    assert [frame.nbytes for frame in serialize(array)[1]] == [24]
    found = sent(array)
    check(found, host)
    assert found.strides == host.strides
    # numpy limits an array's bytes, so this array cannot be created on the host.
    large = gpuarray.broadcast_to(gpuarray.ones(1, "f4"), (1 << 40,))
    assert sent(large).shape == (1 << 40,)
    empty = gpuarray.broadcast_to(gpuarray.ones((1, 0), "f4"), (5, 0))
    check(sent(empty), np.ones((5, 0), "f4"))


def test_classes_are_kept():
    header, _ = serialize(cuda.to_device(np.arange(3.0)))
    assert header["serializer"] == "pickle"
    found = sent(cuda.to_device(np.arange(3.0)))
    assert isinstance(found, cuda.cudadrv.devicearray.DeviceNDArray)
    check(found, np.arange(3.0))


def test_collections_of_arrays():
    value = {"a": [gpuarray.arange(3), gpuarray.arange(4)], "b": (gpuarray.zeros(2), 7)}
    found = sent(value)
    check(found["a"][1], np.arange(4))
    check(found["b"][0], np.zeros(2))
    assert found["b"][1] == 7


REDUCTIONS = ["sum", "prod", "mean", "std", "var", "min", "max", "any", "all", "argmin", "argmax"]
REDUCTIONS += ["median", "cumsum", "cumprod"]
REDUCTIONS += [f"nan{name}" for name in REDUCTIONS if name not in ("any", "all", "median")]
# A fake driver compiles each operation, which other tests also compare with numpy's there.
EACH = 6 if IS_DOUBLE and not TEST_ALL else 1


@pytest.mark.parametrize("name", [*REDUCTIONS, "nanmedian"][::EACH])
def test_a_reduction_of_chunks_runs_on_the_device(name):
    host = np.random.default_rng(0).random((6, 8))
    if name.startswith("nan"):
        host[1:4, 2:5:2] = np.nan
    has_axis = name.endswith(("cumsum", "cumprod", "median"))
    for axis in (0, 1, -1) if has_axis else (None, 0, 1, -1):
        chunks = from_array(gpuarray.to_gpu(host), chunks=(3, 4), asarray=False)
        found = getattr(dask_array, name)(chunks, axis=axis).compute(scheduler="synchronous")
        assert isinstance(found, gpuarray.GPUArray), axis
        expected = np.asarray(getattr(np, name)(host, axis=axis))
        assert (found.shape, found.dtype) == (expected.shape, expected.dtype), axis
        np.testing.assert_allclose(found.get(), expected, rtol=1e-12)


CALLS = """
x.map_blocks(lambda block: block * 2 + 1)
da.stack([x, x], axis=1)
da.concatenate([x, x], axis=1)
da.block([[x, x], [x, x]])
x.rechunk((2, 5))
x.reshape(48)
x[1:5, ::2]
x[[0, 2, 5]]
x[x > 0.5]
da.where(x > 0.5, x, 0)
x @ x.T
da.tensordot(x, x, axes=((1,), (1,)))
da.einsum("ij,kj->ik", x, x)
da.cov(x)
da.linalg.norm(x, axis=0)
da.pad(x, 1, mode="mean")
da.tril(x)
da.roll(x, 2, axis=0)
da.apply_along_axis(lambda row: row.sum(), 1, x)
da.apply_over_axes(np.sum, x, [0])
da.piecewise(x, [x < 0.5, x >= 0.5], [-1, 1])
da.lib.stride_tricks.sliding_window_view(x, 3, axis=0)
da.unravel_index((x * 9).astype(int).ravel(), (3, 3))[1]
da.bincount((x * 9).astype(int).ravel(), minlength=10)
da.histogram(x, bins=4, range=(0, 1))[0]
da.quantile(x, 0.5, axis=0)
da.coarsen(np.sum, x, {0: 3, 1: 2})
x.map_overlap(lambda block: block + 1, depth=1, boundary="reflect")
x.view("i8")
da.std(x, axis=0, ddof=1)
da.percentile(x[:, 0], [10, 50, 90])
da.percentile(x[:, 0], 50)
da.unique((x * 9).astype(int))
da.unique((x * 9).astype(int), return_index=True)[1]
da.unique((x * 9).astype(int), return_inverse=True)[1]
da.unique((x * 9).astype(int), return_counts=True)[1]
da.union1d((x * 9).astype(int), (x * 5).astype(int))
da.nonzero(x > 0.5)[1]
da.flatnonzero(x > 0.5)
da.argwhere(x[0] > 0.5)
da.where(x > 2)[0]
da.linalg.qr(x.T.rechunk((4, 6)))[1]
da.linalg.svd(x.rechunk((6, 4)))[1]
""".strip().splitlines()


@pytest.mark.parametrize("text", CALLS[::EACH])
def test_a_call_of_dask_array_agrees_with_numpys_chunks(text):
    host = np.random.default_rng(0).random((6, 8))
    made = (from_array(it, (3, 4), asarray=False) for it in (gpuarray.to_gpu(host), host))
    found, expected = (
        eval(text, {"da": dask_array, "np": np, "x": x}).compute(scheduler="synchronous")
        for x in made
    )
    assert isinstance(found, gpuarray.GPUArray)
    assert (found.shape, found.dtype) == (expected.shape, expected.dtype)
    np.testing.assert_allclose(found.get(), expected, rtol=1e-12)


COUNTED = """
import tracemalloc
import numpy as np
import pygpu.dask
from distributed.protocol import deserialize, serialize
from pygpu import arrow, gpuarray
from pygpu._core import _testing

def costs(function, *arguments):
    tracemalloc.start()
    _testing.inject_fault(None)
    result = function(*arguments)
    transfers = dict(_testing.fault_calls()[0]).get("Transfer", 0)
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return result, transfers, most

N = 1 << 20
bits = gpuarray.zeros(N // 8, "u1")
column = arrow.DeviceColumn.from_gpuarray(gpuarray.arange(N, dtype="f4"), bits)
square = gpuarray.zeros((1024, 1024), "f4")
for value, copies in ((square, 1), (square.T, 1), (square[:, ::2], 1), (column, 2)):
    deserialize(*serialize(value))
    (header, frames), transfers, most = costs(serialize, value)
    # Of host memory there is what is sent, and nothing else.
    assert (transfers, len(frames)) == (copies, copies), (value, transfers)
    assert value.nbytes <= most < value.nbytes + N // 4, (value, most)
    _, transfers, most = costs(deserialize, header, frames)
    assert (transfers, most < N // 4) == (copies, True), (value, transfers, most)
"""


@needs_counts
def test_there_is_one_copy_each_way():
    run_python(COUNTED, PYGPU_FAULT_INJECTION="1")


# ---- device memory as frames --------------------------------------------------------------------


class Received:
    """Memory of another library into which a transport has received."""

    def __init__(self, array):
        self.array = array
        self.__cuda_array_interface__ = array.__cuda_array_interface__


@on_gpu
def test_a_transport_that_takes_device_memory():
    host = np.arange(24.0).reshape(4, 6)
    array = gpuarray.to_gpu(host)
    for view, is_copied in ((array, False), (array.T, False), (array[:, ::2], True)):
        header, frames = serialize(view, serializers=("cuda", "dask", "pickle"))
        assert header["serializer"] == "cuda"
        (frame,) = frames
        assert (frame.dtype, frame.ptr != array.ptr) == (np.uint8, is_copied)
        check(deserialize(header, [Received(frame)]), view.get())
    header, frames = serialize(gpuarray.zeros((0, 3)), serializers=("cuda",))
    check(deserialize(header, [Received(frame) for frame in frames]), np.zeros((0, 3)))
    column = arrow.DeviceColumn.from_gpuarray(gpuarray.arange(64, dtype="i4"))
    header, frames = serialize(column, serializers=("cuda",))
    found = deserialize(header, [Received(frame) for frame in frames])
    assert found.to_gpuarray().ptr == column.to_gpuarray().ptr


@pytest.mark.skipif(BACKEND != "host", reason="about the host")
def test_memory_of_the_host_is_not_taken_for_a_gpus():
    for value in (gpuarray.arange(3), arrow.DeviceColumn.from_gpuarray(gpuarray.zeros(3))):
        header, _ = serialize(value, serializers=("cuda", "dask", "pickle"))
        assert header["serializer"] == "dask"


# ---- columns ------------------------------------------------------------------------------------


def batch():
    pa = pytest.importorskip("pyarrow", reason="pyarrow is not installed")
    return pa.record_batch(
        {
            "number": pa.array([1, None, 3] * 10, pa.int32()),
            "truth": pa.array([True, None, False] * 10),
            "text": pa.array(["a", None, "ccc"] * 10),
            "view": pa.array(["a", None, "more than twelve bytes"] * 10, pa.string_view()),
            "list": pa.array([[1, 2], None, []] * 10, pa.list_(pa.int16())),
            "pair": pa.array([[1, 2], None, [3, 4]] * 10, pa.list_(pa.int16(), 2)),
            "struct": pa.array([{"x": 1.5, "y": "b"}, None, {"x": None, "y": "d"}] * 10),
            "null": pa.nulls(30),
            "decimal": pa.array([1, None, 3] * 10, pa.decimal128(9, 2)),
        }
    )


@pytest.mark.parametrize("part", [slice(0, 30), slice(3, 20), slice(17, 17), slice(8, 9)], ids=str)
def test_columns_of_any_type(part):
    host = batch()
    there = arrow.read_record_batch(
        arrow.serialize_record_batch(host, arrow.Context()), host.schema
    )
    expected = host[part]
    view = there[part]
    assert serialize(view)[0]["serializer"] == "dask"
    found = sent(view)
    assert isinstance(found, arrow.DeviceRecordBatch)
    assert found.copy_to_host().equals(expected)
    assert pickle.loads(pickle.dumps(view)).copy_to_host().equals(expected)
    for name in host.schema.names:
        column = view.column(name)
        assert sent(column).copy_to_host().equals(expected.column(name))


def test_a_column_with_a_dictionary():
    pa = pytest.importorskip("pyarrow", reason="pyarrow is not installed")
    if BACKEND != "host":
        pytest.skip("pyarrow has no dictionaries in a GPU's memory")
    host = pa.array(["a", "b", None, "a"] * 9).dictionary_encode()
    found = sent(arrow.from_device_array(host).slice(1, 20))
    assert found.copy_to_host().equals(host[1:21])


def test_a_slice_sends_its_own_bytes():
    column = arrow.DeviceColumn.from_gpuarray(
        gpuarray.arange(8000, dtype="i4"), gpuarray.zeros(1000, "u1")
    )
    frames = serialize(column.slice(1003, 10))[1]
    # The bits and the values of 13 elements, starting at element 1000.
    assert [frame.nbytes for frame in frames] == [2, 13 * 4]


def test_a_shared_column_with_a_mask():
    data = ipc.share(gpuarray.to_gpu(np.arange(3, dtype="f4")))
    mask = ipc.share(gpuarray.to_gpu(np.array([0b101], "u1")))
    with ipc.export_column(data, mask) as column, ipc.open_column(column) as opened:
        assert sizeof(opened) == 13
        found = sent(opened)
        assert found.valid().tolist() == [True, False, True]
        check(found.data, np.arange(3, dtype="f4"))
        found.close()


# ---- what other processes send ------------------------------------------------------------------


@pytest.mark.parametrize(
    "changes",
    [
        {"shape": [7]},
        {"shape": [-1]},
        {"shape": [2**62]},
        {"shape": "x"},
        {"shape": [3.0]},
        {"shape": [1] * 100},
        {"dtype": "O"},
        {"dtype": "<f8"},
        {"dtype": 3},
        {"order": [1]},
        {"order": [0, 0]},
        {"repeated": [5]},
        {"repeated": [0]},
        {"repeated": [-1]},
        {"more": 1},
    ],
    ids=str,
)
def test_a_wrong_header_of_an_array(changes):
    header, frames = serialize(gpuarray.arange(6, dtype="i4"))
    parts = json.loads(header["sub-header"]["array"]) | changes
    header["sub-header"]["array"] = json.dumps(parts)
    with pytest.raises((TypeError, ValueError)):
        deserialize(header, frames)


@pytest.mark.parametrize(
    "changes",
    [
        {"length": 2**62},
        {"length": -1},
        {"length": 9},
        {"offset": 1},
        {"buffers": [0]},
        {"buffers": [None, 1]},
        {"buffers": [None, None]},
        {"buffers": [None, -1]},
        {"children": [{}]},
        {"dictionary": {}},
        {"nulls": 9},
    ],
    ids=str,
)
def test_a_wrong_header_of_a_column(changes):
    header, frames = serialize(arrow.DeviceColumn.from_gpuarray(gpuarray.zeros(8, "i4")))
    parts = json.loads(header["sub-header"]["column"])
    parts["column"] |= changes
    header["sub-header"]["column"] = json.dumps(parts)
    with pytest.raises((TypeError, ValueError)):
        deserialize(header, frames)


# The values that replace a part of a header.
CHANGES = [0, 1, -1, 8, 2**31, 2**62, 2**63, 2**70, -(2**63), 1.5, None, True, "", "x", "+s", "u"]
CHANGES += ["w:3", "+w:1000000000", "+r", "vu", [], {}, [0] * 100, "<f8", "|V3", [["a", "<i4"]]]


def places(value):
    """Yields each part of a JSON value, as its container and key."""
    keys = value if isinstance(value, dict) else range(len(value))
    for key in keys:
        yield value, key
        if isinstance(value[key], dict | list):
            yield from places(value[key])


def test_mutated_headers_are_errors_or_arrays():
    host = batch()
    there = arrow.read_record_batch(
        arrow.serialize_record_batch(host, arrow.Context()), host.schema
    )
    array = gpuarray.arange(24, dtype="f4").reshape(2, 3, 4).transpose(2, 0, 1)
    subjects = [array, gpuarray.broadcast_to(array, (5, *array.shape)), there, there.column(0)]
    generator = random.Random(14)
    read = 0
    count = 5_000 if os.environ.get("PYGPU_TEST_ALL") else 500
    for _ in range(count):
        header, frames = serialize(generator.choice(subjects))
        ((key, text),) = header["sub-header"].items()
        value = json.loads(text)
        for _ in range(generator.randint(1, 2)):
            holder, part = generator.choice(list(places(value)))
            # A copy, so that later changes do not modify the list in CHANGES.
            holder[part] = json.loads(json.dumps(generator.choice(CHANGES)))
        header["sub-header"][key] = json.dumps(value)
        if generator.random() < 0.2 and frames:
            frames[0] = frames[0][: generator.randrange(len(frames[0]) + 1)]
        try:
            deserialize(header, frames)
            read += 1
        except (TypeError, ValueError):
            pass
    assert 0 < read < count // 2


def test_what_workers_count():
    assert sizeof(gpuarray.zeros((3, 5), "f8")) == 120
    assert sizeof(arrow.Context().new_buffer(17)) == 17
    assert sizeof(arrow.DeviceColumn.from_gpuarray(gpuarray.zeros(5, "f4"))) == 20


def test_a_token_is_that_of_the_content():
    from dask.tokenize import tokenize

    a, column = gpuarray.arange(6, dtype="f4"), arrow.DeviceColumn.from_gpuarray(gpuarray.ones(3))
    assert tokenize(a) == tokenize(gpuarray.arange(6, dtype="f4"))
    assert len({tokenize(x) for x in (a, a + 1, a[::2], a.reshape(2, 3), a.astype("f8"))}) == 5
    assert tokenize(column) == tokenize(arrow.DeviceColumn.from_gpuarray(gpuarray.ones(3)))
    assert tokenize(column) != tokenize(column.slice(1))


FULL = """
import numpy as np
import pygpu.dask
from distributed.protocol import deserialize, serialize
from pygpu import arrow, driver, gpuarray

a = gpuarray.arange(1 << 20, dtype=np.float32)
column = arrow.DeviceColumn.from_gpuarray(a)
sent = [serialize(value) for value in (a, column)]
_, total = driver.mem_get_info()
filled = driver.mem_alloc(total - (6 << 20))
for (header, frames), kind in zip(sent, (gpuarray.GPUArray, arrow.DeviceColumn)):
    left = deserialize(header, frames)
    assert repr(left) == f"<LeftOnHost, a {kind.__name__} of {4 << 20} bytes>"
    for use in (
        lambda: left.shape,
        lambda: left + 1,
        lambda: 1 - left,
        lambda: left[0],
        lambda: np.sum(left),
        lambda: len(left),
        lambda: left.restore(),
    ):
        try:
            use()
        except MemoryError as error:
            assert "were asked for" in str(error), error
        else:
            raise AssertionError("it was used")
    # It is sent on as what it is.
    again = deserialize(*serialize(left))
    assert type(again) is type(left)
    filled.free()
    for found in (left.restore(), deserialize(*serialize(again))):
        assert type(found) is kind
        found = found if kind is gpuarray.GPUArray else found.to_gpuarray()
        assert (found.get() == np.arange(1 << 20)).all()
        del found
    driver.Context.synchronize()
    filled = driver.mem_alloc(total - (6 << 20))
"""


@pytest.mark.skipif(not ALONE, reason="other processes use the device's memory")
def test_what_does_not_fit_is_left_on_the_host():
    run_python(FULL, PYGPU_HOST_MEMORY="64M")


# ---- a cluster ----------------------------------------------------------------------------------

CLUSTER = """
import os
import signal
import numpy as np
import pygpu.dask
from distributed import Client, LocalCluster, wait
from pygpu import arrow, driver, gpuarray

COUNT, ELEMENTS = 20, 1 << 20

def make(k):
    return gpuarray.arange(k, k + ELEMENTS, dtype=np.float32)

def dot(a, b):
    return float(gpuarray.dot(a, b, dtype=np.float64).get())

def dot_all(*arrays):
    return [dot(a, a + 1) for a in arrays]

def total(a):
    return float(gpuarray.sum(a, dtype=np.float64).get())

def capacity():
    return driver.mem_get_info()[1]

def nulls(column):
    return column.copy_to_host().null_count

def main():
    options = dict(processes=True, protocol="tcp", dashboard_address=None, memory_limit=0)
    with (
        LocalCluster(n_workers=3, threads_per_worker=1, **options) as cluster,
        Client(cluster) as client,
    ):
        # All parts together are more than one worker has.
        capacities = client.run(capacity)
        assert set(capacities.values()) == {64 << 20}, capacities
        assert COUNT * ELEMENTS * 4 > 64 << 20
        workers = sorted(capacities)
        parts = [
            client.submit(make, k, workers=[workers[k % 3]], allow_other_workers=True)
            for k in range(COUNT)
        ]
        wait(parts)
        places = client.who_has(parts)
        assert {worker for (worker,) in places.values()} == set(workers)

        def expected(k):
            return (np.arange(ELEMENTS) + k).astype(np.float64)

        # Workers pass arrays to each other.
        dots = [client.submit(dot, parts[k], parts[k + 1]) for k in range(4)]
        for k, found in enumerate(client.gather(dots)):
            np.testing.assert_allclose(found, expected(k) @ expected(k + 1), rtol=1e-9)
        # The client receives one, and sends another, without gaps of its own.
        np.testing.assert_array_equal(parts[7].result().get(), expected(7).astype(np.float32))
        view = gpuarray.arange(100.0)[::-3]
        (there,) = client.scatter([view])
        assert client.submit(total, there).result() == np.arange(100.0)[::-3].sum()
        column = arrow.DeviceColumn.from_gpuarray(
            gpuarray.arange(16, dtype="i4"), gpuarray.to_gpu(np.array([0x0F, 0xF0], "u1"))
        )
        assert client.submit(nulls, column).result() == 8

        # A worker is killed in the middle of work: what it had is made anew, elsewhere.
        pid = client.run(os.getpid, workers=[workers[0]])[workers[0]]
        totals = client.map(total, parts)
        os.kill(pid, signal.SIGKILL)
        for k, found in enumerate(client.gather(totals)):
            np.testing.assert_allclose(found, expected(k).sum(), rtol=1e-9)
        for k, found in enumerate(client.gather(client.map(total, parts, pure=False))):
            np.testing.assert_allclose(found, expected(k).sum(), rtol=1e-9)
        assert pid not in client.run(os.getpid).values()

        # A task whose arguments do not fit on one device fails; other workers go on.
        here, there = sorted(client.run(capacity))[:2]
        failed = client.submit(dot_all, *parts, workers=[here]).exception(timeout=60)
        assert isinstance(failed, (MemoryError, TypeError)), failed
        again = client.submit(total, parts[1], workers=[there], pure=False)
        np.testing.assert_allclose(again.result(timeout=60), expected(1).sum(), rtol=1e-9)
        print("passed")

if __name__ == "__main__":
    main()
"""


@pytest.mark.skipif(not ALONE, reason="the device's memory cannot be bounded")
@pytest.mark.skipif(not os.environ.get("PYGPU_TEST_ALL"), reason="part of make test-all")
def test_a_cluster_with_more_than_one_workers_memory():
    done = run_python(CLUSTER, check=False, PYGPU_HOST_MEMORY="64M", DOUBLE_MEMORY="67108864")
    assert done.stdout == "passed\n", done.stderr[-3000:]
