"""Sharing with OpenGL, which there is not: each of PyCUDA's names raises ``Unsupported``."""

from __future__ import annotations

from typing import Any, NoReturn

from ._errors import Unsupported


def _refuse(name: str) -> NoReturn:
    raise Unsupported(f"{name}: there is no sharing with OpenGL; copy through the host instead")


def gl_init() -> None:
    """Raises ``Unsupported``."""
    _refuse("gl_init")


def make_gl_context(dev: Any, flags: int = 0) -> Any:
    """Raises ``Unsupported``."""
    _refuse("make_gl_context")


class _Shared:
    """Something that OpenGL and kernels would share. Making one raises ``Unsupported``."""

    def __init__(self, *args: Any) -> None:
        _refuse(type(self).__name__)

    def unregister(self) -> None:
        """Ends the sharing."""
        _refuse(f"{type(self).__name__}.unregister")

    def map(self, stream: Any = None) -> Any:
        """Lets kernels use it."""
        _refuse(f"{type(self).__name__}.map")


class BufferObject(_Shared):
    """A buffer, in the old interface."""

    def handle(self) -> int:
        """Returns OpenGL's number."""
        _refuse("BufferObject.handle")


class RegisteredObject(_Shared):
    """A buffer or an image."""

    def gl_handle(self) -> int:
        """Returns OpenGL's number."""
        _refuse("RegisteredObject.gl_handle")


class RegisteredBuffer(RegisteredObject):
    """A buffer."""


class RegisteredImage(RegisteredObject):
    """An image."""


class _Mapping:
    """Memory of OpenGL that kernels would use. Making one raises ``Unsupported``."""

    def __init__(self, *args: Any) -> None:
        _refuse(type(self).__name__)

    def unmap(self, stream: Any = None) -> None:
        """Ends the use."""
        _refuse(f"{type(self).__name__}.unmap")


class BufferObjectMapping(_Mapping):
    """A mapped buffer, in the old interface."""

    def device_ptr(self) -> int:
        """Returns the address."""
        _refuse("BufferObjectMapping.device_ptr")

    def size(self) -> int:
        """Returns the bytes."""
        _refuse("BufferObjectMapping.size")


class RegisteredMapping(_Mapping):
    """A mapped buffer or image."""

    def device_ptr_and_size(self) -> tuple[int, int]:
        """Returns the address and the bytes of a buffer."""
        _refuse("RegisteredMapping.device_ptr_and_size")

    def array(self, index: int, level: int) -> Any:
        """Returns the array of an image."""
        _refuse("RegisteredMapping.array")
