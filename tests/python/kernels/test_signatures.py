"""Kernels know their parameters: calls convert arguments, refuse them or warn; `repr` shows
them."""

from __future__ import annotations

import inspect
import math
import pydoc
import warnings

import numpy as np
import pytest
from device import BACKEND, needs_parameters
from tables import each_row

from pygpu import compiler, driver, gpuarray
from pygpu.compiler import SourceModule

ONE = {"block": (1, 1, 1)}

# C types with the corresponding numpy types.
TYPES = {
    "bool": np.bool_,
    "signed char": np.int8,
    "unsigned char": np.uint8,
    "short": np.int16,
    "unsigned short": np.uint16,
    "int": np.int32,
    "unsigned": np.uint32,
    "long long": np.int64,
    "unsigned long": np.uint64,
    "float": np.float32,
    "double": np.float64,
}
ECHO = "__global__ void echo_{n}({type} value, {type} *out) {{ *out = value; }}\n"
SOURCE = """
#define REAL float
typedef REAL real;
struct Point { float x, y; };
__global__ void axpy(real a, real *x, const real *__restrict__ y, int n)
{
    int i = threadIdx.x;
    if (i < n) x[i] += a * y[i];
}
__global__ void pair(float2 value, float2 *out) { *out = value; }

__global__ void three(float3 value, int n, float *out) { out[0] = value.z; out[1] = n; }
__global__ void quad(float *out, float2 value, int m, int n)
{
    out[0] = value.x + value.y;
    out[1] = n;
    out[2] = m;
}
__global__ void unnamed(int, float *in) {}
template <class T> __device__ T twice(T x) { return x + x; }
"""


@pytest.fixture(scope="module")
def module():
    echoes = (ECHO.format(n=n, type=name) for n, name in enumerate(TYPES))
    source = SOURCE.replace("template", "} template").replace("x + x; }", 'x + x; } extern "C" {')
    return SourceModule("".join(echoes) + source)


@pytest.fixture
def axpy(module):
    return module.get_function("axpy")


def test_a_function_shows_its_parameters(module, axpy):
    text = "axpy(real a, real *x, const real *__restrict__ y, int n)"
    assert repr(axpy).startswith(f"<Function {text} of ")
    assert text in pydoc.render_doc(axpy)
    shown = inspect.signature(axpy)
    names = [
        "a",
        "x",
        "y",
        "n",
        "block",
        "grid",
        "stream",
        "shared",
        "texrefs",
        "time_kernel",
        "cooperative",
    ]
    assert list(shown.parameters) == names
    assert shown.parameters["y"].annotation == "const real *__restrict__"
    shown.bind(1, 2, 3, 4, block=(1, 1, 1))
    with pytest.raises(TypeError):
        shown.bind(1, 2, 3)
    unnamed = inspect.signature(module.get_function("unnamed"))
    assert list(unnamed.parameters)[:2] == ["_0", "in_1"]
    # Compiled code does not declare types.
    code = driver.module_from_buffer(compiler.compile("__global__ void k(int n) {}"))
    assert repr(code.get_function("k")).startswith("<Function k of ")
    assert not hasattr(code.get_function("k"), "__signature__")


VALUES = [
    0,
    1,
    2,
    -1,
    127,
    128,
    255,
    256,
    300,
    2**15,
    2**16,
    2**31 - 1,
    2**31,
    2**32,
    2**63,
    -(2**63),
]
VALUES += [
    2**64 - 1,
    2**64,
    2**100,
    True,
    0.5,
    2.0,
    -1.0,
    1e30,
    3.5e38,
    1e300,
    np.inf,
    np.nan,
    2j,
    3 + 0j,
]


def fits(value, dtype):
    """Returns true if C can represent the value in a type, ignoring rounding of fractions."""
    dtype = np.dtype(dtype)
    if isinstance(value, complex):
        if value.imag:
            return False
        value = value.real
    if dtype.kind == "f":
        with np.errstate(over="ignore"):
            return not math.isfinite(value) or bool(np.isfinite(dtype.type(float(value))))
    if not math.isfinite(value) or value != int(value):
        return False
    if dtype.kind == "b":
        return isinstance(value, int) or abs(value) < 1e20
    return np.iinfo(dtype).min <= value <= np.iinfo(dtype).max


@each_row("n", range(len(TYPES)))
def test_numbers_are_converted_where_nothing_is_lost(module, n):
    name, dtype = list(TYPES.items())[n]
    function, out = module.get_function(f"echo_{n}"), gpuarray.zeros(1, dtype)
    scalars = [
        np.dtype(given).type(value) for given in "bBhHiIlLefdFD?" for value in (0, 1, 2, 100)
    ]
    scalars += [np.float64(2.5), np.float64(1e300), np.int64(2**40), np.int64(-5), np.complex64(1j)]
    for value in [*VALUES, *scalars]:
        is_scalar = isinstance(value, np.generic)
        plain = value.item() if is_scalar else value
        kinds = np.asarray(value).dtype.kind if is_scalar else "", np.dtype(dtype).kind
        if is_scalar and value.dtype.itemsize == 2 == np.dtype(dtype).itemsize and "f" in kinds:
            continue  # half precision is passed as its bits
        if is_scalar and value.dtype.itemsize == np.dtype(dtype).itemsize and {*kinds} <= {*"iub"}:
            expected = np.asarray(value).view(dtype)
        elif fits(plain, dtype):
            real = plain.real if isinstance(plain, complex) else plain
            expected = dtype(real)
        else:
            refused = rf"argument 0 \(0-based\) of kernel echo_{n}, {name} value, is .*needed"
            with pytest.raises(TypeError, match=refused) as raised:
                function(value, out, **ONE)
            assert isinstance(raised.value, driver.LogicError)
            assert len(str(raised.value)) < 250
            continue
        function(value, out, **ONE)
        np.testing.assert_array_equal(out.get()[0], expected, err_msg=repr(value))


def test_digits_are_rounded_once(module):
    """An integer is converted to float directly, not through a double."""
    out, function = gpuarray.zeros(1, np.float32), module.get_function("echo_9")
    for value in (2**24 + 1, 2**60 + 2**36 + 1, 2**53 + 1):
        function(value, out, **ONE)
        assert out.get()[0] == np.float32(np.longlong(value))


@each_row(
    ("value", "expected"),
    [
        (1 + 2j, 1 + 2j),
        (3, 3),
        (0.5, 0.5),
        (np.complex64(2j), 2j),
        (np.complex128(1 - 1j), 1 - 1j),
        (gpuarray.vec.make_float2(3, 4), 3 + 4j),
        (np.array([1, 2], "f4"), 1 + 2j),
    ],
)
def test_complex_numbers(module, value, expected):
    out = gpuarray.zeros(1, np.complex64)
    module.get_function("pair")(value, out, **ONE)
    assert out.get()[0] == expected


def test_arrays_of_one_number(module):
    out = gpuarray.zeros(1, np.int32)
    for value in (
        np.array(5.0),
        np.array([5], np.int64),
        np.array([5], np.int32),
        np.array(5, np.uint32),
    ):
        out.fill(0)
        module.get_function("echo_5")(value, out, **ONE)
        assert out.get()[0] == 5
    with pytest.raises(TypeError, match="int value, is .* of type ndarray"):
        module.get_function("echo_5")(np.array([2.5]), out, **ONE)


def wrong_launches():
    x, host = gpuarray.zeros(4, np.float32), np.zeros(4, np.float32)
    return {
        "a number for a pointer": ((1, x, 2.0, 4), "const real .*2.0 is of type float"),
        "a scalar for a pointer": ((1, x, np.float64(2), 4), "argument 2 .*np.uintp"),
        "an int for a pointer": ((1, x, 5, 4), "parameter is a pointer"),
        "a host array for a pointer": ((1, x, host, 4), r"numpy array.*driver.In\(x\).*to_gpu"),
        "memory for a number": ((x, x, x, 4), "argument 0 .*real a, is .*memory of the device"),
        "a text for a number": (("1", x, x, 4), r"parameter #0 \(0-based\), real a: '1'"),
        "too few": ((1, x, x), r"takes 4 arguments; 3 were given; it is axpy\(real a, real \*x,"),
        "too many": ((1, x, x, 4, 5), r"takes 4 arguments; 5 were given; it is axpy\("),
    }


@each_row("name", wrong_launches())
def test_wrong_launches_are_refused(axpy, name):
    arguments, message = wrong_launches()[name]
    with pytest.raises(TypeError, match=message):
        axpy(*arguments, **ONE)


@needs_parameters
def test_a_wrong_count_lists_the_parameters(axpy):
    x = gpuarray.zeros(4, np.float32)
    with pytest.raises(driver.LogicError, match=r"3 were given .*; it is axpy\(real a, real \*x, "):
        axpy(x, x, np.int32(4), **ONE)


# ---- arrays -------------------------------------------------------------------------------------

# Pointer types, and the dtypes of matching arrays; other dtypes cause a warning.
POINTERS = {
    "float": ["f4", "c8"],
    "double": ["f8", "c16"],
    "int": ["i4", "u4"],
    "unsigned": ["i4", "u4"],
    "long": ["i8", "u8"],
    "size_t": ["i8", "u8"],
    "short": ["i2", "u2", "f2"],
    "float2": ["f4", "c8"],
    "float4": ["f4", "c8"],
    "double2": ["f8", "c16"],
    "int2": ["i4", "u4", "f8", "c16"],
    "uint4": ["i4", "u4", "f8", "c16"],
    "float *": ["i8", "u8"],
}
ANYTHING = ["unsigned char", "char", "bool", "void", "Point", "uchar4"]
DTYPES = ["f2", "f4", "f8", "c8", "c16", "i2", "u2", "i4", "u4", "i8", "u8"]


def is_warned_of(function, argument):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        function(argument, **ONE)
        function(argument, **ONE)
    assert len(caught) <= 1
    assert all(it.filename == __file__ for it in caught)
    return bool(caught)


@each_row("dtype", DTYPES)
def test_arrays_of_another_type_are_warned_of(dtype):
    names = [*POINTERS, *ANYTHING]
    kernel = "__global__ void k{}(const {} *x) {{}}\n"
    kernels = (kernel.format(n, name) for n, name in enumerate(names))
    module = SourceModule("struct Point { float x, y; };\n" + "".join(kernels))
    for n, name in enumerate(names):
        expected = dtype not in POINTERS.get(name, DTYPES)
        function = module.get_function(f"k{n}")
        for anything in ("u1", "i1"):
            assert not is_warned_of(function, gpuarray.zeros(16, anything)), (name, anything)
        assert is_warned_of(function, gpuarray.zeros(4, dtype)) == expected, name
        assert not is_warned_of(module.get_function(f"k{n}"), gpuarray.zeros(4, dtype)), name


class Handler(driver.ArgumentHandler):
    """A program's own handler; like PyCUDA, the call does not require the base `__init__`."""

    def __init__(self, array, other=None):
        self.memory = gpuarray.to_gpu(array)
        if other is not None:
            super().__init__(other)

    def get_device_alloc(self):
        return self.memory

    def pre_call(self, stream):
        pass

    def post_call(self, stream):
        pass


def test_handlers_of_a_program_are_not_looked_at(recwarn):
    function = SourceModule("__global__ void k(float *x) { x[0] += 1; }").get_function("k")
    for other in (None, np.zeros(4)):
        handler = Handler(np.zeros(4, np.float32), other)
        function(handler, **ONE)
        assert handler.memory.get()[0] == 1
    assert not recwarn.list


@each_row(
    ("type", "value"),
    [("long", -(2**63) - 1), ("long", 2**64), ("unsigned long", -(10**30))]
    + [(it, sign * 10**400) for it in ("float", "double") for sign in (1, -1)],
)
def test_whole_numbers_beyond_a_type_are_refused(type, value):
    module = SourceModule(f"__global__ void k({type} a, {type} *x) {{ *x = a; }}")
    memory = driver.mem_alloc(8)
    with pytest.raises(TypeError, match="is needed"):
        module.get_function("k")(value, memory, **ONE)


RECORD = np.dtype([("x", "f4"), ("y", "f4")])


class Interface:
    """Another library's array."""

    def __init__(self, array):
        self.__cuda_array_interface__ = array.__cuda_array_interface__


@each_row(
    ("name", "make"),
    {
        "GPUArray": gpuarray.to_gpu,
        "In": driver.In,
        "Out": driver.Out,
        "InOut": driver.InOut,
        "interface": lambda host: Interface(gpuarray.to_gpu(host)),
    }.items(),
)
def test_every_kind_of_array_is_looked_at(monkeypatch, name, make):
    module = SourceModule("__global__ void k(float *x) {}")
    function = module.get_function("k")
    wrong, right = np.zeros(4), np.zeros(4, np.float32)
    message = r"kernel k, float \*x, is an array of float64; pass x.astype\(np.float32\)"
    monkeypatch.setenv("PYGPU_ARGUMENT_TYPES", "error")
    for _ in range(2):
        with pytest.raises(TypeError, match=message):
            function(make(wrong), **ONE)
    monkeypatch.setenv("PYGPU_ARGUMENT_TYPES", "ignore")
    function(make(wrong), **ONE)
    monkeypatch.setenv("PYGPU_ARGUMENT_TYPES", "loud")
    with pytest.raises(
        driver.LogicError, match="PYGPU_ARGUMENT_TYPES is .*loud.*warn, error and ignore"
    ):
        function(make(wrong), **ONE)
    function(make(right), **ONE)
    monkeypatch.setenv("PYGPU_ARGUMENT_TYPES", "warn")
    with pytest.warns(UserWarning, match=message):
        function(make(wrong), **ONE)
    function(make(wrong), **ONE)


def test_records_and_memory_are_anything():
    function = SourceModule("__global__ void k(float *x, int2 *y) {}").get_function("k")
    memory = driver.mem_alloc(64)
    for argument in (
        memory,
        np.uintp(memory),
        np.int64(int(memory)),
        driver.In(np.zeros(4, RECORD)),
    ):
        function(argument, argument, **ONE)


# ---- calls that PyCUDA accepts ------------------------------------------------------------------


@needs_parameters
def test_components_of_structures(module):
    """Arguments that do not correspond one-to-one to parameters are packed, whatever their
    types."""
    three, out = module.get_function("three"), gpuarray.zeros(3, np.float32)
    floats = [np.float32(number) for number in (1, 2, 3)]
    three(*floats, np.int32(4), out, **ONE)
    assert out.get().tolist() == [3, 4, 0]
    # As many arguments as parameters, but none has its parameter's type.
    quad = module.get_function("quad")
    last = np.array([4, 5], np.int32)
    quad(out, np.float32(1.5), np.float32(2.5), last, **ONE)
    assert out.get().tolist() == [4, 5, 4]


def test_macros_and_types_of_options():
    source = "__global__ void k(REAL x, REAL *out) { *out = x; }"
    function = SourceModule(source, options=["-DREAL=double"]).get_function("k")
    assert "k(double x, double *out)" in repr(function)
    out = gpuarray.zeros(1, np.float64)
    function(np.float32(0.5), out, **ONE)
    assert out.get()[0] == 0.5


def test_names_of_cpp():
    source = """
        namespace deep { __global__ void own(short n, int *out) { *out = n; } }
        template <typename T> __global__ void fill(T *x, T value) { *x = value; }
        template __global__ void fill<float>(float *, float);
        __global__ void two(int n) {}
        __global__ void two(float x) {}
    """
    module = SourceModule(source, no_extern_c=True)
    out, number = gpuarray.zeros(1, np.int32), gpuarray.zeros(1, np.float32)
    module.get_function("_ZN4deep3ownEsPi")(7, out, **ONE)
    assert out.get()[0] == 7
    module.get_function("_Z4fillIfEvPT_S0_")(number, 3, **ONE)
    assert number.get()[0] == 3
    # Overloads are not resolved by name.
    assert repr(module.get_function("_Z3twoi")).startswith("<Function _Z3twoi of ")
    module.get_function("_Z3twof")(np.float32(1), **ONE)
    with pytest.raises(TypeError, match="invalid type on parameter #0"):
        module.get_function("_Z3twof")(1, **ONE)


@pytest.mark.skipif(BACKEND != "cuda", reason="only NVIDIA's driver links")
def test_linked_modules():
    module = compiler.DynamicModule()
    module.add_source("__global__ void first(int n) {}", name="first.ptx")
    module.add_source("__global__ void second(float *x) {}", name="second.ptx")
    try:
        module.link()
    except driver.Unsupported as reason:
        pytest.skip(str(reason))
    assert "first(int n)" in repr(module.get_function("first"))
    assert "second(float *x)" in repr(module.get_function("second"))
