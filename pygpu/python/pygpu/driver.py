"""Devices, contexts, streams, events, memory and kernels, with the names of ``pycuda.driver``.

Examples
--------
>>> driver.init()
>>> driver.get_version() >= (12, 0, 0), driver.get_driver_version() >= 0, driver.have_gl_ext()
(True, True, False)
>>> driver.set_debugging(False)
>>> driver.start_profiler()
>>> driver.stop_profiler()
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from . import _core
from ._core import ManagedAllocation as ManagedAllocation
from ._core import PagelockedHostAllocation as PagelockedHostAllocation
from ._errors import LogicError as LogicError
from ._errors import Unsupported as Unsupported
from ._lazy import exports as _exports

if TYPE_CHECKING:
    from ._core import *  # noqa: F403
    from ._driver.device import Context as Context
    from ._driver.device import Device as Device
    from ._driver.enumerations import *  # noqa: F403
    from ._driver.memcpy import *  # noqa: F403
    from ._driver.memory import *  # noqa: F403
    from ._driver.opengl import *  # noqa: F403
    from ._driver.texture_arrays import Array as Array
    from ._driver.texture_arrays import ArrayDescriptor as ArrayDescriptor
    from ._driver.texture_arrays import ArrayDescriptor3D as ArrayDescriptor3D
    from ._driver.texture_arrays import dtype_to_array_format as dtype_to_array_format
    from ._driver.textures import TR_DEFAULT as TR_DEFAULT
    from ._driver.textures import TRSA_OVERRIDE_FORMAT as TRSA_OVERRIDE_FORMAT
    from ._driver.textures import TRSF_NORMALIZED_COORDINATES as TRSF_NORMALIZED_COORDINATES
    from ._driver.textures import TRSF_READ_AS_INTEGER as TRSF_READ_AS_INTEGER
    from ._driver.textures import SurfaceReference as SurfaceReference
    from ._driver.textures import TextureReference as TextureReference
    from ._errors import BackendUnavailable as BackendUnavailable
    from ._errors import CompileError as CompileError
    from ._errors import Error as Error
    from ._errors import LaunchError as LaunchError
    from ._errors import MemoryError as MemoryError
    from ._errors import RuntimeError as RuntimeError
else:
    __getattr__, __dir__, __all__ = _exports(
        __name__,
        {
            "._core": """
                ArgumentHandler Capture DeviceAllocation DeviceMemoryPool Event Function Graph In
                InOut IPCMemoryHandle Linker Module Out PageLockedAllocator PageLockedMemoryPool
                PooledDeviceAllocation PooledHostAllocation RegisteredHostMemory Stream bitlog2
                managed_empty mem_alloc mem_alloc_pitch mem_get_address_range mem_get_info
                mem_get_ipc_handle memcpy_dtod memcpy_dtod_async memcpy_dtoh memcpy_dtoh_async
                memcpy_htod memcpy_htod_async memset_d16 memset_d16_async memset_d2d16
                memset_d2d16_async memset_d2d32 memset_d2d32_async memset_d2d8 memset_d2d8_async
                memset_d32 memset_d32_async memset_d8 memset_d8_async module_from_buffer
                module_from_file pagelocked_empty register_host_memory""",
            "._driver.device": "Context Device",
            "._driver.enumerations": """
                address_mode array3d_flags array_cubemap_face array_format compute_mode ctx_flags
                device_attribute event_flags filter_mode func_cache function_attribute
                graphics_map_flags graphics_register_flags host_alloc_flags ipc_mem_flags
                jit_fallback jit_input_type jit_option jit_target limit mem_attach_flags
                mem_host_register_flags memory_type pointer_attribute profiler_output_mode
                shared_config""",
            "._driver.memcpy": """
                Memcpy2D Memcpy3D Memcpy3DPeer bind_array_to_texref gpuarray_to_array
                make_multichannel_2d_array matrix_to_array matrix_to_texref memcpy_atoa
                memcpy_atod memcpy_atoh memcpy_dtoa memcpy_htoa np_to_array py_memcpy_atoh
                py_memcpy_htoa""",
            "._driver.memory": """
                AlignedHostAllocation HostPointer PointerHolderBase aligned_empty
                aligned_empty_like aligned_zeros aligned_zeros_like from_device from_device_like
                managed_empty_like managed_zeros managed_zeros_like mem_alloc_like memcpy_peer
                memcpy_peer_async pagelocked_empty_like pagelocked_zeros pagelocked_zeros_like
                to_device""",
            "._driver.opengl": """
                BufferObject BufferObjectMapping RegisteredBuffer RegisteredImage
                RegisteredMapping RegisteredObject gl_init make_gl_context""",
            "._driver.texture_arrays": """
                Array ArrayDescriptor ArrayDescriptor3D dtype_to_array_format""",
            "._driver.textures": """
                SurfaceReference TRSA_OVERRIDE_FORMAT TRSF_NORMALIZED_COORDINATES
                TRSF_READ_AS_INTEGER TR_DEFAULT TextureReference""",
            "._errors": """
                BackendUnavailable CompileError Error LaunchError MemoryError RuntimeError""",
        },
    )
    __all__ += ["HostAllocation", "LogicError", "ManagedAllocation", "ManagedAllocationOrStub"]
    __all__ += ["PagelockedHostAllocation", "Unsupported", "get_driver_version", "get_version"]
    __all__ += ["have_gl_ext", "init", "initialize_profiler", "set_debugging", "start_profiler"]
    __all__ += ["stop_profiler"]


def init(flags: int = 0) -> None:
    """Opens the backend of ``PYGPU_BACKEND``, or the first available one, like any use of a device.

    ``flags`` is 0. Raises ``BackendUnavailable`` if it cannot be opened; the message says what was
    searched.
    """
    if flags != 0:
        raise LogicError(f"flags is {flags}; only 0 is allowed")
    _core.init()


# The version of CUDA of AMD's devices and the host, where kernels have it as CUDART_VERSION.
_CUDA_ELSEWHERE = (12, 8, 0)


def get_driver_version() -> int:
    """Returns ``1000 * major + 10 * minor`` of the driver's version of CUDA or HIP, or of pygpu."""
    return _core.driver_version()


def get_version() -> tuple[int, int, int]:
    """Returns the driver's version of CUDA as major, minor and 0; without CUDA, a fixed one.

    PyCUDA returns the toolkit's.
    """
    if _core.choose_backend() != "cuda":
        return _CUDA_ELSEWHERE
    version = _core.driver_version()
    return (version // 1000, version % 1000 // 10, version % 10)


def initialize_profiler(config_file: str, output_file: str, output_mode: int) -> None:
    """Raises ``Unsupported``: no driver since CUDA 12 takes such a configuration.

    ``config_file``, ``output_file`` and ``output_mode`` were the configuration.
    """
    raise Unsupported("the profiler takes no configuration; attach one to the process")


def start_profiler() -> None:
    """Makes the profiler that is attached to the process, if any, start recording."""
    _core.set_profiling(True)


def stop_profiler() -> None:
    """Stops the recording of :func:`start_profiler`."""
    _core.set_profiling(False)


def have_gl_ext() -> bool:
    """Returns False: arrays cannot be shared with OpenGL."""
    return False


CUDA_DEBUGGING = False


def set_debugging(flag: bool = True) -> None:
    """Sets ``driver.CUDA_DEBUGGING`` to ``flag``: True compiles kernels for a debugger."""
    global CUDA_DEBUGGING
    CUDA_DEBUGGING = flag


HostAllocation = PagelockedHostAllocation
ManagedAllocationOrStub = ManagedAllocation
