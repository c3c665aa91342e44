"""Host memory as arguments, and ``pyarrow`` where it is needed."""

from __future__ import annotations

import importlib.util
import sys
from typing import Any

import numpy as np


def require_pyarrow(why: str) -> Any:
    """Returns the module ``pyarrow``.

    Raises
    ------
    ImportError
        It is not installed.
    """
    try:
        import pyarrow  # type: ignore[import-untyped]
    except ImportError as error:
        raise ImportError(f"{why} needs pyarrow: pip install pyarrow") from error
    return pyarrow


def has_pyarrow() -> bool:
    """Returns whether ``pyarrow`` can be imported."""
    return importlib.util.find_spec("pyarrow") is not None


def arrow_type_error() -> type[TypeError]:
    """Returns pyarrow's own exception where a program has imported pyarrow, else `TypeError`."""
    return getattr(sys.modules.get("pyarrow"), "ArrowTypeError", TypeError)


def host_bytes(name: str, data: Any, writable: bool = False) -> np.ndarray:
    """Returns the bytes of an object in host memory as a numpy array, in the order of memory.

    Raises
    ------
    TypeError
        The object has no buffer protocol.
    BufferError
        It is a device buffer.
    ValueError
        Its memory has gaps, or is for reading only and ``writable`` is true.
    """
    try:
        view = memoryview(data)
    except TypeError:
        raise TypeError(
            f"{name} is of type {type(data).__name__}; an object in host memory with the buffer "
            "protocol is needed"
        ) from None
    if not view.contiguous:
        raise ValueError(f"{name} has gaps between its elements; copy it first")
    if writable and view.readonly:
        raise ValueError(f"{name} is for reading only; the copy writes to it")
    if view.nbytes == 0:
        return np.empty(0, np.uint8)
    if not view.c_contiguous:
        data = np.asarray(view).T
    return np.frombuffer(data, np.uint8)
