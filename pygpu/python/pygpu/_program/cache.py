"""`pygpu cache`: the compiled code that is kept on disk: lists it, measures it, removes it."""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

# What an entry begins with. Behind its checksum, the compiler's words come before the code.
_MARK = b"pygpucc\n"
# What an ELF file says of its machine.
_MACHINES = {190: "NVIDIA", 224: "AMD"}
# The host's precompiled headers.
_HEADERS = "headers"


def main(argv: Sequence[str]) -> int:
    """Runs `pygpu cache list`, `size` or `clear`; returns the exit status."""
    parser = argparse.ArgumentParser(
        prog="pygpu cache",
        description="Lists, measures or removes the compiled code that is kept on disk.",
    )
    parser.add_argument("action", choices=["list", "size", "clear"], help="what to do")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    options = parser.parse_args(argv)

    from pygpu import _core

    try:
        cache = _core.code_cache()
    except Exception as error:
        print(f"pygpu cache: {error}", file=sys.stderr)
        return 2
    if cache is None:
        print("pygpu cache: nothing is kept: PYGPU_CACHE is off, or there is no home folder")
        return 0
    folder, limit = cache
    kept = sorted(entries(folder), key=lambda entry: -entry["used"])
    report: dict[str, Any] = {
        "folder": str(folder),
        "limit": limit,
        "entries": len(kept),
        "bytes": sum(entry["bytes"] for entry in kept),
    }
    if options.action == "list":
        report["kept"] = kept
    if options.action == "clear":
        failures = clear(folder)
        report["failures"] = failures
        for failure in failures:
            print(f"pygpu cache: {failure}", file=sys.stderr)
    if options.json:
        print(json.dumps(report, indent=2))
    else:
        for entry in report.get("kept", ()):
            used = time.strftime("%Y-%m-%d", time.localtime(entry["used"]))
            print(f"{used} {entry['bytes']:>11,} bytes  {entry['kind']:<7}  {entry['name']}")
        done = "removed" if options.action == "clear" else "kept"
        print(f"{describe(report)} {done} in {folder}")
    return 1 if report.get("failures") else 0


def describe(report: dict[str, Any]) -> str:
    """Returns the number of entries and their size, in words."""
    number, size, limit = report["entries"], report["bytes"] / 2**20, report["limit"] / 2**20
    return f"{number} entr{'y' if number == 1 else 'ies'}, {size:.1f} of {limit:.0f} MiB,"


def entries(folder: Path) -> Iterator[dict[str, Any]]:
    """Yields name, kind, bytes and time of last use of each piece of code, and of the headers."""
    for path in _files(folder):
        try:
            found = path.stat()
            yield {
                "name": str(path.relative_to(folder)),
                "kind": _kind(path),
                "bytes": found.st_size,
                "used": int(found.st_mtime),
            }
        except OSError:
            # Another process may have removed it.
            continue


def clear(folder: Path) -> list[str]:
    """Removes what is kept, and nothing else in the folder; returns what could not be removed."""
    failures = []
    for path in _files(folder):
        try:
            path.unlink(missing_ok=True)
        except OSError as error:
            failures.append(f"{path} cannot be removed: {error.strerror}")
    shutil.rmtree(folder / _HEADERS, ignore_errors=True)
    return failures


def _files(folder: Path) -> Iterator[Path]:
    for parent, _, names in os.walk(folder):
        below = Path(parent).relative_to(folder).parts
        is_shard = len(below) == 1 and re.fullmatch("[0-9a-f]{2}", below[0])
        for name in sorted(names):
            is_entry = is_shard and re.fullmatch(r"[0-9a-f]{30}|\d+-\d+-\d+\.tmp", name)
            if is_entry or below[:1] == (_HEADERS,):
                yield Path(parent) / name


def _kind(path: Path) -> str:
    """Returns whose code an entry is, as far as its first bytes tell."""
    with path.open("rb") as file:
        start = file.read(1 << 16)
    if not start.startswith(_MARK):
        return "headers" if _HEADERS in path.parts else "other"
    place = start.find(b"\x7fELF")
    if place >= 0:
        return _MACHINES.get(int.from_bytes(start[place + 18 : place + 20], "little"), "host")
    return "NVIDIA" if b".version" in start else "AMD" if b"__CLANG_OFFLOAD" in start else "other"
