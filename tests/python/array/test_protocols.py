"""Python protocols of arrays: text, truth, pickling, subclasses, and exchange interfaces."""

from __future__ import annotations

import copy
import operator
import pickle

import numpy as np
import pytest
from device import BACKEND
from pairs import DTYPES, check, numbers

from pygpu import driver, gpuarray


@pytest.mark.parametrize(
    "a", [np.arange(3.0), np.zeros((2, 2), "c8"), np.array(True), np.zeros((0, 3))]
)
def test_text_is_numpys(a):
    a_gpu = gpuarray.to_gpu(a)
    assert str(a_gpu) == str(a)
    assert repr(a_gpu) == repr(a)


@pytest.mark.parametrize("shape", [(), (1,), (1, 1, 1)])
def test_truth_of_a_single_element(shape):
    for value in (0.0, 1.0, -0.0, np.nan):
        a = np.full(shape, value)
        assert bool(gpuarray.to_gpu(a)) == bool(a)


def test_truth_of_more_elements_is_ambiguous():
    with pytest.raises(ValueError, match="ambiguous"):
        bool(gpuarray.zeros(2))


def test_truth_of_no_element():
    with pytest.raises(ValueError, match="ambiguous|empty"):
        bool(gpuarray.zeros(0))


def test_arrays_are_not_hashable():
    with pytest.raises(TypeError, match="hash"):
        hash(gpuarray.zeros(3))


@pytest.mark.parametrize("dtype", DTYPES)
def test_pickle(dtype):
    for a in (numbers((3, 4), dtype, 90), np.zeros((0, 2), dtype), numbers((), dtype, 91)):
        check(pickle.loads(pickle.dumps(gpuarray.to_gpu(a))), a)
    view = gpuarray.to_gpu(numbers((4, 6), dtype, 92))[::2, ::-1]
    check(pickle.loads(pickle.dumps(view)), view.get())


def test_a_single_element_as_a_python_number():
    for shape in ((), (1,), (1, 1)):
        a_gpu = gpuarray.to_gpu(np.full(shape, 2.75))
        assert a_gpu.item() == 2.75
        assert float(a_gpu[(0,) * len(shape)]) == 2.75
        assert int(a_gpu[(0,) * len(shape)]) == 2
        assert complex(a_gpu[(0,) * len(shape)]) == 2.75
    for convert in (float, int, complex):
        with pytest.raises((TypeError, ValueError)):
            convert(gpuarray.zeros(2))


def test_copy_module():
    a_gpu = gpuarray.to_gpu(np.arange(3.0))
    for made in (copy.copy(a_gpu), copy.deepcopy(a_gpu)):
        made.fill(5)
        check(a_gpu, np.arange(3.0))


@pytest.mark.parametrize("dtype", DTYPES)
def test_cuda_array_interface(dtype):
    a = numbers((4, 6), dtype, 93)
    a_gpu = gpuarray.to_gpu(a)
    interface = a_gpu.__cuda_array_interface__
    assert type(interface) is dict
    assert interface["shape"] == a.shape
    assert interface["typestr"] == a.dtype.str
    assert interface["strides"] == a.strides
    assert interface["data"] == (a_gpu.ptr, False)
    assert interface["version"] == 3
    # 1 means CUDA's default stream, and is returned while it has work.
    assert interface["stream"] in ([None] if BACKEND == "host" else [None, 1])
    view = a_gpu[1:, ::-2]
    interface = view.__cuda_array_interface__
    assert interface["shape"] == (3, 3)
    assert interface["strides"] == a[1:, ::-2].strides
    assert interface["data"][0] == a_gpu.ptr + a.strides[0] + 5 * a.itemsize


def test_cuda_array_interface_of_an_empty_array():
    assert gpuarray.zeros((0, 3)).__cuda_array_interface__["data"] == (0, False)


def test_numpy_leaves_the_operators_to_the_array():
    assert gpuarray.GPUArray.__array_priority__ == 100
    a_gpu = gpuarray.to_gpu(np.arange(3.0))
    for scalar in (np.float32(2), np.int64(2), np.complex64(2j), np.bool_(True)):
        assert isinstance(scalar * a_gpu, gpuarray.GPUArray)
        assert isinstance(scalar - a_gpu, gpuarray.GPUArray)
        assert isinstance(scalar == a_gpu, gpuarray.GPUArray)
        assert isinstance(scalar < a_gpu, gpuarray.GPUArray)


class Tagged(gpuarray.GPUArray):
    """A subclass with its own attribute and method."""

    def __init__(self, *args, tag=None, **kwargs):
        super().__init__(*args, **kwargs)
        self.tag = tag

    def doubled(self):
        return self * 2


def test_subclasses():
    a_gpu = Tagged((3,), np.float32, tag="x")
    assert isinstance(a_gpu, gpuarray.GPUArray)
    a_gpu.set(np.arange(3, dtype="f4"))
    assert a_gpu.tag == "x"
    check(a_gpu.doubled(), np.arange(3, dtype="f4") * 2)
    a_gpu += 1
    assert isinstance(a_gpu, Tagged)
    assert a_gpu.tag == "x"
    check(gpuarray.sum(a_gpu), np.float32(6))


def test_a_subclass_may_set_what_nothing_computes_with():
    class Padded(gpuarray.GPUArray):
        def __init__(self, shape, dtype, nbytes=None, **arguments):
            super().__init__(shape, dtype, **arguments)
            self.nbytes = nbytes
            self.base = "pool"

    class Derived(Padded):
        mem_size = 7

    padded = Padded((3,), np.float32, 512)
    assert (padded.nbytes, padded.base, padded.mem_size, padded.size) == (512, "pool", 3, 3)
    padded.fill(2)
    check(padded + 1, np.full(3, 3, np.float32))
    check(padded.copy(), np.full(3, 2, np.float32))
    del padded.nbytes
    assert padded.nbytes == 12
    derived = Derived((3,), np.float32, 12)
    assert (derived.mem_size, derived._grid) == (7, gpuarray.zeros(3, np.float32)._grid)
    assert Padded.nbytes.__doc__ == gpuarray.GPUArray.nbytes.__doc__
    # Derived properties stay read-only, and so do all properties of plain arrays.
    for name in ("dtype", "size", "itemsize"):
        with pytest.raises(AttributeError, match=name):
            setattr(padded, name, None)
    with pytest.raises(AttributeError, match="nbytes"):
        gpuarray.zeros(3, np.float32).nbytes = 5


class Rows(gpuarray.GPUArray):
    """A subclass whose own constructor defines how results are created."""

    def __init__(self, thread, shape, dtype):
        super().__init__(shape, dtype)
        self.thread = thread

    def _new_like_me(self, dtype=None):
        return Rows(self.thread, self.shape, self.dtype if dtype is None else dtype)


def test_a_subclass_may_say_how_results_are_made():
    a_gpu = Rows("main", (2, 3), np.float32)
    a_gpu.set(np.arange(6, dtype="f4").reshape(2, 3))
    total = a_gpu + a_gpu
    assert type(total) is Rows
    assert total.thread == "main"
    check(total, np.arange(6, dtype="f4").reshape(2, 3) * 2)
    wide = a_gpu + gpuarray.arange(3, dtype=np.float64)
    assert type(wide) is Rows
    check(wide, np.arange(6, dtype="f4").reshape(2, 3) + np.arange(3.0))
    # The constructor does not support another shape.
    check(a_gpu + gpuarray.zeros((4, 2, 3), np.float32), np.stack([a_gpu.get()] * 4))
    plain = gpuarray.zeros((2, 3), np.int16)
    assert plain._new_like_me().dtype == np.int16
    other = plain.T._new_like_me(np.float64, "C")
    assert (other.shape, other.dtype, other.strides) == ((3, 2), np.float64, (16, 8))
    tagged = Tagged((3,), np.float32, tag="x")._new_like_me(np.float64)
    assert (type(tagged), tagged.dtype, tagged.shape) == (Tagged, np.float64, (3,))


def test_an_array_may_be_made_without_memory_and_moved_to_some():
    memory = driver.mem_alloc(48)
    for made in (
        gpuarray.GPUArray((2, 3), np.float32, gpudata=0),
        gpuarray.GPUArray((2, 3), np.float32, allocator=lambda size: 0),
    ):
        assert (made.shape, made.strides, made.dtype) == ((2, 3), (12, 4), np.float32)
        assert (made.size, made.nbytes, made.ndim, made.ptr, int(made.gpudata)) == (6, 24, 2, 0, 0)
        assert made.flags.c_contiguous
        assert made.base is None
        for use in (
            made.get,
            lambda made=made: made + 1,
            lambda made=made: made.fill(0),
            made.copy,
        ):
            with pytest.raises(driver.LogicError, match="gpudata is null"):
                use()
        with pytest.raises(driver.LogicError, match="gpudata"):
            made.gpudata = 8
        made.allocator = None
        made.gpudata = memory
        assert made.gpudata is memory
        assert made.ptr == int(memory)
        made.fill(3)
        check(made * 2, np.full((2, 3), 6, np.float32))
        made.gpudata = int(memory) + 24
        made.fill(1)
        assert made.ptr == int(memory) + 24
        words = np.empty(12, np.float32)
        driver.memcpy_dtoh(words, memory)
        assert words.tolist() == [3.0] * 6 + [1.0] * 6
        made.gpudata = None
        with pytest.raises(driver.LogicError, match="gpudata is null"):
            made.get()
    with pytest.raises(RuntimeError, match="second time"):
        made.__init__((2,), np.float32)


def test_shape_and_strides_may_be_assigned():
    values = np.arange(6, dtype=np.float32)
    a_gpu = gpuarray.to_gpu(values)
    memory, whole = a_gpu.gpudata, a_gpu[1:]
    a_gpu.shape = (2, -1)
    assert (a_gpu.shape, a_gpu.strides, a_gpu.gpudata is memory) == ((2, 3), (12, 4), True)
    check(a_gpu * 2, values.reshape(2, 3) * 2)
    assert whole.shape == (5,)
    a_gpu.strides = (4, 8)
    check(a_gpu.copy(), np.lib.stride_tricks.as_strided(values, (2, 3), (4, 8)))
    with pytest.raises(AttributeError, match="reshape makes a copy"):
        a_gpu.shape = 6
    a_gpu.strides = [12, 4]
    a_gpu.shape = np.int64(6)
    check(a_gpu, values)
    for name, value, message in (
        ("shape", (4,), "shape"),
        ("shape", None, "shape"),
        ("strides", (4, 4), "one for each axis"),
        ("strides", (8,), "strides|memory|bytes"),
        ("strides", (-4,), "strides|memory|bytes"),
        ("strides", 4, "a sequence"),
    ):
        with pytest.raises((driver.LogicError, TypeError, ValueError), match=message):
            setattr(a_gpu, name, value)
    check(a_gpu, values)


def test_two_arrays_may_change_their_memory():
    a_gpu, b_gpu = gpuarray.zeros(4, np.float32), gpuarray.ones(4, np.float32)
    addresses = a_gpu.ptr, b_gpu.ptr
    for turn in range(1000):
        a_gpu.gpudata, b_gpu.gpudata = b_gpu.gpudata, a_gpu.gpudata
        assert a_gpu.ptr == addresses[(turn + 1) % 2]
    check(b_gpu, np.ones(4, np.float32))
    reversed_ = gpuarray.arange(4, dtype=np.float32)[::-1]
    target = driver.mem_alloc(32)
    reversed_.gpudata = int(target) + 12
    reversed_.set(np.arange(4, dtype=np.float32))
    words = np.empty(4, np.float32)
    driver.memcpy_dtoh(words, target)
    assert words.tolist() == [3, 2, 1, 0]


def test_results_come_from_an_allocator_that_was_set():
    sizes = []

    def allocate(size):
        sizes.append(size)
        return driver.mem_alloc(size)

    a_gpu = gpuarray.zeros(4, np.float32)
    a_gpu.allocator = allocate
    assert a_gpu.allocator is allocate
    assert (a_gpu + 1).allocator is allocate
    assert sizes == [16]
    a_gpu.allocator = None
    assert (a_gpu + 1).allocator is driver.mem_alloc
    assert sizes == [16]
    with pytest.raises(TypeError, match="allocator"):
        a_gpu.allocator = 5


def test_classes_between_see_their_arguments():
    class Named:
        def __init_subclass__(cls, label, **arguments):
            super().__init_subclass__(**arguments)
            cls.label = label

    class Array(gpuarray.GPUArray, Named, label="x"):
        pass

    assert Array.label == "x"
    with pytest.raises(TypeError):

        class Other(gpuarray.GPUArray, label="x"):
            pass


def test_a_subclass_may_override_an_operator():
    class Logged(gpuarray.GPUArray):
        def __add__(self, other):
            return "added"

        def __radd__(self, other):
            return "added to"

    a_gpu = Logged((2,), np.float32)
    assert a_gpu + 1 == "added"
    assert 1 + a_gpu == "added to"
    assert gpuarray.zeros(2, np.float32) + a_gpu == "added to"


def test_objects_that_know_better_are_asked():
    class Other:
        def __radd__(self, other):
            return "mine"

        def __eq__(self, other):
            return "equal"

        __hash__ = None

    a_gpu = gpuarray.zeros(2)
    assert a_gpu + Other() == "mine"
    assert (a_gpu == Other()) == "equal"


def test_flags():
    a_gpu = gpuarray.zeros((3, 4))
    for view in (a_gpu, a_gpu.T, a_gpu[1:], a_gpu[:, 1:], a_gpu[0], a_gpu[:, 0], a_gpu[:0]):
        expected = view.get() if view.size == 0 else None
        flags = view.flags
        assert flags.forc == (flags.c_contiguous or flags.f_contiguous)
        if expected is not None:
            assert flags.c_contiguous
    assert (a_gpu.flags.c_contiguous, a_gpu.flags.f_contiguous) == (True, False)
    assert (a_gpu.T.flags.c_contiguous, a_gpu.T.flags.f_contiguous) == (False, True)
    assert not a_gpu[:, 1:].flags.forc
    assert a_gpu[0].flags.forc
    assert not a_gpu[:, 0].flags.forc
    for view in (a_gpu, a_gpu.T, a_gpu[0], a_gpu[:, 1:]):
        theirs = view.get().flags if view.flags.forc else np.zeros((3, 4))[:, 1:].flags
        for name in ("C_CONTIGUOUS", "F_CONTIGUOUS", "C", "F", "FNC", "FORC", "W", "ALIGNED", "X"):
            assert view.flags[name] == theirs[name], name
        for name in ("behaved", "carray", "contiguous", "fortran", "writebackifcopy"):
            named = theirs[name.upper()]
            assert getattr(view.flags, name) == view.flags[name.upper()] == named, name
        # numpy's is true for an array that is not contiguous, too.
        assert view.flags.farray == view.flags["FARRAY"] == theirs.fnc
        assert np.isfortran(view) == theirs.fnc
        assert view.flags.owndata == view.flags["OWNDATA"] == (view is a_gpu)
        assert (view.flags.writeable, view.flags.aligned) == (True, True)
    with pytest.raises(KeyError, match="C_CONTIGUOUS"):
        a_gpu.flags["COLOUR"]
    assert not hasattr(a_gpu.flags, "colour")


def test_attributes_cannot_be_broken():
    a_gpu = gpuarray.zeros((3, 4))
    with pytest.raises((AttributeError, TypeError)):
        a_gpu.size = 100
    check(a_gpu, np.zeros((3, 4)))


# ---- elements as Python's numbers ---------------------------------------------------------------


@pytest.mark.parametrize("dtype", DTYPES)
def test_items_and_lists_are_numpys(dtype):
    a = numbers((2, 3), dtype, 94)
    a_gpu = gpuarray.to_gpu(a)
    assert a_gpu.tolist() == a.tolist()
    for index in ((0,), (5,), (-1,), (1, 2), (-1, 0), ((1, 1),)):
        got, expected = a_gpu.item(*index), a.item(*index)
        assert (got, type(got)) == (expected, type(expected))
    assert a_gpu.T.item(1) == a.T.item(1)
    assert gpuarray.to_gpu(a[0]).item(1) == a[0].item(1)
    for index in ((6,), (-7,), (2, 0), (0, 3)):
        with pytest.raises(IndexError):
            a_gpu.item(*index)
    for index in ((), (0, 0, 0)):
        with pytest.raises(ValueError, match="item"):
            a_gpu.item(*index)
    assert gpuarray.to_gpu(a[0, 0].reshape(())).tolist() == a[0, 0].tolist()


@pytest.mark.parametrize("dtype", list("?bBhHiIqQefdFD"))
def test_numbers_at_the_ends_of_their_types_are_numpys(dtype):
    kind = np.dtype(dtype).kind
    if kind in "iu":
        values = [np.iinfo(dtype).min, np.iinfo(dtype).max, 3]
    else:
        values = [0.1, -0.0, np.inf, np.nan] + [1.5 - 0.3j] * (kind == "c")
    a = np.array([values], dtype)
    a_gpu = gpuarray.to_gpu(a)
    for place in range(a.size):
        one, expected = a_gpu[0, place], a.item(place)
        for got in (a_gpu.item(place), one.item(), one.tolist()):
            assert type(got) is type(expected)
            assert repr(got) == repr(expected)
        assert repr(complex(one)) == repr(complex(expected))
        if kind != "c":
            assert type(float(one)) is float
            assert repr(float(one)) == repr(float(expected))


@pytest.mark.parametrize("dtype", DTYPES)
def test_an_integer_without_axes_is_an_index(dtype):
    a = np.array(2, dtype)
    a_gpu = gpuarray.to_gpu(a)
    if a.dtype.kind in "iu":
        assert operator.index(a_gpu) == 2
        assert [10, 20, 30][a_gpu] == 30
        check(gpuarray.to_gpu(np.arange(5))[a_gpu], np.arange(5)[a])
    else:
        with pytest.raises(TypeError, match="index"):
            operator.index(a_gpu)
    with pytest.raises(TypeError, match="index"):
        operator.index(gpuarray.zeros(1, np.int32))
    # The number is not taken as an address: the copy reads the array's own bytes.
    host = np.zeros_like(a)
    driver.memcpy_dtoh(host, a_gpu)
    assert host == a


def test_a_format_is_that_of_the_element():
    a = np.array(3.14159)
    a_gpu = gpuarray.to_gpu(a)
    assert f"{a_gpu:.2f}|{a_gpu:>10.3e}|{a_gpu}" == f"{a:.2f}|{a:>10.3e}|{a}"
    assert f"{gpuarray.to_gpu(np.array(255)):#x}" == "0xff"
    assert f"{gpuarray.zeros(2)}" == f"{np.zeros(2)}"
    with pytest.raises(TypeError, match="format"):
        f"{gpuarray.zeros(2):.2f}"


def test_methods_that_combine():
    a = np.array([[3.0, -1.0], [2.5, 7.0]], np.float32)
    a_gpu = gpuarray.to_gpu(a)
    check(a_gpu.sum(), a.sum())
    check(a_gpu.sum(dtype=np.float64), a.sum(dtype=np.float64))
    check(a_gpu.min(), a.min())
    check(a_gpu.max(), a.max())
    check(a_gpu.min(driver.Stream()), a.min())
    with pytest.raises(ValueError, match="identity"):
        gpuarray.zeros(0).max()


# ---- records ------------------------------------------------------------------------------------


def test_fields_of_records_are_views():
    dtype = np.dtype([("x", "f4"), ("n", "i4"), ("at", [("row", "i2"), ("column", "i2")])])
    a = np.zeros((3, 4), dtype)
    a["x"] = np.arange(12).reshape(3, 4)
    a["n"] = -a["x"]
    a["at"]["column"] = 5
    a_gpu = gpuarray.to_gpu(a)
    for view, host in ((a_gpu, a), (a_gpu[1:, ::-2], a[1:, ::-2]), (a_gpu.T, a.T)):
        check(view["x"], host["x"])
        check(view["n"], host["n"])
        check(view["at"]["column"], host["at"]["column"])
        assert view["x"].strides == host["x"].strides
    check(a_gpu["x"] + a_gpu["n"], np.zeros((3, 4)) + np.float32(0) * a["x"] * a["n"])
    assert a_gpu["x"].base is a_gpu
    a_gpu["x"] += 1
    a["x"] += 1
    a_gpu["n"] = 7
    a["n"] = 7
    a_gpu[0]["at"]["row"] = np.arange(4, dtype=np.int16)
    a[0]["at"]["row"] = np.arange(4)
    np.testing.assert_array_equal(a_gpu.get(), a)


def test_fields_that_are_none():
    a_gpu = gpuarray.empty(3, [("x", "f4"), ("m", "f4", (2,))])
    with pytest.raises(ValueError, match="no field of name 'z'.*'x'"):
        a_gpu["z"]
    with pytest.raises(TypeError, match="'m'"):
        a_gpu["m"]
    with pytest.raises(IndexError, match="x.*float64"):
        gpuarray.zeros(3)["x"]
    with pytest.raises(ValueError, match="alignment"):
        gpuarray.empty(3, [("c", "u1"), ("x", "f4")])["x"]
