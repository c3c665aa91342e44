"""The exceptions of PyCUDA's driver module. Some are Python's or numpy's, too: a program catches
``ValueError`` as with numpy, or ``driver.LogicError`` as with PyCUDA."""

from __future__ import annotations

import builtins
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence


class Error(Exception):
    """Any failure of the device or its driver: the base of PyCUDA's exceptions.

    Attributes
    ----------
    status : int. The driver's number for the failure; 999 if no driver was asked.
    call : str. The call that failed; empty if no driver was asked.
    detail : str. What was wrong, in a sentence.

    Examples
    --------
    >>> try:
    ...     driver.mem_alloc(0)
    ... except driver.Error as error:
    ...     print(error.call, error.status, error.detail)
    mem_alloc 1 bytes is 0; allowed are 1 to 9223372036854775807
    """

    status: int = 999
    call: str = ""
    detail: str = ""


# Python's class comes first: it has a `__new__` of its own, which what pickles exceptions calls.
class MemoryError(builtins.MemoryError, Error):
    """Not enough memory on the device or the host. It is Python's ``MemoryError``, too.

    >>> try:
    ...     driver.mem_alloc(2**60)
    ... except MemoryError as error:
    ...     isinstance(error, driver.MemoryError)
    True
    """


class LogicError(Error):
    """The program asked for something that makes no sense. For an argument that is not allowed it
    is a ``ValueError``, ``TypeError``, ``IndexError`` or ``OverflowError``, too.

    >>> try:
    ...     gpuarray.zeros(3, "f4").reshape(2)
    ... except driver.LogicError as error:
    ...     isinstance(error, ValueError)
    True
    """


class LaunchError(Error):
    """A kernel could not be started, or failed while it ran; a ``LogicError``, too, if the driver
    says why.

    >>> import pygpu
    >>> pygpu.Status(719).raise_for_status()
    Traceback (most recent call last):
        ...
    pygpu._errors.LaunchError: ...
    """


class RuntimeError(Error, builtins.RuntimeError):
    """A failure of the driver or the device that no other class names. It is Python's
    ``RuntimeError``, too.

    >>> import pygpu
    >>> pygpu.Status(999).raise_for_status()
    Traceback (most recent call last):
        ...
    pygpu._errors.RuntimeError: ...
    """


class KernelFault(LaunchError, LogicError):
    """A kernel failed for a reason that the driver names. PyCUDA raises ``LogicError`` then."""


class DriverRefusal(RuntimeError, LogicError):
    """The driver refused a call for another reason. PyCUDA raises ``LogicError`` then."""


class NotReady(RuntimeError, LogicError):
    """Work is still under way. PyCUDA raises ``RuntimeError`` then."""


class DeviceLost(RuntimeError, LogicError):
    """The device cannot be used any longer, because a kernel has failed."""


class DeviceLostInLaunch(DeviceLost, LaunchError):
    """As ``DeviceLost``, for a failure after which PyCUDA raises ``LaunchError``."""


class CompileError(Error):
    """The compiler refused a kernel's source. The parameters are attributes, too.

    Parameters
    ----------
    msg : str. What failed.
    command_line : sequence of str, optional. The compiler's options.
    stdout, stderr : str, optional. What the compiler printed; the log of a run-time compiler is
        ``stderr``.

    Examples
    --------
    >>> from pygpu import compiler
    >>> try:
    ...     compiler.compile("__global__ void f() { x; }")
    ... except driver.CompileError as error:
    ...     "x" in error.stderr
    True
    """

    def __init__(
        self,
        msg: str,
        command_line: Sequence[str] | None = None,
        stdout: str | None = None,
        stderr: str | None = None,
    ) -> None:
        super().__init__(msg, command_line, stdout, stderr)
        self.msg = msg
        self.command_line = command_line
        self.stdout = stdout
        self.stderr = stderr

    def __str__(self) -> str:
        result = self.msg
        if self.command_line:
            result += f"\n[command: {' '.join(self.command_line)}]"
        if self.stdout:
            result += f"\n[stdout:\n{self.stdout}]"
        if self.stderr:
            result += f"\n[stderr:\n{self.stderr}]"
        return result


class InvalidCode(CompileError, LogicError):
    """What is loaded or linked is no code. PyCUDA raises ``LogicError`` then."""


class CodeForOtherDevices(CompileError, RuntimeError):
    """Code that is loaded has no part for this device. PyCUDA raises ``RuntimeError`` then."""


class BackendUnavailable(RuntimeError):
    """A backend cannot be opened here; the text says why. PyCUDA fails to be imported then.

    >>> try:
    ...     driver.init()
    ... except driver.BackendUnavailable as error:
    ...     print(error)
    """


class UnusableDriver(BackendUnavailable, LogicError):
    """The driver does not fit the device or the libraries. PyCUDA raises ``LogicError`` then."""


class Unsupported(LogicError, NotImplementedError):
    """The backend or the device does not offer this. It is Python's ``NotImplementedError``, too.

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
    """An index lies outside its axis."""


# numpy before 1.25 has the class under another name.
_AxisError: type[Exception] = getattr(np, "exceptions", np).AxisError


class AxisOutOfRange(LogicError, _AxisError):  # type: ignore[misc,valid-type]
    """An axis that the array does not have: numpy's ``AxisError``, too."""


class NumberOverflow(LogicError, OverflowError):
    """A number does not fit the type that it is to become."""
