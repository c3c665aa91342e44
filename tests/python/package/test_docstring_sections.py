"""Every public function, method and class documents its parameters and its own errors, and has an
example; every property has a description and a type.

numpy's page shows functions that are numpy's, and a module's examples show its small functions.
The examples are run by `test_docstrings.py`.
"""

from __future__ import annotations

import functools
import importlib
import importlib.util
import inspect
import pkgutil

from docstring_rules import (
    examples_name,
    function_of,
    is_declared,
    is_ours,
    lacking_of_class,
    lacking_of_function,
)
from tables import each_row

import PybindGPU
import pygpu
from pygpu._driver.opengl import _refuse

# Modules whose import has side effects, or requires packages that are not installed.
NOT_IMPORTED = {"pygpu.autoinit", "pygpu.autoprimaryctx", "pygpu.debug", "pygpu.gl"}
if importlib.util.find_spec("distributed") is None:
    NOT_IMPORTED.add("pygpu.dask")


def _modules():
    """Returns the public modules of the packages, modules of nested packages last."""
    names = []
    for package in (pygpu, PybindGPU):
        names += [package.__name__]
        names += [it.name for it in pkgutil.walk_packages(package.__path__, f"{package.__name__}.")]
    for name in sorted(names, key=lambda name: name.count(".")):
        is_private = any(part.startswith("_") for part in name.split("."))
        if not is_private and name not in NOT_IMPORTED:
            yield importlib.import_module(name)


# Methods without an example, and the reason.
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


# Exceptions of called functions that the caller's arguments cannot cause.
NEVER: dict[str, list[str]] = {}


def _public(module):
    """Returns a module's `__all__` or, without it, the public names that the module defines."""
    own = [name for name, value in vars(module).items() if _home(value) == module.__name__]
    return getattr(module, "__all__", [name for name in own if not name.startswith("_")])


def _home(value):
    return getattr(value, "__module__", None)


def _objects():
    """Returns the public functions and classes of the wheel's packages, each once, under the first
    module that contains it."""
    seen = set()
    for module in _modules():
        for item in sorted(_public(module)):
            value = getattr(module, item)
            if not callable(value) or not is_ours(value) or id(value) in seen:
                continue
            seen.add(id(value))
            yield f"{module.__name__}.{item}", value


def _members(objects):
    """Yields the public members of the classes, each once, with its class and its defining
    class."""
    seen = set()
    for name, value in objects.items():
        if not isinstance(value, type):
            continue
        for item in dir(value):
            home = next((base for base in value.__mro__ if item in vars(base)), object)
            if (item.startswith("_") and item != "__call__") or not is_ours(home):
                continue
            member = function_of(vars(home)[item])
            # The class's docstring describes calls, because slots of the extension lack docstrings.
            if (item == "__call__" and not inspect.isfunction(member)) or (home, item) in seen:
                continue
            seen.add((home, item))
            yield f"{name}.{item}", (value, home, item, member)


def _is_property(member):
    is_property = isinstance(member, property | functools.cached_property)
    return is_property or inspect.isgetsetdescriptor(member)


OBJECTS = dict(_objects())
MEMBERS = dict(_members(OBJECTS))
METHODS = {
    name: member
    for name, member in MEMBERS.items()
    if callable(member[3]) and not inspect.isclass(member[3])
}


@each_row("name", OBJECTS)
def test_a_public_object_is_documented(name):
    value = OBJECTS[name]
    is_class = isinstance(value, type)
    never = NEVER.get(name, ())
    if is_class:
        lacks = lacking_of_class(value, never)
    else:
        lacks = lacking_of_function(value, shown=False, never=never)
    assert not lacks, f"{name} lacks {' and '.join(lacks)}"


def _is_shown(name, value, item):
    """Returns true if the example of the class, or of a derived class, calls a method. Instances of
    OpenGL classes cannot be created, so they are exempt."""
    is_refused = name in NOT_SHOWN or value.__module__ == "pygpu._driver.opengl"
    return is_refused or examples_name(inspect.getdoc(value) or "", item)


@each_row("name", METHODS)
def test_a_public_method_is_documented(name):
    value, _, item, method = METHODS[name]
    shown = item == "__call__" or _is_shown(name, value, item)
    lacks = lacking_of_function(method, shown, NEVER.get(name, ()))
    assert not lacks, f"{name} lacks {' and '.join(lacks)}"


@each_row("name", [it for it in MEMBERS if _is_property(MEMBERS[it][3])])
def test_a_public_property_is_documented(name):
    _, home, _, member = MEMBERS[name]
    assert (inspect.getdoc(member) or "").strip(), f"{name} lacks a docstring"
    assert is_declared(member, home), f"{name} lacks a type"


def test_the_table_of_reasons_is_needed():
    stale = [
        name
        for name in NOT_SHOWN
        if name not in METHODS or ">>> " in (inspect.getdoc(METHODS[name][3]) or "")
    ]
    for name, kinds in NEVER.items():
        value = OBJECTS.get(name) or METHODS[name][3]
        is_class = isinstance(value, type)
        lacks = lacking_of_class(value) if is_class else lacking_of_function(value, shown=True)
        stale += [] if lacks == [f"Raises {kinds}"] else [name]
    assert stale == []


def test_objects_are_found():
    assert {"pygpu.choose_backend", "pygpu.driver.Stream", "pygpu.ipc.open"} <= set(OBJECTS)
    methods = {"pygpu.driver.Stream.synchronize", "pygpu.arrow.CudaBuffer.slice"}
    assert {*methods, "pygpu.gpuarray.GPUArray.sort"} <= set(METHODS)
    assert {"pygpu.gpuarray.GPUArray.shape", "pygpu.arrow.CudaBuffer.size"} <= set(MEMBERS)
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
            raise MemoryError("b is negative")
        return a + b

    parameters = "Parameters ['a', 'b', '*rest'], not ['a', 'c']"
    lacks = [parameters, "Raises ['MemoryError']", "Examples"]
    assert lacking_of_function(add, shown=False) == lacks
    assert lacking_of_function(add, shown=True) == lacks[:-1]


def test_where_a_parameter_may_be_documented():
    def lacks(text, expected=("a", "b")):
        def add(a: int, b: int = 0) -> int:
            return a + b

        add.__doc__ = text
        found = lacking_of_function(add, shown=True)
        return [it for it in found if it.startswith("Parameters")] if expected else found

    listed = "Adds.\n\nParameters\n----------\n"
    assert lacks("Adds numbers.") == ["Parameters ['a', 'b']"]
    assert lacks("Adds ``a`` and ``b``.") == []
    assert lacks("Adds ``a`` and c.") != []
    assert lacks(f"{listed}a, b : int. Numbers.") == []
    assert lacks(f"{listed}a : int. A number.") != []
    assert lacks(f"{listed}a, b : int", ()) == ["a text for ['a, b : int']"]
    # A link counts for the arguments that its page lists.
    link = "Adds.\n\nArguments are as in :func:`pygpu.cuda.cudadrv.devicearray.{}`."
    assert lacks(link.format("DeviceNDArray")) != []
    assert lacks("Adds.\n\nArguments are as in :class:`numpy.ndarray`.") == []


def test_what_a_function_raises_that_is_called_is_found():
    def share(a: int) -> None:
        """Shares a number.

        Parameters
        ----------
        a : int
        """
        _refuse("share")

    lacks = ["Raises ['Unsupported']", "a text for ['a : int']"]
    assert lacking_of_function(share, shown=True) == lacks
    assert lacking_of_function(share, shown=True, never=["Unsupported"]) == lacks[1:]
