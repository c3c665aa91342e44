"""Every exporter keeps the rules of every protocol, for arrays that may break them."""

from __future__ import annotations

import copy
import ctypes
import json
import pickle

import exchange_rules as rules
import numpy as np
import pytest
from device import BACKEND, DEVICE
from tables import each_row

import PybindGPU
from pygpu import arrow, cuda, driver, gpuarray, ipc, tools

KIND = {"host": 1, "cuda": 2, "hip": 10}[BACKEND]
MANAGED = bool(DEVICE.get_attribute(driver.device_attribute.MANAGED_MEMORY))

PADDED = np.dtype([("a", "i1"), ("b", "f8"), ("c", "i2")], align=True)
RECORDS = {
    "packed": np.dtype([("a", "i1"), ("b", "f8")]),
    "padded": PADDED,
    "nested": np.dtype([("p", PADDED), ("q", "f4", (2, 2))]),
    "out of order": np.dtype({"names": ["a", "b"], "formats": ["f4", "i4"], "offsets": [4, 0]}),
    "overlapping": np.dtype({"names": ["a", "b"], "formats": ["f8", "i4"], "offsets": [0, 4]}),
    "gap at the end": np.dtype({"names": ["a"], "formats": ["f4"], "itemsize": 12}),
    "bytes": np.dtype("V5"),
    "text": np.dtype("S3"),
    "time": np.dtype("M8[ns]"),
    "difference": np.dtype("m8[s]"),
}
# Arrow's formats.
FORMATS = {
    "i1": "c",
    "u1": "C",
    "i2": "s",
    "u2": "S",
    "i4": "i",
    "u4": "I",
    "i8": "l",
    "u8": "L",
    "f2": "e",
    "f4": "f",
    "f8": "g",
}
NUMBERS = {name: np.dtype(name) for name in ("?", *FORMATS, "c8", "c16")}
try:
    import ml_dtypes
except ImportError:
    ml_dtypes = None
else:
    NUMBERS["bfloat16"] = np.dtype(ml_dtypes.bfloat16)
DTYPES = NUMBERS | RECORDS

SHAPES = [(), (1,), (7,), (0,), (3, 0, 2), (2, 3, 4), (1, 5, 1), (1,) * 8]
VIEWS = {
    "all": lambda a: a,
    "reversed": lambda a: a[..., ::-1] if a.ndim else a,
    "steps": lambda a: a[..., 1::2] if a.ndim else a,
    "transposed": lambda a: a.T,
    "one element": lambda a: a[(slice(0, 1),) * a.ndim],
}


def sample(dtype, shape):
    """Returns elements with every byte set; booleans are 0 or 1."""
    count = int(np.prod(shape)) * dtype.itemsize
    octets = np.arange(count, dtype=np.uint8) % (2 if dtype.kind == "b" else 255)
    return np.frombuffer(octets.tobytes(), dtype).reshape(shape)


def octets_of(array):
    """Returns the bytes of the elements, including gaps in records."""
    return np.ascontiguousarray(array.view(f"V{array.dtype.itemsize}")).tobytes()


def arrays(dtype):
    for shape in SHAPES:
        host = sample(dtype, shape)
        device = gpuarray.to_gpu(host)
        for name, view in VIEWS.items():
            yield f"{shape} {name}", view(host), view(device)


def check_described(interface, host, is_read_only=False, name=None):
    address, shape, strides, dtype, read_only = rules.cuda_array_interface(interface)
    assert shape == host.shape, name
    assert dtype.itemsize == host.dtype.itemsize, name
    assert read_only == is_read_only, name
    steps = [own == it for own, it, n in zip(strides, host.strides, shape) if n > 1]
    assert all(steps) or not host.size, name
    if BACKEND == "host" and host.size:
        low = sum(min(0, step * (n - 1)) for n, step in zip(shape, strides))
        high = sum(max(0, step * (n - 1)) for n, step in zip(shape, strides)) + dtype.itemsize
        memory = (ctypes.c_char * (high - low)).from_address(address + low)
        view = np.ndarray(shape, f"V{dtype.itemsize}", memory, -low, strides)
        assert octets_of(view) == octets_of(host), name
    return dtype


@each_row("name", DTYPES)
def test_descriptions(name):
    dtype = DTYPES[name]
    for what, host, device in arrays(dtype):
        interface = device.__cuda_array_interface__
        found = check_described(interface, host, name=what)
        if dtype.names and "descr" in interface:
            # The description does not contain padding as a field.
            assert found == dtype
        elif dtype.names:
            assert name in ("out of order", "overlapping")
        again = gpuarray.from_cuda_array_interface(device)
        assert octets_of(again.get()) == octets_of(host)
        assert again.dtype == dtype
        # A description consists of plain data.
        assert json.loads(json.dumps(interface["data"])) == list(interface["data"])
        assert pickle.loads(pickle.dumps(interface)) == copy.deepcopy(interface) == interface


@each_row("stream", ["none", "default", "own", "per thread"])
@each_row("name", ["f4", "?", "c8", "padded", "bfloat16"])
def test_descriptions_of_arrays_with_a_stream(name, stream):
    if name not in DTYPES:
        pytest.skip("ml_dtypes is not installed")
    if stream == "per thread" and BACKEND == "host":
        pytest.skip("the host has no such stream")
    stream = {
        "none": lambda: 0,
        "default": cuda.default_stream,
        "own": cuda.stream,
        "per thread": cuda.per_thread_default_stream,
    }[stream]()
    for what, host, device in arrays(DTYPES[name]):
        array = cuda.as_cuda_array(device).bind(stream)
        interface = array.__cuda_array_interface__
        check_described(interface, host, name=what)
        if stream:
            # The default stream has handle 0, and its number in the interface is 1.
            assert interface["stream"] == (int(stream) or 1)
        assert octets_of(cuda.as_cuda_array(Described(array)).copy_to_host()) == octets_of(host)


class Described:
    """Another library's object with the description of this library's array."""

    def __init__(self, array):
        self.array = array

    @property
    def __cuda_array_interface__(self):
        return self.array.__cuda_array_interface__


@pytest.mark.parametrize("is_read_only", [False, True])
@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("make", ["mapped", "managed"])
def test_descriptions_of_host_arrays(make, stream, is_read_only):
    if make == "managed" and not MANAGED:
        pytest.skip("the device has no managed memory")
    make = {"mapped": cuda.mapped_array, "managed": cuda.managed_array}[make]
    for dtype in (np.dtype("f4"), PADDED, np.dtype("?")):
        for shape in SHAPES:
            for own in (0, cuda.default_stream(), cuda.stream()) if stream else (0,):
                array = make(shape, dtype, stream=own)
                cuda.synchronize()
                array[...] = sample(dtype, shape)
                array.flags.writeable = not is_read_only
                interface = array.__cuda_array_interface__
                check_described(interface, np.asarray(array), is_read_only)
                assert (interface["stream"] is None) == (own == 0)
                rules.array_interface(array.__array_interface__)
                rules.buffer(array)
                if array.ndim:
                    check_described(array[::-1].__cuda_array_interface__, array[::-1], is_read_only)


def test_descriptions_of_what_is_no_array():
    host = np.arange(10, dtype=np.int32)
    device = PybindGPU.to_gpu(host)
    check_described(device.__cuda_array_interface__, host)
    buffer = arrow.Context().buffer_from_data(host)
    check_described(buffer.__cuda_array_interface__, host.view(np.uint8))
    check_described(buffer[:0].__cuda_array_interface__, host[:0].view(np.uint8))
    record = cuda.to_device(np.zeros(1, PADDED)[0])
    check_described(record.__cuda_array_interface__, np.zeros((), PADDED))


def test_there_is_no_description_of_memory_that_was_freed():
    for make in (gpuarray.zeros, lambda n: cuda.as_cuda_array(gpuarray.zeros(n))):
        array = make(4)
        base = array if array.base is None else array.base
        base.gpudata.free()
        for export in (lambda it: it.__cuda_array_interface__, lambda it: it.__dlpack__()):
            with pytest.raises(driver.LogicError, match="freed"):
                export(array)
        with pytest.raises(driver.LogicError, match="freed"):
            gpuarray.GPUArray.__arrow_c_device_array__(array)


# ---- DLPack -------------------------------------------------------------------------------------

VERSIONS = [None, (0, 8), (1, 0), (1, 1), (1, 7), (2, 0)]


@pytest.mark.parametrize("name", NUMBERS)
def test_capsules(name):
    dtype = NUMBERS[name]
    kind = {"?": 6, "bfloat16": 4}.get(name) or {"i": 0, "u": 1, "f": 2, "c": 5}[dtype.kind]
    for what, host, device in arrays(dtype):
        for is_copied in (None, True):
            for version in VERSIONS:
                capsule = device.__dlpack__(max_version=version, copy=is_copied)
                data, shape, strides, elements, flags = rules.dlpack(
                    capsule, version, device=device.__dlpack_device__()
                )
                assert shape == host.shape, what
                assert elements == (kind, 8 * dtype.itemsize)
                is_new = version is not None and version >= (1, 0)
                assert flags == (rules.IS_COPIED if is_copied and is_new else 0)
                if not host.size:
                    continue
                assert (data == device.ptr) == (not is_copied)
                if not is_copied:
                    assert strides == tuple(step // dtype.itemsize for step in host.strides)


def test_capsules_of_host_arrays_on_the_host():
    # numpy exports memory of this library as numpy's own.
    for make in (driver.pagelocked_empty, tools.PageLockedMemoryPool().allocate):
        array = make((3, 4), np.float32)
        for version in (None, (1, 0)):
            options = {} if version is None else {"max_version": version}
            data, shape, *_ = rules.dlpack(array.__dlpack__(**options), version, device=(1, 0))
            assert (data, shape) == (array.ctypes.data, (3, 4))


def test_elements_and_strides_that_dlpack_has_not():
    for name, dtype in RECORDS.items():
        with pytest.raises(BufferError, match="which DLPack does not support"):
            gpuarray.to_gpu(sample(dtype, (3,))).__dlpack__()
        assert name
    fields = gpuarray.to_gpu(sample(PADDED, (5,)))
    with pytest.raises(BufferError, match="multiples of the itemsize, 8"):
        gpuarray.to_gpu(sample(np.dtype([("a", "c8"), ("b", "f4")]), (5,)))["a"].__dlpack__()
    # The records have 24 bytes: three elements of 8.
    strides = rules.dlpack(fields["b"].__dlpack__())[2]
    assert strides == (3,)


# ---- Arrow --------------------------------------------------------------------------------------


def test_columns():
    device = (KIND, 0)
    for name, format in FORMATS.items():
        for size in (0, 1, 7):
            array = gpuarray.to_gpu(sample(NUMBERS[name], (size,)))
            found = rules.arrow(array.__arrow_c_device_array__(), device)
            assert found[:3] == (format, size, 0)
            assert found[3][1] == (array.ptr or None)
    bits = gpuarray.to_gpu(np.array([0b101], np.uint8))
    values = gpuarray.to_gpu(np.arange(3, dtype="f4"))
    column = arrow.DeviceColumn.from_gpuarray(values, bits, "x")
    assert rules.arrow(column.__arrow_c_device_array__(), device)[3] == [bits.ptr, values.ptr]
    batch = arrow.DeviceRecordBatch.from_columns({"x": column})
    rules.arrow(batch.__arrow_c_device_array__(), device)
    for name in ("?", "c8", *RECORDS):
        with pytest.raises(BufferError):
            gpuarray.to_gpu(sample(DTYPES[name], (3,))).__arrow_c_device_array__()
    for view in (values[::2], values.reshape(3, 1)):
        with pytest.raises(BufferError, match="without gaps"):
            view.__arrow_c_device_array__()


# ---- buffers and streams ------------------------------------------------------------------------


def test_buffers():
    memory = driver.mem_alloc(64)
    for size, offset in ((64, 0), (0, 64), (10, 7)):
        view = rules.buffer(memory.as_buffer(size, offset))
        assert (view.nbytes, view.format, view.readonly) == (size, "B", False)
    host = arrow.new_host_buffer(24)
    assert rules.buffer(host).nbytes == 24
    assert rules.buffer(host[3:7]).nbytes == 4
    array = driver.pagelocked_empty((2, 3), PADDED)
    assert np.asarray(memoryview(array)).dtype == PADDED
    for exporter in (gpuarray.zeros(3), cuda.device_array(3), arrow.Context().new_buffer(3)):
        with pytest.raises((TypeError, BufferError)):
            memoryview(exporter)


def test_streams():
    for stream in (driver.Stream(), cuda.stream(), cuda.default_stream()):
        handle = rules.cuda_stream(stream)
        # Functions that accept these streams also accept an object with only the protocol.
        if BACKEND != "host":

            class Foreign:
                def __cuda_stream__(self, pair=(0, handle)):
                    return pair

            gpuarray.zeros(3).fill(1, stream=Foreign())


# ---- arrays of other libraries ------------------------------------------------------------------


@pytest.mark.parametrize("name", NUMBERS)
def test_what_a_host_library_exports_is_copied_whole(name):
    """Copies of ordinary memory have the right elements, even for dtypes that numpy cannot
    import."""
    dtype = NUMBERS[name]
    for what, host, device in arrays(dtype):
        if BACKEND != "host":
            continue
        # The array's own capsule, moved to memory that the device does not know.
        ordinary = Moved(device, host)
        result = gpuarray.from_dlpack(ordinary)
        assert result.dtype == dtype
        assert octets_of(result.get()) == octets_of(host), what


class Moved:
    """A host library's array with the capsule of a device array, moved to other memory."""

    def __init__(self, device, host):
        self.host = np.asarray(host)
        self.capsule = device.__dlpack__(max_version=(1, 1))
        managed = rules.Versioned.from_address(rules._get(self.capsule, b"dltensor_versioned"))
        if host.size:
            managed.tensor.data = self.host.ctypes.data

    def __dlpack_device__(self):
        return (1, 0)

    def __dlpack__(self, **options):
        return self.capsule


def test_jax_passes_bfloat16_on_the_host():
    jax = pytest.importorskip("jax", reason="jax is not installed")
    if BACKEND != "host":
        pytest.skip("about the host")
    numbers = jax.numpy.arange(12, dtype=jax.numpy.bfloat16).reshape(3, 4)
    array = gpuarray.from_dlpack(numbers)
    assert array.dtype == np.asarray(numbers).dtype
    np.testing.assert_array_equal(array.get(), np.asarray(numbers))
    back = jax.dlpack.from_dlpack(array)
    assert back.dtype == jax.numpy.bfloat16
    np.testing.assert_array_equal(np.asarray(back), np.asarray(numbers))


def test_descriptors():
    for name, dtype in NUMBERS.items():
        shared = ipc.share(gpuarray.to_gpu(sample(dtype, (2, 3))))
        with shared[:, ::-1].ipc_handle(copy=False) as descriptor:
            for form in (descriptor, descriptor.to_json(), descriptor.to_dict()):
                with ipc.open(form) as opened:
                    assert (opened.dtype, opened.strides) == (dtype, shared[:, ::-1].strides), name
                    assert opened.ptr == shared[:, ::-1].ptr
