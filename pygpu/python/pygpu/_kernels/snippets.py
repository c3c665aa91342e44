"""Kernels from a program's expressions: analysis of the expressions, and the source.

The arguments of every generated kernel are those that the program declares, then the ones of its
kind (the number of elements), then the geometry of each array that is not one run of elements."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from .. import _core
from .._arguments import wrong_type
from .._errors import CompileError
from .c_types import ScalarArg, VectorArg, dtype_to_ctype, parse_c_arg

if TYPE_CHECKING:
    from ..compiler import SourceModule

THREADS = 256
"""The threads of each block of a generated kernel, as in the launchers of the core."""

# Not parsed here: raw strings, continued lines, other spellings of marks.
_UNREAD = re.compile(r'R"|\\\n|\\\r|%:|<:|\?\?[=(/]')
# Macros may hide the index and arrays, and change the arguments passed to them.
_MACROS = re.compile(r"#(?!\s*(?:include\s*<|pragma|if|el|endif|line|error))|%:")
# An element that is reached otherwise than by its name: through its address, or a reference to it.
_ELEMENT = "\0"
_ADDRESS = re.compile(rf"(?<!&)&[\s(]*{_ELEMENT}")
_OPERAND_BEFORE = re.compile(rf"[\w\]{_ELEMENT}]\s*$")
_REFERENCE = re.compile(r"&\s*\)|\bconst_cast\b")
# Functions that depend on which thread calls them.
_COOPERATION = re.compile(
    r"\b(?:threadIdx|blockIdx|blockDim|gridDim|asm|__shared__|__(?:sync|shfl|ballot|match|reduce)\w*"
    r"|__activemask|__all\w*|__any\w*)\b"
)
_ASSIGNED = re.compile(r"\s*(?:[-+*/%&|^]|<<|>>)?=(?!=)|\s*(?:\+\+|--)|\s*[.\[]|\s*->")
_CHANGED = re.compile(r"\s*(?:[-+*/%&|^]|<<|>>)?=(?!=)|\s*(?:\+\+|--)|\s*\(")
# In front of an element whose address is taken, or that a reference is bound to.
_ADDRESSED = re.compile(r"(?<!&)&(?:\s*\w+\s*=)?$")
_ACCESS = re.compile(r"\s*(?:(?:\.|->)\s*\w+|\[)")
_PLAIN_ASSIGNMENT = re.compile(r"\s*=(?!=)")
_WHOLE_GRID = re.compile(
    r"\b(?:tid|total_threads|cta_start|threadIdx|blockIdx|blockDim|gridDim|break|return|goto|asm"
    r"|atomic\w*|__\w+)\b|#"
)


class Declared(NamedTuple):
    """An argument, and whether it is an array that is declared ``const`` and only read."""

    argument: Any
    constant: bool

    @property
    def is_vector(self) -> bool:
        return isinstance(self.argument, VectorArg)

    @property
    def name(self) -> str:
        return self.argument.name

    @property
    def element(self) -> str:
        """The C type of an array's elements."""
        const = "const " if self.constant else ""
        return const + dtype_to_ctype(self.argument.dtype)

    def declarator(self) -> str:
        """Returns the argument's declaration."""
        return ("const " if self.constant else "") + self.argument.declarator()


def parse(arguments: str | Iterable[Any], *texts: str) -> list[Declared]:
    """Returns the arguments of a declaration in C, or of a list of ``VectorArg`` and ``ScalarArg``.

    PyCUDA ignores ``const``; here an array stays constant if the texts, the pieces of the kernel,
    only read its elements.
    """
    if isinstance(arguments, str):
        parts = arguments.split(",")
        declared = [
            Declared(parse_c_arg(text), "*" in text and "const" in text.split("*")[0].split())
            for text in parts
        ]
    elif not isinstance(arguments, Iterable):
        needed = "a declaration in C or a sequence of VectorArg and ScalarArg is needed"
        raise TypeError(f"arguments is {arguments!r}; {needed}")
    else:
        declared = []
        for argument in arguments:
            if isinstance(argument, Declared):
                declared.append(argument)
                continue
            if not isinstance(argument, VectorArg | ScalarArg):
                needed = "a VectorArg or a ScalarArg is needed"
                raise TypeError(f"arguments has the member {argument!r}; {needed}")
            declared.append(Declared(argument, constant=False))
    names = [it.name for it in declared]
    if len(set(names)) < len(names):
        raise ValueError(f"arguments declares a name twice: {', '.join(names)}")
    code = "\n".join(map(_core.code_of, texts))
    return [it._replace(constant=it.constant and _is_read(it.name, code)) for it in declared]


def _is_read(name: str, code: str) -> bool:
    """Returns True if each use of an array's name reads an element of it, or a member of one."""
    for found in re.finditer(rf"(?<![\w$]){name}\b", code):
        before, end = code[: found.start()].rstrip(), _access_end(code, found.end())
        if before.endswith((".", "->", "::")):
            continue
        addressed = _ADDRESSED.search(before)
        changed = before.endswith(("++", "--")) or _CHANGED.match(code, end)
        if end == found.end() or addressed or changed:
            return False
    return True


def _access_end(code: str, place: int) -> int:
    """Returns the end of the brackets and members that follow a name."""
    while access := _ACCESS.match(code, place):
        place = _closing(code, access.end()) if access[0].endswith("[") else access.end()
    return place


def _closing(code: str, start: int) -> int:
    """Returns the end of the bracket that was opened before ``start``."""
    depth = 1
    for place in range(start, len(code)):
        depth += (code[place] in "[(") - (code[place] in "])")
        if depth == 0:
            return place + 1
    return len(code)


def check_text(**texts: Any) -> None:
    """Raises ``TypeError`` for a piece of source that is not a str, and ``ValueError`` for a
    kernel's name that is not one in C."""
    for what, text in texts.items():
        if not isinstance(text, str):
            raise wrong_type(what, text, "a text is needed")
        if what.startswith("name") and not (text.isidentifier() and text.isascii()):
            raise ValueError(f"{what} is {text!r}, which is not a name in C")


def elements(name: str, code: str) -> list[re.Match[str]]:
    """Returns the accesses of an array's element ``i`` in a text from `_core.code_of`, without
    members of structures of the array's name."""
    found = re.finditer(rf"(?<![\w$]){name}\s*\[\s*i\s*\]", code)
    return [it for it in found if not code[: it.start()].rstrip().endswith((".", "->", "::"))]


def with_elements(text: str, replacements: Mapping[str, str]) -> str:
    """Returns a text with replacements for arrays' elements at the running index."""
    code = _core.code_of(text)
    places = [(it, new) for name, new in replacements.items() for it in elements(name, code)]
    for found, new in sorted(places, key=lambda place: place[0].start(), reverse=True):
        text = text[: found.start()] + new + text[found.end() :]
    return text


class Usage:
    """The uses of the running index ``i`` and the arrays in expressions.

    ``indexed`` has the arrays that are accessed as ``name[i]``. If ``order_free``, they and ``i``
    are not used otherwise, so that elements may be visited in any order.
    """

    def __init__(
        self,
        declared: Sequence[Declared],
        operation: str,
        preamble: str,
        beside: Iterable[str] = (),
        options: Iterable[str] | None = None,
    ) -> None:
        self.operation = _core.code_of(operation)
        self._vectors = [it for it in declared if it.is_vector]
        self.accesses = {it.name: elements(it.name, self.operation) for it in self._vectors}
        self.indexed = {name for name, places in self.accesses.items() if places}
        marks = dict.fromkeys(self.indexed, f" {_ELEMENT} ")
        self._rest = with_elements(self.operation, marks)
        self._preamble = _core.code_of(preamble)
        elsewhere = re.compile(rf"\b(?:{'|'.join([*self.indexed, 'i'])})\b|#")
        hidden = _UNREAD.search(operation) or _MACROS.search(self._preamble)
        texts = (self._rest, *beside, *map(str, options or ()))
        self.order_free = not hidden and not any(map(elsewhere.search, texts))

    def elsewhere(self, name: str) -> bool:
        """Returns True if an array is accessed at another index than the running one."""
        return re.search(rf"(?<![\w$]){name}\b", self._rest) is not None

    def in_packs(self) -> dict[str, tuple[bool, bool]]:
        """Returns True or False for loading and for storing each array in packs, by a thread that
        serves several neighbours; empty if the expressions do not allow it."""
        whole_grid = _WHOLE_GRID.search(self.operation) or _COOPERATION.search(self._preamble)
        if not self.order_free or whole_grid or self._escapes() or len(self.operation) > 400:
            return {}
        return {it.name: self._transfers(it) for it in self._vectors if it.name in self.indexed}

    def _escapes(self) -> bool:
        """Returns True if an element is accessed through its address, which leads to neighbours, or
        through a reference to another type, which could write it."""
        addresses = _ADDRESS.finditer(self._rest)
        before = (self._rest[: it.start()] for it in addresses)
        taken = any(not _OPERAND_BEFORE.search(text) for text in before)
        return taken or _REFERENCE.search(self._rest) is not None

    def is_sequence(self, packs: Mapping[str, tuple[bool, bool]]) -> bool:
        """Returns True if a store may come before another access, so that shared memory of arrays
        matters: a single assignment reads everything before it stores."""
        body = self.operation.strip().rstrip(";").rstrip()
        stores = sum(store for _, store in packs.values())
        return stores > 1 or ";" in body or "{" in body

    def _transfers(self, declared: Declared) -> tuple[bool, bool]:
        places = self.accesses[declared.name]
        if declared.constant:
            return (True, False)
        before = [self.operation[: it.start()].rstrip() for it in places]
        changed = any(
            _ASSIGNED.match(self.operation, it.end()) or ahead.endswith(("++", "--"))
            for it, ahead in zip(places, before, strict=True)
        )
        if not changed:
            return (True, False)
        return (not self._assigned_first(declared.name), True)

    def _assigned_first(self, name: str) -> bool:
        """Returns True if the first statement with an element always assigns it."""
        for statement in statements(self.operation):
            if places := elements(name, statement):
                first = places[0]
                only = len(places) == 1 and not statement[: first.start()].strip()
                return only and _PLAIN_ASSIGNMENT.match(statement, first.end()) is not None
        return False


def statements(text: str) -> list[str]:
    """Returns the pieces of a text between semicolons outside of all brackets."""
    pieces, depth, start = [], 0, 0
    for place, character in enumerate(text):
        depth += (character in "([{") - (character in ")]}")
        if character == ";" and depth == 0:
            pieces.append(text[start:place])
            start = place + 1
    return [*pieces, text[start:]]


class Strides(NamedTuple):
    """The number of axes of each strided array of a kernel; 0 for a run of elements."""

    ranks: tuple[int, ...] = ()
    wide: bool = False

    def of(self, declared: Sequence[Declared]) -> dict[str, str]:
        """Returns the C type of each strided array, by its name."""
        vectors = [it for it in declared if it.is_vector]
        wide = "true" if self.wide else "false"
        return {
            it.name: f"pygpu::Strided<{it.element}, {rank}, {wide}>"
            for it, rank in zip(vectors, self.ranks or [0] * len(vectors), strict=True)
            if rank > 0
        }


def parameters(declared: Sequence[Declared], added: Sequence[str], strides: Strides) -> str:
    """Returns the parameters of a kernel; a strided array's pointer has another name."""
    strided = strides.of(declared)
    own = [
        f"{it.element} *pygpu_{it.name}" if it.name in strided else it.declarator()
        for it in declared
    ]
    geometries = [f"{kind}::Geometry pygpu_geometry_{name}" for name, kind in strided.items()]
    return ", ".join([*own, *added, *geometries])


def strided_arrays(declared: Sequence[Declared], strides: Strides) -> str:
    """Returns the declarations of the strided arrays in a kernel's body."""
    return "".join(
        f"{kind} {name}(pygpu_{name}, pygpu_geometry_{name});\n"
        for name, kind in strides.of(declared).items()
    )


# The directive that ends a piece of the program's source, and its form in a whole text: a message
# about a generated line then tells which piece is next to it.
_GENERATED = '#line 1 "generated source"'
_NUMBERED = '#line {} "generated source"'


def part(name: str, text: str) -> str:
    """Returns a piece of the program's source, whose lines messages count from 1."""
    return f'\n#line 1 "{name}"\n{text}\n{_GENERATED}\n' if text.strip() else ""


def headers(strides: Strides) -> str:
    """Returns the ``#include`` lines of a generated kernel."""
    lines = "#include <pycuda-complex.hpp>\n"
    return lines + ("#include <pygpu-strided.hpp>\n" if strides.ranks else "")


def declaration(
    declared: Sequence[Declared], usage: Usage
) -> list[tuple[str, Any, bool, bool, bool]]:
    """Returns the arguments as the launchers of the core take them."""
    indexed, elsewhere = usage.indexed, usage.elsewhere
    return [
        (it.name, it.argument.dtype, it.name in indexed, elsewhere(it.name), it.constant)
        if it.is_vector
        else (it.name, it.argument.struct_char, False, False, False)
        for it in declared
    ]


def module_of(
    source: str, options: Sequence[str] | None = None, keep: bool = False
) -> SourceModule:
    """Compiles the source of a generated kernel."""
    lines = f"{_GENERATED}\n{source}".split("\n")
    numbers = (_NUMBERED.format(number) for number in range(2, len(lines) + 2))
    pairs = zip(lines, numbers, strict=True)
    source = "\n".join(new if line == _GENERATED else line for line, new in pairs)
    # The compiler's modules are imported by the first program that compiles.
    from ..compiler import SourceModule

    return SourceModule(source, options=options, keep=keep, no_extern_c=True)


def build_strided(build: Any, strides: Strides, name: str) -> Any:
    """Returns ``build(strides)``; raises RuntimeError if the source compiles only without gaps."""
    try:
        return build(strides)
    except CompileError as error:
        if not strides.ranks:
            raise
        build(Strides())
        raise RuntimeError(
            f"kernel {name} compiles for contiguous arrays only: it uses an array without an "
            f"index such as x[i]\n{error.detail}"
        ) from error
