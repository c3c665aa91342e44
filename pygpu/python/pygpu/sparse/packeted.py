"""Square sparse matrices, with the name of ``pycuda.sparse.packeted``."""

from __future__ import annotations

from typing import Any

from pygpu._core import GPUArray

from .coordinate import CoordinateSpMV


class PacketedSpMV(CoordinateSpMV):
    """A square sparse matrix on the device, called with a vector; ignores ``is_symmetric``.

    Other arguments are as in :class:`CoordinateSpMV`. PyCUDA cuts the matrix into packets, and
    permutes the rows to do so. In pygpu, :meth:`permute` and :meth:`unpermute` keep the order.

    >>> from scipy.sparse import diags
    >>> product = PacketedSpMV(diags([1.0, 2.0, 4.0]), True, np.float64)
    >>> x = gpuarray.to_gpu(np.array([3.0, 2.0, 1.0]))
    >>> product.unpermute(product(product.permute(x)))
    array([3., 4., 4.])
    """

    def __init__(self, mat: Any, is_symmetric: bool, dtype: Any) -> None:
        height, width = mat.shape
        if height != width:
            raise ValueError(f"only square matrices are supported, not {height} by {width}")
        super().__init__(mat, dtype)

    def permute(self, x: GPUArray) -> GPUArray:
        """Returns ``x`` with its elements in the order of the matrix's rows, as a new array."""
        return x.copy()

    def unpermute(self, x: GPUArray) -> GPUArray:
        """Returns ``x`` with its elements in the original order, as a new array."""
        return x.copy()
