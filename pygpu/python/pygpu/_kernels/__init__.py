"""Kernels from C expressions: element-wise kernels, reductions and scans, and their arguments."""
