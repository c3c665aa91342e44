"""The names of PyCUDA's extension module for cuRAND."""

from __future__ import annotations

from ._enumerations import direction_vector_set

__all__ = ["direction_vector_set", "get_curand_version"]


def get_curand_version() -> tuple[int, int, int] | None:
    """Returns None, as PyCUDA does where it was built without cuRAND: its generators are not there.

    :func:`pygpu.curandom.rand` needs none.
    """
    return None
