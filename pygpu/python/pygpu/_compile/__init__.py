"""Compilation of CUDA C: headers, compilers, and modules of loaded kernels."""
