"""Arguments that are likely to cause faults; `hostile.py` in this folder runs longer searches."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from processes import run_python

STEPS = 1000 if "PYGPU_TEST_ALL" in os.environ else 300


@pytest.mark.parametrize("seed", [1, 2])
def test_nothing_but_a_status_or_a_type_error(seed):
    program = Path(__file__).with_name("hostile.py").read_text()
    done = run_python(program, str(seed), str(STEPS), check=False)
    assert (done.returncode, done.stdout.strip()) == (0, ""), done.stdout + done.stderr[-3000:]
