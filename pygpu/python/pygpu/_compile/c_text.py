"""What of a text in C is code, and what comments and literals."""

from __future__ import annotations

import re

# Comments, texts and characters; a quotation mark within a number separates its digits.
_NO_CODE = re.compile(
    r"""//(?:\\\n|[^\n])*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"|(?<![0-9A-Fa-f])'(?:\\.|[^'\\\n])*'""",
    re.DOTALL,
)


def without_comments(text: str) -> str:
    """Returns a text with a space in place of each comment."""
    return _NO_CODE.sub(lambda found: " " if found[0].startswith("/") else found[0], text)


def code_of(text: str) -> str:
    """Returns a text with spaces in place of comments and literals: what is left lies where it
    lay.
    """
    return _NO_CODE.sub(lambda found: re.sub(r"[^\n]", " ", found[0]), text)
