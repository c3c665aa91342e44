"""The standard library modules that each interface imports in addition to numpy's."""

from __future__ import annotations

import pytest
from processes import run_python

# Modules that pygpu itself imports do not count for an interface.
ALLOWED = {
    "pygpu.cuda": {"threading"},
    "pygpu.arrow": {"threading"},
    "PybindGPU": {"threading", "mmap"},
}


@pytest.mark.parametrize("face", ALLOWED)
def test_a_face_imports_few_standard_modules(face):
    # Ignores modules that a debugger or a coverage tool imports.
    run_python(
        f"""
        import numpy, pygpu, sys
        before = set(sys.modules)
        import {face}
        added = {{name for name in set(sys.modules) - before if "." not in name}}
        standard = added & set(sys.stdlib_module_names)
        assert standard <= {ALLOWED[face]!r}, standard
        """
    )
