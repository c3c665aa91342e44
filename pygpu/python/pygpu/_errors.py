"""The exceptions of PyCUDA's driver module. Some are also Python's or numpy's: a program catches
``ValueError`` as with numpy, or ``driver.LogicError`` as with PyCUDA."""

from __future__ import annotations

import builtins
from collections.abc import Sequence

import numpy as np


class Error(Exception):
    """Any failure of the device or its driver: the base of PyCUDA's exceptions.

    ``status`` is the driver's number for the failure, 999 if the driver was not called, and
    ``status_name`` its name. ``call`` is the call that failed, ``detail`` the reason in a sentence.

    >>> try:
    ...     driver.mem_alloc(0)
    ... except driver.Error as error:
    ...     print(error.call, error.status, error.detail)
    mem_alloc 1 bytes is 0; allowed are 1 to 9223372036854775807
    """

    status: int = 999
    status_name: str = ""
    call: str = ""
    detail: str = ""


# Python's class comes first: pickled exceptions call its `__new__`.
class MemoryError(builtins.MemoryError, Error):
    """Not enough memory on the device or the host: also Python's ``MemoryError``.

    >>> try:
    ...     driver.mem_alloc(2**60)
    ... except MemoryError as error:
    ...     isinstance(error, driver.MemoryError)
    True
    """


class LogicError(Error):
    """A wrong call; also a ``ValueError``, ``TypeError``, ``IndexError`` or
    ``OverflowError`` for an argument that is not allowed.

    >>> try:
    ...     gpuarray.zeros(3, "f4").reshape(2)
    ... except driver.LogicError as error:
    ...     isinstance(error, ValueError)
    True
    """


class LaunchError(Error):
    """A kernel could not start or failed; also a ``LogicError`` if the driver names a reason.

    >>> import pygpu
    >>> pygpu.Status(719).raise_for_status()
    Traceback (most recent call last):
        ...
    pygpu._errors.LaunchError: ...
    """


class RuntimeError(Error, builtins.RuntimeError):
    """A failure of driver or device without a class of its own: also Python's ``RuntimeError``.

    >>> import pygpu
    >>> pygpu.Status(999).raise_for_status()
    Traceback (most recent call last):
        ...
    pygpu._errors.RuntimeError: ...
    """


class KernelFault(LaunchError, LogicError):
    """A kernel failed for a reason that the driver names, for which PyCUDA has ``LogicError``."""


class DriverRefusal(RuntimeError, LogicError):
    """The driver refused a call for another reason. PyCUDA raises ``LogicError`` then."""


class NotReady(RuntimeError, LogicError):
    """Work is still under way. PyCUDA raises ``RuntimeError`` then."""


class DeviceLost(RuntimeError, LogicError):
    """The device cannot be used until it is reset, because a kernel has failed."""


class DeviceLostInLaunch(DeviceLost, LaunchError):
    """As ``DeviceLost``, for a failure after which PyCUDA raises ``LaunchError``."""


class CompileError(Error):
    """The compiler refused a kernel's source; ``msg`` and the other arguments are also attributes.

    The text has the errors, each once, at the program's own lines. ``command_line`` has the
    compiler's options, ``stdout`` and ``stderr`` its output; a run-time compiler has no ``stdout``.

    >>> try:
    ...     compiler.compile("__global__ void f() { x; }")
    ... except driver.CompileError as error:
    ...     "kernel.cu:1:23: error: " in str(error), "x" in error.stderr
    (True, True)
    """

    def __init__(
        self,
        msg: str,
        command_line: Sequence[str] | None = None,
        stdout: str | None = None,
        stderr: str | None = None,
    ) -> None:
        super().__init__(msg, command_line, stdout, stderr)
        self.msg, self.command_line, self.stdout, self.stderr = msg, command_line, stdout, stderr

    def __str__(self) -> str:
        result = self.msg
        if self.detail:
            return result if self.detail in result else f"{result}\n{self.detail}"
        if self.command_line:
            result += f"\n[command: {' '.join(self.command_line)}]"
        for name in ("stdout", "stderr"):
            if text := getattr(self, name):
                result += f"\n[{name}:\n{text}]"
        return result


class InvalidCode(CompileError, LogicError):
    """Data that is to be loaded or linked is not code. PyCUDA raises ``LogicError`` then."""


class CodeForOtherDevices(CompileError, RuntimeError):
    """Code that is loaded does not include this device. PyCUDA raises ``RuntimeError`` then."""


class BackendUnavailable(RuntimeError):
    """A backend cannot be opened here; the text says why. PyCUDA cannot be imported then.

    >>> try:
    ...     driver.init()
    ... except driver.BackendUnavailable as error:
    ...     print(error)
    """


class UnusableDriver(BackendUnavailable, LogicError):
    """The driver does not fit the device or the libraries. PyCUDA raises ``LogicError`` then."""


class Unsupported(LogicError, NotImplementedError):
    """The backend or the device does not support this: also Python's ``NotImplementedError``.

    >>> try:
    ...     driver.gl_init()
    ... except NotImplementedError as error:
    ...     isinstance(error, driver.Unsupported)
    True
    """


class InvalidArgument(LogicError, ValueError):
    """An argument's value is not allowed."""


class InvalidType(LogicError, TypeError):
    """An argument's type or dtype is not allowed."""


class IndexOutOfRange(LogicError, IndexError):
    """An index is out of bounds."""


# numpy before 1.25 has the class under another name.
_AxisError: type[Exception] = getattr(np, "exceptions", np).AxisError


class AxisOutOfRange(LogicError, _AxisError):  # type: ignore[misc,valid-type]
    """The array does not have the axis: also numpy's ``AxisError``."""


class NumberOverflow(LogicError, OverflowError):
    """A number is outside the range of the type that it is converted to."""
