"""Kernels from source, with the names of ``pycuda.compiler``.

The vendor's run-time compiler is called in this process, and what it makes is kept in the folder
that ``PYGPU_CACHE_DIR`` names. For NVIDIA's devices ``nvcc`` is run if a program asks for it: by a
path in place of the name ``nvcc``, or by an option or a target that only it has.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from ._lazy import names as _names

if TYPE_CHECKING:
    from ._compile.compilation import compile, compile_plain
    from ._compile.kernel_modules import (
        CudaModule,
        DynamicModule,
        DynamicSourceModule,
        SourceModule,
    )
    from ._compile.nvcc import get_nvcc_version, preprocess_source
else:
    __getattr__, __dir__ = _names(
        __name__,
        {
            "._compile.compilation": "compile compile_plain",
            "._compile.kernel_modules": """
                CudaModule DynamicModule DynamicSourceModule SourceModule""",
            "._compile.nvcc": "get_nvcc_version preprocess_source",
        },
    )

__all__ = [
    "DEFAULT_NVCC_FLAGS",
    "CudaModule",
    "DynamicModule",
    "DynamicSourceModule",
    "SourceModule",
    "compile",
    "compile_plain",
    "get_nvcc_version",
    "preprocess_source",
]

DEFAULT_NVCC_FLAGS = os.environ.get("PYCUDA_DEFAULT_NVCC_FLAGS", "").split()
