"""Kernels from expressions: element-wise kernels, reductions and scans, and their arguments."""
