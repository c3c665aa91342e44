"""The examples in the Python package's documentation run, and print the documented output.

They find `np` and modules of pygpu imported, and a context created, as by `pygpu.autoinit`.
"""

from __future__ import annotations

import doctest
import importlib
import importlib.util
import itertools
import pkgutil
from typing import Any

import numpy as np
import pytest
from device import BACKEND, IS_DOUBLE
from tables import each_row

import PybindGPU
import pygpu
from pygpu import compiler, cuda, driver, gpuarray

# Modules whose import has side effects, or requires packages that are not installed.
NOT_IMPORTED = {"__main__", "autoprimaryctx", "debug", "gl", "_as_pycuda"}
if importlib.util.find_spec("distributed") is None:
    NOT_IMPORTED.add("dask")

# The names that every example finds, in addition to its module's names.
IMPORTED = {"compiler": compiler, "cuda": cuda, "driver": driver, "gpuarray": gpuarray, "np": np}


def examples():
    finder = doctest.DocTestFinder(exclude_empty=True)
    packages = (pygpu, PybindGPU)
    modules = (pkgutil.walk_packages(it.__path__, f"{it.__name__}.") for it in packages)
    for info in itertools.chain(*modules):
        if info.name.removeprefix("pygpu.") in NOT_IMPORTED:
            continue
        module = importlib.import_module(info.name)
        for example in finder.find(module, module.__name__, globs=IMPORTED | vars(module)):
            if example.examples:
                yield pytest.param(example, id=example.name.removeprefix("pygpu."))


def by_module():
    """Returns the examples, in a list for each module."""
    for module, found in itertools.groupby(examples(), lambda it: it.values[0].globs["__name__"]):
        yield pytest.param(list(found), id=module.removeprefix("pygpu."))


class Runner(doctest.DocTestRunner):
    """Skips an example that needs a feature which the backend lacks, such as a compiler for kernels
    on the host, or a package that is not installed. CUDA supports everything."""

    def report_unexpected_exception(
        self, out: Any, test: doctest.DocTest, example: doctest.Example, exc_info: Any
    ) -> None:
        if (BACKEND != "cuda" or IS_DOUBLE) and isinstance(exc_info[1], driver.Unsupported):
            pytest.skip(str(exc_info[1]))
        if isinstance(exc_info[1], ModuleNotFoundError):
            pytest.skip(f"{exc_info[1].name} is not installed")
        super().report_unexpected_exception(out, test, example, exc_info)


@pytest.mark.parametrize("found", list(by_module()))
def test_the_examples_of_a_module_run(found):
    @each_row("example", found)
    def run(example):
        report: list[str] = []
        Runner(optionflags=doctest.ELLIPSIS).run(example, out=report.append)
        assert report == [], "".join(report)

    run()


def test_examples_are_found():
    assert {parameter.id for parameter in examples()} >= {
        "_kernels.c_types.parse_c_arg",
        "compyte.array.get_common_dtype",
        "PybindGPU.gpuarray.to_gpu",
    }
