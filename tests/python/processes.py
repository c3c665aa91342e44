"""Programs run in processes of their own, with a time limit."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import textwrap
import threading
from pathlib import Path

import pytest

LIMIT = 120
ROOT = Path(__file__).resolve().parents[2]


def fetched(what: str, name: str) -> Path:
    """Returns the folder, of this name, with a thing that `fetch.py` knows, by the words of its
    command: fetched once. Skips the test where it cannot be had, or nothing is to be fetched:
    `PYGPU_FETCH=0`."""
    if os.environ.get("PYGPU_FETCH") == "0":
        pytest.skip(f"{name} is left to `make test-more`")
    folder = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target")) / "tmp" / name
    script = ROOT / "backend-hip/bindings/fetch.py"
    done = subprocess.run(
        [sys.executable, script, *what.split(), folder],
        capture_output=True,
        text=True,
        timeout=5 * LIMIT,
        check=False,
    )
    if done.returncode:
        pytest.skip(f"Debian's packages cannot be had: {done.stderr.strip()}")
    return folder


def with_libraries(folder: Path) -> tuple[list[str], dict[str, str]]:
    """Returns the command that starts Python with the libraries of a folder that was fetched, by
    its loader if it has one, and the variables that this needs."""
    libraries = folder / "lib"
    for loader in libraries.glob("ld-linux-*"):
        return [str(loader), "--library-path", str(libraries), sys.executable], {}
    return [sys.executable], {"LD_LIBRARY_PATH": str(libraries)}


def run_python(
    code: str,
    *arguments: str,
    check: bool = True,
    libraries: Path | None = None,
    limit: int = LIMIT,
    **environment: str,
) -> subprocess.CompletedProcess[str]:
    """Runs `code`, with the libraries of a folder that was fetched; asserts, with `check`, that it
    ended well and wrote nothing to stderr."""
    command, variables = with_libraries(libraries) if libraries else ([sys.executable], {})
    done = subprocess.run(
        [*command, "-c", textwrap.dedent(code), *arguments],
        capture_output=True,
        text=True,
        timeout=limit,
        env=os.environ | variables | environment,
        check=False,
    )
    if check:
        assert (done.returncode, done.stderr) == (0, ""), done.stderr[-3000:]
    return done


class Peer:
    """A Python program that runs beside the test and answers in lines; ended with the block, or
    after the time limit."""

    def __init__(self, code: str, *arguments: str, **environment: str) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-c", textwrap.dedent(code), *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=os.environ | environment,
        )
        self._timer = threading.Timer(LIMIT, self.process.kill)
        self._timer.start()

    def read(self) -> str:
        """Returns its next line."""
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        if not line:
            assert self.process.stderr is not None
            raise AssertionError(f"the program ended: {self.process.stderr.read()[-3000:]}")
        return line.rstrip("\n")

    def write(self, line: str = "") -> None:
        """Passes it a line."""
        assert self.process.stdin is not None
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()

    def ask(self, line: str = "") -> str:
        """Passes it a line; returns its answer."""
        self.write(line)
        return self.read()

    def finish(self) -> None:
        """Waits until it ends; asserts that it ended well and wrote nothing to stderr."""
        _, stderr = self.process.communicate()
        assert (self.process.returncode, stderr) == (0, ""), stderr[-3000:]

    def kill(self) -> None:
        """Ends it at once, as `kill -9` does."""
        self.process.kill()
        self.process.wait()

    def __enter__(self) -> Peer:
        return self

    def __exit__(self, *_: object) -> None:
        self._timer.cancel()
        self.kill()
        for pipe in (self.process.stdin, self.process.stdout, self.process.stderr):
            if pipe is not None:
                with contextlib.suppress(BrokenPipeError):
                    pipe.close()
