"""The enumerations and flags of ``pycuda.driver``, with the drivers' numbers.

Creating them is slow, so `driver` imports this module when a program first uses one of them.
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
    """Gives an enumeration PyCUDA's two dictionaries; a call without a number is a call with 0.

    If the docstring does not have an example, adds one that shows how the members print.
    """

    def __init__(cls, name: str, bases: Any, members: Any, **kwargs: Any) -> None:
        super().__init__(name, bases, members, **kwargs)
        text = cls.__doc__ or ""
        if cls.__members__ and ">>> " not in text:
            first: Any = next(iter(cls.__members__.values()))
            shown = f">>> driver.{name}({int(first)})\n    {first!r}"
            cls.__doc__ = f"{text.rstrip()}\n\n    {shown}"

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
    """Formats the number by a format, else returns the name (Python 3.10 ignores the format)."""
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
    """Attributes of a device: the argument of ``Device.get_attribute``.

    Names, numbers and units are as in ``CUdevice_attribute``: clock rates in kHz, memory in bytes,
    texture widths in elements. If two names have one number, one of them is old.

    >>> driver.Device(0).get_attribute(driver.device_attribute.MAX_THREADS_PER_BLOCK)
    1024
    """

    MAX_THREADS_PER_BLOCK, MAX_BLOCK_DIM_X, MAX_BLOCK_DIM_Y, MAX_BLOCK_DIM_Z = 1, 2, 3, 4
    MAX_GRID_DIM_X, MAX_GRID_DIM_Y, MAX_GRID_DIM_Z, MAX_SHARED_MEMORY_PER_BLOCK = 5, 6, 7, 8
    SHARED_MEMORY_PER_BLOCK, TOTAL_CONSTANT_MEMORY, WARP_SIZE, MAX_PITCH = 8, 9, 10, 11
    MAX_REGISTERS_PER_BLOCK, REGISTERS_PER_BLOCK, CLOCK_RATE, TEXTURE_ALIGNMENT = 12, 12, 13, 14
    GPU_OVERLAP, MULTIPROCESSOR_COUNT, KERNEL_EXEC_TIMEOUT, INTEGRATED = 15, 16, 17, 18
    CAN_MAP_HOST_MEMORY, COMPUTE_MODE, MAXIMUM_TEXTURE1D_WIDTH = 19, 20, 21
    MAXIMUM_TEXTURE2D_WIDTH, MAXIMUM_TEXTURE2D_HEIGHT, MAXIMUM_TEXTURE3D_WIDTH = 22, 23, 24
    MAXIMUM_TEXTURE3D_HEIGHT, MAXIMUM_TEXTURE3D_DEPTH, MAXIMUM_TEXTURE2D_LAYERED_WIDTH = 25, 26, 27
    MAXIMUM_TEXTURE2D_ARRAY_WIDTH, MAXIMUM_TEXTURE2D_LAYERED_HEIGHT = 27, 28
    MAXIMUM_TEXTURE2D_ARRAY_HEIGHT, MAXIMUM_TEXTURE2D_LAYERED_LAYERS = 28, 29
    MAXIMUM_TEXTURE2D_ARRAY_NUMSLICES, SURFACE_ALIGNMENT, CONCURRENT_KERNELS = 29, 30, 31
    ECC_ENABLED, PCI_BUS_ID, PCI_DEVICE_ID, TCC_DRIVER, MEMORY_CLOCK_RATE = 32, 33, 34, 35, 36
    GLOBAL_MEMORY_BUS_WIDTH, L2_CACHE_SIZE, MAX_THREADS_PER_MULTIPROCESSOR = 37, 38, 39
    ASYNC_ENGINE_COUNT, UNIFIED_ADDRESSING, MAXIMUM_TEXTURE1D_LAYERED_WIDTH = 40, 41, 42
    MAXIMUM_TEXTURE1D_LAYERED_LAYERS, MAXIMUM_TEXTURE2D_GATHER_WIDTH = 43, 45
    MAXIMUM_TEXTURE2D_GATHER_HEIGHT, MAXIMUM_TEXTURE3D_WIDTH_ALTERNATE = 46, 47
    MAXIMUM_TEXTURE3D_HEIGHT_ALTERNATE, MAXIMUM_TEXTURE3D_DEPTH_ALTERNATE = 48, 49
    PCI_DOMAIN_ID, TEXTURE_PITCH_ALIGNMENT, MAXIMUM_TEXTURECUBEMAP_WIDTH = 50, 51, 52
    MAXIMUM_TEXTURECUBEMAP_LAYERED_WIDTH, MAXIMUM_TEXTURECUBEMAP_LAYERED_LAYERS = 53, 54
    MAXIMUM_SURFACE1D_WIDTH, MAXIMUM_SURFACE2D_WIDTH, MAXIMUM_SURFACE2D_HEIGHT = 55, 56, 57
    MAXIMUM_SURFACE3D_WIDTH, MAXIMUM_SURFACE3D_HEIGHT, MAXIMUM_SURFACE3D_DEPTH = 58, 59, 60
    MAXIMUM_SURFACE1D_LAYERED_WIDTH, MAXIMUM_SURFACE1D_LAYERED_LAYERS = 61, 62
    MAXIMUM_SURFACE2D_LAYERED_WIDTH, MAXIMUM_SURFACE2D_LAYERED_HEIGHT = 63, 64
    MAXIMUM_SURFACE2D_LAYERED_LAYERS, MAXIMUM_SURFACECUBEMAP_WIDTH = 65, 66
    MAXIMUM_SURFACECUBEMAP_LAYERED_WIDTH, MAXIMUM_SURFACECUBEMAP_LAYERED_LAYERS = 67, 68
    MAXIMUM_TEXTURE1D_LINEAR_WIDTH, MAXIMUM_TEXTURE2D_LINEAR_WIDTH = 69, 70
    MAXIMUM_TEXTURE2D_LINEAR_HEIGHT, MAXIMUM_TEXTURE2D_LINEAR_PITCH = 71, 72
    MAXIMUM_TEXTURE2D_MIPMAPPED_WIDTH, MAXIMUM_TEXTURE2D_MIPMAPPED_HEIGHT = 73, 74
    COMPUTE_CAPABILITY_MAJOR, COMPUTE_CAPABILITY_MINOR = 75, 76
    MAXIMUM_TEXTURE1D_MIPMAPPED_WIDTH, STREAM_PRIORITIES_SUPPORTED = 77, 78
    GLOBAL_L1_CACHE_SUPPORTED, LOCAL_L1_CACHE_SUPPORTED = 79, 80
    MAX_SHARED_MEMORY_PER_MULTIPROCESSOR, MAX_REGISTERS_PER_MULTIPROCESSOR = 81, 82
    MANAGED_MEMORY, MULTI_GPU_BOARD, MULTI_GPU_BOARD_GROUP_ID = 83, 84, 85
    HOST_NATIVE_ATOMIC_SUPPORTED, SINGLE_TO_DOUBLE_PRECISION_PERF_RATIO = 86, 87
    PAGEABLE_MEMORY_ACCESS, CONCURRENT_MANAGED_ACCESS, COMPUTE_PREEMPTION_SUPPORTED = 88, 89, 90
    CAN_USE_HOST_POINTER_FOR_REGISTERED_MEM, MAX_SHARED_MEMORY_PER_BLOCK_OPTIN = 91, 97
    PAGEABLE_MEMORY_ACCESS_USES_HOST_PAGE_TABLES, DIRECT_MANAGED_MEM_ACCESS_FROM_HOST = 100, 101
    HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED, HANDLE_TYPE_WIN32_HANDLE_SUPPORTED = 103, 104
    HANDLE_TYPE_WIN32_KMT_HANDLE_SUPPORTED, MAX_BLOCKS_PER_MULTIPROCESSOR = 105, 106
    GENERIC_COMPRESSION_SUPPORTED, MAX_PERSISTING_L2_CACHE_SIZE = 107, 108
    RESERVED_SHARED_MEMORY_PER_BLOCK, READ_ONLY_HOST_REGISTER_SUPPORTED = 111, 113
    MEMORY_POOLS_SUPPORTED = 115


class function_attribute(IntEnum):
    """Attributes of a kernel: the argument of ``Function.get_attribute``.

    Names with ``_BYTES`` are bytes, ``NUM_REGS`` is the registers of a thread, and
    ``PREFERRED_SHARED_MEMORY_CARVEOUT`` a percentage. ``MAX`` is the number of attributes.
    """

    MAX_THREADS_PER_BLOCK, SHARED_SIZE_BYTES, CONST_SIZE_BYTES, LOCAL_SIZE_BYTES = 0, 1, 2, 3
    NUM_REGS, PTX_VERSION, BINARY_VERSION, CACHE_MODE_CA = 4, 5, 6, 7
    MAX_DYNAMIC_SHARED_SIZE_BYTES, PREFERRED_SHARED_MEMORY_CARVEOUT, MAX = 8, 9, 10


class pointer_attribute(IntEnum):
    """Attributes of an address. As in PyCUDA, no function takes them."""

    CONTEXT, MEMORY_TYPE, DEVICE_POINTER, HOST_POINTER = 1, 2, 3, 4


class compute_mode(IntEnum):
    """The allowed users of a device: values of ``device_attribute.COMPUTE_MODE``.

    ``EXCLUSIVE`` means one thread (old drivers), ``EXCLUSIVE_PROCESS`` one process.
    """

    DEFAULT, EXCLUSIVE, PROHIBITED, EXCLUSIVE_PROCESS = 0, 1, 2, 3


class limit(IntEnum):
    """Limits of kernels: the first argument of ``Context.get_limit`` and ``Context.set_limit``.

    Sizes are bytes: the stack of each thread, the buffer of ``printf``, the heap of ``malloc``.
    Kernels that launch kernels have further limits: the depth of waiting, and pending launches.
    """

    STACK_SIZE, PRINTF_FIFO_SIZE, MALLOC_HEAP_SIZE, DEV_RUNTIME_SYNC_DEPTH = 0, 1, 2, 3
    DEV_RUNTIME_PENDING_LAUNCH_COUNT = 4


class func_cache(IntEnum):
    """The division of on-chip memory into shared memory and cache, for ``set_cache_config``."""

    PREFER_NONE, PREFER_SHARED, PREFER_L1, PREFER_EQUAL = 0, 1, 2, 3


class shared_config(IntEnum):
    """The width of the banks of shared memory; no device of a current driver can change it."""

    DEFAULT_BANK_SIZE, FOUR_BYTE_BANK_SIZE, EIGHT_BYTE_BANK_SIZE = 0, 1, 2


class ctx_flags(IntFlag):
    """Flags of ``Device.make_context``, without effect: all contexts are primary contexts."""

    SCHED_AUTO, SCHED_SPIN, SCHED_YIELD, BLOCKING_SYNC, SCHED_BLOCKING_SYNC = 0, 1, 2, 4, 4
    SCHED_MASK, MAP_HOST, LMEM_RESIZE_TO_MAX, FLAGS_MASK = 7, 8, 16, 255


class event_flags(IntFlag):
    """Flags of an ``Event``.

    A thread that waits for a ``BLOCKING_SYNC`` event sleeps; for other events, it may spin.
    ``DISABLE_TIMING`` makes recording cheaper. Other processes can open an ``INTERPROCESS`` event,
    which needs ``DISABLE_TIMING``.

    >>> driver.Event(driver.event_flags.DISABLE_TIMING).query()
    True
    """

    DEFAULT, BLOCKING_SYNC, DISABLE_TIMING, INTERPROCESS = 0, 1, 2, 4


class host_alloc_flags(IntFlag):
    """Kinds of page-locked memory: ``mem_flags`` of ``pagelocked_empty``.

    ``PORTABLE`` memory is page-locked for all devices, and kernels can use ``DEVICEMAP`` memory.
    Devices read ``WRITECOMBINED`` memory faster; the host reads it slowly.

    >>> flags = driver.host_alloc_flags.DEVICEMAP
    >>> driver.pagelocked_zeros(2, "f4", mem_flags=flags).base.get_flags() & flags
    pygpu.driver.host_alloc_flags.DEVICEMAP
    """

    PORTABLE, DEVICEMAP, WRITECOMBINED = 1, 2, 4


class mem_host_register_flags(IntFlag):
    """Flags of ``register_host_memory``, as in `host_alloc_flags`."""

    PORTABLE, DEVICEMAP = 1, 2


class mem_attach_flags(IntFlag):
    """The next user of managed memory: ``mem_flags`` of ``managed_empty``, and ``attach``.

    With ``GLOBAL`` the memory moves to the next user, with ``HOST`` to the host, with ``SINGLE``
    (``attach`` only) to the device of a stream.
    """

    GLOBAL, HOST, SINGLE = 1, 2, 4


class ipc_mem_flags(IntFlag):
    """Flags of ``IPCMemoryHandle``, the class that opens memory of another process."""

    LAZY_ENABLE_PEER_ACCESS = 1


class jit_option(IntEnum):
    """Options of ``module_from_buffer`` and ``Linker``, in pairs of option and value.

    Sizes of buffers are bytes, ``WALL_TIME`` is milliseconds, ``OPTIMIZATION_LEVEL`` is 0 to 4.
    """

    MAX_REGISTERS, THREADS_PER_BLOCK, WALL_TIME, INFO_LOG_BUFFER = 0, 1, 2, 3
    INFO_LOG_BUFFER_SIZE_BYTES, ERROR_LOG_BUFFER, ERROR_LOG_BUFFER_SIZE_BYTES = 4, 5, 6
    OPTIMIZATION_LEVEL, TARGET_FROM_CUCONTEXT, TARGET, FALLBACK_STRATEGY = 7, 8, 9, 10
    GENERATE_DEBUG_INFO, LOG_VERBOSE, GENERATE_LINE_INFO = 11, 12, 13


class jit_input_type(IntEnum):
    """Kinds of code for ``Linker.add_data`` and ``Linker.add_file``.

    A ``CUBIN`` is for one kind of device, ``PTX`` is text for many, a ``FATBINARY`` has several
    of these. ``OBJECT`` and ``LIBRARY`` are host objects and archives with device code inside.
    """

    CUBIN, PTX, FATBINARY, OBJECT, LIBRARY = 0, 1, 2, 3, 4


class jit_fallback(IntEnum):
    """The code to use if exact code is missing: values of ``jit_option.FALLBACK_STRATEGY``."""

    PREFER_PTX, PREFER_BINARY = 0, 1


class jit_target(IntEnum):
    """The compute capability that code is compiled for: values of ``jit_option.TARGET``."""

    COMPUTE_10, COMPUTE_11, COMPUTE_12, COMPUTE_13, COMPUTE_20, COMPUTE_21 = 10, 11, 12, 13, 20, 21
    COMPUTE_30, COMPUTE_32, COMPUTE_35, COMPUTE_37, COMPUTE_50, COMPUTE_52 = 30, 32, 35, 37, 50, 52
    COMPUTE_53, COMPUTE_60, COMPUTE_61, COMPUTE_62, COMPUTE_70, COMPUTE_72 = 53, 60, 61, 62, 70, 72
    COMPUTE_75, COMPUTE_80, COMPUTE_86, COMPUTE_90 = 75, 80, 86, 90
    # CU_COMPUTE_ACCELERATED_TARGET_BASE is added.
    COMPUTE_90A = 0x10000 + 90


class profiler_output_mode(IntEnum):
    """The format of a profiler's output: an argument of ``initialize_profiler``."""

    KEY_VALUE_PAIR, CSV = 0, 1


class array_cubemap_face(IntEnum):
    """The faces of a cubemap: the z coordinate of a copy to or from the array of a cubemap."""

    POSITIVE_X, NEGATIVE_X, POSITIVE_Y, NEGATIVE_Y, POSITIVE_Z, NEGATIVE_Z = 0, 1, 2, 3, 4, 5


class graphics_register_flags(IntFlag):
    """Uses of a buffer or an image of OpenGL; sharing with OpenGL is not supported."""

    NONE, READ_ONLY, WRITE_DISCARD, SURFACE_LDST, TEXTURE_GATHER = 0, 1, 2, 4, 8


class graphics_map_flags(IntFlag):
    """Uses of a mapped buffer or image of OpenGL; sharing with OpenGL is not supported."""

    NONE, READ_ONLY, WRITE_DISCARD = 0, 1, 2


class direction_vector_set(IntEnum):
    """Vectors of a quasi-random generator, 32-bit or 64-bit, plain or scrambled, for
    :func:`pygpu.curandom.generate_direction_vectors`. The numbers are cuRAND's.

    >>> int(direction_vector_set.VECTOR_32)
    101
    """

    VECTOR_32, SCRAMBLED_VECTOR_32, VECTOR_64, SCRAMBLED_VECTOR_64 = 101, 102, 103, 104


class memory_type(IntEnum):
    """Kinds of memory: ``src_memory_type``, ``dst_memory_type`` of `Memcpy2D` and similar."""

    HOST, DEVICE, ARRAY, UNIFIED = 1, 2, 3, 4


class array_format(IntEnum):
    """The type of a texel's channel, in ``ArrayDescriptor.format`` and ``set_format``."""

    UNSIGNED_INT8, UNSIGNED_INT16, UNSIGNED_INT32, SIGNED_INT8 = 0x01, 0x02, 0x03, 0x08
    SIGNED_INT16, SIGNED_INT32, HALF, FLOAT = 0x09, 0x0A, 0x10, 0x20


class array3d_flags(IntFlag):
    """Kinds of texture arrays: ``ArrayDescriptor3D.flags``.

    ``ARRAY3D_LAYERED`` (``ARRAY3D_2DARRAY``) arrays have 2-D layers, as many as the depth;
    ``CUBEMAP`` arrays have six square faces. Kernels write ``SURFACE_LDST`` arrays by surfaces, and
    read four texels of ``TEXTURE_GATHER`` arrays in one access.
    """

    ARRAY3D_2DARRAY, ARRAY3D_LAYERED, SURFACE_LDST, CUBEMAP, TEXTURE_GATHER = 1, 1, 2, 4, 8


# Not a name in Python's syntax.
setattr(array3d_flags, "2DARRAY", array3d_flags.ARRAY3D_2DARRAY)


class address_mode(IntEnum):
    """The values of a texture out of bounds: modes of ``TextureReference.set_address_mode``.

    ``WRAP`` and ``MIRROR`` repeat the array, for normalized coordinates only; ``CLAMP`` reads the
    element at the edge, ``BORDER`` zero.
    """

    WRAP, CLAMP, MIRROR, BORDER = 0, 1, 2, 3


class filter_mode(IntEnum):
    """The value of a texture between texels: the nearest texel, or linear interpolation."""

    POINT, LINEAR = 0, 1
