"""Programs with mistakes, and the messages about them."""

from __future__ import annotations

import re

# Each mistake is between « and », where the caret is.
TEXTS = {
    "name": "__global__ void k(int *a)\n{\n\tint b = 3; if (b) a[0] = «y» + b;\n}",
    "two lines": "__global__ void k(int *a) {\n  a[0] = «x»;\n  a[1] = «z»;\n}",
    "twice in a line": "__global__ void k(int *a) { a[0] = a[1] + «aa»; a[1] = a[0]; }",
    "behind a comment": "__global__ void k(int *a) { /* y */ a[0] = 'y'; a[1] = «y»; } // y",
    "macro": "#define SUM(x) ((x) + nope)\n__global__ void k(int *a) { a[0] = «SUM»(a[1]); }",
    "macro's value": "#define N none\n__global__ void k(int *a) { a[0] = 1 + «N»; }",
    "between macros": "#define N 3\n__global__ void k(int *a) { a[N] = N + «y» + N * N; }",
    "template": "template <class T> __device__ T f(T x) {\n  return «y» + x;\n}\n"
    "__global__ void k(int *a) {\n  a[0] = f(a[1]);\n}",
    "header": "#include <stdio.h>\n#include <math.h>\n__global__ void k(int *a) { *a = «INT»; }",
    "header's end": '#include "«none.h»"\n__global__ void k(int *a) { *a = 1; }',
    "lines of its own": '#line 40 "own.cu"\n__global__ void k(int *a) {\n  *a = «y»;\n}',
}


def marked(text: str) -> tuple[str, list[tuple[int, int, str]]]:
    """Returns a text without marks, and line, column and words of each mark."""
    places = []
    for number, line in enumerate(text.splitlines(), 1):
        for count, found in enumerate(re.finditer("«(.*?)»", line)):
            places.append((number, found.start() - 2 * count + 1, found[1]))
    return re.sub("[«»]", "", text), places


def check(lines: list[str], file: str, text: str, shift: int = 0) -> None:
    """Asserts that lines are the messages of a marked text: one for each mark, and nothing else."""
    plain, places = marked(text)
    own = plain.splitlines()
    errors = [line for line in lines if ": error: " in line]
    assert len(errors) == len(places), "\n".join(lines)
    for error, (number, column, word) in zip(errors, places, strict=True):
        at = lines.index(error)
        quoted, caret = lines[at + 1 : at + 3]
        assert quoted.split(" | ", 1)[1] == own[number - 1]
        place = caret.split(" | ", 1)[1].index("^") + 1
        # An included file's name may be meant with the marks before or after it.
        ends = (column - 1, column, column + len(word), column + len(word) + 1)
        assert place == column or (word.endswith(".h") and place in ends), "\n".join(lines)
        assert error.startswith(f"{file}:{number + shift}:{place}: error: ")
    for line in lines:
        assert re.match(r"( +\d* \| |[\w .]+:\d+:)", line), line


def check_text(name: str, text: str, lines: list[str]) -> None:
    """Asserts that lines are the messages of a text of ``TEXTS``."""
    if name == "lines of its own":
        check(lines, "own.cu", text.split("\n", 1)[1], shift=39)
    else:
        check(lines, "kernel.cu", text)
