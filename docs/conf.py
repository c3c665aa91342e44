"""Sphinx's configuration. `make docs` builds the site; warnings are errors."""

import re
import sys
import urllib.request
from pathlib import Path

import pygpu


def reachable(address: str) -> bool:
    """Returns true if the address answers within three seconds."""
    try:
        with urllib.request.urlopen(address, timeout=3):
            return True
    except OSError:
        return False


HERE = Path(__file__).parent
sys.path.insert(0, str(HERE / "_extensions"))

project = "pygpu"
author = "The pygpu developers"
copyright = "the pygpu developers"  # the name that Sphinx reads
version = release = pygpu.__version__

# The pages that show files of the repository's root.
ROOT_FILES = {
    "ARCHITECTURE.md": "architecture",
    "CONTRIBUTING.md": "contributing",
    "CHANGELOG.md": "changelog",
}

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.intersphinx",
    "numpydoc",
    "sphinx_copybutton",
    "api",
]
exclude_patterns = ["_extensions", "requirements.txt"]
highlight_language = "none"
default_role = "literal"

myst_enable_extensions = ["colon_fence", "deflist", "fieldlist"]
myst_heading_anchors = 3

autodoc_typehints = "none"
autodoc_member_order = "alphabetical"
autosummary_generate = False
numpydoc_show_class_members = False
numpydoc_xref_param_type = False

# Sphinx warns of an inventory that it cannot fetch, and warnings are errors: without a network the
# site does not link to other sites.
intersphinx_mapping = {
    name: (address, None)
    for name, address in {
        "python": "https://docs.python.org/3",
        "numpy": "https://numpy.org/doc/stable",
    }.items()
    if reachable(f"{address}/objects.inv")
}
suppress_warnings = ["myst.header"]

html_theme = "furo"
html_title = "pygpu"
html_static_path = ["_static"]
html_css_files = ["site.css"]
copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True


def with_links_to_pages(text, here, up):
    """Makes links to files of the root that have a page links to that page."""
    for file, page in ROOT_FILES.items():
        text = text.replace(f"]({up}{file}", f"]({here}{page}.md")
    return text


def read_source(app, docname, source):
    """Puts the root's files on their pages, and adapts links."""
    for file, page in ROOT_FILES.items():
        if docname == page:
            path = HERE.parent / file
            app.env.note_dependency(str(path))
            text = with_links_to_pages(path.read_text(encoding="utf-8"), "", "")
            # Other links are relative to the root.
            pages = "|".join(ROOT_FILES.values())
            text = re.sub(rf"\]\((?!https?:|#|(?:{pages})\.md)", "](../", text)
            source[0] = text.replace("](../docs/", "](")
            return
    here = "../" * docname.count("/")
    source[0] = with_links_to_pages(source[0], here, f"{here}../")


def setup(app):
    app.connect("source-read", read_source)
