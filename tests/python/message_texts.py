"""The texts of all error messages in the sources, and the rules that they keep."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[2]
PYTHON = ["pygpu/python"]
RUST = ["src", "hal", "backend-host", "backend-cuda", "backend-hip", "pygpu/src"]

MOST_WORDS = 25
UNITS = (
    "arguments arrays axes bits blocks buffers bytes children columns devices dimensions elements "
    "entries events extents fields indices inputs numbers octets operands options rows states "
    "strides threads values words"
).replace(" ", "|")
TURNS = (
    r"\b(is|are) (no|none of) (?!longer\b)",
    r"\b(is|are) (not )?there\b",
    r"\b(that|those) of\b",
    r"(?<!^)\bwhat (a|an|the|it|they|is|was|are|were|has|have) ",
    r"\b(as|so) many\b",
    r"\b(behind|beside)\b",
    r"\blies? (in|at|outside|inside)\b",
    r", too\b",
    r"\b(at once|without one|but for)\b",
)

# What a text must not have.
RULES = {
    "names the argument twice": r"^(\w+): \1\b",
    "shows a status": r"\[status|InvalidValue|\(\{?(code|status)\b|status \{\w*\} of",
    "has a turn that is read twice": "|".join(TURNS),
    "has a count before a plural": (
        rf"(?<!of )(?<!at most )\{{[^{{}}]*\}} ({UNITS})\b(?!; (one|at most|all)\b)"
        rf"|(?<![\w.,-])1 ({UNITS})\b"
    ),
    "ends with a mark": r"[.:;,]$",
}


class Message(NamedTuple):
    place: str
    text: str


def python_messages() -> Iterator[Message]:
    """Yields the texts of exceptions; a placeholder is written {it}."""
    for path in sources(PYTHON, "*.py"):
        tree = ast.parse(path.read_text())
        for function in ast.walk(tree):
            if isinstance(function, ast.FunctionDef):
                yield from texts_of_function(path, function)


def texts_of_function(path: Path, function: ast.FunctionDef) -> Iterator[Message]:
    nodes = list(ast.walk(function))
    raised = [it.exc for it in nodes if isinstance(it, ast.Raise) and it.exc]
    raised += [it for it in nodes if isinstance(it, ast.Call) and REFUSES.search(name_of(it.func))]
    named = {name.id for it in raised for name in ast.walk(it) if isinstance(name, ast.Name)}
    assigned = [
        it.value
        for it in nodes
        if isinstance(it, ast.Assign) and named & {name_of(target) for target in it.targets}
    ]
    found = {}
    for tree in raised + assigned:
        parts = list(ast.walk(tree))
        inner = {
            id(part)
            for it in parts
            if isinstance(it, ast.JoinedStr)
            for part in ast.walk(it)
            if part is not it
        }
        for node in parts:
            text = text_of(node)
            if " " in text and id(node) not in inner:
                found[node.lineno, text] = Message(f"{path.relative_to(ROOT)}:{node.lineno}", text)
    yield from found.values()


# Functions of the package that make an exception.
REFUSES = re.compile(r"wrong_type|refus|_Failure|[a-z]Error$|invalid")


def name_of(node: ast.AST) -> str:
    return getattr(node, "id", "") or getattr(node, "attr", "")


def text_of(node: ast.AST) -> str:
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value
    if isinstance(node, ast.JoinedStr):
        parts = node.values
        return "".join(
            text_of(it) if isinstance(it, ast.Constant) else f"{{{ast.unparse(it.value)}}}"
            for it in parts
        )
    return ""


# A call that makes an error, or a variable that is named as its text.
MAKES = re.compile(
    r"Error::(?:invalid|invalid_type|index|overflow|unsupported|unavailable|handle|new)\("
    r"|\b(?:Err|Some)\((?=format!|\x22)|\bPy\w+Error::new_err\("
    r"|\b(?:refused?|failed|unsupported|wrong|bad|missing\w*)\("
    r"|\blet (?:mut )?(?:detail|what|why|reason|advice|hint|excess|needed|allowed|message|refused?"
    r"|failed|given|remedy|problem|text|how|error|unknown)\b[^=;\n]*=\s"
    r"|\bfn \w*(?:remedy|refus|excess|misfit|advice|reason|describe|exhausted)\w*\b"
)
LITERAL = re.compile(r'"((?:[^"\\]|\\.)*)"', re.DOTALL)


def rust_messages() -> Iterator[Message]:
    """Yields the texts of the errors, with their placeholders."""
    for path in sources(RUST, "*.rs"):
        if {"tests", "tests.rs", "examples", "benches", "testing.rs"} & set(path.parts):
            continue
        source = path.read_text().split("#[cfg(test)]\nmod tests {")[0]
        source = re.sub(r"(?m)^[ \t]*//.*$", lambda it: " " * len(it[0]), source)
        found = {}
        for match in MAKES.finditer(source):
            for literal in LITERAL.finditer(source, match.end(), end_of(source, match.end())):
                text = re.sub(r"\\\n\s*", "", literal[1]).replace('\\"', '"')
                if " " in text:
                    line = source.count("\n", 0, literal.start()) + 1
                    found[line, text] = Message(f"{path.relative_to(ROOT)}:{line}", text)
        yield from found.values()


def end_of(source: str, start: int) -> int:
    """Returns the end of the arguments, the statement or the function that begins at `start`."""
    depth, position, opened = 0, start, False
    while position < len(source):
        letter = source[position]
        if letter == '"':
            position = LITERAL.match(source, position).end()
            continue
        if letter in "([{":
            depth, opened = depth + 1, True
        elif letter in ")]}":
            depth -= 1
            if depth < 0 or (depth == 0 and letter == "}" and opened):
                break
        elif letter == ";" and depth == 0:
            break
        position += 1
    return position


def sources(folders: list[str], pattern: str) -> Iterator[Path]:
    for folder in folders:
        yield from sorted((ROOT / folder).rglob(pattern))


def faults_of(text: str) -> list[str]:
    """Returns the rules that a message breaks."""
    broken = [rule for rule, pattern in RULES.items() if re.search(pattern, text, re.MULTILINE)]
    # A placeholder and a list are a word each.
    short = re.sub(r"\w+(, \w+){3,}", "list", re.sub(r"\{[^{}]*\}", "it", text))
    sentences = re.split(r"[.;:] |\n|\(|\)", short)
    if any(len(sentence.split()) > MOST_WORDS for sentence in sentences):
        broken.append(f"has a sentence of more than {MOST_WORDS} words")
    return broken
