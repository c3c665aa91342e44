"""The report of `verify-amd`: the steps and their results."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

PASSED, FAILED, SKIPPED, NOT_RUN = "passed", "FAILED", "skipped", "not run"


@dataclass
class Result:
    """The result of one step."""

    name: str
    title: str
    status: str = NOT_RUN
    # The closing line of the test runner, or the reason.
    closing: str = ""
    seconds: float = 0.0
    log: str = ""
    figures: dict[str, str] = field(default_factory=dict)


@dataclass
class Report:
    """The contents of the page."""

    date: str
    machine: dict[str, str]
    results: list[Result]
    # The output of `on_gpu.devices`; empty if it did not run.
    devices: dict = field(default_factory=dict)
    info: str = ""


def closing_of(log: str) -> str:
    """Returns the closing line of a test runner's output; empty if there is none.

    The counts of several cargo test programs are added up. Tests that print that they
    were skipped are counted also, because cargo counts them as passed.
    """
    cargo = re.findall(r"^test result: \w+\. (\d+) passed; (\d+) failed; (\d+) ignored", log, re.M)
    if cargo:
        passed, failed, ignored = (sum(map(int, column)) for column in zip(*cargo))
        said = len(re.findall(r"\bskipped: ", log, re.M))
        skips = f"; {said} said that they skipped something" if said else ""
        return f"{passed} passed, {failed} failed, {ignored} ignored{skips}"
    own = re.findall(r"^\d+ passed, \d+ failed, \d+ skipped$", log, re.M)
    pytest = re.findall(r"^(?:=+ )?((?:\d+ [a-z]+,? ?)+ in [\d.]+s\b.*?)(?: =+)?$", log, re.M)
    return (own or pytest or [""])[-1].strip()


def escape(text: str) -> str:
    """Escapes a text for a table cell."""
    return " ".join(text.split()).replace("|", "\\|")


def table(columns: list[str], rows: list[list[str]]) -> list[str]:
    lines = [columns, ["---"] * len(columns), *rows]
    return ["| " + " | ".join(map(escape, line)) + " |" for line in lines]


def kind_of_run(devices: dict) -> str:
    """Returns a sentence that says what produced the figures: hardware, or a fake driver."""
    if not devices:
        return "pygpu was not asked which devices there are, and no step used one."
    names = ", ".join(dict.fromkeys(device["name"] for device in devices["devices"]))
    libraries = ", ".join(f"`{path}`" for path in devices["libraries"])
    if devices["is_double"]:
        return (
            f"**This was no GPU.** The HIP runtime was the repository's test double ({libraries}), "
            "which runs kernels on the processor or hands them to another vendor's GPU: nothing "
            "here says anything of AMD's hardware, its runtime or its speed."
        )
    return f"Ran on {names}, HIP runtime {devices['runtime']}, through {libraries}."


def render(report: Report) -> str:
    """Returns the page in Markdown."""
    devices = report.devices
    name = "no device"
    if devices:
        name = "a test double" if devices["is_double"] else devices["devices"][0]["name"]
    lines = [f"# pygpu on {name}, {report.date}", "", kind_of_run(devices), "", "## Machine", ""]
    rows = [[key, value] for key, value in report.machine.items()]
    for number, device in enumerate(devices.get("devices", [])):
        text = (
            f"{device['name']}, {device['target']}, {device['memory'] / 2**30:.1f} GiB, "
            f"PCI {device['bus']}, wavefront {device['wavefront']}"
        )
        rows.append([f"device {number} (says pygpu)", text])
    lines += table(["what", "says"], rows)
    ran = [result for result in report.results if result.status != NOT_RUN]
    lines += ["", "## Steps", ""]
    lines += table(
        ["step", "what", "result", "time", "closing line or reason", "log"],
        [[it.name, it.title, it.status, f"{it.seconds:.0f} s", it.closing, it.log] for it in ran],
    )
    counts = [sum(it.status == status for it in ran) for status in (PASSED, FAILED, SKIPPED)]
    lines += ["", "{} passed, {} failed, {} skipped.".format(*counts)]
    left = [it.name for it in report.results if it.status == NOT_RUN]
    if left:
        lines += ["", f"Not run, so nothing is said of it: {', '.join(left)}."]
    for result in ran:
        if result.figures:
            lines += ["", f"## Figures of `{result.name}`", ""]
            lines += table(["what", "figure"], [[*pair] for pair in result.figures.items()])
    if report.info:
        lines += ["", "## `python -m pygpu info`", "", "```text", report.info.rstrip(), "```"]
    return "\n".join(lines) + "\n"


def exit_status(results: list[Result]) -> int:
    return 1 if any(result.status == FAILED for result in results) else 0
