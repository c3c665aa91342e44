"""PyCUDA's factories of kernels that read and write the elements that indices name.

Each returns a prepared kernel for contiguous arrays, whose last argument ``n`` is the number of
indices. They raise ``Unsupported`` where the backend compiles no kernels.

Parameters
----------
dtype, idx_dtype : dtype. The dtypes of the elements, and of the indices.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .. import _core
from ..tools import context_dependent_memoize
from .c_types import ScalarArg, VectorArg, dtype_to_ctype
from .elementwise_source import get_elwise_kernel, textured_kernel

if TYPE_CHECKING:
    from .._driver.textures import TextureReference

__all__ = ["get_put_kernel", "get_take_kernel", "get_take_put_kernel"]


@context_dependent_memoize
def get_take_kernel(
    dtype: Any, idx_dtype: Any, vec_count: int = 1
) -> tuple[_core.Function, list[TextureReference]]:
    """Returns a kernel that reads the elements of each of ``vec_count`` sources that indices name,
    and the texture references to which the sources are bound.

    The kernel's arguments are the indices, as many targets, and the number of indices. A place
    outside of a source has the element 0. :func:`pygpu.gpuarray.take` needs no textures. Raises
    ``Unsupported`` if the device has none.

    >>> source, target = gpuarray.arange(5, dtype=np.float32), gpuarray.zeros(2, np.float32)
    >>> indices = gpuarray.to_gpu(np.array([3, 1], np.int32))
    >>> take, (texture,) = get_take_kernel(np.float32, np.int32)
    >>> _ = source.bind_to_texref_ext(texture)
    >>> take.prepared_call(indices._grid, indices._block, indices.gpudata, target.gpudata, 2)
    >>> target
    array([3., 1.], dtype=float32)
    """
    targets = [VectorArg(dtype, f"dest{k}") for k in range(vec_count)]
    body = f"{dtype_to_ctype(idx_dtype)} src_idx = idx[i];\n"
    body += "\n".join(f"dest{k}[i] = fp_tex1Dfetch(tex_src{k}, src_idx);" for k in range(vec_count))
    textures = {f"tex_src{k}": dtype for k in range(vec_count)}
    return textured_kernel([VectorArg(idx_dtype, "idx"), *targets], body, "take", textures)


@context_dependent_memoize
def get_take_put_kernel(
    dtype: Any, idx_dtype: Any, with_offsets: bool, vec_count: int = 1
) -> tuple[_core.Function, list[TextureReference]]:
    """Returns a kernel that reads elements as that of :func:`get_take_kernel` does and writes them
    to places that other indices name, and the texture references.

    The kernel's arguments are the indices of the targets, those of the sources, ``vec_count``
    targets, the offset of each source, which is added to its indices, if ``with_offsets`` is True,
    and the number of indices. :func:`pygpu.gpuarray.multi_take_put` needs no textures. Raises
    ``Unsupported`` if the device has none.

    >>> source, target = gpuarray.arange(5, dtype=np.float32), gpuarray.zeros(4, np.float32)
    >>> here, there = (gpuarray.to_gpu(np.array(x, np.int32)) for x in ([3, 1], [4, 2]))
    >>> take_put, (texture,) = get_take_put_kernel(np.float32, np.int32, False)
    >>> _ = source.bind_to_texref_ext(texture)
    >>> arguments = (here.gpudata, there.gpudata, target.gpudata, 2)
    >>> take_put.prepared_call(here._grid, here._block, *arguments)
    >>> target
    array([0., 2., 0., 4.], dtype=float32)
    """
    index = dtype_to_ctype(idx_dtype)
    numbers = range(vec_count)
    arguments: list[Any] = [
        VectorArg(idx_dtype, name) for name in ("gmem_dest_idx", "gmem_src_idx")
    ]
    arguments += [VectorArg(dtype, f"dest{k}") for k in numbers]
    places = dict.fromkeys(numbers, "src_idx")
    if with_offsets:
        arguments += [ScalarArg(idx_dtype, f"offset{k}") for k in numbers]
        places = {k: f"src_idx + offset{k}" for k in numbers}
    body = f"{index} src_idx = gmem_src_idx[i];\n{index} dest_idx = gmem_dest_idx[i];\n"
    body += "\n".join(
        f"dest{k}[dest_idx] = fp_tex1Dfetch(tex_src{k}, {place});" for k, place in places.items()
    )
    return textured_kernel(arguments, body, "take_put", {f"tex_src{k}": dtype for k in numbers})


@context_dependent_memoize
def get_put_kernel(dtype: Any, idx_dtype: Any, vec_count: int = 1) -> _core.Function:
    """Returns a kernel that writes the elements of each source to the places in its target that
    indices name, which are not checked.

    The kernel's arguments are the indices, ``vec_count`` targets, as many sources, and the number
    of indices.

    >>> target, source = gpuarray.zeros(4, np.float32), gpuarray.ones(2, np.float32)
    >>> where = gpuarray.to_gpu(np.array([3, 1], np.int32))
    >>> put = get_put_kernel(np.float32, np.int32)
    >>> arguments = (where.gpudata, target.gpudata, source.gpudata, 2)
    >>> put.prepared_call(where._grid, where._block, *arguments)
    >>> target
    array([0., 1., 0., 1.], dtype=float32)
    """
    targets = [VectorArg(dtype, f"dest{k}") for k in range(vec_count)]
    sources = [VectorArg(dtype, f"src{k}") for k in range(vec_count)]
    body = f"{dtype_to_ctype(idx_dtype)} dest_idx = gmem_dest_idx[i];\n"
    body += "\n".join(f"dest{k}[dest_idx] = src{k}[i];" for k in range(vec_count))
    return get_elwise_kernel(
        [VectorArg(idx_dtype, "gmem_dest_idx"), *targets, *sources], body, "put"
    )
