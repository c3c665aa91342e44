"""Tests of kernels from source, on every backend.

Those of memory that only a GPU's driver has are left out on the host, and those of checks,
which only the host makes, on GPUs.
"""

from __future__ import annotations

from pygpu import choose_backend

OF_GPUS = ["test_memory.py"]
OF_THE_HOST = ["test_checking.py"]

collect_ignore = OF_GPUS if choose_backend() == "host" else OF_THE_HOST
