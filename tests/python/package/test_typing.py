"""The programs in `tests/typing` run, and pass strict checks with the package's types: mypy's, and
pyright's if it is installed with node."""

from __future__ import annotations

import ast
import importlib.util
import json
import shutil
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


# Lines with errors that checkers must find; otherwise a package without types would pass.
WRONG = """\
import PyGPU
from pygpu import arrow, cuda, gpuarray
a = gpuarray.zeros((3, 2), 'f4', order='F')
count: str = arrow.Context().new_buffer(3).copy_from_host(b'')
event: int = cuda.event()
PyGPU.cudaEventRecorded()
cuda.device_array((2, 3), order='X')
gpuarray.zeros((3, 2), order='X')
gpuarray.zeros(2.5)
gpuarray.zeros(3, allocator=3)
gpuarray.sum(a, axis='rows')
gpuarray.sum(a, stream='default')
gpuarray.where(a, None, 0)
gpuarray.concatenate(3)
gpuarray.expand_dims(a, None)
gpuarray.isclose(a, len)
a.max(initial='none')
a.astype('f8', casting='always')
a.fill(print)
"""
WRONG_LINES = range(4, 1 + WRONG.count("\n"))
of_host = pytest.mark.skipif(
    choose_backend() != "host", reason="types are the same on every backend"
)


@of_host
def test_programs_pass_strict_checks(tmp_path):
    wrong = tmp_path / "wrong.py"
    wrong.write_text(WRONG)
    found = strict(wrong, *PROGRAMS, folder=tmp_path)
    lines = [line for line in found.splitlines() if "error:" in line]
    assert [int(line.split(":")[1]) for line in lines] == [*WRONG_LINES], found
    assert all(line.startswith("wrong.py:") for line in lines), found


@of_host
@pytest.mark.skipif(
    importlib.util.find_spec("pyright") is None or shutil.which("node") is None,
    reason="pyright is not installed, or node",
)
def test_programs_pass_pyrights_strict_checks(tmp_path):
    (tmp_path / "wrong.py").write_text(WRONG)
    for program in PROGRAMS:
        shutil.copy(program, tmp_path)
    (tmp_path / "pyrightconfig.json").write_text('{"typeCheckingMode": "strict"}')
    command = [sys.executable, "-m", "pyright", "--outputjson", "--pythonpath", sys.executable]
    done = subprocess.run(
        [*command, "."], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    found = json.loads(done.stdout)["generalDiagnostics"]
    places = {(Path(it["file"]).name, it["range"]["start"]["line"] + 1) for it in found}
    assert places == {("wrong.py", number) for number in WRONG_LINES}, found


def _defined(module):
    """Returns the names that a module defines. Checkers see those, and no imported ones, of a
    package with types."""
    body = ast.parse(Path(module.__file__).read_text()).body
    own = [it.name for it in body if isinstance(it, ast.FunctionDef | ast.ClassDef)]
    assigned = [it for node in body if isinstance(node, ast.Assign) for it in node.targets]
    own += [part.id for it in assigned for part in ast.walk(it) if isinstance(part, ast.Name)]
    return [name for name in own if not name.startswith("_")]


def _of_core():
    """Returns the list of the extension module's stub; at run time it has all names."""
    body = ast.parse((ROOT / "pygpu/python/pygpu/_core.pyi").read_text()).body
    lists = [it.value for it in body if ast.unparse(it).startswith("__all__ ")]
    return [name for it in lists for name in ast.literal_eval(it)]


def _seen(node, module):
    """Yields the names that an import statement provides to type checkers."""
    package = module.__package__.rsplit(".", node.level - 1)[0] if node.level > 1 else None
    home = f"{package or module.__package__}.{node.module or ''}".rstrip(".")
    for name in node.names:
        if name.name == "*":
            found = importlib.import_module(home)
            is_core = home == "pygpu._core"
            yield from _of_core() if is_core else getattr(found, "__all__", None) or _defined(found)
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
