"""Arguments of each type arrive in the kernel with unchanged bytes."""

from __future__ import annotations

import struct

import ml_dtypes
import numpy as np
import pytest
from device import BACKEND, needs_parameters

from pygpu import compiler, driver, gpuarray
from pygpu.compiler import SourceModule
from pygpu.tools import DeviceMemoryPool

# The C types, numpy's types and `struct` codes, with their extreme values.
TYPES = [
    ("signed char", np.int8, "b", [-128, 127]),
    ("unsigned char", np.uint8, "B", [0, 255]),
    ("short", np.int16, "h", [-(2**15), 2**15 - 1]),
    ("unsigned short", np.uint16, "H", [0, 2**16 - 1]),
    ("int", np.int32, "i", [-(2**31), 2**31 - 1, -1]),
    ("unsigned int", np.uint32, "I", [0, 2**32 - 1]),
    ("long", np.dtype("l").type, "l", [-(2**63), 2**63 - 1, -1]),
    ("unsigned long", np.dtype("L").type, "L", [0, 2**64 - 1]),
    ("long long", np.longlong, "q", [-(2**63), 2**63 - 1]),
    ("unsigned long long", np.ulonglong, "Q", [0, 2**64 - 1]),
    ("size_t", np.uintp, "N", [0, 2**64 - 1]),
    ("ptrdiff_t", np.intp, "n", [-(2**63), 2**63 - 1]),
    ("float", np.float32, "f", [1.5, -1.0, np.inf]),
    ("double", np.float64, "d", [0.1, -1.0, -np.inf]),
    ("bool", np.bool_, "?", [True, False]),
]
NAMES = [name for name, *_ in TYPES]

ECHO = "__global__ void echo_{n}({type} x, {type} *out) {{ *out = x; }}\n"
BYTES = """
struct Two { float x, y; };
struct Four { double x, y; };
__global__ void echo_two(Two x, Two *out) { *out = x; }
__global__ void echo_four(Four x, Four *out) { *out = x; }
__global__ void echo_half(unsigned short x, unsigned short *out) { *out = x; }
__global__ void count(int *x, int n) { for (int i = 0; i < n; ++i) x[i] = i; }
"""


@pytest.fixture(scope="module")
def module():
    echoes = (ECHO.format(n=n, type=name) for n, name in enumerate(NAMES))
    return SourceModule("".join(echoes) + BYTES)


def echo(function, argument, dtype):
    out = driver.mem_alloc(np.dtype(dtype).itemsize)
    function(argument, out, block=(1, 1, 1))
    return driver.from_device(out, (), dtype)[()]


def prepared_echo(function, code, argument, dtype):
    out = driver.mem_alloc(np.dtype(dtype).itemsize)
    function.prepare([code, "P"]).prepared_call((1, 1), (1, 1, 1), argument, out)
    return driver.from_device(out, (), dtype)[()]


@pytest.mark.parametrize("n", range(len(TYPES)), ids=NAMES)
def test_numbers(module, n):
    _, dtype, code, values = TYPES[n]
    function = module.get_function(f"echo_{n}")
    for value in values:
        assert echo(function, dtype(value), dtype) == value
        for given in (value, dtype(value), np.array(value, dtype)):
            assert prepared_echo(function, code, given, dtype) == value
        assert prepared_echo(function, dtype, value, dtype) == value
        assert prepared_echo(function, np.dtype(dtype), value, dtype) == value


@pytest.mark.parametrize("n", range(12), ids=NAMES[:12])
def test_whole_numbers_out_of_range(module, n):
    _, dtype, code, _ = TYPES[n]
    limits = np.iinfo(dtype)
    function = module.get_function(f"echo_{n}")
    out = driver.mem_alloc(8)
    function.prepare([code, "P"])
    for value in (int(limits.min) - 1, int(limits.max) + 1):
        reason = f"is {value}, out of range for .*, from {limits.min} to {limits.max}$"
        with pytest.raises(struct.error, match=rf"argument 0 \(0-based\) {reason}"):
            function.prepared_call((1, 1), (1, 1, 1), value, out)
    for value in (2.5, "3", None):
        with pytest.raises(struct.error, match=r"argument 0 \(0-based\).*whole number"):
            function.prepared_call((1, 1), (1, 1, 1), value, out)


def test_floats_take_any_number(module):
    single = module.get_function(f"echo_{NAMES.index('float')}")
    double = module.get_function(f"echo_{NAMES.index('double')}")
    for value in (3, -1, np.int32(7), np.float16(0.5), np.float64(0.1), 2**70, True):
        assert prepared_echo(single, "f", value, np.float32) == np.float32(value)
        assert prepared_echo(double, "d", value, np.float64) == float(value)
    for value in ("3", None, 1j, 10**400):
        with pytest.raises(struct.error, match=r"argument 0 \(0-based\).*number"):
            prepared_echo(double, "d", value, np.float64)


@pytest.mark.parametrize(
    ("kernel", "dtype", "code"),
    [("echo_two", np.complex64, "F"), ("echo_four", np.complex128, "D")],
)
def test_complex_numbers(module, kernel, dtype, code):
    function = module.get_function(kernel)
    assert echo(function, dtype(1.5 - 2j), dtype) == 1.5 - 2j
    for value in (1.5 - 2j, np.complex64(1j), np.complex128(-1j), 2, np.float32(0.5), np.array(3j)):
        assert prepared_echo(function, code, value, dtype) == dtype(value)
        assert prepared_echo(function, dtype, value, dtype) == dtype(value)
    with pytest.raises(struct.error, match="complex"):
        prepared_echo(function, code, "1", dtype)


def test_half_precision(module):
    function = module.get_function("echo_half")
    assert echo(function, np.float16(0.1), np.float16) == np.float16(0.1)
    for value in (0.1, np.float16(0.1), np.float64(0.1)):
        assert prepared_echo(function, np.float16, value, np.float16) == np.float16(0.1)


def test_bfloat16(module):
    value = ml_dtypes.bfloat16(0.1)
    assert echo(module.get_function("echo_half"), value, ml_dtypes.bfloat16) == value


def test_structures_are_cut_and_filled(module):
    two = module.get_function("echo_two")
    dtype = np.dtype([("x", "f4"), ("y", "f4")])
    record = np.array((1, 2), dtype)[()]
    for given in (
        record,
        record.tobytes(),
        bytearray(record.tobytes() + b"more"),
        np.array(record),
    ):
        assert prepared_echo(two, "8s", given, dtype) == record
        assert prepared_echo(two, dtype, given, dtype) == record
    assert prepared_echo(two, "8s", np.float32(1).tobytes(), dtype) == np.array((1, 0), dtype)[()]
    assert echo(two, gpuarray.vec.make_float2(3, 4), gpuarray.vec.float2)["y"] == 4
    with pytest.raises(TypeError, match="a kernel's argument is of type int"):
        prepared_echo(two, "8s", 3, dtype)


# ---- addresses ----------------------------------------------------------------------------------


class Interface:
    """Another library's array."""

    def __init__(self, array, stream=None):
        self.array, self.stream = array, stream

    @property
    def __cuda_array_interface__(self):
        return {**self.array.__cuda_array_interface__, "stream": self.stream}


class Holder(driver.PointerHolderBase):
    """A program's own allocation."""

    def __init__(self, allocation):
        super().__init__()
        self.allocation = allocation

    def get_pointer(self):
        return int(self.allocation)


class Wrapped:
    """An object that PyCUDA accepts as an array."""

    def __init__(self, gpudata):
        self.gpudata = gpudata


class Derived(gpuarray.GPUArray):
    pass


def sources():
    """Returns objects that represent memory of 64 integers, with a way to read each."""
    allocation = driver.mem_alloc(256)
    pooled = DeviceMemoryPool().allocate(256)
    array = gpuarray.empty(64, np.int32)
    pool = DeviceMemoryPool()
    return {
        "DeviceAllocation": (allocation, allocation),
        "PooledDeviceAllocation": (pooled, pooled),
        "GPUArray": (array, array.gpudata),
        "GPUArray from a pool": 2 * (gpuarray.empty(64, np.int32, pool.allocate),),
        "derived GPUArray": 2 * (Derived(64, np.int32),),
        "view": 2 * (gpuarray.empty(70, np.int32)[6:],),
        "interface": (Interface(array), array.gpudata),
        "interface with a stream": (Interface(array, 1), array.gpudata),
        "PointerHolderBase": (Holder(allocation), allocation),
        "gpudata": (Wrapped(allocation), allocation),
        "gpudata as a number": (Wrapped(int(allocation)), allocation),
        "address": (np.uintp(allocation), allocation),
    }


@pytest.mark.parametrize("name", sources())
def test_memory(module, name):
    argument, memory = sources()[name]
    memory = getattr(memory, "gpudata", memory)
    count = module.get_function("count")
    driver.memset_d32(int(memory), 0, 64)
    count(argument, np.int32(64), block=(1, 1, 1))
    np.testing.assert_array_equal(driver.from_device(memory, 64, np.int32), np.arange(64))
    if name.startswith("gpudata"):
        return  # PyCUDA's `struct` does not look for this attribute.
    driver.memset_d32(int(memory), 0, 64)
    count.prepare("Pi").prepared_call((1, 1), (1, 1, 1), argument, 64)
    np.testing.assert_array_equal(driver.from_device(memory, 64, np.int32), np.arange(64))


def test_plain_numbers_as_prepared_addresses(module):
    memory = driver.mem_alloc(256)
    count = module.get_function("count").prepare("Pi")
    driver.memset_d32(memory, 7, 64)
    count.prepared_call((1, 1), (1, 1, 1), int(memory) + 16, 4)
    expected = np.full(64, 7)
    expected[4:8] = range(4)
    np.testing.assert_array_equal(driver.from_device(memory, 64, np.int32), expected)
    for value in (2.5, "x", None, np.float32(1)):
        with pytest.raises((struct.error, TypeError), match="argument 0"):
            count.prepared_call((1, 1), (1, 1, 1), value, 4)


def test_managed_arrays(module):
    count = module.get_function("count")
    for array in (driver.managed_zeros(64, np.int32), driver.managed_zeros(70, np.int32)[6:]):
        count(array, np.int32(64), block=(1, 1, 1))
        driver.Context.synchronize()
        np.testing.assert_array_equal(array, np.arange(64))
        array[:] = 0
        count.prepare("Pi").prepared_call((1, 1), (1, 1, 1), array, 64)
        driver.Context.synchronize()
        np.testing.assert_array_equal(array, np.arange(64))


def test_an_array_without_elements(module):
    count = module.get_function("count")
    empty = gpuarray.empty(0, np.int32)
    count(empty, np.int32(0), block=(1, 1, 1))
    count.prepare("Pi").prepared_call((1, 1), (1, 1, 1), empty, 0)


def test_an_array_with_gaps_is_no_structure(module):
    with pytest.raises(ValueError, match="contiguous"):
        module.get_function("echo_two")(
            np.zeros(4, np.float32)[::2], driver.mem_alloc(8), block=(1, 1, 1)
        )


# ---- Integers of another size than the parameter's ----------------------------------------------

INTEGERS = [(name, np.dtype(kind)) for name, kind, *_ in TYPES[:10]]


def packed(parameters, arguments):
    """Returns the values that a kernel reads if arguments are packed as in PyCUDA: consecutively,
    each aligned to its size, with zeros between and after them. Returns None if they extend beyond
    the parameters, which the driver refuses."""
    block, at, end, values = bytearray(), 0, 0, []
    for argument in arguments:
        block += bytes(-len(block) % argument.itemsize) + argument.tobytes()
    for dtype in parameters:
        end += -end % dtype.itemsize + dtype.itemsize
    if len(block) > end:
        return None
    block += bytes(end - len(block))
    for dtype in parameters:
        at += -at % dtype.itemsize
        values.append(int(np.frombuffer(block, dtype, 1, at)[0]))
        at += dtype.itemsize
    return values


@needs_parameters
@pytest.mark.parametrize("seed", range(4))
def test_integers_that_arrive_in_a_packed_block_arrive(seed):
    rng = np.random.default_rng(seed)
    chosen = [INTEGERS[k] for k in rng.integers(0, len(INTEGERS), rng.integers(1, 5))]
    place = rng.integers(len(chosen) + 1)
    parameters = [(dtype, f"{name} p{k}") for k, (name, dtype) in enumerate(chosen)]
    parameters.insert(place, (np.dtype(np.uintp), "long long *out"))
    stores = "".join(f"out[{k}] = (long long)p{k};" for k in range(len(chosen)))
    head = ", ".join(text for _, text in parameters)
    kernel = SourceModule(f"__global__ void k({head}) {{ {stores} }}").get_function("k")
    out = gpuarray.zeros(len(chosen), np.int64)
    types, accepted = [dtype for dtype, _ in parameters], 0
    for _ in range(40):
        kinds = [INTEGERS[rng.integers(10)][1] if rng.integers(3) == 0 else it for _, it in chosen]
        values = [int(rng.integers(0 if it.kind == "u" else -100, 100)) for it in kinds]
        arguments = [it.type(value) for it, value in zip(kinds, values, strict=True)]
        arguments.insert(place, np.uintp(out.ptr))
        expected = [int(np.array(it).astype(to)) for it, to in zip(arguments, types, strict=True)]
        try:
            kernel(*arguments, block=(1, 1, 1))
        except driver.LogicError:
            assert packed(types, arguments) != [*map(int, arguments)]
            continue
        del expected[place]
        stored = zip(out.get(), chosen, strict=True)
        assert [int(it.astype(dtype)) for it, (_, dtype) in stored] == expected
        accepted += 1
    assert accepted


@needs_parameters
def test_an_integer_may_have_another_size_where_it_arrives_whole():
    # Compiled code does not declare types.
    source = """
        __global__ void narrow(int n, long long *out) { out[0] = n; }
        __global__ void wide(size_t n, long long *out) { out[0] = n; }
        __global__ void last(long long *out, int n) { out[0] = n; }
        __global__ void real(double x, long long *out) { out[0] = (long long)x; }
    """
    module = driver.module_from_buffer(compiler.compile(source))
    out = gpuarray.zeros(1, np.int64)
    narrow, wide, last, real = map(module.get_function, ("narrow", "wide", "last", "real"))
    for value in (np.int64(-7), np.array([5]), np.uint64(2**31 - 1)):
        narrow(value, out, block=(1, 1, 1))
        assert out.get()[0] == int(np.squeeze(value))
    wide(np.int32(9), out, block=(1, 1, 1))
    assert out.get()[0] == 9
    narrow.prepare("qP").prepared_call((1, 1), (1, 1, 1), 11, out.gpudata)
    assert out.get()[0] == 11
    refused = [
        (narrow, (np.int64(2**32), out)),  # does not fit
        (wide, (np.int32(-1), out)),  # would arrive as a different number
        (last, (out, np.int64(1))),  # extends beyond the parameters
        (real, (np.float32(1), out)),  # not an integer parameter
    ]
    for function, arguments in refused:
        with pytest.raises(driver.LogicError, match="bytes; its parameter has"):
            function(*arguments, block=(1, 1, 1))


@needs_parameters
def test_a_scalar_of_a_wrong_size_is_named_with_its_dtype():
    text = "__global__ void set(float *a, float x, short n) { a[0] = x + n; }"
    function = driver.module_from_buffer(compiler.compile(text)).get_function("set")
    a = gpuarray.zeros(1, np.float32)
    for arguments, message in [
        (
            (np.float64(1), np.int16(1)),
            r"1 .* is float64 of 8 bytes; .* 4; pass np\.float32\(1\.0\)",
        ),
        ((np.float32(1), np.int64(2**40)), r"2 .* is int64 of 8 bytes; its parameter has 2"),
    ]:
        with pytest.raises(driver.LogicError, match=message):
            function(a, *arguments, block=(1, 1, 1))
    assert a.get() == 0


@pytest.mark.parametrize("short", [np.int32(4), np.int8(1), np.bool_(True), np.uint16(9)])
def test_a_short_number_is_no_address(module, short):
    count = module.get_function("count")
    if BACKEND == "host":  # Drivers do not report which parameters are pointers.
        with pytest.raises(driver.Error, match="argument 0 .*is a pointer and has 8; pass"):
            count(short, np.int32(64), block=(1, 1, 1))
    count(np.int32(0), np.int32(0), block=(1, 1, 1))
