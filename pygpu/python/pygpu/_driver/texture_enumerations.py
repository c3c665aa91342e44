"""The enumerations of ``pycuda.driver`` for texels, textures and copies of them."""

from .enumeration_types import IntEnum, IntFlag


class memory_type(IntEnum):
    """Whose memory a copy reads or writes: ``src_memory_type`` and ``dst_memory_type`` of
    :class:`pygpu.driver.Memcpy2D` and its like, whose methods set them.

    Examples
    --------
    >>> from pygpu import driver
    >>> copy = driver.Memcpy2D()
    >>> copy.set_src_device(4096)
    >>> copy.src_memory_type
    pygpu.driver.memory_type.DEVICE
    """

    HOST = 1
    DEVICE = 2
    ARRAY = 3
    UNIFIED = 4


class array_format(IntEnum):
    """The type of a channel of a texel: ``ArrayDescriptor.format``, and an argument of
    ``TextureReference.set_format``.

    Examples
    --------
    >>> from pygpu import driver
    >>> driver.dtype_to_array_format("float32")
    pygpu.driver.array_format.FLOAT
    """

    UNSIGNED_INT8 = 0x01
    UNSIGNED_INT16 = 0x02
    UNSIGNED_INT32 = 0x03
    SIGNED_INT8 = 0x08
    SIGNED_INT16 = 0x09
    SIGNED_INT32 = 0x0A
    HALF = 0x10
    FLOAT = 0x20


class array3d_flags(IntFlag):
    """How an array for textures is made: ``ArrayDescriptor3D.flags``.

    Attributes
    ----------
    ARRAY3D_2DARRAY, ARRAY3D_LAYERED : array3d_flags
        Two names: 2-D layers, as many as the depth.
    SURFACE_LDST : array3d_flags
        Kernels can write it by surfaces.
    CUBEMAP : array3d_flags
        Six square faces.
    TEXTURE_GATHER : array3d_flags
        Kernels can read four texels at once.

    Examples
    --------
    >>> from pygpu import driver
    >>> descriptor = driver.ArrayDescriptor3D()
    >>> descriptor.flags = driver.array3d_flags.SURFACE_LDST
    >>> int(descriptor.flags)
    2
    """

    ARRAY3D_2DARRAY = 1
    ARRAY3D_LAYERED = 1
    SURFACE_LDST = 2
    CUBEMAP = 4
    TEXTURE_GATHER = 8


# A name that Python's syntax has no place for.
setattr(array3d_flags, "2DARRAY", array3d_flags.ARRAY3D_2DARRAY)


class address_mode(IntEnum):
    """What a texture reads outside its bounds: an argument of
    ``TextureReference.set_address_mode``.

    Attributes
    ----------
    WRAP, MIRROR : address_mode
        The array again, or mirrored; for normalized coordinates only.
    CLAMP : address_mode
        The element at the edge.
    BORDER : address_mode
        Zero.

    Examples
    --------
    >>> from pygpu import driver
    >>> driver.address_mode.CLAMP, int(driver.address_mode.CLAMP)
    (pygpu.driver.address_mode.CLAMP, 1)
    """

    WRAP = 0
    CLAMP = 1
    MIRROR = 2
    BORDER = 3


class filter_mode(IntEnum):
    """What a texture reads between elements: the argument of ``TextureReference.set_filter_mode``.

    Attributes
    ----------
    POINT : filter_mode
        The nearest element.
    LINEAR : filter_mode
        What lies between the nearest ones, by linear interpolation.

    Examples
    --------
    >>> from pygpu import driver
    >>> driver.filter_mode.LINEAR, int(driver.filter_mode.LINEAR)
    (pygpu.driver.filter_mode.LINEAR, 1)
    """

    POINT = 0
    LINEAR = 1
