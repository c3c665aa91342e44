"""User programs, in `tests/typing`, run, and pass mypy's strict checks with the package's types."""

from __future__ import annotations

import subprocess
import sys

import pytest
from processes import ROOT, run_python

from pygpu import choose_backend

PROGRAMS = sorted((ROOT / "tests/typing").glob("*.py"))


def strict(*arguments, folder):
    """What mypy prints of user programs."""
    command = [sys.executable, "-m", "mypy", "--strict", "--no-incremental", *map(str, arguments)]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    return done.stdout + done.stderr


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.stem)
def test_a_program_runs(program):
    run_python(program.read_text())


@pytest.mark.skipif(choose_backend() != "host", reason="types are the same on every backend")
def test_programs_pass_strict_checks(tmp_path):
    # What mypy must find, so that a package without types would not pass.
    wrong = tmp_path / "wrong.py"
    wrong.write_text(
        "import PyGPU\n"
        "from pygpu import arrow, cuda\n"
        "count: str = arrow.Context().new_buffer(3).copy_from_host(b'')\n"
        "event: int = cuda.event()\n"
        "PyGPU.cudaEventRecorded()\n"
        "cuda.device_array((2, 3), order='X')\n"
    )
    found = strict(wrong, *PROGRAMS, folder=tmp_path)
    lines = [line for line in found.splitlines() if "error:" in line]
    assert [line.split(":")[1] for line in lines] == ["3", "4", "5", "6"], found
    assert all(line.startswith("wrong.py:") for line in lines), found
