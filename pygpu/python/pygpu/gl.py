"""``pycuda.gl``: importing it raises an ``ImportError``, as PyCUDA's without OpenGL does."""

from ._errors import Unsupported


class _NoOpenGL(Unsupported, ImportError):
    """There is no sharing with OpenGL."""


raise _NoOpenGL("pygpu.gl: sharing with OpenGL is not supported; copy through the host")
