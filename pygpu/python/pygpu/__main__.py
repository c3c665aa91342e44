"""The command line `pygpu`, which `python -m pygpu` is as well."""

import os
import sys
from collections.abc import Callable, Sequence
from importlib import import_module

from ._core import __version__

USAGE = """\
usage: pygpu info [--json]             list backends and devices, and the one chosen
       pygpu doctor [--json]           try each backend; say what is wrong and what to do
       pygpu cache list | size | clear the compiled code that is kept on disk
       pygpu run SCRIPT [ARGS...]      run a PyCUDA program over pygpu
       pygpu profile SCRIPT [ARGS...]  the same, then print where its time went
       pygpu bench [--json]            measure this machine against its own limits
       pygpu --version

`python -m pygpu` does the same.
"""
# The module of each command below `_program`, and the function there.
COMMANDS = {
    "info": ("doctor", "info"),
    "doctor": ("doctor", "main"),
    "cache": ("cache", "main"),
    "run": ("run", "main"),
    "profile": ("run", "profile"),
    "bench": ("bench", "main"),
}


def main(argv: Sequence[str] | None = None) -> int:
    """Runs one command; returns the process's exit status."""
    command, *rest = (sys.argv[1:] if argv is None else list(argv)) or [""]
    if command in COMMANDS:
        module, function = COMMANDS[command]
        run = getattr(import_module(f"pygpu._program.{module}"), function)
        return run(rest) if command in ("run", "profile") else _printed(run, rest)
    if command == "--version":
        print("pygpu", __version__)
        return 0
    if command in ("-h", "--help"):
        print(USAGE, end="")
        return 0
    if command:
        print(f"pygpu: unknown command {command!r}", file=sys.stderr)
    print(USAGE, end="", file=sys.stderr)
    return 2


def _printed(run: Callable[[Sequence[str]], int], arguments: Sequence[str]) -> int:
    """Runs a command that prints; a reader that stops early, such as ``head``, is no error."""
    try:
        status = run(arguments)
        sys.stdout.flush()
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    return status


def _start() -> None:
    # `python -i` prints a traceback for each exit, also of a program without an error.
    if status := main():
        sys.exit(status)


if __name__ == "__main__":
    _start()
