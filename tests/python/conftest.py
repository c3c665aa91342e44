"""All tests here run on the backend in PYGPU_BACKEND, or else on the best available one."""

from __future__ import annotations

import collections
import gc
import os
import signal
from collections.abc import Generator
from contextlib import nullcontext

import hypothesis
import pytest
import tables

import pygpu.autoinit
from pygpu import driver

# A shell starts background processes with SIGINT ignored, and their children inherit this. Some
# tests send the signal.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# On a fake driver each new operation runs the C++ compiler. `make test-all` tests more, and
# `--hypothesis-profile thorough` even more.
on_double = driver.Device(0).name() == "Driver Double"
examples = 10 if on_double else 12
if os.environ.get("PYGPU_TEST_ALL"):
    examples = 150 if on_double else 300
for name, max_examples in (("pygpu", examples), ("thorough", 3000)):
    hypothesis.settings.register_profile(
        name,
        deadline=None,
        max_examples=max_examples,
        suppress_health_check=[hypothesis.HealthCheck.too_slow],
    )
hypothesis.settings.load_profile("pygpu")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Adds the skipped table rows to the report, including rows from other processes."""
    report = yield
    report.user_properties += [("skipped row", reason) for reason in tables.skipped_rows]
    tables.skipped_rows.clear()
    return report


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Prints the number of skipped table rows, and the reasons."""
    passed = terminalreporter.getreports("passed")
    rows = [value for it in passed for name, value in it.user_properties if name == "skipped row"]
    for reason, count in collections.Counter(rows).items():
        terminalreporter.write_line(f"SKIPPED ROWS [{count}] {reason}")


@pytest.fixture(scope="module", autouse=True)
def survivors_are_frozen() -> None:
    """Freezes surviving objects of earlier files, because tests run many garbage collections."""
    gc.collect()
    gc.freeze()


# Each test is one block of fused operations, in a long search for values that differ then.
if os.environ.get("PYGPU_TEST_FUSED"):

    @pytest.fixture(autouse=True)
    def operations_are_fused(request: pytest.FixtureRequest) -> Generator[None]:
        with nullcontext() if "test_fused" in request.module.__name__ else pygpu.fused():
            yield
