"""The public names of PyCUDA, and the signatures of its functions, read from its source package.

Nothing of PyCUDA is imported: its Python modules are parsed with `ast`, and the names of its
extension module come from the C++ source that exposes them with Boost.Python.
"""

from __future__ import annotations

import ast
import functools
import os
import re
import subprocess
import sys
import tarfile
from dataclasses import dataclass, field
from pathlib import Path

VERSION = "2026.1"
ROOT = Path(__file__).parents[3]


@dataclass
class Module:
    """The declarations of one PyCUDA module."""

    # Functions, classes, variables, and names imported from other modules of the package.
    names: set[str] = field(default_factory=set)
    # Members of the classes, as "Class.member".
    members: set[str] = field(default_factory=set)
    # Python functions and methods, by the same names.
    signatures: dict[str, ast.arguments] = field(default_factory=dict)
    # The base classes of each Python class.
    bases: dict[str, list[str]] = field(default_factory=dict)


@functools.cache
def archive() -> Path | None:
    """Returns the path of PyCUDA's source package, downloaded if necessary; None if it fails."""
    folder = Path(os.environ.get("CARGO_TARGET_DIR") or ROOT / "target")
    path = folder / f"pycuda-{VERSION}.tar.gz"
    if not path.is_file():
        command = "-m pip --quiet --disable-pip-version-check download --no-deps --no-binary=pycuda"
        subprocess.run(
            [sys.executable, *command.split(), "--dest", str(folder), f"pycuda=={VERSION}"],
            check=False,
            capture_output=True,
            timeout=300,
        )
    return path if path.is_file() else None


@functools.cache
def sources() -> dict[str, str]:
    """Returns the text of each Python and C++ file, by its path inside the package."""
    path = archive()
    assert path is not None
    texts = {}
    with tarfile.open(path) as package:
        for entry in package:
            name = entry.name.partition("/")[2]
            if entry.isfile() and re.match(r"pycuda/.*\.py|src/.*\.[ch]pp", name):
                file = package.extractfile(entry)
                assert file is not None
                texts[name] = file.read().decode()
    return texts


@functools.cache
def modules() -> dict[str, Module]:
    """Returns the declarations of each module, by its name below `pycuda`; the package is ""."""
    found = {}
    for path, text in sources().items():
        match = re.fullmatch(r"pycuda/(.*)\.py", path)
        if match:
            name = match[1].replace("/", ".").removesuffix("__init__").rstrip(".")
            found[name] = _python_module(text)
    found["_driver"] = _extension("src/wrapper/wrap_cuda", "src/wrapper/mempool")
    found["_curand"] = _extension("src/wrapper/wrap_curand")
    struct = sources()["src/wrapper/_pvt_struct_v3.cpp"]
    table = struct[struct.index("module_functions[]") :]
    names = {*re.findall(r'\{"(\w+)"', table), *re.findall(r'AddObject\(m, "(\w+)"', struct)}
    found["_pvt_struct"] = Module({name for name in names if _public(name)})
    # `driver` exports all names of its extension.
    found["driver"].names |= found["_driver"].names
    found["driver"].members |= found["_driver"].members
    return found


def _public(name: str) -> bool:
    return not name.startswith("_")


def _python_module(text: str) -> Module:
    module = Module()
    _statements(ast.parse(text).body, module)
    # Methods that the module adds to a class of the extension: `Class.name = function`.
    functions = {
        node.name: node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.FunctionDef)
    }
    for node in ast.walk(ast.parse(text)):
        if not isinstance(node, ast.Assign):
            continue
        for target in node.targets:
            if (
                isinstance(target, ast.Attribute)
                and isinstance(target.value, ast.Name)
                and target.value.id[0].isupper()
                and _public(target.attr)
            ):
                name = f"{target.value.id}.{target.attr}"
                module.members.add(name)
                # Of two definitions, the first one is for newer drivers.
                if isinstance(node.value, ast.Name) and node.value.id in functions:
                    module.signatures.setdefault(name, functions[node.value.id].args)
    return module


def _statements(body: list[ast.stmt], module: Module) -> None:
    """Records the declarations among a module's top-level statements."""
    for node in body:
        if isinstance(node, (ast.If, ast.Try, ast.With)):
            _statements(node.body, module)
            _statements(getattr(node, "orelse", []), module)
            for handler in getattr(node, "handlers", []):
                _statements(handler.body, module)
        elif isinstance(node, ast.FunctionDef) and _public(node.name):
            module.names.add(node.name)
            module.signatures[node.name] = node.args
        elif isinstance(node, ast.ClassDef) and _public(node.name):
            module.names.add(node.name)
            module.bases[node.name] = [ast.unparse(base) for base in node.bases]
            _members(node, module)
        elif isinstance(node, (ast.Assign, ast.AnnAssign)):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            for target in targets:
                names = target.elts if isinstance(target, ast.Tuple) else [target]
                module.names.update(
                    name.id for name in names if isinstance(name, ast.Name) and _public(name.id)
                )
        elif isinstance(node, ast.ImportFrom) and (node.module or "").startswith("pycuda"):
            names = (alias.asname or alias.name for alias in node.names)
            module.names.update(name for name in names if _public(name) and name != "*")


def _members(cls: ast.ClassDef, module: Module) -> None:
    """Records a class's methods, its attributes, and the attributes that its constructor sets."""
    for node in cls.body:
        if isinstance(node, ast.FunctionDef):
            if _public(node.name):
                module.members.add(f"{cls.name}.{node.name}")
            decorators = {ast.unparse(decorator) for decorator in node.decorator_list}
            if (_public(node.name) or node.name in ("__init__", "__call__")) and not any(
                "property" in name or "setter" in name for name in decorators
            ):
                module.signatures[f"{cls.name}.{node.name}"] = node.args
        elif isinstance(node, ast.Assign):
            for target in node.targets:
                if isinstance(target, ast.Name) and _public(target.id):
                    module.members.add(f"{cls.name}.{target.id}")


_CLASS = re.compile(r'py::(?:class_|enum_)\s*<[^;"{]*?\(\s*"(\w+)"', re.DOTALL)
_MEMBER = re.compile(
    r'(?:\.(?:def|value|add_property|def_readonly|def_readwrite|staticmethod)|cls\.attr)\(\s*"(\w+)"'
    r"|\.DEF_SIMPLE_(?:METHOD|METHOD_WITH_ARGS|R[OW]_MEMBER)\((\w+)"
)
_FUNCTION = re.compile(
    r'py::def\(\s*"(\w+)"|DEF_SIMPLE_FUNCTION(?:_WITH_ARGS)?\((\w+)'
    r'|py::scope\(\)\.attr\("(\w+)"\)|DECLARE_EXC\((\w+)'
)
_MACRO = re.compile(r"#define (WRAP_\w+)((?:.*\\\n)*.*\n)")


def _extension(*paths: str) -> Module:
    """Reads the names of an extension module from the files whose paths begin like this."""
    module = Module()
    for path, text in sources().items():
        if not path.startswith(paths):
            continue
        # Lists of members that several classes share are macros, which may be nested.
        macros: dict[str, str] = {}
        for name, value in _MACRO.findall(text):
            # Of two definitions, the first one is for newer toolkits.
            macros.setdefault(name, value)
        text = _MACRO.sub("", text)
        for _ in macros:
            for name, value in macros.items():
                text = re.sub(rf"\b{name}\b", lambda _, value=value: value, text)
        text = re.sub(r"#define .*(\\\n.*)*", "", text)
        text = re.sub(r"//.*", "", text)
        classes = list(_CLASS.finditer(text))
        declared = sorted(
            [(match.start(), "class", match) for match in classes]
            + [(match.start(), "function", match) for match in _FUNCTION.finditer(text)]
            + [(match.start(), "member", match) for match in _MEMBER.finditer(text)],
            key=lambda entry: entry[0],
        )
        current = None
        for _, kind, match in declared:
            name = next(filter(None, match.groups()))
            if kind == "class":
                current = name
                module.names.add(name)
            elif kind == "function":
                module.names.add(name)
            elif _public(name):
                module.members.add(f"{current}.{name}")
    # A list in a template before any class: the members that all memory pools share.
    for member in [member for member in module.members if member.startswith("None.")]:
        module.members.remove(member)
        pools = (name for name in module.names if name.endswith("MemoryPool"))
        module.members.update(f"{pool}.{member.partition('.')[2]}" for pool in pools)
    module.names = {name for name in module.names if _public(name)}
    return module
