"""Arguments and source of kernels that are generated from a program's C expressions.

A generated kernel's arguments are those that the program declares, then those that the kind of
kernel needs (the number of elements), then the geometry of each array with gaps."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from .. import _core
from .._arguments import wrong_type
from .._errors import CompileError
from .c_types import ScalarArg, VectorArg, dtype_to_ctype, parse_c_arg

if TYPE_CHECKING:
    from ..compiler import SourceModule

THREADS = 256
"""The threads of each block of a generated kernel, as in the launchers of the core."""


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

    PyCUDA ignores ``const``; here a ``const`` array counts as constant if the kernel's texts
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
    text = "\n".join(texts)
    return [a._replace(constant=a.constant and _core.is_only_read(text, a.name)) for a in declared]


def check_text(**texts: Any) -> None:
    """Raises ``TypeError`` for a piece of source that is not a str, and ``ValueError`` for a
    kernel's name that is not a name in C."""
    for what, text in texts.items():
        if not isinstance(text, str):
            raise wrong_type(what, text, "a text is needed")
        if what.startswith("name") and not (text.isidentifier() and text.isascii()):
            raise ValueError(f"{what} is {text!r}, which is not a name in C")


class Strides(NamedTuple):
    """The number of axes of each strided array of a kernel; 0 for a contiguous array."""

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
    """Returns a piece of the program's source, with line numbers that begin at 1."""
    return f'\n#line 1 "{name}"\n{text}\n{_GENERATED}\n' if text.strip() else ""


def headers(strides: Strides) -> str:
    """Returns the ``#include`` lines of a generated kernel."""
    lines = "#include <pycuda-complex.hpp>\n"
    return lines + ("#include <pygpu-strided.hpp>\n" if strides.ranks else "")


def usage(
    declared: Sequence[Declared],
    operation: str,
    preamble: str,
    beside: Iterable[str] = (),
    options: Iterable[str] | None = None,
) -> tuple[list[Any], bool, bool, dict[str, tuple[bool, bool]], str]:
    """Returns the arguments as the launchers of the core take them, and how statements use arrays.

    The front end for CUDA C says whether elements may be visited in any order, and whether a store
    may come before another access. A thread may serve several neighbours, a pack: the next result
    says whether it may load, and store, a pack of each array; the last has the statements for that.
    """
    arrays = {it.name: it.constant for it in declared if it.is_vector}
    pieces = operation, preamble, [*beside, *map(str, options or ())]
    order_free, sequential, uses, packed = _core.element_uses(list(arrays.items()), *pieces)
    of = dict(zip(arrays, uses, strict=True))
    launched = [
        (it.name, it.argument.dtype, *of[it.name][:2], it.constant)
        if it.is_vector
        else (it.name, it.argument.struct_char, False, False, False)
        for it in declared
    ]
    packs = {name: pack for name, (_, _, pack) in of.items() if pack}
    return launched, order_free, sequential, packs, packed


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
    """Returns ``build(strides)``; raises RuntimeError if only arrays without gaps compile."""
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
