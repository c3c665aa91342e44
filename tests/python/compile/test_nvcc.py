"""Uses of nvcc: its version, its preprocessor, and compilation of an unchanged text."""

from __future__ import annotations

import stat
import sys

import numpy as np
import pytest

from pygpu import compiler, driver

FILL = 'extern "C" __global__ void fill(int *x) { x[threadIdx.x] = VALUE; }'

# A program in place of nvcc that counts the requests for its version.
NVCC = """#!{python}
import sys
from pathlib import Path
if sys.argv[1] == "--version":
    with open({log!r}, "a") as log:
        log.write("version ")
    print("nvcc: NVIDIA (R) Cuda compiler driver")
elif "fails" in sys.argv:
    print("kernel.cu(1): error", file=sys.stderr)
    sys.exit(1)
else:
    assert (sys.argv[1], sys.argv[-2:]) == ("--preprocess", ["--compiler-options", "-P"])
    path = Path(sys.argv[-3])
    print(f'# 1 "{{path}}"')
    if "short" not in sys.argv:
        print(path.read_text().replace("VALUE", "7"))
"""


@pytest.fixture
def nvcc(tmp_path):
    path, log = tmp_path / "nvcc", tmp_path / "log"
    path.write_text(NVCC.format(python=sys.executable, log=str(log)))
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return str(path), log


def test_version(nvcc, tmp_path):
    nvcc, log = nvcc
    for _ in range(2):
        assert compiler.get_nvcc_version(nvcc) == "nvcc: NVIDIA (R) Cuda compiler driver\n"
    assert log.read_text() == "version "
    with pytest.warns(UserWarning, match="NVCC version could not be determined"):
        assert compiler.get_nvcc_version("false") == "nvcc unknown version"
    with pytest.warns(UserWarning, match="could not be determined"):
        assert compiler.get_nvcc_version("/nowhere/nvcc") == "nvcc unknown version"
    # PyCUDA's exception is also an OSError.
    with pytest.raises(OSError, match="nvcc is '.*nowhere'; a program that can be run is needed"):
        compiler.preprocess_source("", [], str(tmp_path / "nowhere"))


def test_preprocessor(nvcc):
    nvcc, _ = nvcc
    text = compiler.preprocess_source(FILL, ["-DX"], nvcc)
    assert FILL.replace("VALUE", "7") in text
    assert "kernel.cu" not in text
    with pytest.raises(
        driver.CompileError, match="nvcc preprocessing of kernel.cu failed"
    ) as failed:
        compiler.preprocess_source(FILL, ["fails"], nvcc)
    assert "error" in failed.value.stderr
    with pytest.raises(driver.CompileError, match="less than half"):
        compiler.preprocess_source(FILL * 20, ["short"], nvcc)


def values(code):
    memory = driver.mem_alloc(12)
    driver.module_from_buffer(code).get_function("fill")(memory, block=(3, 1, 1))
    return driver.from_device(memory, 3, np.int32).tolist()


def test_a_text_as_it_is(tmp_path, capsys):
    arguments = {"keep": False, "nvcc": "nvcc", "cache_dir": str(tmp_path)}
    assert values(compiler.compile_plain(FILL, ["-DVALUE=3"], **arguments)) == [3] * 3
    (tmp_path / "own.h").write_text("#define VALUE 4\n")
    options = ["-I", str(tmp_path)], [f"-I{tmp_path}"]
    for folder in options:
        source = f'#include "own.h"\n{FILL}'
        assert values(compiler.compile_plain(source, folder, **arguments)) == [4] * 3
    assert options[0] == ["-I", str(tmp_path)]
    arguments["keep"] = True
    compiler.compile_plain(FILL, ("-DVALUE=3",), **arguments)
    assert "compiler output in" in capsys.readouterr().out
    # The text is compiled without a wrapper.
    template = "template <class T> __global__ void f(T *x) { *x = 0; }\n"
    code = compiler.compile_plain(template + FILL, ["-DVALUE=5"], False, "nvcc", None)
    assert values(code) == [5] * 3
    with pytest.raises(driver.CompileError, match="compilation of kernel.cu failed"):
        compiler.compile_plain("nonsense", [], False, "nvcc", None)
    with pytest.raises(AssertionError, match="target is 'elf'"):
        compiler.compile_plain(FILL, [], False, "nvcc", None, target="elf")
    with pytest.raises(TypeError, match="options is the text"):
        compiler.compile_plain(FILL, "-DVALUE=3", False, "nvcc", None)


def test_the_architecture_among_the_options():
    arch = driver.Context.get_device().architecture()
    if not arch:
        arch = "sm_90"
    for options in (["-arch", arch], [f"-arch={arch}"]):
        code = compiler.compile_plain(FILL, ["-DVALUE=6", *options], False, "nvcc", None)
        assert values(code) == [6] * 3
