"""`pygpu info` and `run`, and the alias that `run` installs."""

from __future__ import annotations

import json
import os
import py_compile
import re
import signal
import subprocess
import sys
import zipapp
import zipfile
from pathlib import Path

import pytest
from processes import run_python

from pygpu.__main__ import main

BACKENDS = ["cuda", "hip", "host"]


def pygpu(*arguments: str, cwd: Path | None = None, **environment: str):
    return subprocess.run(
        [sys.executable, "-m", "pygpu", *arguments],
        capture_output=True,
        text=True,
        timeout=120,
        cwd=cwd,
        env=os.environ | environment,
        stdin=subprocess.DEVNULL,
        check=False,
    )


def python(*arguments: str, cwd: Path | None = None):
    return subprocess.run(
        [sys.executable, *arguments],
        capture_output=True,
        text=True,
        timeout=120,
        cwd=cwd,
        stdin=subprocess.DEVNULL,
        check=False,
    )


# ---- info ---------------------------------------------------------------------------------------


def test_info_lists_every_backend():
    done = pygpu("info", PYGPU_BACKEND="host")
    assert (done.returncode, done.stderr) == (0, "")
    first_words = [line.split()[0] for line in done.stdout.splitlines() if line.strip()]
    assert [word for word in first_words if word in BACKENDS] == BACKENDS
    assert "chosen: host (PYGPU_BACKEND=host)" in done.stdout


def test_info_as_json():
    done = pygpu("info", "--json", PYGPU_BACKEND="auto")
    assert (done.returncode, done.stderr) == (0, "")
    report = json.loads(done.stdout)
    assert [backend["name"] for backend in report["backends"]] == BACKENDS
    for backend in report["backends"]:
        if backend["available"]:
            assert backend["reason"] is None
            for device in backend["devices"]:
                assert device["total_memory"] > 0
                assert len(device["compute_capability"]) == 2
        else:
            assert backend["reason"]
            assert backend["devices"] == []
    host = report["backends"][2]
    assert host["available"]
    assert len(host["devices"]) == 1
    available = [backend["name"] for backend in report["backends"] if backend["available"]]
    assert report["chosen"] in available
    assert report["requested"] == "auto"


def test_info_honours_the_hosts_capacity():
    done = pygpu("info", "--json", PYGPU_BACKEND="host", PYGPU_HOST_MEMORY="64M")
    (device,) = json.loads(done.stdout)["backends"][2]["devices"]
    assert device["total_memory"] == 64 << 20


@pytest.mark.parametrize("options", [[], ["--json"]])
def test_info_with_an_unknown_backend(options):
    done = pygpu("info", *options, PYGPU_BACKEND="vulkan")
    assert done.returncode == 2
    assert done.stdout == ""
    (line,) = done.stderr.splitlines()
    assert "PYGPU_BACKEND" in line
    assert "vulkan" in line
    for name in ("auto", *BACKENDS):
        assert name in line


def test_a_program_with_an_unknown_backend():
    done = run_python("import pygpu.autoinit", check=False, PYGPU_BACKEND="vulkan")
    assert done.returncode == 1
    assert "vulkan" in done.stderr.splitlines()[-1]


# ---- usage --------------------------------------------------------------------------------------


def status_of(*arguments: str) -> int:
    """Returns the exit status of a command line that starts no program, run in this process."""
    try:
        return main(arguments)
    except SystemExit as ending:
        return int(ending.code or 0)


def test_help_and_version(capsys):
    for arguments in (["--help"], ["-h"], ["info", "--help"], ["run", "--help"]):
        assert status_of(*arguments) == 0
        assert "usage:" in capsys.readouterr().out
    assert pygpu("--version").stdout.startswith("pygpu ")


@pytest.mark.parametrize(
    "arguments",
    [
        [],
        ["nonsense"],
        ["info", "--nonsense"],
        ["run"],
        ["run", "-x"],
        ["run", "-m"],
        ["run", "-c"],
    ],
)
def test_a_command_line_that_makes_no_sense(arguments, capsys):
    assert status_of(*arguments) == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err


# ---- run ----------------------------------------------------------------------------------------

PROGRAM = """\
import sys
import pycuda.autoinit
import pycuda.driver as drv
import numpy as np
from pycuda import gpuarray

a = gpuarray.to_gpu(np.arange(4, dtype=np.float32))
assert (2 * a + a).get().tolist() == [0, 3, 6, 9]
assert isinstance(drv.Context.get_device().name(), str)
"""


@pytest.fixture
def folder(tmp_path):
    # Resolved, because Python resolves the folder of a program.
    return Path(os.path.realpath(tmp_path))


def test_run_a_pycuda_program(folder):
    (folder / "program.py").write_text(PROGRAM + "print('done')\n")
    done = pygpu("run", "program.py", cwd=folder)
    assert (done.returncode, done.stdout, done.stderr) == (0, "done\n", "")


LOOK = """\
import os, sys
print(sys.argv)
print(repr(sys.path[0]))
print(__name__, __spec__, __doc__, __package__)
print(os.path.realpath(__file__), os.path.isabs(__file__))
print(sys.modules["__main__"].__dict__ is globals())
import beside
print(beside.__name__)
"""


LOOK_AT_MAIN = "repr(sys.path[0]), __name__, __package__, __file__, __spec__ and __spec__.name"
ARGUMENTS = ["a", "--help", "-m", "b c", "--"]


@pytest.mark.parametrize(
    ("way", "arguments"),
    [("program.py", ARGUMENTS), ("sub/../program.py", []), ("link/program.py", ARGUMENTS)],
)
def test_the_program_sees_what_plain_python_shows(folder, way, arguments):
    (folder / "sub").mkdir()
    (folder / "link").symlink_to(folder)
    (folder / "program.py").write_text(LOOK)
    (folder / "beside.py").write_text("")
    expected = python(way, *arguments, cwd=folder)
    done = pygpu("run", way, *arguments, cwd=folder)
    assert expected.returncode == 0
    assert (done.returncode, done.stdout, done.stderr) == (0, expected.stdout, "")


def test_a_module_as_the_program(folder):
    (folder / "package").mkdir()
    (folder / "package" / "__init__.py").write_text("")
    (folder / "package" / "program.py").write_text(
        "import sys, pycuda.gpuarray\nprint(sys.argv, sys.path[0], __name__)\nsys.exit(4)\n"
    )
    done = pygpu("run", "-m", "package.program", "x", "-c", cwd=folder)
    path = str(folder / "package" / "program.py")
    assert done.returncode == 4
    assert done.stdout == f"{[path, 'x', '-c']} {folder} __main__\n"
    missing = pygpu("run", "-m", "package.nothing", cwd=folder)
    assert missing.returncode == 1
    assert "package.nothing" in missing.stderr


@pytest.mark.parametrize(
    "arguments",
    [
        ["-mpackage", "x"],
        ["-cimport sys; print(sys.argv)", "-c"],
        ["-c", ""],
        ["package/", "x"],
        ["package.zip", "x"],
        ["program.pyc", "x"],
        ["-O", "-Wignore", "-X", "utf8", "program.py", "-O"],
        ["-BOmpackage"],
        ["-i", "program.py"],
        ["-s", "-"],
        ["-R", "program.py"],
        ["-xO", "after_a_line.py"],
    ],
)
def test_forms_of_a_command(folder, arguments):
    text = f"import sys\nprint(sys.argv, sys.flags, {LOOK_AT_MAIN})\n"
    (folder / "package").mkdir()
    (folder / "package" / "__main__.py").write_text(text)
    (folder / "program.py").write_text(text)
    (folder / "after_a_line.py").write_text(f"no Python\n{text}")
    zipapp.create_archive(folder / "package", folder / "package.zip")
    py_compile.compile(str(folder / "program.py"), str(folder / "program.pyc"), doraise=True)
    expected = python(*arguments, cwd=folder)
    done = pygpu("run", *arguments, cwd=folder)
    assert (done.returncode, done.stdout, done.stderr) == (0, expected.stdout, expected.stderr)


@pytest.mark.parametrize("program", [["package"], ["empty.zip"], ["-m", "./program"]])
def test_a_program_without_a_main_module(folder, program):
    (folder / "package").mkdir()
    (folder / "program.py").write_text("")
    zipfile.ZipFile(folder / "empty.zip", "w").close()
    done = pygpu("run", *program, cwd=folder)
    assert (done.returncode, done.stdout) == (1, "")
    assert re.match("pygpu run: (can't find '__main__' module|relative)", done.stderr)


def test_code_as_the_program(folder):
    done = pygpu("run", "-c", PROGRAM + "print(sys.argv, repr(sys.path[0]))", "x", cwd=folder)
    assert (done.returncode, done.stdout, done.stderr) == (0, "['-c', 'x'] ''\n", "")


@pytest.mark.parametrize(
    ("line", "status"),
    [("sys.exit(7)", 7), ("sys.exit()", 0), ("sys.exit('bad')", 1), ("raise SystemExit(3)", 3)],
)
def test_exit_status(folder, line, status):
    (folder / "program.py").write_text(PROGRAM + line)
    assert pygpu("run", "program.py", cwd=folder).returncode == status


def test_an_error_looks_as_under_plain_python(folder):
    program = folder / "program.py"
    program.write_text("def divide(x):\n    return 1 / x\n\n\ndivide(0)\n")
    expected = python("program.py", cwd=folder)
    done = pygpu("run", "program.py", cwd=folder)
    assert (done.returncode, done.stdout, done.stderr) == (1, "", expected.stderr)
    program.write_text("if:\n")
    expected = python("program.py", cwd=folder)
    done = pygpu("run", "program.py", cwd=folder)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.splitlines()[-1] == expected.stderr.splitlines()[-1]
    assert "program.py" in done.stderr


def test_interruption(folder):
    (folder / "program.py").write_text("import os, signal\nos.kill(os.getpid(), signal.SIGINT)\n")
    assert pygpu("run", "program.py", cwd=folder).returncode == -signal.SIGINT


def test_a_program_that_is_not_there(folder):
    done = pygpu("run", "nothing.py", cwd=folder)
    assert (done.returncode, done.stdout) == (2, "")
    (line,) = done.stderr.splitlines()
    assert "nothing.py" in line
    assert "No such file" in line


def test_a_folder_with_a_main_program(folder):
    (folder / "app").mkdir()
    (folder / "app" / "__main__.py").write_text("import pycuda.driver, sys\nprint(sys.argv)\n")
    done = pygpu("run", "app", "x", cwd=folder)
    assert (done.returncode, done.stdout) == (0, "['app', 'x']\n")
    assert pygpu("run", "nothing.pyz", cwd=folder).returncode == 2


# ---- the alias ----------------------------------------------------------------------------------


def test_a_module_is_one_under_both_names():
    run_python(
        """
        import pygpu
        pygpu.install_as_pycuda()
        pygpu.install_as_pycuda()
        import pycuda, pycuda.driver, pycuda.gpuarray as theirs
        import pygpu.driver, pygpu.gpuarray as ours
        from pycuda import gpuarray, driver
        from pycuda.gpuarray import GPUArray
        assert pycuda.VERSION == (2026, 1) and pycuda.VERSION_TEXT == "2026.1"
        assert pycuda.VERSION_STATUS == ""
        assert pygpu.VERSION_TEXT == pygpu.__version__ != pycuda.VERSION_TEXT
        assert pycuda.backends is pygpu.backends
        assert theirs is ours is gpuarray
        assert pycuda.driver is pygpu.driver is driver
        assert GPUArray is ours.GPUArray
        assert ours.__spec__.name == "pygpu.gpuarray"
        import importlib, pickle, sys
        assert importlib.import_module("pycuda.gpuarray") is ours
        assert pickle.loads(pickle.dumps(GPUArray)) is GPUArray
        import pycuda.tools, pycuda.characterize, pycuda.compiler, pycuda.autoinit
        assert pycuda.autoinit.context is not None
        """,
        fresh=True,
    )


def test_a_module_that_neither_has():
    run_python(
        """
        from pygpu import install_as_pycuda
        install_as_pycuda()
        for name in ("pycuda.nothing", "pycuda.nothing.more"):
            try:
                __import__(name)
            except ModuleNotFoundError as error:
                assert "pycuda.nothing" in str(error) and "pygpu.nothing" in str(error), error
                assert error.name == "pycuda.nothing"
            else:
                raise AssertionError(name)
        try:
            from pycuda import nothing
        except ImportError as error:
            assert "nothing" in str(error)
        """,
        fresh=True,
    )


def test_an_error_inside_a_module_is_not_taken_for_its_absence(folder):
    run_python(
        """
        import sys, types
        import pygpu
        pygpu.__path__.append(sys.argv[1])
        pygpu.install_as_pycuda()
        try:
            import pycuda.broken
        except ModuleNotFoundError as error:
            assert error.name == "surely_not_there", error
        else:
            raise AssertionError
        assert "pycuda.broken" not in sys.modules
        """,
        str(_with_broken_module(folder)),
        fresh=True,
    )


def _with_broken_module(folder: Path) -> Path:
    (folder / "broken.py").write_text("import surely_not_there\n")
    return folder


def test_the_real_pycuda_imported_before(folder):
    (folder / "pycuda.py").write_text("")
    run_python(
        """
        import sys
        sys.path.insert(0, sys.argv[1])
        import pycuda
        import pygpu
        try:
            pygpu.install_as_pycuda()
        except ImportError as error:
            assert "already imported" in str(error)
        else:
            raise AssertionError
        """,
        str(folder),
        fresh=True,
    )


def test_the_alias_comes_before_an_installed_pycuda(folder):
    (folder / "pycuda.py").write_text("raise AssertionError('the real one')")
    (folder / "program.py").write_text(PROGRAM)
    paths = [str(folder), *os.environ.get("PYTHONPATH", "").split(os.pathsep)]
    done = pygpu("run", "program.py", cwd=folder, PYTHONPATH=os.pathsep.join(filter(None, paths)))
    assert (done.returncode, done.stderr) == (0, "")


def test_a_module_may_empty_its_arguments(folder):
    text = "import sys\nsys.argv.clear()\nprint(__name__, __spec__.name, __package__, __file__)\n"
    for name in ("emptying.py", "emptied/__init__.py", "emptied/__main__.py"):
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(text if name != "emptied/__init__.py" else "")
    for name in ("emptying", "emptied", "emptied.__main__"):
        done = pygpu("run", "-m", name, cwd=folder)
        assert (done.returncode, done.stderr) == (0, "")
        assert done.stdout == python("-m", name, cwd=folder).stdout
    (folder / "emptied" / "__main__.py").unlink()
    missing = pygpu("run", "-m", "emptied", cwd=folder)
    assert missing.returncode == python("-m", "emptied", cwd=folder).returncode == 1
    assert "'emptied' is a package and cannot be directly executed" in missing.stderr


@pytest.mark.parametrize("command", ["info", "cache list"])
def test_a_reader_may_stop_early(command, tmp_path):
    command = [sys.executable, "-m", "pygpu", *command.split()]
    # The user's cache may have gigabytes, which the list reads.
    environment = os.environ | {"PYGPU_CACHE_DIR": str(tmp_path)}
    reader, writer = os.pipe()
    os.close(reader)
    done = subprocess.run(
        command, stdout=writer, stderr=subprocess.PIPE, text=True, env=environment, check=False
    )
    os.close(writer)
    assert "Traceback" not in done.stderr, done.stderr
