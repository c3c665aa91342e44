"""Names of a module that are imported at their first use (PEP 562), for a fast import."""

from __future__ import annotations

import sys
from collections.abc import Callable
from importlib import import_module
from typing import Any


def names(
    module: str, homes: dict[str, str]
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """Returns ``__getattr__`` and ``__dir__`` of a module.

    ``homes`` maps modules of this package to their names, with spaces between them; the names of
    "." are modules below the module.
    """
    by_name = {name: home for home, names in homes.items() for name in names.split()}
    namespace = vars(sys.modules[module])

    def get(name: str) -> Any:
        home = by_name.get(name)
        if home is None:
            raise AttributeError(f"module {module!r} has no attribute {name!r}")
        if home == ".":
            return import_module(f"{module}.{name}")
        value = namespace[name] = getattr(import_module(home, __package__), name)
        return value

    return get, lambda: sorted({*namespace, *by_name})


def exports(
    module: str, homes: dict[str, str]
) -> tuple[Callable[[str], Any], Callable[[], list[str]], list[str]]:
    """Like :func:`names`, and returns ``__all__``; type checkers use ``import *``."""
    found = " ".join(homes.values()).split()
    return (*names(module, homes), [name for name in found if not name.startswith("_")])
