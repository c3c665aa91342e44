"""Products of arrays; decompositions, by operations for each column or pair of columns."""

from __future__ import annotations

import operator
import string
from collections.abc import Sequence
from typing import Any, Literal, NamedTuple, overload

import numpy as np

from ... import _core
from ..._arguments import stored
from ..._core import GPUArray, matmul
from .. import Array, Arrays, Axis, Casting, DType, Order, Out
from ..creation import identity
from ..shapes import broadcast_to, concatenate, diagonal, flip, moveaxis, strided_view, triu
from .operands import axes_of, inexact, last_axis, on_device, ufuncs, with_axes
from .selection import take_along_axis

__all__ = ["cross", "einsum", "inner", "kron", "matrix_norm", "matrix_power", "matrix_transpose"]
__all__ += [
    "matvec",
    "multi_dot",
    "norm",
    "outer",
    "qr",
    "svd",
    "tensordot",
    "vdot",
    "vecdot",
    "vecmat",
]
__all__ += ["vector_norm"]

_multiply = ufuncs["multiply"]


def outer(a: Array, b: Array, out: Out = None) -> GPUArray:
    """Returns the outer product of two vectors, as :func:`numpy.outer`."""
    a, b = on_device(a), on_device(b)
    return _multiply(a.ravel().reshape((-1, 1)), b.ravel(), out=out)


def dot(a: Array, b: Array, out: Out = None) -> GPUArray:
    """Returns the product of vectors or matrices, as :func:`numpy.dot`.

    It is the arrays' method ``dot``; ``gpuarray.dot`` is PyCUDA's sum of products.
    """
    a, b = on_device(a), on_device(b)
    if not a.ndim or not b.ndim:
        result = _multiply(a, b)
        return (stored if result.dtype.kind in "biu" else _stored_exactly)(result, out)
    return _stored_exactly(tensordot(a, b, (-1, -2 if b.ndim > 1 else -1)), out)


def _stored_exactly(result: GPUArray, out: Out) -> GPUArray:
    if out is not None and out.dtype != result.dtype:
        raise ValueError(f"out has dtype {out.dtype}; {result.dtype} is needed")
    return stored(result, out)


def vdot(a: Array, b: Array, /) -> GPUArray:
    """Returns the sum of products, the first array conjugated, as :func:`numpy.vdot`."""
    a, b = on_device(a).ravel(), on_device(b).ravel()
    return matmul(a.conj(), b)


def inner(a: Array, b: Array, /) -> GPUArray:
    """Returns sums of products along the last axes, as :func:`numpy.inner`."""
    a, b = on_device(a), on_device(b)
    return tensordot(a, b, (-1, -1)) if a.ndim and b.ndim else _multiply(a, b)


def vecdot(x1: Array, x2: Array, /, *, axis: int = -1) -> GPUArray:
    """Returns sums of products of vectors, the first conjugated, as :func:`numpy.vecdot`."""
    a, b = (moveaxis(on_device(it), axis, -1) for it in (x1, x2))
    return matmul(a.conj()[..., None, :], b[..., None])[..., 0, 0]


def matvec(x1: Array, x2: Array, /) -> GPUArray:
    """Returns the products of matrices and vectors, as :func:`numpy.matvec`."""
    return matmul(on_device(x1), on_device(x2)[..., None])[..., 0]


def vecmat(x1: Array, x2: Array, /) -> GPUArray:
    """Returns the products of conjugated vectors and matrices, as :func:`numpy.vecmat`."""
    return matmul(on_device(x1).conj()[..., None, :], on_device(x2))[..., 0, :]


def matrix_transpose(x: Array, /) -> GPUArray:
    """Returns the view with the last two axes exchanged, as :func:`numpy.matrix_transpose`."""
    return matrices("x", x).swapaxes(-1, -2)


def matrices(name: str, value: Any) -> GPUArray:
    a = on_device(value)
    if a.ndim < 2:
        raise ValueError(f"{name} has shape {a.shape}; a matrix has two axes or more")
    return a


def matrix_power(a: Array, n: int) -> GPUArray:
    """Returns non-negative powers of matrices, as :func:`numpy.linalg.matrix_power`."""
    a, n = matrices("a", a), operator.index(n)
    if a.shape[-1] != a.shape[-2]:
        raise np.linalg.LinAlgError(f"a has shape {a.shape}; square matrices are needed")
    if n < 0:
        raise TypeError(f"n is {n}; for inverse matrices call numpy's function with a.get()")
    result: Any = None if n else broadcast_to(identity(a.shape[-1], a.dtype), a.shape)
    while n:
        if n % 2:
            result = a if result is None else result @ a
        n //= 2
        a = a @ a if n else a
    return result.copy()


def multi_dot(arrays: Arrays, *, out: Out = None) -> GPUArray:
    """Returns the product of matrices in the best order, as :func:`numpy.linalg.multi_dot`."""
    factors = [on_device(it) for it in arrays]
    if len(factors) < 2 or any(it.ndim not in (1, 2) for it in factors):
        raise ValueError(f"arrays has length {len(factors)}; two or more matrices are needed")
    terms = [string.ascii_letters[k : k + 2] for k in range(len(factors))]
    if factors[0].ndim == 1:
        terms[0] = terms[0][1:]
    if factors[-1].ndim == 1:
        terms[-1] = terms[-1][:1]
    ends = terms[0][:-1] + terms[-1][1:]
    result = einsum(",".join(terms) + "->" + ends, *factors, optimize="optimal")
    return _stored_exactly(result, out)


def tensordot(a: Array, b: Array, axes: int | Sequence[int | Sequence[int]] = 2) -> GPUArray:
    """Returns sums of products along pairs of axes, as :func:`numpy.tensordot`."""
    a, b = on_device(a), on_device(b)
    count: Any = axes
    if np.ndim(count) == 0 and not isinstance(count, GPUArray):
        if count > min(a.ndim, b.ndim):
            raise ValueError(f"axes is {axes}; the arrays have {a.ndim} and {b.ndim}")
        of_a, of_b = tuple(range(a.ndim - count, a.ndim)), tuple(range(count))
    else:
        of_a, of_b = (tuple(np.atleast_1d(it).tolist()) for it in count)
        of_a, of_b = axes_of(of_a, a.ndim), axes_of(of_b, b.ndim)
    summed = [a.shape[it] for it in of_a]
    if summed != [b.shape[it] for it in of_b]:
        raise ValueError(f"axes {of_a} of shape {a.shape} do not match axes {of_b} of {b.shape}")
    rest_a = [it for it in range(a.ndim) if it not in of_a]
    rest_b = [it for it in range(b.ndim) if it not in of_b]
    shape_a, shape_b = [a.shape[it] for it in rest_a], [b.shape[it] for it in rest_b]
    length = int(np.prod(summed, dtype=int))
    left = a.transpose((*rest_a, *of_a)).reshape((int(np.prod(shape_a, dtype=int)), length))
    right = b.transpose((*of_b, *rest_b)).reshape((length, int(np.prod(shape_b, dtype=int))))
    return matmul(left, right).reshape((*shape_a, *shape_b))


def kron(a: Array, b: Array) -> GPUArray:
    """Returns the Kronecker product, as :func:`numpy.kron`."""
    a, b = on_device(a), on_device(b)
    ndim = max(a.ndim, b.ndim)
    a = a.reshape((*[1] * (ndim - a.ndim), *a.shape))
    b = b.reshape((*[1] * (ndim - b.ndim), *b.shape))
    wide = a.reshape(tuple(it for extent in a.shape for it in (extent, 1)))
    narrow = b.reshape(tuple(it for extent in b.shape for it in (1, extent)))
    return _multiply(wide, narrow).reshape(tuple(m * n for m, n in zip(a.shape, b.shape)))


def cross(
    a: Array, b: Array, axisa: int = -1, axisb: int = -1, axisc: int = -1, axis: int | None = None
) -> GPUArray:
    """Returns the cross products of vectors, as :func:`numpy.cross`."""
    if axis is not None:
        axisa = axisb = axisc = axis
    a, b = on_device(a), on_device(b)
    axes_of(axisa, a.ndim), axes_of(axisb, b.ndim)
    a, b = moveaxis(a, axisa, -1), moveaxis(b, axisb, -1)
    if a.shape[-1] != 3 or b.shape[-1] != 3:
        raise ValueError(f"the vectors have extents {a.shape[-1]} and {b.shape[-1]}; 3 is needed")
    (a0, a1, a2), (b0, b1, b2) = ([it[..., k] for k in range(3)] for it in (a, b))
    parts = (a1 * b2 - a2 * b1, a2 * b0 - a0 * b2, a0 * b1 - a1 * b0)
    result = _core.full((*parts[0].shape, 3), parts[0].dtype, 0)
    for k, part in enumerate(parts):
        result[..., k] = part
    return moveaxis(result, -1, axisc)


def _labels(operands: tuple[Any, ...]) -> tuple[str, list[Any]]:
    """Returns the subscripts as a string, and the operands, from either form of the arguments."""
    if isinstance(operands[0], str):
        return operands[0].replace(" ", ""), list(operands[1:])
    letters = string.ascii_letters
    values, texts = list(operands), []
    result = values.pop() if len(values) % 2 else None
    for labels in (*values[1::2], *([] if result is None else [result])):
        texts.append("".join("..." if it is Ellipsis else letters[it] for it in labels))
    if result is None:
        return ",".join(texts), values[::2]
    return ",".join(texts[:-1]) + "->" + texts[-1], values[::2]


def _explicit(subscripts: str, arrays: list[GPUArray]) -> tuple[list[str], str]:
    """Returns the labels of operands and result, with letters for the axes of an ellipsis."""
    inputs, arrow, output = subscripts.partition("->")
    terms = inputs.split(",")
    if len(terms) != len(arrays):
        raise ValueError(f"the operand count is {len(arrays)}; {subscripts!r} needs {len(terms)}")
    unused = [it for it in reversed(string.ascii_letters) if it not in subscripts]
    lengths = [len(term.replace("...", "")) for term in terms]
    hidden = [a.ndim - n if "..." in t else 0 for a, n, t in zip(arrays, lengths, terms)]
    dots = "".join(unused[: max(hidden, default=0)])
    named = [t.replace("...", dots[len(dots) - max(n, 0) :]) for t, n in zip(terms, hidden)]
    for term, array in zip(named, arrays):
        if len(term) != array.ndim or not all(it in string.ascii_letters for it in term):
            raise ValueError(f"subscripts {subscripts!r} do not fit the shape {array.shape}")
    if not arrow:
        letters = [it for term in terms for it in term if it != "."]
        output = dots + "".join(sorted(it for it in {*letters} if letters.count(it) == 1))
    output = output.replace("...", dots)
    known = {it for term in named for it in term}
    if len({*output}) != len(output) or not {*output} <= known:
        raise ValueError(f"subscripts {subscripts!r}: the result has a repeated or unknown label")
    return named, output


def _diagonals(a: GPUArray, labels: str) -> tuple[GPUArray, str]:
    """Returns a view of the diagonal of axes with the same label, one axis for each label."""
    names = "".join(dict.fromkeys(labels))
    if names == labels:
        return a, labels
    at = {name: [k for k, it in enumerate(labels) if it == name] for name in names}
    extents = {name: {a.shape[k] for k in at[name]} for name in names}
    for name, found in extents.items():
        if len(found) > 1:
            raise ValueError(f"label {name!r} has extents {sorted(found)} in one operand")
    shape = tuple(a.shape[at[name][0]] for name in names)
    return strided_view(a, shape, tuple(sum(a.strides[k] for k in at[it]) for it in names)), names


def _summed(a: GPUArray, labels: str, kept: str) -> tuple[GPUArray, str]:
    """Returns the sums along the axes whose labels no other operand or result has."""
    axes = tuple(k for k, it in enumerate(labels) if it not in kept)
    if not axes:
        return a, labels
    total = a.any(axis=axes) if a.dtype == np.bool_ else a.sum(axis=axes, dtype=a.dtype)
    return total, "".join(it for it in labels if it in kept)


def _product(a: GPUArray, of_a: str, b: GPUArray, of_b: str, kept: str) -> tuple[GPUArray, str]:
    """Returns the sums of products of two operands, by one product of matrices."""
    a, b = _spread(a, of_a, of_b, b.shape), _spread(b, of_b, of_a, a.shape)
    batch = "".join(it for it in of_a if it in of_b and it in kept)
    inside = "".join(it for it in of_a if it in of_b and it not in kept)
    rows = "".join(it for it in of_a if it not in of_b)
    columns = "".join(it for it in of_b if it not in of_a)
    sizes = {it: n for labels, x in ((of_a, a), (of_b, b)) for it, n in zip(labels, x.shape)}
    shape = lambda labels: tuple(sizes[it] for it in labels)  # noqa: E731
    count = lambda labels: int(np.prod(shape(labels), dtype=int))  # noqa: E731
    left = a.transpose(tuple(map(of_a.index, batch + rows + inside)))
    right = b.transpose(tuple(map(of_b.index, batch + inside + columns)))
    left = left.reshape((*shape(batch), count(rows), count(inside)))
    right = right.reshape((*shape(batch), count(inside), count(columns)))
    result = matmul(left, right) if inside else _multiply(left, right)
    labels = batch + rows + columns
    return result.reshape(shape(labels)), labels


def _spread(a: GPUArray, labels: str, others: str, extents: tuple[int, ...]) -> GPUArray:
    """Returns the operand with axes of extent 1 repeated to another operand's extent."""
    known = dict(zip(reversed(others), reversed(extents)))
    shape = tuple(known.get(it, n) if n == 1 else n for it, n in zip(labels, a.shape))
    if shape == a.shape:
        return a
    return strided_view(a, shape, tuple(0 if n == 1 else s for n, s in zip(a.shape, a.strides)))


def einsum(
    *operands: Any,
    out: Out = None,
    optimize: bool | str | Sequence[Any] = False,
    dtype: DType = None,
    casting: Casting = "safe",
    order: Order = "K",
) -> GPUArray:
    """Returns sums of products by Einstein's convention, as :func:`numpy.einsum`.

    Operands are combined two at a time, by one product of matrices, in their own order or
    in the order of ``optimize``. Without a sum or product, the result is a view, as numpy's.
    """
    subscripts, values = _labels(operands)
    arrays = [on_device(it) for it in values]
    terms, output = _explicit(subscripts, arrays)
    if len(arrays) == 1 and out is None and {*terms[0]} == {*output}:
        a, labels = _diagonals(arrays[0], terms[0])
        return a.transpose(tuple(map(labels.index, output)))
    dtype = np.result_type(*(it.dtype for it in arrays)) if dtype is None else np.dtype(dtype)
    for a in arrays:
        if not np.can_cast(a.dtype, dtype, casting):
            raise TypeError(f"an operand has dtype {a.dtype}; {casting} casting forbids {dtype}")
    arrays = [it if it.dtype == dtype else it.astype(dtype) for it in arrays]
    parts = [_diagonals(*it) for it in zip(arrays, terms)]
    sizes: dict[str, int] = {}
    for a, labels in parts:
        for it, n in zip(labels, a.shape):
            if n != 1 and sizes.get(it, 1) not in (1, n):
                raise ValueError(f"label {it!r} has extents {sizes[it]} and {n}")
            sizes[it] = n if n != 1 else sizes.get(it, 1)
    steps = [(0, 1)] * (len(parts) - 1)
    if optimize is not False and len(parts) > 2:
        stands = [np.broadcast_to(np.zeros((), dtype), it.shape) for it in arrays]
        text = ",".join(terms) + "->" + output
        steps = np.einsum_path(text, *stands, optimize=optimize)[0][1:]
    for places in steps:
        taken = [parts[k] for k in places]
        parts = [it for k, it in enumerate(parts) if k not in places]
        part = taken[0]
        for position, other in enumerate(taken[1:], 2):
            rest = (*parts, *taken[position:])
            kept = output + "".join(labels for _, labels in rest)
            first = _summed(*part, kept + other[1])
            second = _summed(*other, kept + part[1])
            part = _product(*first, *second, kept)
        parts.append(part)
    a, labels = _summed(*parts[0], output)
    a = a.transpose(tuple(map(labels.index, output)))
    a = _spread(a, output, output, tuple(sizes[it] for it in output))
    return stored(a, out) if len(arrays) > 1 or out is not None else a.copy()


def norm(
    x: Array, ord: float | str | None = None, axis: Axis = None, keepdims: bool = False
) -> GPUArray:
    """Returns norms of vectors or matrices, as :func:`numpy.linalg.norm`.

    Matrix norms that need singular values (2, -2, ``"nuc"``) are not supported.
    """
    x = inexact(on_device(x))
    if axis is None and (ord is None or (ord in ("f", "fro") and x.ndim == 2)):
        flat = x.ravel()
        size = ufuncs["absolute"](flat) if x.dtype.kind == "c" else flat
        root = ufuncs["sqrt"](matmul(size, size))
        return root.reshape((1,) * x.ndim) if keepdims else root
    axes = axes_of(axis, x.ndim)
    size = ufuncs["absolute"](x)
    if len(axes) == 1:
        return _vector_norm(size, ord, axes, keepdims)
    if len(axes) != 2:
        raise ValueError(f"axis is {axis}: a norm is of vectors (one axis) or matrices (two)")
    row, column = axes
    if ord in (None, "f", "fro"):
        return ufuncs["sqrt"]((size * size).sum(axis=axes, keepdims=keepdims))
    if ord in (1, -1, np.inf, -np.inf):
        inside, outside = (row, column) if abs(ord) == 1 else (column, row)
        sums = size.sum(axis=inside, keepdims=True)
        of: dict[str, Any] = {"axis": outside, "keepdims": True}
        found = sums.max(**of, initial=0) if ord > 0 else sums.min(**of)
        return found if keepdims else found.squeeze(axes)
    raise TypeError(f"ord is {ord!r}; matrix norms on the device are 'fro', 1, -1, inf and -inf")


def vector_norm(
    x: Array, /, *, axis: Axis = None, keepdims: bool = False, ord: float | str | None = 2
) -> GPUArray:
    """Returns norms of vectors along axes, as :func:`numpy.linalg.vector_norm`."""
    values, axes = last_axis(inexact(on_device(x)), axis)
    size = ufuncs["absolute"](values)
    return with_axes(_vector_norm(size, ord, (size.ndim - 1,), False), axes, keepdims)


def matrix_norm(
    x: Array, /, *, keepdims: bool = False, ord: float | str | None = "fro"
) -> GPUArray:
    """Returns the matrix norms of :func:`norm`, as :func:`numpy.linalg.matrix_norm`."""
    return norm(matrices("x", x), ord, (-2, -1), keepdims)


def _vector_norm(size: GPUArray, ord: Any, axes: tuple[int, ...], keepdims: bool) -> GPUArray:
    of: dict[str, Any] = {"axis": axes[0], "keepdims": keepdims}
    if isinstance(ord, str):
        raise ValueError(f"ord is {ord!r}; a norm of vectors is a number")
    if ord in (np.inf, -np.inf):
        return size.max(**of, initial=0) if ord > 0 else size.min(**of)
    if ord in (0, 1):
        return ((size != 0).astype(size.dtype) if ord == 0 else size).sum(**of)
    if ord in (None, 2):
        return ufuncs["sqrt"]((size * size).sum(**of))
    return (size**ord).sum(**of) ** (1 / ord)


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
    """Returns v and t such that ``1 - t v v*`` maps a multiple of e_1 onto the column ``x``.

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
def qr(a: Array, mode: Literal["reduced", "complete"] = ...) -> QRResult: ...
@overload
def qr(a: Array, mode: Literal["r"]) -> GPUArray: ...
def qr(a: Array, mode: str = "reduced") -> Any:
    """Returns the QR decomposition of matrices, as :func:`numpy.linalg.qr`.

    The mode ``"raw"`` is not supported.
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
    """Rotates pairs of columns, so that their first ``rows`` rows become orthogonal. Returns the
    columns, and the largest cosine of an angle before the rotations.

    A column of the first half is rotated with one of the second, and ``turn`` makes the next pairs:
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
    # One of the columns stays, the others go round: every two columns form a pair once.
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
    a: Array, full_matrices: bool = ..., compute_uv: Literal[True] = ..., hermitian: bool = ...
) -> SVDResult: ...
@overload
def svd(
    a: Array, full_matrices: bool = ..., *, compute_uv: Literal[False], hermitian: bool = ...
) -> GPUArray: ...
def svd(
    a: Array, full_matrices: bool = True, compute_uv: bool = True, hermitian: bool = False
) -> Any:
    """Returns the singular value decomposition of matrices, as :func:`numpy.linalg.svd`.

    The singular vectors may differ from numpy's by a factor. ``hermitian`` is ignored.
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
