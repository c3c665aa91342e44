"""The programs of the gallery run, agree with numpy, and are on the pages that list them."""

import re
from xml.etree import ElementTree

import pytest
from PIL import Image
from processes import ROOT, run_python

GALLERY = ROOT / "examples" / "gallery"
PROGRAMS = sorted(path.name for path in GALLERY.glob("*.py") if path.name != "picture.py")

RUN = """
    import runpy, sys
    from pathlib import Path

    sys.path.insert(0, str(Path(sys.argv[1]).parent))
    sys.argv = sys.argv[1:]
    runpy.run_path(sys.argv[0], run_name="__main__")
"""


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_program_agrees_with_numpy(name, tmp_path):
    done = run_python(RUN, str(GALLERY / name), str(tmp_path))
    result, *picture = done.stdout.splitlines()
    assert len(result) > 20
    source = (GALLERY / name).read_text(encoding="utf-8")
    assert re.findall(r'save_\w+\(\s*"(.*?)"', source) == [path.name for path in tmp_path.iterdir()]
    for path in tmp_path.iterdir():
        assert picture == [f"picture: {path}"]
        if path.suffix == ".png":
            with Image.open(path) as image:
                image.load()
                assert len(image.convert("L").getcolors()) > 1
        else:
            assert "polyline" in ElementTree.parse(path).getroot()[1].tag


def test_two_processes_share_a_column():
    done = run_python(
        f"import runpy; runpy.run_path({str(ROOT / 'examples/ipc.py')!r}, run_name='__main__')"
    )
    assert done.stdout.startswith("two processes shared 20 elements on ")


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_program_is_short(name):
    assert len((GALLERY / name).read_text(encoding="utf-8").splitlines()) < 80


def test_the_pages_list_every_program_and_picture():
    table = (ROOT / "examples/README.md").read_text(encoding="utf-8")
    assert sorted(re.findall(r"^\| \[(.*?)\]\(gallery/\1\)", table, re.M)) == PROGRAMS
    page = (ROOT / "docs/gallery/index.md").read_text(encoding="utf-8")
    assert sorted(re.findall(r"\]\(../../examples/gallery/(.*?)\)", page)) == PROGRAMS
    pictures = [path.name for path in (ROOT / "docs/gallery").iterdir() if path.suffix != ".md"]
    assert sorted(re.findall(r"!\[.*?\]\((.*?)\)", page)) == sorted(pictures)
