"""Decompositions of matrices, by operations on the device for each column or pair of columns."""

from __future__ import annotations

from typing import Any, Literal, NamedTuple, overload

import numpy as np

from ... import _core
from ..._core import GPUArray, matmul
from ..creation import identity
from ..shapes import broadcast_to, concatenate, diagonal, flip, triu
from .linear import matrices, matrix_transpose
from .operands import inexact, on_device, ufuncs
from .selection import take_along_axis

__all__ = ["qr", "svd"]


class QRResult(NamedTuple):
    """The factors of :func:`qr`: orthonormal columns, and an upper triangle."""

    Q: GPUArray
    R: GPUArray


class SVDResult(NamedTuple):
    """The factors of :func:`svd`: columns, singular values, and conjugated rows."""

    U: GPUArray
    S: GPUArray
    Vh: GPUArray


def _floats(a: Any) -> GPUArray:
    a = inexact(matrices("a", a))
    if a.dtype.char not in "fdFD":
        raise TypeError(f"a has dtype {a.dtype}; numbers of 32 or 64 bits are needed")
    return a.copy()


def _largest(a: GPUArray, axis: Any) -> GPUArray:
    """Returns the largest absolute value along axes, or 1 where all are 0. Divided by it, numbers
    have squares that neither overflow nor vanish."""
    largest = ufuncs["absolute"](a).max(axis=axis, keepdims=True, initial=0)
    return _core.select(largest == 0, largest.dtype.type(1), largest, False)


def _adjoint(a: GPUArray) -> GPUArray:
    return matrix_transpose(a.conj())


def _reflector(x: GPUArray) -> tuple[GPUArray, GPUArray]:
    """Returns v and t, with which ``1 - t v v*`` maps onto ``x``, a column, a multiple of e_1.

    They are LAPACK's (``zlarfg``), so that the signs of the factors are numpy's.
    """
    x = x / _largest(x, -2)
    first = x[..., :1, :]
    size = ufuncs["sqrt"]((ufuncs["absolute"](x) ** 2).sum(axis=-2, keepdims=True))
    beta = -ufuncs["copysign"](size, first.real)
    rest = ufuncs["absolute"](x[..., 1:, :]).sum(axis=-2, keepdims=True)
    done = rest == 0 if x.dtype.kind == "f" else (rest == 0) & (first.imag == 0)
    one, zero = x.dtype.type(1), x.dtype.type(0)
    v = x / _core.select(done, one, (first - beta).astype(x.dtype), False)
    v[..., :1, :] = one
    return v, _core.select(done, zero, ((beta - first) / beta).astype(x.dtype), False)


@overload
def qr(a: Any, mode: Literal["reduced", "complete"] = ...) -> QRResult: ...
@overload
def qr(a: Any, mode: Literal["r"]) -> GPUArray: ...
def qr(a: Any, mode: str = "reduced") -> Any:
    """Returns orthonormal columns and an upper triangle, as :func:`numpy.linalg.qr`.

    The mode ``"raw"`` is not offered.
    """
    if mode not in ("reduced", "complete", "r"):
        raise ValueError(f"mode is {mode!r}; 'reduced', 'complete' or 'r' is needed")
    r = _floats(a)
    rows, columns = r.shape[-2:]
    count = min(rows, columns)
    reflectors = []
    for k in range(count):
        part = r[..., k:, k:]
        v, t = _reflector(part[..., :1])
        part -= t.conj() * v * matmul(_adjoint(v), part)
        reflectors.append((v, t))
    width = rows if mode == "complete" else count
    r = triu(r[..., :width, :])
    if mode == "r":
        return r
    q = broadcast_to(identity(rows, r.dtype)[:, :width], (*r.shape[:-2], rows, width)).copy()
    for k, (v, t) in reversed(list(enumerate(reflectors))):
        part = q[..., k:, k:]
        part -= t * v * matmul(_adjoint(v), part)
    return QRResult(q, r)


# Usual matrices need fewer than ten.
_MOST_SWEEPS = 60


def _rotated(y: GPUArray, rows: int, turn: GPUArray) -> tuple[GPUArray, GPUArray]:
    """Returns the columns after rotations that make their first ``rows`` rows orthogonal, two
    columns by two, and the largest cosine of an angle before.

    The first half of the columns is rotated with the other one, and ``turn`` makes the next pairs:
    the one-sided method of M. R. Hestenes, "Inversion of matrices by biorthogonalization and
    related results", 1958.
    """
    half = y.shape[-1] // 2
    worst: Any = 0.0
    for _ in range(2 * half - 1):
        left, right = y[..., :half], y[..., half:]
        a, b = left[..., :rows, :], right[..., :rows, :]
        dot = (a.conj() * b).sum(axis=-2, keepdims=True)
        of_a, of_b = ((ufuncs["absolute"](it) ** 2).sum(axis=-2, keepdims=True) for it in (a, b))
        size, scale = ufuncs["absolute"](dot), ufuncs["sqrt"](of_a * of_b)
        is_zero, zero = (size == 0) | (scale == 0), size.dtype.type(0)
        cosines = _core.select(is_zero, zero, size / scale, False)
        worst = ufuncs["maximum"](cosines.max(), worst)
        zeta = (of_b - of_a) / (2 * size)
        tangent = ufuncs["copysign"](1 / (abs(zeta) + ufuncs["hypot"](zeta, 1)), zeta)
        tangent = _core.select(is_zero, zero, tangent, False)
        cosine = 1 / ufuncs["hypot"](tangent, 1)
        sine = _core.select(is_zero, dot, dot / size, False) * (tangent * cosine)
        new = cosine * left - sine.conj() * right, sine * left + cosine * right
        y = _core.take(concatenate(new, -1), turn, axis=y.ndim - 1)
    return y, worst


def _orthogonal(a: GPUArray) -> tuple[GPUArray, GPUArray]:
    """Returns orthogonal columns, and the rotation that makes them of a square matrix."""
    n = a.shape[-1]
    v = broadcast_to(identity(n, a.dtype), a.shape)
    if n < 2 or not a.size:
        return a, v
    y = concatenate([a, v], -2)
    if n % 2:
        y = concatenate([y, _core.full((*y.shape[:-1], 1), y.dtype, 0)], -1)
    half = y.shape[-1] // 2
    # One of the columns stays, the others go round: each meets each.
    ring = [*range(half), *range(2 * half - 1, half - 1, -1)]
    turn = np.zeros(2 * half, np.int64)
    turn[[*ring[2:], ring[1]]] = ring[1:]
    places = on_device(turn)
    limit = 4 * np.finfo(a.dtype).eps
    for _ in range(_MOST_SWEEPS):
        y, worst = _rotated(y, n, places)
        if float(worst.get()) <= limit:
            return y[..., :n, :n], y[..., n:, :n]
    raise np.linalg.LinAlgError("SVD did not converge")


@overload
def svd(
    a: Any, full_matrices: bool = ..., compute_uv: Literal[True] = ..., hermitian: bool = ...
) -> SVDResult: ...
@overload
def svd(
    a: Any, full_matrices: bool = ..., *, compute_uv: Literal[False], hermitian: bool = ...
) -> GPUArray: ...
def svd(
    a: Any, full_matrices: bool = True, compute_uv: bool = True, hermitian: bool = False
) -> Any:
    """Returns singular values, and the vectors of each, as :func:`numpy.linalg.svd`.

    Vectors are unique up to a factor, which need not be numpy's. ``hermitian`` has no effect.
    """
    a = _floats(a)
    if a.shape[-2] < a.shape[-1]:
        if not compute_uv:
            return svd(_adjoint(a), full_matrices, compute_uv=False)
        u, sizes, vh = svd(_adjoint(a), full_matrices)
        return SVDResult(_adjoint(vh), sizes, _adjoint(u))
    n = a.shape[-1]
    largest = _largest(a, (-2, -1))
    q, r = qr(a / largest, "complete" if full_matrices else "reduced")
    columns, v = _orthogonal(r[..., :n, :])
    lengths = (ufuncs["absolute"](columns) ** 2).sum(axis=-2, keepdims=True)
    order = flip(lengths.argsort(axis=-1), -1)
    columns, v = (take_along_axis(it, broadcast_to(order, v.shape), -1) for it in (columns, v))
    u, r = qr(columns)
    values = diagonal(r, 0, -2, -1)
    sizes = ufuncs["absolute"](values)
    singular = sizes * largest[..., 0]
    if not compute_uv:
        return singular
    u *= _core.select(sizes == 0, a.dtype.type(1), values / sizes, False)[..., None, :]
    q[..., :n] = matmul(q[..., :n], u)
    return SVDResult(q, singular, _adjoint(v))
