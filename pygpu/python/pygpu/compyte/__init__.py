"""Functions for the names of C types and for array layouts, named as in ``pycuda.compyte``."""
