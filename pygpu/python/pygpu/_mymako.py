"""The modules of Mako, the templating engine, under the name that packages built on PyCUDA import
them by: ``pycuda._mymako.template``. Mako is imported when one of them is used."""

from __future__ import annotations

from importlib import import_module
from types import ModuleType


def __getattr__(name: str) -> ModuleType:
    if name.startswith("__"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return import_module(f"mako.{name}")
