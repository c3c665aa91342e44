"""Every public function, method and class documents its parameters, what it returns and raises, and
shows itself in an example.

The examples are run by `test_docstrings.py`.
"""

from __future__ import annotations

import importlib
import importlib.util
import inspect

import pytest
from docstring_rules import (
    examples_name,
    function_of,
    lacking_of_class,
    lacking_of_function,
)

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
    "PybindGPU",
]
# Packages of the wheel; PyGPU is another name of one.
OURS = ("pygpu", "PybindGPU")
if importlib.util.find_spec("distributed") is not None:
    MODULES.append("pygpu.dask")

# Methods that no example shows, and why.
NOT_SHOWN = {
    "pygpu.compiler.DynamicModule.add_stdlib": "a vendor's toolkit is needed",
    "pygpu.driver.Context.disable_peer_access": "two devices are needed",
    "pygpu.driver.Context.enable_peer_access": "two devices are needed",
    "pygpu.driver.Device.reset": "all else that is on the device would end, too",
    "pygpu.driver.Event.from_ipc_handle": "another process is needed",
    "pygpu.driver.IPCMemoryHandle.close": "another process is needed",
    "pygpu.cuda.cudadrv.driver.Context.enable_peer_access": "two devices are needed",
    "pygpu.cuda.cudadrv.driver.Context.open_ipc_handle": "another process is needed",
    "pygpu.cuda.cudadrv.driver.Device.reset": "all else that is on the device would end, too",
    "pygpu.cuda.cudadrv.driver.Driver.reset": "all else that is on the device would end, too",
}


def _public(module):
    plain = [name for name in vars(module) if not name.startswith("_")]
    return getattr(module, "__all__", plain)


def _objects():
    """The public functions and classes, each once, under the first module that has it; those of
    the wheel's packages only."""
    seen = set()
    for name in MODULES:
        module = importlib.import_module(name)
        for item in sorted(_public(module)):
            value = getattr(module, item)
            home = getattr(value, "__module__", None) or ""
            if not callable(value) or not home.startswith(OURS) or id(value) in seen:
                continue
            seen.add(id(value))
            yield f"{name}.{item}", value


def _methods(objects):
    """The public methods of the classes, each once, with the class."""
    seen = set()
    for name, value in objects.items():
        if not isinstance(value, type):
            continue
        for item in dir(value):
            if item.startswith("_") and item != "__call__":
                continue
            home = next(base for base in value.__mro__ if item in vars(base))
            method = function_of(vars(home)[item])
            # Slots of the extension module have no text of their own; the class's tells of calls.
            if item == "__call__" and not inspect.isfunction(method):
                continue
            is_ours = (home.__module__ or "").startswith(OURS)
            is_method = callable(method) and not inspect.isclass(method)
            if not is_ours or not is_method or (home, item) in seen:
                continue
            seen.add((home, item))
            yield f"{name}.{item}", (value, item, method)


OBJECTS = dict(_objects())
METHODS = dict(_methods(OBJECTS))


@pytest.mark.parametrize("name", OBJECTS)
def test_a_public_object_is_documented(name):
    value = OBJECTS[name]
    is_class = isinstance(value, type)
    lacks = lacking_of_class(value) if is_class else lacking_of_function(value, shown=False)
    assert not lacks, f"{name} lacks {' and '.join(lacks)}"


def _is_shown(name, value, item):
    """Whether the example of its class, or one of a class that derives from it, calls a method.
    Nobody can make an object of a class for OpenGL."""
    is_refused = name in NOT_SHOWN or value.__module__ == "pygpu._opengl"
    return is_refused or examples_name(inspect.getdoc(value) or "", item)


@pytest.mark.parametrize("name", METHODS)
def test_a_public_method_is_documented(name):
    value, item, method = METHODS[name]
    shown = item == "__call__" or _is_shown(name, value, item)
    lacks = lacking_of_function(method, shown)
    assert not lacks, f"{name} lacks {' and '.join(lacks)}"


def test_the_table_of_reasons_is_needed():
    stale = [
        name
        for name in NOT_SHOWN
        if name not in METHODS or "Examples\n" in (inspect.getdoc(METHODS[name][2]) or "")
    ]
    assert stale == []


def test_objects_are_found():
    assert {"pygpu.choose_backend", "pygpu.driver.Stream", "pygpu.ipc.open"} <= set(OBJECTS)
    methods = {"pygpu.driver.Stream.synchronize", "pygpu.arrow.CudaBuffer.slice"}
    assert {*methods, "pygpu.gpuarray.GPUArray.sort"} <= set(METHODS)
    assert {"PybindGPU.cudaEventRecord", "PybindGPU.DeviceArray_float32"} <= set(OBJECTS)


def test_what_a_docstring_lacks_is_found():
    def add(a: int, b: int = 0, *rest: int) -> int:
        """Adds numbers.

        Parameters
        ----------
        a, c : int
            Numbers.
        """
        if b < 0:
            raise ValueError("b is negative")
        return a + b

    parameters = "Parameters ['a', 'b', '*rest'], not ['a', 'c']"
    lacks = [parameters, "Returns", "Raises ['ValueError']", "Examples"]
    assert lacking_of_function(add, shown=False) == lacks
    assert lacking_of_function(add, shown=True) == lacks[:-1]
