"""``pycuda.gl``, which there is not: importing it raises an error, as PyCUDA's without OpenGL does.

The error is :class:`pygpu.driver.Unsupported` and an ``ImportError``, so that a program that can
go on without OpenGL does. :func:`pygpu.driver.have_gl_ext` returns False.
"""

from pygpu._errors import Unsupported


class _NoOpenGL(Unsupported, ImportError):
    """There is no sharing with OpenGL."""


raise _NoOpenGL("pygpu.gl: there is no sharing with OpenGL; copy through the host instead")
