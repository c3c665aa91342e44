"""Sharing with OpenGL, which there is not: each of PyCUDA's names raises ``Unsupported``."""

from __future__ import annotations

from typing import Any, NoReturn

from .._errors import Unsupported


def _refuse(name: str) -> NoReturn:
    raise Unsupported(f"{name}: there is no sharing with OpenGL; copy through the host instead")


def gl_init() -> NoReturn:
    """Raises ``Unsupported``: there is no sharing with OpenGL.

    Raises
    ------
    Unsupported
        Always.

    Examples
    --------
    >>> gl_init()
    Traceback (most recent call last):
        ...
    pygpu._errors.Unsupported: gl_init: there is no sharing with OpenGL; ...
    """
    _refuse("gl_init")


def make_gl_context(dev: Any, flags: int = 0) -> NoReturn:
    """Raises ``Unsupported``: there is no sharing with OpenGL.

    Parameters
    ----------
    dev : Device
        The device.
    flags : int
        Values of ``driver.ctx_flags``.

    Raises
    ------
    Unsupported
        Always.

    Examples
    --------
    >>> from pygpu import driver
    >>> make_gl_context(driver.Device(0))
    Traceback (most recent call last):
        ...
    pygpu._errors.Unsupported: make_gl_context: there is no sharing with OpenGL; ...
    """
    _refuse("make_gl_context")


class _Shared:
    """Something that OpenGL and kernels would share. Making one raises ``Unsupported``."""

    def __init__(self, *args: Any) -> None:
        _refuse(type(self).__name__)

    def unregister(self) -> NoReturn:
        """Raises ``Unsupported``; in PyCUDA it ends the sharing.

        Raises
        ------
        Unsupported
            Always: there is no sharing with OpenGL.
        """
        _refuse(f"{type(self).__name__}.unregister")

    def map(self, stream: Any = None) -> NoReturn:
        """Raises ``Unsupported``; in PyCUDA it lets kernels use the buffer or image.

        Parameters
        ----------
        stream : Stream, optional
            Where the mapping would be queued.

        Raises
        ------
        Unsupported
            Always: there is no sharing with OpenGL.
        """
        _refuse(f"{type(self).__name__}.map")


class BufferObject(_Shared):
    """A buffer of OpenGL that kernels would share, in the older of PyCUDA's interfaces. Making one
    raises ``Unsupported``.

    Parameters
    ----------
    *args : object
        OpenGL's number of the buffer.

    Raises
    ------
    Unsupported
        Always: there is no sharing with OpenGL.

    Examples
    --------
    >>> BufferObject(1)
    Traceback (most recent call last):
        ...
    pygpu._errors.Unsupported: BufferObject: there is no sharing with OpenGL; ...
    """

    def handle(self) -> NoReturn:
        """Raises ``Unsupported``; in PyCUDA it returns OpenGL's number of the buffer.

        Raises
        ------
        Unsupported
            Always: there is no sharing with OpenGL.
        """
        _refuse("BufferObject.handle")


class RegisteredObject(_Shared):
    """A buffer or an image of OpenGL that kernels would share: the base of
    :class:`RegisteredBuffer` and :class:`RegisteredImage`. Making one raises ``Unsupported``.

    Parameters
    ----------
    *args : object
        OpenGL's number of the object, and flags.

    Raises
    ------
    Unsupported
        Always: there is no sharing with OpenGL.

    Examples
    --------
    >>> RegisteredObject(1)
    Traceback (most recent call last):
        ...
    pygpu._errors.Unsupported: RegisteredObject: there is no sharing with OpenGL; ...
    """

    def gl_handle(self) -> NoReturn:
        """Raises ``Unsupported``; in PyCUDA it returns OpenGL's number of the object.

        Raises
        ------
        Unsupported
            Always: there is no sharing with OpenGL.
        """
        _refuse("RegisteredObject.gl_handle")


class RegisteredBuffer(RegisteredObject):
    """A buffer of OpenGL that kernels would share. Making one raises ``Unsupported``.

    Parameters
    ----------
    *args : object
        OpenGL's number of the buffer, and a value of ``driver.graphics_map_flags``.

    Raises
    ------
    Unsupported
        Always: there is no sharing with OpenGL.

    Examples
    --------
    >>> RegisteredBuffer(1)
    Traceback (most recent call last):
        ...
    pygpu._errors.Unsupported: RegisteredBuffer: there is no sharing with OpenGL; ...
    """


class RegisteredImage(RegisteredObject):
    """An image of OpenGL that kernels would share. Making one raises ``Unsupported``.

    Parameters
    ----------
    *args : object
        OpenGL's number of the image, its target, and a value of ``driver.graphics_map_flags``.

    Raises
    ------
    Unsupported
        Always: there is no sharing with OpenGL.

    Examples
    --------
    >>> RegisteredImage(1, 3553)
    Traceback (most recent call last):
        ...
    pygpu._errors.Unsupported: RegisteredImage: there is no sharing with OpenGL; ...
    """


class _Mapping:
    """Memory of OpenGL that kernels would use. Making one raises ``Unsupported``."""

    def __init__(self, *args: Any) -> None:
        _refuse(type(self).__name__)

    def unmap(self, stream: Any = None) -> NoReturn:
        """Raises ``Unsupported``; in PyCUDA it ends the use by kernels.

        Parameters
        ----------
        stream : Stream, optional
            Where the end of the use would be queued.

        Raises
        ------
        Unsupported
            Always: there is no sharing with OpenGL.
        """
        _refuse(f"{type(self).__name__}.unmap")


class BufferObjectMapping(_Mapping):
    """A mapped buffer of OpenGL, in the older of PyCUDA's interfaces. Making one raises
    ``Unsupported``.

    Parameters
    ----------
    *args : object
        The buffer.

    Raises
    ------
    Unsupported
        Always: there is no sharing with OpenGL.

    Examples
    --------
    >>> BufferObjectMapping()
    Traceback (most recent call last):
        ...
    pygpu._errors.Unsupported: BufferObjectMapping: there is no sharing with OpenGL; ...
    """

    def device_ptr(self) -> NoReturn:
        """Raises ``Unsupported``; in PyCUDA it returns the buffer's device address.

        Raises
        ------
        Unsupported
            Always: there is no sharing with OpenGL.
        """
        _refuse("BufferObjectMapping.device_ptr")

    def size(self) -> NoReturn:
        """Raises ``Unsupported``; in PyCUDA it returns the buffer's size in bytes.

        Raises
        ------
        Unsupported
            Always: there is no sharing with OpenGL.
        """
        _refuse("BufferObjectMapping.size")


class RegisteredMapping(_Mapping):
    """A mapped buffer or image of OpenGL. Making one raises ``Unsupported``.

    Parameters
    ----------
    *args : object
        The buffer or image.

    Raises
    ------
    Unsupported
        Always: there is no sharing with OpenGL.

    Examples
    --------
    >>> RegisteredMapping()
    Traceback (most recent call last):
        ...
    pygpu._errors.Unsupported: RegisteredMapping: there is no sharing with OpenGL; ...
    """

    def device_ptr_and_size(self) -> NoReturn:
        """Raises ``Unsupported``; in PyCUDA it returns a buffer's device address and its bytes.

        Raises
        ------
        Unsupported
            Always: there is no sharing with OpenGL.
        """
        _refuse("RegisteredMapping.device_ptr_and_size")

    def array(self, index: int, level: int) -> NoReturn:
        """Raises ``Unsupported``; in PyCUDA it returns an image as an array for textures.

        Parameters
        ----------
        index : int
            The layer of the image, or the face of a cubemap.
        level : int
            The mipmap level.

        Raises
        ------
        Unsupported
            Always: there is no sharing with OpenGL.
        """
        _refuse("RegisteredMapping.array")
