"""Wrong calls across all interfaces: the exception, its message, and that nothing has changed."""

from __future__ import annotations

import copy
import ctypes
import pickle
import re
import struct

import numpy as np
import pytest
from device import BACKEND
from message_texts import faults_of
from processes import run_python

import PybindGPU
from pygpu import (
    arrow,
    compiler,
    cuda,
    cumath,
    curandom,
    driver,
    elementwise,
    gpuarray,
    ipc,
    reduction,
    scan,
    tools,
)

LONGEST = 250
# Names of the library's internals, and texts without information.
INTERNAL = re.compile(
    r"\bhal\b|\w::\w|InvalidValue|InvalidType|\[status|\(999\)|\bSome\(|None\)|driver refused|"
    r"DType|Opaque|panic|unwrap|\b_core\b|pyo3|there are 1 |\bwait to false\b|end_capture"
)

SOURCE = """
__global__ void scale(float *x, float a) { x[threadIdx.x] *= a; }
__global__ void double_scale(double *x, double a) { x[threadIdx.x] *= a; }
struct Pair { float x, y; };
__global__ void shift(float *x, Pair by, int n) { if (threadIdx.x < n) x[threadIdx.x] += by.x; }
"""
BLOCK = {"block": (4, 1, 1)}


class World:
    """The objects that the calls use; the arrays must keep their bytes."""

    def __init__(self):
        self.x = gpuarray.to_gpu(np.arange(6, dtype=np.float32))
        self.i = gpuarray.to_gpu(np.arange(6, dtype=np.int32).reshape(2, 3))
        self.d = gpuarray.to_gpu(np.arange(6.0))
        self.memory = driver.to_device(np.arange(4, dtype=np.float32))
        self.host = np.arange(6, dtype=np.float32)
        self.module = compiler.SourceModule(SOURCE)
        self.scale = self.module.get_function("scale")
        code = driver.module_from_buffer(compiler.compile(SOURCE))
        self.code, self.double_code, self.shift_code = map(
            code.get_function, ("scale", "double_scale", "shift")
        )
        self.prepared = self.module.get_function("scale").prepare("Pf")
        self.double_scale = self.module.get_function("double_scale")
        self.shift = self.module.get_function("shift")
        self.axpy = elementwise.ElementwiseKernel(
            "float a, float *x, float *z", "z[i] = a * x[i]", "axpy"
        )
        self.total = reduction.ReductionKernel(np.float32, "0", "a+b", "x[i]", "float *x")
        self.cumulative = scan.InclusiveScanKernel(np.int32, "a+b")
        self.status_array = PybindGPU.to_gpu(np.arange(6, dtype=np.float32))
        self.stream = driver.Stream()
        self.record = np.zeros(3, [("a", "f4"), ("b", "i4")])

    def content(self):
        memory = driver.from_device(self.memory, 4, np.float32)
        arrays = [self.x.get(), self.i.get(), self.d.get(), memory, self.host, self.record]
        return [np.asarray(array).tobytes() for array in arrays]


@pytest.fixture(scope="module")
def world():
    return World()


POINTER = ["numpy array", "driver.In(x)", "gpuarray.to_gpu"]

# A name, the exception, words that the message must contain, and the call.
CALLS = {
    # Launches.
    "8-byte array": (
        TypeError,
        ["argument 0", *POINTER],
        lambda w: w.scale(np.ones(2, "f4"), np.float32(2), **BLOCK),
    ),
    "one double": (
        TypeError,
        ["argument 0", *POINTER],
        lambda w: w.double_scale(np.ones(1), np.float64(2), **BLOCK),
    ),
    "8 bytes": (
        TypeError,
        ["argument 0", *POINTER],
        lambda w: w.scale(np.ones(8, "u1"), np.float32(2), **BLOCK),
    ),
    "long array": (
        TypeError,
        ["argument 0", *POINTER],
        lambda w: w.scale(w.host, np.float32(2), **BLOCK),
    ),
    "array after In": (
        TypeError,
        ["argument 0", *POINTER],
        lambda w: w.shift(w.host, w.record[:1], driver.In(w.host), **BLOCK),
    ),
    "Python float": (
        TypeError,
        ["parameter #1 (0-based)", "2.0", "np.float32(2.0)"],
        lambda w: w.code(w.x, 2.0, **BLOCK),
    ),
    "Python double": (
        TypeError,
        ["parameter #1 (0-based)", "2.0", "np.float64(2.0)"],
        lambda w: w.double_code(w.d, 2.0, **BLOCK),
    ),
    "Python int": (
        TypeError,
        ["parameter #1 (0-based)", "2", "np.int32(2)", "np.float32(2)"],
        lambda w: w.code(w.x, 2, **BLOCK),
    ),
    "Python bool": (
        TypeError,
        ["parameter #1 (0-based)", "np.bool_(True)"],
        lambda w: w.code(w.x, True, **BLOCK),
    ),
    "Python complex": (
        TypeError,
        ["parameter #1 (0-based)", "np.complex64"],
        lambda w: w.code(w.x, 1j, **BLOCK),
    ),
    "list": (
        TypeError,
        ["parameter #0 (0-based)", "[1.0, 2.0]", "np.array", "driver.In"],
        lambda w: w.scale([1.0, 2.0], np.float32(2), **BLOCK),
    ),
    "long list": (
        TypeError,
        ["parameter #0 (0-based)", "[0, 1, 2", "driver.In"],
        lambda w: w.scale(list(range(999)), np.float32(2), **BLOCK),
    ),
    "no argument": (
        TypeError,
        ["parameter #0 (0-based)", "None", "np.uintp(0)"],
        lambda w: w.scale(None, np.float32(2), **BLOCK),
    ),
    "text argument": (
        TypeError,
        ["parameter #0 (0-based)", "'abc'", "encode"],
        lambda w: w.scale("abc", np.float32(2), **BLOCK),
    ),
    "In of a list": (
        TypeError,
        ["list", "numpy.array"],
        lambda w: w.scale(driver.In([1]), np.float32(2), **BLOCK),
    ),
    "no block": (
        ValueError,
        ["block size", "block=(256, 1, 1)"],
        lambda w: w.scale(w.x, np.float32(2)),
    ),
    "block of text": (
        TypeError,
        ["block", "str"],
        lambda w: w.scale(w.x, np.float32(2), block="4"),
    ),
    "negative block": (
        OverflowError,
        ["block", "-1", "1 to"],
        lambda w: w.scale(w.x, np.float32(2), block=(-1, 1, 1)),
    ),
    "large block": (
        driver.LogicError,
        ["block", "2000", "1024"],
        lambda w: w.scale(w.x, np.float32(2), block=(2000, 1, 1)),
    ),
    "four extents": (
        driver.LogicError,
        ["grid", "4", "three"],
        lambda w: w.scale(w.x, np.float32(2), grid=(1, 1, 1, 1), **BLOCK),
    ),
    "unknown keyword": (
        ValueError,
        ["extra keyword", "blocks"],
        lambda w: w.scale(w.x, np.float32(2), blocks=3),
    ),
    "stream of text": (
        TypeError,
        ["stream", "str", "Stream"],
        lambda w: w.scale(w.x, np.float32(2), stream="s", **BLOCK),
    ),
    "unprepared": (
        struct.error,
        ["double_scale", "prepare"],
        lambda w: w.double_scale.prepared_call((1, 1), (4, 1, 1), w.d, 2),
    ),
    "prepared, too few": (
        struct.error,
        ["exactly 2", "scale", "1"],
        lambda w: w.prepared.prepared_call((1, 1), (4, 1, 1), w.x),
    ),
    "prepared, an array": (
        TypeError,
        ["argument 0", "ndarray", "to_gpu"],
        lambda w: w.prepared.prepared_call((1, 1), (4, 1, 1), w.host, 2),
    ),
    "prepared, a text": (
        struct.error,
        ["argument 1", "str", "number"],
        lambda w: w.prepared.prepared_call((1, 1), (4, 1, 1), w.x, "2"),
    ),
    "unknown format": (
        struct.error,
        ["'Z'"],
        lambda w: w.module.get_function("scale").prepare("PZ"),
    ),
    "unknown kernel": (driver.LogicError, ["scal3"], lambda w: w.module.get_function("scal3")),
    "bytes as source": (
        TypeError,
        ["source", "bytes", "decode"],
        lambda w: compiler.SourceModule(b"__global__ void f() {}"),
    ),
    "options of text": (
        TypeError,
        ["options", "-O3"],
        lambda w: compiler.SourceModule("", options="-O3"),
    ),
    # Kernels from snippets.
    "longer first": (
        ValueError,
        ["z", "x", "4", "6", "output first", "range="],
        lambda w: w.axpy(np.float32(2), w.x, gpuarray.zeros(4, "f4")),
    ),
    "another dtype": (
        TypeError,
        ["x", "axpy", "float64", "float32"],
        lambda w: w.axpy(2, w.d, w.x),
    ),
    "too few": (TypeError, ["axpy", "a, x, z", "1"], lambda w: w.axpy(2)),
    "numpy in a kernel": (
        TypeError,
        ["x", "axpy", "ndarray", "GPUArray"],
        lambda w: w.axpy(2, w.host, w.x),
    ),
    "text in a kernel": (struct.error, ["a", "axpy", "str"], lambda w: w.axpy("2", w.x, w.x)),
    "reduction of text": (TypeError, ["x", "str", "GPUArray"], lambda w: w.total("x")),
    "scan of floats": (TypeError, ["float64", "int32"], lambda w: w.cumulative(w.d)),
    # Arrays.
    "index": (IndexError, ["index 10", "axis 0", "size 6"], lambda w: w.x[10]),
    "text index": (IndexError, ["str", "integer or boolean arrays"], lambda w: w.i[0, "x"]),
    "float index": (IndexError, ["float", "integer or boolean arrays"], lambda w: w.x[1.0]),
    "too many indices": (IndexError, ["too many indices", "2"], lambda w: w.i[0, 0, 0]),
    "huge index": (IndexError, ["index"], lambda w: w.x[10**30]),
    "zero step": (ValueError, ["step"], lambda w: w.x[::0]),
    "int of many": (TypeError, ["length-1", "(6,)"], lambda w: int(w.x)),
    "float of many": (TypeError, ["length-1", "(6,)"], lambda w: float(w.x)),
    "truth of many": (ValueError, ["6 elements", "any"], lambda w: bool(w.x)),
    "reshape": (ValueError, ["size 6", "(4,)"], lambda w: w.x.reshape(4)),
    "axis": (IndexError, ["axis 3", "2"], lambda w: w.i.sum(axis=3)),
    "broadcast": (ValueError, ["(6,)", "(2, 3)"], lambda w: w.x + w.i),
    "numpy operand": (TypeError, ["to_gpu"], lambda w: w.x + w.host),
    "object operand": (TypeError, ["object"], lambda w: w.x.__iadd__(object())),
    "ragged operand": (ValueError, ["inhomogeneous"], lambda w: w.x * [[1], [2, 3]]),
    "text assigned": (TypeError, ["str"], lambda w: w.x.__setitem__(0, "x")),
    "long assigned": (
        ValueError,
        ["(4,)", "(6,)"],
        lambda w: w.x.__setitem__(slice(None), gpuarray.zeros(4, "f4")),
    ),
    "number out of range": (
        OverflowError,
        ["300", "uint8"],
        lambda w: gpuarray.zeros(3, "u1") + 300,
    ),
    "shape": (ValueError, ["-1"], lambda w: gpuarray.zeros(-1, "f4")),
    "shape of text": (TypeError, ["shape", "'x'"], lambda w: gpuarray.zeros("x", "f4")),
    "order": (ValueError, ["order", "X", "C"], lambda w: gpuarray.zeros(3, "f4", order="X")),
    "object elements": (TypeError, ["object"], lambda w: gpuarray.to_gpu(np.array([None]))),
    "other size": (ValueError, ["size", "(6,)", "(4,)"], lambda w: w.x.set(np.zeros(4, "f4"))),
    "other dtype": (ValueError, ["float32", "float64"], lambda w: w.x.set(np.zeros(6))),
    "astype": (TypeError, ["nonsense"], lambda w: w.x.astype("nonsense")),
    "take": (TypeError, ["float32", "integer"], lambda w: gpuarray.take(w.x, w.x)),
    "dot": (ValueError, ["(6,)", "(2, 3)"], lambda w: gpuarray.dot(w.x, w.i)),
    "concatenate": (ValueError, ["at least one"], lambda w: gpuarray.concatenate([])),
    "exp of text": (TypeError, ["str"], lambda w: cumath.exp("x")),
    "axpby": (TypeError, ["str"], lambda w: w.x.mul_add("x", w.x, 2)),
    "rand": (NotImplementedError, ["int8", "float32"], lambda w: curandom.rand(4, np.int8)),
    # The driver.
    "no bytes": (driver.LogicError, ["bytes", "0", "1 to"], lambda w: driver.mem_alloc(0)),
    "bytes of text": (TypeError, ["bytes", "'x'", "whole number"], lambda w: driver.mem_alloc("x")),
    "copy too long": (
        driver.LogicError,
        ["dest", "16", "24"],
        lambda w: driver.memcpy_htod(w.memory, w.host),
    ),
    "copy from text": (TypeError, ["src", "str"], lambda w: driver.memcpy_htod(w.memory, "x")),
    "memset": (driver.LogicError, ["dest", "4000"], lambda w: driver.memset_d8(w.memory, 1, 4000)),
    "device": (driver.LogicError, ["device number", "7", "0"], lambda w: driver.Device(7)),
    "event flags": (ValueError, ["flags", "64", "1 (blocking)"], lambda w: driver.Event(64)),
    "stream flags": (ValueError, ["flags", "9", "0 and 1"], lambda w: driver.Stream(9)),
    "no address": (driver.LogicError, ["0x10"], lambda w: driver.mem_get_address_range(16)),
    "device pool": (
        driver.LogicError,
        ["bin"],
        lambda w: tools.DeviceMemoryPool().alloc_size(10**6),
    ),
    # numba's memory.
    "missing field": (KeyError, ["'c'", "a", "b"], lambda w: cuda.to_device(w.record)[0]["c"]),
    "free pointer": (
        TypeError,
        ["pointer", "str"],
        lambda w: cuda.cudadrv.driver.MemoryPointer(None, "x", 4),
    ),
    "device of numba": (IndexError, ["devnum", "7"], lambda w: cuda.gpus[7]),
    "no interface": (
        TypeError,
        ["list", "cuda array interface"],
        lambda w: cuda.as_cuda_array([1]),
    ),
    "shape of numba": (TypeError, ["shape", "'x'"], lambda w: cuda.device_array("x")),
    # Arrow and processes.
    "arrow device": (ValueError, ["device_number", "7"], lambda w: arrow.Context(7)),
    "arrow size": (ValueError, ["nbytes", "-1"], lambda w: arrow.Context(0).new_buffer(-1)),
    "arrow position": (
        ValueError,
        ["position", "99", "8"],
        lambda w: arrow.Context(0).new_buffer(8).copy_to_host(99),
    ),
    "descriptor": (TypeError, ["descriptor", "int", "Descriptor"], lambda w: ipc.open(3)),
    # One of a thing.
    "indices of one axis": (IndexError, ["1-dimensional", "2"], lambda w: w.x[0, 0]),
    "axis of one axis": (IndexError, ["axis 3", "dimension 1"], lambda w: w.x.sum(axis=3)),
    "arrays as indices of one axis": (
        IndexError,
        ["1-dimensional", "2"],
        lambda w: w.x[w.i[0], w.i[0]],
    ),
    "one index for item": (ValueError, ["item", "(2, 3)"], lambda w: w.i.item(0, 0, 0)),
    "one byte": (
        driver.LogicError,
        ["dest", "1", "24"],
        lambda w: driver.memcpy_htod(driver.mem_alloc(1), w.host),
    ),
    "one byte of a handle": (
        driver.LogicError,
        ["handle", "1", "64"],
        lambda w: driver.IPCMemoryHandle(b"a"),
    ),
    "one byte of Arrow": (
        ValueError,
        ["offset", "2", "1"],
        lambda w: arrow.new_host_buffer(1).slice(2),
    ),
    "one element in a kernel": (
        ValueError,
        ["z", "x", "size 1", "6"],
        lambda w: w.axpy(np.float32(2), w.x, gpuarray.zeros(1, "f4")),
    ),
    "one entry of strides": (
        ValueError,
        ["strides [4]", "(2, 3)"],
        lambda w: gpuarray.GPUArray((2, 3), "f4", strides=(4,)),
    ),
    # Functions with numpy's names.
    "array_split of a number": (
        ValueError,
        ["ary.ndim", "0", "hsplit"],
        lambda w: gpuarray.hsplit(gpuarray.zeros((), "f4"), 2),
    ),
    "weights": (
        ValueError,
        ["weights", "(2,)", "(6,)"],
        lambda w: gpuarray.average(w.x, weights=gpuarray.zeros(2, "f4")),
    ),
    "norm": (
        ValueError,
        ["ord", "'x'", "number"],
        lambda w: np.linalg.norm(w.x, ord="x"),
    ),
    # PyGPU raises for wrong types.
    "PyGPU dtype": (
        PybindGPU.UnsupportedDataType,
        ["int8"],
        lambda w: PybindGPU.GPUArray(np.zeros(3, "i1")),
    ),
    "PyGPU index": (IndexError, ["10"], lambda w: w.status_array[10]),
}


@pytest.mark.parametrize("name", CALLS)
def test_a_wrong_call_is_refused_in_words(world, name):
    expected, words, call = CALLS[name]
    before = world.content()
    with pytest.raises(expected) as caught:
        call(world)
    text = str(caught.value)
    assert all(word in text for word in words), text
    assert len(text) <= LONGEST, text
    assert not INTERNAL.search(text), text
    assert "\n" not in text, text
    assert "inhomogeneous" in text or not faults_of(text), text  # The word is numpy's.
    assert world.content() == before


def test_the_table_is_long_enough():
    assert len(CALLS) >= 60


# Sizes are known if the driver or the code object reports a kernel's parameters.
SIZES = {
    "size of a number": (
        ["argument 1", "scale", "8 bytes", "4", "np.float32(2.0)"],
        lambda w: w.code(w.x, np.float64(2), **BLOCK),
    ),
    "size of an integer": (
        ["argument 2", "8 bytes", "4", "np.int32"],
        lambda w: w.shift_code(w.x, w.record[:1].tobytes(), np.int64(2**40), **BLOCK),
    ),
    "swapped": (["argument 0", "4 bytes", "8"], lambda w: w.code(np.float32(2), w.x, **BLOCK)),
    "one is missing": (
        ["scale", "2 arguments", "4 bytes", "1 was given"],
        lambda w: w.scale(w.x, **BLOCK),
    ),
    "one too many": (
        ["scale", "2 arguments", "3 were given"],
        lambda w: w.scale(w.x, np.float32(2), np.int32(3), **BLOCK),
    ),
    "prepared for others": (
        ["argument 1", "scale", "8 bytes", "4"],
        lambda w: (
            w.module.get_function("scale").prepare("Pd").prepared_call((1, 1), (4, 1, 1), w.x, 2)
        ),
    ),
}


@pytest.mark.skipif(
    BACKEND == "hip", reason="sizes are those of AMD's code objects, which the double has not"
)
@pytest.mark.parametrize("name", SIZES)
def test_sizes_that_differ_are_both_named(world, name):
    words, call = SIZES[name]
    before = world.content()
    with pytest.raises(driver.LogicError) as caught:
        call(world)
    text = str(caught.value)
    assert all(word in text for word in words), text
    assert len(text) <= LONGEST
    assert not INTERNAL.search(text), text
    assert world.content() == before


def test_arrays_by_value_are_still_taken():
    module = compiler.SourceModule("""
        struct Pair { float x, y; };
        __global__ void both(float *x, float2 a, Pair b, double c, unsigned long long d) {
            x[0] += a.x + a.y; x[1] += b.x + b.y; x[2] += c; x[3] += d;
        }""")
    x = gpuarray.zeros(4, np.float32)
    pair = np.array([1, 2], np.float32)
    module.get_function("both")(x, pair, pair, np.array([4.0]), np.array([5]), block=(1, 1, 1))
    assert x.get().tolist() == [3, 3, 4, 5]
    # A memory address, passed as an array with one number.
    scale = module.get_function("both")
    scale(np.array([x.ptr]), pair, pair, np.array([4.0]), np.array([5]), block=(1, 1, 1))
    assert x.get().tolist() == [6, 6, 8, 10]


def test_declarations_of_any_form_tell_pointers():
    source = """
        /* __global__ void one(int n) {} */
        struct Box { long long n; };
        __global__ void __launch_bounds__(64, 2) one(const float *__restrict__ x, // the *first*
            Box box, long long y[]) { y[0] = box.n; }
        extern "C" __global__ void __launch_bounds__(64)
        two(long long a, void (*f)(int *), long long *y) { y[0] = a; }
        __global__ void three() {}
    """
    module = compiler.SourceModule(source)
    one, two = module.get_function("one"), module.get_function("two")
    x, y, bytes8 = gpuarray.zeros(1, np.float32), gpuarray.zeros(1, np.int64), np.array([7], "i8")
    one(x, bytes8, y, block=(1, 1, 1))
    assert y.get().tolist() == [7]
    two(np.array([9], "i8"), np.uintp(0), y, block=(1, 1, 1))
    assert y.get().tolist() == [9]
    for function, arguments, position in (
        (one, (bytes8, bytes8, y), 0),
        (one, (x, bytes8, bytes8), 2),
        (two, (bytes8, np.uintp(0), bytes8), 2),
    ):
        with pytest.raises(TypeError, match=f"argument {position} "):
            function(*arguments, block=(1, 1, 1))
    assert y.get().tolist() == [9]


# PyGPU returns a status instead.
STATUSES = {
    "idx": (["100", "6"], lambda array: array.set_val(100, 1.0)),
    "size": (["24", "8"], lambda array: array.set(np.zeros(2, np.float32))),
    "device": (["-1", "0"], lambda array: PybindGPU.cudaSetDevice(-1)),
    "number": (["99", "device"], lambda array: PybindGPU.cudaSetDevice(99)),
    "allocate": (["device memory"], lambda array: array.allocate()),
}


@pytest.mark.parametrize("name", STATUSES)
def test_a_failing_status_has_the_sentence(name):
    words, call = STATUSES[name]
    array = PybindGPU.to_gpu(np.arange(6, dtype=np.float32))._device_array
    status = call(array)
    assert status != 0
    assert all(word in status.message for word in words), status.message
    assert not INTERNAL.search(status.message), status.message
    assert not faults_of(status.message), status.message


def test_a_status_says_why():
    array = PybindGPU.to_gpu(np.arange(6, dtype=np.float32))._device_array
    array.set_val(100, 1.0)
    status = array.last_status()
    assert (repr(status), status.message) == (
        "<CudaError: 'code=1'>",
        "idx is 100; the size of the array is 6",
    )
    with pytest.raises(driver.LogicError, match="idx is 100; the size of the array is 6"):
        status.raise_for_status()
    assert PybindGPU.cudaGetErrorString(status) != status.message
    array.set_val(1, 1.0)
    assert (repr(array.last_status()), array.last_status().message) == (
        "<CudaError: 'code=0'>",
        "no error",
    )
    status = PybindGPU.cudaSetDevice(-1)
    assert status.message == "device is -1; devices count from 0"


def test_numpys_answers():
    a = np.arange(3, dtype=np.float32)
    a_gpu = gpuarray.to_gpu(a)
    for other in ([1, 2, 3], (1.5, 2, 3), [[1], [2]], [True, False, True]):
        for got, wanted in (
            (a_gpu * other, a * other),
            (other * a_gpu, other * a),
            (a_gpu - other, a - other),
            (a_gpu < other, a < other),
            (a_gpu == other, a == other),
            (np.add(a_gpu, other), np.add(a, other)),
            (np.maximum(other, a_gpu), np.maximum(other, a)),
        ):
            assert got.dtype == wanted.dtype
            np.testing.assert_array_equal(got.get(), wanted)
    b, b_gpu = a.copy(), a_gpu.copy()
    b += [1, 2, 3]
    b_gpu += [1, 2, 3]
    assert b_gpu.get().tolist() == b.tolist()
    for value in (1, 1.0, 3.0, np.float32(2), True, 5j):
        assert (value in a_gpu) == (value in a), value
    assert None not in a_gpu
    assert ["x"] not in a_gpu
    with pytest.raises(TypeError, match="operand has elements of dtype object"):
        a_gpu * [None, 1, 2]
    assert "x" not in a_gpu
    one = gpuarray.to_gpu(np.full((1, 1), 2.75))
    assert (int(one), float(one), complex(one)) == (2, 2.75, 2.75 + 0j)
    assert np.iterable(a_gpu)


def test_numbers_of_ctypes_are_addresses():
    memory = driver.mem_alloc(16)
    for kind in (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_uint64, int):
        pointer = cuda.cudadrv.driver.MemoryPointer(cuda.current_context(), kind(int(memory)), 16)
        assert pointer.handle == int(memory)
    assert cuda.cudadrv.driver.MemoryPointer(None, ctypes.c_void_p(), 0).handle == 0


def test_a_record_is_copied_and_pickled():
    record = cuda.to_device(np.array([(1, 2.5)], [("a", "i4"), ("b", "f8")])[0])
    for other in (pickle.loads(pickle.dumps(record)), copy.copy(record), copy.deepcopy(record)):
        assert type(other) is type(record)
        assert other.copy_to_host() == record.copy_to_host()
        other["a"] = 7
        assert (other["a"], record["a"]) == (7, 1)


@pytest.mark.parametrize("make", [cuda.mapped_array, cuda.managed_array, cuda.device_array])
def test_an_empty_array_has_an_interface(make):
    try:
        array = cuda.as_cuda_array(make(0, np.float32))
    except driver.Unsupported:
        pytest.skip("the device has no such memory")
    assert (array.shape, array.dtype) == ((0,), np.float32)
    assert array.copy_to_host().tolist() == []


def test_a_setting_that_cannot_be_read_is_told_alone():
    done = run_python(
        """
        from pygpu import driver
        try:
            driver.init()
        except driver.Error as error:
            print(type(error).__name__, error)
        """,
        PYGPU_HOST_MEMORY="lots",
        PYGPU_BACKEND="",
        PYGPU_CUDA_LIBRARY="/nowhere/libcuda.so",
        PYGPU_HIP_LIBRARY="/nowhere/libamdhip64.so",
    )
    assert done.stdout.startswith('InvalidArgument PYGPU_HOST_MEMORY is "lots"; allowed are whole')
    assert len(done.stdout) < LONGEST


@pytest.mark.parametrize("module", ["autoinit", "autoprimaryctx"])
def test_a_context_that_the_program_ended_is_not_ended_again(module):
    done = run_python(f"import pygpu.{module} as made; made.context.detach()")
    assert (done.returncode, done.stderr) == (0, "")


def test_a_copy_to_the_host_while_capturing_says_what_to_do():
    stream, array = driver.Stream(), gpuarray.zeros(3, np.float32)
    stream.begin_capture()
    with pytest.raises(driver.LogicError) as caught:
        array.get(stream=stream)
    text = str(caught.value)
    assert "the stream captures" in text
    assert "get_async" in text
    assert not INTERNAL.search(text), text
