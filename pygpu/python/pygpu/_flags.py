"""The enumerations and flags of ``pycuda.driver``, with the drivers' numbers."""

import enum


class device_attribute(enum.IntEnum):
    """Numbered properties of a device."""

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
    CLOCK_RATE = 13
    MULTIPROCESSOR_COUNT = 16
    INTEGRATED = 18
    CAN_MAP_HOST_MEMORY = 19
    CONCURRENT_KERNELS = 31
    PCI_BUS_ID = 33
    PCI_DEVICE_ID = 34
    MAX_THREADS_PER_MULTIPROCESSOR = 39
    ASYNC_ENGINE_COUNT = 40
    UNIFIED_ADDRESSING = 41
    COMPUTE_CAPABILITY_MAJOR = 75
    COMPUTE_CAPABILITY_MINOR = 76
    MANAGED_MEMORY = 83


class ctx_flags(enum.IntFlag):
    """How a context waits."""

    SCHED_AUTO = 0
    SCHED_SPIN = 1
    SCHED_YIELD = 2
    SCHED_BLOCKING_SYNC = 4
    SCHED_MASK = 7
    MAP_HOST = 8
    LMEM_RESIZE_TO_MAX = 16
    FLAGS_MASK = 31


class event_flags(enum.IntFlag):
    """How an event is made."""

    DEFAULT = 0
    BLOCKING_SYNC = 1
    DISABLE_TIMING = 2
    INTERPROCESS = 4


class host_alloc_flags(enum.IntFlag):
    """How page-locked memory is allocated."""

    PORTABLE = 1
    DEVICEMAP = 2
    WRITECOMBINED = 4


class mem_host_register_flags(enum.IntFlag):
    """How host memory is page-locked."""

    PORTABLE = 1
    DEVICEMAP = 2
