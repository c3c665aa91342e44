"""What PyCUDA's factories of elementwise kernels share."""

from __future__ import annotations

from typing import Any

from . import _core
from ._c_types import dtype_to_ctype
from ._elementwise_source import get_elwise_kernel
from ._errors import Unsupported


def typed(arguments: str, **types: Any) -> str:
    """Fills the C names of dtypes into a declaration."""
    return arguments.format(**{name: dtype_to_ctype(dtype) for name, dtype in types.items()})


def unary(value: str, dtype: Any, dtype_z: Any, name: str) -> _core.Function:
    arguments = typed("{y} *y, {z} *z", y=dtype, z=dtype_z)
    return get_elwise_kernel(arguments, f"z[i] = {value}", name)


def no_textures(name: str) -> Unsupported:
    return Unsupported(
        f"{name}: its kernel reads through texture references, which drivers since CUDA 12 have not"
    )
