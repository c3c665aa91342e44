"""Runs PyCUDA's own test files over pygpu, unmodified.

`import pycuda` is served by pygpu. The tests that need what pygpu does not have yet are listed
in `expected.toml`, each with the reason and the exception it ends in; they must fail in just
that way. A listed test that passes, fails otherwise, or does not exist fails the run.
"""

from __future__ import annotations

import builtins
from collections import Counter
from pathlib import Path

import pytest

from pygpu._alias import install_as_pycuda

try:
    import tomllib
except ModuleNotFoundError:  # Python 3.10
    import tomli as tomllib

install_as_pycuda()

EXPECTED = Path(__file__).with_name("expected.toml")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    with EXPECTED.open("rb") as file:
        expected = {entry["test"]: entry for entry in tomllib.load(file)["failure"]}
    found: Counter[str] = Counter()
    for item in items:
        # A function's name stands for all its cases, a name with [parameters] for one.
        for name in {item.name, getattr(item, "originalname", item.name)} & expected.keys():
            found[name] += 1
            entry = expected[name]
            raises = tuple(getattr(builtins, error) for error in entry["raises"])
            item.add_marker(pytest.mark.xfail(strict=True, reason=entry["reason"], raises=raises))
    stale = sorted(expected.keys() - found.keys())
    whole_files = not config.option.keyword and not any("::" in arg for arg in config.args)
    if stale and whole_files:
        raise pytest.UsageError(f"{EXPECTED.name} names tests that do not exist: {stale}")
