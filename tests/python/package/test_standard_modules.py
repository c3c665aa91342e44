"""Which modules of Python's library the faces of other packages import, beyond numpy's."""

from __future__ import annotations

import pytest
from processes import run_python

# What pygpu itself imports is no face's.
ALLOWED = {
    "pygpu.cuda": {"threading"},
    "pygpu.arrow": {"threading"},
    "PybindGPU": {"threading", "mmap"},
}


@pytest.mark.parametrize("face", ALLOWED)
def test_a_face_imports_few_standard_modules(face):
    # Without a debugger's or a coverage tool's modules.
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
