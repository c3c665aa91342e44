"""Names of dtypes that other processes understand, and that run no code when they are read."""

from __future__ import annotations

import re
from typing import Any

import numpy as np

from .. import _core

# Dtypes that numpy lacks, whose names stand for themselves.
_EXTENSIONS = _core.extension_dtypes()
# What numpy calls dtypes of plain elements: byte order, kind, bytes or characters, a time's unit.
_PLAIN = re.compile(
    r"[<>|=]([biufcVSU][1-9][0-9]{0,5}|[mM]8(\[[0-9]{0,6}([YMWDhms]|[munpfa]s)\])?)"
)
_FIELD = re.compile(r"[^\x00]{1,200}")
_DEEPEST = 8


def name_of(dtype: np.dtype[Any]) -> Any:
    """Returns a dtype as what JSON has: a string, or a list of fields for a record.

    Raises
    ------
    ValueError
        There is no such name for the dtype.
    """
    if dtype.name in _EXTENSIONS:
        return dtype.name
    if dtype.names is None and dtype.subdtype is None:
        return dtype.str
    described = np.lib.format.dtype_to_descr(dtype)
    return _lists(described)


def _lists(value: Any) -> Any:
    return [_lists(entry) for entry in value] if isinstance(value, list | tuple) else value


def dtype_of(name: str, value: Any, depth: int = 0) -> np.dtype[Any]:
    """Returns the dtype that another process has named.

    Raises
    ------
    TypeError, ValueError
        The value names no dtype of plain bytes.
    """
    if isinstance(value, str):
        if value in _EXTENSIONS:
            try:
                return _core.extension_dtype(value)
            except TypeError as error:
                raise ValueError(f"{name}: {error}") from None
        if not _PLAIN.fullmatch(value):
            raise ValueError(f"{name} is {value!r:.80}; a dtype like '<f4' is needed")
        try:
            return np.dtype(value)
        except TypeError:
            raise ValueError(f"{name} is {value!r}, which is no dtype") from None
    if not isinstance(value, list):
        raise TypeError(f"{name} is of type {type(value).__name__}; a string or list is needed")
    if depth == _DEEPEST or not 0 < len(value) <= 1000:
        raise ValueError(f"{name} has {len(value)} fields, {depth} deep; fewer are needed")
    try:
        return np.lib.format.descr_to_dtype(
            [_field(f"{name}[{at}]", entry, depth) for at, entry in enumerate(value)]
        )
    except (TypeError, KeyError, OverflowError) as error:
        raise ValueError(f"{name} is no dtype: {error}") from None


def _field(name: str, value: Any, depth: int) -> tuple[Any, ...]:
    """Returns a field of a record as numpy takes it: its name, its dtype, and perhaps a shape."""
    if not isinstance(value, list) or len(value) not in (2, 3):
        raise TypeError(f"{name} is {value!r:.80}; a name and a dtype are needed")
    title, kind, *shape = value
    if not isinstance(title, str) or (title and not _FIELD.fullmatch(title)):
        raise TypeError(f"{name} has the name {title!r:.80}; a string is needed")
    # numpy's own description of gaps: fields without a name.
    inner = dtype_of(f"{name}.{title}", kind, depth + 1)
    plain: Any = kind if isinstance(kind, str) and kind not in _EXTENSIONS else inner
    if isinstance(kind, list):
        plain = inner.descr
    if not shape:
        return (title, plain)
    extents = shape[0]
    if not isinstance(extents, list) or len(extents) > 32:
        raise TypeError(f"{name} has the shape {extents!r:.80}; a list of numbers is needed")
    total = inner.itemsize
    for extent in extents:
        if type(extent) is not int or not 0 < extent < 2**31:
            raise ValueError(f"{name} has the extent {extent!r:.80}; 1 to 2**31 - 1 are allowed")
        total *= extent
    if total >= 2**31:
        raise ValueError(f"{name} has {total} bytes; fewer are needed")
    return (title, plain, tuple(extents))
