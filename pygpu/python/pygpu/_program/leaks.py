"""A report at exit of the device memory that is still alive, and of where it was allocated.

Python's `tracemalloc` remembers where each object was made, those that stand for device memory
among them: arrays and allocations. Memory that only a graph, a texture's array or a pool keeps is
not in the report. Nothing is done, and nothing is imported, unless the environment asks for the
report.
"""

from __future__ import annotations

import atexit
import gc
import importlib
import os
import sys
import tracemalloc
from typing import Any, NamedTuple

from .._core import DeviceAllocation, GPUArray, PooledDeviceAllocation

# Frames of a traceback that are kept.
_FRAMES = 16
# Where the memory of the process lies that this one was forked from, which is that one's.
_inherited: set[int] = set()
_ON, _OFF = ("1", "on", "true", "yes"), ("0", "off", "false", "no")


class _Piece(NamedTuple):
    """Device memory, and the object that keeps it alive."""

    start: int
    end: int
    kept_by: Any


def _pieces() -> list[_Piece]:
    """Returns the device memory that objects keep alive: each byte once, with the object that has
    the most of it.
    """
    found = []
    gc.unfreeze()
    for item in gc.get_objects():
        kind = type(item)
        try:
            if issubclass(kind, GPUArray):
                start, size = (int(item.gpudata), item.nbytes) if item.base is None else (0, 0)
            elif issubclass(kind, DeviceAllocation | PooledDeviceAllocation):
                start, size = int(item), item.size
            else:
                continue
        except Exception:
            # Memory that has been freed by hand has no address.
            continue
        if size and start not in _inherited:
            found.append(_Piece(start, start + size, item))
    kept: list[_Piece] = []
    for piece in sorted(found, key=lambda piece: (piece.start, -piece.end)):
        if not kept or piece.end > kept[-1].end:
            kept.append(piece)
    return kept


def report() -> str:
    """Returns what is alive, the places with the most memory first; empty if nothing is."""
    gc.collect()
    places: dict[tuple[str, ...], list[int]] = {}
    for piece in _pieces():
        trace = tracemalloc.get_object_traceback(piece.kept_by)
        lines = ("  before the report was switched on",) if trace is None else trace.format()
        total = places.setdefault(tuple(lines), [0, 0])
        total[0] += piece.end - piece.start
        total[1] += 1
    if not places:
        return ""
    total, count = (sum(numbers) for numbers in zip(*places.values(), strict=True))
    text = [f"pygpu: {total} bytes of device memory are alive at exit, in {count} objects"]
    for place, (size, number) in sorted(places.items(), key=lambda item: -item[1][0]):
        text.append(f"{size} bytes in {number} objects, made at")
        text.extend(place)
    return "\n".join(text) + "\n"


def _forget_inherited() -> None:
    _inherited.update([piece.start for piece in _pieces()])


def _print_report() -> None:
    sys.stderr.write(report())


def watch() -> None:
    """Begins to remember where memory is allocated, if the environment asks for it."""
    value = os.environ["PYGPU_LEAKS"].lower()
    if value in _OFF:
        return
    if value not in _ON:
        raise ValueError(
            f"PYGPU_LEAKS is {value!r}; allowed are {', '.join(_ON)} and {', '.join(_OFF)}"
        )
    if not tracemalloc.is_tracing():
        # numpy's import is not traced, which would take it seconds.
        importlib.import_module("numpy")
        tracemalloc.start(_FRAMES)
    atexit.register(_print_report)
    os.register_at_fork(after_in_child=_forget_inherited)
