"""Every test here runs on the backend that PYGPU_BACKEND chooses, else on the best one present."""

from __future__ import annotations

import collections
import gc
import os
import signal
from collections.abc import Generator

import hypothesis
import pytest
import tables

import pygpu.autoinit  # noqa: F401
from pygpu import driver

# A shell starts what it runs in the background with interrupts ignored, and whatever that starts
# in turn. The tests send some.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# On a double each new operation costs a run of the C++ compiler. `make test-all` looks further, and
# `--hypothesis-profile thorough` further still.
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
    """Rows of tables that were skipped go with the report, from other processes, too."""
    report = yield
    report.user_properties += [("skipped row", reason) for reason in tables.skipped_rows]
    tables.skipped_rows.clear()
    return report


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Prints how many rows of tables were skipped, and why."""
    passed = terminalreporter.getreports("passed")
    rows = [value for it in passed for name, value in it.user_properties if name == "skipped row"]
    for reason, count in collections.Counter(rows).items():
        terminalreporter.write_line(f"SKIPPED ROWS [{count}] {reason}")


@pytest.fixture(scope="module", autouse=True)
def survivors_are_frozen() -> None:
    """Leaves what stays from earlier files out of garbage collections, of which tests make many."""
    gc.collect()
    gc.freeze()
