"""maturin's build backend, with the feature `aot` where `PYBIND_GPU_TARGET` names targets.

The feature's build script takes a tenth of the time of a build, and does nothing without it.
"""

import os

from maturin import *  # noqa: F403

if os.environ.get("PYBIND_GPU_TARGET", "").strip():
    arguments = os.environ.get("MATURIN_PEP517_ARGS", "")
    os.environ["MATURIN_PEP517_ARGS"] = f"{arguments} --features aot".strip()
