"""What the enumerations of the driver's numbers derive from."""

import enum
import operator
from enum import EnumMeta
from typing import Any

from .. import _arguments


class _Listed(EnumMeta):
    """Gives an enumeration what those of PyCUDA have: two dictionaries, and calls without a number,
    which is 0."""

    def __call__(cls, value: Any = 0, *args: Any, **kwargs: Any) -> Any:
        return super().__call__(value, *args, **kwargs)

    @property
    def names(cls) -> dict[str, Any]:
        """The members by their names."""
        return dict(cls.__members__)

    @property
    def values(cls) -> dict[int, Any]:
        """The members by their numbers."""
        members: list[Any] = list(cls.__members__.values())
        return {int(member): member for member in members}


def _name(member: Any) -> str:
    """The member's name, as PyCUDA prints it; a combination of flags is a number."""
    return member._name_ or str(int(member))


def _name_or_place(member: Any) -> str:
    """The member's name; a number without one prints as an expression, as it does in PyCUDA."""
    return member._name_ or _place(member)


def _place(member: Any) -> str:
    """The member as an expression, in PyCUDA's form."""
    members = type(member)
    known = member._name_ in members.__members__
    end = f".{member._name_}" if known else f"({int(member)})"
    return f"pygpu.driver.{members.__name__}{end}"


def known(name: str, members: _Listed, value: Any) -> Any:
    """The member of this number."""
    number = _arguments.whole(name, value)
    if number not in members.values:
        raise ValueError(f"{name} is {number}; {members.__name__} has the allowed ones")
    return members(number)


def _format(member: Any, format_spec: str) -> str:
    """The member's name; the number where there is a format. Python 3.10 has the name for both."""
    return int.__format__(int(member), format_spec) if format_spec else str(member)


class IntEnum(enum.IntEnum, metaclass=_Listed):
    """Numbers that print as their names. Other numbers have no name, and are no members."""

    __str__ = _name_or_place
    __repr__ = _place
    __format__ = _format

    @classmethod
    def _missing_(cls, value: object) -> Any:
        try:
            number = operator.index(value)  # type: ignore[arg-type]
        except TypeError:
            return None
        nameless = int.__new__(cls, number)
        nameless._name_ = None  # type: ignore[assignment]
        nameless._value_ = number
        return nameless


class IntFlag(enum.IntFlag, metaclass=_Listed):
    """Numbers that are combined with ``|``, and print as their names."""

    __str__ = _name
    __repr__ = _place
    __format__ = _format
