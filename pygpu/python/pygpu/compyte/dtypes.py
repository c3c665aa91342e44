"""The names of dtypes in C; functions are named as in ``pycuda.compyte.dtypes``.

Examples
--------
>>> registry = DTypeRegistry()
>>> fill_registry_with_c_types(registry, respect_windows=False)
>>> fill_registry_with_c99_complex_types(registry)
>>> registry.dtype_to_ctype(np.int16), registry.dtype_to_ctype(np.complex64)
('short', 'float complex')
"""

from __future__ import annotations

import re
import struct
import sys
import warnings
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import numpy as np

__all__ = ["DTYPE_TO_NAME", "NAME_TO_DTYPE", "TYPE_REGISTRY", "DTypeRegistry", "TypeNameNotKnown"]
__all__ += ["dtype_to_ctype", "fill_registry_with_c99_complex_types"]
__all__ += ["fill_registry_with_c99_stdint_types", "fill_registry_with_c_types"]
__all__ += ["fill_registry_with_opencl_c_types", "get_or_register_dtype", "parse_c_arg_backend"]
__all__ += ["register_dtype"]


class TypeNameNotKnown(RuntimeError, KeyError):
    """A name of a C type without a registered dtype: also a ``KeyError``, as in PyCUDA.

    >>> get_or_register_dtype("unheard_of")
    Traceback (most recent call last):
        ...
    pygpu.compyte.dtypes.TypeNameNotKnown: ...
    """

    __str__ = RuntimeError.__str__


class DTypeRegistry:
    """A table of dtypes and their names in C: ``dtype_to_name`` and ``name_to_dtype``.

    >>> registry = DTypeRegistry()
    >>> registry.get_or_register_dtype(["unsigned", "unsigned int"], np.uint32)
    dtype('uint32')
    >>> registry.dtype_to_ctype(np.uint32)
    'unsigned'
    """

    def __init__(self) -> None:
        self.dtype_to_name: dict[np.dtype[Any] | str, str] = {}
        self.name_to_dtype: dict[str, np.dtype[Any]] = {}

    def get_or_register_dtype(self, names: str | Sequence[str], dtype: Any = None) -> np.dtype[Any]:
        """Returns the dtype of ``names``, one or several. If ``dtype`` is given, registers them.

        :meth:`dtype_to_ctype` returns the first name, unless the dtype already has one. Without
        ``dtype``, an unknown name raises ``TypeNameNotKnown``. Raises ``RuntimeError``, and
        registers nothing, if a name belongs to another dtype.
        """
        names = [names] if isinstance(names, str) else list(names)
        if not names:
            raise ValueError("names is empty; at least one name is needed")
        if dtype is None:
            for name in names:
                if name not in self.name_to_dtype:
                    raise TypeNameNotKnown(f"the type name '{name}' is not registered")
            found = {self.name_to_dtype[name] for name in names}
            if len(found) > 1:
                raise ValueError(f"the names {names} stand for different dtypes")
            return found.pop()
        dtype = np.dtype(dtype)
        known = self.dtype_to_name.get(dtype)
        if known is not None:
            dtype = self.name_to_dtype[known]
        for name in names:
            if self.name_to_dtype.get(name, dtype) != dtype:
                raise RuntimeError(f"name '{name}' already registered to different dtype")
        self.name_to_dtype.update((name, self.name_to_dtype.get(name, dtype)) for name in names)
        self.dtype_to_name.setdefault(dtype, names[0])
        self.dtype_to_name.setdefault(str(dtype), names[0])
        return dtype

    def dtype_to_ctype(self, dtype: Any) -> str:
        """Returns the registered name of ``dtype`` in C."""
        if dtype is None:
            raise ValueError("dtype may not be None")
        dtype = np.dtype(dtype)
        try:
            return self.dtype_to_name[dtype]
        except KeyError:
            hint = "it has no name in C; get_or_register_dtype gives it one"
            raise ValueError(f"unable to map dtype '{dtype}': {hint}") from None


def _enter(registry: DTypeRegistry, table: Sequence[tuple[Any, str]]) -> None:
    for dtype, names in table:
        registry.get_or_register_dtype(names.split(", "), dtype)


def _long(name: str) -> list[tuple[Any, str]]:
    signed = f"{name}, {name} int, signed {name} int, {name} signed int"
    unsigned = f"unsigned {name}, unsigned {name} int, {name} unsigned int"
    return [(np.int64, signed), (np.uint64, unsigned)]


_SHORT = "short, signed short, signed short int, short signed int"
_UNSIGNED_SHORT = "unsigned short, unsigned short int, short unsigned int"


def fill_registry_with_c_types(
    reg: DTypeRegistry, respect_windows: bool, include_bool: bool = True
) -> None:
    """Registers the types of C in ``reg``, and ``bool`` if ``include_bool`` is True.

    64-bit integers are ``long long`` on Windows if ``respect_windows`` is True.
    """
    if include_bool:
        _enter(reg, [(np.bool_, "bool")])
    signed = [(np.int8, "signed char, char"), (np.int16, _SHORT), (np.int32, "int, signed int")]
    unsigned = [(np.uint8, "unsigned char"), (np.uint16, _UNSIGNED_SHORT)]
    _enter(reg, [*signed, *unsigned, (np.uint32, "unsigned, unsigned int")])
    if struct.calcsize("P") == 8:
        is_windows = respect_windows and sys.platform == "win32"
        _enter(reg, _long("long long" if is_windows else "long"))
    _enter(reg, [(np.float32, "float"), (np.float64, "double")])


def fill_registry_with_opencl_c_types(reg: DTypeRegistry) -> None:
    """Registers the types of OpenCL C in ``reg``; its ``long`` has 64 bits everywhere."""
    signed, unsigned = _long("long")
    _enter(
        reg,
        [
            (np.int8, "char, signed char"),
            (np.uint8, "uchar, unsigned char"),
            (np.int16, _SHORT),
            (np.uint16, f"ushort, {_UNSIGNED_SHORT}"),
            (np.int32, "int, signed int"),
            (np.uint32, "uint, unsigned, unsigned int"),
            signed,
            (np.uint64, f"ulong, {unsigned[1]}"),
            (np.intp, "intptr_t"),
            (np.uintp, "uintptr_t"),
            (np.float32, "float"),
            (np.float64, "double"),
        ],
    )


def fill_registry_with_c99_stdint_types(reg: DTypeRegistry) -> None:
    """Registers ``bool``, the integers of ``stdint.h``, ``float`` and ``double`` in ``reg``."""
    bits = (8, 16, 32, 64)
    signed = [(np.dtype(f"i{n // 8}"), f"int{n}_t") for n in bits]
    unsigned = [(np.dtype(f"u{n // 8}"), f"uint{n}_t") for n in bits]
    floats = [(np.float32, "float"), (np.float64, "double")]
    _enter(reg, [(np.bool_, "bool"), *signed, *unsigned, (np.uintp, "uintptr_t"), *floats])


def fill_registry_with_c99_complex_types(reg: DTypeRegistry) -> None:
    """Registers the complex types of C99 in ``reg``."""
    _enter(reg, [(np.complex64, "float complex"), (np.complex128, "double complex")])
    _enter(reg, [(np.clongdouble, "long double complex")])


TYPE_REGISTRY = DTypeRegistry()
"""The registry of the types that kernels from source use."""

DTYPE_TO_NAME = TYPE_REGISTRY.dtype_to_name
NAME_TO_DTYPE = TYPE_REGISTRY.name_to_dtype

dtype_to_ctype = TYPE_REGISTRY.dtype_to_ctype
get_or_register_dtype = TYPE_REGISTRY.get_or_register_dtype


def _fill_dtype_registry(respect_windows: bool, include_bool: bool = True) -> None:
    fill_registry_with_c_types(TYPE_REGISTRY, respect_windows, include_bool)


_Scalar = TypeVar("_Scalar")
_Vector = TypeVar("_Vector")
_QUALIFIER = re.compile(r"\b(?:const|volatile|__restrict__|__restrict|restrict)\b")
_DECLARATOR = re.compile(r"(\**)\s*(\w+)((?:\s*\[[ \d]*\])*)\s*$", re.ASCII)


def parse_c_arg_backend(
    c_arg: str,
    scalar_arg_factory: Callable[[np.dtype[Any], str], _Scalar],
    vec_arg_factory: Callable[[np.dtype[Any], str], _Vector],
    name_to_dtype: Callable[[str], np.dtype[Any]] | DTypeRegistry | None = None,
) -> _Scalar | _Vector:
    """Reads the declaration of one argument of a function in C.

    >>> def scalar(dtype, name):
    ...     return (name, dtype.name)
    >>> def vector(dtype, name):
    ...     return (name, dtype.name, "array")
    >>> parse_c_arg_backend("const unsigned int *__restrict__ count", scalar, vector)
    ('count', 'uint32', 'array')

    Parameters
    ----------
    c_arg : str. A declaration, such as ``"const float *x"``.
    scalar_arg_factory, vec_arg_factory : callable. Called with the dtype and the argument's name:
        ``vec_arg_factory`` for a pointer or an array, ``scalar_arg_factory`` otherwise.
    name_to_dtype : callable or DTypeRegistry, optional. The types; by default this module's.
    """
    if name_to_dtype is None:
        name_to_dtype = TYPE_REGISTRY
    if isinstance(name_to_dtype, DTypeRegistry):
        name_to_dtype = name_to_dtype.name_to_dtype.__getitem__
    text = _QUALIFIER.sub(" ", c_arg)
    declarator = _DECLARATOR.search(text)
    if declarator is None:
        raise ValueError(f"couldn't parse C declarator '{c_arg}'")
    stars, name, brackets = declarator.groups()
    type_name = " ".join(text[: declarator.start()].split())
    try:
        dtype = name_to_dtype(type_name)
    except KeyError:
        raise ValueError(f"unknown type '{type_name}' in '{c_arg}'") from None
    return (vec_arg_factory if stars or brackets else scalar_arg_factory)(dtype, name)


def register_dtype(dtype: Any, c_names: Sequence[str] | str, alias_ok: bool = False) -> None:
    """Registers names of ``dtype`` in C. Deprecated: use :func:`get_or_register_dtype`.

    Raises ``RuntimeError`` if the dtype has a name and ``alias_ok`` is False, or if one of
    ``c_names`` belongs to another dtype.
    """
    text = "register_dtype is deprecated. Use get_or_register_dtype instead."
    warnings.warn(text, DeprecationWarning, stacklevel=2)
    dtype = np.dtype(dtype)
    names = [c_names] if isinstance(c_names, str) else list(c_names)
    known = TYPE_REGISTRY.dtype_to_name.get(dtype)
    if known is not None and not alias_ok:
        raise RuntimeError(
            f"dtype '{dtype}' already registered (as '{known}', new names '{', '.join(names)}')"
        )
    TYPE_REGISTRY.get_or_register_dtype(names, dtype)
