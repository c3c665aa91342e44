"""Tests of a whole table, for rows that take less time than a test of their own."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterable
from typing import Any

import pytest

# The reasons of rows that were skipped in passing tests; `conftest.py` counts and prints them.
skipped_rows: list[str] = []


def each_row(
    names: str | tuple[str, ...], table: Iterable[Any], ids: Callable[[Any], str] | None = None
) -> Callable:
    """Like `pytest.mark.parametrize`, but a single test runs all rows. Its failure lists the
    failed rows. The test is skipped if every row is; other skipped rows are counted in the
    summary, with their reasons."""
    parameters = (names,) if isinstance(names, str) else names
    table = list(table)

    def decorate(test: Callable) -> Callable:
        signature = inspect.signature(test)

        @functools.wraps(test)
        def run(**fixtures: Any) -> None:
            failures, skipped = [], []
            for row in table:
                values, name = _values(row, ids, len(parameters))
                try:
                    test(**fixtures, **dict(zip(parameters, values, strict=True)))
                except pytest.skip.Exception as reason:
                    skipped.append(reason)
                except (Exception, pytest.fail.Exception) as error:
                    failures.append((name, error))
            if failures:
                texts = [f"{name}: {type(error).__name__}: {error}" for name, error in failures]
                raise AssertionError("\n".join(texts)) from failures[0][1]
            if table and len(skipped) == len(table):
                raise skipped[0]
            skipped_rows.extend(str(reason) for reason in skipped)

        others = [it for it in signature.parameters.values() if it.name not in parameters]
        run.__signature__ = signature.replace(parameters=others)  # type: ignore[attr-defined]
        return run

    return decorate


def _values(row: Any, ids: Callable[[Any], str] | None, count: int) -> tuple[tuple[Any, ...], str]:
    """Returns the values of one row, and its name."""
    if hasattr(row, "values") and hasattr(row, "marks"):  # pytest.param
        assert not row.marks
        return tuple(row.values), row.id or repr(row.values)
    return (tuple(row) if count > 1 else (row,)), ids(row) if ids else repr(row)
