"""Short runs of the searches in tests/fuzz: every public callable, and array programs.

Longer searches run by hand (`tests/fuzz/calls.py --help`); CONTRIBUTING lists the commands.
Planted faults show that the searches find errors.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from device import ALONE, IS_DOUBLE, TEST_ALL
from processes import LIMIT

FUZZ = Path(__file__).parents[2] / "fuzz"
# On a fake driver each new operation runs the C++ compiler. On a shared GPU, resets and shared
# memory are left out, and a process needs more address space than it has memory.
CASES = {"calls": 60, "programs": 25} if IS_DOUBLE else {"calls": 300, "programs": 60}
if TEST_ALL:
    CASES = {name: (2 if IS_DOUBLE else 5) * count for name, count in CASES.items()}
ON_A_GPU = [] if ALONE else ["--no-managed", "--no-resets", "--memory=0"]


def search(name: str, *options: str) -> subprocess.CompletedProcess[str]:
    """Runs a search; its exit status is 1 if it has found something."""
    return subprocess.run(
        [sys.executable, FUZZ / f"{name}.py", *ON_A_GPU, *options],
        capture_output=True,
        text=True,
        timeout=5 * LIMIT,
        check=False,
    )


@pytest.mark.parametrize("name", CASES)
def test_nothing_is_found(name):
    count = CASES[name]
    done = search(name, "--seed=20261122", f"--cases={count}", f"--batch={count}")
    assert (done.returncode, done.stderr) == (0, ""), done.stdout[-6000:]


def test_functions_that_have_numpys_names_agree_with_it():
    cases = 40 if IS_DOUBLE else 2500 if TEST_ALL else 200
    script = FUZZ / "numpy_functions.py"
    done = subprocess.run(
        [sys.executable, script, f"--cases={cases}", "--seed=20261129"],
        capture_output=True,
        text=True,
        timeout=5 * LIMIT,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, ""), done.stdout[-6000:]
    assert f"{cases} cases, 0 findings" in done.stdout


FAULTS = {"system_error": "SystemError", "odd": "Odd: planted", "damage": "Damage: an array"}
if ALONE:
    FAULTS["leak"] = "bytes of the device are still in use"


@pytest.mark.parametrize("fault", FAULTS)
def test_a_planted_fault_is_found(fault):
    done = search("calls", f"--planted={fault}", "--cases=20", "--batch=20", "--as-found")
    assert (done.returncode, done.stderr) == (1, "")
    assert FAULTS[fault] in done.stdout


def test_a_planted_crash_is_found_and_cut_down():
    done = search("calls", "--planted=crash", "--cases=4", "--seed=3")
    assert (done.returncode, done.stderr) == (1, "")
    assert "finding: crash SIGSEGV; --seed 3 --only " in done.stdout
    lines = [line.split(" = ")[1] for line in done.stdout.splitlines() if line.startswith("    ")]
    assert lines[:3] == ["planted.Object()", "object1.arm()", "object1.crash()"]


def test_a_planted_hang_is_found():
    done = search("calls", "--planted=hang", "--cases=1", "--limit=1", "--as-found")
    assert (done.returncode, done.stderr) == (1, "")
    assert "finding: hang; --seed 1, case 0 " in done.stdout
