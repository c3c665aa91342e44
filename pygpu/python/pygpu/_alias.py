"""``import pycuda`` served by pygpu: the same modules under a second name.

`python -m pygpu run` installs this before it starts a program. A program or a test's
`conftest.py` that cannot use the command line calls `install_as_pycuda()` first.
"""

from __future__ import annotations

import importlib
import importlib.util
import sys
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

_ALIAS = "pycuda"
_TARGET = __name__.partition(".")[0]


class _AliasFinder:
    """Finds `pycuda` and `pycuda.X`, and loads them as `pygpu` and `pygpu.X`.

    The module object is shared, not copied, so a class is the same class under both names
    and `isinstance` holds across them.
    """

    def find_spec(
        self,
        fullname: str,
        path: Sequence[str] | None = None,
        target: ModuleType | None = None,
    ) -> ModuleSpec | None:
        package, _, rest = fullname.partition(".")
        if package != _ALIAS:
            return None
        real = f"{_TARGET}.{rest}" if rest else _TARGET
        found = importlib.util.find_spec(real)
        if found is None:
            raise ModuleNotFoundError(
                f"No module named {fullname!r} (served by pygpu, which has no {real!r})",
                name=fullname,
            )
        return ModuleSpec(
            fullname,
            _AliasLoader(real),  # type: ignore[arg-type]
            origin=found.origin,
            is_package=found.submodule_search_locations is not None,
        )


class _AliasLoader:
    """Hands the import system the module that already has another name."""

    def __init__(self, real: str) -> None:
        self._real = real
        self._spec: ModuleSpec | None = None

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        module = importlib.import_module(self._real)
        self._spec = module.__spec__
        return module

    def exec_module(self, module: ModuleType) -> None:
        # The import system has just put the alias's spec on the shared module. Relative
        # imports and reload() need the module's own.
        module.__spec__ = self._spec


def install_as_pycuda() -> None:
    """Makes `import pycuda` and `import pycuda.X` mean pygpu, from now on in this process.

    Takes precedence over an installed PyCUDA. Calling it again does nothing.

    Raises:
        ImportError: the real PyCUDA is already imported in this process.
    """
    present = sys.modules.get(_ALIAS)
    if present is not None and present is not sys.modules.get(_TARGET):
        origin = getattr(present, "__file__", None) or "this process"
        raise ImportError(
            f"{_ALIAS} is already imported (from {origin}): "
            "call pygpu.install_as_pycuda() before anything imports it",
            name=_ALIAS,
        )
    if not any(isinstance(finder, _AliasFinder) for finder in sys.meta_path):
        sys.meta_path.insert(0, _AliasFinder())  # type: ignore[arg-type]
