"""Runs tests that others wrote for PyCUDA with pygpu, unmodified.

`import pycuda` imports pygpu. The table that the configuration names as `expected_outcomes` lists
the tests that must fail, each with the reason and the exception. A listed test that passes, fails
otherwise, or does not exist fails the run. Tests listed as long run only on GPUs. With `unless`, a
test must fail only if that program is missing.
"""

from __future__ import annotations

import builtins
import shutil

import pytest

from pygpu import choose_backend, driver
from pygpu._program.alias import install_as_pycuda

try:
    import tomllib
except ModuleNotFoundError:  # Python 3.10
    import tomli as tomllib

install_as_pycuda()


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addini("expected_outcomes", "the table of what is to fail, beside the configuration")


def exceptions(entry: dict) -> tuple[type[BaseException], ...]:
    """Returns the exception classes that an entry names: Python's, or `pygpu.driver`'s."""
    return tuple(getattr(builtins, name, None) or getattr(driver, name) for name in entry["raises"])


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    name = config.getini("expected_outcomes")
    assert config.inipath is not None
    with config.inipath.with_name(name).open("rb") as file:
        tables = tomllib.load(file)
    entries = tables.get("failure", [])
    backend = choose_backend()
    if backend == "host" or driver.Device(0).name() == "Driver Double":
        for entry in tables.get("long", []):
            for item in items:
                if (item.path.name, item.name) in [(entry["file"], it) for it in entry["tests"]]:
                    item.add_marker(pytest.mark.skip(reason=entry["reason"]))
    expected = {
        (entry["file"], test): entry
        for entry in entries
        if backend in entry.get("backends", [backend])
        and not ("unless" in entry and shutil.which(entry["unless"]))
        for test in entry["tests"]
    }
    found = set()
    for item in items:
        # A function's name stands for all its cases, and a name with [parameters] for one case.
        names = {item.name, getattr(item, "originalname", item.name)}
        for key in {(item.path.name, name) for name in names} & expected.keys():
            found.add(key)
            entry = expected[key]
            mark = pytest.mark.xfail(strict=True, reason=entry["reason"], raises=exceptions(entry))
            item.add_marker(mark)
    run = {item.path.name for item in items}
    stale = sorted(key for key in expected.keys() - found if key[0] in run)
    whole_files = not config.option.keyword and not any("::" in arg for arg in config.args)
    if stale and whole_files:
        raise pytest.UsageError(f"{name} names tests that do not exist: {stale}")
