"""The files that name a narrow floating-point dtype, and so must change to add another one."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]

# The product, except the language of programs' own kernels (cuda-c, backend-host/executor).
SOURCES = [
    "build.rs",
    "build",
    "src",
    "hal/src",
    "hal/array/src",
    "hal/codegen/src",
    "hal/driver/src",
    "hal/random",
    "backend-cuda/src",
    "backend-hip/src",
    "backend-host/src",
    "backend-host/kernels/src",
    "pygpu/src",
    "pygpu/python",
]
ENDINGS = {".rs", ".py", ".pyi", ".cuh"}

# Files that name such a dtype, and the information that only they contain.
EVERY = {
    "hal/src/dtype.rs": "its row, and the package that has its numpy dtype",
    "hal/src/dtype/narrow.rs": "its Rust type, its bits, and how it is rounded",
    "hal/codegen/src/source/cuda/types.cuh": "its format in CUDA C, and how it is rounded there",
}
VENDORS = {
    "backend-cuda/src/cublas.rs": "cuBLAS's number for it, if it multiplies matrices of it",
    "backend-hip/src/rocblas.rs": "rocBLAS's number for it, if it multiplies matrices of it",
}
ONLY = {
    "Float16": {
        "pygpu/src/kernel/arguments.rs": "Python's struct packs it",
        "pygpu/src/kernel/conversion.rs": "numbers become a kernel's parameter of it",
        "pygpu/src/kernel/remedies.rs": "errors name numpy's type of two bytes",
        "pygpu/python/pygpu/_array/numpy_functions.py": "numpy computes functions of bytes in it",
    },
    "BFloat16": {
        "pygpu/src/kernel/conversion.rs": "numbers become a kernel's parameter of it",
    },
}

ROW = re.compile(
    r'^ +(\w+) "(\w+)" Float (?:\$crate::)?(\w+) \[[^\]]*\]\s*c\("(\w+)", "(\w+)", [^)]*\) (\w+) ',
    re.MULTILINE,
)
RUST_TESTS = re.compile(r"^#\[cfg\([^\n]*\btest\b[^\n]*\nmod \w+ \{\n.*?^\}\n", re.S | re.M)
COMMENT = re.compile(r"//.*|^ *#[^!\[].*", re.MULTILINE)
DOCSTRING = re.compile(r'""".*?"""', re.S)


def narrow_dtypes() -> dict[str, set[str]]:
    """Returns the names of each dtype in the table whose arithmetic uses another dtype."""
    rows = ROW.findall((ROOT / "hal/src/dtype.rs").read_text())
    assert len(rows) >= 4
    return {variant: {variant, *names} for variant, *names, working in rows if working != variant}


def files_that_name(names: set[str]) -> set[str]:
    word = re.compile(rf"\b(?:{'|'.join(sorted(names))})\b")
    found = set()
    for source in SOURCES:
        path = ROOT / source
        files = [path] if path.is_file() else [it for it in path.rglob("*") if it.is_file()]
        assert files, source
        for file in files:
            if file.suffix not in ENDINGS or file.stem == "tests":
                continue
            text = file.read_text()
            text = (
                DOCSTRING.sub("", text)
                if file.suffix in {".py", ".pyi"}
                else RUST_TESTS.sub("", text)
            )
            if word.search(COMMENT.sub("", text)):
                found.add(file.relative_to(ROOT).as_posix())
    return found


def test_the_table_has_dtypes_of_few_bits() -> None:
    assert {"Float16", "BFloat16"} <= set(narrow_dtypes())
    named = set().union(*(files_that_name(names) for names in narrow_dtypes().values()))
    assert named >= set(VENDORS), "a list that names more than there is"


@pytest.mark.parametrize("dtype", narrow_dtypes())
def test_only_these_files_name_it(dtype: str) -> None:
    found = files_that_name(narrow_dtypes()[dtype])
    assert found - set(VENDORS) == set(EVERY) | set(ONLY.get(dtype, {}))
