"""`pygpu profile`: a program under pygpu, and where its time and memory went."""

import os
import sys
from collections.abc import Sequence

from .. import _core
from . import run
from .leaks import memory_report

USAGE = """\
usage: pygpu profile [OPTIONS] SCRIPT [ARGS...]      or -m MODULE, -c CODE, -, as `pygpu run`

Runs a program as `pygpu run` does. At its end, prints the time and the bytes of its kernels,
operations, copies, allocations and waits to stderr. Child processes are not recorded.

  -o, --output FILE  also write FILE: .html, a page; .json, a timeline for Perfetto; .txt, the table
  --sort ORDER       order of the table: time (default), bytes, count or bandwidth
  --memory           also print the memory that is alive at the end, by the line that made it
"""
ORDERS = ("time", "bytes", "count", "bandwidth")
ENDINGS = (".html", ".json", ".txt")


def main(argv: Sequence[str]) -> int:
    """Runs the program that `argv` names; returns its exit status."""
    rest, files, sort, memory = list(argv), [], "time", False
    if rest[:1] in (["-h"], ["--help"]):
        print(USAGE, end="")
        return 0
    while (rest and rest[0].startswith("--")) or rest[:1] == ["-o"]:
        option, joined, value = rest.pop(0).partition("=")
        if option in ("-o", "--output", "--sort") and not joined:
            if not rest:
                return _refuse(f"{option} needs a value")
            value = rest.pop(0)
        if option in ("-o", "--output"):
            files.append(os.path.abspath(value))
            if not value.endswith(ENDINGS):
                return _refuse(f"the output is {value!r}; it must end in {', '.join(ENDINGS)}")
            if not os.path.isdir(os.path.dirname(files[-1])):
                return _refuse(f"the output is {value!r}, whose folder does not exist")
        elif option == "--sort":
            sort = value
            if sort not in ORDERS:
                return _refuse(f"the order is {sort!r}; allowed are {', '.join(ORDERS)}")
        elif option == "--memory":
            memory = True
        elif option == "--check-first":
            rest.insert(0, option)
            break
        elif not option.strip("-"):
            break
        else:
            return _refuse(f"unknown option {option}")
    if not rest:
        print(USAGE, end="", file=sys.stderr)
        return run.BAD_COMMAND
    profile = _core.profile(" ".join(rest))
    report = None
    try:
        with profile:
            try:
                return run.main(rest)
            finally:
                report = memory_report() if memory and _core.was_opened() else None
    finally:
        print(profile.table(sort), file=sys.stderr)
        if report is not None:
            print(report, file=sys.stderr)
        for file in files:
            profile.save(file)


def _refuse(message: str) -> int:
    print(f"pygpu profile: {message}", file=sys.stderr)
    return run.BAD_COMMAND
