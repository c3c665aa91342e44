"""The report of device memory that is still allocated at exit, `PYGPU_LEAKS`."""

from __future__ import annotations

import re

import pytest
from processes import run_python

PROGRAM = """
import numpy as np
from pygpu import driver, gpuarray, tools

def of_an_array():
    return gpuarray.zeros((10, 10), np.float32)

class Holder:
    pass

kept = of_an_array()
view = kept[3:]
same = gpuarray.GPUArray((5,), np.float32, gpudata=kept.gpudata)
gone = gpuarray.zeros(1000, np.float32)
del gone
cycle = Holder()
cycle.itself, cycle.array = cycle, gpuarray.zeros(2000, np.float32)
del cycle
raw = driver.mem_alloc(64)
freed = driver.mem_alloc(128)
freed.free()
pooled = tools.DeviceMemoryPool().allocate(256)
many = [gpuarray.zeros(2, np.float64) for _ in range(3)]
"""
AFTERWARDS = "\ndel kept, view, same, raw, pooled, many\n"


def run(program, value):
    return run_python(program, check=False, PYGPU_LEAKS=value)


def test_what_is_alive_is_reported_with_its_traceback(tmp_path):
    script = tmp_path / "program.py"
    script.write_text(PROGRAM)
    text = run(f"import runpy; g = runpy.run_path({str(script)!r})", "1").stderr
    first, *rest = text.splitlines()
    assert re.fullmatch(
        r"pygpu: (\d+) bytes of device memory are alive at exit, in 6 objects", first
    )
    report = "\n".join(rest)
    for expected in ("400 bytes in 1 objects", "64 bytes in 1", "48 bytes in 3 objects"):
        assert expected in report
    assert report.index("400 bytes") < report.index("48 bytes")
    assert "return gpuarray.zeros((10, 10), np.float32)" in report
    assert f'File "{script}", line 6' in report
    assert "raw = driver.mem_alloc(64)" in report
    assert "gone" not in report
    assert "cycle" not in report


@pytest.mark.parametrize("value", ["off", "0", ""])
def test_nothing_is_traced_unless_asked_for(value):
    check = "import tracemalloc; assert not tracemalloc.is_tracing()"
    assert run(PROGRAM + check, value).stderr == ""


def test_nothing_alive_is_nothing_reported():
    assert run(PROGRAM + AFTERWARDS, "on").stderr == ""


def test_a_value_that_is_not_allowed():
    result = run("import pygpu", "perhaps")
    assert result.returncode != 0
    assert "PYGPU_LEAKS" in result.stderr
    assert "perhaps" in result.stderr


INHERITED = """
import gc, os, warnings
warnings.simplefilter("ignore", DeprecationWarning)
from pygpu import gpuarray
array = gpuarray.zeros(100, "f4")
if {freezes}:
    # As programs do that fork.
    gc.freeze()
if os.fork() == 0:
    pass
else:
    os.wait()
    del array
"""


@pytest.mark.parametrize(
    "program",
    [
        INHERITED.format(freezes=False),
        INHERITED.format(freezes=True),
        "from pygpu import gpuarray\na = gpuarray.zeros(100, 'f4')\na.gpudata.free()",
    ],
    ids=["in a forked process", "frozen in front of the fork", "freed by hand"],
)
def test_what_is_not_alive_is_not_reported(program):
    assert run(program, "1").stderr == ""


def test_frozen_objects_are_reported():
    program = "import gc\nfrom pygpu import gpuarray\na = gpuarray.zeros(100, 'f4')\ngc.freeze()"
    assert "400 bytes in 1 objects" in run(program, "1").stderr
