"""numpy functions that are composed of other operations: each call on the device and on the host.

Each expression of `numpy_calls.py` is evaluated with numpy arrays and with GPUArrays, for which
numpy's functions dispatch to the device. Results, dtypes and errors are compared.
"""

from __future__ import annotations

import importlib
import inspect
import warnings
from pathlib import Path

import numpy as np
import pytest
from numpy_calls import IN_PLACE, ROWS
from pairs import check
from tables import each_row

from pygpu import gpuarray
from pygpu._array import as_numpy
from pygpu.gpuarray import GPUArray

NAMES = " ".join(as_numpy.HOMES.values()).split()


def values():
    random = np.random.default_rng(3)
    a, w = random.standard_normal((4, 5)), random.standard_normal(12)
    n = random.standard_normal(9)
    n[[2, 5]] = np.nan
    n2 = random.standard_normal((4, 6))
    n2[random.random((4, 6)) < 0.3] = np.nan
    n2[3] = np.nan
    return {
        "a": a,
        "b": random.standard_normal((5, 4)),
        "c3": random.standard_normal((3, 2, 4)),
        "s": random.standard_normal((3, 3)),
        "v": a[1].copy(),
        "w": w,
        "n": n,
        "n2": n2,
        "i": np.array([1, 3, 2, 3, 0]),
        "i3": random.integers(0, 5, (4, 3)),
        "z": w[:4] + 1j * w[4:8],
        "p": random.standard_normal((4, 3)),
        "q": random.standard_normal((4, 3)),
        "e": np.zeros(0),
        "wide": np.array([1e20, 1.0, 1.0, np.inf]),
        "small": np.zeros(3, "u1"),
        "h": np.array([[200, 250, 300], [30000, 40000, 60000]], "f2"),
        "single": np.array([[1e8, 1, -3, 0.3], [7, 2.5, -1e-3, np.pi]], "f4"),
        "c1": random.standard_normal((1, 3, 1)),
        "one": np.array([2.5]),
        "f": np.array(1.5),
        "m56": np.zeros((5, 12)),
        "m54": np.zeros((5, 4)),
    }


def evaluated(text, names):
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        try:
            return eval(text, {"np": np, **names})
        except NotImplementedError:
            raise
        except Exception as error:
            return error


def on_device(names):
    return {name: gpuarray.to_gpu(value) for name, value in names.items()}


def agree(got, expected, text):
    if isinstance(expected, Exception):
        kinds = (ValueError, IndexError, TypeError, ZeroDivisionError, OverflowError)
        assert isinstance(got, kinds), f"{text}: {got!r}, where numpy raises {expected!r}"
        return
    assert not isinstance(got, Exception), f"{text}: {got!r}"
    if isinstance(expected, tuple | list):
        assert len(got) == len(expected), text
        for mine, theirs in zip(got, expected):
            agree(mine, theirs, text)
        return
    assert isinstance(got, GPUArray), f"{text}: {type(got)}"
    expected = np.asarray(expected)
    assert (got.shape, got.dtype) == (expected.shape, expected.dtype), text
    close = {"rtol": 1e-12, "atol": 1e-13} if expected.dtype.kind in "fc" else {"rtol": 0}
    np.testing.assert_allclose(got.get(), expected, err_msg=text, **close)


@each_row("text", ROWS)
def test_a_call_agrees_with_numpy(text):
    names = values()
    agree(evaluated(text, on_device(names)), evaluated(text, names), text)


MATRICES = {
    "tall": np.random.default_rng(1).standard_normal((7, 4)),
    "wide": np.random.default_rng(2).standard_normal((2, 3, 5)),
    "complex": np.vander(np.exp(1j * np.arange(5)), 3),
    "single": np.random.default_rng(3).standard_normal((5, 5)).astype("f4"),
    "of rank one": np.ones((5, 4)),
    "zero": np.zeros((4, 3)),
    "with equal values": np.eye(6),
    "ill-conditioned": 1 / (np.arange(6)[:, None] + np.arange(6) + 1.0),
    "one column": np.arange(4.0)[:, None],
}


@each_row("name", MATRICES)
def test_singular_vectors_are_orthonormal_and_make_the_matrix(name):
    a = MATRICES[name]
    tolerance = 100 * np.finfo(a.dtype).eps
    for full in (True, False):
        found = np.linalg.svd(gpuarray.to_gpu(a), full)
        theirs = np.linalg.svd(a, full)
        u, sizes, vh = (it.get() for it in found)
        for mine, expected in zip((u, sizes, vh), theirs):
            assert (mine.shape, mine.dtype) == (expected.shape, expected.dtype)
        np.testing.assert_allclose(sizes, theirs[1], atol=tolerance * theirs[1].max())
        for columns in (u, np.swapaxes(vh, -1, -2).conj()):
            product = np.swapaxes(columns, -1, -2).conj() @ columns
            spread = np.broadcast_to(np.eye(columns.shape[-1]), product.shape)
            np.testing.assert_allclose(product, spread, atol=tolerance)
        k = sizes.shape[-1]
        made = (u[..., :k] * sizes[..., None, :]) @ vh[..., :k, :]
        np.testing.assert_allclose(made, a, atol=tolerance * max(theirs[1].max(), 1))


@each_row("scale", [1e200, 1e-200])
@each_row("dtype", ["f8", "c16"])
def test_squares_of_factors_neither_overflow_nor_vanish(scale, dtype):
    a = np.random.default_rng(4).standard_normal((6, 4)).astype(dtype)
    mine, theirs = gpuarray.to_gpu(a * scale), np.linalg.qr(a)
    # Columns of other sizes: each is compared with its own.
    sizes = np.array([1, 1e-150, 1, 1e90])
    q, r = (it.get() for it in np.linalg.qr(gpuarray.to_gpu(a * sizes)))
    np.testing.assert_allclose(q, theirs[0], atol=1e-14)
    np.testing.assert_allclose(r / sizes, theirs[1], atol=1e-14)
    q, r = (it.get() for it in np.linalg.qr(mine))
    np.testing.assert_allclose(q, theirs[0], atol=1e-14)
    np.testing.assert_allclose(r / scale, theirs[1], atol=1e-14)
    found = np.linalg.svd(mine)[1].get()
    np.testing.assert_allclose(found / scale, np.linalg.svd(a)[1], rtol=1e-13)


@each_row("text", IN_PLACE)
def test_a_call_changes_what_numpy_changes(text):
    names = values()
    made = on_device(names)
    got, expected = evaluated(text, made), evaluated(text, names)
    if isinstance(expected, Exception):
        agree(got, expected, text)
    else:
        assert got is None, f"{text}: {got!r}"
    for name, value in names.items():
        np.testing.assert_array_equal(made[name].get(), value, err_msg=f"{text}: {name}")


@pytest.mark.parametrize("dtype", ["f4", "f2", "c8", "i4", "u1", "?"])
def test_a_dtype_becomes_what_numpy_makes_of_it(dtype):
    names = {name: value for name, value in values().items() if name not in ("n", "n2", "z")}
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        names = {name: (value * 3).astype(dtype) for name, value in names.items()}
    made = on_device(names)
    for text in (
        "np.outer(v, v)",
        "np.inner(v, v)",
        "np.kron(v, w)",
        "np.einsum('ij,jk->ik', a, b)",
        "np.einsum('ij->i', a)",
        "np.append(v, w)",
        "np.pad(a, 1)",
        "np.rot90(a)",
        "np.argwhere(a)",
        "np.diag(v)",
        "np.unique(v)",
        "np.average(a)",
        "np.nanmean(a)",
        "np.nanmax(a, axis=0)",
        "np.nanvar(a)",
        "np.linalg.norm(v)",
        "np.isin(v, w)",
        "np.ediff1d(v)" if dtype != "?" else "np.resize(v, 7)",
        "np.insert(v, 1, 1)",
        "np.delete(v, 1)",
        *(("np.median(a)", "np.quantile(a, 0.3)") if dtype not in ("c8", "?") else ()),
        *(("np.searchsorted(np.sort(v), w)", "np.histogram(v, 3)") if dtype != "c8" else ()),
        *(("np.gradient(v)", "np.sinc(v)", "np.angle(v)") if dtype not in ("f2", "?") else ()),
    ):
        got, expected = evaluated(text, made), evaluated(text, names)
        if isinstance(expected, Exception) or isinstance(got, Exception):
            assert isinstance(got, Exception) == isinstance(expected, Exception), (
                text,
                got,
                expected,
            )
            continue
        got, expected = (it[0] if isinstance(it, tuple) else it for it in (got, expected))
        expected = np.asarray(expected)
        assert (got.shape, got.dtype) == (expected.shape, expected.dtype), text
        rtol = {"f2": 2e-2, "f4": 1e-5, "c8": 1e-5}.get(dtype, 1e-12)
        np.testing.assert_allclose(got.get(), expected, rtol=rtol, atol=rtol, err_msg=text)


def test_memory_is_shared_as_numpy_says():
    a = np.zeros((6, 8))
    a_gpu = gpuarray.to_gpu(a)
    parts = [
        "a",
        "a[:3]",
        "a[3:]",
        "a[::2, ::2]",
        "a[1::2]",
        "a[:, ::2]",
        "a[:, 1::2]",
        "a[::-1]",
        "a[:0]",
    ]
    for first in parts:
        for second in parts:
            of_numpy = eval(first, {"a": a}), eval(second, {"a": a})
            mine = eval(first, {"a": a_gpu}), eval(second, {"a": a_gpu})
            for function in (np.may_share_memory, np.shares_memory):
                assert function(*mine) == function(*of_numpy), (function, first, second)
    assert not np.may_share_memory(a_gpu, gpuarray.zeros_like(a_gpu))


def test_files(tmp_path):
    a = np.arange(6).reshape(2, 3)
    np.save(tmp_path / "a.npy", gpuarray.to_gpu(a))
    check(gpuarray.load(tmp_path / "a.npy"), a)
    np.savez(tmp_path / "b.npz", x=a, y=a[0])
    found = gpuarray.load(tmp_path / "b.npz")
    assert sorted(found) == ["x", "y"]
    check(found["y"], a[0])
    assert gpuarray.to_gpu(a).tobytes() == a.tobytes()
    assert gpuarray.to_gpu(a).tobytes("F") == a.tobytes("F")


def test_an_object_becomes_an_array():
    a_gpu = gpuarray.arange(3)
    assert gpuarray.asarray(a_gpu) is a_gpu
    assert gpuarray.array(a_gpu) is not a_gpu
    check(gpuarray.asarray([[1, 2.5]]), np.array([[1, 2.5]]))
    check(gpuarray.asarray(3, "u1"), np.array(3, "u1"))
    check(gpuarray.array(a_gpu, "f4", ndmin=2), np.array([[0, 1, 2]], "f4"))


@pytest.mark.parametrize("order", ["C", "F", "A", "K"])
@pytest.mark.parametrize("copy", [True, False])
def test_astype_takes_numpys_keywords(order, copy):
    a = np.arange(6, dtype="f4").reshape(2, 3)
    a_gpu = gpuarray.to_gpu(a)
    for host, device in ((a, a_gpu), (a.T, a_gpu.T), (a[:, ::2], a_gpu[:, ::2])):
        for dtype in ("f4", "f8", "i2"):
            given = {"order": order, "copy": copy, "subok": True}
            expected, got = host.astype(dtype, **given), device.astype(dtype, **given)
            check(got, expected)
            assert (got is device) == (expected is host), dtype
            flags = expected.flags
            assert got.flags.c_contiguous == flags.c_contiguous, dtype
            assert got.flags.f_contiguous == flags.f_contiguous, dtype
        check(device.astype("f8", casting="safe"), host.astype("f8", casting="safe"))
        for casting in ("no", "equiv", "safe", "same_kind"):
            with pytest.raises(TypeError, match=f'become with casting "{casting}"'):
                device.astype("i2", casting=casting)


def test_every_function_is_called():
    files = [Path(__file__), Path(__file__).with_name("test_shape_functions.py")]
    texts = " ".join([*ROWS, *IN_PLACE, *(file.read_text() for file in files)])
    lacking = [name for name in NAMES if f".{name}(" not in texts and f"np.{name}" not in texts]
    assert lacking == ["in1d"]


def test_the_table_has_the_functions_of_each_module():
    for home, names in as_numpy.HOMES.items():
        module = importlib.import_module(home, "pygpu")
        own = [name for name, it in vars(module).items() if inspect.isfunction(it)]
        own = [name for name in own if vars(module)[name].__module__ == module.__name__]
        public = sorted(name for name in own if not name.startswith("_"))
        assert names.split() == getattr(module, "__all__", public)


def test_arguments_have_numpys_names():
    for name in NAMES:
        theirs = getattr(np, name, None) or getattr(np.linalg, name, None)
        if theirs is None:
            continue
        try:
            expected = [*inspect.signature(theirs).parameters]
        except ValueError:
            continue
        mine = [*inspect.signature(getattr(gpuarray, name)).parameters]
        if "kwargs" in expected:
            # numpy's documentation describes more arguments than its signature has.
            expected += [it for it in mine if it not in expected]
        assert set(mine) <= set(expected), name
        shared = [it for it in expected if it in mine]
        assert mine == shared, name
