"""Docstrings of families of functions, which differ in a few words."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol, TypeVar

_Function = TypeVar("_Function", bound=Callable[..., object])


def named(function: _Function, name: str, text: str) -> _Function:
    """Returns a function of a family under a name of its own, with its docstring."""
    function.__name__ = function.__qualname__ = name
    function.__doc__ = text
    return function


class Decorator(Protocol):
    def __call__(self, function: _Function, /) -> _Function: ...


def documented(text: str, **words: object) -> Decorator:
    """Sets a function's docstring: the text, with these words and the function's name in it."""

    def set_text(function: _Function) -> _Function:
        function.__doc__ = text.format(name=function.__name__, **words)
        return function

    return set_text
