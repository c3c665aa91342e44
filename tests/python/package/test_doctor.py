"""`pygpu doctor`, `pygpu cache`, and the line of a compilation that takes long."""

from __future__ import annotations

import functools
import json
import os
import pty
import re
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy
import pytest
from device import BACKEND
from processes import ROOT, run_python
from test_environment import documented

import pygpu
from pygpu._program import doctor, settings

TARGET = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
CUDA = TARGET / "double" / "cuda"
ON_CUDA = {"PYGPU_CUDA_LIBRARY": str(CUDA / "libcuda.so.1"), "DOUBLE_DEVICES": "1"}
NVRTC = {"PYGPU_NVRTC": str(CUDA / "libnvrtc.so.12")}

# Each set-up is made of what a machine with one thing wrong has.
pytestmark = pytest.mark.skipif(BACKEND != "host", reason="the doctor tries every backend anyway")


@functools.cache
def own_cache() -> tempfile.TemporaryDirectory[str]:
    """A new default cache: the user's may have gigabytes, all of which the doctor reads."""
    return tempfile.TemporaryDirectory(prefix="pygpu-doctor-")


def clean(**variables: str) -> dict[str, str]:
    """The environment without settings of pygpu and with an own cache, and with these."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("PYGPU")}
    return kept | {"XDG_CACHE_HOME": own_cache().name} | variables


def run(*words: str, python: str | Path = sys.executable, **variables: str):
    return subprocess.run(
        [python, "-m", "pygpu", *words],
        capture_output=True,
        text=True,
        timeout=240,
        env=clean(**variables),
        check=False,
    )


def report(**variables: str):
    """The doctor's report as JSON, and its problems."""
    done = run("doctor", "--json", **variables)
    assert done.stderr == ""
    found = json.loads(done.stdout)
    assert done.returncode == (1 if found["problems"] else 0)
    return found, found["problems"]


def test_nothing_is_wrong(tmp_path):
    found, problems = report(PYGPU_CACHE_DIR=str(tmp_path))
    assert problems == []
    host = found["backends"]["host"]
    steps = ["open", "transfer", "array operation", "reduction", "compiler", "kernel"]
    assert list(host["steps"]) == steps
    assert ": " in host["steps"]["compiler"]["compiler"]
    assert found["cache"]["folder"] == str(tmp_path)
    assert found["cache"]["writable"]
    assert found["variables"]["PYGPU_CACHE_DIR"] == str(tmp_path)
    said = run("doctor", PYGPU_CACHE_DIR=str(tmp_path)).stdout
    assert said.endswith("No problem was found.\n")
    # Libraries that are not installed are not listed path by path.
    assert "libcuda.so.1" not in said


def test_a_gpu_whose_driver_and_compiler_are_here(tmp_path):
    found, problems = report(**ON_CUDA, **NVRTC, PYGPU_CACHE_DIR=str(tmp_path))
    assert problems == []
    cuda = found["backends"]["cuda"]
    assert cuda["steps"]["open"]["devices"][0]["architecture"].startswith("sm_")
    assert cuda["steps"]["compiler"]["compiler"].startswith("NVRTC ")
    assert [Path(path).name for path in cuda["libraries"]] == ["libcuda.so.1", "libnvrtc.so.12"]


def test_no_compiler_of_cpp(tmp_path):
    found, problems = report(PATH=str(tmp_path), CXX="/none/c++", PYGPU_CACHE_DIR=str(tmp_path))
    (problem,) = problems
    assert problem.startswith(
        "host: compiler, kernel failed: kernels in CUDA C need a C++ compiler"
    )
    assert 'CXX names "/none/c++", which does not run' in problem
    assert "pip install ziglang" in problem
    assert "error" not in found["backends"]["host"]["steps"]["array operation"]


@pytest.fixture
def bare(tmp_path):
    """An environment that has pygpu and numpy alone."""
    folder = tmp_path / "bare"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", folder], check=True)
    (site,) = folder.glob("lib/python*/site-packages")
    packages = Path(numpy.__file__).parents[1]
    for path in [Path(pygpu.__file__).parent, *packages.glob("numpy*")]:
        (site / path.name).symlink_to(path)
    return folder / "bin" / "python"


def test_no_nvrtc(bare, tmp_path):
    cache = str(tmp_path / "cache")
    done = run("doctor", "--json", python=bare, **ON_CUDA, CUDA_HOME="/none", PYGPU_CACHE_DIR=cache)
    (problem,) = json.loads(done.stdout)["problems"]
    assert re.match("cuda: .*compiler, kernel failed: ", problem)
    assert "pip install nvidia-cuda-nvrtc-cu12" in problem
    assert len(problem) < 500, "the paths that were searched are not part of the advice"


def test_a_cache_that_cannot_be_written():
    found, problems = report(PYGPU_CACHE_DIR="/proc/none")
    (problem,) = problems
    assert "cannot be kept (/proc: " in problem
    assert "PYGPU_CACHE_DIR" in problem
    assert found["cache"]["writable"] is False


@pytest.mark.parametrize("options", [[], ["--json"]])
def test_a_misspelt_variable_and_a_bad_value_are_a_line_each(options):
    done = run("doctor", *options, PYGPU_CAHCE_DIR="/tmp", PYGPU_HOST_MEMORY="lots")
    assert done.returncode == 1
    said = json.loads(done.stdout)["problems"] if options else done.stdout.splitlines()[-2:]
    first, second = (re.sub(r"^\d\. ", "", line) for line in said)
    assert first.endswith("reads no variable of this name; did you mean PYGPU_CACHE_DIR?")
    assert second.startswith('PYGPU_HOST_MEMORY is "lots"; allowed are whole numbers above 0')


def library(folder: Path, text: str) -> str:
    source, file = folder / "driver.cpp", folder / "libcuda.so.1"
    source.write_text(text)
    subprocess.run(["c++", "-shared", "-fPIC", "-o", file, source], check=True)
    return str(file)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("#include <cstdlib>\n__attribute__((constructor)) void f() { abort(); }", "SIGABRT"),
        ("int nothing;", "lacks cu"),
    ],
)
def test_a_driver_that_fails(tmp_path, text, said):
    found, problems = report(PYGPU_CUDA_LIBRARY=library(tmp_path, text))
    (problem,) = problems
    assert problem.startswith("the backend cuda cannot be used: ")
    assert said in problem
    assert found["backends"]["host"]["failures"] == {}


def test_a_process_that_ends_before_its_first_step(tmp_path):
    text = "import os, sys\nif 'try_backend' in str(sys.orig_argv):\n    os._exit(7)\n"
    (tmp_path / "sitecustomize.py").write_text(text)
    found, problems = report(PYTHONPATH=str(tmp_path))
    assert len(problems) == len(found["backends"])
    assert all("the process ended with status 7" in it for it in problems)


def test_a_driver_of_a_gpu_that_is_gone():
    _, problems = report(**ON_CUDA | {"DOUBLE_DEVICES": "0"}, PYGPU_BACKEND="cuda")
    (problem,) = problems
    assert problem.startswith("PYGPU_BACKEND is cuda, but it cannot be used: ")
    assert "a container needs to be started with access" in problem


def test_another_package_of_the_same_name(tmp_path):
    (tmp_path / "pygpu").mkdir()
    (tmp_path / "pygpu" / "__init__.py").touch()
    (tmp_path / "pygpu" / "gpuarray.cpython.so").touch()
    code = "import sys; sys.path.append(sys.argv.pop()); from pygpu._program import doctor"
    done = run_python(f"{code}; print(doctor._other_packages())", str(tmp_path))
    assert f"{tmp_path / 'pygpu'} is Theano's package pygpu" in done.stdout


def test_what_is_left_of_another_package_in_the_same_folder(tmp_path):
    for path in Path(pygpu.__file__).parent.iterdir():
        (tmp_path / "pygpu").mkdir(exist_ok=True)
        (tmp_path / "pygpu" / path.name).symlink_to(path)
    (tmp_path / "pygpu" / "gpuarray.abi3.so").touch()
    code = "import sys; sys.path.insert(0, sys.argv.pop()); import pygpu"
    done = run_python(code, str(tmp_path), check=False, fresh=True)
    assert done.returncode == 1
    last = done.stderr.splitlines()[-1]
    assert last.startswith(f"ImportError: {tmp_path}/pygpu/gpuarray.abi3.so is of Theano's package")
    assert "conda remove pygpu" in last


def test_messages_without_the_paths_that_were_searched():
    text = (
        "nothing can compile it: NVRTC cannot be opened: tried libnvrtc.so.13, /a/libnvrtc.so.12 "
        "(cannot open shared object file: No such file or directory), /b/libnvrtc.so.12 (file too "
        "short); also looked below /b, /c; `pip install x` or name it"
    )
    assert doctor.short(text) == (
        "NVRTC cannot be opened (/b/libnvrtc.so.12: file too short); `pip install x` or name it"
    )
    assert doctor.short("A cannot be opened: tried x, y (No such file)") == "A is not installed"


# -- settings -------------------------------------------------------------------------------------


def test_settings_are_those_of_the_page():
    rows = {name for _, name in documented() if name.startswith("PYGPU_")}
    assert rows == set(settings.SETTINGS)


READERS = """
    import numpy as np
    import pygpu.autoinit
    from pygpu import _core, gpuarray
    from pygpu.compiler import SourceModule
    from PybindGPU import _status
    a = gpuarray.zeros(4, np.float32)
    a + 1
    _core.code_cache()
    module = SourceModule("__global__ void f(float *x) {}")
    module.get_function("f")(a.view(np.int32), block=(1, 1, 1))
    _status.mode()
"""
GOOD = {
    "PYGPU_ARGUMENT_TYPES": "ignore",
    "PYGPU_ARRAY_MEMORY": "plain",
    "PYGPU_BACKEND": "Host",
    "PYGPU_CACHE": "YES",
    "PYGPU_CACHE_SIZE": "2 GiB",
    "PYGPU_CHECK": "bounds, races",
    "PYGPU_HOST_CACHE": "0",
    "PYGPU_HOST_MEMORY": "512m",
    "PYGPU_HOST_THREADS": "3",
    "PYGPU_LEAKS": "off",
    "PYGPU_PROGRESS": "off",
    "PYGPU_STATUS": "raise",
}
BAD = {
    "PYGPU_ARGUMENT_TYPES": "WARN",
    "PYGPU_ARRAY_MEMORY": "Plain",
    "PYGPU_BACKEND": "opencl",
    "PYGPU_CACHE": "2",
    "PYGPU_CACHE_DIR": "relative",
    "PYGPU_CACHE_SIZE": "0",
    "PYGPU_CHECK": "bounds,all of it",
    "PYGPU_HOST_CACHE": "-1",
    "PYGPU_HOST_MEMORY": "1.5G",
    "PYGPU_HOST_THREADS": "4097",
    "PYGPU_LEAKS": "perhaps",
    "PYGPU_STATUS": "Raise",
}


def test_what_the_doctor_takes_is_taken_by_those_who_read_it():
    assert settings.faults(GOOD) == {}
    done = subprocess.run(
        [sys.executable, "-c", "import textwrap, sys; exec(textwrap.dedent(sys.argv[1]))", READERS],
        env=clean(**GOOD),
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize("name", list(BAD))
def test_what_the_doctor_refuses_is_refused_by_those_who_read_it(name):
    assert list(settings.faults({name: BAD[name]})) == [name]
    done = run_python(READERS, check=False, **{name: BAD[name]})
    assert done.returncode == 1
    assert name in done.stderr.splitlines()[-1]
    assert "allowed are" in done.stderr.splitlines()[-1]


@pytest.mark.parametrize(
    ("name", "value", "is_right"),
    [
        ("PYGPU_STAGING_BYTES", "128K", True),
        ("PYGPU_STAGING_BYTES", "127K", False),
        ("PYGPU_STAGING_THREADS", "0", True),
        ("PYGPU_STAGING_THREADS", "257", False),
        ("PYGPU_NVRTC", "/none/libnvrtc.so", False),
        ("PYGPU_NVRTC", "libnvrtc.so.12", True),
        ("PYGPU_CUBLAS", "off", True),
        ("PYGPU_NVRTC_PATH", "/tmp:/none", False),
        ("PYGPU_NVRTC_PATH", "/tmp", True),
        ("PYGPU_HOST_MEMORY", "  ", True),
    ],
)
def test_values(name, value, is_right):
    assert (settings.faults({name: value}) == {}) == is_right


# -- the cache ------------------------------------------------------------------------------------


def test_the_cache_is_listed_measured_and_cleared(tmp_path):
    environment = clean(PYGPU_CACHE_DIR=str(tmp_path), PYGPU_BACKEND="host")
    code = "import pygpu.autoinit; from pygpu.compiler import SourceModule as S"
    code += "; S('__global__ void f() {}'); S('__global__ void g() {}')"
    subprocess.run([sys.executable, "-c", code], env=environment, check=True)
    (tmp_path / "mine.txt").write_text("not an entry")

    def cache(*words: str):
        done = run("cache", *words, PYGPU_CACHE_DIR=str(tmp_path), PYGPU_CACHE_SIZE="1M")
        assert (done.returncode, done.stderr) == (0, "")
        return done.stdout

    listed = json.loads(cache("list", "--json"))
    assert [entry["kind"] for entry in listed["kept"]].count("host") == 2
    assert listed["limit"] == 1 << 20
    sizes = sum(entry["bytes"] for entry in listed["kept"])
    assert listed["bytes"] + listed["header_bytes"] == sizes
    assert " host " in cache("list")
    assert re.match(r"2 pieces of code \(0\.\d of 1 MiB\) and \d+\.\d MiB of ", cache("size"))
    assert f"headers kept in {tmp_path}\n" in cache("size")
    assert f"removed in {tmp_path}\n" in cache("clear")
    assert [path.name for path in tmp_path.rglob("*") if path.is_file()] == ["mine.txt"]
    assert json.loads(cache("size", "--json"))["entries"] == 0


def test_a_cache_that_is_off_or_badly_set():
    assert "nothing is kept" in run("cache", "size", PYGPU_CACHE="off").stdout
    done = run("cache", "size", PYGPU_CACHE_DIR="here")
    assert done.returncode == 2
    assert done.stderr.startswith('pygpu cache: PYGPU_CACHE_DIR is "here"; allowed are')


# -- waiting --------------------------------------------------------------------------------------

SLOW = """
    import time
    import pygpu.autoinit
    from pygpu import _core
    from pygpu._compile import compilation
    from pygpu.compiler import SourceModule
    compilation._PATIENCE = 0
    compile_program = _core.compile_program
    def slow(*arguments):
        for _ in range(2000):
            time.sleep(0.01)
            if told:
                break
        return compile_program(*arguments)
    told = []
    _core.compile_program = slow
    tell = compilation.print = lambda *a, **k: (print(*a, **k), told.append(a))
    if {quiet}:
        told.append(0)
    SourceModule('''
        __global__ void __launch_bounds__(64) first(int *x) {{}}
        __global__ void second(float a) {{}}
    ''')
"""


def on_a_terminal(code: str, **variables: str) -> str:
    """What a program writes to a terminal."""
    ours, theirs = pty.openpty()
    command = "import textwrap, sys; exec(textwrap.dedent(sys.argv[1]))"
    with open(ours, "rb", buffering=0) as terminal:
        process = subprocess.Popen(
            [sys.executable, "-c", command, code], env=clean(**variables), stderr=theirs
        )
        os.close(theirs)
        said = b""
        try:
            while part := terminal.read(1000):
                said += part
        except OSError:
            # The other end is closed.
            pass
    assert process.wait(60) == 0, said
    return said.decode()


def test_a_compilation_that_takes_long_is_told_on_a_terminal(tmp_path):
    kept = {"PYGPU_CACHE_DIR": str(tmp_path), "PYGPU_BACKEND": "host"}
    said = on_a_terminal(SLOW.format(quiet=False), **kept)
    assert said == "pygpu: compiling first, second; the code is kept for later runs\r\n"
    said = on_a_terminal(SLOW.format(quiet=False), PYGPU_CACHE="0", PYGPU_BACKEND="host")
    assert said == "pygpu: compiling first, second\r\n"


def test_a_compilation_is_quiet_where_nobody_waits_or_it_is_switched_off(tmp_path):
    kept = {"PYGPU_CACHE_DIR": str(tmp_path), "PYGPU_BACKEND": "host"}
    quiet = SLOW.format(quiet=True)
    assert on_a_terminal(quiet, PYGPU_PROGRESS="0", **kept) == ""
    # In a pipe.
    assert run_python(quiet, **kept).stderr == ""


OWN_STDERR = """
import sys
import pygpu.autoinit
from pygpu.compiler import compile

class Log:
    def write(self, text): ...

kept, closed = sys.stderr, open("/dev/null", "w")
closed.close()
for number, stream in enumerate((Log(), closed, None)):
    sys.stderr = stream
    assert compile(f"__global__ void k(int *x) {{ x[0] = {number}; }}")
sys.stderr = kept
"""


def test_a_program_with_another_stderr_compiles(tmp_path):
    kept = {"PYGPU_CACHE_DIR": str(tmp_path), "PYGPU_BACKEND": "host"}
    assert run_python(OWN_STDERR, **kept).stderr == ""


def test_folders_of_modules_may_be_out_of_reach(monkeypatch):
    # As root opens all folders, a name that is too long stands for one that may not be searched.
    monkeypatch.setattr(sys, "path", [*sys.path, "/" + "x" * 300])
    assert doctor._other_packages() == []
