"""Refused calls raise numpy's or PyCUDA's exception, with a clear text, before any change."""

from __future__ import annotations

import operator
import re

import numpy as np
import pytest
from device import settled_memory
from pairs import check
from tables import each_row

from pygpu import driver, gpuarray


@pytest.fixture(scope="module")
def memory_at_first():
    return settled_memory()


@pytest.fixture(autouse=True)
def nothing_is_left_behind(memory_at_first):
    """Checks that a refused call does not leave memory allocated."""
    yield
    assert settled_memory(memory_at_first) == memory_at_first


MAKERS = [gpuarray.GPUArray, gpuarray.empty, gpuarray.zeros, gpuarray.ones]


# ---- shapes, strides, types ---------------------------------------------------------------------


@pytest.mark.parametrize("make", MAKERS)
@pytest.mark.parametrize("shape", [-1, (-1,), (3, -2), (0, -1)])
def test_negative_shape(make, shape):
    with pytest.raises(ValueError, match="-"):
        make(shape, np.float32)


@each_row("make", MAKERS)
@each_row("shape", [2**62, (2**40, 2**40), 2**64, (2**63, 1), (2**33, 2**33, 0)])
def test_overflowing_shape(make, shape):
    with pytest.raises((ValueError, OverflowError)):
        make(shape, np.float32)


@each_row("make", MAKERS)
@each_row("shape", ["3", 2.5, (2.5,), None, ("a",), object()])
def test_a_shape_that_is_none(make, shape):
    with pytest.raises((TypeError, AssertionError)):
        make(shape, np.float32)


def test_too_many_axes():
    with pytest.raises(ValueError, match=r"\d"):
        gpuarray.empty((1,) * 65, np.float32)


@pytest.mark.parametrize(
    ("shape", "strides"),
    [
        ((4,), (8,)),
        ((4,), (-4,)),
        ((2, 2), (16, 4)),
        ((3,), (2**62,)),
        ((2, 2), (-4, 4)),
    ],
)
def test_strides_that_leave_the_buffer(shape, strides):
    memory = driver.mem_alloc(16)
    with pytest.raises(ValueError, match="stride"):
        gpuarray.GPUArray(shape, np.float32, gpudata=memory, strides=strides)


def test_a_shape_larger_than_the_memory():
    memory = driver.mem_alloc(16)
    with pytest.raises(ValueError, match=r"16|20"):
        gpuarray.GPUArray(5, np.float32, gpudata=memory)


@pytest.mark.parametrize("strides", [(4,), (4, 4, 4)])
def test_strides_of_another_rank(strides):
    with pytest.raises(ValueError, match="stride"):
        gpuarray.GPUArray((2, 2), np.float32, strides=strides)


@pytest.mark.parametrize("order", ["X", "", "c "])
def test_invalid_order(order):
    with pytest.raises(ValueError, match="order"):
        gpuarray.empty(3, np.float32, order=order)


@pytest.mark.parametrize("order", [3, b"C"])
def test_an_order_that_is_no_text(order):
    with pytest.raises(TypeError):
        gpuarray.empty(3, np.float32, order=order)


@pytest.mark.parametrize("dtype", ["nonsense", object, "f16", 7])
def test_wrong_type(dtype):
    with pytest.raises((TypeError, ValueError)):
        gpuarray.empty(3, dtype)
    with pytest.raises((TypeError, ValueError)):
        gpuarray.zeros(3).astype(dtype)


@pytest.mark.parametrize("dtype", ["U5", "M8[s]", [("x", "f4"), ("y", "f4")]])
def test_elements_that_are_no_numbers_are_only_stored(dtype):
    a_gpu = gpuarray.empty(3, dtype)
    with pytest.raises(TypeError):
        gpuarray.zeros(3).astype(dtype)
    for use in (lambda: a_gpu + a_gpu, lambda: gpuarray.sum(a_gpu), lambda: a_gpu < a_gpu):
        with pytest.raises(TypeError):
            use()


def test_a_foreign_byte_order_is_refused():
    with pytest.raises((TypeError, ValueError)):
        gpuarray.to_gpu(np.arange(3, dtype=">f4"))


@pytest.mark.parametrize("value", ["abc", None, object(), {1: 2}, [object()]])
def test_to_gpu_of_what_is_no_array(value):
    with pytest.raises((TypeError, AttributeError)):
        gpuarray.to_gpu(value)


@pytest.mark.parametrize("allocator", [5, "x", object()])
def test_an_allocator_that_cannot_be_called(allocator):
    with pytest.raises(TypeError, match="allocator|callable"):
        gpuarray.empty(3, np.float32, allocator=allocator)


# ---- operands -----------------------------------------------------------------------------------

OPERATORS = [operator.add, operator.mul, operator.truediv, operator.floordiv, operator.lt]


@pytest.mark.parametrize("op", OPERATORS)
def test_mismatched_shapes(op):
    a, b = gpuarray.zeros((2, 3)), gpuarray.zeros((2, 4))
    with pytest.raises(ValueError, match=r"\(2, 3\).*\(2, 4\)"):
        op(a, b)


@pytest.mark.parametrize("op", [operator.iadd, operator.imul, operator.ipow])
def test_mismatched_shapes_in_place(op):
    a = gpuarray.ones((2, 3))
    with pytest.raises(ValueError, match=r"\(2, 3\)"):
        op(a, gpuarray.ones((2, 4)))
    check(a, np.ones((2, 3)))


@pytest.mark.parametrize("op", OPERATORS)
def test_a_numpy_array_is_no_operand(op):
    a_gpu, a = gpuarray.zeros(3), np.zeros(3)
    for left, right in ((a_gpu, a), (a, a_gpu)):
        with pytest.raises(TypeError, match="to_gpu"):
            op(left, right)


def test_a_numpy_array_is_no_operand_in_place():
    a_gpu = gpuarray.zeros(3)
    with pytest.raises(TypeError, match="to_gpu"):
        a_gpu += np.ones(3)
    check(a_gpu, np.zeros(3))


@pytest.mark.parametrize("op", [operator.add, operator.mul, operator.lt])
@pytest.mark.parametrize("operand", ["x", None, ["x"], object(), b"x"])
def test_operands_that_are_no_numbers(op, operand):
    with pytest.raises(TypeError):
        op(gpuarray.zeros(3), operand)
    with pytest.raises(TypeError):
        op(operand, gpuarray.zeros(3))


def test_selection_of_mismatched_shapes():
    a, b = gpuarray.zeros(3), gpuarray.zeros(4)
    for choose in (gpuarray.where, gpuarray.if_positive):
        with pytest.raises(ValueError, match=r"\(3,\)|\(4,\)"):
            choose(a, a, b)
    with pytest.raises(ValueError, match=r"\(3,\)|\(4,\)"):
        gpuarray.minimum(a, b)
    with pytest.raises(ValueError, match=r"\(3,\)|\(4,\)"):
        gpuarray.dot(a, b)


def test_an_output_of_another_shape():
    a = gpuarray.zeros(3)
    out = gpuarray.ones(4)
    for call in (
        lambda: gpuarray.maximum(a, a, out=out),
        lambda: gpuarray.where(a, a, a, out=out),
        lambda: a.mul_add(1, a, 1, out=out),
    ):
        with pytest.raises((ValueError, AssertionError)):
            call()
    check(out, np.ones(4))


# ---- transfers ----------------------------------------------------------------------------------


def test_set_of_another_size_or_type():
    a_gpu = gpuarray.ones(3)
    with pytest.raises(ValueError, match="size|shape"):
        a_gpu.set(np.zeros(4))
    with pytest.raises(ValueError, match="dtype|float32"):
        a_gpu.set(np.zeros(3, np.float32))
    check(a_gpu, np.ones(3))


def test_get_into_another_size_or_type():
    a_gpu = gpuarray.ones(3)
    with pytest.raises(ValueError, match="size|shape"):
        a_gpu.get(np.zeros(4))
    with pytest.raises(TypeError, match="dtype|float32"):
        a_gpu.get(np.zeros(3, np.float32))


def test_get_into_a_read_only_array():
    a = np.zeros(3)
    a.flags.writeable = False
    with pytest.raises((ValueError, TypeError, BufferError), match="read-only|write"):
        gpuarray.ones(3).get(a)
    assert (a == 0).all()


@pytest.mark.parametrize("value", [5, [1, 2, 3], None, "abc"])
def test_set_and_get_of_what_is_no_array(value):
    a_gpu = gpuarray.ones(3)
    with pytest.raises((TypeError, AttributeError)):
        a_gpu.set(value)
    if value is not None:
        with pytest.raises((TypeError, AttributeError)):
            a_gpu.get(value)


def test_unexpected_keywords():
    a_gpu = gpuarray.ones(3)
    with pytest.raises(TypeError, match="nonsense"):
        a_gpu.set(np.ones(3), nonsense=1)
    with pytest.raises(TypeError, match="nonsense"):
        a_gpu.get(nonsense=1)
    with pytest.raises((ValueError, TypeError), match="nonsense"):
        gpuarray.arange(3, nonsense=1)


@pytest.mark.parametrize("stream", ["x", object(), 3.5])
def test_a_stream_that_is_none(stream):
    a_gpu = gpuarray.ones(3)
    with pytest.raises(TypeError, match="stream"):
        a_gpu.fill(0, stream)
    with pytest.raises(TypeError, match="stream"):
        gpuarray.sum(a_gpu, stream=stream)
    check(a_gpu, np.ones(3))


def test_setitem_of_another_shape():
    a_gpu = gpuarray.ones((2, 3))
    for value in (gpuarray.zeros((2, 4)), np.zeros((2, 4)), gpuarray.zeros((1, 2, 4))):
        with pytest.raises(ValueError, match=r"4"):
            a_gpu[...] = value
    check(a_gpu, np.ones((2, 3)))


@pytest.mark.parametrize("value", ["x", None, object(), {}])
def test_setitem_of_what_is_no_number(value):
    a_gpu = gpuarray.ones(3)
    with pytest.raises((TypeError, ValueError)):
        a_gpu[0] = value
    with pytest.raises((TypeError, ValueError)):
        a_gpu.fill(value)
    check(a_gpu, np.ones(3))


def test_fill_with_a_number_that_does_not_fit():
    a_gpu = gpuarray.ones(3, np.int8)
    with pytest.raises(OverflowError, match="300"):
        a_gpu.fill(300)
    with pytest.raises(TypeError):
        a_gpu.fill(1j)
    check(a_gpu, np.ones(3, np.int8))


@pytest.mark.parametrize(
    ("value", "error"),
    [
        (np.int64(300), OverflowError),
        (np.uint8(255), OverflowError),
        (np.float32(300), OverflowError),
        (-129.5, OverflowError),
        (1e300, OverflowError),
        (np.float64(-np.inf), OverflowError),
        (np.nan, ValueError),
        (np.float16("nan"), ValueError),
    ],
)
def test_a_scalar_that_does_not_fit(value, error):
    a_gpu = gpuarray.ones(3, np.int8)
    with pytest.raises(error, match="int8"):
        a_gpu.fill(value)
    with pytest.raises(error, match="int8"):
        a_gpu[1:] = value
    check(a_gpu, np.ones(3, np.int8))


@pytest.mark.parametrize("value", [np.int64(-128), np.float32(127.9), -128.9, np.bool_(True)])
def test_a_scalar_that_fits(value):
    a_gpu, a = gpuarray.zeros(3, np.int8), np.zeros(3, np.int8)
    a_gpu.fill(value)
    a.fill(value)
    check(a_gpu, a)


# ---- raw memory ---------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [0, -1, 2**63, 2**70])
def test_mem_alloc_of_an_impossible_size(size):
    with pytest.raises((driver.Error, OverflowError, MemoryError)):
        driver.mem_alloc(size)


@pytest.mark.parametrize("size", ["x", None, 2.5])
def test_mem_alloc_of_no_size(size):
    with pytest.raises(TypeError):
        driver.mem_alloc(size)


def test_freed_memory():
    memory = driver.mem_alloc(64)
    memory.free()
    with pytest.raises(driver.LogicError):
        memory.free()
    with pytest.raises(driver.LogicError):
        driver.memcpy_htod(memory, np.zeros(3))
    with pytest.raises(driver.LogicError):
        driver.memset_d8(memory, 0, 3)


def test_an_array_over_freed_memory():
    memory = driver.mem_alloc(64)
    a_gpu = gpuarray.GPUArray(8, np.float64, gpudata=memory)
    memory.free()
    for use in (a_gpu.get, lambda: a_gpu + 1, lambda: a_gpu.fill(0), lambda: gpuarray.sum(a_gpu)):
        with pytest.raises(driver.LogicError):
            use()


@pytest.mark.parametrize("address", [0, 2, 8, 2**63])
def test_an_address_that_is_none(address):
    with pytest.raises(driver.LogicError):
        driver.memcpy_htod(address, np.zeros(3))
    with pytest.raises(driver.LogicError):
        driver.memset_d8(address, 0, 3)


def test_copies_beyond_an_allocation():
    memory, other = driver.mem_alloc(16), driver.mem_alloc(8)
    with pytest.raises((driver.LogicError, ValueError), match="16"):
        driver.memcpy_htod(memory, np.zeros(3))
    with pytest.raises((driver.LogicError, ValueError), match="16"):
        driver.memcpy_dtoh(np.zeros(3), memory)
    with pytest.raises((driver.LogicError, ValueError), match="8"):
        driver.memcpy_dtod(other, memory, 16)
    with pytest.raises((driver.LogicError, ValueError), match="16"):
        driver.memset_d32(memory, 0, 5)


def test_copies_of_what_is_no_buffer():
    memory = driver.mem_alloc(16)
    for value in (5, None, [1, 2], "abc", object()):
        with pytest.raises(TypeError):
            driver.memcpy_htod(memory, value)
        with pytest.raises(TypeError):
            driver.memcpy_dtoh(value, memory)
    with pytest.raises((TypeError, ValueError, BufferError)):
        driver.memcpy_dtoh(b"read-only", memory)
    for pointer in (None, "x", object()):
        with pytest.raises(TypeError):
            driver.memcpy_htod(pointer, np.zeros(1))


def test_a_strided_host_array_is_no_block_of_memory():
    memory = driver.mem_alloc(80)
    with pytest.raises((ValueError, BufferError), match="contiguous"):
        driver.memcpy_htod(memory, np.zeros(10)[::2])
    with pytest.raises((ValueError, BufferError), match="contiguous"):
        driver.memcpy_dtoh(np.zeros((4, 4))[:, :2], memory)


# ---- take ---------------------------------------------------------------------------------------


def test_take_with_wrong_arguments():
    a = gpuarray.zeros(5)
    with pytest.raises((TypeError, ValueError, IndexError)):
        gpuarray.take(a, gpuarray.zeros(3))
    with pytest.raises(TypeError):
        gpuarray.take(a, [0, 1])
    with pytest.raises((ValueError, AssertionError)):
        gpuarray.take(a, gpuarray.zeros(3, np.int32), out=gpuarray.zeros(4))


def test_subset_with_wrong_arguments():
    a = gpuarray.zeros(5)
    with pytest.raises((TypeError, ValueError, IndexError)):
        gpuarray.subset_sum(gpuarray.zeros(3), a)


class Foreign:
    """An object with another library's stream, or with an invalid one."""

    def __init__(self, pair):
        self.pair = pair

    def __cuda_stream__(self):
        return self.pair


def number_calls():
    a, m = gpuarray.zeros((2, 3), "f4"), driver.mem_alloc(64)
    wrong = -5
    return {
        "index": lambda: a.item(2**70),
        "index, one of two": lambda: a.item((0, -(2**70))),
        "size": lambda: driver.memcpy_dtod(m, m, wrong),
        "size, queued": lambda: driver.memcpy_dtod_async(m, m, wrong),
        "bytes": lambda: driver.mem_alloc(wrong),
        "count": lambda: driver.memset_d8(m, 0, wrong),
        "device number": lambda: driver.Device(2**70),
        "axis": lambda: gpuarray.concatenate([a, a], 2**70),
        "decimals": lambda: a.round(2**70),
        "ndigits": lambda: round(a, 2**70),
        "stream": lambda: a.fill(1, stream=-1),
        "version": lambda: a.fill(1, stream=Foreign((-1, 0))),
        "handle": lambda: a.fill(1, stream=Foreign((0, -1))),
        "flags": lambda: driver.Stream(-1),
    }


@pytest.mark.parametrize("what", number_calls())
def test_a_number_out_of_range_names_its_argument(what):
    name = what.split(",")[0]
    with pytest.raises((OverflowError, ValueError, driver.Error, IndexError)) as raised:
        number_calls()[what]()
    # The text must be in the message: Python 3.10 does not show notes.
    assert name in str(raised.value)
    assert re.search(r"-\d|1180591620717411303424", str(raised.value)), raised.value


@pytest.mark.parametrize("pair", ["abc", (), (0,), (0, 1, 2), None, 7, ("a", 0), (0, None)])
def test_a_stream_of_a_protocol_with_a_wrong_answer(pair):
    a = gpuarray.zeros(3, "f4")
    with pytest.raises(TypeError, match="__cuda_stream__"):
        a.fill(1, stream=Foreign(pair))


def test_an_order_of_none_is_that_of_rows():
    a = np.arange(6).reshape(2, 3)
    a_gpu = gpuarray.to_gpu(a)
    check(a_gpu.ravel(None), a.ravel(None))
    check(a_gpu.reshape(3, 2, order=None), a.reshape(3, 2, order=None))
    for made in (
        gpuarray.zeros((2, 3), "f4", order=None),
        gpuarray.empty((2, 3), "f4", order=None),
        gpuarray.full((2, 3), 1, "f4", order=None),
        gpuarray.empty_like(a_gpu, order=None),
        driver.pagelocked_empty((2, 3), "f4", None),
        driver.managed_empty((2, 3), "f4", None, mem_flags=driver.mem_attach_flags.GLOBAL),
    ):
        assert made.flags.c_contiguous
    with pytest.raises(ValueError, match="order"):
        gpuarray.zeros(3, "f4", order="X")


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda: gpuarray.splay("3"), "n is of type str; a number of elements"),
        (lambda: gpuarray.splay(3, 0), "dev is of type int; a Device"),
        (
            lambda: driver.TextureReference().set_address("3", 3),
            "devptr is of type str; a GPUArray",
        ),
        (lambda: driver.TextureReference().set_address(3.5, 3), "devptr is of type float"),
    ],
)
def test_what_is_no_number_or_address_is_named(call, text):
    with pytest.raises(TypeError, match=text):
        call()
