"""Sparse matrices times vectors, with the name of ``pycuda.sparse.coordinate``."""

from __future__ import annotations

from typing import Any

import numpy as np

from pygpu import _core, driver, gpuarray
from pygpu.compiler import SourceModule
from pygpu.gpuarray import GPUArray
from pygpu.tools import context_dependent_memoize, dtype_to_ctype

_THREADS = 128


@context_dependent_memoize
def _kernel(dtype: np.dtype[Any]) -> driver.Function:
    begin = f"typedef {dtype_to_ctype(dtype)} value_type;\n#define PYGPU_THREADS {_THREADS}\n"
    begin = f"#include <pycuda-complex.hpp>\n{begin}" if dtype.kind == "c" else begin
    module = SourceModule(begin + str(_core.header_text("pygpu-sparse.hpp")), no_extern_c=True)
    return module.get_function("add_product").prepare("PPPPPi")


class CoordinateSpMV:
    """A sparse matrix on the device; call it with a vector.

    ``mat`` is a matrix or array of scipy.sparse, and ``dtype`` the floating point or complex dtype
    of the elements on the device. ``shape`` has the numbers of rows and columns, ``nnz`` is the
    number of stored elements. One kernel adds each row in a fixed order, so unlike in PyCUDA, a
    repeated call has the same result.

    >>> from scipy.sparse import coo_matrix
    >>> matrix = coo_matrix(([2.0, 3.0], ([0, 2], [1, 0])), shape=(3, 2))
    >>> CoordinateSpMV(matrix, np.float64)(gpuarray.to_gpu(np.array([10.0, 1.0])))
    array([ 2.,  0., 30.])
    """

    def __init__(self, mat: Any, dtype: Any) -> None:
        from scipy.sparse import csr_matrix  # type: ignore[import-untyped]

        self.dtype = np.dtype(dtype)
        self.index_dtype = np.dtype(np.int32)
        self.shape = mat.shape
        rows = csr_matrix(mat, dtype=self.dtype)
        self.nnz = rows.nnz
        if self.nnz > np.iinfo(self.index_dtype).max:
            raise ValueError(f"mat has {self.nnz} stored elements; at most 2**31 - 1 are allowed")
        self.row_starts_gpu = gpuarray.to_gpu(rows.indptr.astype(self.index_dtype))
        self.col_gpu = gpuarray.to_gpu(rows.indices.astype(self.index_dtype))
        self.data_gpu = gpuarray.to_gpu(rows.data)

    def __call__(self, x: GPUArray, y: GPUArray | None = None) -> GPUArray:
        """Adds the product of the matrix and ``x`` to ``y``, by default zeros, and returns that.

        Both are contiguous vectors of the matrix's dtype, and may have more axes, of extent 1.
        """
        if y is None:
            y = gpuarray.zeros(self.shape[0], self.dtype, allocator=x.allocator)
        for name, vector, length in (("x", x, self.shape[1]), ("y", y, self.shape[0])):
            longest = max(vector.shape, default=1)
            wrong = (vector.size, longest) != (length, length) or vector.dtype != self.dtype
            if wrong or not vector.flags.forc:
                given = f"shape {vector.shape}, dtype {vector.dtype} and strides {vector.strides}"
                needed = f"a contiguous vector of {length} {self.dtype} is needed"
                raise ValueError(f"{name} has {given}; {needed}")
        if self.nnz:
            arrays = self.row_starts_gpu, self.col_gpu, self.data_gpu, x, y
            _kernel(self.dtype).prepared_call(
                (-(-self.shape[0] * 32 // _THREADS), 1),
                (_THREADS, 1, 1),
                *(array.gpudata for array in arrays),
                np.int32(self.shape[0]),
            )
        return y
