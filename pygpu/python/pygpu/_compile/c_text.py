"""What of a text in C is code, and attributes behind structures."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

# Comments, texts and characters; a quotation mark within a number separates its digits.
_NO_CODE = re.compile(
    r"""//(?:\\\n|[^\n])*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"|(?<![0-9A-Fa-f])'(?:\\.|[^'\\\n])*'""",
    re.DOTALL,
)

_REFERENCE = re.compile(r"\b(?:texture|surface)\s*<")


def without_comments(text: str) -> str:
    """Returns a text with a space in place of each comment."""
    return _NO_CODE.sub(lambda found: " " if found[0].startswith("/") else found[0], text)


def code_of(text: str) -> str:
    """Returns a text with spaces in place of comments and literals; the rest keeps its place."""
    return _NO_CODE.sub(lambda found: re.sub(r"[^\n]", " ", found[0]), text)


def declares_references(source: str) -> bool:
    """Whether a text may declare texture or surface references."""
    return _REFERENCE.search(source) is not None


# -- attributes -------------------------------------------------------------------------------

_OF_TYPES = ("__align__", "__attribute__")
_OF_VARIABLES = ("__constant__", "__device__", "__shared__", "__managed__")
_DEFINITION = r"^[ \t]*#[ \t]*define[ \t]+(\w+)(.*(?:\\\n.*)*)"
_DIRECTIVE = r"^[ \t]*#.*(?:\\\n.*)*"
_STRUCTURE = r"\b(?:struct|union|class)\b(?!.*\b(?:struct|union|class)\b)"
_BASES = r"(?<!:):(?!:)"


def with_attributes_in_front(text: str, backend: str) -> str:
    """Returns a text with the attributes behind a structure's body where the backend's compiler
    reads them as nvcc does: for NVRTC those of types, for Clang those of variables. Lines keep
    their numbers.

    Of ``struct { ... } __align__(16) pair;`` NVRTC gives the alignment to the name alone, and
    ``sizeof`` of that type is wrong. Of ``struct pair { ... } __constant__ first;`` Clang gives the
    attribute to the structure, where it means nothing.
    """
    attributes = _OF_TYPES if backend == "cuda" else _OF_VARIABLES
    code = code_of(text)
    if not any(name in code for name in attributes):
        return text
    names = _names(code, attributes)
    # Braces of macros' definitions open and close nothing.
    code = re.sub(_DIRECTIVE, lambda it: re.sub(r"[^\n]", " ", it[0]), code, flags=re.MULTILINE)
    edits = []
    for close, start, end in _behind_braces(code, names):
        keyword = _keyword(code, close)
        if keyword is not None:
            edits.append((start, end, re.sub(r"[^\n]", " ", text[start:end])))
            moved = " ".join(text[start:end].split())
            place, new = (
                (keyword[1], f" {moved}") if backend == "cuda" else (keyword[0], f"{moved} ")
            )
            edits.append((place, place, new))
    for start, end, new in sorted(edits, reverse=True):
        text = text[:start] + new + text[end:]
    return text


def _names(code: str, attributes: Iterable[str]) -> re.Pattern[str]:
    """A pattern of the words that stand for attributes: also macros, and macros of macros."""
    names = set(attributes)
    definitions = re.findall(_DEFINITION, code, re.MULTILINE)
    count = 0
    while count != len(names):
        count = len(names)
        known = re.compile(rf"\b(?:{'|'.join(names)})\b")
        names.update(name for name, value in definitions if known.search(value))
    return re.compile(rf"\s*\b(?:{'|'.join(sorted(names))})\b\s*")


def _behind_braces(code: str, names: re.Pattern[str]) -> Iterator[tuple[int, int, int]]:
    """The places of closing braces with attributes behind them, and where those begin and end."""
    for brace in re.finditer(r"\}", code):
        end = brace.end()
        while found := names.match(code, end):
            end = found.end()
            if code.startswith("(", end):
                end = _closing(code, end)
        if end > brace.end():
            yield brace.start(), brace.end(), end


def _closing(code: str, start: int) -> int:
    """The end of what the parenthesis at ``start`` opens."""
    depth = 0
    for place in range(start, len(code)):
        depth += {"(": 1, ")": -1}.get(code[place], 0)
        if depth == 0:
            return place + 1
    return len(code)


def _keyword(code: str, close: int) -> tuple[int, int] | None:
    """Where the word ``struct`` begins and ends whose body the brace at ``close`` ends; None for
    another body.
    """
    depth = 0
    for place in range(close, -1, -1):
        depth += {"}": 1, "{": -1}.get(code[place], 0)
        if depth == 0:
            break
    else:
        return None
    head = max(code.rfind(mark, 0, place) for mark in ";{}") + 1
    declared = re.split(_BASES, code[head:place], maxsplit=1)[0]
    found = None if re.search(r"[()=]", declared) else re.search(_STRUCTURE, declared, re.DOTALL)
    return None if found is None else (head + found.start(), head + found.end())
