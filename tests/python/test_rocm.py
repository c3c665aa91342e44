"""Debian's real HIP runtime on a machine without an AMD GPU."""

from __future__ import annotations

import json
import os
import re
import struct
import subprocess
import sys
from pathlib import Path

import pytest
from processes import fetched, run_python

from pygpu import choose_backend

pytestmark = pytest.mark.skipif(Path("/dev/kfd").exists(), reason="there is an AMD GPU here")

LIMIT = 600


@pytest.fixture(scope="module")
def runtime():
    """The environment in which the runtime of ROCm 5.2, fetched once, is found."""
    folder = fetched("runtime", "hip-runtime")
    without = {"ROCM_PATH", "HIP_PATH", "PYGPU_HIP_LIBRARY", "PYGPU_HIPRTC", "PYGPU_BACKEND"}
    kept = {key: value for key, value in os.environ.items() if key not in without}
    return kept | {"LD_LIBRARY_PATH": str(folder / "lib")}


def info(environment, *arguments, status=0):
    done = subprocess.run(
        [sys.executable, "-m", "pygpu", "info", *arguments],
        env=environment,
        capture_output=True,
        text=True,
        timeout=LIMIT,
        check=False,
    )
    assert done.returncode == status, done.stderr
    return done


def test_info_says_in_a_line_why_there_is_no_amd_gpu(runtime):
    (line,) = [it for it in info(runtime).stdout.splitlines() if it.startswith("hip ")]
    assert line.split()[1] == "unavailable:"
    assert re.search(r"libamdhip64\.so\.5.*hipError(NoDevice|InvalidDevice)", line), line
    assert "ROCM_PATH" in line


def test_info_says_the_same_to_programs(runtime):
    backends = json.loads(info(runtime, "--json").stdout)["backends"]
    (hip,) = [it for it in backends if it["name"] == "hip"]
    assert not hip["available"]
    assert "libamdhip64.so.5" in hip["reason"]


def test_asking_for_it_is_an_error_that_says_why(runtime):
    done = info(runtime | {"PYGPU_BACKEND": "hip"}, status=2)
    assert "libamdhip64.so.5" in done.stderr


# ---- hipRTC on programs with textures -----------------------------------------------------------

TEXTURES = """
#include <pycuda-helpers.hpp>
texture<uchar4, 2, cudaReadModeNormalizedFloat> colours;
static texture<fp_tex_double, 3, cudaReadModeElementType> volume;
// static texture<float> not_this;
surface<void, cudaSurfaceType2DLayered> layers;

__global__ void read(float4 *out, double *values, cudaTextureObject_t row) {
    out[threadIdx.x] = tex2D(colours, threadIdx.x + 0.5f, 0.5f);
    out[threadIdx.x].x += tex1Dfetch<float>(row, threadIdx.x) + tex1DLayered<int>(row, 0.5f, 1);
    values[threadIdx.x] = fp_tex3D(volume, 1, 2, threadIdx.x);
}
__global__ void write(cudaSurfaceObject_t image) {
    surf2DLayeredwrite(7.0f, layers, threadIdx.x * 4, 0, 1);
    ushort4 texel = surf2DLayeredread<ushort4>(layers, threadIdx.x * 8, 0, 1);
    surf2Dwrite((float)texel.x, image, threadIdx.x * 4, 0, cudaBoundaryModeTrap);
}
"""
GATHERED = """
__global__ void gather(float4 *out, cudaTextureObject_t texture) {
    *out = tex2Dgather<float4>(texture, 0, 0);
}
"""
COMPILE = """
import sys
import pygpu.autoinit
from pygpu import compiler, driver

textures, gathered, file = sys.argv[1:]
with open(file, "wb") as code:
    code.write(compiler.compile(textures, options=[]))
try:
    compiler.compile(gathered)
except driver.CompileError as error:
    print(error.stderr)
"""


@pytest.mark.skipif(
    choose_backend() != "hip", reason="devices of HIP are needed to ask its compiler"
)
@pytest.mark.parametrize("target", ["gfx1030", "gfx90a"])
def test_texture_references_compile(runtime, tmp_path, target):
    said = run_python(
        COMPILE,
        TEXTURES,
        GATHERED,
        str(tmp_path / "code"),
        DOUBLE_TARGET=target,
        PYGPU_HIPRTC=str(Path(runtime["LD_LIBRARY_PATH"], "libamdhip64.so.5")),
        PYGPU_CACHE_DIR=str(tmp_path),
        LD_LIBRARY_PATH=runtime["LD_LIBRARY_PATH"],
    ).stdout
    # The target has no such instruction, for which this compiler would end the process.
    assert ("poisoned identifier" in said) == (target == "gfx90a"), said
    image = (tmp_path / "code").read_bytes()
    assert image[:4] == b"\x7fELF"
    assert image[18:20] == b"\xe0\x00"  # EM_AMDGPU
    # What references were declared with, where `_textures.py` reads it, behind an object's number.
    texture, surface = 0x58455450, 0x52555350
    for declared in [(texture, 0x01, 4, 1, 0, 0, 1), (texture, 0x0A, 2, 0, 0, 0, 1), (surface,)]:
        assert struct.pack(f"=Q{len(declared)}I", 0, *declared) in image
    for name in (b"colours", b"volume", b"layers"):
        assert b"\0" + name + b"\0" in image
