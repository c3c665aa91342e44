"""Operators that are applied to vectors, with the names of ``pycuda.sparse.operator``."""

from __future__ import annotations

from typing import Any

import numpy as np

from pygpu._core import GPUArray


class OperatorBase:
    """A linear operator: an object that is called with a vector and returns another one.

    >>> class Twice(OperatorBase):
    ...     dtype = np.dtype(np.float64)
    ...     shape = (3, 3)
    ...
    ...     def __call__(self, operand):
    ...         return 2 * operand
    >>> Twice()(gpuarray.arange(3, dtype=np.float64))
    array([0., 2., 4.])
    """

    @property
    def dtype(self) -> np.dtype[Any]:
        """The dtype of its vectors."""
        raise NotImplementedError

    @property
    def shape(self) -> tuple[int, int]:
        """The number of its rows and columns."""
        raise NotImplementedError


class IdentityOperator(OperatorBase):
    """The operator that returns its argument, a vector of ``n`` elements of ``dtype``.

    >>> x = gpuarray.arange(3, dtype=np.float64)
    >>> IdentityOperator(np.float64, 3)(x) is x
    True
    """

    def __init__(self, dtype: Any, n: int) -> None:
        self.my_dtype = np.dtype(dtype)
        self.n = n

    @property
    def dtype(self) -> np.dtype[Any]:
        """The dtype of its vectors."""
        return self.my_dtype

    @property
    def shape(self) -> tuple[int, int]:
        """The number of its rows and columns."""
        return self.n, self.n

    def __call__(self, operand: GPUArray) -> GPUArray:
        """Returns the vector ``operand`` itself."""
        return operand


class DiagonalPreconditioner(OperatorBase):
    """The operator that multiplies each element of a vector by the same element of ``diagonal``.

    >>> x = gpuarray.arange(3, dtype=np.float64)
    >>> DiagonalPreconditioner(x)(x)
    array([0., 1., 4.])
    """

    def __init__(self, diagonal: GPUArray) -> None:
        self.diagonal = diagonal

    @property
    def dtype(self) -> np.dtype[Any]:
        """The dtype of its vectors."""
        return self.diagonal.dtype

    @property
    def shape(self) -> tuple[int, int]:
        """The number of its rows and columns."""
        n = self.diagonal.shape[0]
        return n, n

    def __call__(self, operand: GPUArray) -> GPUArray:
        """Returns the products of the elements of ``operand`` and ``diagonal``, as a new array."""
        return self.diagonal * operand
