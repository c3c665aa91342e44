"""Names of C types and layouts of arrays, with the names of ``pycuda.compyte``."""
