"""Attributes that a subclass of an array may set.

In PyCUDA every attribute is a plain one. Programs that derive from ``GPUArray`` set some for their
own ends: ``nbytes`` to the size of padded memory, ``base`` to what owns it. Nothing here computes
with those, so instances of subclasses may have their own. ``shape``, ``dtype`` and ``strides`` say
what the elements are, and cannot be set.
"""

from __future__ import annotations

from typing import Any

from ._core import GPUArray

# No operation of this package reads these from an object.
_NAMES = ("nbytes", "mem_size", "base", "_grid", "_block")


class _Default:
    """The attribute of ``GPUArray``, without ``__set__``, so that an instance may have its own."""

    def __init__(self, inherited: Any) -> None:
        self._inherited = inherited
        self.__doc__ = inherited.__doc__

    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        return self if instance is None else self._inherited.__get__(instance, owner)


def _init_subclass(cls: type, **arguments: Any) -> None:
    super(GPUArray, cls).__init_subclass__(**arguments)  # type: ignore[misc]
    for name in _NAMES:
        inherited = GPUArray.__dict__[name]
        if getattr(cls, name, None) is inherited:
            setattr(cls, name, _Default(inherited))


GPUArray.__init_subclass__ = classmethod(_init_subclass)  # type: ignore[method-assign, assignment]
