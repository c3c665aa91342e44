"""Elements by index: gathers and scatters along one axis."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from .. import _arguments, _core
from .._arguments import gpu_array, gpu_arrays
from .._core import GPUArray


def take(
    a: GPUArray, indices: GPUArray, out: GPUArray | None = None, stream: Any = None
) -> GPUArray:
    """Returns the elements that indices name in an array read as along one axis.

    Parameters
    ----------
    a : GPUArray
        The elements.
    indices : GPUArray
        Whole numbers; a negative one counts from the end, and one outside the array reads as zero,
        unlike numpy's, which is an error.
    out : GPUArray, optional
        Receives the result.
    stream : Stream, optional
        Where the work is queued.

    Returns
    -------
    GPUArray
        The elements, of the shape of `indices`.

    Raises
    ------
    TypeError
        ``a`` is no GPUArray, the indices are none of integers, or the elements do not fit the dtype
        of ``out``.
    ValueError
        ``out`` has another shape than the indices.

    Examples
    --------
    >>> from pygpu import gpuarray
    >>> a = gpuarray.arange(4) * 10
    >>> gpuarray.take(a, gpuarray.arange(3, 0, -1)).get()
    array([30, 20, 10])
    """
    return _core.take(a, indices, out, stream)


def _outputs(arrays: Any, out: Any, shape: Any, names: str = "out and arrays") -> list[GPUArray]:
    if out is None:
        return [GPUArray(shape, a.dtype, a.allocator) for a in arrays]
    gpu_arrays("out", out)
    if len(out) != len(arrays):
        raise ValueError(
            f"{names} must have the same length; they have {len(out)} and {len(arrays)}"
        )
    for one, a in zip(out, arrays):
        if one.dtype != a.dtype:
            raise TypeError(
                f"arrays and out must have the same dtype, not {a.dtype} and {one.dtype}"
            )
    return out


def multi_take(
    arrays: Any, indices: GPUArray, out: Any = None, stream: Any = None
) -> list[GPUArray]:
    """Returns the elements that indices name in each of several arrays; see :func:`take`.

    Parameters
    ----------
    arrays : sequence of GPUArray
        The arrays.
    indices : GPUArray
        Whole numbers; a negative one counts from the end, and one outside an array reads as zero.
    out : sequence of GPUArray, optional
        Receive the results, one for each array.
    stream : Stream, optional
        Where the work is queued.

    Returns
    -------
    list of GPUArray
        The elements of each array, of the shape of `indices`.

    Raises
    ------
    TypeError
        The indices are no GPUArray of integers, or ``arrays`` has something else than arrays.
    ValueError
        ``out`` and ``arrays`` differ in length, or one of ``out`` has another shape than the
        indices.

    Examples
    --------
    >>> from pygpu import gpuarray
    >>> a = gpuarray.arange(4)
    >>> [x.get() for x in gpuarray.multi_take([a, a * 2], gpuarray.arange(2))]
    [array([0, 1]), array([0, 2])]
    """
    arrays = gpu_arrays("arrays", arrays)
    gpu_array("indices", indices)
    out = _outputs(arrays, out, indices.shape)
    for number, one in enumerate(out):
        if one.shape != indices.shape:
            raise ValueError(
                f"out[{number}] has shape {one.shape}; that of the indices is {indices.shape}"
            )
    for a, one in zip(arrays, out):
        take(a, indices, one, stream)
    return out


def _check_targets(out: list[GPUArray]) -> None:
    for number, one in enumerate(out):
        if not one.flags.c_contiguous:
            raise ValueError(f"out[{number}] is not contiguous")


def _check_index_vectors(dest_indices: GPUArray, src_indices: GPUArray) -> None:
    gpu_array("dest_indices", dest_indices)
    gpu_array("src_indices", src_indices)
    if src_indices.dtype != dest_indices.dtype:
        raise TypeError(
            "src_indices and dest_indices must have the same dtype, not "
            f"{src_indices.dtype} and {dest_indices.dtype}"
        )
    if len(src_indices.shape) != 1:
        raise ValueError(f"src_indices must be 1D; its shape is {src_indices.shape}")
    if src_indices.shape != dest_indices.shape:
        raise ValueError(
            "src_indices and dest_indices must have the same shape, not "
            f"{src_indices.shape} and {dest_indices.shape}"
        )


def multi_take_put(
    arrays: Any,
    dest_indices: GPUArray,
    src_indices: GPUArray,
    dest_shape: Any = None,
    out: Any = None,
    stream: Any = None,
    src_offsets: Any = None,
) -> list[GPUArray]:
    """Stores elements that indices name in each of several arrays at indices of its output.

    Parameters
    ----------
    arrays : sequence of GPUArray
        Where the elements come from.
    dest_indices, src_indices : GPUArray
        Indices of outputs and of arrays, of one shape and dtype.
    dest_shape : tuple of int, optional
        The shape of new outputs.
    out : sequence of GPUArray, optional
        The outputs, of the dtypes of the arrays.
    stream : Stream, optional
        Where the work is queued.
    src_offsets : sequence of int, optional
        What is added to the source indices, a number for each array.

    Returns
    -------
    list of GPUArray
        The outputs. In a new one the other elements are undefined.

    Raises
    ------
    TypeError
        The indices are no GPUArray of integers, or the dtypes of arrays and outputs differ.
    ValueError
        The indices have not one axis, sequences that belong together differ in length, or an output
        is not contiguous.

    Examples
    --------
    >>> from pygpu import gpuarray
    >>> out = gpuarray.zeros(3, int)
    >>> two = gpuarray.arange(2)
    >>> _ = gpuarray.multi_take_put([gpuarray.arange(5)], two, two + 3, out=[out])
    >>> out.get()
    array([3, 4, 0])
    """
    arrays = gpu_arrays("arrays", arrays)
    _check_index_vectors(dest_indices, src_indices)
    out = _outputs(arrays, out, dest_shape)
    if src_offsets is None:
        src_offsets = [0] * len(arrays)
    elif not isinstance(src_offsets, Sequence | np.ndarray):
        raise TypeError(
            f"src_offsets is of type {type(src_offsets).__name__}; a sequence of whole numbers is "
            "needed"
        )
    elif len(src_offsets) != len(arrays):
        raise ValueError(
            f"arrays and src_offsets must have the same length, not {len(arrays)} and "
            f"{len(src_offsets)}"
        )
    _check_targets(out)
    offsets = [
        _arguments.whole(f"src_offsets[{number}]", offset)
        for number, offset in enumerate(src_offsets)
    ]
    # The sum of a narrow index and an offset may be wider.
    wide = src_indices.astype(np.int64) if any(offsets) else src_indices
    for a, one, offset in zip(arrays, out, offsets):
        source = wide + offset if offset else src_indices
        _core.put(one, dest_indices, take(a, source, stream=stream), stream)
    return out


def multi_put(
    arrays: Any, dest_indices: GPUArray, dest_shape: Any = None, out: Any = None, stream: Any = None
) -> list[GPUArray]:
    """Stores the elements of each array at indices of its output.

    Parameters
    ----------
    arrays : sequence of GPUArray
        The elements; those behind as many as there are indices are not stored.
    dest_indices : GPUArray
        Where they go, along one axis.
    dest_shape : tuple of int, optional
        The shape of new outputs.
    out : sequence of GPUArray, optional
        The outputs, of the dtypes of the arrays.
    stream : Stream, optional
        Where the work is queued.

    Returns
    -------
    list of GPUArray
        The outputs. In a new one the other elements are undefined.

    Raises
    ------
    TypeError
        The indices are no GPUArray of integers, or the dtypes of arrays and outputs differ.
    ValueError
        ``dest_indices`` has not one axis, the sequences differ in length, an array has fewer
        elements than there are indices, or an output is not contiguous.

    Examples
    --------
    >>> from pygpu import gpuarray
    >>> out = gpuarray.zeros(3, int)
    >>> _ = gpuarray.multi_put([gpuarray.arange(1, 3)], gpuarray.arange(2, 0, -1), out=[out])
    >>> out.get()
    array([0, 2, 1])
    """
    arrays = gpu_arrays("arrays", arrays)
    gpu_array("dest_indices", dest_indices)
    if len(dest_indices.shape) != 1:
        raise ValueError(f"dest_indices must be 1D; its shape is {dest_indices.shape}")
    count = dest_indices.size
    for number, a in enumerate(arrays):
        if a.size < count:
            raise ValueError(f"arrays[{number}] has {a.size} elements; {count} indices need more")
    out = _outputs(arrays, out, dest_shape)
    _check_targets(out)
    for a, one in zip(arrays, out):
        _core.put(one, dest_indices, a if a.size == count else a.ravel()[:count], stream)
    return out
