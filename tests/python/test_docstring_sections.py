"""Every public function and class documents its parameters, and shows itself in an example.

The examples are run by `test_docstrings.py`.
"""

from __future__ import annotations

import enum
import importlib
import importlib.util
import inspect

import pytest

MODULES = [
    "pygpu",
    "pygpu.arrow",
    "pygpu.gpuarray",
    "pygpu.cuda",
    "pygpu.ipc",
    "pygpu.cumath",
    "pygpu.curandom",
    "pygpu.driver",
    "pygpu.compiler",
    "pygpu.elementwise",
    "pygpu.reduction",
    "pygpu.scan",
    "pygpu.tools",
    "pygpu.characterize",
    "pygpu.sparse.coordinate",
    "pygpu.sparse.packeted",
    "pygpu.sparse.cg",
    "pygpu.sparse.inner",
    "pygpu.sparse.operator",
    "pygpu.compyte.array",
    "pygpu.compyte.dtypes",
    "pygpu.numba",
    "pygpu.cuda.cudadrv.devicearray",
    "pygpu.cuda.cudadrv.devices",
    "pygpu.cuda.cudadrv.driver",
    "pygpu.cuda.cudadrv.error",
]
if importlib.util.find_spec("distributed") is not None:
    MODULES.append("pygpu.dask")


def _public(module):
    plain = [name for name in vars(module) if not name.startswith("_")]
    return getattr(module, "__all__", plain)


def _is_documented_by_a_sentence(value):
    """Enumerations and exceptions have values or a meaning, nothing to show in an example."""
    return isinstance(value, type) and issubclass(value, BaseException | enum.Enum)


def objects():
    """The public functions and classes, each once, under the first module that has it; those of
    this package only."""
    seen = set()
    for name in MODULES:
        module = importlib.import_module(name)
        for item in sorted(_public(module)):
            value = getattr(module, item)
            home = getattr(value, "__module__", None) or ""
            if not callable(value) or not home.startswith("pygpu") or id(value) in seen:
                continue
            seen.add(id(value))
            yield f"{name}.{item}", value


def missing(value):
    """The parts of a docstring that a public object lacks."""
    text = inspect.getdoc(value) or ""
    if not text.strip():
        return ["a docstring"]
    if _is_documented_by_a_sentence(value):
        return []
    lacks = [] if ">>> " in text and "Examples\n--------" in text else ["Examples"]
    try:
        parameters = [p for p in inspect.signature(value).parameters if p != "self"]
        # Nobody makes an object of a protocol.
        parameters *= not getattr(value, "_is_protocol", False)
    except (TypeError, ValueError):
        parameters = []
    if parameters and "Parameters\n----------" not in text:
        lacks.insert(0, "Parameters")
    return lacks


OBJECTS = dict(objects())


@pytest.mark.parametrize("name", OBJECTS)
def test_a_public_object_is_documented(name):
    lacks = missing(OBJECTS[name])
    assert not lacks, f"{name} lacks {' and '.join(lacks)}"


def test_objects_are_found():
    assert {"pygpu.choose_backend", "pygpu.driver.Stream", "pygpu.ipc.open"} <= set(OBJECTS)
