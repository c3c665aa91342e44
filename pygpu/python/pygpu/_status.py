"""Statuses: the integers that drivers return, success included."""

from __future__ import annotations

from . import _core
from ._arguments import whole


class Status:
    """A driver's number and its API. A status equals the number and has the number's hash.

    A status is true for a success. ``code`` may be an unknown number; ``api`` is ``"cuda"``,
    ``"hip"``, ``"host"``, ``"nvrtc"`` or ``"hiprtc"``, by default the backend's.

    >>> status = Status(2, "cuda")
    >>> status
    <Status: 'CUDA_ERROR_OUT_OF_MEMORY (2)'>
    >>> status.name, int(status), bool(status), status == 2
    ('CUDA_ERROR_OUT_OF_MEMORY', 2, False, True)
    >>> bool(Status(0, "hip"))
    True
    """

    __slots__ = ("_api", "_code", "_reason")

    _apis: tuple[str, ...] = ("cuda", "hip", "host", "nvrtc", "hiprtc")

    def __init__(self, code: int, api: str | None = None) -> None:
        self._code = _number(code)
        # The reason for the failure of a call of this library; None if only the number is known.
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
        """The API that the number belongs to."""
        return self._api

    @property
    def name(self) -> str:
        """The vendor's name of the number, or ``status N``."""
        return _core.status_names(self._api, self._code)[0] or f"status {self._code}"

    @property
    def message(self) -> str:
        """The reason for the failure if known, or else the meaning of the number."""
        return self._reason or _core.status_message(self._api, self._code)

    def raise_for_status(self) -> None:
        """Does nothing for a success. Raises ``pygpu.driver.Error`` for all other numbers.

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
    """Returns a status number: a signed 32-bit integer."""
    number = whole("code", code)
    if not -(2**31) <= number < 2**31:
        raise OverflowError(f"code is {number}; a status has 32 bits")
    return number
