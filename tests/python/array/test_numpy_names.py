"""Each function that the table names after a numpy function agrees with that function."""

from __future__ import annotations

import operator
import re
from pathlib import Path

import numpy as np
import pytest
from pairs import check, ulp
from tables import each_row

from pygpu import _core, cumath, gpuarray

TABLE = Path(__file__).resolve().parents[3] / "hal/src/function/table.rs"
ROW = re.compile(
    r'^\s*(?P<variant>[A-Z]\w*) "\w+" \([\w, ]+\)\s*(?:= "(?P<numpy>\w+)")?'
    r"\s*(?:-> (?P<module>\w+)\((?P<python>\w+)[^;]*\))?;",
    re.MULTILINE,
)
SECTION = re.compile(r"macro_rules! (\w+) \{")

# Functions that Python has as operators, methods or properties.
WRITTEN = {
    "negative": operator.neg,
    "conjugate": lambda a: a.conj(),
    "real": lambda a: a.real,
    "imag": lambda a: a.imag,
    "invert": operator.invert,
    "add": operator.add,
    "subtract": operator.sub,
    "multiply": operator.mul,
    "divide": operator.truediv,
    "floor_divide": operator.floordiv,
    "remainder": operator.mod,
    "power": operator.pow,
    "bitwise_and": operator.and_,
    "bitwise_or": operator.or_,
    "bitwise_xor": operator.xor,
    "equal": operator.eq,
    "not_equal": operator.ne,
    "less": operator.lt,
    "less_equal": operator.le,
    "greater": operator.gt,
    "greater_equal": operator.ge,
}
# Argument ranges for functions that are not defined everywhere.
RANGES = {
    "arccos": (-1, 1),
    "arccosh": (1, 9),
    "arcsin": (-1, 1),
    "arctanh": (-0.9, 0.9),
    "log": (0.1, 9),
    "log10": (0.1, 9),
    "log1p": (-0.5, 9),
    "log2": (0.1, 9),
    "power": (0.1, 4),
    "sqrt": (0, 9),
    "tan": (-1.4, 1.4),
}
# numpy returns int8 for the conjugate of booleans.
BY_DESIGN = {("conjugate", "?")}


def rows(section: str) -> list[tuple[str, str, str, str]]:
    """Returns variant, numpy's name, Python's module and Python's name for each row of a table."""
    text = TABLE.read_text()
    start = text.index(f"macro_rules! {section} {{")
    following = SECTION.search(text, start + 1)
    part = text[start : following.start() if following else None]
    return [tuple(group or "" for group in match.groups()) for match in ROW.finditer(part)]


UNARY = rows("unary_functions")
BINARY = rows("binary_functions")
REDUCTIONS = rows("reductions")


def named(table: list[tuple[str, str, str, str]]) -> list[tuple[str, str, str, str]]:
    return [row for row in table if row[1]]


def function_of(row: tuple[str, str, str, str]):
    _, numpy_name, module, python = row
    if module:
        return getattr({"cumath": cumath, "gpuarray": gpuarray}[module], python)
    return WRITTEN[numpy_name]


def numbers(name: str, dtype: str, seed: int) -> np.ndarray:
    low, high = RANGES.get(name, (-7, 7))
    if np.dtype(dtype).kind == "f":
        return np.random.default_rng(seed).uniform(low, high, 500).astype(dtype)
    return np.random.default_rng(seed).integers(1, 7, 500).astype(dtype)


def agree(got: gpuarray.GPUArray, expected: np.ndarray) -> None:
    inexact = expected.dtype.kind == "f"
    check(got, expected, ulp(8, expected.dtype) if inexact else 0.0)


def test_the_table_is_read_to_its_end():
    # Every variant of the table is found: a capitalised name at the start of a line, and a text.
    text = TABLE.read_text()
    variants = re.findall(r'^ {12}([A-Z]\w*) "', text, re.MULTILINE)
    assert [row[0] for row in [*UNARY, *BINARY, *REDUCTIONS]] == variants
    assert min(map(len, (named(UNARY), named(BINARY), named(REDUCTIONS)))) > 5


@each_row("row", named(UNARY), ids=lambda row: row[1])
def test_functions_of_one(row):
    function, theirs = function_of(row), getattr(np, row[1])
    compared = 0
    for dtype in ("f8", "f4", "i4", "u1", "?"):
        if (row[1], dtype) in BY_DESIGN:
            continue
        a = numbers(row[1], dtype, 0)
        try:
            with np.errstate(all="ignore"):
                expected = theirs(a)
        except TypeError:
            with pytest.raises(TypeError):
                function(gpuarray.to_gpu(a))
            continue
        agree(function(gpuarray.to_gpu(a)), expected)
        compared += 1
    assert compared > 0


@each_row("row", named(BINARY), ids=lambda row: row[1])
def test_functions_of_two(row):
    function, theirs = function_of(row), getattr(np, row[1])
    compared = 0
    for dtype in ("f8", "f4", "i4", "u1", "?"):
        a, b = numbers(row[1], dtype, 0), numbers(row[1], dtype, 1)
        if row[1] == "ldexp":
            b = np.arange(500).astype("i4") % 11 - 5
        try:
            expected = theirs(a, b)
        except TypeError:
            with pytest.raises(TypeError):
                function(gpuarray.to_gpu(a), gpuarray.to_gpu(b))
            continue
        agree(function(gpuarray.to_gpu(a), gpuarray.to_gpu(b)), expected)
        compared += 1
    assert compared > 0


@pytest.mark.parametrize("row", named(REDUCTIONS), ids=lambda row: row[1])
def test_reductions(row):
    variant, name, module, python = row
    a = np.random.default_rng(2).integers(-2, 3, 40)
    a_gpu = gpuarray.to_gpu(a)
    expected = getattr(np, name)(a)
    check(_core.reduce(getattr(_core.Reduction, variant), a_gpu), expected)
    if module:
        check(getattr(gpuarray, python)(a_gpu), expected)


@pytest.mark.parametrize(
    ("variant", "name"),
    [("Sum", "add"), ("Product", "multiply"), ("Minimum", "minimum"), ("Maximum", "maximum")],
)
def test_scans(variant, name):
    a = np.random.default_rng(3).integers(-3, 4, (5, 60))
    for axis in (0, 1):
        got = _core.scan(getattr(_core.Reduction, variant), gpuarray.to_gpu(a), axis)
        check(got, getattr(np, name).accumulate(a, axis))


def test_a_reduction_is_a_value():
    assert _core.Reduction.Sum == _core.Reduction.Sum != _core.Reduction.Product
    with pytest.raises(TypeError, match="Reduction"):
        _core.reduce("Sum", gpuarray.zeros(3, "f4"))
