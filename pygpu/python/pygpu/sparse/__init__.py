"""Sparse matrices and the method of conjugate gradients, with the names of ``pycuda.sparse``."""
