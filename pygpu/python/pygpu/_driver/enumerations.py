"""The enumerations and flags of ``pycuda.driver``, with the drivers' numbers.

Making them takes long, so `driver` imports this module when one of them is used.
"""

import enum
import operator
from enum import EnumMeta
from typing import Any

__all__ = ["address_mode", "array3d_flags", "array_cubemap_face", "array_format", "compute_mode"]
__all__ += ["ctx_flags", "device_attribute", "event_flags", "filter_mode", "func_cache"]
__all__ += ["function_attribute", "graphics_map_flags", "graphics_register_flags"]
__all__ += ["host_alloc_flags", "ipc_mem_flags", "jit_fallback", "jit_input_type", "jit_option"]
__all__ += ["jit_target", "limit", "mem_attach_flags", "mem_host_register_flags", "memory_type"]
__all__ += ["pointer_attribute", "profiler_output_mode", "shared_config"]


class _Listed(EnumMeta):
    """Gives an enumeration two dictionaries, and calls without a number, which is 0, as PyCUDA.

    If the documentation does not have an example, one shows how the members print.
    """

    def __init__(cls, name: str, bases: Any, members: Any, **kwargs: Any) -> None:
        super().__init__(name, bases, members, **kwargs)
        text = cls.__doc__ or ""
        if cls.__members__ and "Examples" not in text:
            first: Any = next(iter(cls.__members__.values()))
            lines = "Examples", "--------", f">>> driver.{name}({int(first)})", repr(first)
            cls.__doc__ = f"{text.rstrip()}\n\n    " + "\n    ".join(lines)

    def __call__(cls, value: Any = 0, *args: Any, **kwargs: Any) -> Any:
        return super().__call__(value, *args, **kwargs)

    @property
    def names(cls) -> dict[str, Any]:
        """The members by their names."""
        return dict(cls.__members__)

    @property
    def values(cls) -> dict[int, Any]:
        """The members by their numbers."""
        members: list[Any] = list(cls.__members__.values())
        return {int(member): member for member in members}


def _name(member: Any) -> str:
    """Returns the member's name, as PyCUDA prints it; a combination of flags is a number."""
    return member._name_ or str(int(member))


def _name_or_place(member: Any) -> str:
    """Returns the member's name; a number that is not a member prints as an expression."""
    return member._name_ or _place(member)


def _place(member: Any) -> str:
    """Returns the member as an expression, in PyCUDA's form."""
    members = type(member)
    known = member._name_ in members.__members__
    end = f".{member._name_}" if known else f"({int(member)})"
    return f"pygpu.driver.{members.__name__}{end}"


def _format(member: Any, format_spec: str) -> str:
    """Returns the name, or the number if there is a format. Python 3.10 has the name for both."""
    return int.__format__(int(member), format_spec) if format_spec else str(member)


class IntEnum(enum.IntEnum, metaclass=_Listed):
    """Numbers that print as their names. Other numbers are allowed, but are not members."""

    __str__ = _name_or_place
    __repr__ = _place
    __format__ = _format

    @classmethod
    def _missing_(cls, value: object) -> Any:
        try:
            number = operator.index(value)  # type: ignore[arg-type]
        except TypeError:
            return None
        nameless = int.__new__(cls, number)
        nameless._name_ = None  # type: ignore[assignment]
        nameless._value_ = number
        return nameless


class IntFlag(enum.IntFlag, metaclass=_Listed):
    """Numbers that are combined with ``|``, and print as their names."""

    __str__ = _name
    __repr__ = _place
    __format__ = _format


class device_attribute(IntEnum):
    """Numbered properties of a device: the argument of ``Device.get_attribute``.

    Names, numbers and units are as in ``CUdevice_attribute``: clock rates in kHz, memory in bytes,
    texture widths in elements. Two names of one number are the old and the new one.

    >>> driver.Device(0).get_attribute(driver.device_attribute.MAX_THREADS_PER_BLOCK)
    1024
    """

    MAX_THREADS_PER_BLOCK = 1
    MAX_BLOCK_DIM_X = 2
    MAX_BLOCK_DIM_Y = 3
    MAX_BLOCK_DIM_Z = 4
    MAX_GRID_DIM_X = 5
    MAX_GRID_DIM_Y = 6
    MAX_GRID_DIM_Z = 7
    MAX_SHARED_MEMORY_PER_BLOCK = 8
    SHARED_MEMORY_PER_BLOCK = 8
    TOTAL_CONSTANT_MEMORY = 9
    WARP_SIZE = 10
    MAX_PITCH = 11
    MAX_REGISTERS_PER_BLOCK = 12
    REGISTERS_PER_BLOCK = 12
    CLOCK_RATE = 13
    TEXTURE_ALIGNMENT = 14
    GPU_OVERLAP = 15
    MULTIPROCESSOR_COUNT = 16
    KERNEL_EXEC_TIMEOUT = 17
    INTEGRATED = 18
    CAN_MAP_HOST_MEMORY = 19
    COMPUTE_MODE = 20
    MAXIMUM_TEXTURE1D_WIDTH = 21
    MAXIMUM_TEXTURE2D_WIDTH = 22
    MAXIMUM_TEXTURE2D_HEIGHT = 23
    MAXIMUM_TEXTURE3D_WIDTH = 24
    MAXIMUM_TEXTURE3D_HEIGHT = 25
    MAXIMUM_TEXTURE3D_DEPTH = 26
    MAXIMUM_TEXTURE2D_LAYERED_WIDTH = 27
    MAXIMUM_TEXTURE2D_ARRAY_WIDTH = 27
    MAXIMUM_TEXTURE2D_LAYERED_HEIGHT = 28
    MAXIMUM_TEXTURE2D_ARRAY_HEIGHT = 28
    MAXIMUM_TEXTURE2D_LAYERED_LAYERS = 29
    MAXIMUM_TEXTURE2D_ARRAY_NUMSLICES = 29
    SURFACE_ALIGNMENT = 30
    CONCURRENT_KERNELS = 31
    ECC_ENABLED = 32
    PCI_BUS_ID = 33
    PCI_DEVICE_ID = 34
    TCC_DRIVER = 35
    MEMORY_CLOCK_RATE = 36
    GLOBAL_MEMORY_BUS_WIDTH = 37
    L2_CACHE_SIZE = 38
    MAX_THREADS_PER_MULTIPROCESSOR = 39
    ASYNC_ENGINE_COUNT = 40
    UNIFIED_ADDRESSING = 41
    MAXIMUM_TEXTURE1D_LAYERED_WIDTH = 42
    MAXIMUM_TEXTURE1D_LAYERED_LAYERS = 43
    MAXIMUM_TEXTURE2D_GATHER_WIDTH = 45
    MAXIMUM_TEXTURE2D_GATHER_HEIGHT = 46
    MAXIMUM_TEXTURE3D_WIDTH_ALTERNATE = 47
    MAXIMUM_TEXTURE3D_HEIGHT_ALTERNATE = 48
    MAXIMUM_TEXTURE3D_DEPTH_ALTERNATE = 49
    PCI_DOMAIN_ID = 50
    TEXTURE_PITCH_ALIGNMENT = 51
    MAXIMUM_TEXTURECUBEMAP_WIDTH = 52
    MAXIMUM_TEXTURECUBEMAP_LAYERED_WIDTH = 53
    MAXIMUM_TEXTURECUBEMAP_LAYERED_LAYERS = 54
    MAXIMUM_SURFACE1D_WIDTH = 55
    MAXIMUM_SURFACE2D_WIDTH = 56
    MAXIMUM_SURFACE2D_HEIGHT = 57
    MAXIMUM_SURFACE3D_WIDTH = 58
    MAXIMUM_SURFACE3D_HEIGHT = 59
    MAXIMUM_SURFACE3D_DEPTH = 60
    MAXIMUM_SURFACE1D_LAYERED_WIDTH = 61
    MAXIMUM_SURFACE1D_LAYERED_LAYERS = 62
    MAXIMUM_SURFACE2D_LAYERED_WIDTH = 63
    MAXIMUM_SURFACE2D_LAYERED_HEIGHT = 64
    MAXIMUM_SURFACE2D_LAYERED_LAYERS = 65
    MAXIMUM_SURFACECUBEMAP_WIDTH = 66
    MAXIMUM_SURFACECUBEMAP_LAYERED_WIDTH = 67
    MAXIMUM_SURFACECUBEMAP_LAYERED_LAYERS = 68
    MAXIMUM_TEXTURE1D_LINEAR_WIDTH = 69
    MAXIMUM_TEXTURE2D_LINEAR_WIDTH = 70
    MAXIMUM_TEXTURE2D_LINEAR_HEIGHT = 71
    MAXIMUM_TEXTURE2D_LINEAR_PITCH = 72
    MAXIMUM_TEXTURE2D_MIPMAPPED_WIDTH = 73
    MAXIMUM_TEXTURE2D_MIPMAPPED_HEIGHT = 74
    COMPUTE_CAPABILITY_MAJOR = 75
    COMPUTE_CAPABILITY_MINOR = 76
    MAXIMUM_TEXTURE1D_MIPMAPPED_WIDTH = 77
    STREAM_PRIORITIES_SUPPORTED = 78
    GLOBAL_L1_CACHE_SUPPORTED = 79
    LOCAL_L1_CACHE_SUPPORTED = 80
    MAX_SHARED_MEMORY_PER_MULTIPROCESSOR = 81
    MAX_REGISTERS_PER_MULTIPROCESSOR = 82
    MANAGED_MEMORY = 83
    MULTI_GPU_BOARD = 84
    MULTI_GPU_BOARD_GROUP_ID = 85
    HOST_NATIVE_ATOMIC_SUPPORTED = 86
    SINGLE_TO_DOUBLE_PRECISION_PERF_RATIO = 87
    PAGEABLE_MEMORY_ACCESS = 88
    CONCURRENT_MANAGED_ACCESS = 89
    COMPUTE_PREEMPTION_SUPPORTED = 90
    CAN_USE_HOST_POINTER_FOR_REGISTERED_MEM = 91
    MAX_SHARED_MEMORY_PER_BLOCK_OPTIN = 97
    PAGEABLE_MEMORY_ACCESS_USES_HOST_PAGE_TABLES = 100
    DIRECT_MANAGED_MEM_ACCESS_FROM_HOST = 101
    HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED = 103
    HANDLE_TYPE_WIN32_HANDLE_SUPPORTED = 104
    HANDLE_TYPE_WIN32_KMT_HANDLE_SUPPORTED = 105
    MAX_BLOCKS_PER_MULTIPROCESSOR = 106
    GENERIC_COMPRESSION_SUPPORTED = 107
    MAX_PERSISTING_L2_CACHE_SIZE = 108
    RESERVED_SHARED_MEMORY_PER_BLOCK = 111
    READ_ONLY_HOST_REGISTER_SUPPORTED = 113
    MEMORY_POOLS_SUPPORTED = 115


class function_attribute(IntEnum):
    """Numbered properties of a kernel: the argument of ``Function.get_attribute``.

    Names with ``_BYTES`` are bytes, ``NUM_REGS`` is the registers of a thread, and
    ``PREFERRED_SHARED_MEMORY_CARVEOUT`` a percentage. ``MAX`` is their number, not a property.
    """

    MAX_THREADS_PER_BLOCK = 0
    SHARED_SIZE_BYTES = 1
    CONST_SIZE_BYTES = 2
    LOCAL_SIZE_BYTES = 3
    NUM_REGS = 4
    PTX_VERSION = 5
    BINARY_VERSION = 6
    CACHE_MODE_CA = 7
    MAX_DYNAMIC_SHARED_SIZE_BYTES = 8
    PREFERRED_SHARED_MEMORY_CARVEOUT = 9
    MAX = 10


class pointer_attribute(IntEnum):
    """Numbered properties of an address. As in PyCUDA, no function takes them."""

    CONTEXT = 1
    MEMORY_TYPE = 2
    DEVICE_POINTER = 3
    HOST_POINTER = 4


class compute_mode(IntEnum):
    """The allowed users of a device: values of ``device_attribute.COMPUTE_MODE``.

    ``EXCLUSIVE`` means one thread (old drivers), ``EXCLUSIVE_PROCESS`` one process.
    """

    DEFAULT = 0
    EXCLUSIVE = 1
    PROHIBITED = 2
    EXCLUSIVE_PROCESS = 3


class limit(IntEnum):
    """Limits of kernels: the first argument of ``Context.get_limit`` and ``Context.set_limit``.

    Sizes are bytes: the stack of each thread, the buffer of ``printf``, the heap of ``malloc``. The
    others are for kernels that launch kernels: the depth at which they wait, and pending launches.
    """

    STACK_SIZE = 0
    PRINTF_FIFO_SIZE = 1
    MALLOC_HEAP_SIZE = 2
    DEV_RUNTIME_SYNC_DEPTH = 3
    DEV_RUNTIME_PENDING_LAUNCH_COUNT = 4


class func_cache(IntEnum):
    """The division of on-chip memory into shared memory and cache, for ``set_cache_config``."""

    PREFER_NONE = 0
    PREFER_SHARED = 1
    PREFER_L1 = 2
    PREFER_EQUAL = 3


class shared_config(IntEnum):
    """The width of the banks of shared memory, which no device of a current driver can change."""

    DEFAULT_BANK_SIZE = 0
    FOUR_BYTE_BANK_SIZE = 1
    EIGHT_BYTE_BANK_SIZE = 2


class ctx_flags(IntFlag):
    """Flags of ``Device.make_context``, without effect: all contexts are primary contexts."""

    SCHED_AUTO = 0
    SCHED_SPIN = 1
    SCHED_YIELD = 2
    BLOCKING_SYNC = 4
    SCHED_BLOCKING_SYNC = 4
    SCHED_MASK = 7
    MAP_HOST = 8
    LMEM_RESIZE_TO_MAX = 16
    FLAGS_MASK = 255


class event_flags(IntFlag):
    """Flags of an ``Event``.

    A thread that waits for a ``BLOCKING_SYNC`` event sleeps; for others, it may spin.
    ``DISABLE_TIMING`` makes recording cheaper. Other processes can open an ``INTERPROCESS`` event,
    which needs ``DISABLE_TIMING``.

    Examples
    --------
    >>> driver.Event(driver.event_flags.DISABLE_TIMING).query()
    True
    """

    DEFAULT = 0
    BLOCKING_SYNC = 1
    DISABLE_TIMING = 2
    INTERPROCESS = 4


class host_alloc_flags(IntFlag):
    """Kinds of page-locked memory: ``mem_flags`` of ``pagelocked_empty``.

    ``PORTABLE`` memory is page-locked for all devices, and kernels can use ``DEVICEMAP`` memory.
    Devices read ``WRITECOMBINED`` memory faster; the host reads it slowly.

    Examples
    --------
    >>> flags = driver.host_alloc_flags.DEVICEMAP
    >>> driver.pagelocked_zeros(2, "f4", mem_flags=flags).base.get_flags() & flags
    pygpu.driver.host_alloc_flags.DEVICEMAP
    """

    PORTABLE = 1
    DEVICEMAP = 2
    WRITECOMBINED = 4


class mem_host_register_flags(IntFlag):
    """Flags of ``register_host_memory``, as in `host_alloc_flags`."""

    PORTABLE = 1
    DEVICEMAP = 2


class mem_attach_flags(IntFlag):
    """The next user of managed memory: ``mem_flags`` of ``managed_empty``, and ``attach``.

    With ``GLOBAL`` the memory moves to its user, with ``HOST`` to the host, and with ``SINGLE``
    (``attach`` only) to the device of a stream.
    """

    GLOBAL = 1
    HOST = 2
    SINGLE = 4


class ipc_mem_flags(IntFlag):
    """Flags of an ``IPCMemoryHandle``, which opens memory of another process."""

    LAZY_ENABLE_PEER_ACCESS = 1


class jit_option(IntEnum):
    """Options of ``module_from_buffer`` and ``Linker``, which take pairs of option and value.

    Sizes of buffers are bytes, ``WALL_TIME`` is milliseconds, ``OPTIMIZATION_LEVEL`` is 0 to 4.
    """

    MAX_REGISTERS = 0
    THREADS_PER_BLOCK = 1
    WALL_TIME = 2
    INFO_LOG_BUFFER = 3
    INFO_LOG_BUFFER_SIZE_BYTES = 4
    ERROR_LOG_BUFFER = 5
    ERROR_LOG_BUFFER_SIZE_BYTES = 6
    OPTIMIZATION_LEVEL = 7
    TARGET_FROM_CUCONTEXT = 8
    TARGET = 9
    FALLBACK_STRATEGY = 10
    GENERATE_DEBUG_INFO = 11
    LOG_VERBOSE = 12
    GENERATE_LINE_INFO = 13


class jit_input_type(IntEnum):
    """Kinds of code for ``Linker.add_data`` and ``Linker.add_file``.

    A ``CUBIN`` is for one kind of device, ``PTX`` is text for many, a ``FATBINARY`` has several of
    these. ``OBJECT`` and ``LIBRARY`` are host objects and archives with device code inside.
    """

    CUBIN = 0
    PTX = 1
    FATBINARY = 2
    OBJECT = 3
    LIBRARY = 4


class jit_fallback(IntEnum):
    """The code to use if the best one is missing: ``jit_option.FALLBACK_STRATEGY``."""

    PREFER_PTX = 0
    PREFER_BINARY = 1


class jit_target(IntEnum):
    """The generation of devices that code is compiled for: ``jit_option.TARGET``."""

    COMPUTE_10 = 10
    COMPUTE_11 = 11
    COMPUTE_12 = 12
    COMPUTE_13 = 13
    COMPUTE_20 = 20
    COMPUTE_21 = 21
    COMPUTE_30 = 30
    COMPUTE_32 = 32
    COMPUTE_35 = 35
    COMPUTE_37 = 37
    COMPUTE_50 = 50
    COMPUTE_52 = 52
    COMPUTE_53 = 53
    COMPUTE_60 = 60
    COMPUTE_61 = 61
    COMPUTE_62 = 62
    COMPUTE_70 = 70
    COMPUTE_72 = 72
    COMPUTE_75 = 75
    COMPUTE_80 = 80
    COMPUTE_86 = 86
    COMPUTE_90 = 90
    # CU_COMPUTE_ACCELERATED_TARGET_BASE is added.
    COMPUTE_90A = 0x10000 + 90


class profiler_output_mode(IntEnum):
    """The form of a profiler's output: an argument of ``initialize_profiler``."""

    KEY_VALUE_PAIR = 0
    CSV = 1


class array_cubemap_face(IntEnum):
    """The faces of a cubemap: the z of a copy to or from its array."""

    POSITIVE_X = 0
    NEGATIVE_X = 1
    POSITIVE_Y = 2
    NEGATIVE_Y = 3
    POSITIVE_Z = 4
    NEGATIVE_Z = 5


class graphics_register_flags(IntFlag):
    """Uses of a buffer or an image of OpenGL; sharing with OpenGL is not supported."""

    NONE = 0
    READ_ONLY = 1
    WRITE_DISCARD = 2
    SURFACE_LDST = 4
    TEXTURE_GATHER = 8


class graphics_map_flags(IntFlag):
    """Uses of a mapped buffer or image of OpenGL; sharing with OpenGL is not supported."""

    NONE = 0
    READ_ONLY = 1
    WRITE_DISCARD = 2


class direction_vector_set(IntEnum):
    """Vectors of a quasi-random generator, 32-bit or 64-bit, plain or scrambled, for
    :func:`pygpu.curandom.generate_direction_vectors`. The numbers are cuRAND's.

    Examples
    --------
    >>> int(direction_vector_set.VECTOR_32)
    101
    """

    VECTOR_32 = 101
    SCRAMBLED_VECTOR_32 = 102
    VECTOR_64 = 103
    SCRAMBLED_VECTOR_64 = 104


class memory_type(IntEnum):
    """The memory of a copy: ``src_memory_type``, ``dst_memory_type`` of `Memcpy2D` and similar."""

    HOST = 1
    DEVICE = 2
    ARRAY = 3
    UNIFIED = 4


class array_format(IntEnum):
    """The type of a texel's channel, in ``ArrayDescriptor.format`` and ``set_format``."""

    UNSIGNED_INT8 = 0x01
    UNSIGNED_INT16 = 0x02
    UNSIGNED_INT32 = 0x03
    SIGNED_INT8 = 0x08
    SIGNED_INT16 = 0x09
    SIGNED_INT32 = 0x0A
    HALF = 0x10
    FLOAT = 0x20


class array3d_flags(IntFlag):
    """Kinds of texture arrays: ``ArrayDescriptor3D.flags``.

    ``ARRAY3D_LAYERED`` (``ARRAY3D_2DARRAY``) arrays have 2-D layers, as many as the depth;
    ``CUBEMAP`` arrays six square faces. Kernels write ``SURFACE_LDST`` arrays by surfaces, and read
    four texels of ``TEXTURE_GATHER`` arrays in one access.
    """

    ARRAY3D_2DARRAY = 1
    ARRAY3D_LAYERED = 1
    SURFACE_LDST = 2
    CUBEMAP = 4
    TEXTURE_GATHER = 8


# Not a name in Python's syntax.
setattr(array3d_flags, "2DARRAY", array3d_flags.ARRAY3D_2DARRAY)


class address_mode(IntEnum):
    """Reads of a texture out of bounds: modes of ``TextureReference.set_address_mode``.

    ``WRAP`` and ``MIRROR`` repeat the array, for normalized coordinates only; ``CLAMP`` reads the
    element at the edge, ``BORDER`` zero.
    """

    WRAP = 0
    CLAMP = 1
    MIRROR = 2
    BORDER = 3


class filter_mode(IntEnum):
    """A texture's value between elements: the nearest one, or a linear interpolation."""

    POINT = 0
    LINEAR = 1
