"""docs/environment.md lists exactly the environment variables that the sources read."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]

# The product only: variables that tests read are not documented there.
SOURCES = [
    "build.rs",
    "build",
    "src",
    "hal/src",
    "hal/array/src",
    "hal/codegen/src",
    "hal/driver/src",
    "backend-cuda/src",
    "backend-hip/src",
    "cuda-c/src/dialects/vendor.rs",
    "backend-host/src",
    "backend-host/executor/src/toolchain.rs",
    "backend-host/kernels/src",
    "pygpu/src",
    "pygpu/python",
]

# An upper-case text counts as a variable's name unless it is one of these.
OTHER_TEXTS = {
    "prefixes of macros": {"LID", "GID", "LDIM", "GDIM"},
    "macros of loops in kernels": {"PYGPU_EACH", "PYGPU_EACH_OF_RANGE"},
    "numbers with a name": {"SUCCESS"},
    "suffixes of sizes": {"KIB", "MIB", "GIB", "TIB"},
    "symbols and forms of code": {"AMDGPU", "CUBIN", "NVRTC", "PTX"},
    "vendors": {"AMD", "NVIDIA"},
    "what an address is": {"UUID"},
    "kinds of parameters": {"KEYWORD_ONLY", "POSITIONAL_ONLY"},
    "keys of the flags of arrays": {
        "C_CONTIGUOUS",
        "CONTIGUOUS",
        "F_CONTIGUOUS",
        "FORTRAN",
        "FORC",
        "FNC",
        "CARRAY",
        "FARRAY",
        "ALIGNED",
        "BEHAVED",
        "OWNDATA",
        "WRITEABLE",
        "WRITEBACKIFCOPY",
    },
    "set or unset for a compiler": {"HIP_PLATFORM", "LC_ALL", "LD_PRELOAD"},
    "variables of numba's modules": {"USE_NV_BINDING"},
    "the instruction of pickles that keeps": {"PUT"},
}
# Names of NVML's statuses, and variables that cargo passes to the compiler.
OTHER_NAMES = re.compile(r"ERROR_\w+|CARGO_PKG_\w+")

TEXT = re.compile(r'(?<![b\w])"([A-Z][A-Z0-9]*(?:_[A-Z0-9]+)*)"')
RUST_TESTS = re.compile(r"^#\[cfg\([^\n]*\btest\b[^\n]*\nmod \w+ \{\n.*?^\}\n", re.S | re.M)
PYTHON_ALL = re.compile(r"^ *__all__ \+?= \[.*?\]", re.S | re.M)
RUST_COMMENT = re.compile(r"^\s*//.*\n", re.MULTILINE)


def names_in(text: str) -> set[str]:
    """Returns texts of three or more letters that are written like variables."""
    return {name for name in TEXT.findall(text) if len(name) >= 3}


def product_texts() -> set[str]:
    names = set()
    for source in SOURCES:
        path = ROOT / source
        files = [path] if path.is_file() else [*path.rglob("*.rs"), *path.rglob("*.py")]
        assert files, source
        for file in files:
            if "tests" in {*file.relative_to(ROOT).parts, file.stem}:
                continue
            text = file.read_text(encoding="utf-8")
            if file.suffix == ".rs":
                text = RUST_COMMENT.sub("", RUST_TESTS.sub("", text))
            else:
                text = PYTHON_ALL.sub("", text)
            names |= names_in(text)
    return {name for name in names if not OTHER_NAMES.fullmatch(name)}


def documented() -> list[tuple[str, str]]:
    """Returns the page's sections and their variables; a row may describe several."""
    page = (ROOT / "docs/environment.md").read_text(encoding="utf-8")
    found, section = [], ""
    for line in page.splitlines():
        section = line if line.startswith("## ") else section
        if line.startswith("| `"):
            row = line.split("|")
            assert len(row) == 6, line
            assert all(cell.strip() for cell in row[1:5]), line
            found += [(section, name) for name in re.findall("`(\\w+)`", row[1])]
    return found


def test_every_variable_that_is_read_has_a_row_and_every_row_is_read():
    others = set().union(*OTHER_TEXTS.values())
    texts = product_texts()
    assert others <= texts, "no longer in the sources"
    rows = documented()
    assert len(rows) == len(set(rows))
    assert texts - others == {name for _, name in rows}


def test_names_are_found():
    assert names_in('env::var_os("PYGPU_X"); ["CXX", "no"]; b"ELF"; "PYGPU_Y is"') == {
        "PYGPU_X",
        "CXX",
    }
