"""The pages of the site: their code runs, their commands exist, and their links lead somewhere.

A block that does not run here has its reason in front: `<!-- not run: needs an NVIDIA GPU -->`."""

from __future__ import annotations

import functools
import re
import shlex
import subprocess
from pathlib import Path
from typing import NamedTuple

import pytest
from processes import run_python
from tables import each_row

import pygpu
from pygpu import compiler

ROOT = Path(__file__).parents[3]
PAGES = sorted(
    page
    for page in (ROOT / "docs").rglob("*.md")
    if not {"reports", "gallery"} & {*page.relative_to(ROOT).parts}
)
FENCE = re.compile(r"(`{3,}|:{3,})(.*)")
REASON = re.compile(r"<!-- not run: (.+) -->")
LANGUAGES = {"python", "sh", "console", "cuda", "rust", "text"}
# Commands that are not this project's, and are not called here.
OTHER_COMMANDS = re.compile("cargo|compute-sanitizer|export|gdb|mpiexec|pytest|python|valgrind")

on_host = pytest.mark.skipif(pygpu.choose_backend() != "host", reason="pages are for the host")


class Block(NamedTuple):
    """A block of code, the number of its first line, and the reason if it does not run."""

    language: str
    first: int
    lines: list[str]
    reason: str | None

    @property
    def code(self) -> str:
        return "\n".join(self.lines) + "\n"


@functools.cache
def blocks(page: Path) -> list[Block]:
    """The page's blocks of code, without directives."""
    found, fence, before = [], None, ""
    for number, line in enumerate(page.read_text(encoding="utf-8").splitlines()):
        if fence is None and (opening := FENCE.fullmatch(line.strip())):
            fence, language = opening.groups()
            reason = REASON.fullmatch(before)
            block = Block(language, number + 1, [], reason and reason[1])
        elif line.strip() == fence:
            fence = None
            if not block.language.startswith("{"):
                found.append(block)
        elif fence:
            block.lines.append(line)
        before = line
    assert fence is None, (name(page), block)
    return found


def name(page: Path) -> str:
    return str(page.relative_to(ROOT / "docs"))


def test_blocks_say_what_they_are():
    for page in PAGES:
        for block in blocks(page):
            assert block.language in LANGUAGES, (name(page), block)


def python_blocks(*, run: bool) -> list[tuple[Path, list[Block]]]:
    """The pages with Python that runs, or with Python that does not, and these blocks."""
    found = []
    for page in PAGES:
        chosen = [it for it in blocks(page) if it.language == "python" and (not it.reason) == run]
        found += [(page, chosen)] if chosen else []
    return found


# Of `print(x)  # 3`, which is outside of loops, the page says the output.
PRINTED = re.compile(r"^print\(.*\)  # (.+)$", re.M)


@on_host
@pytest.mark.parametrize(
    ("page", "chosen"), [pytest.param(*pair, id=name(pair[0])) for pair in python_blocks(run=True)]
)
def test_the_code_runs(page, chosen, tmp_path):
    """The page's Python is one program, in a folder of its own, with the page's line numbers."""
    lines = [f"import os; os.chdir({str(tmp_path)!r})"]
    for block in chosen:
        lines += [""] * (block.first - len(lines)) + block.lines
    done = run_python("\n".join(lines))
    printed = done.stdout.splitlines()
    for expected in PRINTED.findall("\n".join(lines)):
        assert expected in printed, (expected, done.stdout)


@each_row("reason", [it.reason for _, chosen in python_blocks(run=False) for it in chosen])
def test_other_code_has_a_reason(reason):
    pytest.skip(f"code of a page: {reason}")


def test_most_code_runs():
    here, left = (sum(len(it) for _, it in python_blocks(run=run)) for run in (True, False))
    assert here > 40
    assert left < here / 10


@on_host
def test_kernels_compile():
    for page in PAGES:
        for block in blocks(page):
            if block.language == "cuda" and not block.reason:
                compiler.SourceModule(block.code)


def commands(page: Path):
    """The commands of the page's shell blocks, without variables in front of them."""
    for block in blocks(page):
        if block.language not in ("sh", "console") or block.reason:
            continue
        code = block.code
        if block.language == "console":
            code = "\n".join(line[2:] for line in code.splitlines() if line.startswith("$ "))
        for line in code.replace("\\\n", " ").splitlines():
            words = shlex.split(line, comments=True)
            while words and re.match(r"\w+=", words[0]):
                del words[0]
            if words:
                yield words


@functools.cache
def usage() -> str:
    return run_python("from pygpu.__main__ import main; main(['--help'])", check=False).stdout


@each_row("page", PAGES, ids=name)
def test_the_commands_exist(page):
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    for words in commands(page):
        command, *arguments = words
        if words[:3] == ["python", "-m", "pygpu"]:
            command, *arguments = words[2:]
        if command == "pygpu":
            first = arguments[0]
            assert first[0] == "-" or f"pygpu {first}" in usage(), words
        elif command == "make":
            for target in (word for word in arguments if "=" not in word and word[0] != "-"):
                assert re.search(rf"^([\w -]* )?{target}( [\w -]*)?:", makefile, re.M), words
        elif command == "pip":
            assert arguments[0] in ("install", "wheel"), words
        elif command.startswith(("scripts/", "./", "tests/", "benches/")):
            assert (ROOT / command).exists(), words
        else:
            assert OTHER_COMMANDS.fullmatch(command), words
        for word in arguments:
            if re.match(r"(scripts|tests|benches|examples|docs)/[\w/.-]+$", word):
                assert (ROOT / word).exists(), words


LINK = re.compile(r"\]\((?!https?:|mailto:)([^)#\s]*)(?:#([\w-]+))?\)")


def test_links_lead_somewhere():
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", "*.md"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    if listed.returncode:
        pytest.skip("not a checkout of git")
    for file in listed.stdout.split():
        page = ROOT / file
        if not page.exists():
            continue
        text = re.sub(r"^(`{3,}).*?^\1$", "", page.read_text(encoding="utf-8"), flags=re.M | re.S)
        for target, anchor in LINK.findall(re.sub(r"`[^`\n]*`", "", text)):
            there = page.parent / target if target else page
            assert there.exists(), (file, target)
            if anchor and there.suffix == ".md":
                heads = re.findall(r"^#+ (.+)$", there.read_text(encoding="utf-8"), re.M)
                slugs = {
                    re.sub(r"[^\w -]", "", head).strip().lower().replace(" ", "-") for head in heads
                }
                assert anchor in slugs, (file, target, anchor)


def test_messages_of_troubleshooting_are_in_the_sources():
    """Half of a message's words follow each other in a source; others may be values."""
    folders = ("src", "hal", "backend-cuda", "backend-hip", "backend-host", "pygpu")
    files = [path for name in folders for path in (ROOT / name).rglob("*.[rp][sy]")]
    sources = "\n".join(path.read_text(encoding="utf-8") for path in files)
    sources = re.sub(r"\\\n\s*", "", sources)  # texts that go on in the next line
    page = (ROOT / "docs/guides/troubleshooting.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| `([^|]+) \|", page, re.M)
    assert len(rows) > 15
    for row in rows:
        for message in row.replace(" ... ", "").split("`")[::2]:
            words = message.split()
            size = (len(words) + 1) // 2
            parts = [" ".join(words[i : i + size]) for i in range(len(words) - size + 1)]
            assert not parts or any(part in sources for part in parts), message
