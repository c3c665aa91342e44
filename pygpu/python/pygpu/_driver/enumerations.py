"""The enumerations and flags of ``pycuda.driver``, with the drivers' numbers.

Those for textures are in `_texture_enumerations`. Making these takes a fifth of the time that
`pygpu.gpuarray` and `pygpu.driver` take to be imported, so they are imported when one is used.
"""

from .enumeration_types import IntEnum, IntFlag


class device_attribute(IntEnum):
    """Numbered properties of a device, which ``Device.get_attribute`` returns.

    Names, numbers and units are those of ``CUdevice_attribute``: clock rates are in kHz, sizes of
    memory in bytes, widths of textures in elements. Two names with one number are an old and a new
    one.

    Examples
    --------
    >>> from pygpu import driver
    >>> device = driver.Device(0)
    >>> device.get_attribute(driver.device_attribute.MAX_THREADS_PER_BLOCK)
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
    """Numbered properties of a kernel, which ``Function.get_attribute`` returns.

    Names with ``_BYTES`` are bytes, ``NUM_REGS`` is the registers of a thread, and
    ``PREFERRED_SHARED_MEMORY_CARVEOUT`` a percentage. ``MAX`` is their number, no property.

    Examples
    --------
    >>> from pygpu import driver
    >>> driver.function_attribute.NUM_REGS, int(driver.function_attribute.NUM_REGS)
    (pygpu.driver.function_attribute.NUM_REGS, 4)
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
    """Numbered properties of an address, as the driver has them.

    As in PyCUDA there is no function that takes them.

    Examples
    --------
    >>> from pygpu import driver
    >>> int(driver.pointer_attribute.MEMORY_TYPE)
    2
    """

    CONTEXT = 1
    MEMORY_TYPE = 2
    DEVICE_POINTER = 3
    HOST_POINTER = 4


class compute_mode(IntEnum):
    """Who may use a device: the values of ``device_attribute.COMPUTE_MODE``.

    Attributes
    ----------
    DEFAULT : compute_mode
        Any number of processes.
    EXCLUSIVE, EXCLUSIVE_PROCESS : compute_mode
        One thread (in old drivers), or one process.
    PROHIBITED : compute_mode
        Nobody.

    Examples
    --------
    >>> from pygpu import driver
    >>> driver.compute_mode(0)
    pygpu.driver.compute_mode.DEFAULT
    """

    DEFAULT = 0
    EXCLUSIVE = 1
    PROHIBITED = 2
    EXCLUSIVE_PROCESS = 3


class limit(IntEnum):
    """What a context gives kernels: the first argument of ``Context.get_limit`` and ``set_limit``.

    Attributes
    ----------
    STACK_SIZE : limit
        Bytes of the stack of each thread.
    PRINTF_FIFO_SIZE : limit
        Bytes that collect what kernels print.
    MALLOC_HEAP_SIZE : limit
        Bytes that kernels allocate from.
    DEV_RUNTIME_SYNC_DEPTH, DEV_RUNTIME_PENDING_LAUNCH_COUNT : limit
        For kernels that launch kernels: the depth at which they wait, and the launches that may be
        pending.

    Examples
    --------
    >>> from pygpu import driver
    >>> driver.limit.STACK_SIZE, int(driver.limit.STACK_SIZE)
    (pygpu.driver.limit.STACK_SIZE, 0)
    """

    STACK_SIZE = 0
    PRINTF_FIFO_SIZE = 1
    MALLOC_HEAP_SIZE = 2
    DEV_RUNTIME_SYNC_DEPTH = 3
    DEV_RUNTIME_PENDING_LAUNCH_COUNT = 4


class func_cache(IntEnum):
    """How on-chip memory is divided between shared memory and cache: the argument of
    ``Function.set_cache_config``.

    Attributes
    ----------
    PREFER_NONE : func_cache
        As the driver sees fit.
    PREFER_SHARED, PREFER_L1, PREFER_EQUAL : func_cache
        More shared memory, more cache, or as much of both.

    Examples
    --------
    >>> from pygpu import driver
    >>> driver.func_cache.PREFER_L1, int(driver.func_cache.PREFER_L1)
    (pygpu.driver.func_cache.PREFER_L1, 2)
    """

    PREFER_NONE = 0
    PREFER_SHARED = 1
    PREFER_L1 = 2
    PREFER_EQUAL = 3


class shared_config(IntEnum):
    """How wide the banks of shared memory are: the argument of ``Function.set_shared_config``.

    No device that current drivers know can change it.

    Examples
    --------
    >>> from pygpu import driver
    >>> driver.shared_config(2)
    pygpu.driver.shared_config.EIGHT_BYTE_BANK_SIZE
    """

    DEFAULT_BANK_SIZE = 0
    FOUR_BYTE_BANK_SIZE = 1
    EIGHT_BYTE_BANK_SIZE = 2


class ctx_flags(IntFlag):
    """How a context waits: the argument of ``Device.make_context``.

    They have no effect on a primary context, as all contexts are here.

    Examples
    --------
    >>> from pygpu import driver
    >>> driver.ctx_flags.SCHED_SPIN | driver.ctx_flags.MAP_HOST
    pygpu.driver.ctx_flags(9)
    """

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
    """How an event is made: the argument of ``Event``.

    Attributes
    ----------
    DEFAULT : event_flags
        A thread that waits for the event may spin.
    BLOCKING_SYNC : event_flags
        It sleeps.
    DISABLE_TIMING : event_flags
        The event has no time, and recording it costs less.
    INTERPROCESS : event_flags
        Other processes can open it; needs ``DISABLE_TIMING``.

    Examples
    --------
    >>> from pygpu import driver
    >>> driver.Event(driver.event_flags.DISABLE_TIMING).query()
    True
    """

    DEFAULT = 0
    BLOCKING_SYNC = 1
    DISABLE_TIMING = 2
    INTERPROCESS = 4


class host_alloc_flags(IntFlag):
    """How page-locked memory is allocated: the argument ``mem_flags`` of ``pagelocked_empty``.

    Attributes
    ----------
    PORTABLE : host_alloc_flags
        It is page-locked for all devices.
    DEVICEMAP : host_alloc_flags
        Kernels can use it.
    WRITECOMBINED : host_alloc_flags
        Devices read it faster; the host reads it slowly.

    Examples
    --------
    >>> from pygpu import driver
    >>> flags = driver.host_alloc_flags.DEVICEMAP
    >>> driver.pagelocked_zeros(2, "f4", mem_flags=flags).base.get_flags() & flags
    pygpu.driver.host_alloc_flags.DEVICEMAP
    """

    PORTABLE = 1
    DEVICEMAP = 2
    WRITECOMBINED = 4


class mem_host_register_flags(IntFlag):
    """How host memory is page-locked: the argument ``flags`` of ``register_host_memory``.

    Attributes
    ----------
    PORTABLE : mem_host_register_flags
        It is page-locked for all devices.
    DEVICEMAP : mem_host_register_flags
        Kernels can use it.

    Examples
    --------
    >>> from pygpu import driver
    >>> driver.mem_host_register_flags(3) == driver.host_alloc_flags(3)
    True
    """

    PORTABLE = 1
    DEVICEMAP = 2


class mem_attach_flags(IntFlag):
    """Who uses managed memory next: the argument ``mem_flags`` of ``managed_empty`` and of
    ``ManagedAllocation.attach``.

    Attributes
    ----------
    GLOBAL : mem_attach_flags
        The host or a device: the memory moves to where it is touched.
    HOST : mem_attach_flags
        The host, which it moves to.
    SINGLE : mem_attach_flags
        The device of a stream, which it moves to; for ``attach`` only.

    Examples
    --------
    >>> from pygpu import driver
    >>> driver.mem_attach_flags.GLOBAL, int(driver.mem_attach_flags.GLOBAL)
    (pygpu.driver.mem_attach_flags.GLOBAL, 1)
    """

    GLOBAL = 1
    HOST = 2
    SINGLE = 4


class ipc_mem_flags(IntFlag):
    """How memory of another process is opened: the argument ``flags`` of ``IPCMemoryHandle``.

    Attributes
    ----------
    LAZY_ENABLE_PEER_ACCESS : ipc_mem_flags
        Access between two devices begins when it is needed.

    Examples
    --------
    >>> from pygpu import driver
    >>> int(driver.ipc_mem_flags.LAZY_ENABLE_PEER_ACCESS)
    1
    """

    LAZY_ENABLE_PEER_ACCESS = 1


class jit_option(IntEnum):
    """What a loader of code is told: ``options`` of ``module_from_buffer`` and of ``Linker`` are
    pairs of one of these and its value.

    Sizes of buffers are in bytes, ``WALL_TIME`` is in milliseconds, ``OPTIMIZATION_LEVEL`` is 0 to
    4.

    Examples
    --------
    >>> from pygpu import driver
    >>> driver.jit_option.OPTIMIZATION_LEVEL, int(driver.jit_option.OPTIMIZATION_LEVEL)
    (pygpu.driver.jit_option.OPTIMIZATION_LEVEL, 7)
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
    """What kind of code ``Linker.add_data`` and ``Linker.add_file`` are given.

    Attributes
    ----------
    CUBIN, PTX : jit_input_type
        Code for one kind of device, or text for many.
    FATBINARY : jit_input_type
        A file with several of these.
    OBJECT, LIBRARY : jit_input_type
        A host object, or an archive of them, with device code inside.

    Examples
    --------
    >>> from pygpu import driver
    >>> driver.jit_input_type.PTX, int(driver.jit_input_type.PTX)
    (pygpu.driver.jit_input_type.PTX, 1)
    """

    CUBIN = 0
    PTX = 1
    FATBINARY = 2
    OBJECT = 3
    LIBRARY = 4


class jit_fallback(IntEnum):
    """Which code is taken if the best one is missing: values of ``jit_option.FALLBACK_STRATEGY``.

    Examples
    --------
    >>> from pygpu import driver
    >>> driver.jit_fallback(0)
    pygpu.driver.jit_fallback.PREFER_PTX
    """

    PREFER_PTX = 0
    PREFER_BINARY = 1


class jit_target(IntEnum):
    """Which generation of devices code is compiled for: values of ``jit_option.TARGET``.

    Examples
    --------
    >>> from pygpu import driver
    >>> int(driver.jit_target.COMPUTE_80)
    80
    """

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
    """The form of a profiler's output: an argument of ``initialize_profiler``.

    Examples
    --------
    >>> from pygpu import driver
    >>> driver.profiler_output_mode(1)
    pygpu.driver.profiler_output_mode.CSV
    """

    KEY_VALUE_PAIR = 0
    CSV = 1


class array_cubemap_face(IntEnum):
    """The faces of a cubemap: the z of a copy to or from its array.

    Examples
    --------
    >>> from pygpu import driver
    >>> int(driver.array_cubemap_face.NEGATIVE_Z)
    5
    """

    POSITIVE_X = 0
    NEGATIVE_X = 1
    POSITIVE_Y = 2
    NEGATIVE_Y = 3
    POSITIVE_Z = 4
    NEGATIVE_Z = 5


class graphics_register_flags(IntFlag):
    """How a buffer or an image of OpenGL is used. There is no sharing with OpenGL.

    Examples
    --------
    >>> from pygpu import driver
    >>> driver.graphics_register_flags(2)
    pygpu.driver.graphics_register_flags.WRITE_DISCARD
    """

    NONE = 0
    READ_ONLY = 1
    WRITE_DISCARD = 2
    SURFACE_LDST = 4
    TEXTURE_GATHER = 8


class graphics_map_flags(IntFlag):
    """How a mapped buffer or image of OpenGL is used. There is no sharing with OpenGL.

    Examples
    --------
    >>> from pygpu import driver
    >>> driver.graphics_map_flags(1)
    pygpu.driver.graphics_map_flags.READ_ONLY
    """

    NONE = 0
    READ_ONLY = 1
    WRITE_DISCARD = 2


class direction_vector_set(IntEnum):
    """Which vectors a quasi-random generator takes: an argument of
    :func:`pygpu.curandom.generate_direction_vectors`.

    The numbers are those of cuRAND: vectors of 32 or 64 bits, plain or scrambled.

    Examples
    --------
    >>> from pygpu.curandom import direction_vector_set
    >>> int(direction_vector_set.VECTOR_32)
    101
    """

    VECTOR_32 = 101
    SCRAMBLED_VECTOR_32 = 102
    VECTOR_64 = 103
    SCRAMBLED_VECTOR_64 = 104
