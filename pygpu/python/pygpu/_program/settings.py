"""The environment variables of pygpu: the allowed values, and checks of the values that are set."""

from __future__ import annotations

import difflib
import os
import re
from collections.abc import Callable, Mapping
from typing import NamedTuple


class Setting(NamedTuple):
    """The allowed values of a variable, as text and as a function."""

    allowed: str
    is_allowed: Callable[[str], bool]


_SWITCH = ("1", "on", "true", "yes", "0", "off", "false", "no")
_CHECKS = ("bounds", "uninitialised", "races", "barriers", "arithmetic", "all", "first", "none")
_UNITS = {
    unit + end: 10 * n for n, unit in enumerate(["K", "M", "G", "T"], 1) for end in ("", "B", "IB")
}


def _words(*words: str, any_case: bool = False) -> Setting:
    text = f"{', '.join(words[:-1])} and {words[-1]}"
    return Setting(text, lambda value: (value.lower() if any_case else value) in words)


def _whole(first: int, last: int) -> Setting:
    def is_allowed(value: str) -> bool:
        return re.fullmatch(r"\+?[0-9]{1,30}", value) is not None and first <= int(value) <= last

    return Setting(f"whole numbers from {first} to {last}", is_allowed)


def _bytes(value: str) -> int | None:
    found = re.fullmatch(r"([0-9]{1,30}) *([A-Za-z]*)", value)
    shift = None if found is None else ({"": 0, "B": 0} | _UNITS).get(found[2].upper())
    size = -1 if found is None or shift is None else int(found[1]) << shift
    return size if 0 <= size < 1 << 64 else None


def _size(least: int, text: str) -> Setting:
    def is_allowed(value: str) -> bool:
        size = _bytes(value)
        return size is not None and size >= least

    return Setting(f"{text} with K, M, G or T after it", is_allowed)


def _file(*others: str) -> Setting:
    text = " and ".join(["files that exist", *others])
    return Setting(text, lambda value: value in others or "/" not in value or os.path.isfile(value))


def _check(value: str) -> bool:
    words = [word.strip() for word in value.split(",")]
    return value.lower() in _SWITCH or all(word in _CHECKS for word in words)


SETTINGS = {
    "PYGPU_ARGUMENT_TYPES": _words("warn", "error", "ignore"),
    "PYGPU_ARRAY_MEMORY": _words("stream", "plain"),
    "PYGPU_BACKEND": _words("auto", "cuda", "hip", "host", any_case=True),
    "PYGPU_CACHE": _words(*_SWITCH, any_case=True),
    "PYGPU_CACHE_DIR": Setting("absolute paths", os.path.isabs),
    "PYGPU_CACHE_SIZE": _size(1, "whole numbers above 0"),
    "PYGPU_CHECK": Setting(f"{', '.join([*_CHECKS, *_SWITCH])}, with commas between", _check),
    "PYGPU_CUBLAS": _file("off"),
    "PYGPU_CUDA_LIBRARY": _file(),
    "PYGPU_FAULT_INJECTION": Setting("anything", bool),
    "PYGPU_HIPRTC": _file(),
    "PYGPU_HIP_LIBRARY": _file(),
    "PYGPU_HOST_CACHE": _size(0, "0 and whole numbers"),
    "PYGPU_HOST_MEMORY": _size(1, "whole numbers above 0"),
    "PYGPU_HOST_THREADS": _whole(1, 4096),
    "PYGPU_LEAKS": _words(*_SWITCH, any_case=True),
    "PYGPU_NVRTC": _file(),
    "PYGPU_NVRTC_PATH": Setting(
        "folders that exist, with : between",
        lambda value: all(map(os.path.isdir, filter(None, value.split(os.pathsep)))),
    ),
    "PYGPU_PROGRESS": _words(*_SWITCH, any_case=True),
    "PYGPU_ROCBLAS": _file("off"),
    "PYGPU_STAGING_BYTES": _size(128 << 10, "whole numbers from 128K"),
    "PYGPU_STAGING_THREADS": _whole(0, 256),
    "PYGPU_STATUS": _words("quiet", "warn", "raise"),
}

# Read while pygpu is built.
_BUILD = ("PYBIND_GPU_TARGET", "PYBIND_GPU_PREFERRED_BACKEND")
# Other programs' variables that pygpu reads while a program runs.
_OTHERS = (
    *("CXX", "CPATH", "CUDA_HOME", "CUDA_PATH", "CUDA_ROOT", "ROCM_PATH", "HIP_PATH"),
    *("CUDA_DEVICE", "PYCUDA_DEFAULT_NVCC_FLAGS", "XDG_CACHE_HOME", "LD_LIBRARY_PATH"),
)


def in_use(environment: Mapping[str, str]) -> dict[str, str]:
    """Returns the variables that are set and that pygpu reads, or that begin with its prefix."""
    own = {name for name in environment if name.startswith(("PYGPU_", "PYBIND_GPU_"))}
    names = sorted(own | set(_OTHERS) & set(environment))
    return {name: environment[name] for name in names if environment[name].strip()}


def faults(environment: Mapping[str, str]) -> dict[str, str]:
    """Returns a sentence for each variable that has no effect, or a value that is refused."""
    found = {}
    for name, value in in_use(environment).items():
        if name in SETTINGS:
            setting = SETTINGS[name]
            if not setting.is_allowed(value.strip()):
                found[name] = f'{name} is "{value}"; allowed are {setting.allowed}'
        elif name not in (*_OTHERS, *_BUILD):
            near = difflib.get_close_matches(name, [*SETTINGS, *_BUILD], 1)
            end = f"; did you mean {near[0]}?" if near else "; docs/environment.md lists all"
            found[name] = f'{name} is "{value}", and pygpu reads no variable of this name{end}'
    return found
