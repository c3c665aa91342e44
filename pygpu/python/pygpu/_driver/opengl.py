"""PyCUDA's names for sharing with OpenGL, which is not supported: each raises ``Unsupported``.

Examples
--------
>>> make_gl_context(driver.Device(0))
Traceback (most recent call last):
    ...
pygpu._errors.Unsupported: make_gl_context: sharing with OpenGL is not supported; ...
"""

from __future__ import annotations

from typing import Any, NoReturn

from .._errors import Unsupported


def _refuse(name: str) -> NoReturn:
    raise Unsupported(f"{name}: sharing with OpenGL is not supported; copy through the host")


def gl_init() -> NoReturn:
    """Raises ``Unsupported``."""
    _refuse("gl_init")


def make_gl_context(dev: Any, flags: int = 0) -> NoReturn:
    """Raises ``Unsupported`` for any ``dev`` and ``flags``."""
    _refuse("make_gl_context")


_CLASS = """An object of OpenGL that kernels would use. Raises ``Unsupported`` for any ``*args``.

    >>> {name}(1)
    Traceback (most recent call last):
        ...
    pygpu._errors.Unsupported: {name}: sharing with OpenGL is not supported; ...
    """


class _Shared:
    def __init_subclass__(cls) -> None:
        cls.__doc__ = _CLASS.format(name=cls.__name__)

    def __init__(self, *args: Any) -> None:
        _refuse(type(self).__name__)

    def _method(self, *args: Any) -> NoReturn:
        """Raises ``Unsupported`` for any ``*args``: there is no object to call it on."""
        _refuse(type(self).__name__)


class BufferObject(_Shared):
    handle = map = unregister = _Shared._method


class RegisteredObject(_Shared):
    gl_handle = map = unregister = _Shared._method


class RegisteredBuffer(RegisteredObject):
    pass


class RegisteredImage(RegisteredObject):
    pass


class BufferObjectMapping(_Shared):
    device_ptr = size = unmap = _Shared._method


class RegisteredMapping(_Shared):
    array = device_ptr_and_size = unmap = _Shared._method
