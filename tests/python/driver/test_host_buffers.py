"""Host memory that copies must not write: Python objects and read-only destinations."""

from __future__ import annotations

import ctypes

import numpy as np
import pytest

from pygpu import driver, gpuarray, tools

RECORD = np.dtype([("number", "i4"), ("object", object)])

OBJECTS = {
    "array": np.array([3, "x"], object),
    "record": np.zeros(2, RECORD),
    "one record": np.zeros(2, RECORD)[0],
    "nested": np.zeros(2, [("a", "i4"), ("b", RECORD, (2,))]),
    "no axes": np.array(None, object),
    "empty": np.empty(0, object),
    "buffer": memoryview(np.array([3, "x"], object)),
    "record's buffer": memoryview(np.zeros(2, RECORD)),
}
if hasattr(np.dtypes, "StringDType"):
    OBJECTS["strings"] = np.array(["a" * 100, "b"], np.dtypes.StringDType())


@pytest.fixture
def memory():
    return driver.mem_alloc(4096)


def copy_rows(kind, dest, src, host):
    """Copies with Memcpy2D or Memcpy3D, from or to the host."""
    copy = kind()
    copy.set_dst_host(dest) if host == "dst" else copy.set_dst_device(dest)
    copy.set_src_host(src) if host == "src" else copy.set_src_device(src)
    copy.width_in_bytes, copy.height, copy.depth = 8, 1, 1
    copy.src_pitch = copy.dst_pitch = 8
    copy.src_height = copy.dst_height = 1
    copy(True) if kind is driver.Memcpy2D else copy()


READS = {
    "memcpy_htod": driver.memcpy_htod,
    "memcpy_htod_async": driver.memcpy_htod_async,
    "Memcpy2D": lambda m, a: copy_rows(driver.Memcpy2D, m, a, "src"),
    "Memcpy3D": lambda m, a: copy_rows(driver.Memcpy3D, m, a, "src"),
    "to_device": lambda m, a: driver.to_device(a),
    "In": lambda m, a: driver.In(a).get_device_alloc(),
    "module_from_buffer": lambda m, a: driver.module_from_buffer(a),
}
WRITES = {
    "memcpy_dtoh": lambda m, a: driver.memcpy_dtoh(a, m),
    "memcpy_dtoh_async": lambda m, a: driver.memcpy_dtoh_async(a, m),
    "Memcpy2D": lambda m, a: copy_rows(driver.Memcpy2D, a, m, "dst"),
    "Memcpy3D": lambda m, a: copy_rows(driver.Memcpy3D, a, m, "dst"),
    "Out": lambda m, a: driver.Out(a).get_device_alloc(),
    "InOut": lambda m, a: driver.InOut(a).get_device_alloc(),
}


@pytest.mark.parametrize("objects", OBJECTS)
@pytest.mark.parametrize("copy", READS)
def test_objects_are_never_read(copy, objects, memory):
    with pytest.raises(TypeError):
        READS[copy](memory, OBJECTS[objects])


@pytest.mark.parametrize("objects", OBJECTS)
@pytest.mark.parametrize("copy", WRITES)
def test_objects_are_never_written(copy, objects, memory):
    with pytest.raises(TypeError):
        WRITES[copy](memory, OBJECTS[objects])


NEW = {
    "pagelocked_empty": driver.pagelocked_empty,
    "pagelocked_zeros": driver.pagelocked_zeros,
    "managed_empty": driver.managed_empty,
    "managed_zeros": driver.managed_zeros,
    "aligned_empty": driver.aligned_empty,
    "aligned_zeros": driver.aligned_zeros,
    "pool": tools.PageLockedMemoryPool().allocate,
    "from_device": lambda shape, dtype: driver.from_device(driver.mem_alloc(64), shape, dtype),
}


@pytest.mark.parametrize("dtype", [object, RECORD], ids=["object", "record"])
@pytest.mark.parametrize("new", NEW)
def test_no_array_of_objects_is_made(new, dtype):
    with pytest.raises(TypeError, match="dtype"):
        NEW[new](2, dtype)


@pytest.mark.parametrize("new", [name for name in NEW if "managed" not in name])
def test_no_dtype_is_float64(new):
    assert NEW[new](2, None).dtype == np.float64


def test_managed_memory_without_a_dtype_is_float64():
    try:
        assert driver.managed_empty(2, None).dtype == np.float64
    except driver.Unsupported:
        pytest.skip("no managed memory")


def test_like_an_array_of_objects(memory):
    objects = np.empty(2, object)
    for like in (
        driver.pagelocked_empty_like,
        driver.pagelocked_zeros_like,
        driver.aligned_empty_like,
        driver.managed_empty_like,
        lambda array: driver.from_device_like(memory, array),
        driver.register_host_memory,
    ):
        with pytest.raises(TypeError):
            like(objects)


@pytest.mark.parametrize("view", [lambda a: a, lambda a: a.T, lambda a: a[:, 1:]])
def test_from_device_like_an_array_of_the_device(view):
    a = np.arange(12, dtype=np.float32).reshape(3, 4)
    like = view(gpuarray.to_gpu(a))
    dense = np.empty_like(view(a))
    dense[...] = np.arange(dense.size).reshape(dense.shape)
    memory = driver.mem_alloc(dense.nbytes)
    driver.memcpy_htod(memory, dense)
    back = driver.from_device_like(memory, like)
    assert (back.dtype, back.strides) == (dense.dtype, dense.strides)
    np.testing.assert_array_equal(back, dense)


READ_ONLY = {
    "float32": np.float32(3),
    "record": np.zeros(2, "f4,f4")[0],
    "bytes": b"1234",
    "array": np.zeros(1, np.float32),
    "broadcast": np.broadcast_to(np.zeros(1, np.float32), (1,)),
    "memoryview": memoryview(b"1234"),
    "view": memoryview(bytearray(b"1234")).toreadonly(),
}
READ_ONLY["array"].flags.writeable = False


@pytest.mark.parametrize("which", READ_ONLY)
@pytest.mark.parametrize("copy", WRITES)
def test_a_read_only_destination_is_refused(copy, which, memory):
    destination = READ_ONLY[which]
    before = bytes(memoryview(destination))
    with pytest.raises((ValueError, TypeError), match="read-only|array length"):
        WRITES[copy](memory, destination)
    assert bytes(memoryview(destination)) == before


def test_a_read_only_array_is_not_registered():
    with pytest.raises(ValueError, match="ary is read-only"):
        driver.register_host_memory(READ_ONLY["array"])


def test_a_read_only_array_gets_nothing():
    with pytest.raises(ValueError, match="read-only"):
        gpuarray.ones(1, np.float32).get(READ_ONLY["array"])


@pytest.mark.parametrize(
    "dtype", ["M8[s]", "m8[ms]", "U3", "S5", "V7", ">f4", "f4,i1", "?", "c16", "g"]
)
def test_plain_bytes_of_any_dtype_are_copied(dtype, memory):
    a = np.frombuffer(bytes(range(1, 1 + 2 * np.dtype(dtype).itemsize)), dtype)
    back = np.zeros(2, dtype)
    driver.memcpy_htod(memory, a)
    driver.memcpy_dtoh(back, memory)
    assert back.tobytes() == a.tobytes()
    assert driver.from_device(memory, 2, dtype).tobytes() == a.tobytes()


@pytest.mark.parametrize("buffer", [bytearray(8), memoryview(bytearray(8)), np.zeros(8, "V1")])
def test_buffers_receive_bytes(buffer, memory):
    driver.memcpy_htod(memory, b"abcdefgh")
    driver.memcpy_dtoh(buffer, memory)
    assert bytes(memoryview(buffer)) == b"abcdefgh"


def test_a_record_with_a_field_named_object_is_plain(memory):
    a = np.ones(2, [("O", "i4"), ("Object", "f4")])
    driver.memcpy_htod(memory, memoryview(a))
    np.testing.assert_array_equal(driver.from_device_like(memory, a), a)


@pytest.mark.parametrize("make", [driver.pagelocked_empty, driver.managed_empty])
@pytest.mark.parametrize("dtype", [">f4", "longdouble", "M8[s]", "clongdouble", "S3"])
def test_memory_of_the_host_has_any_numbers(make, dtype):
    flags = () if make is driver.pagelocked_empty else ("C", 1)
    array = make((2, 3), dtype, *flags)
    assert array.dtype == np.dtype(dtype)
    array[...] = 1
    assert (array == np.ones((2, 3), dtype)).all()
    for refused in (object, "V0", ("f4", 2)):
        with pytest.raises(TypeError, match="cannot be on a device"):
            make(3, np.dtype(refused), *flags)


@pytest.mark.parametrize("make", [driver.pagelocked_zeros, driver.managed_zeros])
def test_all_bytes_of_zeros_are_zero(make):
    flags = () if make is driver.pagelocked_zeros else ("C", 1)
    gaps = np.dtype([("a", "i1"), ("b", "i8")], align=True)
    for dtype in ("V7", gaps, "M8[s]", "U3"):
        for _ in range(2):
            array = make((3, 5), dtype, *flags)
            nbytes = array.nbytes
            raw = np.ctypeslib.as_array((ctypes.c_uint8 * nbytes).from_address(array.ctypes.data))
            assert not raw.any()
            raw[:] = 255
    assert make(0, "f4", *flags).size == 0
