"""The search's parent process: runs batches of cases in child processes and reduces findings."""

from __future__ import annotations

import argparse
import json
import os
import re
import signal
import struct
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any, NamedTuple

HERE = Path(__file__).parent
# The number of findings of one kind that are reduced and printed; the others are only counted.
MOST = 20
# The seconds that a process may take before its first case.
STARTING = 120


class Outcome(NamedTuple):
    """The end of a process: its result, or how it ended and at which case."""

    result: dict[str, Any] | None
    end: str
    case: int
    stderr: str
    stdout: str


def run_worker(settings: dict[str, Any], limit: float) -> Outcome:
    """Runs a range of cases in a process; `limit` is the time limit of one case in seconds."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        progress, out, err = folder / "progress", folder / "out", folder / "err"
        progress.write_bytes(struct.pack("q", -1))
        request = json.dumps(settings | {"progress": str(progress)})
        with out.open("w") as stdout, err.open("w") as stderr:
            process = subprocess.Popen(
                [sys.executable, str(HERE / "worker.py"), request],
                stdin=subprocess.DEVNULL,
                stdout=stdout,
                stderr=stderr,
                env=os.environ | {"TMPDIR": name, "PYTHONHASHSEED": "0"},
                cwd=folder,
            )
            end = "hang" if not _ends(process, progress, limit) else ""
        case = struct.unpack("q", progress.read_bytes())[0]
        printed, said = out.read_text(errors="replace"), err.read_text(errors="replace")
    last = printed.rstrip().rpartition("\n")[2]
    result = json.loads(last[7:]) if last.startswith("RESULT ") else None
    if not end and process.returncode < 0:
        signaled = signal.Signals(-process.returncode).name
        end = f"crash {signaled}" if result is None else f"crash {signaled} at exit"
    elif not end and (process.returncode or result is None):
        end = f"exit {process.returncode}"
    return Outcome(result, end, case, said, printed)


def _ends(process: subprocess.Popen[bytes], progress: Path, limit: float) -> bool:
    """Waits for the process's end; returns False if a case took too long and it was killed.

    The process starts up before the first case, and frees its memory after the last one.
    """
    before, since = -2, time.monotonic()
    while True:
        try:
            process.wait(min(limit, 1))
        except subprocess.TimeoutExpired:
            case = struct.unpack("q", progress.read_bytes())[0]
            if case != before:
                before, since = case, time.monotonic()
            elif time.monotonic() - since > (limit if case >= 0 else limit + STARTING):
                process.kill()
                process.wait()
                return False
        else:
            return True


def class_of(text: str) -> str:
    """Returns a message without its numbers and arrays: equal ones are shown only once."""
    return re.sub(r"[0-9.eE+-]+|<[^>]*>|\[[^\]]*\]|[,() ]", "", text)[-90:]


def sign_of(finding: dict[str, Any]) -> str:
    """Returns the class of a finding; for the end of a process this is only the way it ended."""
    kind, text = finding["kind"], finding["text"]
    return kind if finding["case"] < 0 or not finding.get("line") else f"{kind}: {class_of(text)}"


class Searcher:
    """Runs a search to its end and collects the findings."""

    def __init__(self, settings: dict[str, Any], arguments: argparse.Namespace) -> None:
        self.settings = settings
        self.limit: float = arguments.limit
        self.log: Path | None = arguments.log
        self.as_found: bool = arguments.as_found
        self.cases = self.calls = 0
        self.returned: Counter[str] = Counter()
        self.refused: Counter[str] = Counter()
        self.raised: Counter[str] = Counter()
        self.seen: Counter[str] = Counter()
        self.signs: list[str] = []

    def say(self, text: str) -> None:
        """Prints a text, and writes it to the log."""
        print(text, flush=True)
        if self.log:
            with self.log.open("a") as file:
                file.write(text + "\n")

    def _run(self, first: int, count: int, **more: Any) -> Outcome:
        return run_worker(self.settings | {"first": first, "count": count} | more, self.limit)

    def batch(self, first: int, count: int) -> None:
        """Runs a batch of cases; a case that ends the process is recorded and skipped."""
        end = first + count
        while first < end:
            outcome = self._run(first, end - first)
            result = outcome.result
            if result is not None:
                self.cases += result["cases"]
                self.calls += result["calls"]
                self.returned.update(result["returned"])
                self.refused.update(result["refused"])
                self.raised.update(result["raised"])
                for finding in result["findings"]:
                    self.report(first, end - first, finding)
            if not outcome.end:
                return
            if outcome.case < 0 or ("worker.py" in outcome.stderr and outcome.end == "exit 1"):
                raise SystemExit(f"the worker itself failed:\n{outcome.stderr[-3000:]}")
            text = outcome.stderr[-1500:]
            if result is not None:
                self.report(first, end - first, {"case": -1, "kind": outcome.end, "text": text})
                return
            self.cases += outcome.case + 1 - first
            finding = {"case": outcome.case, "kind": outcome.end, "text": text}
            self.report(first, outcome.case + 1 - first, finding)
            first = outcome.case + 1

    # ---- reducing findings ---------------------------------------------------------------------

    def _shows(self, sign: str, first: int, count: int, **more: Any) -> bool:
        """Returns true if a range of cases, or some lines of one, has a finding of this class."""
        outcome = self._run(first, count, **more)
        if outcome.end:
            return outcome.end.split()[0] == sign.split()[0]
        return sign in map(sign_of, outcome.result["findings"] if outcome.result else [])

    def _narrow(self, sign: str, first: int, count: int) -> tuple[int, int]:
        """Returns the smallest range of cases, by bisection, that has the same finding."""
        while count > 1:
            half = count // 2
            if self._shows(sign, first + half, count - half):
                first, count = first + half, count - half
            elif self._shows(sign, first, half):
                count = half
            else:
                break
        return first, count

    def _lines(self, number: int) -> list[str]:
        shown = self._run(number, 1, show=True).stdout.splitlines()
        return [line for line in shown if not line.startswith("RESULT ")]

    def _needed(self, sign: str, number: int, total: int) -> list[int]:
        """Returns the lines of a case that are needed for the finding."""
        keep = list(range(total))
        for place in reversed(range(total)):
            fewer = [one for one in keep if one != place]
            if self._shows(sign, number, 1, keep=fewer):
                keep = fewer
        return keep

    def report(self, first: int, count: int, finding: dict[str, Any]) -> None:
        """Reduces and prints a finding of a new class; counts others."""
        kind, number = finding["kind"], finding["case"]
        sign = sign_of(finding)
        self.seen[kind] += 1
        same = sign != kind and sign in self.signs
        if same or sum(one.startswith(kind) for one in self.signs) >= MOST:
            return
        self.signs.append(sign)
        seed = self.settings["seed"]
        if self.as_found:
            self.say(f"\n--- finding: {kind}; --seed {seed}, case {number} of {first}+{count}")
            self.say(finding["text"].strip()[-1500:])
            return
        if number >= 0 and self._shows(sign, number, 1):
            start, cases = number, 1
        else:
            start, cases = self._narrow(sign, first, count)
        self.say(f"\n--- finding: {kind}; --seed {seed} --only {start}" + f"+{cases}" * (cases > 1))
        self.say(finding["text"].strip()[-1500:])
        if cases > 8:
            self.say(f"    (no single case shows it; {cases} cases from {start} on do)")
            return
        for case in range(start, start + cases):
            lines = []
            try:
                lines = self._lines(case)
                # A process that crashes still prints the lines, because they are printed first.
                keep = self._needed(sign, case, len(lines)) if cases == 1 else range(len(lines))
                lines = [lines[place] for place in keep]
            except subprocess.SubprocessError:
                pass
            self.say("\n".join(f"    {line}" for line in lines))


def settings_of(arguments: argparse.Namespace, search: str) -> dict[str, Any]:
    """Returns the settings for a worker."""
    return {
        "search": search,
        "seed": arguments.seed,
        "managed": not arguments.no_managed,
        "resets": not arguments.no_resets,
        "addresses": arguments.addresses,
        "memory": arguments.memory,
        "leave_out": arguments.leave_out,
        "planted": arguments.planted,
    }


def main(search: str, description: str | None) -> None:
    """Parses the command line of a search, and runs it."""
    parser = argparse.ArgumentParser(
        description=description, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add = parser.add_argument
    add("--calls", type=int, default=20_000, help="stop after this many calls")
    add("--cases", type=int, help="stop after this many cases, however many calls they make")
    add("--seed", type=int, default=1)
    add("--first", type=int, default=0, help="the first case's number")
    add("--batch", type=int, default=2000, help="cases in one process")
    add("--only", help="run one case, or N+COUNT cases, and print it")
    add("--keep", help="lines of the one case to run, as 0,2,3")
    add("--limit", type=float, default=60, help="seconds after which a case counts as hung")
    add("--as-found", action="store_true", help="do not cut findings down")
    add("--memory", type=int, default=1500, help="MiB a process may add; 0: no limit (a real GPU)")
    add("--backend", help="the same as PYGPU_BACKEND")
    add("--no-managed", action="store_true", help="leave out memory shared with the host")
    add("--no-resets", action="store_true", help="leave out resets of the device")
    add("--addresses", action="store_true", help="raw addresses too, where the backend checks them")
    add("--leave-out", default="", help="a pattern of lines that no case may have")
    add("--planted", default="", help="search in planted faults (planted.py) instead")
    add("--log", type=Path, help="also write what is printed to this file")
    add("--coverage", action="store_true", help="print how often each target returned and raised")
    arguments = parser.parse_args()
    if arguments.backend:
        os.environ["PYGPU_BACKEND"] = arguments.backend
    settings = settings_of(arguments, search)
    if arguments.only is not None:
        number, _, count = arguments.only.partition("+")
        keep = None if arguments.keep is None else [int(x) for x in arguments.keep.split(",")]
        request = {"first": int(number), "count": int(count or 1), "show": True, "keep": keep}
        outcome = run_worker(settings | request, arguments.limit)
        print(outcome.stdout, outcome.stderr, outcome.end, sep="\n")
        raise SystemExit(1 if outcome.end or (outcome.result or {}).get("findings") else 0)

    searcher = Searcher(settings, arguments)
    started, first = time.monotonic(), arguments.first
    goal = arguments.cases
    while searcher.cases < goal if goal else searcher.calls < arguments.calls:
        size = min(arguments.batch, goal - searcher.cases) if goal else arguments.batch
        searcher.batch(first, size)
        first += size
        if arguments.log:
            done = f"{first} cases, {searcher.calls} calls, {time.monotonic() - started:.0f} s"
            arguments.log.with_suffix(".progress").write_text(done)
    if arguments.coverage:
        for name in sorted(searcher.returned | searcher.refused):
            searcher.say(f"{searcher.returned[name]:8} {searcher.refused[name]:8}  {name}")
    findings = dict(searcher.seen)
    searcher.say(
        f"{search}: seed {arguments.seed}, cases {arguments.first} to {first - 1}, "
        f"{searcher.calls} calls, {len(searcher.returned)} of "
        f"{len(searcher.returned | searcher.refused)} targets returned at least once, "
        f"{time.monotonic() - started:.0f} s; findings: {findings or 'none'}"
    )
    raise SystemExit(1 if findings else 0)
