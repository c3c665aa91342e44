"""The command line: `python -m pygpu info` and `python -m pygpu run`."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

USAGE = """\
usage: python -m pygpu info [--json]        list backends and devices, and the one chosen
       python -m pygpu run SCRIPT [ARGS...] run a PyCUDA program over pygpu
       python -m pygpu --version
"""


def main(argv: Sequence[str] | None = None) -> int:
    """Runs one command; returns the process's exit status."""
    command, *rest = (sys.argv[1:] if argv is None else list(argv)) or [""]
    if command == "info":
        from pygpu._program import info as _info

        return _info.main(rest)
    if command == "run":
        from pygpu._program import run as _run

        return _run.main(rest)
    if command == "--version":
        from importlib.metadata import version

        print("pygpu", version("pygpu"))
        return 0
    if command in ("-h", "--help"):
        print(USAGE, end="")
        return 0
    if command:
        print(f"python -m pygpu: unknown command {command!r}", file=sys.stderr)
    print(USAGE, end="", file=sys.stderr)
    return 2


if __name__ == "__main__":
    sys.exit(main())
