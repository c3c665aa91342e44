"""Runs cases in a child process: `python worker.py '{"search": "calls", "seed": 1, ...}'`.

It writes the current case's number to a file, so that the parent knows which case ended the
process, and prints its findings as one line of JSON.
"""

from __future__ import annotations

import contextlib
import faulthandler
import gc
import importlib
import io
import json
import os
import pickle
import resource
import struct
import sys
import types
import warnings
from collections import Counter
from pathlib import Path
from random import Random
from typing import Any

import numpy as np

PRELUDE = Path(__file__).with_name("prelude.py").read_text()
# A module, so that its classes can be pickled.
sys.modules["prelude"] = types.ModuleType("prelude")
NAMESPACE: dict[str, Any] = vars(sys.modules["prelude"])
exec(compile(PRELUDE, "prelude.py", "exec"), NAMESPACE)

from pygpu import choose_backend, driver, gpuarray, tools  # noqa: E402
from pygpu._exchange import descriptor  # noqa: E402

# Exceptions that invalid arguments may raise. The prelude's own functions raise `KeyError`.
ALLOWED = (
    TypeError,
    ValueError,
    IndexError,
    OverflowError,
    NotImplementedError,
    AttributeError,
    MemoryError,
    BufferError,
    ZeroDivisionError,
    OSError,
    AssertionError,
    KeyError,
    StopIteration,
    pickle.PicklingError,
    struct.error,  # for formats of kernel arguments, as in PyCUDA
    driver.Error,
)
# Exceptions that are allowed because of their message, each with the reason.
ALLOWED_TEXTS = [
    # As in Python's own classes, the program skipped the constructor.
    (RuntimeError, "__init__ has not been called"),
    (RuntimeError, "__init__ was called a second time"),
    # As in PyCUDA, a C name already stands for another type.
    (RuntimeError, "already registered"),
    # Python's dictionaries and views raise this for arguments that return invalid values.
    (RecursionError, "maximum recursion depth"),
]
# Raised by the interpreter for a line of a case.
OF_THE_LANGUAGE = (NameError, SyntaxError)
EVERY = 200


class Damage(Exception):
    """Raised if something outside the case has changed."""


class Canaries:
    """Arrays that do not belong to any case, and operations with results known from numpy."""

    def __init__(self) -> None:
        self.make()

    def make(self) -> None:
        """Creates new canaries; a reset of the device has destroyed the old ones."""
        self.host = [np.arange(1000, dtype="f4"), np.arange(300, dtype="i8").reshape(20, 15)]
        self.device = [gpuarray.to_gpu(one) for one in self.host]
        self.memory = driver.to_device(self.host[1])
        self.stream = driver.Stream()

    def check(self) -> None:
        """Raises `Damage` if a canary has changed or an operation is wrong."""
        gc.collect()  # A stream that captures blocks the default stream while it lives.
        x, y = self.host
        a, b = self.device
        read = np.empty_like(y)
        driver.memcpy_dtoh(read, self.memory)
        c = gpuarray.to_gpu_async(x, stream=self.stream)
        c.fill(3, self.stream)
        self.stream.synchronize()
        for what, got, expected in (
            ("an array", a.get(), x),
            ("an array of two axes", b.get(), y),
            ("raw memory", read, y),
            ("a sum of arrays", (a * 2 + a[::-1]).get(), x * 2 + x[::-1]),
            ("a sum", gpuarray.sum(b).get(), y.sum()),
            ("a transposed copy", b.T.copy().get(), y.T),
            ("a fill on a stream", c.get(), np.full_like(x, 3)),
            ("an item", b[3, ::2].get(), y[3, ::2]),
        ):
            if not np.array_equal(got, expected):
                raise Damage(f"{what} of the canaries is {got!r}, not {expected!r}"[:500])


class Restore:
    """Restores state that a case may legitimately change: contexts, the debugging flag."""

    def __init__(self) -> None:
        self.context = driver.Context.get_current()
        self.attributes = dict(vars(self.context))

    def __call__(self) -> None:
        context = driver.Context
        for _ in range(1000):
            current = context.get_current()
            if current is self.context or current is None:
                break
            context.pop()
        if context.get_current() is None:
            if self.context._uses < 1:  # detached by a case
                self.context = driver.Device(0).make_context()
                NAMESPACE["context"] = self.context
            else:
                self.context.push()
        for name in set(vars(self.context)) - set(self.attributes):
            delattr(self.context, name)
        driver.set_debugging(False)


def used_memory() -> int | None:
    """Returns the bytes of device memory in use without kept blocks; None on a shared device."""
    tools.clear_context_caches()
    # Exports are kept for other processes, which do not exist here.
    descriptor._kept.clear()
    gc.collect()
    driver.Context.synchronize()
    driver.Context.trim_memory()
    if choose_backend() != "host" and driver.Device(0).name() != "Driver Double":
        return None
    free, total = driver.mem_get_info()
    return total - free


def verdict(error: BaseException) -> str | None:
    """Returns the reason why an exception is a finding; None if it is allowed."""
    if isinstance(error, SystemError):
        return "SystemError"
    if not isinstance(error, Exception):
        return type(error).__name__
    if isinstance(error, ALLOWED):
        return None
    if any(isinstance(error, kind) and text in str(error) for kind, text in ALLOWED_TEXTS):
        return None
    return type(error).__name__


class Worker:
    """Runs cases of one search; see `batches.py` for the settings."""

    def __init__(self, settings: dict[str, Any]) -> None:
        self.settings = settings
        self.search = importlib.import_module(settings["search"]).Search(settings, NAMESPACE)
        self.progress = settings.get("progress")
        self.findings: list[dict[str, Any]] = []
        self.raised: Counter[str] = Counter()
        self.unraisable: list[str] = []
        self.lines = 0
        self.before: int | None = None
        self.canaries = Canaries()
        self.restore = Restore()
        sys.unraisablehook = lambda what: self.unraisable.append(
            f"{type(what.exc_value).__name__}: {what.exc_value} in {what.object!r}"
        )

    def found(self, number: int, kind: str, text: str, line: str = "") -> None:
        """Records a finding; only the first thousand are kept."""
        if len(self.findings) < 1000:
            finding = {"case": number, "kind": kind, "text": text[:2000], "line": line}
            self.findings.append(finding)

    def run_case(self, number: int, keep: list[int] | None) -> None:
        """Draws and runs one case, or only the given lines of it."""
        case = self.search.case(Random(f"{self.settings['seed']}:{number}"))
        lines = [line for k, line in enumerate(case.lines) if keep is None or k in keep]
        names = [name for k, name in enumerate(case.names) if keep is None or k in keep]
        if self.settings.get("show"):
            print("\n".join(lines), flush=True)
        namespace = dict(NAMESPACE)
        for line, name in zip(lines, names, strict=True):
            self.lines += name is not None
            try:
                code = compile(line, "case", "exec")
            except (SyntaxError, UnicodeError, ValueError):
                continue
            try:
                exec(code, namespace)
                if name is not None:
                    self.search.returned[name] += 1
            except BaseException as error:
                self._judge(number, line, name, error)
                if isinstance(error, self.search.wrong):
                    break  # later lines would differ for the same reason
        namespace.clear()
        self.search.forget()
        if any(name in self.search.resets for name in names):
            # Creates again the objects that the reset destroyed, and measures memory from here.
            exec("kept, kept_stream = drv.mem_alloc(4096), drv.Stream()", NAMESPACE)
            self.canaries.make()
            self.before = used_memory()
        self.restore()
        for text in self.unraisable:
            if "prelude" not in text and "own function" not in text:
                self.found(number, "unraisable", text)
        self.unraisable.clear()

    def _judge(self, number: int, line: str, name: str | None, error: BaseException) -> None:
        if isinstance(error, OF_THE_LANGUAGE):
            return
        if name is not None:
            self.search.raised[name] += 1
            self.raised[type(error).__name__] += 1
        if isinstance(error, self.search.wrong):
            kind: str | None = "wrong"
        elif self.search.allowed is None:
            kind = verdict(error)
        else:
            kind = None if isinstance(error, self.search.allowed) else type(error).__name__
        if kind is not None:
            self.found(number, kind, f"{type(error).__name__}: {error}", line)
        error.__traceback__ = None

    def run(self) -> dict[str, Any]:
        """Runs the cases; returns the data to print."""
        first, count = self.settings["first"], self.settings["count"]
        file = os.open(self.progress, os.O_WRONLY) if self.progress else -1
        # Loads code and fills lists first, so that they do not count as leaks.
        self.canaries.check()
        self.before = used_memory()
        for number in range(first, first + count):
            if file >= 0:
                os.pwrite(file, struct.pack("q", number), 0)
            self.run_case(number, self.settings.get("keep"))
            if number % EVERY == EVERY - 1 or number == first + count - 1:
                try:
                    self.canaries.check()
                except BaseException as error:
                    self.found(number, "damage", f"{type(error).__name__}: {error}")
                    break
        try:
            after = used_memory()
        except Exception as error:
            self.found(number, "damage", f"{type(error).__name__}: {error}")
            after = None
        before = self.before
        if before is not None and after is not None and after > before:
            self.found(-1, "leak", f"{after - before} bytes of the device are still in use")
        return {
            "findings": self.findings,
            "cases": count,
            "calls": self.lines,
            "raised": dict(self.raised),
            "returned": dict(self.search.returned),
            "refused": dict(self.search.raised),
        }


def main() -> None:
    """Runs the cases of a range."""
    settings = json.loads(sys.argv[1])
    faulthandler.enable()
    warnings.simplefilter("ignore")
    np.seterr(all="ignore")
    if settings["memory"]:
        size = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
        limit = size + settings["memory"] * 2**20
        resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    printed = io.StringIO()
    quiet = (
        contextlib.nullcontext() if settings.get("show") else contextlib.redirect_stdout(printed)
    )
    with quiet:
        result = Worker(settings).run()
    print("RESULT " + json.dumps(result), flush=True)


if __name__ == "__main__":
    main()
