"""Statuses: the integers that drivers return, success included."""

from __future__ import annotations

from . import _core
from ._arguments import whole


class Status:
    """What a call of a driver returned: a number, and whose it is. A status is true for a success.
    It equals, and hashes as, its number. PyCUDA has no such class.

    Parameters
    ----------
    code : int. The number, which may be unknown.
    api : {"cuda", "hip", "host", "nvrtc", "hiprtc"}, optional. Whose number it is; the backend's by
        default.

    Examples
    --------
    >>> status = Status(2, "cuda")
    >>> status
    <Status: 'CUDA_ERROR_OUT_OF_MEMORY (2)'>
    >>> status.name, int(status), bool(status), status == 2
    ('CUDA_ERROR_OUT_OF_MEMORY', 2, False, True)
    >>> bool(Status(0, "hip"))
    True
    """

    __slots__ = ("_api", "_code", "_reason")

    # Whose numbers there are.
    _apis: tuple[str, ...] = ("cuda", "hip", "host", "nvrtc", "hiprtc")

    def __init__(self, code: int, api: str | None = None) -> None:
        self._code = _number(code)
        # Why a call of this library failed; None where only the number is known.
        self._reason: str | None = None
        self._api = _core.choose_backend() if api is None else api
        if self._api not in self._apis:
            raise ValueError(f"api is {api!r}; allowed are {', '.join(self._apis)}")

    @property
    def code(self) -> int:
        """The number."""
        return self._code

    @property
    def api(self) -> str:
        """Whose number it is."""
        return self._api

    @property
    def name(self) -> str:
        """The vendor's name of the number; ``status N`` without one."""
        return _core.status_names(self._api, self._code)[0] or f"status {self._code}"

    @property
    def message(self) -> str:
        """Why the call failed if that is known, or what the number means."""
        return self._reason or _core.status_message(self._api, self._code)

    def raise_for_status(self) -> None:
        """Does nothing for a success.

        Raises ``pygpu.driver.Error`` if the number is none of a success.

        >>> Status(0, "cuda").raise_for_status()
        >>> Status(2, "cuda").raise_for_status()
        Traceback (most recent call last):
            ...
        pygpu._errors.MemoryError: ...
        """
        _core.check_status(self._api, self._code, type(self).__name__, self._reason)

    def __bool__(self) -> bool:
        return self._code == 0

    def __int__(self) -> int:
        return self._code

    __index__ = __int__

    def __eq__(self, other: object) -> bool:
        if isinstance(other, Status | int):
            return self._code == int(other)
        return NotImplemented

    def __hash__(self) -> int:
        return hash(self._code)

    def __repr__(self) -> str:
        return f"<{type(self).__name__}: '{self.name} ({self._code})'>"

    def __reduce__(self) -> tuple[type[Status], tuple[int, str]]:
        return type(self), (self._code, self._api)


def _number(code: int) -> int:
    """A status number: 32 bits with a sign."""
    number = whole("code", code)
    if not -(2**31) <= number < 2**31:
        raise OverflowError(f"code is {number}; a status has 32 bits")
    return number
