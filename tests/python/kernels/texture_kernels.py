"""Texture arrays with numpy's elements, and kernels that read them."""

import functools

import numpy as np
from texture_reference import CLAMP

from pygpu import driver, gpuarray
from pygpu.compiler import SourceModule


def values(rng, shape, format):
    kind = np.dtype(format)
    if kind.kind == "f":
        return rng.normal(size=shape).astype(kind)
    bounds = np.iinfo(kind)
    numbers = rng.integers(bounds.min, bounds.max, size=shape, dtype=kind, endpoint=True)
    # Include both limits, because the negative limit has a larger magnitude.
    numbers.flat[:2] = bounds.min, bounds.max
    return numbers


def make_array(texels, axes, format, flags=0):
    """Returns a texture array with a numpy array's elements: its axes, the first of which may be
    layers, then the channels."""
    descr = driver.ArrayDescriptor3D()
    extents = [*texels.shape[:axes][::-1], 0, 0]
    if flags & driver.array3d_flags.ARRAY3D_LAYERED and axes == 2:
        extents = [extents[0], 0, extents[1]]
    descr.width, descr.height, descr.depth = extents[:3]
    descr.format = (
        driver.array_format.HALF
        if format == "f2"
        else driver.dtype_to_array_format(np.dtype(format))
    )
    descr.num_channels, descr.flags = texels.shape[axes], flags
    array = driver.Array(descr)
    copy = driver.Memcpy3D()
    copy.set_src_host(np.ascontiguousarray(texels))
    copy.set_dst_array(array)
    copy.width_in_bytes = copy.src_pitch = texels.nbytes // int(np.prod(texels.shape[: axes - 1]))
    copy.height = copy.src_height = max(descr.height, 1)
    copy.depth = max(descr.depth, 1)
    copy()
    return array


def bound(array, **modes):
    """Returns a texture reference that is bound to the array and keeps the texture object."""
    reference = driver.TextureReference()
    reference.set_flags(modes.get("flags", driver.TRSF_READ_AS_INTEGER))
    for axis in range(3):
        reference.set_address_mode(axis, modes.get("mode", CLAMP))
    reference.set_array(array)
    reference.set_filter_mode(modes.get("filter", driver.filter_mode.POINT))
    return reference


OBJECTS = """
__global__ void read_%(type)s(
    %(type)s *out, cudaTextureObject_t texture, const float *at, int count
) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count) out[i] = %(read)s;
}
"""
TYPES = [
    f"{name}{channels}"
    for name in ("uchar", "ushort", "uint", "char", "short", "int", "float")
    for channels in (1, 2, 4)
]
READS = {
    1: "tex1D<%s>(texture, at[3 * i])",
    2: "tex2D<%s>(texture, at[3 * i], at[3 * i + 1])",
    3: "tex3D<%s>(texture, at[3 * i], at[3 * i + 1], at[3 * i + 2])",
}


@functools.cache
def readers(read, types):
    """Compiles a program with a kernel for each of the types."""
    texts = [OBJECTS % {"type": it, "read": read.replace("%s", it)} for it in types]
    return SourceModule("".join(texts))


def read_at(reference, axes, type, dtype, channels, points, read=None):
    """Returns the values that a kernel reads at points, whose first coordinate is x."""
    read = read or READS[axes]
    module = readers(read, tuple(TYPES) if "%s" in read and type in TYPES else (type,))
    out = gpuarray.zeros((len(points), channels), dtype)
    module.get_function(f"read_{type}")(
        out.gpudata,
        np.uint64(reference.object),
        gpuarray.to_gpu(np.ascontiguousarray(points, np.float32)).gpudata,
        np.int32(len(points)),
        block=(64, 1, 1),
        grid=(-(-len(points) // 64), 1),
    )
    return out.get()
