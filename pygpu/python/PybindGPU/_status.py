"""Statuses: every call returns one or leaves it in ``last_status``.

Examples
--------
>>> from PybindGPU import cudaSetDevice
>>> status = cudaSetDevice(-1)
>>> cudaGetLastError(), cudaGetLastError()
(<CudaError: 'code=101'>, <CudaError: 'code=0'>)
>>> len(cudaGetErrorName(status)) > 0, len(cudaGetErrorString(status)) > 0
(True, True)
"""

from __future__ import annotations

import builtins
import os
import threading
import warnings
from collections.abc import Callable
from typing import Any

from pygpu import _core, _errors
from pygpu._arguments import instance
from pygpu._status import Status

SUCCESS = 0
INVALID_VALUE = 1
OUT_OF_MEMORY = 2
INVALID_DEVICE = 101
INVALID_HANDLE = 400

# The environment variable's modes for a failure: it is only stored, warned of, or raised.
VARIABLE = "PYGPU_STATUS"
MODES = ("quiet", "warn", "raise")

# Failures that become a status. An argument of a wrong type raises TypeError, as any function's.
_FAILURES = (_errors.Error, ValueError, OverflowError, BufferError, builtins.MemoryError)

_last = threading.local()

__all__ = ["StatusWarning", "cudaError_t", "cudaGetErrorName", "cudaGetErrorString"]
__all__ += ["cudaGetLastError"]


class StatusWarning(RuntimeWarning):
    """A call failed, and ``PYGPU_STATUS`` is ``warn``.

    >>> import warnings
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("error", StatusWarning)  # a call that fails raises it
    """


def interface() -> str:
    """Returns the API that statuses belong to: the backend's, or the host's."""
    try:
        return _core.choose_backend()
    except _errors.Error:
        return "host"


class Code(Status):
    """A status that shows its number."""

    __slots__ = ()
    _label: str

    def as_int(self) -> int:
        """Returns the number."""
        return self._code

    def __repr__(self) -> str:
        return f"<{self._label}: 'code={self._code}'>"

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self._code,)


class cudaError_t(Code):
    """The status of a call: true for a success, and equal to the number ``code``.

    The number is the driver's: ``cudaError_t`` and ``hipError_t`` agree on nearly all numbers.

    >>> cudaError_t(0)
    <CudaError: 'code=0'>
    >>> bool(cudaError_t(0)), cudaError_t(2) == 2, cudaError_t(2).as_int()
    (True, True, 2)
    """

    __slots__ = ()
    _label = "CudaError"

    def __init__(self, code: int) -> None:
        super().__init__(code, interface())

    @property
    def name(self) -> str:
        """The name in the vendor's runtime library, or ``status N``."""
        return _core.status_names(self._api, self._code)[1] or f"status {self._code}"


def mode() -> str:
    """Returns the mode of ``PYGPU_STATUS``."""
    value = os.environ.get(VARIABLE) or MODES[0]
    if value not in MODES:
        raise ValueError(f"{VARIABLE} is {value!r}; allowed are {', '.join(MODES)}")
    return value


def announce(failure: Exception) -> None:
    """Raises a failure or warns of it, if the environment asks for that."""
    how = mode()
    if how == "raise":
        raise failure
    if how == "warn":
        warnings.warn(str(failure), StatusWarning, stacklevel=4)


def refusal(
    detail: str, code: int = INVALID_VALUE, kind: type[_errors.LogicError] = _errors.InvalidArgument
) -> _errors.LogicError:
    """Returns the failure of a call that this package refuses itself."""
    failure = kind(detail)
    failure.status, failure.detail = code, detail
    return failure


def _code_of(failure: Exception) -> int:
    if isinstance(failure, _errors.Error):
        return failure.status
    return OUT_OF_MEMORY if isinstance(failure, builtins.MemoryError) else INVALID_VALUE


def attempt(
    call: Callable[..., Any], *args: Any, default: Any = None, keeper: Keeper | None = None
) -> tuple[Any, cudaError_t]:
    """Returns a call's value, or ``default``, and its status, which ``keeper`` keeps."""
    try:
        value, failure = call(*args), None
    except _FAILURES as caught:
        value, failure = default, caught
    status = cudaError_t(SUCCESS if failure is None else _code_of(failure))
    if failure is not None:
        status._reason = str(failure)
    if keeper is not None:
        keeper._status = status
    if failure is not None:
        _last.status = status
        announce(failure)
    return value, status


class Keeper:
    """An object that keeps the status of its last call."""

    _status: cudaError_t | None = None

    def last_status(self) -> cudaError_t:
        """Returns the status of the last call; a success before the first."""
        return cudaError_t(SUCCESS) if self._status is None else self._status

    def _attempt(self, call: Callable[..., Any], *args: Any, default: Any = None) -> Any:
        return attempt(call, *args, default=default, keeper=self)[0]

    def _status_of(self, call: Callable[..., Any], *args: Any) -> cudaError_t:
        return attempt(call, *args, keeper=self)[1]


def cudaGetErrorName(error: cudaError_t) -> str:
    """Returns the vendor's name of ``error``, for example ``hipErrorOutOfMemory``."""
    return instance("error", error, cudaError_t).name


def cudaGetErrorString(error: cudaError_t) -> str:
    """Returns the meaning of ``error``: the driver's sentence, or its name."""
    status = instance("error", error, cudaError_t)
    return _core.status_message(status.api, status.code) or status.name


def cudaGetLastError() -> cudaError_t:
    """Returns and forgets the status of this thread's last failed call; a success if none."""
    status = getattr(_last, "status", None)
    _last.status = None
    return cudaError_t(SUCCESS) if status is None else status


mode()
