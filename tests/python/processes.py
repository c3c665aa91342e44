"""Programs that run in separate processes, with a time limit."""

from __future__ import annotations

import atexit
import contextlib
import functools
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import textwrap
import threading
from pathlib import Path

import pytest

LIMIT = 120
ROOT = Path(__file__).resolve().parents[2]


def fetched(what: str, name: str) -> Path:
    """Returns the folder `name` with the result of `fetch.py what`, which is downloaded once.
    Skips the test if the download fails, or if `PYGPU_FETCH=0` forbids it."""
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
    """Returns the command that starts Python with the libraries of a downloaded folder, through
    the folder's loader if it has one, and the variables that the command needs."""
    libraries = folder / "lib"
    for loader in libraries.glob("ld-linux-*"):
        return [str(loader), "--library-path", str(libraries), sys.executable], {}
    return [sys.executable], {"LD_LIBRARY_PATH": str(libraries)}


# Imports the packages, which takes most of the start-up time, and runs each text that it receives
# in a forked process.
STARTER = """
import json, os, socket, sys, types
import numpy, pygpu

server = socket.socket(fileno=int(sys.argv[1]))
while True:
    request, files, _, _ = socket.recv_fds(server, 1 << 20, 2)
    if not request:
        os._exit(0)
    child = os.fork()
    if child == 0:
        break
    for file in files:
        os.close(file)
    server.send(str(child).encode())
    server.send(str(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])).encode())
server.close()
for place, file in enumerate(files, 1):
    os.dup2(file, place)
    os.close(file)
code, *sys.argv = json.loads(request)
sys.modules["__main__"] = main = types.ModuleType("__main__")
exec(compile(code, "<string>", "exec"), vars(main))
"""


def _variables() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if name != "PYTEST_CURRENT_TEST"}


class Starter:
    """A process that runs programs in forks of itself, with its own environment variables."""

    def __init__(self) -> None:
        self.variables = _variables()
        self.socket, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            command = [sys.executable, "-c", STARTER, str(theirs.fileno())]
            self.process = subprocess.Popen(
                command, env=self.variables, pass_fds=[theirs.fileno()], stderr=subprocess.DEVNULL
            )
        atexit.register(self.stop)

    def run(self, code: str, arguments: tuple[str, ...], limit: int) -> tuple[int, str, str]:
        """Returns the exit status of a program, and its output."""
        request = json.dumps([code, "-c", *arguments]).encode()
        with tempfile.TemporaryFile("w+") as out, tempfile.TemporaryFile("w+") as err:
            socket.send_fds(self.socket, [request], [out.fileno(), err.fileno()])
            child = int(self.socket.recv(100))
            self.socket.settimeout(limit)
            try:
                status = self.socket.recv(100)
            except TimeoutError:
                os.kill(child, signal.SIGKILL)
                self.socket.settimeout(None)
                self.socket.recv(100)
                raise subprocess.TimeoutExpired(code, limit) from None
            self.socket.settimeout(None)
            out.seek(0)
            err.seek(0)
            return int(status), out.read(), err.read()

    def stop(self) -> None:
        self.socket.close()
        self.process.wait()


starter = functools.cache(Starter)


def run_python(
    code: str,
    *arguments: str,
    check: bool = True,
    libraries: Path | None = None,
    limit: int = LIMIT,
    fresh: bool = False,
    **environment: str,
) -> subprocess.CompletedProcess[str]:
    """Runs `code`, optionally with the libraries of a downloaded folder. With `check`, asserts
    that it succeeds without output on stderr.

    A new interpreter runs it if `fresh` is set or variables are given. Otherwise a fork of an
    interpreter runs it that has imported only numpy and `pygpu`."""
    code = textwrap.dedent(code)
    if not (fresh or libraries or environment) and starter().variables == _variables():
        done = subprocess.CompletedProcess(
            ["-c", *arguments], *starter().run(code, arguments, limit)
        )
    else:
        command, variables = with_libraries(libraries) if libraries else ([sys.executable], {})
        done = subprocess.run(
            [*command, "-c", code, *arguments],
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
    """A Python program that runs in parallel with the test and answers in lines. It ends with the
    block, or after the time limit."""

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
        """Returns the program's next line."""
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        if not line:
            assert self.process.stderr is not None
            raise AssertionError(f"the program ended: {self.process.stderr.read()[-3000:]}")
        return line.rstrip("\n")

    def write(self, line: str = "") -> None:
        """Sends a line to the program."""
        assert self.process.stdin is not None
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()

    def ask(self, line: str = "") -> str:
        """Sends a line to the program; returns its answer."""
        self.write(line)
        return self.read()

    def finish(self) -> None:
        """Waits for the program's end; asserts that it succeeded without output on stderr."""
        _, stderr = self.process.communicate()
        assert (self.process.returncode, stderr) == (0, ""), stderr[-3000:]

    def kill(self) -> None:
        """Kills the program immediately, like `kill -9`."""
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
