"""Mako's modules, under the name that packages built on PyCUDA import: ``pycuda._mymako.template``.
Mako is imported at the first use."""

from importlib import import_module
from types import ModuleType


def __getattr__(name: str) -> ModuleType:
    if name.startswith("__"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return import_module(f"mako.{name}")
