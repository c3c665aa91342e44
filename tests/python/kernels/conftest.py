"""Tests of kernels from source: on a backend that compiles them.

With the host backend they are left out; `make test-python` runs them on the driver double.
"""

from __future__ import annotations

from pygpu import choose_backend

collect_ignore_glob = ["test_*.py"] if choose_backend() == "host" else []
