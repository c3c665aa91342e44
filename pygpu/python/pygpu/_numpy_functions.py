"""What numpy's own functions do with GPUArrays.

A numpy function never copies an array from the device by the way. Those that need shape and
dtype only answer; every other one raises `TypeError` that names what to call.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from . import cumath, gpuarray
from ._core import GPUArray

# They ask an array for its dtype only. numpy before 2 looks at the element of an array without
# axes, so they get the dtype itself.
_OF_DTYPES = {np.can_cast, np.result_type}
# They ask an array for its shape and dtype only.
_WITHOUT_ELEMENTS = {
    np.common_type,
    np.iscomplexobj,
    np.isrealobj,
    np.ndim,
    np.shape,
    np.size,
}

# What stands for a function of numpy where nothing has its name.
_INSTEAD = {
    "amax": "gpuarray.max(a)",
    "amin": "gpuarray.min(a)",
    "around": "a.round()",
    "array_equal": "a.shape == b.shape and bool((a == b).all())",
    "array_repr": "repr(a)",
    "array_str": "str(a)",
    "copyto": "a[...] = b",
    "expand_dims": "a[None]",
    "flip": "a[::-1]",
    "full_like": "gpuarray.empty_like(a).fill(value)",
    "hstack": "gpuarray.concatenate",
    "put": "gpuarray.multi_put",
    "vdot": "gpuarray.dot(a.conj(), b)",
    "vstack": "gpuarray.concatenate",
}


def _instead(name: str) -> str:
    if name in _INSTEAD:
        return _INSTEAD[name]
    for module, prefix in ((gpuarray, "gpuarray"), (cumath, "cumath")):
        if name in getattr(module, "__all__", ()):
            return f"{prefix}.{name}"
    method = getattr(GPUArray, name, None)
    if method is not None and not name.startswith("_"):
        return f"a.{name}()" if callable(method) else f"a.{name}"
    return ""


def _stand_in(value: Any) -> Any:
    """A numpy array of the same shape and dtype that has memory for one element only."""
    if isinstance(value, GPUArray):
        return np.broadcast_to(np.zeros((), value.dtype), value.shape)
    if isinstance(value, tuple | list):
        return type(value)(map(_stand_in, value))
    return value


def array_function(func: Any, types: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Serves `GPUArray.__array_function__`.

    Raises
    ------
    TypeError
        The function needs the elements; the text says what to call instead.
    """
    if not all(issubclass(kind, GPUArray | np.ndarray) for kind in types):
        return NotImplemented
    if func in _OF_DTYPES:
        return func(*(a.dtype if isinstance(a, GPUArray) else a for a in args), **kwargs)
    if func in _WITHOUT_ELEMENTS:
        given = {name: _stand_in(value) for name, value in kwargs.items()}
        return func(*map(_stand_in, args), **given)
    name = func.__name__
    instead = _instead(name)
    on_device = f"call {instead} on the device, or " if instead else ""
    raise TypeError(
        f"{func.__module__}.{name} does not work on a GPUArray: {on_device}copy the elements to "
        "the host with a.get() first"
    )
