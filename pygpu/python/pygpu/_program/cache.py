"""`pygpu cache`: lists, measures or removes the compiled code on disk."""

from __future__ import annotations

import argparse
import json
import re
import shutil
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from .. import _core

# The start of an entry. After its checksum come the compiler's messages, then the code.
_MARK = b"pygpucc\n"
# Machines by their numbers in ELF files.
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
    try:
        cache = _core.code_cache()
        if cache is None:
            print("pygpu cache: nothing is kept: PYGPU_CACHE is off, or there is no home folder")
            return 0
        folder, limit = cache
        kept = sorted(entries(folder), key=lambda entry: -entry["used"])
    except Exception as error:
        print(f"pygpu cache: {error}", file=sys.stderr)
        return 2
    report = measured(folder, limit, kept)
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


def measured(folder: Path, limit: int, kept: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Returns the size of the cache. The limit is for code; the host's headers do not count."""
    headers = [entry["bytes"] for entry in kept if entry["kind"] == _HEADERS]
    return {
        "folder": str(folder),
        "limit": limit,
        "entries": len(kept) - len(headers),
        "bytes": sum(entry["bytes"] for entry in kept) - sum(headers),
        "header_bytes": sum(headers),
    }


def describe(report: dict[str, Any]) -> str:
    """Returns a sentence about the size of the cache."""
    size, limit, headers = (report[it] / 2**20 for it in ("bytes", "limit", "header_bytes"))
    code = f"{report['entries']} pieces of code ({size:.1f} of {limit:.0f} MiB)"
    return f"{code} and {headers:.1f} MiB of precompiled headers"


def entries(folder: Path) -> Iterator[dict[str, Any]]:
    """Yields name, kind, bytes and time of last use of each piece of code, and of the headers."""
    of_headers = sorted((folder / _HEADERS).glob("*"))
    for path in [*_code(folder), *of_headers]:
        parts = path.rglob("*") if path in of_headers else ()
        try:
            sizes = [part.stat().st_size for part in parts if part.is_file()]
            yield {
                "name": str(path.relative_to(folder)),
                "kind": _HEADERS if path in of_headers else _kind(path),
                "bytes": sum(sizes) if path.is_dir() else path.stat().st_size,
                "used": int(path.stat().st_mtime),
            }
        except OSError:
            # Another process may have removed it.
            continue


def clear(folder: Path) -> list[str]:
    """Removes pygpu's files, and nothing else in the folder; returns those that remain."""
    failures = []
    for path in _code(folder):
        try:
            path.unlink(missing_ok=True)
        except OSError as error:
            failures.append(f"{path} cannot be removed: {error.strerror}")
    shutil.rmtree(folder / _HEADERS, ignore_errors=True)
    return failures


def _code(folder: Path) -> list[Path]:
    files = folder.glob("[0-9a-f][0-9a-f]/*")
    return sorted(it for it in files if re.fullmatch(r"[0-9a-f]{30}|\d+-\d+-\d+\.tmp", it.name))


def _kind(path: Path) -> str:
    """Returns the kind of code of an entry, according to its first bytes."""
    with path.open("rb") as file:
        start = file.read(1 << 16)
    if not start.startswith(_MARK):
        return "other"
    place = start.find(b"\x7fELF")
    if place >= 0:
        return _MACHINES.get(int.from_bytes(start[place + 18 : place + 20], "little"), "host")
    return "NVIDIA" if b".version" in start else "AMD" if b"__CLANG_OFFLOAD" in start else "other"
