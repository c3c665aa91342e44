"""``import pycuda`` served by pygpu: the same modules under a second name.

`pygpu run` installs this before it starts a program. A program or a test's
`conftest.py` that cannot use the command line calls `install_as_pycuda()` first. pytest does
so with the option ``--pygpu-as-pycuda``, or with ``pygpu_as_pycuda = true`` in its configuration.
"""

from __future__ import annotations

import functools
import importlib
import importlib.util
import os
import sys
from collections.abc import Iterator, Sequence
from importlib.machinery import ModuleSpec, PathFinder
from types import CodeType, ModuleType
from typing import TYPE_CHECKING, Any

from .._core import __version__, choose_backend

if TYPE_CHECKING:
    from importlib.metadata import Distribution

_ALIAS = "pycuda"
_TARGET = __name__.partition(".")[0]

# The version of PyCUDA whose interface the modules mirror.
_MIRRORED = (2026, 1)


class _AliasFinder:
    """Finds `pycuda` and `pycuda.X`, and loads them as `pygpu` and `pygpu.X`.

    A module is shared, not copied, so a class is the same class under both names and
    `isinstance` holds across them. Only the package itself is another object, since programs
    ask it which version of PyCUDA they have.
    """

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
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
        if not rest:
            # typeshed's protocol asks for a method that the import system does not need.
            loader: Any = _PackageLoader()
            spec = ModuleSpec(fullname, loader, origin=found.origin, is_package=True)
            spec.submodule_search_locations = found.submodule_search_locations
            return spec
        return ModuleSpec(
            fullname,
            _AliasLoader(real),  # type: ignore[arg-type]
            origin=found.origin,
            is_package=found.submodule_search_locations is not None,
        )

    def find_distributions(self, context: Any = None) -> Iterator[Distribution]:
        """Yields PyCUDA's distribution, from which `importlib.metadata` reads the version."""
        # The caller has imported the module.
        from importlib.metadata import DistributionFinder, MetadataPathFinder

        if getattr(context, "name", None) == _ALIAS:
            here = DistributionFinder.Context(name=_ALIAS, path=[_FOR_CHILDREN])
            yield from MetadataPathFinder.find_distributions(here)


class _PackageLoader:
    """Makes the package `pycuda`: what `pygpu` has, with PyCUDA's version."""

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        return ModuleType(spec.name, sys.modules[_TARGET].__doc__)

    def exec_module(self, module: ModuleType) -> None:
        target = sys.modules[_TARGET]
        module.__dict__.update(
            VERSION=_MIRRORED,
            VERSION_STATUS="",
            VERSION_TEXT=".".join(map(str, _MIRRORED)),
            __file__=target.__file__,
            __all__=target.__all__,
            __getattr__=functools.partial(getattr, target),
            __dir__=lambda: sorted({*dir(target), *vars(module)}),
        )


class _AliasLoader:
    """Gives the import system a module that is already imported under another name."""

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

    def get_code(self, fullname: str) -> CodeType | None:
        """Returns the module's code, which `python -m pycuda.X` runs as the program."""
        spec = importlib.util.find_spec(self._real)
        loader: Any = spec.loader if spec is not None else None
        return loader.get_code(self._real) if loader is not None else None


# The folder in which other interpreters find `pycuda`.
_FOR_CHILDREN = os.path.join(
    os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "_as_pycuda"
)


def install_as_pycuda(*, children: bool = False) -> None:
    """Makes ``import pycuda`` and ``import pycuda.X`` mean pygpu, from now on in this process.

    It takes precedence over an installed PyCUDA. Calling it again does nothing. With ``children``,
    Python processes that this one starts get pygpu, too: those of ``multiprocessing``, and commands
    that inherit ``PYTHONPATH``, to which a folder is added. Raises ``ImportError`` if the real
    PyCUDA is already imported in this process.

    >>> install_as_pycuda()
    >>> import pycuda.gpuarray
    >>> pycuda.gpuarray.GPUArray.__module__
    'pygpu.gpuarray'
    """
    present = sys.modules.get(_ALIAS)
    loader = getattr(getattr(present, "__spec__", None), "loader", None)
    if present is not None and not isinstance(loader, _PackageLoader):
        origin = getattr(present, "__file__", None) or "this process"
        raise ImportError(
            f"{_ALIAS} is already imported (from {origin}): "
            "call pygpu.install_as_pycuda() before anything imports it",
            name=_ALIAS,
        )
    if not any(isinstance(finder, _AliasFinder) for finder in sys.meta_path):
        sys.meta_path.insert(0, _AliasFinder())  # type: ignore[arg-type]
    if children:
        _install_for_children()


def _install_for_children() -> None:
    # Processes of `multiprocessing` get `sys.path`; other commands get the environment.
    if _FOR_CHILDREN not in sys.path:
        # After the program's own folder, and before installed packages.
        sys.path.insert(0 if getattr(sys.flags, "safe_path", False) else 1, _FOR_CHILDREN)
    # An empty entry among others is the current folder.
    folders = os.environ.get("PYTHONPATH", "")
    if _FOR_CHILDREN not in folders.split(os.pathsep):
        others = [folders] if folders else []
        os.environ["PYTHONPATH"] = os.pathsep.join([_FOR_CHILDREN, *others])


def installed_pycuda() -> tuple[str, str | None] | None:
    """Returns the path and version of an installed PyCUDA; None if it is not installed."""
    from importlib import metadata  # for reports alone

    folders = [folder for folder in sys.path if folder != _FOR_CHILDREN]
    found = PathFinder.find_spec(_ALIAS, folders)
    if found is None or not found.origin:
        return None
    distribution = next(iter(metadata.distributions(name=_ALIAS, path=folders)), None)
    version = None if distribution is None else distribution.version
    return os.path.dirname(found.origin), version


# The option ``--pygpu-as-pycuda`` of pytest, which finds it where pygpu is installed. Workers of
# pytest-xdist and the processes that tests start get pygpu, too.


def pytest_addoption(parser: Any) -> None:
    """Adds the option and the setting."""
    text = "serve `import pycuda` by pygpu, also where PyCUDA is installed"
    parser.getgroup("pygpu").addoption("--pygpu-as-pycuda", action="store_true", help=text)
    parser.addini("pygpu_as_pycuda", text, type="bool", default=False)


def pytest_load_initial_conftests(early_config: Any) -> None:
    """Installs the names before any ``conftest.py`` is imported."""
    options = early_config.known_args_namespace
    if options.pygpu_as_pycuda or early_config.getini("pygpu_as_pycuda"):
        install_as_pycuda(children=True)


def pytest_report_header(config: Any) -> str | None:
    """Says which backend serves pycuda."""
    if config.getoption("pygpu_as_pycuda") or config.getini("pygpu_as_pycuda"):
        return f"pycuda: pygpu {__version__}, backend {choose_backend()}"
    return None
