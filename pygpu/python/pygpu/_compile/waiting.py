"""A line on the terminal while a compiler keeps a user waiting."""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from .. import _core

# Seconds after which a user wonders what the program does.
_PATIENCE = 0.5
_OFF = ("0", "off", "false", "no")


def _is_watched() -> bool:
    """Returns true if a person sees what goes to stderr: on a terminal or in a notebook."""
    if os.environ.get("PYGPU_PROGRESS", "").strip().lower() in _OFF or sys.stderr is None:
        return False
    # A program may have put a stream of its own there, or closed it.
    try:
        return "ipykernel" in sys.modules or sys.stderr.isatty()
    except (AttributeError, ValueError):
        return False


@contextmanager
def told(source: str, kept: bool) -> Iterator[None]:
    """Says on stderr which kernels are compiled, once that has taken half a second, and whether the
    cache keeps the code."""
    if not _is_watched():
        yield
        return

    def tell() -> None:
        names = _core.kernel_names(source) or ["a module"]
        more = f" and {len(names) - 3} more" if len(names) > 3 else ""
        is_kept = kept and _core.code_cache() is not None
        later = "; the code is kept for later runs" if is_kept else ""
        print(f"pygpu: compiling {', '.join(names[:3])}{more}{later}", file=sys.stderr)

    import threading  # few programs are watched

    timer = threading.Timer(_PATIENCE, tell)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
