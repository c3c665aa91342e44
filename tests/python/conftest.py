"""Every test here runs on the backend that PYGPU_BACKEND chooses, else on the best one present."""

from __future__ import annotations

import hypothesis
import pygpu.autoinit  # noqa: F401

hypothesis.settings.register_profile(
    "pygpu",
    deadline=None,
    max_examples=60,
    suppress_health_check=[hypothesis.HealthCheck.too_slow],
)
hypothesis.settings.load_profile("pygpu")
