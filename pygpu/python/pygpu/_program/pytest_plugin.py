"""The option ``--pygpu-as-pycuda`` of pytest: tests of a PyCUDA program run over pygpu.

pytest finds it where pygpu is installed. ``pygpu_as_pycuda = true`` in its configuration does the
same. Workers of pytest-xdist and the processes that tests start get pygpu, too.
"""

from __future__ import annotations

from typing import Any

from .alias import install_as_pycuda


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
        from .._core import __version__, choose_backend

        return f"pycuda: pygpu {__version__}, backend {choose_backend()}"
    return None
