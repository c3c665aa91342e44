"""`pygpu info`: the backends, why some are not available, and what is embedded.

`pygpu doctor` tries each backend, and says in words what is wrong and what to do. Each is tried in
a process of its own, so that a driver that crashes or hangs is a line of the report.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from .. import _core
from . import settings
from .alias import installed_pycuda
from .cache import describe, entries, measured

BACKENDS = ("cuda", "hip", "host")
# The status of `pygpu info` if PYGPU_BACKEND cannot be honoured.
_BAD_CHOICE = 2
# Seconds that a backend has for all of its steps: compilers of loaded machines are slow.
_LIMIT = 180
_MARK = "pygpu doctor: "
# Vendors' numbers on the PCI bus; the classes of displays and of processing accelerators.
_VENDORS = {"cuda": ("0x10de", "NVIDIA"), "hip": ("0x1002", "AMD")}
_CLASSES = ("0x03", "0x12")
_LIBRARIES = re.compile(r"lib(cuda|nvrtc|cublas|amdhip64|hiprtc|amd_comgr|rocblas)\.so[.\d]*$")

# -- in the process that tries a backend ----------------------------------------------------------


def _open() -> dict[str, Any]:
    _core.init()
    devices = [
        {
            "ordinal": ordinal,
            "name": name,
            "pci_bus_id": bus,
            "compute_capability": capability,
            "total_memory": memory,
            "architecture": _core.device_architecture(ordinal),
        }
        for ordinal in range(_core.device_count())
        for name, bus, capability, memory in [_core.device_properties(ordinal)]
    ]
    return {"version": _core.driver_version(), "devices": devices}


def _settle_cache() -> dict[str, Any]:
    kept = _core.code_cache()
    if kept is None:
        return {"folder": None}
    folder, limit = kept
    report = measured(folder, limit, list(entries(folder)))
    # pygpu writes entries in this way, and makes the folder if it is missing.
    place = next(it for it in (folder, *folder.parents) if it.exists())
    try:
        with tempfile.TemporaryFile(dir=place) as file:
            file.write(b"x")
    except OSError as error:
        return report | {"writable": False, "why": f"{place}: {error.strerror}"}
    return report | {"writable": True}


def _same(what: str, computed: Callable[[Any], Any], expected: Callable[[Any], Any]) -> Any:
    """Compares the device's result for an array with numpy's result."""
    # The process of the report works without numpy.
    import numpy as np

    from .. import gpuarray

    numbers = np.linspace(-2, 3, 1000, dtype=np.float32)
    found, right = computed(gpuarray.to_gpu(numbers)).get(), expected(numbers)
    if not np.allclose(found, right, rtol=1e-5):
        raise AssertionError(f"{what} differs from numpy's: {found!r} where {right!r} is right")
    return {}


_SOURCE = """
__global__ void axpy(float a, const float *x, float *y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] += a * x[i];
}
"""


def _axpy(x: Any) -> Any:
    import numpy as np  # as above

    from ..compiler import SourceModule

    y = x.copy()
    axpy = SourceModule(_SOURCE).get_function("axpy")
    axpy(np.float32(2), x, y, np.int32(x.size), grid=(8, 1), block=(128, 1, 1))
    return y


_STEPS: dict[str, Callable[[], dict[str, Any]]] = {
    "cache": _settle_cache,
    "open": _open,
    "transfer": lambda: _same("what comes back", lambda a: a, lambda x: x),
    "array operation": lambda: _same("3 * a + a", lambda a: 3 * a + a, lambda x: 4 * x),
    "reduction": lambda: _same("the sum", lambda a: a.sum(), lambda x: x.sum()),
    "compiler": lambda: {"compiler": _core.compiler()},
    "kernel": lambda: _same("2 * x + y", _axpy, lambda x: 3 * x),
}
# Done where code is embedded, without any compiler.
_EMBEDDED = ("open", "array operation", "reduction")


def try_backend(names: Sequence[str]) -> None:
    """Runs the steps on the environment's backend; prints each step as a line of JSON."""
    for name in names:
        if name == "array operation":
            import pygpu.autoinit  # noqa: F401
        began = time.perf_counter()
        try:
            line = _STEPS[name]()
        except Exception as error:
            line = {"error": " ".join(str(error).split()) or repr(error)}
        line |= {"step": name, "seconds": round(time.perf_counter() - began, 3)}
        if name == names[-1]:
            line["libraries"] = _libraries()
        print(_MARK + json.dumps(line), flush=True)
        if name == "open" and "error" in line:
            break


def _libraries() -> list[str]:
    """Returns the vendors' libraries that this process has loaded."""
    try:
        lines = Path("/proc/self/maps").read_text().splitlines()
    except OSError:
        return []
    paths = {line.split(maxsplit=5)[5] for line in lines if line.count("/")}
    return sorted(path for path in paths if _LIBRARIES.search(path))


# -- in the doctor's own process ------------------------------------------------------------------


def main(argv: Sequence[str]) -> int:
    """Prints the report; returns the exit status (1: something is wrong)."""
    parser = argparse.ArgumentParser(
        prog="pygpu doctor",
        description="Tries each backend, and says what is wrong and what to do.",
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object, for reports")
    options = parser.parse_args(argv)
    report = _report(os.environ)
    print(json.dumps(report, indent=2) if options.json else "\n".join(_text(report)))
    return 1 if report["problems"] else 0


def _report(environment: Mapping[str, str]) -> dict[str, Any]:
    faults = settings.faults(environment)
    # A wrong setting is reported once; the other steps run as if it were not set.
    rest = {name: value for name, value in environment.items() if name not in faults}
    backends = {name: _tried(name, rest, list(_STEPS)) for name in BACKENDS}
    targets = _core.build_info()["targets"]
    none = {"PYGPU_CACHE": "0", "PYGPU_NVRTC": "/none", "PYGPU_HIPRTC": "/none"}
    for name in ("cuda", "hip"):
        if targets and "devices" in backends[name]["steps"].get("open", {}):
            without = _tried(name, rest | none, list(_EMBEDDED))
            backends[name]["embedded"] = not without["failures"]
    cache = backends["host"]["steps"].pop("cache", {})
    problems = list(faults.values())
    problems += [f"{error}; uninstall one of them" for error in _other_packages()]
    for name in BACKENDS:
        backends[name]["steps"].pop("cache", None)
        problems += _problems(name, backends[name], rest)
    if "error" in cache:
        problems.append(cache["error"])
    elif cache.get("writable") is False:
        problems.append(
            f"compiled code cannot be kept ({cache['why']}), so each process compiles it again; "
            "make the folder writable, or name another one in PYGPU_CACHE_DIR"
        )
    return {
        "pygpu": _core.__version__,
        "python": platform.python_version(),
        "machine": f"{platform.system()} {platform.release()} {platform.machine()}",
        "backends": backends,
        "embedded": targets,
        "cache": cache,
        "variables": settings.in_use(environment),
        "problems": list(dict.fromkeys(problems)),
    }


def _tried(backend: str, environment: Mapping[str, str], steps: Sequence[str]) -> dict[str, Any]:
    """Tries a backend in a separate process; returns its steps, and any other failure."""
    code = f"from pygpu._program.doctor import try_backend; try_backend({list(steps)!r})"
    ended = None
    try:
        done = subprocess.run(
            [sys.executable, "-c", code],
            env={**environment, "PYGPU_BACKEND": backend, "PYGPU_PROGRESS": "0"},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=_LIMIT,
            check=False,
        )
        out, err = done.stdout, done.stderr
        if done.returncode < 0:
            ended = f"the process was ended by {signal.Signals(-done.returncode).name}"
        elif done.returncode > 0:
            ended = f"the process ended with status {done.returncode}"
    except subprocess.TimeoutExpired as late:
        out, err = late.stdout or b"", late.stderr or b""
        ended = f"nothing happened for {_LIMIT} seconds"
    lines = out.decode(errors="replace").splitlines()
    found = [json.loads(it.removeprefix(_MARK)) for it in lines if it.startswith(_MARK)]
    results = {line.pop("step"): line for line in found}
    failures = {name: line["error"] for name, line in results.items() if "error" in line}
    if ended is not None:
        left = (step for step in steps if step not in {"cache", *results})
        at = next(left, "exit")
        last = err.decode(errors="replace").strip().splitlines()[-1:]
        failures[at] = ": ".join([ended, *last])
    loaded: list[str] = next((it.pop("libraries") for it in found if "libraries" in it), [])
    return {"steps": results, "failures": failures, "libraries": loaded}


def _problems(backend: str, tried: dict[str, Any], environment: Mapping[str, str]) -> list[str]:
    """Returns a sentence for each problem of a backend, with what to do."""
    failures = {step: short(error) for step, error in tried["failures"].items()}
    failures.pop("cache", None)
    if not failures:
        return []
    if "open" in failures and "devices" not in tried["steps"].get("open", {}):
        is_asked = environment.get("PYGPU_BACKEND", "").strip().lower() == backend
        devices = _devices_on_bus(backend)
        has_crashed = "open" not in tried["steps"]
        # A machine without such a GPU needs no such driver.
        variable = {"cuda": "PYGPU_CUDA_LIBRARY", "hip": "PYGPU_HIP_LIBRARY"}.get(backend, "")
        is_named = environment.get(variable, "").strip()
        if not (is_asked or devices or has_crashed or is_named):
            return []
        why = f"PYGPU_BACKEND is {backend}, but it" if is_asked else f"the backend {backend}"
        return [f"{why} cannot be used: {failures['open']}{_advice_on_driver(backend, devices)}"]
    by_error: dict[str, list[str]] = {}
    for step, error in failures.items():
        by_error.setdefault(error, []).append(step)
    return [f"{backend}: {', '.join(steps)} failed: {error}" for error, steps in by_error.items()]


def _devices_on_bus(backend: str) -> list[str]:
    """Returns the PCI addresses of a vendor's GPUs, whether or not they have a driver."""
    vendor = _VENDORS.get(backend, ("", ""))[0]
    found = []
    for folder in sorted(Path("/sys/bus/pci/devices").glob("*")):
        try:
            is_his = (folder / "vendor").read_text().strip() == vendor
            if is_his and (folder / "class").read_text().startswith(_CLASSES):
                found.append(folder.name)
        except OSError:
            continue
    return found


def _advice_on_driver(backend: str, devices: list[str]) -> str:
    if backend == "host":
        return ""
    vendor = _VENDORS[backend][1]
    if backend == "hip" and os.path.exists("/dev/kfd") and not os.access("/dev/kfd", os.W_OK):
        return "; this user may not open /dev/kfd: add the user to the groups render and video"
    if not devices:
        return f"; no GPU of {vendor}'s is in sight: a container needs to be started with access"
    return f"; GPUs of {vendor}'s are at {', '.join(devices)}: install their driver"


def _other_packages() -> list[str]:
    """Returns other packages of this name, such as Theano's, that an import could find."""
    own = Path(__file__).resolve().parents[1]
    found = []
    for entry in dict.fromkeys(sys.path):
        folder = (Path(entry or ".") / "pygpu").resolve()
        if folder != own and os.path.isfile(folder / "__init__.py"):
            whose = "Theano's" if any(folder.glob("gpuarray*.so")) else "another"
            found.append(f"{folder} is {whose} package pygpu, and this one is {own}")
    return found


_TRIED = re.compile(r" cannot be opened: tried (.*)$")
_ATTEMPT = re.compile(r"([^()]*?) \(((?:[^()]|\([^()]*\))*)\)")


def short(error: str) -> str:
    """Returns the cause from a message, without the paths where a library was searched for."""
    cause = error.rpartition("nothing can compile it: ")[2]
    parts = [part for part in cause.split("; ") if not part.startswith("also looked")]

    def reasons(found: re.Match[str]) -> str:
        kept = []
        for paths, reason in _ATTEMPT.findall(found[1]):
            last = paths.strip(", ").rpartition(", ")[2]
            kept.append("" if "No such file" in reason else f"{last}: {reason}")
        kept = [text for text in kept if text]
        return f" cannot be opened ({'; '.join(kept)})" if kept else " is not installed"

    return "; ".join(_TRIED.sub(reasons, part) for part in parts)


def _text(report: dict[str, Any]) -> list[str]:
    lines = [f"pygpu {report['pygpu']} on Python {report['python']}, {report['machine']}", ""]
    for name, tried in report["backends"].items():
        lines += _text_of_backend(name, tried)
    lines += [
        f"embedded  {target['name']}, {target['kernels']} kernels" for target in report["embedded"]
    ] or ["embedded  nothing: array operations on a GPU are compiled at first use, and kept"]
    lines.append(f"cache     {_text_of_cache(report['cache'])}")
    lines += [f"variable  {name}={value}" for name, value in report["variables"].items()]
    problems = report["problems"]
    lines += ["", f"problems: {len(problems)}" if problems else "No problem was found."]
    return lines + [f"{number}. {text}" for number, text in enumerate(problems, 1)]


def _text_of_backend(name: str, tried: dict[str, Any]) -> list[str]:
    steps = tried["steps"]
    opened = steps.get("open", {})
    if "devices" not in opened:
        why = short(tried["failures"].get("open", "it was not tried"))
        return [f"{name:<9} not available: {why}"]
    number = opened["version"]
    lines = [f"{name:<9} driver {number // 1000}.{number % 1000 // 10}"]
    for device in opened["devices"]:
        memory = f"{device['total_memory'] / 2**30:.1f} GiB"
        kind = f", {device['architecture']}" if device["architecture"] else ""
        lines.append(f"{'':<9} {device['ordinal']}: {device['name']}, {memory}{kind}")
    if "compiler" in steps.get("compiler", {}):
        lines.append(f"{'':<9} compiler: {steps['compiler']['compiler']}")
    lines += [f"{'':<9} loaded: {path}" for path in tried["libraries"]]
    if "embedded" in tried:
        has = "have" if tried["embedded"] else "have no"
        lines.append(f"{'':<9} array operations {has} embedded code for this GPU")
    done = [
        f"{step} " + ("failed" if step in tried["failures"] else f"{line['seconds']:.3g} s")
        for step, line in steps.items()
        if step not in ("open", "compiler")
    ]
    return [*lines, f"{'':<9} {', '.join(done)}"]


def _text_of_cache(cache: dict[str, Any]) -> str:
    if cache.get("folder") is None:
        return cache.get("error") or "off: nothing is kept"
    ending = "" if cache["writable"] else " (not writable)"
    return f"{describe(cache)} in {cache['folder']}{ending}"


# -- `pygpu info` ----------------------------------------------------------------------------------


def info(argv: Sequence[str]) -> int:
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
            print("\n".join(_rows_of_backends(backends)))
        print(f"pygpu info: {message}", file=sys.stderr)
        return _BAD_CHOICE

    if options.json:
        report: dict[str, Any] = {"pygpu": _core.__version__, "python": platform.python_version()}
        report |= {"backends": backends, "build": build, "requested": requested, "chosen": chosen}
        print(json.dumps(report | {"why": _why(requested), "pycuda": _pycuda()}, indent=2))
        return 0
    print(f"pygpu {_core.__version__} on Python {platform.python_version()}\n")
    print("\n".join(_rows_of_backends(backends)))
    print("\n" + "\n".join(_rows_of_build(build, backends)))
    print(f"chosen: {chosen} ({_why(requested)})")
    print(f"pycuda: {_pycuda()}")
    return 0


def _pycuda() -> str:
    """Returns the package that `import pycuda` imports."""
    served = "pygpu under `pygpu run` and after install_as_pycuda()"
    found = installed_pycuda()
    if found is None:
        return f"{served}; PyCUDA is not installed"
    folder, version = found
    return f"{served}, also here, where PyCUDA {version or ''} is installed ({folder})"


def _rows_of_backends(backends: list[dict[str, Any]]) -> list[str]:
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


def _rows_of_build(build: dict[str, Any], backends: list[dict[str, Any]]) -> list[str]:
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
        return "the first available backend; PYGPU_BACKEND chooses another"
    return f"PYGPU_BACKEND={requested}"
