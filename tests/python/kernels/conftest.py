"""Tests of kernels from source, on every backend.

Those of memory that only a GPU's driver has are left out on the host.
"""

from __future__ import annotations

from pygpu import choose_backend

OF_GPUS = ["test_memory.py"]

collect_ignore = OF_GPUS if choose_backend() == "host" else []
