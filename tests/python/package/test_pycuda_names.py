"""Every public name of PyCUDA exists here under the same name, or in a table with the reason.

The names come from PyCUDA's source package (`pycuda_names.py`), and the reasons from
`tests/pycuda/names.toml`. A name that the table lists although it exists also fails the test.
"""

from __future__ import annotations

import ast
import importlib
import inspect
from functools import reduce
from pathlib import Path
from typing import Any

import numpy as np
import pycuda_names
import pytest

import pygpu
from pygpu import driver

try:
    import tomllib
except ModuleNotFoundError:  # Python 3.10
    import tomli as tomllib

pytestmark = pytest.mark.skipif(
    pycuda_names.archive() is None, reason="PyCUDA's source package cannot be downloaded"
)

TABLE = Path(__file__).parents[2] / "pycuda" / "names.toml"

# Modules whose import has side effects, so their names are read from their sources.
SIDE_EFFECTS = {"autoinit", "autoprimaryctx", "debug"}


def reasons(kind: str) -> set[str]:
    """Returns the names for which the table has an entry of a kind."""
    with TABLE.open("rb") as file:
        return {name for entry in tomllib.load(file)[kind] for name in entry["names"]}


def missing() -> set[str]:
    """Returns the missing names: modules, names in modules, and members of classes."""
    result = set()
    for name, module in pycuda_names.modules().items():
        if name in SIDE_EFFECTS:
            path = Path(pygpu.__path__[0], *name.split(".")).with_suffix(".py")
            if not path.exists():
                result.add(name)
            continue
        try:
            ours = importlib.import_module(f"pygpu.{name}".rstrip("."))
        except ImportError:
            result.add(name)
            continue
        for member in module.names | module.members:
            if not present(ours, member):
                result.add(f"{name}.{member}".lstrip("."))
    return result


def present(module: Any, name: str) -> bool:
    """Returns true if a module has a name, or a class in it a member."""
    owner, _, member = name.rpartition(".")
    if not owner:
        return hasattr(module, member)
    cls = getattr(module, owner, None)
    if cls is None:
        return False
    # The attributes of copies are set by the constructor, which is called without arguments.
    return hasattr(cls() if owner.startswith("Memcpy") else cls, member)


def different_signatures() -> dict[str, str]:
    """Returns Python functions with different parameters here, and both signatures."""
    result = {}
    for name, module in pycuda_names.modules().items():
        if name in SIDE_EFFECTS:
            continue
        try:
            ours = importlib.import_module(f"pygpu.{name}".rstrip("."))
        except ImportError:
            continue
        for function, arguments in module.signatures.items():
            if not present(ours, function):
                continue
            found = reduce(getattr, function.split("."), ours)
            difference = compare(function, arguments, found)
            if difference:
                result[f"{name}.{function}".lstrip(".")] = difference
    return result


def compare(name: str, expected: ast.arguments, found: Any) -> str | None:
    """Returns both signatures if a valid PyCUDA call might be refused or have another meaning."""
    try:
        signature = inspect.signature(found)
    except (TypeError, ValueError):
        return f"({ast.unparse(expected)}) there, unknown here"
    wanted = expected.posonlyargs + expected.args
    parameters = list(signature.parameters.values())
    if "." in name and wanted and wanted[0].arg in ("self", "func", "dev"):
        # A method that is looked up in its class; a constructor's signature does not include self.
        if parameters and parameters[0].name in ("self", "a"):
            parameters = parameters[1:]
        elif parameters and wanted[0].arg != "self":
            parameters = parameters[1:] if parameters[0].name in ("func", "dev") else parameters
        wanted = wanted[1:]
    defaults = [None] * (len(wanted) - len(expected.defaults)) + list(expected.defaults)
    agree = len(parameters) >= len(wanted) or any(p.kind is p.VAR_POSITIONAL for p in parameters)
    for argument, default, parameter in zip(wanted, defaults, parameters):
        if parameter.kind is parameter.VAR_POSITIONAL:
            break
        agree &= argument.arg == parameter.name or parameter.kind is parameter.POSITIONAL_ONLY
        agree &= same_default(default, parameter.default)
    required = [
        p
        for p in parameters[len(wanted) :]
        if p.default is p.empty and p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)
    ]
    # Arguments that PyCUDA takes as *args may be named parameters here.
    agree &= not required or expected.vararg is not None
    for argument, default in zip(expected.kwonlyargs, expected.kw_defaults):
        parameter = signature.parameters.get(argument.arg)
        agree &= parameter is not None and same_default(default, parameter.default)
    return None if agree else f"({ast.unparse(expected)}) there, {signature} here"


def same_default(expected: ast.expr | None, found: Any) -> bool:
    """Returns true if an optional argument of PyCUDA is optional here, with the same meaning."""
    if expected is None or found is inspect.Parameter.empty:
        return expected is None
    value = eval(ast.unparse(expected), {"np": np, "drv": driver, "cuda": driver})
    return bool(value is found or value == found)


def test_every_name_is_here_or_has_a_reason():
    absent, excused = missing(), reasons("missing")
    assert sorted(absent - excused) == []
    assert sorted(excused - absent) == [], "these are here: take them out of the table"


def test_signatures_agree():
    different, excused = different_signatures(), reasons("signature")
    unexplained = sorted(different.keys() - excused)
    assert unexplained == [], {name: different[name] for name in unexplained}
    assert sorted(excused - different.keys()) == [], "these agree: take them out of the table"


def test_the_names_that_are_read_are_those_of_pycuda():
    # One declaration of each kind, which PyCUDA's documentation names.
    found = pycuda_names.modules()
    driver_names = found["_driver"]
    assert {"Device", "mem_alloc", "memcpy_dtoa", "LaunchError", "TRSF_READ_AS_INTEGER"} <= (
        driver_names.names
    )
    assert {
        "Device.compute_capability",
        "Memcpy3D.set_src_unified",
        "DeviceMemoryPool.held_blocks",
        "host_alloc_flags.PORTABLE",
        "device_attribute.WARP_SIZE",
        "Context.handle",
    } <= driver_names.members
    assert {"Function.prepared_call", "In.pre_call"} <= found["driver"].members
    assert {"register_dtype", "parse_c_arg", "DeviceData"} <= found["tools"].names
    assert "DeviceData.align" in found["tools"].signatures
    assert "pack" in found["_pvt_struct"].names
