"""Sharing with OpenGL, which there is not: each of PyCUDA's names raises ``Unsupported``."""

from __future__ import annotations

from typing import Any, NoReturn

from .._documentation import Decorator, documented
from .._errors import Unsupported

_NEVER = """Raises ``Unsupported``: there is no sharing with OpenGL. {pycuda}{parameters}

    Raises
    ------
    Unsupported
        Always.{example}
    """
_STREAM = """

    Parameters
    ----------
    stream : Stream, optional
        Has no effect."""
_CLASS = """{what} that kernels would share. Making one raises ``Unsupported``.

    Parameters
    ----------
    *args : object
        {arguments}

    Raises
    ------
    Unsupported
        Always: there is no sharing with OpenGL.

    Examples
    --------
    >>> {name}(1)
    Traceback (most recent call last):
        ...
    pygpu._errors.Unsupported: {name}: there is no sharing with OpenGL; ...
    """


def _never(pycuda: str, parameters: str = "") -> Decorator:
    return documented(_NEVER, pycuda=f"PyCUDA {pycuda}.", parameters=parameters, example="")


def _function(call: str, parameters: str = "") -> Decorator:
    example = f"""

    Examples
    --------
    >>> {call}
    Traceback (most recent call last):
        ...
    pygpu._errors.Unsupported: {call.partition("(")[0]}: there is no sharing with OpenGL; ..."""
    return documented(_NEVER, pycuda="", parameters=parameters, example=example)


def _refuse(name: str) -> NoReturn:
    raise Unsupported(f"{name}: there is no sharing with OpenGL; copy through the host instead")


@_function("gl_init()")
def gl_init() -> NoReturn:
    _refuse("gl_init")


@_function(
    "make_gl_context(driver.Device(0))",
    """

    Parameters
    ----------
    dev : Device
        The device.
    flags : int
        Values of ``driver.ctx_flags``.""",
)
def make_gl_context(dev: Any, flags: int = 0) -> NoReturn:
    _refuse("make_gl_context")


class _Shared:
    """Something that OpenGL and kernels would share."""

    def __init__(self, *args: Any) -> None:
        _refuse(type(self).__name__)

    @_never("ends the sharing")
    def unregister(self) -> NoReturn:
        _refuse(f"{type(self).__name__}.unregister")

    @_never("lets kernels use the buffer or image", _STREAM)
    def map(self, stream: Any = None) -> NoReturn:
        _refuse(f"{type(self).__name__}.map")


class BufferObject(_Shared):
    __doc__ = _CLASS.format(
        name="BufferObject",
        what="A buffer of OpenGL, in the older of PyCUDA's interfaces,",
        arguments="OpenGL's number of the buffer.",
    )

    @_never("returns OpenGL's number of the buffer")
    def handle(self) -> NoReturn:
        _refuse("BufferObject.handle")


class RegisteredObject(_Shared):
    __doc__ = _CLASS.format(
        name="RegisteredObject",
        what="A buffer or an image of OpenGL",
        arguments="OpenGL's number of the object, and flags.",
    )

    @_never("returns OpenGL's number of the object")
    def gl_handle(self) -> NoReturn:
        _refuse("RegisteredObject.gl_handle")


class RegisteredBuffer(RegisteredObject):
    __doc__ = _CLASS.format(
        name="RegisteredBuffer",
        what="A buffer of OpenGL",
        arguments="OpenGL's number of the buffer, and a value of ``driver.graphics_map_flags``.",
    )


class RegisteredImage(RegisteredObject):
    __doc__ = _CLASS.format(
        name="RegisteredImage",
        what="An image of OpenGL",
        arguments="OpenGL's number and target, and a value of ``driver.graphics_map_flags``.",
    )


class _Mapping:
    """Memory of OpenGL that kernels would use."""

    def __init__(self, *args: Any) -> None:
        _refuse(type(self).__name__)

    @_never("ends the use by kernels", _STREAM)
    def unmap(self, stream: Any = None) -> NoReturn:
        _refuse(f"{type(self).__name__}.unmap")


class BufferObjectMapping(_Mapping):
    __doc__ = _CLASS.format(
        name="BufferObjectMapping",
        what="A mapped buffer of OpenGL, in the older of PyCUDA's interfaces,",
        arguments="The buffer.",
    )

    @_never("returns the buffer's device address")
    def device_ptr(self) -> NoReturn:
        _refuse("BufferObjectMapping.device_ptr")

    @_never("returns the buffer's size in bytes")
    def size(self) -> NoReturn:
        _refuse("BufferObjectMapping.size")


class RegisteredMapping(_Mapping):
    __doc__ = _CLASS.format(
        name="RegisteredMapping",
        what="A mapped buffer or image of OpenGL",
        arguments="The buffer or image.",
    )

    @_never("returns a buffer's device address and its bytes")
    def device_ptr_and_size(self) -> NoReturn:
        _refuse("RegisteredMapping.device_ptr_and_size")

    @_never(
        "returns an image as an array for textures",
        """

    Parameters
    ----------
    index : int
        The layer of the image, or the face of a cubemap.
    level : int
        The mipmap level.""",
    )
    def array(self, index: int, level: int) -> NoReturn:
        _refuse("RegisteredMapping.array")
