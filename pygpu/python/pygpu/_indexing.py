"""Elements by index: gathers and scatters along one axis."""

from __future__ import annotations

from typing import Any

from . import _core
from ._arguments import gpu_array, gpu_arrays
from ._core import GPUArray


def take(
    a: GPUArray, indices: GPUArray, out: GPUArray | None = None, stream: Any = None
) -> GPUArray:
    """The elements of ``a``, read as along one axis, that ``indices`` names.

    A negative index counts from the end; one outside the array gives zero.
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
    """:func:`take` from each of several arrays."""
    arrays = gpu_arrays("arrays", arrays)
    gpu_array("indices", indices)
    out = _outputs(arrays, out, indices.shape)
    for a, one in zip(arrays, out):
        take(a, indices, one, stream)
    return out


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
    """Stores ``arrays[k][src_indices]`` at ``dest_indices`` of the k-th output.

    ``src_offsets`` shifts the source indices, by one number for each array.
    """
    arrays = gpu_arrays("arrays", arrays)
    _check_index_vectors(dest_indices, src_indices)
    out = _outputs(arrays, out, dest_shape)
    if src_offsets is None:
        src_offsets = [0] * len(arrays)
    elif len(src_offsets) != len(arrays):
        raise ValueError(
            f"arrays and src_offsets must have the same length, not {len(arrays)} and "
            f"{len(src_offsets)}"
        )
    for a, one, offset in zip(arrays, out, src_offsets):
        source = src_indices + offset if offset else src_indices
        _core.put(one, dest_indices, take(a, source, stream=stream), stream)
    return out


def multi_put(
    arrays: Any, dest_indices: GPUArray, dest_shape: Any = None, out: Any = None, stream: Any = None
) -> list[GPUArray]:
    """Stores the elements of each array at ``dest_indices`` of its output."""
    arrays = gpu_arrays("arrays", arrays)
    gpu_array("dest_indices", dest_indices)
    if len(dest_indices.shape) != 1:
        raise ValueError(f"dest_indices must be 1D; its shape is {dest_indices.shape}")
    out = _outputs(arrays, out, dest_shape)
    for a, one in zip(arrays, out):
        _core.put(one, dest_indices, a, stream)
    return out
