"""The requirements for docstrings of public functions, methods and classes, in numpydoc's format.

The required parts are derived from the code: parameters from the signature, and exceptions from the
``raise`` statements of a Python function and of the functions that it calls. A parameter is
documented by an entry ("name : type. Description.", or a description in the lines below), by a
``name`` in the sentences, in a page that "Arguments are as in" links to, by the module for all its
functions, or by numpy. An exception is documented by an entry, or in a sentence that begins with
"Raises". The summary may describe the return value. A ``TypeError`` or a ``ValueError`` for an
invalid argument need not be mentioned.
"""

from __future__ import annotations

import ast
import builtins
import enum
import functools
import importlib
import inspect
import re
import sys
import textwrap
from pathlib import Path

import pygpu
from pygpu import cumath, driver, gpuarray

_HEADING = re.compile(r"^(?P<title>[A-Z][A-Za-z ]+)\n-+$", re.MULTILINE)
# Exceptions that any function raises for invalid arguments, and that its page need not mention.
OF_ARGUMENTS = {TypeError, ValueError, OverflowError, IndexError, driver.LogicError}


def sections(text):
    """Returns the text below each heading; the key "" has the text before the first heading."""
    found, title, begin = {}, "", 0
    for heading in _HEADING.finditer(text):
        found[title] = text[begin : heading.start()].strip("\n")
        title, begin = heading["title"], heading.end()
    found[title] = text[begin:].strip("\n")
    return found


def entries(section):
    """Yields the entries of a section: the names before the colon, and the type. The description is
    a sentence after the type, or the lines below."""
    lines = [line for line in section.splitlines() if line and not line.startswith(" ")]
    heads = [line.partition(". ")[0].partition(" : ") for line in lines]
    return [([name.strip() for name in names.split(",")], kind) for names, _, kind in heads]


def without_text(text):
    """Returns the entries of a docstring that only name a parameter, a result or an exception."""
    parts = sections(text)
    found = []
    for title in ("Parameters", "Returns", "Yields", "Raises"):
        lines = parts.get(title, "").splitlines()
        found += [
            line
            for line, below in zip(lines, [*lines[1:], ""])
            if line and not line.startswith(" ") and not below.startswith("    ")
            if ". " not in line
        ]
    return found


def function_of(member):
    """Returns the function of a static, class or bound method."""
    is_bound = isinstance(member, staticmethod | classmethod) or inspect.ismethod(member)
    return member.__func__ if is_bound else member


@functools.cache
def _stub():
    """Returns, for each qualified name in the stubs, whether the function returns ``None``."""
    found = {}

    def visit(nodes, prefix):
        for node in nodes:
            if isinstance(node, ast.ClassDef):
                inherited = [base.id for base in node.bases if isinstance(base, ast.Name)]
                for base in inherited:
                    members = [name for name in found if name.startswith(f"{base}.")]
                    found.update({node.name + it.removeprefix(base): found[it] for it in members})
                visit(node.body, f"{prefix}{node.name}.")
            elif isinstance(node, ast.FunctionDef):
                returned = node.returns
                is_none = isinstance(returned, ast.Constant) and returned.value is None
                found[prefix + node.name] = is_none
            elif isinstance(node, ast.Assign) and isinstance(node.value, ast.Name | ast.Attribute):
                # Functions that are declared as aliases of another one.
                same = found.get(prefix + ast.unparse(node.value), False)
                found.update((prefix + it.id, same) for it in node.targets)
            elif isinstance(node, ast.AnnAssign):
                # An attribute, or a function that is declared as an instance of a callable class.
                call = f"{ast.unparse(node.annotation)}.__call__"
                found[prefix + node.target.id] = found.get(call, False)

    visit(ast.parse((Path(pygpu.__file__).parent / "_core.pyi").read_text()).body, "")
    (types,) = (it for it in ast.parse(inspect.getsource(cumath)).body if isinstance(it, ast.If))
    visit(types.body, "")
    return found


def _returns(function):
    """Returns true if a function returns more than ``None``; None if this is not declared."""
    function = function_of(function)
    if inspect.isfunction(function):
        annotation = inspect.signature(function).return_annotation
        if annotation is inspect.Signature.empty:
            return None
        return annotation not in (None, "None", "NoReturn", "Never")
    is_none = _stub().get(function.__qualname__)
    return None if is_none is None else not is_none


def _body(function):
    """Yields the statements of a function, without the statements of nested functions."""
    try:
        (definition,) = ast.parse(textwrap.dedent(inspect.getsource(function))).body
    except (OSError, TypeError, SyntaxError):
        return
    waiting = list(getattr(definition, "body", []))
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.FunctionDef | ast.Lambda | ast.ClassDef):
            continue
        yield node
        waiting += ast.iter_child_nodes(node)


def is_declared(member, home):
    """Returns true if the annotation of a property's function, or the stub, declares its type."""
    if isinstance(member, property | functools.cached_property):
        getter = getattr(member, "fget", None) or member.func
        return inspect.signature(getter).return_annotation is not inspect.Signature.empty
    return f"{home.__name__}.{member.__name__}" in _stub()


def is_ours(value):
    """Returns true if the value belongs to a package of the wheel; PyGPU is an alias of one."""
    return (getattr(value, "__module__", None) or "").startswith(("pygpu", "PybindGPU"))


def _raised_by_itself(function):
    """Returns the exceptions that a Python function raises in its own statements."""
    for node in _body(function):
        if not isinstance(node, ast.Raise) or node.exc is None:
            continue
        called = node.exc.func if isinstance(node.exc, ast.Call) else node.exc
        name = called.attr if isinstance(called, ast.Attribute) else getattr(called, "id", "")
        kind = function.__globals__.get(name, getattr(builtins, name, None))
        if isinstance(kind, type) and issubclass(kind, BaseException):
            yield kind


def raised(function):
    """Returns the exceptions that a Python function, or a function that it calls by name,
    raises."""
    function = inspect.unwrap(function) if inspect.isroutine(function) else function
    if not inspect.isfunction(function):
        return set()
    called = {function}
    for node in _body(function):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            other = function.__globals__.get(node.func.id)
            if inspect.isfunction(other) and is_ours(other):
                called.add(other)
    return {kind for each in called for kind in _raised_by_itself(each)}


def _undocumented(function, parts):
    """Returns the names of exceptions that a function raises and whose docstring mentions neither
    the exception nor one of its base classes."""
    listed = {name for group, _ in entries(parts.get("Raises", "")) for name in group}
    for sentence in re.findall(r"Raises\s+(``.*?)(?:\n\n|\Z)", parts[""], re.DOTALL):
        listed |= {*re.findall(r"``([\w.]+)``", sentence)}
    documented = {name.rpartition(".")[2] for name in listed} - {"Exception"}
    own = raised(function) - OF_ARGUMENTS
    names = [it.__name__ for it in own if not documented & {base.__name__ for base in it.__mro__}]
    return sorted(names)


def _parameters(function):
    """Returns the parameters with their stars, or None if the signature is unknown."""
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return None
    stars = {inspect.Parameter.VAR_POSITIONAL: "*", inspect.Parameter.VAR_KEYWORD: "**"}
    named = [stars.get(it.kind, "") + it.name for it in parameters]
    return [name for name in named if name not in ("self", "cls") and not name.startswith("_")]


def _resolved(path, value):
    """Returns the object that a link in a docstring names, or None."""
    value = inspect.unwrap(value) if inspect.isroutine(value) else value
    # A method of the extension has the class, and no module of its own.
    owner = getattr(value, "__objclass__", None)
    module = sys.modules[(owner or value).__module__]
    owner = owner or getattr(module, value.__qualname__.partition(".")[0], None)
    for place in (owner, module, gpuarray, driver):
        found = functools.reduce(lambda it, part: getattr(it, part, None), path.split("."), place)
        if found is not None:
            return found
    module, _, name = path.rpartition(".")
    return getattr(importlib.import_module(module), name, None) if module else None


def _listed(page):
    return {name for group, _ in entries(sections(page).get("Parameters", "")) for name in group}


def _elsewhere(value, text):
    """Returns the argument names in the sentences, in the module's list for all its functions, and
    in the pages that "Arguments are as in" links to."""
    home = inspect.unwrap(value) if inspect.isroutine(value) else value
    module = sys.modules.get(getattr(home, "__module__", None) or "")
    names = _listed(inspect.getdoc(module) or "")
    # An ``argument`` that the sentences describe need not be listed again.
    names |= set(re.findall(r"``\*{0,2}(\w+)``", sections(text)[""]))
    for links in re.findall(r"rguments\s+are\s+as\s+in\s+((?::\w+:`[^`]+`(?:\s+and\s+)?)+)", text):
        for path in re.findall(r"`([\w.]+)`", links):
            other = _resolved(path, value)
            if path.startswith("numpy."):
                names |= set(_parameters(value))
            elif other is not None and other is not value:
                page = inspect.getdoc(other) or ""
                names |= _listed(page) | _elsewhere(other, page)
    return names


def _is_of_shown_family(function):
    """Whether the module has an example of all its functions."""
    home = inspect.unwrap(function) if inspect.isroutine(function) else function
    module = sys.modules.get(getattr(home, "__module__", None) or "")
    return ">>> " in sections(inspect.getdoc(module) or "").get("Examples", "")


def _of_parameters(text, expected, elsewhere=frozenset()):
    listed = entries(text.get("Parameters", ""))
    names = [name for group, _ in listed for name in group]
    fixed = {name for name in expected if not name.startswith("*")}
    # The members of ``*args`` and ``**kwargs`` may be documented with names of their own.
    is_open = set(expected) - fixed and names
    missing, unknown = fixed - set(names) - elsewhere, set(names) - set(expected)
    is_empty = expected and not names and not elsewhere
    if missing or (unknown and not is_open) or is_empty:
        yield f"Parameters {expected}, not {names}" if names else f"Parameters {expected}"
    if any(not kind for _, kind in listed):
        yield "a type for each parameter"


def lacking_of_function(function, shown, never=()):
    """Returns the parts that a function's docstring lacks. ``shown`` is true if an example
    elsewhere calls it, and ``never`` lists exceptions that cannot occur."""
    text = inspect.getdoc(function) or ""
    if not text.strip():
        return ["a docstring"]
    parts = sections(text)
    # numpy's page documents the arguments and has examples; test_as_numpy.py compares the names.
    is_numpys = re.search(r"as\s+(:func:`numpy\.\w|numpy's method)", text)
    elsewhere = _elsewhere(function, text)
    expected = [] if is_numpys else _parameters(function) or []
    lacks = list(_of_parameters(parts, expected, elsewhere))
    returns = _returns(function)
    if returns is None:
        lacks.append("a declaration of what it returns")
    if returns is False and "Returns" in parts:
        lacks.append("no Returns, for it returns None")
    missing = [name for name in _undocumented(function, parts) if name not in never]
    if missing:
        lacks.append(f"Raises {missing}")
    bare = without_text(text)
    if bare:
        lacks.append(f"a text for {bare}")
    shown = shown or is_numpys or _is_of_shown_family(function)
    if not shown and ">>> " not in parts.get("Examples", parts[""]):
        lacks.append("Examples")
    return lacks


def lacking_of_class(value, never=()):
    """Returns the parts that a class's docstring lacks; ``never`` lists impossible exceptions."""
    text = inspect.getdoc(value) or ""
    if not text.strip():
        return ["a docstring"]
    parts = sections(text)
    # Programs do not create instances of protocols or enumerations.
    is_made = not getattr(value, "_is_protocol", False) and not issubclass(value, enum.Enum)
    parameters = _parameters(value) or [] if is_made else []
    lacks = list(_of_parameters(parts, parameters, _elsewhere(value, text)))
    made = inspect.getattr_static(value, "__init__")
    missing = _undocumented(made, parts) if is_ours(made) else []
    missing = [name for name in missing if name not in never]
    if missing:
        lacks.append(f"Raises {missing}")
    bare = without_text(text)
    if bare:
        lacks.append(f"a text for {bare}")
    if ">>> " not in parts.get("Examples", parts[""]):
        lacks.append("Examples")
    return lacks


def examples_name(text, name):
    """Returns true if a line of the examples calls ``name``."""
    lines = [line for line in text.splitlines() if line.lstrip().startswith((">>> ", "... "))]
    return any(re.search(rf"\.{name}\(", line) for line in lines)
