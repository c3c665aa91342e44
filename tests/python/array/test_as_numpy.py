"""Functions of numpy that are made of other operations: each call on the device and on the host.

A row is an expression. It is evaluated with arrays of numpy's and with GPUArrays, in which numpy's
functions find those of the device; results, dtypes and errors are compared.
"""

from __future__ import annotations

import importlib
import inspect
import warnings
from pathlib import Path

import numpy as np
import pytest
from pairs import check
from tables import each_row

from pygpu import gpuarray
from pygpu._array import as_numpy
from pygpu.gpuarray import GPUArray

NAMES = " ".join(as_numpy.HOMES.values()).split()
ROWS = """
np.outer(v, w)
np.outer(a, v)
np.outer(f, f)
np.outer(v, w, out=m56)
np.array([1, 2], like=v)
np.asarray([1, 2], "f4", like=v)
np.vdot(z, z)
np.dot(v, v)
np.dot(a, b)
np.dot(a, v)
np.dot(c3, b[:4])
np.dot(v, c3)
np.dot(2, v)
a.dot(b)
v.dot(v)
np.take(v, [1, -1])
np.take(a, [[1, 2], [0, -1]], axis=0)
np.take(a, 3)
np.take(a, [7, -9], axis=1, mode="wrap")
np.take(a, [7, -9], axis=1, mode="clip")
np.take(a, [7], axis=1)
np.take(a, v)
a.take([0, 2], axis=1)
np.squeeze(c1)
np.squeeze(c1, axis=0)
np.squeeze(c1, (0, 2))
np.squeeze(c1, 1)
c1.squeeze(axis=-1)
c1.squeeze()
a.flatten()
a.T.flatten("K")
a.flatten("F")
np.sort(v).searchsorted(w)
np.block([[a, a], [a, a]])
np.block([v, w])
np.block([[v], [v]])
np.block([a[:, :1], c3[:2, 0, :1]])
np.block(a)
np.block([[v], w])
np.block([])
np.vdot(a, a)
np.vdot(f, f)
np.inner(v, v)
np.inner(a, a)
np.inner(3, v)
np.inner(c3, a[:, :4])
np.tensordot(a, b)
np.tensordot(a, b, 1)
np.tensordot(c3, c3, ([0, 2], [0, 2]))
np.tensordot(c3, c3, axes=((-1,), (2,)))
np.tensordot(v, v, 0)
np.tensordot(a, a, 1)
np.tensordot(i, i, 1)
np.tensordot(e, e, 1)
np.kron(v, w)
np.kron(a, v)
np.kron(i, 2)
np.kron(a, b)
np.cross(p, q)
np.cross(p, q[0])
np.cross(p.T, q, axisa=0)
np.cross(p.T, q.T, axis=0)
np.cross(p, a)
np.cross(i3, i3[::-1])
np.einsum("ij,jk->ik", a, b)
np.einsum("ij,kj", a, a)
np.einsum("ii", s)
np.einsum("ii->i", s)
np.einsum("ji", a)
np.einsum("i,i", v, v)
np.einsum("i,j->ij", v, w)
np.einsum("ijk->k", c3)
np.einsum("...j,j", c3, v[:4])
np.einsum("i...->...", c3)
np.einsum("ij,jk,kl->il", a, b, a)
np.einsum("ij,jk,kl->il", a, b, a, optimize=True)
np.einsum("bij,bjk->bik", c3, c3.transpose(0, 2, 1))
np.einsum(a, [0, 1], b, [1, 2], [0, 2])
np.einsum(a, [0, 1], b, [1, 2])
np.einsum(c3, [Ellipsis, 0])
np.einsum("ij,ij->i", a, a)
np.einsum("ij,ij->ij", a, a)
np.einsum("i,ij,j", w[:4], a, v)
np.einsum("i,i", i, v)
np.einsum("ij->j", i3, dtype="f8")
np.einsum("ij,jk", a, a)
np.einsum("ij->ik", a)
np.einsum("ij", v)
np.einsum("i,i->i", one, v)
np.einsum("i", v)
np.einsum("ij->ji", a, out=m54)
np.einsum("", f)
np.einsum(",i", 2, v)
np.linalg.norm(v)
np.linalg.norm(a)
np.linalg.norm(z)
np.linalg.norm(i)
np.linalg.norm(a, axis=1)
np.linalg.norm(a, axis=0, keepdims=True)
np.linalg.norm(a, "fro")
np.linalg.norm(a, 1)
np.linalg.norm(a, -1)
np.linalg.norm(a, np.inf)
np.linalg.norm(a, -np.inf)
np.linalg.norm(v, 1)
np.linalg.norm(v, 0)
np.linalg.norm(v, 3)
np.linalg.norm(v, np.inf)
np.linalg.norm(v, -np.inf)
np.linalg.norm(c3, axis=(0, 2))
np.linalg.norm(c3, 1, axis=(2, 0), keepdims=True)
np.linalg.norm(c3)
np.linalg.norm(a, keepdims=True)
np.linalg.norm(f)
np.linalg.norm(a, axis=5)
np.average(a)
np.average(i)
np.average(a, 0)
np.average(a, axis=1, weights=v)
np.average(a, axis=0, weights=w[:4])
np.average(a, weights=a * a)
np.average(i, weights=i)
np.average(a, 0, w[:4], True)
np.average(v, weights=v - v)
np.average(a, 1, keepdims=True)
np.average(a, weights=v)
np.average(c3, (0, 2), w[:12].reshape(3, 4))
np.cov(a)
np.cov(v)
np.cov(v, v * 2)
np.cov(a, rowvar=False)
np.cov(a, bias=True)
np.cov(a, ddof=0)
np.corrcoef(a)
np.corrcoef(v, v * v)
np.corrcoef(v)
np.cov(z)
np.median(a)
np.median(a, 0)
np.median(a, axis=1, keepdims=True)
np.median(c3, axis=(0, 2))
np.median(n)
np.median(i)
np.median(e)
np.median(n2, axis=0)
np.percentile(a, 30)
np.percentile(a, [10, 50], axis=0)
np.percentile(i, 30)
np.percentile(i, 30, method="lower")
np.quantile(a, [[0.1, 0.5], [0, 1]], axis=1)
np.quantile(a, 0.3, keepdims=True)
np.quantile(a, 0.3, method="higher")
np.quantile(a, 0.3, method="midpoint")
np.quantile(a, 0.3, method="nearest")
np.quantile(a, 0.3, method="hazen")
np.quantile(a, 0.3, method="weibull")
np.quantile(a, 0.3, method="median_unbiased")
np.quantile(a, 0.3, method="normal_unbiased")
np.quantile(a, 0.3, method="interpolated_inverted_cdf")
np.quantile(c3, 0.2, axis=(1, 2))
np.quantile(n2, 0.25, axis=1)
np.quantile(a, 1.5)
np.percentile(a, -1)
np.quantile(a, 0.5, axis=9)
np.quantile(i, 0.5, method="nearest")
np.quantile(z, 0.5)
np.nanmax(n)
np.nanmax(n2, axis=1)
np.nanmin(n2, 0)
np.nanmin(i)
np.nanmax(i3, axis=0, keepdims=True)
np.nanargmax(n)
np.nanargmin(n2[:2], axis=1)
np.nanargmin(n2, axis=1)
np.nancumsum(n2, axis=1)
np.nancumprod(n)
np.nancumsum(i)
np.nanmean(n)
np.nanmean(n2, axis=1)
np.nanmean(n2, axis=(0, 1), keepdims=True)
np.nanmean(i)
np.nanvar(n2, axis=0)
np.nanvar(n, ddof=1)
np.nanstd(n2, axis=1, keepdims=True)
np.nanstd(i)
np.nanvar(n2, ddof=9, axis=0)
np.nanmedian(n)
np.nanmedian(n2, axis=1)
np.nanquantile(n2, [0.2, 0.8], axis=0)
np.nanpercentile(n, 40)
np.nanquantile(a, 0.4)
np.nanmedian(n2, axis=0, keepdims=True)
np.nanmax(e)
np.unique(i)
np.unique(i, True, True, True)
np.unique(n)
np.unique(n, return_counts=True)
np.unique(n, equal_nan=False)
np.unique(i3, return_inverse=True)
np.unique(e)
np.unique(e, return_index=True, return_counts=True)
np.unique(i > 2)
np.unique(i, axis=0)
np.isin(i, [1, 3])
np.isin(i3, i, invert=True)
np.isin(v, [])
np.isin(n, n)
np.union1d(i, i + 1)
np.union1d(v, i)
np.intersect1d(i, [1, 3, 9])
np.intersect1d(i, i + 1, return_indices=True)
np.setdiff1d(i, [1, 3])
np.setxor1d(i, [1, 30])
np.setdiff1d(i, [3], assume_unique=True)
np.lexsort((i, i % 2))
np.searchsorted(np.sort(v), w)
np.searchsorted(np.sort(v), w, "right")
np.searchsorted(np.sort(c3.ravel()), v[:2])
np.searchsorted(np.sort(c3.ravel()), v[:2], "right")
np.searchsorted(np.sort(c3.ravel()), c3[0])
np.searchsorted(np.sort(i), i3, "right")
np.searchsorted(np.sort(n), n)
np.searchsorted(np.sort(n), n, side="right")
np.searchsorted(v, w, sorter=np.argsort(v))
np.searchsorted(e, w)
np.searchsorted(np.sort(i), 2.5)
np.searchsorted(np.sort(i), v, "middle")
np.digitize(v, np.sort(w))
np.digitize(i, [1, 3])
np.digitize(i, [3, 1], right=True)
np.digitize(i, [3, 1])
np.digitize(i, [3, 1, 2])
np.bincount(i)
np.bincount(i, minlength=9)
np.bincount(i, weights=i * 0.5)
np.bincount(i, minlength=-1)
np.bincount(v)
np.bincount(i - 9)
np.bincount(i[:0])
np.bincount(i, [1, 2])
np.histogram(v)
np.histogram(v, 4)
np.histogram(a, bins=5, range=(-1, 1))
np.histogram(i, [0, 1, 3])
np.histogram(v, density=True)
np.histogram(v, weights=v * v)
np.histogram(i, bins=3, weights=i)
np.histogram(i, [3, 1])
np.histogram(v, bins=0)
np.histogram(v, range=(1, 0))
np.histogram_bin_edges(v, 3)
np.histogram(e)
np.histogram(i > 2)
np.append(v, w)
np.append(a, a, axis=0)
np.append(a, v, axis=0)
np.append(i, 2.5)
np.diag(v)
np.diag(v, 2)
np.diag(v, -1)
np.diag(s)
np.diag(a, 1)
np.diag(c3)
np.diag(e)
np.diagflat(i3)
np.pad(v, 2)
np.pad(a, ((1, 2), (0, 3)))
np.pad(a, 1, constant_values=5)
np.pad(a, 1, constant_values=((1, 2), (3, 4)))
np.pad(v, (1, 3), "edge")
np.pad(a, 2, "reflect")
np.pad(a, 2, mode="symmetric")
np.pad(a, 7, mode="wrap")
np.pad(c3, (1, 0), mode="edge")
np.pad(v, -1)
np.pad(a, ((1, 2), (0, 3), (1, 1)))
np.pad(i, 1, constant_values=2.7)
np.meshgrid(v, w)
np.meshgrid(v, w, indexing="ij")
np.meshgrid(v, w, i, sparse=True)
np.meshgrid(v)
np.meshgrid(v, w, indexing="no")
np.rot90(a)
np.rot90(a, 2)
np.rot90(a, -1)
np.rot90(c3, 1, (1, 2))
np.rot90(a, 4)
np.rot90(v)
np.argwhere(a > 0)
np.argwhere(i)
np.argwhere(c3 > 9)
np.argwhere(f)
np.atleast_1d(f)
np.atleast_2d(v)
np.atleast_3d(v)
np.atleast_3d(a)
np.atleast_2d(v, a)
np.column_stack((v, v))
np.column_stack((a, w[:4]))
np.dstack((a, a))
np.dstack((v, v))
np.hsplit(a, [2])
np.hsplit(v[:4], 2)
np.vsplit(a, 2)
np.dsplit(c3, 2)
np.hsplit(a, 3)
np.vsplit(v, 2)
np.take_along_axis(a, np.argsort(a, 1), 1)
np.take_along_axis(a, np.argsort(a, 0), 0)
np.take_along_axis(v, np.argsort(v), None)
np.take_along_axis(a, i, 0)
np.delete(v, 1)
np.delete(a, [0, -1], axis=1)
np.delete(a, slice(1, 3), axis=0)
np.delete(v, 19)
np.delete(a, 2)
np.insert(v, 1, 9)
np.insert(v, [1, 3], [7, 8])
np.insert(a, 1, 5, axis=0)
np.insert(a, 1, v, axis=0)
np.insert(a, [1], v, axis=0)
np.insert(a, 1, w[:4], axis=1)
np.insert(a, [0, 2], w[:4].reshape(4, 1), axis=1)
np.insert(i, -1, 2.7)
np.insert(v, 29, 1)
np.insert(v, slice(1, 3), [5, 6])
np.insert(a, 2, 5)
np.insert(v, 1, [7, 8])
np.resize(a, (3, 3))
np.resize(v, 12)
np.resize(e, 3)
np.extract(v > 0, v)
np.extract(a > 0, a)
np.sort(np.partition(v, 2))
np.partition(v, 2)[2]
v[np.argpartition(v, 2)][2]
np.partition(v, 9)
np.interp(v, [-1, 0, 1], [5, 6, 7])
np.interp(v, np.sort(w), w)
np.interp(v, [-1.0, 1], [2.0, 4], left=-9)
np.interp(v, [-0.1, 0.1], [2, 4], -9, 9)
np.interp(a, np.sort(w), w)
np.interp(n, [-1, 0, 1], [5, 6, 7])
np.interp(v * 9, [1, 2, 3], [5, 6, 7], period=4)
np.interp(v, [0.0], [2.0])
np.interp(v, [0.0, 1], [2.0])
np.interp(np.sort(w), np.sort(w), w)
np.gradient(v)
np.gradient(a)
np.gradient(a, 2.0)
np.gradient(a, 1, 3)
np.gradient(a, axis=0)
np.gradient(v, edge_order=2)
np.gradient(i)
np.gradient(v, np.sort(v))
np.gradient(a, w[:4], 2)
np.gradient(v, np.sort(v), edge_order=2)
np.gradient(v, w)
np.lexsort((i3, a[:, :3]), axis=0)
np.fabs(i)
np.gradient(one)
np.gradient(a, axis=(1, 0))
np.ediff1d(v)
np.ediff1d(a, to_begin=0, to_end=[1, 2])
np.ediff1d(one)
np.trapezoid(v)
np.trapezoid(a, axis=0)
np.trapezoid(v, np.sort(v))
np.trapezoid(a, dx=0.5)
np.trapezoid(a, a * 2)
np.trapezoid(i)
np.convolve(v, w[:3])
np.convolve(w[:3], v, "same")
np.convolve(v, w[:3], mode="valid")
np.convolve(v, w[:4], "same")
np.convolve(i, [1, 0, 2])
np.convolve(v, e)
np.convolve(v, v, "some")
np.correlate(v, w[:3])
np.correlate(v, w[:3], "full")
np.correlate(w[:3], v, "full")
np.correlate(v, w[:2], "same")
np.correlate(z, z[:2], "full")
np.correlate(z[:2], z, "same")
np.correlate(w[:3], v)
np.polyval([1, 2, 3], v)
np.polyval(v, 2.0)
np.polyval([1, 2], i)
np.angle(z)
np.angle(v)
np.angle(z, deg=True)
np.sinc(v)
np.sinc(i)
np.fix(v)
np.fix(a * 5)
np.select([a > 0.5, a < -0.5], [a, 2 * a])
np.select([a > 0], [1], 5)
np.select([i > 2, i > 1], [i, 10], -1)
np.select([], [])
np.select([i], [i])
np.select([v > 0], [i])
np.tri(3, 4, like=v)
np.tri(3, k=1, like=v)
""".strip().splitlines()
IN_PLACE = """
np.copyto(v, w[:5])
np.copyto(a, v)
np.copyto(v, 3)
np.copyto(i, v)
np.copyto(i, v, casting="unsafe")
np.copyto(a, 7, where=a > 0)
np.copyto(a, v, where=v > 0)
np.putmask(v, v > 0, [7])
np.putmask(a, a > 0, v)
np.putmask(i, i > 1, [10, 20])
np.place(v, v > 0, [7, 8])
np.place(a, a > 0, [1.5])
np.place(v, v > 9, [1])
np.place(v, v > 0, [])
np.place(v, a > 0, [1])
""".strip().splitlines()


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
        kinds = (ValueError, IndexError, TypeError, ZeroDivisionError)
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


def test_every_function_is_called():
    texts = " ".join([*ROWS, *IN_PLACE, Path(__file__).read_text()])
    lacking = [name for name in NAMES if f".{name}(" not in texts and f"np.{name}" not in texts]
    assert lacking == ["in1d"]


def test_the_table_has_the_functions_of_each_module():
    for module, names in as_numpy.HOMES.items():
        assert names.split() == importlib.import_module(module, "pygpu").__all__


def test_arguments_have_numpys_names():
    for name in NAMES:
        theirs = getattr(np, name, None) or getattr(np.linalg, name, None)
        if theirs is None:
            continue
        try:
            expected = [*inspect.signature(theirs).parameters]
        except ValueError:
            continue
        # numpy says **kwargs of some that it names in its page.
        mine = [it for it in inspect.signature(getattr(gpuarray, name)).parameters if it != "dtype"]
        expected = [it for it in expected if it != "dtype"]
        assert set(mine) <= set(expected), name
        shared = [it for it in expected if it in mine]
        assert mine == shared, name
