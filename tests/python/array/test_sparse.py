"""The conjugate gradient method and its operators."""

from __future__ import annotations

import numpy as np
import pytest
from pairs import check

from pygpu import driver, gpuarray, tools
from pygpu.sparse import cg, inner, operator

N = 40


class Matrix(operator.OperatorBase):
    """A symmetric positive definite matrix that is dense, multiplied row by row."""

    def __init__(self, dtype):
        rng = np.random.default_rng(5)
        square = rng.standard_normal((N, N))
        self.host = (square @ square.T + N * np.eye(N)).astype(dtype)
        self.rows = [gpuarray.to_gpu(row) for row in self.host]

    dtype = property(lambda self: self.host.dtype)
    shape = property(lambda self: self.host.shape)

    def __call__(self, x):
        return gpuarray.stack([gpuarray.dot(row, x) for row in self.rows])


@pytest.mark.parametrize(("dtype", "tol"), [(np.float32, 1e-5), (np.float64, 1e-10)])
@pytest.mark.parametrize("has_preconditioner", [False, True])
def test_a_system_is_solved(dtype, tol, has_preconditioner):
    matrix = Matrix(dtype)
    expected = np.linspace(-1, 1, N)
    rhs = gpuarray.to_gpu((matrix.host @ expected).astype(dtype))
    precon = None
    if has_preconditioner:
        precon = operator.DiagonalPreconditioner(gpuarray.to_gpu(1 / matrix.host.diagonal()))
    pool = tools.PageLockedMemoryPool()
    state = cg.CGStateContainer(matrix, precon, pool.allocate)
    state.reset(rhs)
    told = []
    found = state.run(tol=tol, debug_callback=lambda *what: told.append(what))
    np.testing.assert_allclose(found.get(), expected, atol=100 * tol)
    assert found.dtype == dtype
    assert told[-1][0] == "end"
    assert {what[0] for what in told} == {"it", "it+residual", "end"}
    assert told[0][0] == "it+residual"
    pool.stop_holding()


def test_a_system_that_is_not_solved():
    state = cg.CGStateContainer(Matrix(np.float64))
    state.reset(gpuarray.to_gpu(np.ones(N)))
    with pytest.raises(cg.ConvergenceError, match="failed to converge"):
        state.run(max_iterations=1, tol=1e-12)


def test_the_steps_of_the_method():
    state = cg.CGStateContainer(operator.IdentityOperator(np.float32, 3))
    x, y = np.float32([1, 2, 3]), np.float32([4, 5, 6])
    x_gpu, y_gpu = gpuarray.to_gpu(x), gpuarray.to_gpu(y)
    two = gpuarray.to_gpu(np.float32(2))
    check(state.lc2(two, x_gpu, -1, y_gpu), 2 * x - y)
    out = state.lc2(1, x_gpu, two, y_gpu, out=x_gpu)
    assert out is x_gpu
    check(x_gpu, x + 2 * y)
    check(state.guarded_div(y_gpu, gpuarray.to_gpu(np.float32([2, 0, 3]))), np.float32([2, 0, 2]))
    for other in (np.ones(3), np.ones(2, np.float32)):
        with pytest.raises(ValueError, match="must be the same"):
            state.lc2(1, y_gpu, 1, gpuarray.to_gpu(other))
    with pytest.raises(ValueError, match="must be the same"):
        state.guarded_div(y_gpu, two)


def test_operators():
    base = operator.OperatorBase()
    for name in ("dtype", "shape"):
        with pytest.raises(NotImplementedError):
            getattr(base, name)
    identity = operator.IdentityOperator(np.float64, 3)
    a = gpuarray.to_gpu(np.arange(3.0))
    assert identity(a) is a
    assert (identity.dtype, identity.shape) == (np.float64, (3, 3))
    diagonal = operator.DiagonalPreconditioner(a)
    assert (diagonal.dtype, diagonal.shape) == (np.float64, (3, 3))
    check(diagonal(a), np.arange(3.0) ** 2)


def test_an_inner_product_arrives_later():
    a = gpuarray.to_gpu(np.arange(5.0))
    product = inner.AsyncInnerProduct(a, a, driver.pagelocked_empty)
    check(product.gpu_result, np.float64(30))
    driver.Context.synchronize()
    assert product.get_host_result() is None
    before = len(inner.STREAM_POOL)
    product.copy_stream.synchronize()
    assert product.get_host_result() == 30
    assert inner.STREAM_POOL[before:] == [product.copy_stream]
    assert inner.get_stream() is product.copy_stream
