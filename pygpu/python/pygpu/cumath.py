"""Functions of each element, with PyCUDA's names, and more of numpy's functions with numpy's names.

Integer arrays return numbers with fractions, as with numpy. ``out``, if given, receives the result:
an array of a shape that the argument broadcasts to, of a dtype that the result fits within its kind
(numpy's rule ``same_kind``), or the argument itself.
"""

from . import _core

_functions = _core.named_functions["cumath"]
__all__ = sorted(_functions)
globals().update(_functions)
