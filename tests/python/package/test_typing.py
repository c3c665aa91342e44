"""The programs in `tests/typing` run, and pass mypy's strict checks with the package's types."""

from __future__ import annotations

import ast
import importlib
import subprocess
import sys
from pathlib import Path

import pytest
from processes import ROOT, run_python

from pygpu import choose_backend

PROGRAMS = sorted((ROOT / "tests/typing").glob("*.py"))


def strict(*arguments, folder):
    """Returns mypy's output for user programs."""
    command = [sys.executable, "-m", "mypy", "--strict", "--no-incremental", *map(str, arguments)]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    return done.stdout + done.stderr


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.stem)
def test_a_program_runs(program):
    run_python(program.read_text())


@pytest.mark.skipif(choose_backend() != "host", reason="types are the same on every backend")
def test_programs_pass_strict_checks(tmp_path):
    # Errors that mypy must find; otherwise a package without types would pass.
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


def _seen(node, module):
    """Yields the names that an import statement provides to type checkers."""
    package = module.__package__.rsplit(".", node.level - 1)[0] if node.level > 1 else None
    home = f"{package or module.__package__}.{node.module or ''}".rstrip(".")
    for name in node.names:
        if name.name == "*":
            yield from importlib.import_module(home).__all__
        elif name.asname or node.module is None:
            yield name.asname or name.name


# cumath functions that differ from numpy's for integers, so that gpuarray leaves them out.
OTHERS = {"gpuarray": {"fabs", "frexp", "modf"}}


@pytest.mark.parametrize(
    "name", ["compiler", "cuda", "driver", "elementwise", "gpuarray", "reduction", "tools"]
)
def test_types_are_checked_for_the_names_that_a_module_has(name):
    module = importlib.import_module(f"pygpu.{name}")
    body = ast.parse(Path(module.__file__).read_text()).body
    lazy = next(it for it in body if isinstance(it, ast.If))
    seen = {it for node in lazy.body for it in _seen(node, module) if it[0] != "_"}
    own = {it.name for it in body if isinstance(it, ast.FunctionDef | ast.ClassDef)}
    for node in body:
        if isinstance(node, ast.ImportFrom):
            own |= {it.asname for it in node.names if it.asname and it.asname[0] != "_"}
        elif isinstance(node, ast.Assign | ast.AnnAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            own |= {it.id for target in targets for it in ast.walk(target) if hasattr(it, "id")}
    assert set(module.__all__) <= seen | own
    assert seen - OTHERS.get(name, set()) <= set(module.__all__)
