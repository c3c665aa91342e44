"""Matrix products: `@`, `gpuarray.matmul` and numpy's function, compared with numpy."""

from __future__ import annotations

import numpy as np
import pytest
from pairs import DTYPES, numbers

from pygpu import driver, gpuarray

SHAPES = [
    ((3, 4), (4, 5)),
    ((1, 1), (1, 1)),
    ((70, 33), (33, 65)),
    ((2, 150, 40), (40, 130)),
    ((3, 700), (700, 5)),
    ((4,), (4,)),
    ((4,), (4, 3)),
    ((3, 4), (4,)),
    ((2, 1, 3, 4), (5, 4, 2)),
    ((4,), (2, 3, 4, 2)),
    ((2, 3, 4), (4,)),
    ((3, 0), (0, 2)),
    ((0, 4), (4, 2)),
    ((2, 3, 4), (2, 4, 0)),
]


def agree(found, expected):
    assert isinstance(found, gpuarray.GPUArray)
    assert (found.shape, found.dtype) == (expected.shape, expected.dtype)
    tolerance = {"e": 4e-3, "f": 1e-5, "F": 1e-5}.get(expected.dtype.char, 1e-12)
    scale = np.abs(expected.astype("c16")).max(initial=1.0) if expected.dtype.kind in "fc" else 0
    np.testing.assert_allclose(found.get(), expected, rtol=tolerance, atol=tolerance * scale)


@pytest.mark.parametrize(("left", "right"), SHAPES)
def test_shapes(left, right):
    for dtype in (np.float32, np.int64):
        a, b = numbers(left, dtype, 1), numbers(right, dtype, 2)
        agree(gpuarray.to_gpu(a) @ gpuarray.to_gpu(b), np.asarray(a @ b))


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_dtypes(dtype):
    a, b = numbers((5, 17), dtype, 1), numbers((17, 6), dtype, 2)
    with np.errstate(all="ignore"):
        expected = a @ b
    agree(gpuarray.to_gpu(a) @ gpuarray.to_gpu(b), expected)


@pytest.mark.parametrize("other", [np.int8, np.float16, np.float64, np.complex64])
def test_mixed_dtypes(other):
    a, b = numbers((3, 4), np.float32, 1), numbers((4, 2), other, 2)
    agree(gpuarray.to_gpu(a) @ gpuarray.to_gpu(b), a @ b)


def test_strides():
    a, b = numbers((6, 8, 10), np.float64, 1), numbers((9, 8, 6), np.float64, 2)
    x, y = gpuarray.to_gpu(a), gpuarray.to_gpu(b)
    agree(x[0].T @ x[1], a[0].T @ a[1])
    agree(
        x[:, :, ::-2] @ x[:, :5, ::2].transpose(0, 2, 1),
        a[:, :, ::-2] @ a[:, :5, ::2].transpose(0, 2, 1),
    )
    agree(y[:, 1:7].transpose(0, 2, 1) @ y[0, 1:7], b[:, 1:7].transpose(0, 2, 1) @ b[0, 1:7])


def test_numpys_function_and_streams():
    a, b = numbers((3, 4), np.float32, 1), numbers((4, 2), np.float32, 2)
    x, y = gpuarray.to_gpu(a), gpuarray.to_gpu(b)
    agree(gpuarray.matmul(x, y, stream=driver.Stream()), a @ b)
    agree(gpuarray.matmul(x, y, dtype=np.float64), np.matmul(a, b, dtype=np.float64))


def test_output():
    a, b = numbers((4, 4), np.float64, 1), numbers((4, 4), np.float64, 2)
    x, y = gpuarray.to_gpu(a), gpuarray.to_gpu(b)
    out = gpuarray.zeros((8, 4), np.float64)[::2]
    assert gpuarray.matmul(x, y, out=out) is out
    agree(out, a @ b)
    assert gpuarray.matmul(x, y, out=x) is x
    agree(x, a @ b)
    out = gpuarray.zeros((4, 4), np.float64)
    assert np.matmul(y, y, out=out) is out
    agree(out, b @ b)
    for wrong, error in (
        (gpuarray.zeros((4, 3), "f8"), ValueError),
        (gpuarray.zeros((4, 4), "i8"), TypeError),
    ):
        with pytest.raises(error):
            gpuarray.matmul(y, y, out=wrong)


def test_in_place():
    """The array object stays the same, and its views show the product."""
    a, b = numbers((3, 3), np.float64, 1), numbers((3, 3), np.float64, 2)
    x = same = gpuarray.to_gpu(a)
    row = x[1]
    x @= gpuarray.to_gpu(b)
    assert x is same
    agree(x, a @ b)
    agree(row, (a @ b)[1])
    for wrong, error in ((gpuarray.zeros(3), ValueError), (b, TypeError), (2, TypeError)):
        with pytest.raises(error):
            x @= wrong
    agree(same, a @ b)


@pytest.mark.parametrize(
    ("left", "right"),
    [((), (3,)), ((3,), ()), ((3,), (4,)), ((2, 3), (2, 3)), ((2, 2, 3), (3, 3, 3)), ((1,), (3,)),
     ((2, 1), (3, 2))],
)  # fmt: skip
def test_shapes_without_a_product(left, right):
    x, y = gpuarray.zeros(left, np.float32), gpuarray.zeros(right, np.float32)
    with pytest.raises(ValueError, match="shape"):
        x @ y
    with pytest.raises(ValueError, match="matmul|broadcast"):
        np.zeros(left) @ np.zeros(right)


def test_wrong_operands():
    x = gpuarray.zeros((2, 2), np.float32)
    for wrong in (2, None, "x", [["x"]]):
        with pytest.raises(TypeError):
            x @ wrong
        with pytest.raises(TypeError):
            gpuarray.matmul(x, wrong)
