"""Arrays and devices as a notebook shows them."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING

import numpy as np

from .. import _core
from .._core import GPUArray
from .._errors import Error

if TYPE_CHECKING:
    from .._driver.device import Device

# Elements that are shown along each of the last two axes, and along the others.
_LAST, _OTHERS = 6, 2


def array_html(array: GPUArray) -> str:
    """Returns shape, dtype, device and the first elements in HTML."""
    shape = array.shape
    most = [_OTHERS] * (array.ndim - 2) + [_LAST] * min(array.ndim, 2)
    try:
        first = array[tuple(slice(length) for length in most)].get()
        values = np.array2string(np.asarray(first), threshold=first.size + 1)
        if any(length > shown for length, shown in zip(shape, most, strict=True)):
            values += "\n..."
    except Error as error:
        # For example, the stream captures.
        values = f"no elements: {error}"
    name = f"{type(array).__name__} {shape} {array.dtype} on {_named(array.device)}"
    return f"<div><code>{escape(name)}</code><pre>{escape(values)}</pre></div>"


def device_html(device: Device) -> str:
    """Returns name, architecture and memory in HTML."""
    major, minor = device.compute_capability()
    memory = device.total_memory() / 2**30
    text = f"{_named(device)}, compute capability {major}.{minor}, {memory:.1f} GiB"
    return f"<div><code>{escape(text)}</code></div>"


def _named(device: Device) -> str:
    return f"{_core.choose_backend()}:{device.ordinal} {device.name()}"
