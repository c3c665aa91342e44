"""Reports which device memory is alive and where it was allocated, at any time or at exit.

Python's `tracemalloc` remembers where each object was made, including arrays and allocations, which
stand for device memory. Memory that only a graph, a texture's array or a pool keeps is not in the
report. Unless the environment asks for the report, nothing is imported, and nothing is done at
exit.
"""

from __future__ import annotations

import atexit
import gc
import importlib
import os
import sys
import tracemalloc
from collections.abc import Callable, Hashable
from typing import Any, NamedTuple, TypeVar

from .. import _core
from .._core import DeviceAllocation, DeviceMemoryPool, GPUArray, PooledDeviceAllocation

_PACKAGE = os.path.dirname(os.path.dirname(__file__)) + os.sep
# Frames of a traceback that are kept.
_FRAMES = 16
# The addresses of the parent process's device memory, which is not this process's to report.
_inherited: set[int] = set()
_ON, _OFF = ("1", "on", "true", "yes"), ("0", "off", "false", "no")


class _Piece(NamedTuple):
    """Device memory, and the object that keeps it alive."""

    start: int
    end: int
    kept_by: Any


def _pieces() -> list[_Piece]:
    """Returns the device memory that objects keep alive. Memory that several objects share is
    counted once, for the largest of them.
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


_Place = TypeVar("_Place", bound=Hashable)


def _places(name: Callable[[_Piece], _Place]) -> list[tuple[_Place, int, int]]:
    """Returns the bytes and the number of objects for each name, the most memory first."""
    gc.collect()
    places: dict[_Place, list[int]] = {}
    for piece in _pieces():
        total = places.setdefault(name(piece), [0, 0])
        total[0] += piece.end - piece.start
        total[1] += 1
    found = [(place, size, count) for place, (size, count) in places.items()]
    return sorted(found, key=lambda it: -it[1])


def _traceback(piece: _Piece) -> tuple[str, ...]:
    trace = tracemalloc.get_object_traceback(piece.kept_by)
    return ("  before the report was switched on",) if trace is None else tuple(trace.format())


def report() -> str:
    """Returns the memory that is alive, by traceback, most memory first; "" if there is none."""
    places = _places(_traceback)
    if not places:
        return ""
    total, count = sum(it[1] for it in places), sum(it[2] for it in places)
    text = [f"pygpu: {total} bytes of device memory are alive at exit, in {count} objects"]
    for place, size, number in places:
        text.append(f"{size} bytes in {number} objects, made at")
        text.extend(place)
    return "\n".join(text) + "\n"


def _line(piece: _Piece) -> str:
    """Returns the line of the program that made the memory."""
    for frame in reversed(tracemalloc.get_object_traceback(piece.kept_by) or ()):
        if not frame.filename.startswith(_PACKAGE):
            return f"{frame.filename}:{frame.lineno}"
    return _core.recorded_memory(piece.start)[0] or "unknown line"


class MemoryReport(NamedTuple):
    """The device memory of a program, from :func:`pygpu.memory_report`. Sizes are bytes."""

    live: list[tuple[str, int, int]]
    """The memory that objects keep alive: line, bytes and objects, the most bytes first."""
    pools: list[tuple[int, int]]
    """The bytes that each ``DeviceMemoryPool`` has, and those of them that are in use."""
    kept: int
    """Freed memory that the current device keeps for later arrays."""
    free: int
    """The free memory of the current device, as its driver reports it."""
    total: int
    """All memory of the current device."""
    peak: int | None
    """The greatest change of the allocated bytes since recording began; None if nothing records."""

    def __str__(self) -> str:
        size, count = sum(it[1] for it in self.live), sum(it[2] for it in self.live)
        text = [f"{size} bytes are alive, in {count} objects"]
        text += [
            f"  {size} bytes in {count} objects, made at {line}" for line, size, count in self.live
        ]
        text += [f"a pool has {size} bytes, {active} of them in use" for size, active in self.pools]
        text.append(f"{self.kept} freed bytes are kept for later arrays")
        text.append(f"the device has {self.free} free bytes of {self.total}")
        if self.peak is not None:
            text.append(f"at most {self.peak} bytes more than when recording began")
        if any(line == "unknown line" for line, *_ in self.live):
            text.append("lines are known in a profile, with tracemalloc, or with PYGPU_LEAKS=1")
        return "\n".join(text)


def memory_report() -> MemoryReport:
    """Returns the device memory that is alive, by the line that allocated it, and the totals.

    Lines are known for memory that was made inside :class:`pygpu.profile`, under ``pygpu profile``,
    while ``tracemalloc`` traces, or with ``PYGPU_LEAKS=1``. ``print`` shows the report as text.

    >>> import pygpu
    >>> with pygpu.profile():
    ...     kept = gpuarray.zeros(1000, np.float32)
    ...     report = pygpu.memory_report()
    >>> sum(size for line, size, count in report.live) >= 4000, report.peak >= 4000
    (True, True)
    """
    live = _places(_line)
    pools = [it for it in gc.get_objects() if issubclass(type(it), DeviceMemoryPool)]
    sizes = [(pool.managed_bytes, pool.active_bytes) for pool in pools]
    free, total = _core.mem_get_info()
    return MemoryReport(live, sizes, _core.kept_memory(), free, total, _core.recorded_memory(0)[1])


def watch() -> None:
    """Begins to remember where memory is allocated, if the environment asks for it."""
    value = os.environ["PYGPU_LEAKS"].lower()
    if value in _OFF:
        return
    if value not in _ON:
        raise ValueError(f"PYGPU_LEAKS is {value!r}; allowed are {', '.join(_ON + _OFF)}")
    if not tracemalloc.is_tracing():
        # numpy's import is not traced, which would take it seconds.
        importlib.import_module("numpy")
        tracemalloc.start(_FRAMES)
    atexit.register(lambda: sys.stderr.write(report()))
    os.register_at_fork(after_in_child=lambda: _inherited.update([it.start for it in _pieces()]))
