"""Every test here runs on the backend that PYGPU_BACKEND chooses, else on the best one present."""

from __future__ import annotations

import gc
import os
import signal

import hypothesis
import pytest

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


@pytest.fixture(scope="module", autouse=True)
def survivors_are_frozen() -> None:
    """Leaves what stays from earlier files out of garbage collections, of which tests make many."""
    gc.collect()
    gc.freeze()
