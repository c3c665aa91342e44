"""Products of sparse matrices and vectors."""

from __future__ import annotations

import numpy as np
import pytest

from pygpu import gpuarray
from pygpu.sparse.cg import solve_pkt_with_cg
from pygpu.sparse.coordinate import CoordinateSpMV
from pygpu.sparse.packeted import PacketedSpMV

sparse = pytest.importorskip("scipy.sparse", reason="scipy is not installed")


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("shape", [(1, 1), (70, 33), (33, 300)])
def test_a_product(dtype, shape):
    rng = np.random.default_rng(3)
    # Some rows are empty, and some have more elements than a thread group has threads.
    dense = rng.integers(-4, 5, shape) * (rng.random(shape) < rng.random((shape[0], 1)))
    dense[shape[0] // 2] = 0
    x = rng.integers(-9, 9, shape[1]).astype(dtype)
    for form in (sparse.coo_matrix, sparse.csr_matrix, sparse.csc_matrix):
        matrix = CoordinateSpMV(form(dense), dtype)
        assert (matrix.shape, matrix.nnz) == (shape, np.count_nonzero(dense))
        found = matrix(gpuarray.to_gpu(x))
        np.testing.assert_array_equal(found.get(), dense @ x)
        column = matrix(gpuarray.to_gpu(x[:, None]))
        np.testing.assert_array_equal(column.get(), dense @ x)
        assert matrix(gpuarray.to_gpu(x), found) is found
        np.testing.assert_array_equal(found.get(), 2 * (dense @ x))


def test_vectors_that_do_not_fit():
    matrix = CoordinateSpMV(sparse.eye(4, 6), np.float32)
    for vector in (np.ones(4, "f4"), np.ones(6), np.ones((3, 2), "f4")):
        with pytest.raises(ValueError, match="contiguous vector of 6 float32"):
            matrix(gpuarray.to_gpu(vector))
    with pytest.raises(ValueError, match="contiguous vector of 6 float32"):
        matrix(gpuarray.zeros(12, np.float32)[::2])
    with pytest.raises(ValueError, match="only square matrices"):
        PacketedSpMV(sparse.eye(4, 6), False, np.float32)


def test_a_system_is_solved():
    # The second-difference matrix of points with fixed ends, which is positive definite.
    n = 50
    matrix = sparse.diags([-1.0, 2.0, -1.0], [-1, 0, 1], shape=(n, n)).tocsr()
    expected = np.sin(np.arange(n))
    packeted = PacketedSpMV(matrix, True, np.float64)
    x, iterations, residuals = solve_pkt_with_cg(packeted, gpuarray.to_gpu(matrix @ expected))
    np.testing.assert_allclose(x.get(), expected, atol=1e-5)
    assert 0 < residuals < iterations
