"""The ways in which a program uses pygpu as PyCUDA, and the processes that it starts."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import zipapp
from pathlib import Path

import pytest

from pygpu._program.alias import _MIRRORED

INSTALL = "import pygpu; pygpu.install_as_pycuda(children=True)"
PYPROJECT = Path(__file__).parents[3] / "pyproject.toml"


@pytest.fixture
def folder(tmp_path):
    """Returns a folder with an installed package `pycuda` that must not be imported."""
    package = tmp_path / "installed" / "pycuda"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text("name = 'the real one'\n")
    (package / "driver.py").write_text("")
    metadata = tmp_path / "installed" / "pycuda-2020.1.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: pycuda\nVersion: 2020.1\n")
    return tmp_path


def python(folder, *arguments, **environment):
    """Runs Python in an environment that has PyCUDA installed; returns its output."""
    done = subprocess.run(
        [sys.executable, *arguments],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=100,
        env=os.environ
        | {"PYTHONPATH": str(folder / "installed"), "PYGPU_BACKEND": "host"}
        | environment,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr[-3000:]
    return done.stdout


WHOSE = "import pycuda.driver; print(pycuda.driver.__name__, end=' ')"

# Prints which driver it has imported, and starts itself again the given number of times.
PARENT = """
import subprocess, sys
import pycuda.driver
print(pycuda.driver.__name__, flush=True)
left = int(sys.argv[1]) - 1
if left:
    subprocess.run([sys.executable, "program.py", str(left)], check=True)
"""


def test_commands_that_a_program_starts(folder):
    (folder / "program.py").write_text(PARENT)
    assert python(folder, "program.py", "1") == "pycuda.driver\n"
    for arguments in (["program.py", "3"], ["-c", PARENT, "2"]):
        found = python(folder, "-m", "pygpu", "run", *arguments)
        assert found.split() == ["pygpu.driver"] * int(arguments[-1])


def test_commands_of_a_program_that_asks_by_itself(folder):
    (folder / "program.py").write_text(PARENT)
    for options, children in (("", "pycuda.driver"), ("children=True", "pygpu.driver")):
        ask = f"import pygpu; pygpu.install_as_pycuda({options})\n"
        found = python(folder, "-c", ask + PARENT, "2")
        assert found.split() == ["pygpu.driver", children]


def test_another_environment_has_its_own(folder):
    # Its interpreter inherits the variable, but pygpu is not installed there.
    (folder / "program.py").write_text(
        "import subprocess, sys\n"
        "code = 'import sys; sys.modules[\"pygpu\"] = None; import pycuda; print(pycuda.name)'\n"
        "subprocess.run([sys.executable, '-c', code], check=True)\n"
    )
    assert python(folder, "-m", "pygpu", "run", "program.py") == "the real one\n"


def test_info_says_which_is_taken(folder):
    where = folder / "installed" / "pycuda"
    text = python(folder, "-m", "pygpu", "info")
    assert f"also here, where PyCUDA 2020.1 is installed ({where})" in text
    assert json.loads(python(folder, "-m", "pygpu", "info", "--json"))["pycuda"] in text
    assert "PyCUDA is not installed" in python(folder, "-m", "pygpu", "info", PYTHONPATH="")


VERSION = "from importlib.metadata import version; print(version('pycuda'))"
IN_A_CHILD = f"subprocess.run([sys.executable, '-c', {VERSION!r}], check=True)"


@pytest.mark.parametrize(
    "command",
    [
        ["-c", f"import pygpu; pygpu.install_as_pycuda(); {VERSION}"],
        ["-m", "pygpu", "run", "-c", VERSION],
        ["-m", "pygpu", "run", "-c", f"import subprocess, sys; {IN_A_CHILD}"],
    ],
    ids=["call", "run", "a command that a program starts"],
)
def test_packages_find_the_version_that_they_ask_for(folder, command):
    assert python(folder, *command) == f"{'.'.join(map(str, _MIRRORED))}\n"


TESTS = f"""
import subprocess, sys
import pycuda.driver

def test_who_it_is():
    assert pycuda.driver.__name__ == "{{whose}}.driver"

def test_commands():
    done = subprocess.run([sys.executable, "-c", {WHOSE!r}], capture_output=True, text=True)
    assert done.stdout == "{{whose}}.driver "
"""


@pytest.mark.parametrize(
    ("options", "setting", "whose"),
    [
        ([], "", "pycuda"),
        (["--pygpu-as-pycuda", "-p", "xdist", "-n", "2"], "", "pygpu"),
        ([], "pygpu_as_pycuda=1", "pygpu"),
    ],
    ids=["real", "option and workers", "setting"],
)
def test_tests_of_a_program(folder, options, setting, whose):
    (folder / "pytest.ini").write_text(f"[pytest]\n{setting}\n")
    (folder / "conftest.py").write_text("import pycuda.driver\n")
    (folder / "test_program.py").write_text(TESTS.format(whose=whose))
    # The plugin is not found automatically if pygpu is not installed but only on the path.
    command = ["-m", "pytest", "-p", "pygpu._program.alias", *options]
    text = python(folder, *command, PYTEST_DISABLE_PLUGIN_AUTOLOAD="1")
    assert "2 passed" in text
    assert ("pycuda: pygpu " in text) == (whose == "pygpu")


def test_pytest_finds_the_plugin():
    text = PYPROJECT.read_text()
    assert '[project.entry-points.pytest11]\npygpu = "pygpu._program.alias"\n' in text


def test_a_program_from_standard_input(folder):
    program = "import sys, pycuda.driver\nprint(__name__, sys.argv, pycuda.driver.__name__)\n"
    done = subprocess.run(
        [sys.executable, "-m", "pygpu", "run", "-", "a", "-b"],
        input=program,
        capture_output=True,
        text=True,
        timeout=100,
        cwd=folder,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == "__main__ ['-', 'a', '-b'] pygpu.driver\n"


def test_an_application_in_an_archive_of_any_name(folder):
    source = folder / "source"
    source.mkdir()
    (source / "__main__.py").write_text(f"{WHOSE}\nimport sys; print(sys.argv[1:])")
    zipapp.create_archive(source, folder / "application", "/usr/bin/env python3")
    printed = python(folder, "-m", "pygpu", "run", "application", "--help")
    assert printed.split() == ["pygpu.driver", "['--help']"]


@pytest.mark.parametrize("path", ["", os.pathsep + "installed", "with a space"])
def test_the_path_of_commands_stays_what_it_is(folder, path):
    (folder / "with a space").mkdir()
    show = "import os; print(repr(os.environ.get('PYTHONPATH')))"
    printed = python(folder, "-c", f"{INSTALL}\n{show}", PYTHONPATH=path)
    first, *others = printed.strip().strip("'").split(os.pathsep)
    assert first.endswith("_as_pycuda")
    assert os.pathsep.join(others) == path


def test_modules_that_others_import_are_attributes_of_the_package(folder):
    program = """
import pycuda, pycuda.autoinit
names = ("compiler", "driver", "elementwise", "gpuarray", "reduction", "tools", "_driver")
print(*(getattr(pycuda, name).__name__ for name in names))
print(hasattr(pycuda, "autoprimaryctx"), hasattr(pycuda, "gl"), hasattr(pycuda, "debug"))
"""
    own, absent = python(folder, "-m", "pygpu", "run", "-c", program).splitlines()
    assert own.replace("pygpu.", "").split() == [
        *("compiler", "driver", "elementwise", "gpuarray", "reduction", "tools", "_driver"),
    ]
    assert absent == "False False False"
