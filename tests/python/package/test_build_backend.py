"""The build backend asks for NVRTC where targets of NVIDIA's are named, and for nothing else."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("maturin")
ROOT = Path(__file__).resolve().parents[3]

PROGRAM = """
import json, os, build_backend
needed = build_backend.get_requires_for_build_wheel()
variables = [os.environ.get(name, "") for name in ("MATURIN_PEP517_ARGS", "PYGPU_NVRTC_PATH")]
print(json.dumps([needed, *variables]))
"""


def asked(**variables: str) -> tuple[bool, str, str]:
    """Whether NVRTC is needed, maturin's arguments, and where NVRTC is looked for."""
    ours = ("PYBIND_GPU_TARGET", "PYGPU_NVRTC", "PYGPU_NVRTC_PATH", "MATURIN_PEP517_ARGS")
    kept = {name: value for name, value in os.environ.items() if name not in ours}
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        cwd=ROOT,
        env={**kept, "PYTHONPATH": str(ROOT / "pygpu"), **variables},
        capture_output=True,
        text=True,
        check=True,
    )
    needed, arguments, path = json.loads(done.stdout.splitlines()[-1])
    return any(it.startswith("nvidia-cuda-nvrtc-cu12") for it in needed), arguments, path


@pytest.mark.parametrize("targets", ["sm_90", "gfx90a, compute_75", "release"])
def test_nvidia_s_targets_need_nvrtc(targets):
    needs, arguments, path = asked(PYBIND_GPU_TARGET=targets)
    assert needs
    assert arguments == "--features aot"
    assert any("site-packages" in it for it in path.split(os.pathsep))


def test_other_builds_need_nothing_more():
    assert asked() == (False, "", "")
    needs, arguments, _ = asked(PYBIND_GPU_TARGET="gfx90a;gfx11-generic")
    assert (needs, arguments) == (False, "--features aot")
    # A file that is named is used.
    assert not asked(PYBIND_GPU_TARGET="sm_90", PYGPU_NVRTC="/a/libnvrtc.so")[0]
