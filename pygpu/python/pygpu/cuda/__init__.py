"""The memory management of ``numba.cuda`` on every backend: ``from pygpu import cuda``.

The functions and classes have numba's names and rules. Arrays are
:class:`pygpu.gpuarray.GPUArray` with numba's methods, so all functions of this package take them;
numba takes them by ``__cuda_array_interface__``. ``stream=0`` is the default stream.

Kernels are compiled by :class:`pygpu.compiler.SourceModule`, or by numba's own ``jit``; with
``NUMBA_CUDA_MEMORY_MANAGER=pygpu.numba`` numba uses this package's memory.
"""

from typing import TYPE_CHECKING, Any

from .._lazy import exports as _exports

if TYPE_CHECKING:
    from . import cudadrv as cudadrv
    from ._context import *  # noqa: F403
    from ._creation import *  # noqa: F403
    from ._devices import *  # noqa: F403
    from ._stream import *  # noqa: F403
    from .cudadrv import devicearray as devicearray
    from .cudadrv import devices as devices
    from .cudadrv import driver as driver
else:
    _get, __dir__, __all__ = _exports(
        __name__,
        {
            ".": "cudadrv",
            ".cuda._context": "IpcHandle MemoryInfo",
            ".cuda._creation": """
                as_cuda_array device_array device_array_like from_cuda_array_interface
                is_cuda_array managed_array mapped mapped_array mapped_array_like open_ipc_array
                pinned pinned_array pinned_array_like to_device""",
            ".cuda._devices": """
                close current_context defer_cleanup detect get_current_device gpus is_available
                list_devices profile_start profile_stop profiling require_context select_device
                synchronize""",
            ".cuda._stream": """
                default_stream event event_elapsed_time external_stream legacy_default_stream
                per_thread_default_stream stream""",
            ".cuda.cudadrv": "devicearray devices driver",
        },
    )

    def __getattr__(name: str) -> Any:
        if name in __all__:
            return _get(name)
        raise AttributeError(
            f"pygpu.cuda has no {name!r}: it manages memory. Kernels are compiled by numba.cuda, "
            "which takes these arrays, or by pygpu.compiler.SourceModule"
        )
