"""Arrays on the host need no compiler: the examples of their functions run where none is found."""

from __future__ import annotations

import pytest
from device import BACKEND
from processes import run_python

EXAMPLES = """
    import doctest
    import importlib

    import pygpu.autoinit
    from pygpu import compiler, driver, gpuarray

    try:
        compiler.compile("__global__ void nothing() {}")
    except driver.Unsupported as error:
        print(type(error).__name__)
    modules = {getattr(gpuarray, name).__module__ for name in gpuarray.__all__}
    # The one has an example that compiles, the other an example for each of 40 types.
    modules -= {"pygpu.characterize", "pygpu._vector_types"}
    finder, runner = doctest.DocTestFinder(exclude_empty=True), doctest.DocTestRunner()
    for name in sorted(modules | {"pygpu.cumath"}):
        for example in finder.find(importlib.import_module(name), name):
            if example.name not in EXCEPTIONS:
                runner.run(example)
    print(runner.summarize(verbose=False).failed, runner.tries > 300)
"""
# Textures are for kernels of a program.
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
