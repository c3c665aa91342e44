"""The real hipRTC of ROCm 5, 6 and 7, from Debian's packages, with the fake HIP runtime."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

from device import TEST_ALL
from processes import LIMIT, fetched, run_python

if TYPE_CHECKING:
    from pathlib import Path

# The fake runtime provides the devices and their names; the compiler is the real one.
TARGETS = [
    ("5", "gfx90a"),
    ("5", "gfx1030"),
    ("6", "gfx942"),
    ("6", "gfx1100"),
    ("7", "gfx950"),
    ("7", "gfx1201"),
]
# One target for each generation; wavefronts have 64, 64 and 32 threads.
COMPILERS = TARGETS if TEST_ALL else [("5", "gfx90a"), ("6", "gfx942"), ("7", "gfx1201")]


def folder_of(generation: str) -> Path:
    """Returns the folder with a generation's runtime, which is downloaded once."""
    return fetched(f"runtime {generation}", f"hip-runtime-{generation}")


def run_with_compiler(generation: str, target: str, cache: Path, *arguments: str) -> str:
    """Runs Python with a generation's hipRTC; returns the output."""
    folder = folder_of(generation)
    library = "libamdhip64.so" if generation == "5" else "libhiprtc.so"
    return run_python(
        *arguments,
        libraries=folder,
        limit=5 * LIMIT,
        DOUBLE_TARGET=target,
        PYGPU_HIPRTC=str(folder / f"lib/{library}.{generation}"),
        PYGPU_CACHE_DIR=str(cache),
    ).stdout


COMPILE = """
import sys
from pathlib import Path
import pygpu.autoinit
from pygpu import compiler

source, code, no_extern_c, *options = sys.argv[1:]
given = {"options": options, "no_extern_c": no_extern_c == "True"}
Path(code).write_bytes(compiler.compile(Path(source).read_text(), **given))
"""


def compiled(
    generation: str,
    target: str,
    folder: Path,
    text: str,
    *options: str,
    no_extern_c: bool = False,
) -> bytes:
    """Returns the code object of a program, which must compile without a warning."""
    source, code = folder / "program.cu", folder / "program.co"
    source.write_text(text)
    given = (COMPILE, str(source), str(code), str(no_extern_c), *options)
    run_with_compiler(generation, target, folder / "cache", *given)
    return code.read_bytes()


def symbols(code: bytes) -> dict[str, bytes]:
    """Returns the bytes of each symbol in a code object or another 64-bit ELF file."""
    (table,) = struct.unpack_from("<Q", code, 0x28)
    (count,) = struct.unpack_from("<H", code, 0x3C)
    sections = [struct.unpack_from("<IIQQQQIIQQ", code, table + 64 * i) for i in range(count)]
    found = {}
    for _, kind, _, _, place, size, names, _, _, step in sections:
        if kind not in (2, 11):  # SHT_SYMTAB, SHT_DYNSYM
            continue
        for at in range(place, place + size, step):
            name, _, _, section, value, length = struct.unpack_from("<IBBHQQ", code, at)
            if not 0 < section < count or not length:
                continue
            _, _, _, address, offset, *_ = sections[section]
            begin = sections[names][4] + name
            text = code[begin : code.index(b"\0", begin)].decode()
            first = value - address + offset
            found[text] = code[first : first + length]
    return found
