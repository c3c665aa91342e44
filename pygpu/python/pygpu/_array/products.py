"""Dot products, and reductions of the elements that an array of indices names. The latter have no
axes as their result, and an index outside the array reads as zero."""

from __future__ import annotations

from typing import Any

from .. import _core
from .._core import GPUArray, Reduction
from .advanced_indexing import take

__all__ = ["dot", "matmul", "subset_dot", "subset_max", "subset_min", "subset_sum"]


def dot(
    a: GPUArray, b: GPUArray, dtype: Any = None, stream: Any = None, allocator: Any = None
) -> GPUArray:
    """Returns the sum of the products of corresponding elements of ``a`` and ``b``, of one shape,
    as an array without axes; numpy's function multiplies matrices.

    Elements are combined in ``dtype``, that of the arrays by default, on ``stream``, in memory of
    ``allocator``.

    >>> gpuarray.dot(gpuarray.arange(3), gpuarray.arange(3)).get()
    array(5)
    """
    return _core.dot(a, b, dtype, stream, allocator)


def matmul(
    a: GPUArray,
    b: GPUArray,
    out: GPUArray | None = None,
    dtype: Any = None,
    stream: Any = None,
    allocator: Any = None,
) -> GPUArray:
    """Returns the product of matrices, as :func:`numpy.matmul`; ``out`` may be one of the factors.

    On a GPU cuBLAS or rocBLAS multiplies floating-point and complex numbers where the library is
    found (``PYGPU_CUBLAS``, ``PYGPU_ROCBLAS``), else a kernel does.

    >>> a = gpuarray.to_gpu(np.array([[1, 2], [3, 4]]))
    >>> (a @ a).get().tolist()
    [[7, 10], [15, 22]]
    """
    return _core.matmul(a, b, out, dtype, stream, allocator)


def subset_sum(
    subset: GPUArray, a: GPUArray, dtype: Any = None, stream: Any = None, allocator: Any = None
) -> GPUArray:
    """Returns the sum of the elements of ``a`` that ``subset`` names, indices along one axis; one
    outside the array reads as zero.

    Other arguments are as in :func:`dot`.

    >>> gpuarray.subset_sum(gpuarray.arange(2), gpuarray.arange(5) * 10).get()
    array(10)
    """
    return _core.reduce_subset(Reduction.Sum, subset, a, dtype, stream, allocator)


def subset_dot(
    subset: GPUArray,
    a: GPUArray,
    b: GPUArray,
    dtype: Any = None,
    stream: Any = None,
    allocator: Any = None,
) -> GPUArray:
    """Returns the dot product of the elements of two arrays that indices name.

    Arguments are as in :func:`subset_sum`.

    >>> a = gpuarray.arange(5)
    >>> gpuarray.subset_dot(gpuarray.arange(3), a, a).get()
    array(5)
    """
    x, y = take(a, subset, stream=stream), take(b, subset, stream=stream)
    return _core.dot(x, y, dtype, stream, allocator)


def subset_min(subset: GPUArray, a: GPUArray, stream: Any = None) -> GPUArray:
    """Returns the smallest of the elements that indices name.

    Arguments are as in :func:`subset_sum`.

    >>> gpuarray.subset_min(gpuarray.arange(1, 3), gpuarray.arange(5) * 2).get()
    array(2)
    """
    return _core.reduce_subset(Reduction.Minimum, subset, a, None, stream)


def subset_max(subset: GPUArray, a: GPUArray, stream: Any = None) -> GPUArray:
    """Returns the largest of the elements that indices name.

    Arguments are as in :func:`subset_sum`.

    >>> gpuarray.subset_max(gpuarray.arange(1, 3), gpuarray.arange(5) * 2).get()
    array(4)
    """
    return _core.reduce_subset(Reduction.Maximum, subset, a, None, stream)
