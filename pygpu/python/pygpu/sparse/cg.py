"""The method of conjugate gradients, with the names of ``pycuda.sparse.cg``."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from pygpu import driver, gpuarray
from pygpu.gpuarray import GPUArray

from .inner import AsyncInnerProduct
from .operator import IdentityOperator

if TYPE_CHECKING:
    from .packeted import PacketedSpMV

__all__ = ["AsyncInnerProduct", "CGStateContainer", "ConvergenceError", "solve_pkt_with_cg"]

# After so many iterations, the host reads the residual, which is copied meanwhile.
_CHECK_INTERVAL = 20


class ConvergenceError(RuntimeError):
    """The solution was not reached in the number of iterations that was allowed.

    >>> from pygpu.sparse.operator import DiagonalPreconditioner
    >>> state = CGStateContainer(DiagonalPreconditioner(gpuarray.full(4, 2.0)))
    >>> state.reset(gpuarray.arange(4.0))
    >>> state.run(max_iterations=0)
    Traceback (most recent call last):
        ...
    pygpu.sparse.cg.ConvergenceError: ...
    """


class CGStateContainer:
    """The state of an iteration that solves ``operator(x) = rhs`` without waiting for the device.

    The method is in J. R. Shewchuk, "An Introduction to the Conjugate Gradient Method Without the
    Agonizing Pain", 1994, appendix B3.

    >>> from pygpu.sparse.operator import DiagonalPreconditioner
    >>> cg = CGStateContainer(DiagonalPreconditioner(gpuarray.to_gpu(np.array([1.0, 2.0, 4.0]))))
    >>> cg.reset(gpuarray.to_gpu(np.array([3.0, 4.0, 4.0])))
    >>> cg.run().get().round(4).tolist()
    [3.0, 2.0, 1.0]
    >>> cg.one_iteration(compute_real_residual=True)
    >>> one = gpuarray.to_gpu(np.array(1.0))
    >>> cg.lc2(2, one, 3, one), cg.guarded_div(one, 0 * one)
    (array(5.), array(0.))

    Parameters
    ----------
    operator : callable. A symmetric positive definite operator with ``dtype`` and ``shape``;
        returns a new vector.
    precon : callable, optional. An operator near ``operator``'s inverse; by default the identity.
    pagelocked_allocator : callable, optional. Called with a shape and a dtype;
        :func:`pygpu.driver.pagelocked_empty` by default.
    """

    def __init__(self, operator: Any, precon: Any = None, pagelocked_allocator: Any = None) -> None:
        if precon is None:
            precon = IdentityOperator(operator.dtype, operator.shape[0])
        self.operator = operator
        self.precon = precon
        self.pagelocked_allocator = pagelocked_allocator or driver.pagelocked_empty

    def lc2(
        self, a: Any, x: GPUArray, b: Any, y: GPUArray, out: GPUArray | None = None
    ) -> GPUArray:
        """Returns ``a * x + b * y``, in ``out`` if it is given.

        ``x`` and ``y`` are vectors, ``a`` and ``b`` numbers, or arrays without axes on the device.
        """
        if x.dtype != y.dtype or x.shape != y.shape:
            given = f"x has shape {x.shape} and dtype {x.dtype}, y {y.shape} and {y.dtype}"
            raise ValueError(f"{given}; they must be the same")
        result = a * x + b * y
        if out is None:
            return result.astype(x.dtype) if result.dtype != x.dtype else result
        out[...] = result
        return out

    def guarded_div(self, a: GPUArray, b: GPUArray) -> GPUArray:
        """Returns ``a / b``, and 0 where ``b`` is 0; ``a`` and ``b`` have the same shape."""
        if a.shape != b.shape:
            raise ValueError(f"a has shape {a.shape}, b {b.shape}; they must be the same")
        is_zero = b == 0
        quotient = a / gpuarray.where(is_zero, 1, b)
        return gpuarray.where(is_zero, quotient.dtype.type(0), quotient)

    def reset(self, rhs: GPUArray, x: GPUArray | None = None) -> None:
        """Starts again for ``rhs`` from ``x``, by default zeros. The solution overwrites ``x``."""
        self.rhs = rhs
        if x is None:
            x = gpuarray.zeros(self.operator.shape[0], rhs.dtype, allocator=rhs.allocator)
        self.x = x
        self.residual = rhs - self.operator(x)
        # A copy: an operator may return its operand, and both are changed.
        self.d = self.precon(self.residual).copy()
        delta = AsyncInnerProduct(self.residual, self.d, self.pagelocked_allocator)
        self.real_delta_queue = [delta]
        self.delta = delta.gpu_result
        # The square of the first residual's norm, once it is known.
        self._first: float | None = None

    def one_iteration(self, compute_real_residual: bool = False) -> None:
        """Makes one step; computes the residual from the solution if ``compute_real_residual``."""
        q = self.operator(self.d)
        alpha = self.guarded_div(self.delta, gpuarray.dot(self.d, q))
        self.lc2(1, self.x, alpha, self.d, out=self.x)
        if compute_real_residual:
            self.residual = self.lc2(1, self.rhs, -1, self.operator(self.x))
        else:
            self.lc2(1, self.residual, -alpha, q, out=self.residual)
        s = self.precon(self.residual)
        delta = AsyncInnerProduct(self.residual, s, self.pagelocked_allocator)
        delta_old, self.delta = self.delta, delta.gpu_result
        self.lc2(1, s, self.guarded_div(self.delta, delta_old), self.d, out=self.d)
        if compute_real_residual:
            self.real_delta_queue.append(delta)

    def run(
        self,
        max_iterations: int | None = None,
        tol: float = 1e-7,
        debug_callback: Callable[..., Any] | None = None,
    ) -> GPUArray:
        """Iterates until the residual is small, and returns the solution.

        Raises ``ConvergenceError`` if the iterations did not suffice.

        Parameters
        ----------
        max_iterations : int, optional. By default 10 for each row, and at least 61.
        tol : float. The norm of a small residual, relative to the first one.
        debug_callback : callable, optional. Called with a word (``"it"``, ``"it+residual"``, at
            last ``"end"``), the number of the iteration, the solution, the residual, the direction
            and the ``delta``.
        """
        size = self.operator.shape[0]
        if max_iterations is None:
            max_iterations = max(3 * _CHECK_INTERVAL + 1, 10 * size)
        residual_interval = max(1, min(size, 50))
        for iteration in range(max_iterations):
            is_real = iteration % residual_interval == 0
            self.one_iteration(compute_real_residual=is_real)
            if debug_callback is not None:
                self._report(debug_callback, "it+residual" if is_real else "it", iteration)
            is_last = iteration + 1 == max_iterations
            if (is_last or iteration % _CHECK_INTERVAL == 0) and self._is_solved(tol, is_last):
                if debug_callback is not None:
                    self._report(debug_callback, "end", iteration)
                return self.x
        raise ConvergenceError("cg failed to converge")

    def _is_solved(self, tol: float, wait: bool) -> bool:
        """Returns True if a residual that has arrived on the host is small enough."""
        for delta in list(self.real_delta_queue):
            found = delta.get_host_result()
            if found is None and wait:
                driver.Context.synchronize()
                found = delta.get_host_result()
                if found is None:
                    delta.copy_stream.synchronize()
                    found = delta.get_host_result()
            if found is None:
                # Later ones are compared with the first one.
                if self._first is None:
                    return False
                continue
            self.real_delta_queue.remove(delta)
            value = abs(found.item())
            if self._first is None:
                self._first = value
            if value <= tol * tol * self._first:
                return True
        return False

    def _report(self, callback: Callable[..., Any], what: str, iteration: int) -> None:
        callback(what, iteration, self.x, self.residual, self.d, self.delta)


def solve_pkt_with_cg(
    pkt_spmv: PacketedSpMV,
    b: GPUArray,
    precon: Any = None,
    x: GPUArray | None = None,
    tol: float = 1e-7,
    max_iterations: int | None = None,
    debug: bool = False,
    pagelocked_allocator: Callable[..., Any] | None = None,
) -> tuple[GPUArray, int, int]:
    """Solves ``pkt_spmv(x) = b`` with conjugate gradients.

    Returns the solution, the number of iterations, and how many of them computed the residual from
    the solution. ``pkt_spmv`` is symmetric positive definite, ``b`` the right-hand side, ``x`` the
    start, by default zeros; ``debug`` is ignored, as in PyCUDA. Other arguments are as in
    :class:`CGStateContainer` and :meth:`CGStateContainer.run`. Raises ``ConvergenceError`` if the
    iterations did not suffice.

    >>> from scipy.sparse import diags
    >>> from pygpu.sparse.packeted import PacketedSpMV
    >>> matrix = PacketedSpMV(diags([1.0, 2.0, 4.0]), True, np.float64)
    >>> x, _, _ = solve_pkt_with_cg(matrix, gpuarray.to_gpu(np.array([3.0, 4.0, 4.0])))
    >>> x.get().round(4).tolist()
    [3.0, 2.0, 1.0]
    """
    if x is None:
        start = gpuarray.zeros(pkt_spmv.shape[0], pkt_spmv.dtype, allocator=b.allocator)
    else:
        start = pkt_spmv.permute(x)
    cg = CGStateContainer(pkt_spmv, precon, pagelocked_allocator=pagelocked_allocator)
    cg.reset(pkt_spmv.permute(b), start)
    counts = {"it": 0, "it+residual": 0, "end": 0}

    def count(what: str, *_: Any) -> None:
        counts[what] += 1

    result = cg.run(max_iterations, tol, debug_callback=count)
    residuals = counts["it+residual"]
    return pkt_spmv.unpermute(result), counts["it"] + residuals, residuals
