"""The enumerations of ``pycuda.driver`` for texels, textures and copies of them."""

from ._enumeration_types import IntEnum, IntFlag


class memory_type(IntEnum):
    """Whose memory a copy reads or writes."""

    HOST = 1
    DEVICE = 2
    ARRAY = 3
    UNIFIED = 4


class array_format(IntEnum):
    """The type of the elements of an array that textures read."""

    UNSIGNED_INT8 = 0x01
    UNSIGNED_INT16 = 0x02
    UNSIGNED_INT32 = 0x03
    SIGNED_INT8 = 0x08
    SIGNED_INT16 = 0x09
    SIGNED_INT32 = 0x0A
    HALF = 0x10
    FLOAT = 0x20


class array3d_flags(IntFlag):
    """How an array that textures read is made."""

    ARRAY3D_2DARRAY = 1
    ARRAY3D_LAYERED = 1
    SURFACE_LDST = 2
    CUBEMAP = 4
    TEXTURE_GATHER = 8


# A name that Python's syntax has no place for.
setattr(array3d_flags, "2DARRAY", array3d_flags.ARRAY3D_2DARRAY)


class address_mode(IntEnum):
    """What a texture reads outside its bounds."""

    WRAP = 0
    CLAMP = 1
    MIRROR = 2
    BORDER = 3


class filter_mode(IntEnum):
    """What a texture reads between elements."""

    POINT = 0
    LINEAR = 1
