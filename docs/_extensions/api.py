"""The directive `api` documents names of a module. Each public name has to have an entry."""

import importlib
import inspect
import re

from sphinx.util import logging
from sphinx.util.docutils import SphinxDirective

LOGGER = logging.getLogger(__name__)

# Modules whose `__all__` has to appear in the reference.
MODULES = """
    pygpu pygpu.gpuarray pygpu.cumath pygpu.driver pygpu.compiler pygpu.elementwise pygpu.reduction
    pygpu.scan pygpu.curandom pygpu.tools pygpu.ipc pygpu.arrow pygpu.cuda pygpu.dask
    pygpu.characterize pygpu.compyte.array pygpu.compyte.dtypes PyGPU PybindGPU.backend
"""


def entry(module: str, name: str) -> str:
    """The autodoc directive for one name."""
    value = getattr(importlib.import_module(module), name)
    if inspect.ismodule(value):
        raise ValueError(f"{module}.{name} is a module: give its names")
    if inspect.isclass(value):
        return f".. autoclass:: {module}.{name}\n   :members:\n   :undoc-members:\n"
    if callable(value):
        return f".. autofunction:: {module}.{name}\n"
    return f".. autodata:: {module}.{name}\n   :no-value:\n"


PARAMETER = re.compile(r"([\w*, ]+ : [^.]+)\. (.+)")
# Public names that a page describes in a sentence.
NAMESPACES = {"vec"}
ELEMENT_TYPE = re.compile(r"_(u?int|float|complex)\d+$")


class Api(SphinxDirective):
    """Lists names of a module in a table, then documents each."""

    has_content = True
    required_arguments = 1

    def run(self):
        module, names = self.arguments[0], " ".join(self.content).split()
        documented = self.env.metadata[self.env.docname].setdefault("api", set())
        documented |= {(module, name) for name in names}
        table = "".join(f"   ~{module}.{name}\n" for name in names)
        entries = "\n".join(entry(module, name) for name in names)
        text = f".. autosummary::\n   :nosignatures:\n\n{table}\n{entries}"
        return self.parse_text_to_nodes(f"`````{{eval-rst}}\n{text}\n`````\n")


def check_names(app, env):
    """Warns of public names without an entry, unless the same object has one under another name."""
    documented = set().union(*(data.get("api", ()) for data in env.metadata.values()))
    objects = [getattr(importlib.import_module(module), name) for module, name in documented]
    for module in MODULES.split():
        imported = importlib.import_module(module)
        for name in imported.__all__:
            # PyGPU has a class for each element type: one of them is documented.
            value = getattr(imported, ELEMENT_TYPE.sub("_float64", name))
            known = (module, name) in documented or any(value is other for other in objects)
            if not known and not inspect.ismodule(value) and name not in NAMESPACES:
                LOGGER.warning("reference: %s.%s has no entry", module, name)


def split_types(app, what, name, obj, options, lines):
    """Puts a parameter's description on a line of its own, where numpydoc expects it: docstrings
    have it after the type, as in `n : int. The number of elements.`"""
    in_section, result = False, []
    for line, following in zip(lines, [*lines[1:], ""]):
        if following and not following.strip("-"):
            in_section = line in ("Parameters", "Attributes", "Returns", "Yields")
        found = in_section and PARAMETER.fullmatch(line)
        result += [found[1], f"    {found[2]}"] if found else [line]
    lines[:] = result


def setup(app):
    app.connect("autodoc-process-docstring", split_types, priority=400)
    app.add_directive("api", Api)
    app.connect("env-check-consistency", check_names)
    return {"version": "1", "parallel_read_safe": True}
