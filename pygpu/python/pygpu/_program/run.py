"""`pygpu run`: a PyCUDA program, unmodified, over pygpu. `pygpu profile`: the same, recorded.

The program sees what it would see under plain `python`: its own `__main__`, `__file__`,
`sys.argv` and `sys.path[0]`; its exit status is the process's, and a traceback starts in it.
Python processes that it starts, with `multiprocessing` or as commands, import pycuda as it does.
"""

from __future__ import annotations

import functools
import importlib.util
import os
import sys
from collections.abc import Callable, Sequence
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader, SourcelessFileLoader
from types import ModuleType
from typing import Any
from zipfile import is_zipfile

from .. import _core
from .alias import install_as_pycuda

USAGE = """\
usage: pygpu run [--check-first] [PYTHON'S OPTIONS] SCRIPT [ARGS...]
       pygpu run -m MODULE [ARGS...]
       pygpu run -c CODE [ARGS...]
       pygpu run - [ARGS...]

With "-" the program is what standard input holds. With --check-first in front of it, the
first launches of each kernel on the host are checked for races and faults (PYGPU_CHECK=first).

Runs a PyCUDA program with `import pycuda` and `import pycuda.*` served by pygpu.
The backend is PYGPU_BACKEND (auto, cuda, hip or host), by default the first available one.
"""

_PROFILE_USAGE = """\
usage: pygpu profile [OPTIONS] SCRIPT [ARGS...]      or -m MODULE, -c CODE, -, as `pygpu run`

Runs a program as `pygpu run` does. At its end, prints the time and the bytes of its kernels,
operations, copies, allocations and waits to stderr. Child processes are not recorded.

  -o, --output FILE  also write FILE: .html, a page; .json, a timeline for Perfetto; .txt, the table
  --sort ORDER       order of the table: time (default), bytes, count or bandwidth
  --memory           also print the memory that is alive at the end, by the line that made it
"""
_ORDERS = ("time", "bytes", "count", "bandwidth")
_ENDINGS = (".html", ".json", ".txt")
# Options for Python itself, and those with a value; they need another interpreter.
_PYTHON_FLAGS, _PYTHON_VALUES = "bBdEiIOPqRsSuv", "WX"

_Body = Callable[[dict[str, Any]], object]
# Status of a command line that cannot be carried out, as `python` itself uses it.
_BAD_COMMAND = 2


def main(argv: Sequence[str]) -> int:
    """Runs the program that `argv` (what follows `run`) names; returns the exit status."""
    if argv and argv[0] == "--check-first":
        # Processes that it starts do the same.
        os.environ["PYGPU_CHECK"] = "first"
        argv = argv[1:]
    if not argv or argv[0] in ("-h", "--help"):
        print(USAGE, end="", file=sys.stdout if argv else sys.stderr)
        return 0 if argv else _BAD_COMMAND
    options, rest, program, skips = [], list(argv), "", False
    while not program and rest and rest[0].startswith("-") and rest[0] not in ("-", "--"):
        word = rest.pop(0)
        for at, letter in enumerate(word[1:], 1):
            if letter in _PYTHON_FLAGS:
                options.append(f"-{letter}")
            elif letter == "x":
                skips = True
            elif letter in f"mc{_PYTHON_VALUES}":
                if not word[at + 1 :] and not rest:
                    return _refuse(f"-{letter} needs an argument")
                value = [f"-{letter}", word[at + 1 :] or rest.pop(0)]
                if letter in _PYTHON_VALUES:
                    options += value
                else:
                    program, rest = letter, value + rest
                break
            else:
                return _refuse(f"unknown option {word}")
    before = sys.orig_argv[1 : -len(argv)]
    if options and sys.orig_argv[1:] != [*before, *argv]:
        return _refuse(f"option {options[0]} needs a process of its own")
    if options:
        os.execv(sys.executable, [sys.executable, *options, *before, *["-x"] * skips, *rest])
    if program == "m":
        return _run_module(rest[1], rest[2:])
    if program == "c":
        return _start(["-c", *rest[2:]], "", _text(rest[1], "<string>"), {})
    if rest[:1] == ["-"]:
        return _start(rest, "", _text(sys.stdin.buffer.read(), "<stdin>"), {})
    rest = rest[1:] if rest[:1] == ["--"] else rest
    return _run_script(rest[0], rest[1:], skips) if rest else _refuse("no program is given")


def profile(argv: Sequence[str]) -> int:
    """Runs the program that `argv` names, and reports; returns its exit status."""
    rest, files, sort, memory = list(argv), [], "time", False
    refuse = functools.partial(_refuse, command="profile")
    if rest[:1] in (["-h"], ["--help"]):
        print(_PROFILE_USAGE, end="")
        return 0
    while (rest and rest[0].startswith("--")) or rest[:1] == ["-o"]:
        option, joined, value = rest.pop(0).partition("=")
        if option in ("-o", "--output", "--sort") and not joined:
            if not rest:
                return refuse(f"{option} needs a value")
            value = rest.pop(0)
        if option in ("-o", "--output"):
            files.append(os.path.abspath(value))
            if not value.endswith(_ENDINGS):
                return refuse(f"the output is {value!r}; it must end in {', '.join(_ENDINGS)}")
            if not os.path.isdir(os.path.dirname(files[-1])):
                return refuse(f"the output is {value!r}, whose folder does not exist")
        elif option == "--sort":
            sort = value
            if sort not in _ORDERS:
                return refuse(f"the order is {sort!r}; allowed are {', '.join(_ORDERS)}")
        elif option == "--memory":
            memory = True
        elif option == "--check-first":
            rest.insert(0, option)
            break
        elif not option.strip("-"):
            break
        else:
            return refuse(f"unknown option {option}")
    if not rest:
        print(_PROFILE_USAGE, end="", file=sys.stderr)
        return _BAD_COMMAND
    recorded = _core.profile(" ".join(rest))
    report = None
    try:
        with recorded:
            try:
                return main(rest)
            finally:
                if memory and _core.was_opened():
                    from .leaks import memory_report  # it imports tracemalloc

                    report = memory_report()
    finally:
        print(recorded.table(sort), file=sys.stderr)
        if report is not None:
            print(report, file=sys.stderr)
        for file in files:
            recorded.save(file)


def _run_script(script: str, arguments: Sequence[str], skips: bool) -> int:
    path = os.path.join(os.getcwd(), script)
    if os.path.isdir(path) or is_zipfile(path):
        found = PathFinder.find_spec("__main__", [path])
        if found is None:
            return _refuse(f"can't find '__main__' module in {path!r}", status=1)
        if _safe_path():
            sys.path.insert(0, path)
        return _run_found(found, [script, *arguments], path)
    try:
        with open(path, "rb") as file:
            # Option -x: the first line is left out, not its end, so that lines keep their numbers.
            source = (file.readline()[-1:] if skips else b"") + file.read()
    except OSError as error:
        return _refuse(f"can't open file {script!r}: {error.strerror}")
    folder = os.path.dirname(os.path.realpath(path))
    loader = (SourcelessFileLoader if path.endswith(".pyc") else SourceFileLoader)("__main__", path)
    body = (
        _text(source, path)
        if isinstance(loader, SourceFileLoader)
        else lambda module: exec(loader.get_code("__main__") or "", module)
    )
    names = {"__file__": path, "__loader__": loader}
    return _start([script, *arguments], folder, body, names)


def _run_module(name: str, arguments: Sequence[str]) -> int:
    if name.startswith("."):
        return _refuse("relative module names are not supported", status=1)
    install_as_pycuda()
    if not _safe_path():
        sys.path[0] = os.getcwd()
    try:
        found = importlib.util.find_spec(name)
    except ModuleNotFoundError as error:
        if error.name is None or not f"{name}.".startswith(f"{error.name}."):
            raise
        found = None
    if found is not None and found.submodule_search_locations is not None:
        package, found = name, importlib.util.find_spec(f"{name}.__main__")
        if found is None:
            what = f"{package!r} is a package and cannot be directly executed"
            return _refuse(f"No module named {package}.__main__; {what}", status=1)
    if found is None:
        return _refuse(f"No module named {name}", status=1)
    return _run_found(found, [found.origin or name, *arguments], None)


def _run_found(found: ModuleSpec, argv: list[str], directory: str | None) -> int:
    code = getattr(found.loader, "get_code", lambda name: None)(found.name)
    if code is None:
        return _refuse(f"No code object available for {found.name}", status=1)
    names: dict[str, Any] = {"__spec__": found, "__file__": found.origin}
    names |= {"__cached__": found.cached, "__loader__": found.loader, "__package__": found.parent}
    return _start(argv, directory, lambda module: exec(code, module), names)


def _text(source: str | bytes, name: str) -> _Body:
    return lambda module: exec(compile(source, name, "exec", dont_inherit=True), module)


def _start(argv: list[str], directory: str | None, body: _Body, names: dict[str, Any]) -> int:
    """Runs `body` as `python` runs a program: arguments, path, status, traceback, names."""
    sys.argv[:] = argv
    if directory is not None and not _safe_path():
        sys.path[0] = directory
    install_as_pycuda(children=True)
    module = ModuleType("__main__")
    vars(module).update({"__builtins__": sys.modules["builtins"], "__cached__": None, **names})
    sys.modules["__main__"] = module
    try:
        body(vars(module))
    except (SystemExit, KeyboardInterrupt):
        # Python's own end of the program: a status, or death by SIGINT.
        raise
    except BaseException as error:
        # From the program's own first frame on, as plain Python would show it.
        traceback = error.__traceback__
        while traceback is not None and traceback.tb_frame.f_globals.get("__name__") == __name__:
            traceback = traceback.tb_next
        sys.excepthook(type(error), error.with_traceback(traceback), traceback)
        return 1
    return 0


def _safe_path() -> bool:
    """Returns True if the option -P keeps the program's folder out of `sys.path`."""
    return bool(getattr(sys.flags, "safe_path", False))


def _refuse(message: str, status: int = _BAD_COMMAND, command: str = "run") -> int:
    print(f"pygpu {command}: {message}", file=sys.stderr)
    return status
