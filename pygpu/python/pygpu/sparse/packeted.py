"""Square sparse matrices, with the name of ``pycuda.sparse.packeted``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .coordinate import CoordinateSpMV

if TYPE_CHECKING:
    from pygpu.gpuarray import GPUArray

__all__ = ["PacketedSpMV"]


class PacketedSpMV(CoordinateSpMV):
    """A square sparse matrix on the device, which is called with a vector.

    Parameters
    ----------
    mat : scipy.sparse matrix or array
        The matrix.
    is_symmetric : bool
        Whether it is symmetric. It has no effect here.
    dtype : dtype
        The dtype of its elements there: floating point or complex.

    Notes
    -----
    PyCUDA cuts the matrix into packets whose part of the vector fits shared memory, with the
    package pymetis, and permutes its rows for that. Caches have taken the packets' place: here the
    rows keep their order, so that :meth:`permute` and :meth:`unpermute` change nothing.

    Examples
    --------
    >>> from scipy.sparse import diags
    >>> product = PacketedSpMV(diags([1.0, 2.0, 4.0]), True, np.float64)
    >>> product(gpuarray.to_gpu(np.array([3.0, 2.0, 1.0])))
    array([3., 4., 4.])
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
        """Returns a vector with its elements in the order of the matrix's rows, as a new array.

        Parameters
        ----------
        x : GPUArray
            The vector.
        """
        return x.copy()

    def unpermute(self, x: GPUArray) -> GPUArray:
        """Returns a vector with its elements in their own order, as a new array.

        Parameters
        ----------
        x : GPUArray
            The vector.
        """
        return x.copy()
