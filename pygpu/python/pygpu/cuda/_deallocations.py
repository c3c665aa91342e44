"""Memory whose freeing is deferred."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator
from typing import Any


class Deallocations:
    """Memory that is no longer used and waits until freeing is allowed again.

    Outside :func:`pygpu.cuda.defer_cleanup` nothing waits: memory is freed with its last use.
    """

    def __init__(self) -> None:
        self._waiting: list[Any] = []
        self._deferrals = 0
        self._lock = threading.RLock()

    def __len__(self) -> int:
        return len(self._waiting)

    @property
    def is_disabled(self) -> bool:
        """Whether freeing is deferred."""
        return self._deferrals > 0

    def release(self, allocation: Any) -> None:
        """Frees memory that nothing else refers to, now or once it is allowed."""
        with self._lock:
            if self._deferrals:
                self._waiting.append(allocation)

    def clear(self) -> None:
        """Frees what waits, unless freeing is deferred."""
        with self._lock:
            if self._deferrals:
                return
            waiting, self._waiting = self._waiting, []
        # Freed here, outside the lock.
        del waiting

    @contextlib.contextmanager
    def disable(self) -> Iterator[None]:
        """Defers freeing for the ``with`` block; blocks may be nested."""
        with self._lock:
            self._deferrals += 1
        try:
            yield
        finally:
            with self._lock:
                self._deferrals -= 1
            self.clear()
