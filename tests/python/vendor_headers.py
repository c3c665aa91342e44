"""NVIDIA's headers, as far as they are installed here."""

from __future__ import annotations

import re
import sys
from pathlib import Path

from pygpu import _core


def adapted(
    text: str, backend: str = "cuda", options: list[str] | None = None
) -> tuple[str, list[str], list[str]]:
    """Returns text, options and folders of headers, as the compiler of a backend gets them."""
    packages = list(filter(None, sys.path))
    return _core.adapted_program(
        backend, False, (text, "kernel.cu", options or [], [], packages, False)
    )


def vendor_folder(name: str) -> str | None:
    """Returns the folder of a header of NVIDIA's, or None."""
    folders = adapted(f"#include <{name}>\n")[2]
    return next((folder for folder in folders if Path(folder, name).is_file()), None)


def includes(text: str) -> list[str]:
    """Returns the names in the ``#include`` lines of a text."""
    return re.findall(r"^[ \t]*#[ \t]*include[ \t]*[<\"]([^>\"\n]+)", text, re.MULTILINE)
