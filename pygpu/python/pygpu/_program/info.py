"""`pygpu info`: which backends are here, why the others are not, what is embedded."""

from __future__ import annotations

import argparse
import json
import os
import platform
import sys
from collections.abc import Sequence
from typing import Any

from .. import _core
from .alias import installed_pycuda

BAD_CHOICE = 2


def main(argv: Sequence[str]) -> int:
    """Prints the report; returns the exit status (2: PYGPU_BACKEND cannot be honoured)."""
    parser = argparse.ArgumentParser(
        prog="pygpu info",
        description="Lists the backends, their devices, and the one that programs would get.",
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    options = parser.parse_args(argv)
    backends = _core.backends()
    build = _core.build_info()
    requested = os.environ.get("PYGPU_BACKEND") or None
    try:
        chosen = _core.choose_backend()
    except Exception as error:
        message = " ".join(str(error).split())
        known = requested in ("auto", *(backend["name"] for backend in backends))
        if known and not options.json:
            print("\n".join(_table(backends)))
        print(f"pygpu info: {message}", file=sys.stderr)
        return BAD_CHOICE

    if options.json:
        report: dict[str, Any] = {"pygpu": version(), "python": platform.python_version()}
        report |= {"backends": backends, "build": build, "requested": requested, "chosen": chosen}
        print(json.dumps(report | {"why": _why(requested), "pycuda": _pycuda()}, indent=2))
        return 0
    print(f"pygpu {version()} on Python {platform.python_version()}\n")
    print("\n".join(_table(backends)))
    print("\n" + "\n".join(_build(build, backends)))
    print(f"chosen: {chosen} ({_why(requested)})")
    print(f"pycuda: {_pycuda()}")
    return 0


def _pycuda() -> str:
    """Which package `import pycuda` means."""
    served = "pygpu under `pygpu run` and after install_as_pycuda()"
    found = installed_pycuda()
    if found is None:
        return f"{served}; PyCUDA is not installed"
    folder, version = found
    return f"{served}, also here, where PyCUDA {version or ''} is installed ({folder})"


def _table(backends: list[dict[str, Any]]) -> list[str]:
    lines = []
    for backend in backends:
        name = backend["name"]
        if not backend["available"]:
            first, *more = (backend["reason"] or "no reason given").splitlines()
            lines.append(f"{name:<5} unavailable: {first.strip()}")
            lines += [f"{'':<7}{line.strip()}" for line in more if line.strip()]
            continue
        devices = backend["devices"]
        count = f"{len(devices)} device{'' if len(devices) == 1 else 's'}"
        lines.append(f"{name:<5} available, version {_dotted(backend['version'])}, {count}")
        for device in devices:
            major, minor = device["compute_capability"]
            lines.append(
                f"{'':<7}{device['ordinal']}: {device['name']}, "
                f"{device['total_memory'] / 2**30:.1f} GiB, "
                f"PCI {device['pci_bus_id']}, capability {major}.{minor}"
            )
    return lines


def _build(build: dict[str, Any], backends: list[dict[str, Any]]) -> list[str]:
    lines = [
        f"embedded: {target['name']}, {target['kernels']} kernels, "
        f"{target['bytes'] / 1e6:.1f} MB, {target['compiler']}"
        for target in build["targets"]
    ]
    nothing = "embedded: nothing (operations are compiled when a GPU first runs them)"
    preferred = build["default_backend"]
    names = ", ".join(backend["name"] for backend in backends)
    why = "set when pygpu was built" if preferred else f"the first one present of {names}"
    return [*(lines or [nothing]), f"preferred: {preferred or 'none'} ({why})"]


def _dotted(version: int | None) -> str:
    """12040, as the drivers number themselves, is 12.4."""
    return "unknown" if version is None else f"{version // 1000}.{version % 1000 // 10}"


def _why(requested: str | None) -> str:
    if requested in (None, "auto"):
        return "the best one present; PYGPU_BACKEND would choose another"
    return f"PYGPU_BACKEND={requested}"


def version() -> str:
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version("pygpu")
    except PackageNotFoundError:
        return "(not installed)"
