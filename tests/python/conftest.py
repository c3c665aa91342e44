"""Every test here runs on the backend that PYGPU_BACKEND chooses, else on the best one present."""

from __future__ import annotations

import hypothesis

import pygpu.autoinit  # noqa: F401
from pygpu import driver

# On a double each new operation costs a run of the C++ compiler. `--hypothesis-profile thorough`
# looks further.
examples = 20 if driver.Device(0).name() == "Driver Double" else 150
for name, max_examples in (("pygpu", examples), ("thorough", 3000)):
    hypothesis.settings.register_profile(
        name,
        deadline=None,
        max_examples=max_examples,
        suppress_health_check=[hypothesis.HealthCheck.too_slow],
    )
hypothesis.settings.load_profile("pygpu")
