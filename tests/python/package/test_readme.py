"""README and the pages of the root: programs, lengths and the chart."""

import re
import runpy

import pytest
from processes import ROOT, run_python


def text_of(page):
    return (ROOT / page).read_text(encoding="utf-8")


def test_programs_print_what_their_comments_say():
    blocks = re.findall(r"^```python\n(.*?)^```", text_of("README.md"), re.M | re.S)
    assert blocks
    for block in blocks:
        promised = re.findall(r"print\(.*\)  # (.*)", block)
        assert promised
        assert run_python(block).stdout.splitlines() == promised


@pytest.mark.parametrize(
    ("page", "lines"), [("README.md", 100), ("ARCHITECTURE.md", 250), ("CONTRIBUTING.md", 150)]
)
def test_a_page_stays_short(page, lines):
    assert len(text_of(page).splitlines()) <= lines


def test_the_chart_shows_the_tables_of_the_reports():
    drawn = runpy.run_path(str(ROOT / "docs/figures/speed.py"))["draw"]()
    assert text_of("docs/figures/speed.svg") == drawn
