"""What the enumerations of the driver's numbers derive from."""

import enum
from enum import EnumMeta
from typing import Any


class _Listed(EnumMeta):
    """Gives an enumeration the two dictionaries that those of PyCUDA have."""

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


def _place(member: Any) -> str:
    """The member as an expression, in PyCUDA's form."""
    members = type(member)
    known = member._name_ in members.__members__
    end = f".{member._name_}" if known else f"({int(member)})"
    return f"pygpu.driver.{members.__name__}{end}"


class IntEnum(enum.IntEnum, metaclass=_Listed):
    """Numbers that print as their names."""

    __str__ = _name
    __repr__ = _place


class IntFlag(enum.IntFlag, metaclass=_Listed):
    """Numbers that are combined with ``|``, and print as their names."""

    __str__ = _name
    __repr__ = _place
