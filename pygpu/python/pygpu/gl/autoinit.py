"""``pycuda.gl.autoinit``, which there is not; see :mod:`pygpu.gl`."""
