"""Functions with a stated rounding for AMD's compilers, on the processor, against its own."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import pytest
from device import BACKEND, TEST_ALL

from pygpu._compile import for_amd as _for_amd
from pygpu._compile import headers as _headers
from pygpu._compile import macros as _macros

SOURCE = Path(__file__).with_name("amd_rounding.cpp")
BATCHES = 20 if TEST_ALL else 6


@pytest.mark.skipif(BACKEND != "host", reason="it is about the processor, for all backends once")
def test_they_round_as_the_processor_does(tmp_path):
    compiler = os.environ.get("CXX", "c++").split()
    options = ["-std=c++17", "-O1", "-frounding-math", "-ffp-contract=off", "-Wall", "-Wextra"]
    folder = _headers.FOLDER / "hip"
    program = tmp_path / "rounding"
    subprocess.run(
        [*compiler, *options, "-Werror", f"-I{folder}", SOURCE, "-o", program],
        check=True,
        timeout=120,
    )
    said = subprocess.run(
        [program, str(BATCHES)], capture_output=True, text=True, timeout=120, check=False
    )
    compared, wrong = map(int, re.findall(r"(\d+) compared, (\d+) wrong", said.stdout)[-1])
    assert wrong == 0, said.stdout
    assert compared > 500_000 * BATCHES


@pytest.mark.parametrize(
    ("text", "headers"),
    [
        ("x = __fadd_rz(x, y);", ["rounding"]),
        ("x = __fmaf_ieee_rn(x, y, z) + __frsqrt_rn(x);", ["rounding"]),
        ("#define OF(name, to) __##name##_##to", ["rounding"]),
        ("#define DIVIDED(p) __##p##div_rd(x, y)", ["rounding"]),
        ("i = __double2uint_rn(y); x = __ull2float_ru(i);", ["rounding"]),
        ("h = __short2half_rd(i); i = __half2int_rn(h);", ["half-rounding"]),
        ("i = __float2int_rn(x) + __float2uint_rz(x); h = __float2half_rn(x);", []),
        ("// __fadd_rz", []),
    ],
)
def test_headers_stand_in_front_of_programs_that_name_their_functions(text, headers):
    lines = _for_amd.in_front([text])
    assert lines == "".join(f"#include <pygpu-amd-{it}.hpp>\n" for it in headers)


@pytest.mark.parametrize("option", ["-use_fast_math", "--use_fast_math", "-ffast-math"])
def test_divisions_know_of_options_that_allow_other_roundings(option):
    told = "#define PYGPU_FAST_MATH\n"
    assert _macros.of_options(["-O3", option], "hip") == (["-O3", option], told, "")
    assert _macros.of_options(["-O3"], "hip") == (["-O3"], "", "")
    assert _macros.of_options([option], "cuda") == ([option], "", "")
