"""README and the pages of the root: programs, links and the chart."""

import re
import runpy

import pytest
from processes import ROOT, run_python

PAGES = ["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "examples/README.md"]
PAGES += ["docs/rust.md", "docs/adding-an-operation.md", "docs/gallery/index.md"]


def text_of(page):
    return (ROOT / page).read_text(encoding="utf-8")


def test_programs_print_what_their_comments_say():
    blocks = re.findall(r"^```python\n(.*?)^```", text_of("README.md"), re.M | re.S)
    assert blocks
    for block in blocks:
        promised = re.findall(r"print\(.*\)  # (.*)", block)
        assert promised
        assert run_python(block).stdout.splitlines() == promised


@pytest.mark.parametrize("page", PAGES)
def test_links_lead_to_files(page):
    links = re.findall(r"\]\((?!https?:)([^)#]+)", text_of(page))
    assert links
    missing = [link for link in links if not ((ROOT / page).parent / link).exists()]
    assert not missing


@pytest.mark.parametrize(
    ("page", "lines"), [("README.md", 100), ("ARCHITECTURE.md", 250), ("CONTRIBUTING.md", 150)]
)
def test_a_page_stays_short(page, lines):
    assert len(text_of(page).splitlines()) <= lines


def test_the_chart_shows_the_tables_of_the_reports():
    drawn = runpy.run_path(str(ROOT / "docs/figures/speed.py"))["draw"]()
    assert text_of("docs/figures/speed.svg") == drawn
