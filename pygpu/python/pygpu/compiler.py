"""Kernels from source, with the names of ``pycuda.compiler``.

No backend of this version compiles kernels; every entry says so with
:class:`pygpu.driver.Unsupported`, which is a ``NotImplementedError``.
"""

from __future__ import annotations

from typing import Any

from ._core import choose_backend
from ._errors import Unsupported

__all__ = ["SourceModule", "compile"]


def _unsupported() -> Unsupported:
    return Unsupported(
        f"the {choose_backend()} backend does not compile kernels from source in this version"
    )


def compile(source: str, *args: Any, **kwargs: Any) -> bytes:
    """Compiles CUDA C to code for the device."""
    raise _unsupported()


class SourceModule:
    """A module compiled from CUDA C."""

    def __init__(self, source: str, *args: Any, **kwargs: Any) -> None:
        raise _unsupported()
