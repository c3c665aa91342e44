"""PyCUDA's factories of kernels that move elements; see
:mod:`pygpu._kernels.elementwise_factories`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .. import _core
from ..tools import context_dependent_memoize
from .c_types import ScalarArg, VectorArg, dtype_to_ctype
from .elementwise_factories import textured, typed, unary
from .elementwise_source import get_elwise_kernel

if TYPE_CHECKING:
    from .._driver.textures import TextureReference

__all__ = [
    "get_arange_kernel",
    "get_conj_kernel",
    "get_copy_kernel",
    "get_fill_kernel",
    "get_imag_kernel",
    "get_put_kernel",
    "get_real_kernel",
    "get_reverse_kernel",
    "get_take_kernel",
    "get_take_put_kernel",
]


@context_dependent_memoize
def get_take_kernel(
    dtype: Any, idx_dtype: Any, vec_count: int = 1
) -> tuple[_core.Function, list[TextureReference]]:
    """Returns a prepared kernel that reads the elements of each source whose places an array of
    indices names, and the texture references to which the sources are bound.

    The kernel's arguments are the indices, ``vec_count`` targets, and the number of indices. A
    place outside of a source has the element 0. :func:`pygpu.gpuarray.take` needs no textures.
    Raises ``Unsupported`` if the device has no textures.

    Parameters
    ----------
    dtype, idx_dtype : dtype. The dtypes of the elements and of the indices.
    vec_count : int. The number of sources, and of targets.

    Examples
    --------
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
    return textured([VectorArg(idx_dtype, "idx"), *targets], body, "take", textures)


@context_dependent_memoize
def get_take_put_kernel(
    dtype: Any, idx_dtype: Any, with_offsets: bool, vec_count: int = 1
) -> tuple[_core.Function, list[TextureReference]]:
    """Returns a prepared kernel that reads elements as that of :func:`get_take_kernel` does and
    writes them to places that another array of indices names, and the texture references.

    The kernel's arguments are the indices of the targets, those of the sources, ``vec_count``
    targets, the offset of each source if there are any, and the number of indices.
    :func:`pygpu.gpuarray.multi_take_put` needs no textures. Other arguments are as in
    :func:`get_take_kernel`. Raises ``Unsupported`` if the device has no textures.

    Parameters
    ----------
    with_offsets : bool. Whether each source has an offset that is added to its indices.

    Examples
    --------
    >>> source, target = gpuarray.arange(5, dtype=np.float32), gpuarray.zeros(4, np.float32)
    >>> here, there = (gpuarray.to_gpu(np.array(x, np.int32)) for x in ([3, 1], [4, 2]))
    >>> take_put, (texture,) = get_take_put_kernel(np.float32, np.int32, False)
    >>> _ = source.bind_to_texref_ext(texture)
    >>> take_put.prepared_call(
    ...     here._grid, here._block, here.gpudata, there.gpudata, target.gpudata, 2
    ... )
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
    return textured(arguments, body, "take_put", {f"tex_src{k}": dtype for k in numbers})


@context_dependent_memoize
def get_put_kernel(dtype: Any, idx_dtype: Any, vec_count: int = 1) -> _core.Function:
    """Returns a prepared kernel that writes the elements of each source to the places in its target
    that an array of indices names, which are not checked.

    The kernel's arguments are the indices, ``vec_count`` targets, as many sources, and the number
    of indices. Arguments are as in :func:`get_take_kernel`.

    >>> target, source = gpuarray.zeros(4, np.float32), gpuarray.ones(2, np.float32)
    >>> where = gpuarray.to_gpu(np.array([3, 1], np.int32))
    >>> put = get_put_kernel(np.float32, np.int32)
    >>> put.prepared_call(
    ...     where._grid, where._block, where.gpudata, target.gpudata, source.gpudata, 2
    ... )
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


@context_dependent_memoize
def get_copy_kernel(dtype_dest: Any, dtype_src: Any) -> _core.Function:
    """Returns a prepared kernel of ``dest = src``, as C converts, with the arguments ``dest, src,
    n``.

    Parameters
    ----------
    dtype_dest, dtype_src : dtype. The dtypes of the two arrays.

    Examples
    --------
    >>> x, z = gpuarray.arange(3, dtype=np.float32), gpuarray.empty(3, np.int32)
    >>> copy = get_copy_kernel(np.int32, np.float32)
    >>> copy.prepared_call(z._grid, z._block, z.gpudata, x.gpudata, 3)
    >>> z
    array([0, 1, 2], dtype=int32)
    """
    arguments = typed("{to} *dest, {of} *src", to=dtype_dest, of=dtype_src)
    return get_elwise_kernel(arguments, "dest[i] = src[i]", "copy")


@context_dependent_memoize
def get_fill_kernel(dtype: Any) -> _core.Function:
    """Returns a prepared kernel of ``z = a`` with a number ``a``: the arguments are ``a, z, n``.

    Parameters
    ----------
    dtype : dtype. The dtype of the array and of the number.

    Examples
    --------
    >>> z = gpuarray.empty(3, np.int32)
    >>> get_fill_kernel(np.int32).prepared_call(z._grid, z._block, 7, z.gpudata, 3)
    >>> z
    array([7, 7, 7], dtype=int32)
    """
    return get_elwise_kernel(typed("{z} a, {z} *z", z=dtype), "z[i] = a", "fill")


@context_dependent_memoize
def get_reverse_kernel(dtype: Any) -> _core.Function:
    """Returns a prepared kernel that copies an array ``y`` backwards: its arguments are ``y, z,
    n``.

    Parameters
    ----------
    dtype : dtype. The dtype of both arrays.

    Examples
    --------
    >>> y, z = gpuarray.arange(3, dtype=np.int32), gpuarray.empty(3, np.int32)
    >>> get_reverse_kernel(np.int32).prepared_call(z._grid, z._block, y.gpudata, z.gpudata, 3)
    >>> z
    array([2, 1, 0], dtype=int32)
    """
    return get_elwise_kernel(typed("{z} *y, {z} *z", z=dtype), "z[i] = y[n-1-i]", "reverse")


@context_dependent_memoize
def get_real_kernel(dtype: Any, real_dtype: Any) -> _core.Function:
    """Returns a prepared kernel of the real parts of an array ``y``, with the arguments ``y, z,
    n``.

    Parameters
    ----------
    dtype, real_dtype : dtype. The dtypes of the two arrays.

    Examples
    --------
    >>> y, z = gpuarray.full(2, 1 + 2j, np.complex64), gpuarray.empty(2, np.float32)
    >>> real = get_real_kernel(np.complex64, np.float32)
    >>> real.prepared_call(z._grid, z._block, y.gpudata, z.gpudata, 2)
    >>> z
    array([1., 1.], dtype=float32)
    """
    return unary("real(y[i])", dtype, real_dtype, "real")


@context_dependent_memoize
def get_imag_kernel(dtype: Any, real_dtype: Any) -> _core.Function:
    """Returns a prepared kernel of the imaginary parts of an array ``y``, with the arguments ``y,
    z, n``.

    Parameters
    ----------
    dtype, real_dtype : dtype. The dtypes of the two arrays.

    Examples
    --------
    >>> y, z = gpuarray.full(2, 1 + 2j, np.complex64), gpuarray.empty(2, np.float32)
    >>> imag = get_imag_kernel(np.complex64, np.float32)
    >>> imag.prepared_call(z._grid, z._block, y.gpudata, z.gpudata, 2)
    >>> z
    array([2., 2.], dtype=float32)
    """
    return unary("imag(y[i])", dtype, real_dtype, "imag")


@context_dependent_memoize
def get_conj_kernel(dtype: Any, conj_dtype: Any) -> _core.Function:
    """Returns a prepared kernel of the conjugates of an array ``y``, with the arguments ``y, z,
    n``.

    Parameters
    ----------
    dtype, conj_dtype : dtype. The dtypes of the two arrays.

    Examples
    --------
    >>> y = gpuarray.full(2, 1 + 2j, np.complex64)
    >>> conj = get_conj_kernel(np.complex64, np.complex64)
    >>> conj.prepared_call(y._grid, y._block, y.gpudata, y.gpudata, 2)
    >>> y
    array([1.-2.j, 1.-2.j], dtype=complex64)
    """
    return unary("pycuda::conj(y[i])", dtype, conj_dtype, "conj_kernel")


@context_dependent_memoize
def get_arange_kernel(dtype: Any) -> _core.Function:
    """Returns a prepared kernel of ``z[i] = start + i step``, with the arguments ``z, start, step,
    n``.

    Parameters
    ----------
    dtype : dtype. The dtype of the array and of the two numbers.

    Examples
    --------
    >>> z = gpuarray.empty(3, np.float32)
    >>> get_arange_kernel(np.float32).prepared_call(z._grid, z._block, z.gpudata, 1, 0.5, 3)
    >>> z
    array([1. , 1.5, 2. ], dtype=float32)
    """
    arguments = typed("{z} *z, {z} start, {z} step", z=dtype)
    return get_elwise_kernel(arguments, "z[i] = start + i*step", "arange")
