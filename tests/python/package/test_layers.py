"""Connections between layers: the methods that the package adds to the array class, the calls of
the package in the extension, the types of an operand on its way to a backend, and the order of the
modules in a crate."""

from __future__ import annotations

import graphlib
import importlib
import inspect
import re

import numpy as np
import pytest
from pairs import check
from processes import ROOT, run_python

from pygpu import gpuarray
from pygpu._array import methods as _array_class
from pygpu.gpuarray import GPUArray

METHODS = _array_class._METHODS


def _function(name):
    module, function = METHODS[name]
    return getattr(importlib.import_module(module, "pygpu._array"), function)


def test_a_method_is_the_function_itself():
    a_gpu = gpuarray.to_gpu(np.array([[3, 1, 2], [0, 5, 4]]))
    for name in METHODS:
        assert getattr(GPUArray, name) is _function(name), name
        # The parameters that `help` and `inspect.signature` show for an array.
        first, *others = inspect.signature(_function(name)).parameters
        assert first in ("a", "array", "self"), name
        assert list(inspect.signature(getattr(a_gpu, name)).parameters) == others, name
    check(a_gpu.argmax(axis=1), np.array([0, 1]))
    assert gpuarray.cumsum is GPUArray.cumsum


def test_a_subclass_may_replace_a_method():
    class Shifted(GPUArray):
        def argmin(self, axis=None):
            return super().argmin(axis) + 100

    a_gpu = Shifted((3,), np.float32)
    a_gpu.set(np.array([2, 0, 1], "f4"))
    assert (int(a_gpu.argmin()), int(GPUArray.argmin(a_gpu))) == (101, 1)


@pytest.mark.parametrize("first", ["argmin", "__dlpack_device__", "ipc_handle", "trace"])
def test_arrays_have_the_methods_before_their_modules_are_imported(first):
    """This holds for any module that creates the array, even if `pygpu.gpuarray` is not
    imported."""
    program = f"""
        import sys
        from pygpu import _core, driver
        driver.init()
        array = _core.GPUArray((2, 2), "f4")
        array.fill(1)
        assert "pygpu.gpuarray" not in sys.modules, "this test wants a module that does without"
        assert {first!r} in dir(array) and callable(array.{first})
        assert (array.argmin().get(), array.trace().get()) == (0, 2)
        class Derived(_core.GPUArray):
            pass
        assert Derived.{first} is _core.GPUArray.{first}
    """
    run_python(program)


# The extension's files that call the package, and their reasons. None is on the path of an
# operator, a numpy function or a copy to the driver.
CALLS_OF_THE_PACKAGE = {
    "arrow/export.rs": "Arrow's exchange, which is imported where a program has Arrow",
    "array/attributes.rs": "the interface of other libraries; the grid of PyCUDA's attributes",
    "array/indexing.rs": "indices that are arrays",
    "array/textures.rs": "textures",
    "array/transfer.rs": "the function that unpickles",
    "kernel.rs": "texture references; the enumeration of a function's attributes",
    "array/reductions.rs": "reductions with numpy's initial and where",
    "kernel/signature.rs": "arrays of other libraries as arguments",
    "status.rs": "the class of statuses",
}


def test_where_the_extension_calls_the_package():
    sources = ROOT / "pygpu/src"
    found = {
        str(file.relative_to(sources))
        for file in sources.rglob("*.rs")
        if re.search(r'import\(\s*"pygpu(?!\._core")', file.read_text())
    }
    assert found == set(CALLS_OF_THE_PACKAGE)


def test_an_operand_has_two_types_on_its_way():
    """Programs and the array layer use one type, backends the other."""
    found = {}
    for folder in ("pygpu/src", "hal", "backend-host"):
        for file in (ROOT / folder).rglob("*.rs"):
            for enum in re.finditer(
                r"\benum (\w+)[^{;]*{(.*?)^\s*}", file.read_text(), re.S | re.M
            ):
                if re.search(r"\bArray\(", enum[2]) and re.search(
                    r"\b(Number|Scalar|Value)\(", enum[2]
                ):
                    found[enum[1]] = str(file.relative_to(ROOT))
    assert found == {
        "Argument": "hal/array/src/promote.rs",
        "Input": "hal/src/operation.rs",
    }


# Crates whose modules have an order: each names only modules below it.
ORDERED_CRATES = [
    "hal",
    "hal/array",
    "hal/codegen",
    "hal/driver",
    "hal/random",
    "backend-cuda",
    "backend-hip",
    "backend-host",
    "backend-host/executor",
    "backend-host/kernels",
    "cuda-c",
    "pygpu",
    ".",
]
# A capture keeps the memory that its work uses, and memory keeps the streams that have used it.
NAME_EACH_OTHER = {("hal", "stream"): {"memory"}}
# Crates in whose folders the files have an order, too.
ORDERED_FILES = ["backend-cuda", "backend-hip", "backend-host/executor", "backend-host/kernels"]
ORDERED_FILES += ["cuda-c", "hal/driver", "."]

ITEM = "(?:fn|struct|enum|trait|type|const|static)"


def _code(file):
    """Returns the text of a file without comments and unit tests."""
    text = re.sub(r"//.*", "", file.read_text())
    return re.sub(r"^#\[cfg\([^]]*\btest\b.*?^mod \w+ \{.*?^\}", "", text, flags=re.S | re.M)


def _named(text, prefix):
    """Returns the first names of paths that begin with a prefix."""
    for group, name in re.findall(rf"(?<![\w:]){prefix}(?:\{{([^;]*)\}};|(\w+))", text):
        while group != (group := re.sub(r"\{[^{}]*\}", "", group)):
            pass
        yield from [name] if name else re.findall(r"(?:^|,)\s*(\w+)", group)


def _module_graph(sources, *folder):
    """Returns the modules that each module in a folder names, also by the names of the folder's own
    file. Below the root, that file is a module of the graph too, with an empty name."""
    own = _code(sources.joinpath(*folder).with_suffix(".rs") if folder else sources / "lib.rs")
    files = {file.stem: file for file in sources.joinpath(*folder).glob("*.rs")}
    modules = set(files) - {"lib", "main", "tests"}
    used = re.findall(r"\buse (\w+)::([^;]+);", own)
    origin = {name: it for it, names in used for name in re.findall(r"\w+", names)}
    graph = {module: set() for module in modules}
    for module in modules:
        for file in [files[module], *files[module].with_suffix("").rglob("*.rs")]:
            parts = file.relative_to(sources).with_suffix("").parts
            if "tests" not in parts:
                steps = "super::" * (len(parts) - len(folder))
                path = "::".join(["crate", *folder, ""])
                names = {origin.get(it, it) for it in _named(_code(file), f"(?:{path}|{steps})")}
                graph[module] |= names & modules - {module}
                others = "|".join(names - modules)
                if folder and others and re.search(rf"\b{ITEM} (?:{others})\b", own):
                    graph[module].add("")
    if folder:
        graph[""] = {it for it in modules if re.search(rf"(?<![\w:]){it}::", own)}
    return graph


@pytest.mark.parametrize("crate", ORDERED_CRATES)
def test_modules_of_a_crate_name_only_modules_below_them(crate):
    graph = _module_graph(ROOT / crate / "src")
    assert any(graph.values()) or len(graph) < 9, "no module names another"
    for (owner, module), names in NAME_EACH_OTHER.items():
        if owner == crate:
            assert names <= graph[module], "the exception is not needed any more"
            graph[module] -= names
    graphlib.TopologicalSorter(graph).prepare()


@pytest.mark.parametrize("crate", ORDERED_FILES)
def test_files_of_a_folder_name_only_files_below_them(crate):
    sources = ROOT / crate / "src"
    for file in sources.rglob("*.rs"):
        folder = file.with_suffix("")
        if folder.is_dir():
            graph = graphlib.TopologicalSorter(
                _module_graph(sources, *folder.relative_to(sources).parts)
            )
            graph.prepare()
