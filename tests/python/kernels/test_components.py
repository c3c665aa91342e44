"""Arguments that do not correspond one-to-one to parameters: they are packed as in PyCUDA."""

from __future__ import annotations

import struct

import numpy as np
import pytest
from device import needs_parameters

from pygpu import driver, gpuarray
from pygpu.compiler import SourceModule

pytestmark = needs_parameters

SOURCE = """
struct Pair { int n; float s; };
struct Padded { char c; double d; short z; };
__global__ void vector(float *a, float3 v, int n)
{ a[0] = v.x; a[1] = v.y; a[2] = v.z; a[3] = n; }
__global__ void many(int n, float *a, char c, double d, Pair p, short z)
{ int i = threadIdx.x; if (i < n) a[i] = c + d * p.s + p.n + z; }
__global__ void padded(Padded p, float *a) { a[0] = p.c; a[1] = p.d; a[2] = p.z; }
__global__ void last(float *a, Padded p) { a[0] = p.c; a[1] = p.d; a[2] = p.z; }
__global__ void two(float *x, double y) { x[0] = y; }
"""
ONE = {"block": (1, 1, 1)}


@pytest.fixture(scope="module")
def module():
    return SourceModule(SOURCE)


@pytest.fixture
def out():
    return gpuarray.zeros(4, np.float32)


def raw(data):
    return np.frombuffer(bytearray(data), np.uint8)


def test_a_vector_by_its_components(module, out):
    vector = module.get_function("vector")
    floats = [np.float32(number) for number in (1, 2, 3)]
    vector(out, *floats, np.int32(7), **ONE)
    assert out.get().tolist() == [1, 2, 3, 7]
    vector(out, np.array([4, 5], np.float32), floats[0], np.int32(8), **ONE)
    assert out.get().tolist() == [4, 5, 1, 8]
    vector(out, np.complex64(6 + 7j), floats[1], np.int32(9), **ONE)
    assert out.get().tolist() == [6, 7, 2, 9]


def test_prepared_calls(module, out):
    vector = module.get_function("vector").prepare("Pfffi")
    vector.prepared_call((1, 1), (1, 1, 1), out, 1, 2, 3, 7)
    assert out.get().tolist() == [1, 2, 3, 7]
    stream = driver.Stream()
    vector.prepared_async_call((1, 1), (1, 1, 1), stream, out, 4, 5, 6, 8)
    stream.synchronize()
    assert out.get().tolist() == [4, 5, 6, 8]
    vector.prepared_timed_call((1, 1), (1, 1, 1), out.gpudata, 1, 1, 1, 1)()
    assert out.get().tolist() == [1, 1, 1, 1]


def test_components_with_padding(module, out):
    values = np.int8(-1), np.float64(2.5), np.int16(3)
    module.get_function("padded")(*values, out, **ONE)
    assert out.get().tolist() == [-1, 2.5, 3, 0]
    module.get_function("last")(out, *values, **ONE)
    assert out.get().tolist() == [-1, 2.5, 3, 0]


def test_arrays_of_several_parameters(module, out):
    many = module.get_function("many")
    whole = struct.pack("iPbdifh", 4, out.ptr, 1, 2.0, 3, 0.5, 7)
    fields = [("n", "i4"), ("a", "u8"), ("c", "i1"), ("d", "f8"), ("p", "i4,f4"), ("z", "i2")]
    dtype = np.dtype(fields, align=True)
    record = np.zeros(1, dtype)
    record[0] = (4, out.ptr, 1, 2, (3, 0.5), 7)
    block = {"block": (4, 1, 1)}
    for arguments in [
        (raw(whole),),
        (whole,),
        (record,),
        (record[0],),
        (np.int32(4), raw(whole[4:16]), np.int8(1), raw(whole[17:])),
        (raw(whole[:8]), out, raw(whole[16:])),
        (np.int32(4), out, np.int8(1), np.float64(2), np.int32(3), np.float32(0.5), np.int16(7)),
    ]:
        out.fill(0)
        many(*arguments, **block)
        assert out.get().tolist() == [12] * 4, arguments
    many.prepare("iPbdifh").prepared_call((1, 1), (4, 1, 1), 4, out, 1, 2.0, 3, 0.5, 8)
    assert out.get().tolist() == [13] * 4


def test_memory_is_ordered_and_kept(module):
    """The kernel on another stream waits for the first stream's work on the array."""
    vector = module.get_function("vector")
    first, second = driver.Stream(), driver.Stream()
    floats = [np.float32(number) for number in (1, 2, 3)]
    for number in range(20):
        out = gpuarray.zeros(4, np.float32)
        vector(out, *floats, np.int32(number), stream=first, **ONE)
        vector(out, *floats, np.int32(number + 1), stream=second, **ONE)
        assert out.get().tolist() == [1, 2, 3, number + 1]


def test_recorded_launches(module, out):
    """A graph uses the values of the recorded call."""
    vector, stream = module.get_function("vector"), driver.Stream()
    driver.Context.synchronize()
    with stream.capture() as graph:
        vector(out, *map(np.float32, (1, 2, 3)), np.int32(4), stream=stream, **ONE)
    assert graph.node_count == 1
    assert out.get().tolist() == [0] * 4
    graph.launch(stream)
    stream.synchronize()
    assert out.get().tolist() == [1, 2, 3, 4]


def test_cooperative_launches(module, out):
    vector = module.get_function("vector")
    vector(out, *map(np.float32, (1, 2, 3)), np.int32(4), cooperative=True, **ONE)
    assert out.get().tolist() == [1, 2, 3, 4]


def test_handlers(module):
    host = np.zeros(4, np.float32)
    floats = [np.float32(number) for number in (1, 2, 3)]
    module.get_function("vector")(driver.Out(host), *floats, np.int32(5), **ONE)
    assert host.tolist() == [1, 2, 3, 5]


def test_plain_mistakes_are_refused(module, out):
    vector, two = module.get_function("vector"), module.get_function("two")
    one, n = np.float32(1), np.int32(1)
    for function, arguments, message in [
        (vector, (out, one, one, n), r"kernel vector takes 3 arguments \(.*; 4 were given"),
        (vector, (out, one, one, one), r"kernel vector takes 3 arguments \(.*; 4 were given"),
        (vector, (out, one, one, one, n, n), r"kernel vector takes 3 arguments \(.*; 6 were given"),
        (vector, (out, one, one, one, np.float64(1)), r"takes 3 arguments \(.*; 5 were given"),
        (vector, (out, one, one, one, np.int64(1)), r"takes 3 arguments \(.*; 5 were given"),
        (vector, (out, np.float64(1), one, n), r"takes 3 arguments \(.*; 4 were given"),
        (
            vector,
            (out, one, n),
            r"argument 1 \(0-based\) of kernel vector is float32 of 4 bytes; its parameter has 12",
        ),
        (two, (out,), r"kernel two takes 2 arguments \(.*; 1 was given"),
        (two, (out, np.float64(1), n), r"kernel two takes 2 arguments \(.*; 3 were given"),
        (two, (np.zeros(4, np.float32),), r"kernel two takes 2 arguments \(.*; 1 was given"),
        (two, (raw(bytes(24)),), r"kernel two takes 2 arguments \(.*; 1 was given"),
        (two, (raw(bytes(15)),), r"kernel two takes 2 arguments \(.*; 1 was given"),
    ]:
        with pytest.raises(driver.LogicError, match=message):
            function(*arguments, **ONE)
    assert out.get().tolist() == [0] * 4
