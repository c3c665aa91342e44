"""The machine's AMD GPUs as the system reports them, its ROCm installation and build tools."""

from __future__ import annotations

import os
import platform
import re
import shutil
import subprocess
from pathlib import Path

TOPOLOGY = Path("/sys/class/kfd/kfd/topology/nodes")
DEVICE = Path("/dev/kfd")
LIBRARY = "libamdhip64.so"
# Variables that change the behaviour of ROCm or of the fake driver.
TELLING = re.compile(r"(HIP|HSA|ROCM|ROCR|GPU|AMD|PYGPU|GPUARRAY|DOUBLE)_[A-Z0-9_]+")


def output(*command: str | Path) -> str:
    """Returns a program's output; empty if it cannot be run or fails."""
    try:
        done = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout.strip() if done.returncode == 0 else ""


def rocm_folders() -> list[Path]:
    named = [os.environ.get(name) for name in ("ROCM_PATH", "HIP_PATH")]
    return [Path(it) for it in [*named, "/opt/rocm"] if it]


def tool(name: str) -> Path | None:
    """Returns the path of a ROCm program."""
    below = [folder / part / name for folder in rocm_folders() for part in ("bin", "llvm/bin")]
    found = [shutil.which(name), *(it for it in below if os.access(it, os.X_OK))]
    return next((Path(it) for it in found if it), None)


def target_of_topology(version: int) -> str:
    """Returns the target for the kernel's number: 90010 is gfx90a, 100300 is gfx1030."""
    return f"gfx{version // 10000}{version // 100 % 100:x}{version % 100:x}"


def gpus(topology: Path = TOPOLOGY) -> tuple[list[str], str]:
    """Returns the targets of this machine's GPUs, and the program that reported them."""
    for name in ("amdgpu-arch", "rocminfo"):
        path = tool(name)
        text = output(path) if path else ""
        found = re.findall(r"^\s*(?:Name:\s+)?(gfx[0-9a-f]+)(?::\S+)?\s*$", text, re.MULTILINE)
        if found:
            return found, name
    found = []
    for file in sorted(topology.glob("*/properties")):
        try:
            properties = dict(line.split() for line in file.read_text().splitlines())
            version = int(properties.get("gfx_target_version", 0))
        except (OSError, ValueError):
            continue
        if version:  # 0 for CPUs
            found.append(target_of_topology(version))
    return found, str(topology)


def runtime() -> str | None:
    """Returns the file of the HIP runtime: the one in PYGPU_HIP_LIBRARY, else one that is found."""
    named = os.environ.get("PYGPU_HIP_LIBRARY")
    if named:
        return named if Path(named).is_file() else None
    folders = [folder / "lib" for folder in rocm_folders()]
    folders += [Path(it) for it in os.environ.get("LD_LIBRARY_PATH", "").split(":") if it]
    for folder in folders:
        found = sorted(folder.glob(f"{LIBRARY}*"))
        if found:
            return str(found[0])
    ldconfig = shutil.which("ldconfig") or "/sbin/ldconfig"
    match = re.search(rf"{re.escape(LIBRARY)}\S* .*=> (\S+)", output(ldconfig, "-p"))
    return match[1] if match else None


def missing(found: list[str], library: str | None) -> str | None:
    """Returns a sentence that says why nothing can be verified on this machine, or None."""
    named = os.environ.get("PYGPU_HIP_LIBRARY")
    if library is None:
        if named:
            return f"PYGPU_HIP_LIBRARY is {named}, and there is no such file."
        places = ", ".join(str(folder / "lib") for folder in rocm_folders())
        here = "no AMD GPU and " if not found else ""
        return (
            f"There is {here}no HIP runtime here: {LIBRARY} is not in {places}, LD_LIBRARY_PATH or "
            "the loader's cache; install ROCm, or name its folder in ROCM_PATH."
        )
    if named:
        return None
    if found:
        if os.access(DEVICE, os.R_OK | os.W_OK) or not DEVICE.exists():
            return None
        return (
            f"This user may not open {DEVICE}, which the GPU ({found[0]}) is used through; "
            "membership of the groups render and video allows that."
        )
    return (
        f"There is no AMD GPU here: amdgpu-arch, rocminfo and {TOPOLOGY} name none; the HIP "
        f"runtime is {library}."
    )


def rocm_version() -> str:
    for folder in rocm_folders():
        for name in (".info/version", "share/rocm/version"):
            file = folder / name
            if file.is_file():
                return f"{file.read_text().strip()} in {folder}"
    return "not told"


def kernel_driver() -> str:
    """Returns the version of amdgpu, which only the out-of-tree driver has, and the kernel's."""
    file = Path("/sys/module/amdgpu/version")
    own = file.read_text().strip() if file.is_file() else "of the kernel"
    loaded = Path("/sys/module/amdgpu").is_dir()
    return f"amdgpu {own if loaded else 'not loaded'}, {platform.system()} {platform.release()}"


def operating_system() -> str:
    try:
        return platform.freedesktop_os_release()["PRETTY_NAME"]
    except (OSError, KeyError):
        return platform.system()


def first_line(*command: str) -> str:
    return (output(*command).splitlines() or ["not found"])[0]


def describe(root: Path) -> dict[str, str]:
    """Returns the report's description of the machine, without its name or its user's."""
    found, source = gpus()
    hipcc = tool("hipcc")
    commit = output("git", "-C", str(root), "describe", "--always", "--dirty", "--abbrev=12")
    told = [f"{key}={os.environ[key]}" for key in sorted(os.environ) if TELLING.fullmatch(key)]
    return {
        "AMD GPUs": f"{', '.join(found)} (says {source})" if found else "the system names none",
        "ROCm": rocm_version(),
        "hipcc": first_line(str(hipcc), "--version") if hipcc else "not found",
        "kernel driver": kernel_driver(),
        "operating system": f"{operating_system()}, {platform.machine()}",
        "processors": str(os.cpu_count()),
        "Rust": first_line("rustc", "--version"),
        "Python": platform.python_version(),
        "commit": commit or "not a checkout",
        "environment": ", ".join(told) or "nothing that ROCm or pygpu reads",
    }
