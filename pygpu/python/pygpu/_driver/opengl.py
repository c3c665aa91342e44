"""PyCUDA's names for sharing with OpenGL, which is not supported: each raises ``Unsupported``."""

from __future__ import annotations

from typing import Any, NoReturn

from .._errors import Unsupported


def _refuse(name: str) -> NoReturn:
    raise Unsupported(f"{name}: sharing with OpenGL is not supported; copy through the host")


def gl_init() -> NoReturn:
    """Raises ``Unsupported``.

    >>> gl_init()
    Traceback (most recent call last):
        ...
    pygpu._errors.Unsupported: gl_init: sharing with OpenGL is not supported; ...
    """
    _refuse("gl_init")


def make_gl_context(dev: Any, flags: int = 0) -> NoReturn:
    """Raises ``Unsupported`` for any ``dev`` and ``flags``.

    >>> make_gl_context(driver.Device(0))
    Traceback (most recent call last):
        ...
    pygpu._errors.Unsupported: make_gl_context: sharing with OpenGL is not supported; ...
    """
    _refuse("make_gl_context")


_CLASS = """An object of OpenGL that kernels would use. Raises ``Unsupported`` for any ``*args``.

    >>> {name}(1)
    Traceback (most recent call last):
        ...
    pygpu._errors.Unsupported: {name}: sharing with OpenGL is not supported; ...
    """


class _Shared:
    def __init_subclass__(cls) -> None:
        cls.__doc__ = None if cls.__name__.startswith("_") else _CLASS.format(name=cls.__name__)

    def __init__(self, *args: Any) -> None:
        _refuse(type(self).__name__)

    def _refuse_call(self, name: str) -> NoReturn:
        _refuse(f"{type(self).__name__}.{name}")


class _Registered(_Shared):
    def unregister(self) -> NoReturn:
        """Raises ``Unsupported``; would end the sharing."""
        self._refuse_call("unregister")

    def map(self, stream: Any = None) -> NoReturn:
        """Raises ``Unsupported``; would let kernels use the object, in the order of ``stream``."""
        self._refuse_call("map")


class BufferObject(_Registered):
    def handle(self) -> NoReturn:
        """Raises ``Unsupported``; would return OpenGL's number of the buffer."""
        self._refuse_call("handle")


class RegisteredObject(_Registered):
    def gl_handle(self) -> NoReturn:
        """Raises ``Unsupported``; would return OpenGL's number of the object."""
        self._refuse_call("gl_handle")


class RegisteredBuffer(RegisteredObject):
    pass


class RegisteredImage(RegisteredObject):
    pass


class _Mapping(_Shared):
    def unmap(self, stream: Any = None) -> NoReturn:
        """Raises ``Unsupported``; would end the use by kernels, in the order of ``stream``."""
        self._refuse_call("unmap")


class BufferObjectMapping(_Mapping):
    def device_ptr(self) -> NoReturn:
        """Raises ``Unsupported``; would return the buffer's device address."""
        self._refuse_call("device_ptr")

    def size(self) -> NoReturn:
        """Raises ``Unsupported``; would return the buffer's size in bytes."""
        self._refuse_call("size")


class RegisteredMapping(_Mapping):
    def device_ptr_and_size(self) -> NoReturn:
        """Raises ``Unsupported``; would return a buffer's device address and its bytes."""
        self._refuse_call("device_ptr_and_size")

    def array(self, index: int, level: int) -> NoReturn:
        """Raises ``Unsupported``; would return layer ``index`` of mipmap ``level``."""
        self._refuse_call("array")
