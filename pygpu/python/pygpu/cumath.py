"""Functions of each element, with the names of ``pycuda.cumath``, and more of numpy's functions
with numpy's names.

Integer arrays return numbers with fractions, as with numpy. ``out`` receives the result if
given: an array of a shape that the argument broadcasts to, of a dtype that the result fits
within its kind (numpy's rule ``same_kind``), the argument itself included.
"""

from __future__ import annotations

from . import _core

_functions = _core.named_functions["cumath"]
__all__ = sorted(_functions)
globals().update(_functions)
