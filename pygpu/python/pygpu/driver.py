"""Devices, contexts, streams, events, memory and kernels, with the names of ``pycuda.driver``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from . import _core
from ._core import (
    Capture,
    DeviceAllocation,
    DeviceMemoryPool,
    Event,
    Function,
    Graph,
    IPCMemoryHandle,
    Linker,
    ManagedAllocation,
    Module,
    PageLockedAllocator,
    PagelockedHostAllocation,
    PageLockedMemoryPool,
    PooledDeviceAllocation,
    PooledHostAllocation,
    RegisteredHostMemory,
    Stream,
    bitlog2,
    managed_empty,
    mem_alloc,
    mem_alloc_pitch,
    mem_get_address_range,
    mem_get_info,
    mem_get_ipc_handle,
    module_from_buffer,
    module_from_file,
    pagelocked_empty,
    register_host_memory,
)
from ._errors import (
    BackendUnavailable,
    CompileError,
    Error,
    LaunchError,
    LogicError,
    MemoryError,
    RuntimeError,
    Unsupported,
)
from ._lazy import names as _names

if TYPE_CHECKING:
    from ._driver.device import Context, Device
    from ._driver.enumerations import (
        address_mode,
        array3d_flags,
        array_cubemap_face,
        array_format,
        compute_mode,
        ctx_flags,
        device_attribute,
        event_flags,
        filter_mode,
        func_cache,
        function_attribute,
        graphics_map_flags,
        graphics_register_flags,
        host_alloc_flags,
        ipc_mem_flags,
        jit_fallback,
        jit_input_type,
        jit_option,
        jit_target,
        limit,
        mem_attach_flags,
        mem_host_register_flags,
        memory_type,
        pointer_attribute,
        profiler_output_mode,
        shared_config,
    )
    from ._driver.handlers import (
        ArgumentHandler,
        In,
        InOut,
        Out,
    )
    from ._driver.host_memory import (
        AlignedHostAllocation,
        HostPointer,
        aligned_empty,
        aligned_empty_like,
        aligned_zeros,
        aligned_zeros_like,
        managed_empty_like,
        managed_zeros,
        managed_zeros_like,
        pagelocked_empty_like,
        pagelocked_zeros,
        pagelocked_zeros_like,
    )
    from ._driver.memcpy import (
        Memcpy2D,
        Memcpy3D,
        Memcpy3DPeer,
    )
    from ._driver.memory import (
        PointerHolderBase,
        from_device,
        from_device_like,
        mem_alloc_like,
        memcpy_dtod,
        memcpy_dtod_async,
        memcpy_dtoh,
        memcpy_dtoh_async,
        memcpy_htod,
        memcpy_htod_async,
        memcpy_peer,
        memcpy_peer_async,
        memset_d2d8,
        memset_d2d8_async,
        memset_d2d16,
        memset_d2d16_async,
        memset_d2d32,
        memset_d2d32_async,
        memset_d8,
        memset_d8_async,
        memset_d16,
        memset_d16_async,
        memset_d32,
        memset_d32_async,
        to_device,
    )
    from ._driver.opengl import (
        BufferObject,
        BufferObjectMapping,
        RegisteredBuffer,
        RegisteredImage,
        RegisteredMapping,
        RegisteredObject,
        gl_init,
        make_gl_context,
    )
    from ._driver.surfaces import SurfaceReference
    from ._driver.texture_arrays import (
        Array,
        ArrayDescriptor,
        ArrayDescriptor3D,
        dtype_to_array_format,
    )
    from ._driver.texture_copies import (
        bind_array_to_texref,
        gpuarray_to_array,
        make_multichannel_2d_array,
        matrix_to_array,
        matrix_to_texref,
        memcpy_atoa,
        memcpy_atod,
        memcpy_atoh,
        memcpy_dtoa,
        memcpy_htoa,
        np_to_array,
        py_memcpy_atoh,
        py_memcpy_htoa,
    )
    from ._driver.textures import (
        TR_DEFAULT,
        TRSA_OVERRIDE_FORMAT,
        TRSF_NORMALIZED_COORDINATES,
        TRSF_READ_AS_INTEGER,
        TextureReference,
    )
else:
    __getattr__, __dir__ = _names(
        __name__,
        {
            "._driver.device": "Context Device",
            "._driver.handlers": "ArgumentHandler In InOut Out",
            "._driver.host_memory": """
                AlignedHostAllocation HostPointer aligned_empty aligned_empty_like aligned_zeros
                aligned_zeros_like managed_empty_like managed_zeros managed_zeros_like
                pagelocked_empty_like pagelocked_zeros pagelocked_zeros_like""",
            "._driver.memcpy": "Memcpy2D Memcpy3D Memcpy3DPeer",
            "._driver.memory": """
                PointerHolderBase from_device from_device_like mem_alloc_like memcpy_dtod
                memcpy_dtod_async memcpy_dtoh memcpy_dtoh_async memcpy_htod memcpy_htod_async
                memcpy_peer memcpy_peer_async memset_d16 memset_d16_async memset_d2d16
                memset_d2d16_async memset_d2d32 memset_d2d32_async memset_d2d8 memset_d2d8_async
                memset_d32 memset_d32_async memset_d8 memset_d8_async to_device""",
            "._driver.opengl": """
                BufferObject BufferObjectMapping RegisteredBuffer RegisteredImage
                RegisteredMapping RegisteredObject gl_init make_gl_context""",
            "._driver.surfaces": "SurfaceReference",
            "._driver.texture_arrays": """
                Array ArrayDescriptor ArrayDescriptor3D dtype_to_array_format""",
            "._driver.texture_copies": """
                bind_array_to_texref gpuarray_to_array make_multichannel_2d_array matrix_to_array
                matrix_to_texref memcpy_atoa memcpy_atod memcpy_atoh memcpy_dtoa memcpy_htoa
                np_to_array py_memcpy_atoh py_memcpy_htoa""",
            "._driver.textures": """
                TRSA_OVERRIDE_FORMAT TRSF_NORMALIZED_COORDINATES TRSF_READ_AS_INTEGER TR_DEFAULT
                TextureReference""",
            "._driver.enumerations": """
                address_mode array3d_flags array_cubemap_face array_format compute_mode ctx_flags
                device_attribute event_flags filter_mode func_cache function_attribute
                graphics_map_flags graphics_register_flags host_alloc_flags ipc_mem_flags
                jit_fallback jit_input_type jit_option jit_target limit mem_attach_flags
                mem_host_register_flags memory_type pointer_attribute profiler_output_mode
                shared_config""",
        },
    )


__all__ = [
    "TRSA_OVERRIDE_FORMAT",
    "TRSF_NORMALIZED_COORDINATES",
    "TRSF_READ_AS_INTEGER",
    "TR_DEFAULT",
    "AlignedHostAllocation",
    "ArgumentHandler",
    "Array",
    "ArrayDescriptor",
    "ArrayDescriptor3D",
    "BackendUnavailable",
    "BufferObject",
    "BufferObjectMapping",
    "Capture",
    "CompileError",
    "Context",
    "Device",
    "DeviceAllocation",
    "DeviceMemoryPool",
    "Error",
    "Event",
    "Function",
    "Graph",
    "HostAllocation",
    "HostPointer",
    "IPCMemoryHandle",
    "In",
    "InOut",
    "LaunchError",
    "Linker",
    "LogicError",
    "ManagedAllocation",
    "ManagedAllocationOrStub",
    "Memcpy2D",
    "Memcpy3D",
    "Memcpy3DPeer",
    "MemoryError",
    "Module",
    "Out",
    "PageLockedAllocator",
    "PageLockedMemoryPool",
    "PagelockedHostAllocation",
    "PointerHolderBase",
    "PooledDeviceAllocation",
    "PooledHostAllocation",
    "RegisteredBuffer",
    "RegisteredHostMemory",
    "RegisteredImage",
    "RegisteredMapping",
    "RegisteredObject",
    "RuntimeError",
    "Stream",
    "SurfaceReference",
    "TextureReference",
    "Unsupported",
    "address_mode",
    "aligned_empty",
    "aligned_empty_like",
    "aligned_zeros",
    "aligned_zeros_like",
    "array3d_flags",
    "array_cubemap_face",
    "array_format",
    "bind_array_to_texref",
    "bitlog2",
    "compute_mode",
    "ctx_flags",
    "device_attribute",
    "dtype_to_array_format",
    "event_flags",
    "filter_mode",
    "from_device",
    "from_device_like",
    "func_cache",
    "function_attribute",
    "get_driver_version",
    "get_version",
    "gl_init",
    "gpuarray_to_array",
    "graphics_map_flags",
    "graphics_register_flags",
    "have_gl_ext",
    "host_alloc_flags",
    "init",
    "initialize_profiler",
    "ipc_mem_flags",
    "jit_fallback",
    "jit_input_type",
    "jit_option",
    "jit_target",
    "limit",
    "make_gl_context",
    "make_multichannel_2d_array",
    "managed_empty",
    "managed_empty_like",
    "managed_zeros",
    "managed_zeros_like",
    "matrix_to_array",
    "matrix_to_texref",
    "mem_alloc",
    "mem_alloc_like",
    "mem_alloc_pitch",
    "mem_attach_flags",
    "mem_get_address_range",
    "mem_get_info",
    "mem_get_ipc_handle",
    "mem_host_register_flags",
    "memcpy_atoa",
    "memcpy_atod",
    "memcpy_atoh",
    "memcpy_dtoa",
    "memcpy_dtod",
    "memcpy_dtod_async",
    "memcpy_dtoh",
    "memcpy_dtoh_async",
    "memcpy_htoa",
    "memcpy_htod",
    "memcpy_htod_async",
    "memcpy_peer",
    "memcpy_peer_async",
    "memory_type",
    "memset_d2d8",
    "memset_d2d8_async",
    "memset_d2d16",
    "memset_d2d16_async",
    "memset_d2d32",
    "memset_d2d32_async",
    "memset_d8",
    "memset_d8_async",
    "memset_d16",
    "memset_d16_async",
    "memset_d32",
    "memset_d32_async",
    "module_from_buffer",
    "module_from_file",
    "np_to_array",
    "pagelocked_empty",
    "pagelocked_empty_like",
    "pagelocked_zeros",
    "pagelocked_zeros_like",
    "pointer_attribute",
    "profiler_output_mode",
    "py_memcpy_atoh",
    "py_memcpy_htoa",
    "register_host_memory",
    "set_debugging",
    "shared_config",
    "start_profiler",
    "stop_profiler",
    "to_device",
]


def init(flags: int = 0) -> None:
    """Opens the backend that ``PYGPU_BACKEND`` names, or the best one available. The first use of a
    device does so, too.

    Parameters
    ----------
    flags : int
        0.

    Raises
    ------
    BackendUnavailable
        There is no such backend; the message says what was looked for.

    Examples
    --------
    >>> driver.init()
    """
    if flags != 0:
        raise LogicError(f"flags is {flags}; only 0 is allowed")
    _core.init()


# The version of CUDA whose interface AMD's devices and the host have: what kernels on the host see
# as CUDART_VERSION.
_CUDA_ELSEWHERE = (12, 8, 0)


def get_driver_version() -> int:
    """Returns the version of CUDA or HIP in the driver's form, on CUDA ``1000 * major + 10 *
    minor``; on the host that of this library.

    Examples
    --------
    >>> driver.get_driver_version() >= 0
    True
    """
    return _core.driver_version()


def get_version() -> tuple[int, int, int]:
    """Returns major and minor version of CUDA, and 0: the driver's on NVIDIA's devices, one version
    on all others. PyCUDA returns the toolkit's.

    Examples
    --------
    >>> driver.get_version() >= (12, 0, 0)
    True
    """
    if _core.choose_backend() != "cuda":
        return _CUDA_ELSEWHERE
    version = _core.driver_version()
    return (version // 1000, version % 1000 // 10, version % 10)


def initialize_profiler(config_file: str, output_file: str, output_mode: int) -> None:
    """Raises ``Unsupported``: no driver since CUDA 12 takes a configuration.

    Parameters
    ----------
    config_file, output_file : str
        Names of files.
    output_mode : profiler_output_mode
        The format of the output.

    Raises
    ------
    Unsupported
        Always.

    Examples
    --------
    >>> driver.initialize_profiler("", "", driver.profiler_output_mode.CSV)
    Traceback (most recent call last):
        ...
    pygpu._errors.Unsupported: the profiler takes no configuration; attach one to the process
    """
    raise Unsupported("the profiler takes no configuration; attach one to the process")


def start_profiler() -> None:
    """Starts recording in the profiler that is attached to the process; does nothing without one.

    Examples
    --------
    >>> driver.start_profiler()
    >>> driver.stop_profiler()
    """
    _core.set_profiling(True)


def stop_profiler() -> None:
    """Ends what :func:`start_profiler` began.

    Examples
    --------
    >>> driver.stop_profiler()
    """
    _core.set_profiling(False)


def have_gl_ext() -> bool:
    """Returns False: arrays cannot be shared with OpenGL.

    Examples
    --------
    >>> driver.have_gl_ext()
    False
    """
    return False


CUDA_DEBUGGING = False


def set_debugging(flag: bool = True) -> None:
    """Sets whether kernels are compiled for a debugger from now on, as ``driver.CUDA_DEBUGGING``
    says. Such kernels run slower.

    Parameters
    ----------
    flag : bool
        Whether they are.

    Examples
    --------
    >>> driver.set_debugging()
    >>> driver.set_debugging(False)
    """
    global CUDA_DEBUGGING
    CUDA_DEBUGGING = flag


HostAllocation = PagelockedHostAllocation
ManagedAllocationOrStub = ManagedAllocation
