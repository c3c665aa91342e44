"""Macros by which a program for CUDA asks what compiles it, where the compiler lacks them. PyCUDA
compiles every program by nvcc, which has ``__NVCC__``; AMD's compiler has none of CUDA's."""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING

from .c_text import code_of

if TYPE_CHECKING:
    from collections.abc import Sequence

NAMES_OF_HIP = r"(?:\b|_)(?:hip|HIP|Hip)|(?i:amdgcn|amdgpu|rocm|wavefront)|\b__(?:GFX|gfx|AMD)"
"""A pattern of what only programs for HIP have."""

# The architecture is the first whose functions of warps take masks, as those here do; newer ones
# make programs choose instructions.
_OF_CUDA = {
    "__CUDACC__": 1,
    "__CUDACC_RTC__": 1,
    "__CUDACC_VER_MAJOR__": 12,
    "__CUDACC_VER_MINOR__": 8,
    "__CUDACC_VER_BUILD__": 0,
    "CUDART_VERSION": 12080,
    "__CUDA_ARCH__": 700,
}
_NVCC = "__NVCC__"
_FAST = {
    "-use_fast_math",
    "--use_fast_math",
    "-ffast-math",
    "-Ofast",
    "-funsafe-math-optimizations",
}
_FOLDER = ("-I", "--include-path", "-isystem", "--system-include")
_DEFINED = re.compile(
    r"(?:-D|--define-macro=|--define-macro )\s*(\w+)(\([^)]*\))?(?:=(.*))?", re.DOTALL
)
# Names as headers have for parameters and types.
_PLAIN = re.compile(r"[a-z]\w*|\w{1,2}")
_NAMED = re.compile(rf"\b(?:{'|'.join([*_OF_CUDA, 'CUDA_VERSION', _NVCC])})\b")
OF_HIP = re.compile(NAMES_OF_HIP)
# The core's own functions ask for the vendor's compiler.
_OF_CORE = re.compile(r"\bnamespace gpuarray\b")


def in_front(texts: Sequence[str], backend: str) -> str:
    """Returns the lines that define what a program's texts ask for."""
    macros = _macros(texts, backend)
    if backend != "hip":
        return macros
    from . import for_amd  # imports this module's names of HIP

    return for_amd.in_front(texts) + macros


def vectors(texts: Sequence[str]) -> str:
    """Returns the lines that make vector types plain structures; empty for programs of HIP."""
    from . import for_amd  # imports this module's names of HIP

    codes = list(map(code_of, texts))
    is_of_hip = any(map(OF_HIP.search, codes))
    return "" if is_of_hip else for_amd.vectors("\n".join(codes))


def of_options(flags: Sequence[str], backend: str) -> tuple[list[str], str, str]:
    """Returns options without macros that headers would take for theirs, and the lines in their
    place: in front of all, where AMD's compiler is asked what it is, and in front of the program.
    Functions with a stated rounding are told of options that allow others.
    """
    kept: list[str] = []
    own: list[str] = []
    is_fast = backend == "hip" and _FAST.intersection(flags)
    first = ["#define PYGPU_FAST_MATH\n"] if is_fast else []
    rest = iter(flags)
    for flag in rest:
        is_split = flag in ("-D", "--define-macro")
        option = f"{flag} {next(rest, '')}" if is_split else flag
        found = _DEFINED.fullmatch(option)
        name = found[1] if found else ""
        lines = first if backend == "hip" and _NAMED.fullmatch(name) else own
        if found and (lines is first or _PLAIN.fullmatch(name)):
            value = "1" if found[3] is None else found[3]
            lines.append(f"#define {name}{found[2] or ''} {value}\n")
        else:
            kept += option.split(" ", 1) if is_split else [option]
    return kept, "".join(first), "".join(own)


def folders_of_options(flags: Sequence[str]) -> list[str]:
    """Returns the folders that options name, except the system's and a toolkit's."""
    folders = []
    rest = iter(flags)
    for flag in rest:
        name = next((it for it in _FOLDER if flag.startswith(it)), None)
        if name is not None:
            folder = flag.removeprefix(name).removeprefix("=") or next(rest, "")
            headers = ("stdio.h", "cuda_runtime.h")
            if not any(os.path.isfile(os.path.join(folder, header)) for header in headers):
                folders.append(folder)
    return folders


def _macros(texts: Sequence[str], backend: str) -> str:
    if not any(map(_NAMED.search, texts)):
        return ""
    codes = list(map(code_of, texts))
    named = {name for code in codes for name in _NAMED.findall(code)}
    macros = {_NVCC: 1} if _NVCC in named else {}
    if named and backend == "hip":
        macros |= _OF_CUDA
        if any(OF_HIP.search(code) or _OF_CORE.search(code) for code in codes):
            return ""
    lines = (f"#ifndef {name}\n#define {name} {value}\n#endif\n" for name, value in macros.items())
    return "".join(lines)
