"""maturin's build backend, with the feature `aot` where `PYBIND_GPU_TARGET` names targets.

The feature's build script takes a tenth of the time of a build, and does nothing without it.
NVIDIA's targets are compiled by NVRTC, which the build then asks for as a package.
"""

import os
import re
import sys

import maturin
from maturin import *  # noqa: F403

TARGETS = os.environ.get("PYBIND_GPU_TARGET", "").strip()

if TARGETS:
    arguments = os.environ.get("MATURIN_PEP517_ARGS", "")
    os.environ["MATURIN_PEP517_ARGS"] = f"{arguments} --features aot".strip()
    # Where the package lies.
    folders = [os.environ.get("PYGPU_NVRTC_PATH", ""), *filter(os.path.isabs, sys.path)]
    os.environ["PYGPU_NVRTC_PATH"] = os.pathsep.join(filter(None, folders))


def get_requires_for_build_wheel(config_settings=None):
    """maturin's requirements, and NVRTC where a target of NVIDIA's is named."""
    needed = maturin.get_requires_for_build_wheel(config_settings)
    if re.search(r"\b(sm_|compute_|release\b)", TARGETS) and not os.environ.get("PYGPU_NVRTC"):
        needed = [*needed, "nvidia-cuda-nvrtc-cu12>=12.8"]
    return needed
