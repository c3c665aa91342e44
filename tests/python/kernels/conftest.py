"""Kernels compiled from source, on every backend.

Tests that use GPU drivers' memory are skipped on the host. Tests that use checks, which only the
host makes, are skipped on GPUs.
"""

from __future__ import annotations

from pygpu import choose_backend

OF_GPUS = ["test_memory.py"]
OF_THE_HOST = ["test_checking.py"]

collect_ignore = OF_GPUS if choose_backend() == "host" else OF_THE_HOST
