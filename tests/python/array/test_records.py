"""Operations that only move elements, on dtypes without arithmetic."""

from __future__ import annotations

import json
import pickle
import re

import numpy as np
import pytest
from processes import run_python
from tables import each_row

import PybindGPU
from pygpu import cuda, cumath, gpuarray, ipc

DTYPES = {
    "record": np.dtype([("a", "i4"), ("b", "f8")]),
    "padded": np.dtype([("a", "i1"), ("b", "f4")], align=True),
    "nested": np.dtype([("a", [("x", "u1"), ("y", "i2")]), ("b", "f4", (2,))]),
    "float2": gpuarray.vec.float2,
    "float3": gpuarray.vec.float3,
    "datetime64": np.dtype("M8[s]"),
    "timedelta64": np.dtype("m8[ns]"),
    "bytes": np.dtype("S3"),
    "text": np.dtype("U2"),
    "void": np.dtype("V7"),
}
MASK = np.array([True, False, True, False, True, False])
INDICES = np.array([4, 0, 2], np.int32)


def _elements(name: str) -> np.ndarray:
    dtype = DTYPES[name]
    if name == "text":
        return np.array(["a", "bc", "d", "ef", "g", "hi"])
    random = np.random.default_rng(3)
    if name in ("datetime64", "timedelta64"):
        return random.integers(0, 2**40, 6).astype(dtype)
    return np.frombuffer(
        random.integers(1, 100, 6 * dtype.itemsize, np.uint8).tobytes(), dtype
    ).copy()


def _here(a, value):
    """Returns a host value in the same kind of memory as `a`."""
    return gpuarray.to_gpu(value) if isinstance(a, gpuarray.GPUArray) else value


def _stored(index, value):
    """Returns a function that assigns to a copy."""

    def store(a):
        copy = a.copy()
        copy[index(a) if callable(index) else index] = value(a)
        return copy

    return store


def _table(a):
    return a.reshape(2, 3)


def _gpu(name):
    """Returns a function that calls `gpuarray`'s function on the device and numpy's on the host."""
    return lambda a, *args, **kw: getattr(
        gpuarray if isinstance(a, gpuarray.GPUArray) else np, name
    )(*args, **kw)


def _of(name, *args, **kwargs):
    return lambda a: _gpu(name)(a, a, *args, **kwargs)


MOVES = {
    "copy": lambda a: a.copy(),
    "a[:] = b": _stored(slice(None), lambda a: a),
    "a[:] = b[::-1]": _stored(slice(None), lambda a: a[::-1]),
    "a[::-1] = b": _stored(slice(None, None, -1), lambda a: a),
    "a[1:] = a[:-1]": _stored(slice(1, None), lambda a: a[:-1]),
    "a[2] = b[0]": _stored(2, lambda a: a[0]),
    "a[:] = b[0]": _stored(slice(None), lambda a: a[0]),
    "a[[1, 0]] = b": _stored([1, 0], lambda a: a[2:4]),
    "a[mask] = b[0]": _stored(lambda a: _here(a, MASK), lambda a: a[0]),
    "a[mask] = b": _stored(lambda a: _here(a, MASK), lambda a: a[:3]),
    "a[mask]": lambda a: a[_here(a, MASK)],
    "a[indices]": lambda a: a[_here(a, INDICES)],
    "a[list]": lambda a: a[[2, 0]],
    "take": lambda a: _gpu("take")(a, a, _here(a, INDICES)),
    "compress": lambda a: _gpu("compress")(a, MASK, a),
    "where": lambda a: _gpu("where")(a, _here(a, MASK), a, a[::-1]),
    "where of one": lambda a: _gpu("where")(a, _here(a, MASK), a[0], a),
    "choose rows": lambda a: _gpu("where")(a, _here(a, MASK[:3]), _table(a), a[:3]),
    "tril": lambda a: _gpu("tril")(a, _table(a)),
    "T": lambda a: _table(a).T,
    "T.copy": lambda a: _table(a).T.copy(),
    "T.ravel": lambda a: _table(a).T.ravel(),
    "T.reshape": lambda a: _table(a).T.reshape(6),
    "roll": _of("roll", 2),
    "repeat": _of("repeat", 2),
    "tile": _of("tile", 2),
    "flip": _of("flip"),
    "flip copied": lambda a: a[::-1].copy(),
    "concatenate": lambda a: _gpu("concatenate")(a, [a, a[::-1]]),
    "stack": lambda a: _gpu("stack")(a, [a, a[::-1]], axis=1),
    "vstack": lambda a: _gpu("vstack")(a, [a, a]),
    "hstack": lambda a: _gpu("hstack")(a, [a, a]),
    "split": lambda a: _gpu("split")(a, a, 2)[1],
    "diagonal": lambda a: _gpu("diagonal")(a, _table(a)),
    "swapaxes": lambda a: _gpu("swapaxes")(a, _table(a), 0, 1).copy(),
    "moveaxis": lambda a: _gpu("moveaxis")(a, _table(a), 0, 1).copy(),
    "broadcast_to": lambda a: _gpu("broadcast_to")(a, a, (2, 6)).copy(),
    "squeeze": lambda a: a.reshape(1, 6).squeeze(),
    "zeros_like": _of("zeros_like"),
    "full_like": lambda a: _gpu("full_like")(a, a, a[1]),
    "astype": lambda a: a.astype(a.dtype),
    "pickle": lambda a: pickle.loads(pickle.dumps(a)),
}


@pytest.fixture(params=DTYPES)
def elements(request):
    return _elements(request.param)


def _same(result, expected):
    result = result.get() if isinstance(result, gpuarray.GPUArray) else result
    expected = np.asarray(expected)
    assert (result.dtype, result.shape) == (expected.dtype, expected.shape)
    # The padding is also moved, which numpy does not guarantee.
    assert repr(result.tolist()) == repr(expected.tolist())


@each_row("move", MOVES)
def test_elements_are_moved_as_numpy_moves_them(elements, move):
    _same(MOVES[move](gpuarray.to_gpu(elements)), MOVES[move](elements))


@each_row("name", ["repeat", "roll", "tile", "flip", "ravel", "transpose"])
def test_numpys_functions_move_them_on_the_device(elements, name):
    arguments = (2,) if name in ("repeat", "roll", "tile") else ()
    result = getattr(np, name)(gpuarray.to_gpu(elements), *arguments)
    assert isinstance(result, gpuarray.GPUArray)
    _same(result, getattr(np, name)(elements, *arguments))


def test_values_of_the_host_are_converted_by_numpy(elements):
    a = gpuarray.zeros(6, elements.dtype)
    for value in (elements, elements[::-1], elements[1], elements[1:2], elements[2].item()):
        expected = np.zeros(6, elements.dtype)
        if elements.dtype == "m8[ns]" and isinstance(value, int):
            value = np.timedelta64(value, "ns")
        a[:] = value
        expected[:] = value
        _same(a, expected)
    _same(gpuarray.full(3, elements[1], elements.dtype), np.full(3, elements[1], elements.dtype))
    _same(
        gpuarray.where(gpuarray.to_gpu(MASK), a, elements[0]), np.where(MASK, expected, elements[0])
    )
    a.fill(elements[3])
    _same(a, np.full(6, elements[3]))


def test_elements_of_another_dtype_of_the_same_size_are_refused_or_converted():
    seconds = np.arange(6).astype("M8[s]")
    a, b = gpuarray.to_gpu(seconds), gpuarray.to_gpu(seconds.astype("M8[ms]"))
    mask, indices = gpuarray.to_gpu(MASK), gpuarray.to_gpu(np.arange(6))
    a[:] = (seconds + np.timedelta64(1, "s")).astype("M8[ms]")
    _same(a, seconds + np.timedelta64(1, "s"))
    for move in (
        lambda: a.__setitem__(slice(None), b),
        lambda: a.fill(b[0]),
        lambda: a.__setitem__([1, 2], b[:2]),
        lambda: gpuarray.where(mask, a, b),
        lambda: gpuarray.concatenate([a, b]),
        lambda: gpuarray.take(a, indices, out=b),
        lambda: a.astype("M8[ms]"),
        lambda: a.set(b),
    ):
        with pytest.raises((TypeError, ValueError), match="datetime64"):
            move()
    _same(a, seconds + np.timedelta64(1, "s"))
    _same(b, seconds.astype("M8[ms]"))


# Prints the elements of the arrays whose descriptors are in a file, and reverses them.
OTHER = """
import json, sys
import pygpu.autoinit
from pygpu import ipc

for text in json.load(open(sys.argv[1])):
    with ipc.open(text) as array:
        print(array.dtype.str, array.get().tolist(), sep="=")
        array[:] = array[::-1].copy()
"""
PLAIN = ["?", "i1", "u8", "f2", "f4", "c16"]


def test_they_are_shared_between_processes(tmp_path):
    plain = [np.arange(6).astype(dtype) for dtype in PLAIN]
    hosts = [view for host in [*map(_elements, DTYPES), *plain] for view in (host, host[::2])]
    shared = [ipc.share(gpuarray.to_gpu(host)) for host in hosts]
    descriptors = [array.ipc_handle(copy=False) for array in shared]
    file = tmp_path / "descriptors"
    file.write_text(json.dumps([it.to_json() for it in descriptors]))
    lines = run_python(OTHER, str(file)).stdout.splitlines()
    for host, array, line in zip(hosts, shared, lines, strict=True):
        assert line == f"{host.dtype.str}={host.tolist()}"
        _same(array, host[::-1])
    for descriptor in descriptors:
        descriptor.close()


@each_row("name", DTYPES)
def test_what_calculates_refuses_them_by_the_name_of_their_dtype(name):
    elements = _elements(name)
    a, dtype = gpuarray.to_gpu(elements), re.escape(str(elements.dtype))
    refused = [
        lambda: a < a,
        lambda: a == a,
        lambda: a + a,
        lambda: -a,
        lambda: a.sum(),
        lambda: gpuarray.max(a),
        lambda: a.sort(),
        lambda: a.astype(np.float32),
        lambda: cumath.exp(a),
        lambda: a.argmax(),
    ]
    for call in refused:
        with pytest.raises(TypeError, match=dtype) as caught:
            call()
        assert "record of" not in str(caught.value)


@each_row("name", DTYPES)
def test_the_status_style_refuses_them_in_words(name):
    elements = _elements(name)
    with pytest.raises(
        PybindGPU.gpuarray.UnsupportedDataType, match=re.escape(elements.dtype.name)
    ):
        PybindGPU.gpuarray.to_gpu(elements)
    with pytest.raises(
        PybindGPU.gpuarray.UnsupportedDataType, match=re.escape(elements.dtype.name)
    ):
        PybindGPU.gpuarray.GPUArray(shape=(3,), dtype=elements.dtype)


def test_numbas_arrays_move_them(elements):
    a = cuda.to_device(elements)
    assert a.dtype == elements.dtype
    _same(a.copy_to_host(), elements)
    _same(a[1:5:2].copy_to_host(), elements[1:5:2])
    _same(a.reshape(2, 3).T.copy_to_host(), elements.reshape(2, 3).T)
    _same(a.reshape(2, 3).ravel().copy_to_host(), elements)
    b = cuda.device_array_like(a)
    b.copy_to_device(elements[::-1].copy())
    _same(b.copy_to_host(), elements[::-1])
    b.copy_to_device(a)
    b[1:4] = a[2:5]
    b[0] = elements[5]
    b[4:] = elements[:2]
    expected = elements.copy()
    expected[1:4] = elements[2:5]
    expected[0] = elements[5]
    expected[4:] = elements[:2]
    _same(b.copy_to_host(), expected)
