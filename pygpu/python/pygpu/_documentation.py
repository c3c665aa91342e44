"""Makes families of functions, which differ in one argument and in words of their docstrings."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from inspect import signature
from types import FunctionType
from typing import Any, Concatenate, ParamSpec, Protocol, TypeVar, cast

_Function = TypeVar("_Function", bound=Callable[..., object])
_P = ParamSpec("_P")
_Result = TypeVar("_Result")


def named(function: _Function, name: str, text: str) -> _Function:
    """Gives ``function`` a name and the docstring ``text``, and returns it."""
    function.__name__ = function.__qualname__ = name
    function.__doc__ = text
    return function


def member(
    family: Callable[Concatenate[Any, _P], _Result], first: Any, name: str, text: str
) -> Callable[_P, _Result]:
    """Returns a function of a family: the family's function with its first argument fixed."""

    def call(*args: _P.args, **kwargs: _P.kwargs) -> _Result:
        return family(first, *args, **kwargs)

    # With the variables of the family's module, where `doctest` then finds the example.
    made = FunctionType(call.__code__, family.__globals__, name, None, call.__closure__)
    made.__signature__ = signature(partial(family, first))  # type: ignore[attr-defined]
    return cast(Callable[_P, _Result], named(made, name, text))


class Decorator(Protocol):
    def __call__(self, function: _Function, /) -> _Function: ...


def documented(text: str, **words: object) -> Decorator:
    """Sets a function's docstring: the text, with the words and the function's name put in."""

    def set_text(function: _Function) -> _Function:
        function.__doc__ = text.format(name=function.__name__, **words)
        return function

    return set_text
