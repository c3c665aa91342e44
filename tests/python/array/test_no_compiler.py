"""Host arrays work without a compiler: the examples of their functions run where none is found."""

from __future__ import annotations

import pytest
from device import BACKEND
from processes import run_python

EXAMPLES = """
    import doctest
    import importlib

    import numpy as np

    import pygpu.autoinit
    from pygpu import compiler, driver, gpuarray

    try:
        compiler.compile("__global__ void nothing() {}")
    except driver.Unsupported as error:
        print(type(error).__name__)
    modules = {getattr(gpuarray, name).__module__ for name in gpuarray.__all__}
    # Two have examples that compile, the third an example for each of 40 types.
    modules -= {"pygpu._core", "pygpu.characterize", "pygpu._kernels.c_types"}
    finder, runner = doctest.DocTestFinder(exclude_empty=True), doctest.DocTestRunner()
    imported = {"driver": driver, "gpuarray": gpuarray, "np": np}
    for name in sorted(modules | {"pygpu.cumath"}):
        module = importlib.import_module(name)
        for example in finder.find(module, name, globs=imported | vars(module)):
            if example.name not in EXCEPTIONS:
                runner.run(example)
    print(runner.summarize(verbose=False).failed, runner.tries > 200)
"""
# Textures are used only by a program's kernels.
EXCEPTIONS = {
    "pygpu.gpuarray.GPUArray.bind_to_texref",
    "pygpu.gpuarray.GPUArray.bind_to_texref_ext",
}


@pytest.mark.skipif(BACKEND != "host", reason="GPUs' drivers bring their own compilers")
def test_arrays_need_no_compiler(tmp_path):
    code = EXAMPLES.replace("EXCEPTIONS", repr(EXCEPTIONS))
    folder = str(tmp_path)
    done = run_python(code, CXX=f"{folder}/none", PATH=folder, PYGPU_CACHE_DIR=folder)
    assert done.stdout.splitlines() == ["Unsupported", "0 True"]
    assert list(tmp_path.iterdir()) == []


SHORT_OF_FILES = """
    import os
    import resource

    import pygpu.autoinit
    from pygpu import compiler, driver

    limit = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    opened = len(os.listdir("/proc/self/fd"))
    resource.setrlimit(resource.RLIMIT_NOFILE, (opened, limit))
    try:
        compiler.SourceModule("__global__ void f() {}")
    except driver.Error as error:
        message = f"{type(error).__name__}: {error}"
    resource.setrlimit(resource.RLIMIT_NOFILE, (limit, limit))
    print(message)
    compiler.SourceModule("__global__ void f() {}")
"""


@pytest.mark.skipif(BACKEND != "host", reason="GPUs' drivers bring their own compilers")
def test_a_process_that_is_short_of_files_says_so_and_tries_again(tmp_path):
    done = run_python(SHORT_OF_FILES, PYGPU_CACHE_DIR=str(tmp_path))
    assert "Too many open files" in done.stdout
    assert "install" not in done.stdout
