"""Kernels from source, with the names of ``pycuda.compiler``.

pygpu calls the vendor's run-time compiler in this process, and keeps its output in the folder
``PYGPU_CACHE_DIR``. For NVIDIA's devices it runs ``nvcc`` only if the argument ``nvcc`` names
another program or a path, or if an option or the target exists only in ``nvcc``.
"""

import os
from typing import TYPE_CHECKING

from ._lazy import exports as _exports

if TYPE_CHECKING:
    from ._compile.compilation import *  # noqa: F403
    from ._compile.kernel_modules import *  # noqa: F403
else:
    __getattr__, __dir__, __all__ = _exports(
        __name__,
        {
            "._compile.compilation": "compile compile_plain get_nvcc_version preprocess_source",
            "._compile.kernel_modules": """
                CudaModule DynamicModule DynamicSourceModule SourceModule""",
        },
    )
    __all__ += ["DEFAULT_NVCC_FLAGS"]


DEFAULT_NVCC_FLAGS = os.environ.get("PYCUDA_DEFAULT_NVCC_FLAGS", "").split()
