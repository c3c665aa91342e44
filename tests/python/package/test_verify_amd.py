"""`scripts/verify-amd`, as far as it works without a GPU and without building anything."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from importlib.machinery import SourceFileLoader
from importlib.util import module_from_spec, spec_from_loader
from pathlib import Path

import pytest

SCRIPTS = Path(__file__).parents[3] / "scripts"
STEPS = [
    *("build", "abi", "conformance", "python", "pycuda", "embedded"),
    *("hiprtc", "examples", "soak", "figures", "peers", "amd"),
]
DEVICE = {
    "name": "AMD Instinct MI210",
    "target": "gfx90a:sramecc+:xnack-",
    "memory": 64 << 30,
    "bus": "0000:03:00.0",
    "wavefront": 64,
}
DEVICES = {
    "runtime": "6.2",
    "libraries": ["/opt/rocm/lib/libamdhip64.so.6.2"],
    "is_double": False,
    "devices": [DEVICE],
}


def verify(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Runs the script in an environment without a GPU, ROCm or ROCm's programs."""
    nowhere = {"PATH": "/nowhere", "ROCM_PATH": "/nowhere", "LD_LIBRARY_PATH": ""}
    kept = {key: it for key, it in os.environ.items() if key != "PYGPU_HIP_LIBRARY"}
    return subprocess.run(
        [sys.executable, SCRIPTS / "verify-amd", *arguments],
        capture_output=True,
        text=True,
        timeout=120,
        env=kept | nowhere | environment,
        check=False,
    )


@pytest.fixture
def parts(monkeypatch):
    """Returns the modules of the script."""
    monkeypatch.syspath_prepend(str(SCRIPTS))
    from verify_amd import machine, report

    return machine, report


@pytest.fixture
def script(parts, monkeypatch):
    """Returns the script itself as a module; its file name lacks a suffix."""
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    loader = SourceFileLoader("verify_amd_script", str(SCRIPTS / "verify-amd"))
    module = module_from_spec(spec_from_loader(loader.name, loader))
    # Dataclasses look up their module.
    monkeypatch.setitem(sys.modules, loader.name, module)
    loader.exec_module(module)
    return module


# ---- the command line ---------------------------------------------------------------------------


def test_the_steps_are_listed():
    done = verify("--list")
    assert (done.returncode, done.stderr) == (0, "")
    assert [line.split()[0] for line in done.stdout.splitlines()] == STEPS


def test_help():
    done = verify("--help")
    assert (done.returncode, done.stderr) == (0, "")
    for option in ("--only", "--out", "--list", "PYGPU_HIP_LIBRARY"):
        assert option in done.stdout


def test_a_step_that_is_none(tmp_path):
    done = verify("--only", "amd,nothing", "--out", str(tmp_path / "out"))
    assert done.returncode == 2
    assert "nothing" in done.stderr
    assert "conformance" in done.stderr
    assert not (tmp_path / "out").exists()


@pytest.mark.skipif(
    Path("/dev/kfd").exists() or Path("/opt/rocm").exists(), reason="there may be an AMD GPU"
)
def test_without_a_gpu_one_sentence_says_so(tmp_path):
    done = verify("--out", str(tmp_path / "out"))
    assert (done.returncode, done.stdout) == (2, "")
    sentence, *info = done.stderr.splitlines()
    assert sentence.startswith("There is no AMD GPU")
    assert "HIP runtime" in sentence
    assert sentence.endswith(".")
    # The output of an installed pygpu, or a line that there is none.
    assert any("pygpu" in line for line in info)
    assert not (tmp_path / "out").exists()


def test_a_library_that_is_not_there(tmp_path):
    done = verify("--out", str(tmp_path / "out"), PYGPU_HIP_LIBRARY="/nowhere/libamdhip64.so")
    assert done.returncode == 2
    expected = "PYGPU_HIP_LIBRARY is /nowhere/libamdhip64.so, and there is no such file."
    assert done.stderr.splitlines()[0] == expected


# ---- the steps ----------------------------------------------------------------------------------


def test_what_faults_on_purpose_is_what_the_suite_has(script):
    suite = SCRIPTS.parent / "tests/conformance"
    names = (suite / "device/isolated.rs").read_text()
    for fault in script.FAULTS:
        assert f"    {fault.removeprefix('isolated::')}" in names, fault


def perform(script, folder, run):
    """Returns the result of a step that runs one command."""
    session = script.Session(folder, folder)
    result = script.Result("made_up", "made up")
    script.perform(session, script.Step(run, 1, "made up"), result)
    return result


@pytest.mark.parametrize(
    ("code", "closing"),
    [
        ("print('3 passed, 1 failed, 0 skipped'); exit(3)", "3 passed, 1 failed, 0 skipped"),
        ("print('error: no compiler'); print('make: *** Error 1'); exit(3)", "error: no compiler"),
        ("exit(3)", "it printed nothing"),
    ],
)
def test_a_command_that_fails_fails_its_step(script, tmp_path, code, closing):
    result = perform(script, tmp_path, lambda session: session.run(sys.executable, "-c", code))
    assert result.status == "FAILED"
    assert result.closing == f"{closing} (exit status 3)"
    assert (tmp_path / result.log).read_text().startswith("$ ")


def test_a_command_that_takes_too_long_is_ended(script, tmp_path):
    def run(session):
        session.deadline = 0
        return session.run(sys.executable, "-c", "import time; time.sleep(60)")

    start = time.monotonic()
    result = perform(script, tmp_path, run)
    assert result.status == "FAILED"
    assert "took too long" in result.closing
    assert time.monotonic() - start < 30


def test_a_test_runner_that_runs_nothing_fails_its_step(script, tmp_path):
    text = "0 passed, 0 failed, 30 skipped"
    result = perform(
        script, tmp_path, lambda session: session.counted(sys.executable, "-c", f"print({text!r})")
    )
    assert (result.status, result.closing) == ("FAILED", f"no test passed: {text}")


def test_the_environment_chooses_no_other_library(script, tmp_path, monkeypatch):
    monkeypatch.setenv("PYGPU_HIP_LIBRARY", "/x/libamdhip64.so")
    monkeypatch.setenv("PYGPU_BACKEND", "host")
    monkeypatch.setenv("PYBIND_GPU_TARGET", "sm_90")
    code = "import os; print(*(it for it in sorted(os.environ) if it.startswith('PY')))"
    result = perform(script, tmp_path, lambda session: session.run(sys.executable, "-c", code))
    assert result.status == "passed"
    assert "PYGPU_HIP_LIBRARY" in result.closing
    assert "PYGPU_BACKEND" not in result.closing
    assert "PYBIND_GPU_TARGET" not in result.closing


# ---- the machine --------------------------------------------------------------------------------


def test_gpus_of_the_kernels_topology(parts, monkeypatch, tmp_path):
    machine, _ = parts
    monkeypatch.setattr(machine, "tool", lambda name: None)
    versions = {"0": 0, "1": 90010, "2": 90402, "3": 100300, "4": 110001}
    for node, version in versions.items():
        (tmp_path / node).mkdir()
        text = f"cpu_cores_count 0\ngfx_target_version {version}\n"
        (tmp_path / node / "properties").write_text(text)
    found, source = machine.gpus(tmp_path)
    assert found == ["gfx90a", "gfx942", "gfx1030", "gfx1101"]
    assert source == str(tmp_path)


ROCMINFO = """\
Agent 1
  Name:                    AMD EPYC 7763
Agent 2
  Name:                    gfx90a
  Marketing Name:          AMD Instinct MI210
    ISA 1
      Name:                    amdgcn-amd-amdhsa--gfx90a:sramecc+:xnack-
"""


@pytest.mark.parametrize(("name", "text"), [("rocminfo", ROCMINFO), ("amdgpu-arch", "gfx90a\n")])
def test_gpus_that_rocm_names(parts, monkeypatch, tmp_path, name, text):
    machine, _ = parts
    monkeypatch.setattr(machine, "tool", lambda tool: Path(tool) if tool == name else None)
    monkeypatch.setattr(machine, "output", lambda path: text if str(path) == name else "")
    assert machine.gpus(tmp_path) == (["gfx90a"], name)


def test_a_named_runtime_needs_no_gpu_that_the_system_knows(parts, monkeypatch):
    machine, _ = parts
    monkeypatch.setenv("PYGPU_HIP_LIBRARY", "/x/libamdhip64.so")
    assert machine.missing([], "/x/libamdhip64.so") is None
    monkeypatch.delenv("PYGPU_HIP_LIBRARY")
    assert "no AMD GPU" in machine.missing([], "/x/libamdhip64.so")


# ---- the report ---------------------------------------------------------------------------------

CARGO = """\
running 2 tests
skipped: ["runtime"] cannot be had: no network
test a ... ok
test result: ok. 20 passed; 0 failed; 1 ignored; 0 measured; 0 filtered out; finished in 0.1s
test result: FAILED. 3 passed; 2 failed; 0 ignored; 0 measured; 0 filtered out; finished in 1s
"""


@pytest.mark.parametrize(
    ("log", "closing"),
    [
        (CARGO, "23 passed, 2 failed, 1 ignored; 1 said that they skipped something"),
        (
            "hip: 3 passed, 1 failed\n\n30 passed, 1 failed, 4 skipped\n",
            "30 passed, 1 failed, 4 skipped",
        ),
        ("...\n284 passed, 15 skipped in 12.30s\n", "284 passed, 15 skipped in 12.30s"),
        (
            "==== 2 failed, 9 passed, 1 warning in 99.12s (0:01:39) ====\nmake: *** Error 1\n",
            "2 failed, 9 passed, 1 warning in 99.12s (0:01:39)",
        ),
        ("no tests ran in 0.01s\n", ""),
        ("", ""),
    ],
)
def test_the_closing_line_of_a_test_runner(parts, log, closing):
    assert parts[1].closing_of(log) == closing


def made_up(report, devices=None):
    results = [
        report.Result("build", "the wheel", "passed", "a wheel of 3.8 MB", 61.4, "build.log"),
        report.Result("amd", "facts", "FAILED", "a | b\nand c", 3, "amd.log", {"pools": "801"}),
        report.Result("peers", "two GPUs", "skipped", "there is one device"),
        report.Result("soak", "a million cycles"),
    ]
    return report.Report("2026-11-21", {"ROCm": "6.2.1"}, results, devices or {}, "pygpu 0.1.0\n")


def test_a_report_says_what_ran_and_what_did_not(parts):
    _, report = parts
    page = report.render(made_up(report, DEVICES))
    lines = page.splitlines()
    assert lines[0] == "# pygpu on AMD Instinct MI210, 2026-11-21"
    assert "| ROCm | 6.2.1 |" in lines
    assert "| build | the wheel | passed | 61 s | a wheel of 3.8 MB | build.log |" in lines
    assert "| amd | facts | FAILED | 3 s | a \\| b and c | amd.log |" in lines
    assert "| peers | two GPUs | skipped | 0 s | there is one device |  |" in lines
    assert "1 passed, 1 failed, 1 skipped." in lines
    assert "Not run, so nothing is said of it: soak." in lines
    assert "| pools | 801 |" in lines
    assert "gfx90a:sramecc+:xnack-, 64.0 GiB" in page
    assert "no GPU" not in page


def test_a_double_is_never_taken_for_hardware(parts):
    _, report = parts
    page = report.render(made_up(report, DEVICES | {"is_double": True}))
    assert page.splitlines()[0] == "# pygpu on a test double, 2026-11-21"
    assert "**This was no GPU.**" in page


def test_a_report_without_devices_claims_none(parts):
    _, report = parts
    page = report.render(made_up(report))
    assert page.splitlines()[0] == "# pygpu on no device, 2026-11-21"
    assert "no step used one" in page


def test_the_exit_status_tells_of_a_failure(parts):
    _, report = parts
    results = made_up(report).results
    assert report.exit_status(results) == 1
    assert report.exit_status([it for it in results if it.status != "FAILED"]) == 0
