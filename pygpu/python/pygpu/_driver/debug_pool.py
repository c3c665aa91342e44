"""A pool of device memory that reports each allocation."""

from __future__ import annotations

import os
import sys
from collections import Counter
from typing import TYPE_CHECKING, Any, TextIO
from weakref import WeakKeyDictionary

from .._core import DeviceMemoryPool, PooledDeviceAllocation, mem_get_info

if TYPE_CHECKING:
    from typing_extensions import Self


class DebugMemoryPool(DeviceMemoryPool):
    """A pool of device memory that reports the place of each allocation, and those in use.

    An ``interactive`` pool asks on the terminal for a name of each new place, and waits for Enter
    at each allocation. PyCUDA keeps the names in a file; here they last as long as the pool.
    ``logfile`` receives the report, by default ``sys.stdout``. ``blocks`` has size and place of
    each allocation in use, ``last_free`` the free bytes at the latest allocation.

    >>> import io
    >>> report = io.StringIO()
    >>> pool = DebugMemoryPool(interactive=False, logfile=report)
    >>> block = pool.allocate(1000)
    >>> "Allocation of size 1000" in report.getvalue()
    True
    """

    def __new__(cls, interactive: bool = True, logfile: TextIO | None = None) -> Self:
        """Makes the pool; the arguments are the class's."""
        return super().__new__(cls)

    def __init__(self, interactive: bool = True, logfile: TextIO | None = None) -> None:
        self.last_free = mem_get_info()[0]
        self.interactive = interactive
        self.logfile = sys.stdout if logfile is None else logfile
        self.blocks: WeakKeyDictionary[PooledDeviceAllocation, Any] = WeakKeyDictionary()
        self.stacktrace_mnemonics: dict[Any, str] = {}

    def allocate(self, size: int) -> PooledDeviceAllocation:
        """Allocates ``size`` bytes of device memory, and reports it."""
        from traceback import extract_stack  # a program that debugs needs it, no other

        description = self.describe(tuple(frame.name for frame in extract_stack()), size)
        in_use = Counter(self.blocks.values())
        # Character by character, which `commonprefix` is for, and no path.
        common = os.path.commonprefix([place for _, place in in_use])  # noqa: RUF071
        free, total = mem_get_info()
        print(
            f"\n  Allocation of size {size} occurring "
            f"(mem: last_free:{self.last_free}, free: {free}, total:{total}) "
            f"(pool: held:{self.held_blocks}, active:{self.active_blocks}):"
            f"\n      at: {description}",
            file=self.logfile,
        )
        for (block, place), count in sorted(in_use.items()):
            print(f"  {place[len(common) :]} ({block} bytes): {count}x", file=self.logfile)
        if self.interactive:
            input("  [Enter]")
        result = super().allocate(size)
        self.blocks[result] = size, description
        self.last_free = mem_get_info()[0]
        return result

    def describe(self, stack: tuple[str, ...], size: int) -> str:
        """Returns the report's name of a place.

        It is called with ``stack``, the names of the called functions, outermost first, and the
        allocated bytes ``size``.

        >>> import io
        >>> pool = DebugMemoryPool(interactive=False, logfile=io.StringIO())
        >>> pool.describe(("main", "load"), 1000)
        'main|load'
        """
        if not self.interactive:
            return "|".join(stack)
        while (stack, size) not in self.stacktrace_mnemonics:
            print(size, stack)
            answer = input("Enter mnemonic or [Enter] for more info:")
            if answer:
                self.stacktrace_mnemonics[stack, size] = answer
            else:
                from traceback import print_stack  # as above

                print_stack()
        return self.stacktrace_mnemonics[stack, size]
