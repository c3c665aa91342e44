"""Functions of each element, with the names of ``pycuda.cumath``.

Integer arrays return numbers with fractions, as with numpy. ``out`` receives the result if
given: an array of a shape that the argument broadcasts to, of a dtype that the result fits
within its kind (numpy's rule ``same_kind``), the argument itself included.
"""

from __future__ import annotations

from typing import Any

from . import _core
from ._core import GPUArray

__all__ = [
    "acos",
    "asin",
    "atan",
    "ceil",
    "cos",
    "cosh",
    "exp",
    "fabs",
    "floor",
    "fmod",
    "frexp",
    "ldexp",
    "log",
    "log10",
    "modf",
    "sin",
    "sinh",
    "sqrt",
    "tan",
    "tanh",
]


def _unary(name: str, function: str) -> Any:
    def apply(
        array: GPUArray,
        stream_or_out: Any = None,
        *,
        out: GPUArray | None = None,
        stream: Any = None,
    ) -> GPUArray:
        if isinstance(stream_or_out, GPUArray):
            out = stream_or_out
        elif stream_or_out is not None:
            stream = stream_or_out
        return _core.apply_unary(function, array, out, stream)

    apply.__name__ = apply.__qualname__ = name
    apply.__doc__ = f"{name} of each element."
    return apply


fabs = _unary("fabs", "Absolute")
ceil = _unary("ceil", "Ceil")
floor = _unary("floor", "Floor")
exp = _unary("exp", "Exp")
log = _unary("log", "Log")
log10 = _unary("log10", "Log10")
sqrt = _unary("sqrt", "Sqrt")
sin = _unary("sin", "Sin")
cos = _unary("cos", "Cos")
tan = _unary("tan", "Tan")
asin = _unary("asin", "Asin")
acos = _unary("acos", "Acos")
atan = _unary("atan", "Atan")
sinh = _unary("sinh", "Sinh")
cosh = _unary("cosh", "Cosh")
tanh = _unary("tanh", "Tanh")


def fmod(arg: Any, mod: Any, stream: Any = None) -> GPUArray:
    """The remainder of ``arg / mod`` with the sign of ``arg``."""
    return _core.apply_binary("Fmod", arg, mod, None, stream)


def ldexp(significand: Any, exponent: Any, stream: Any = None) -> GPUArray:
    """``significand * 2**exponent``."""
    return _core.apply_binary("Ldexp", significand, exponent, None, stream)


def frexp(arg: GPUArray, stream: Any = None) -> tuple[GPUArray, GPUArray]:
    """Significands in [0.5, 1) and exponents with ``arg == significand * 2**exponent``."""
    significand = _core.apply_unary("Mantissa", arg, None, stream)
    return significand, _core.apply_unary("Exponent", arg, None, stream)


def modf(arg: GPUArray, stream: Any = None) -> tuple[GPUArray, GPUArray]:
    """Fractions and whole parts, both with the sign of ``arg``; the fraction of an infinity is
    zero."""
    fraction = _core.apply_unary("Fraction", arg, None, stream)
    return fraction, _core.apply_unary("Trunc", arg, None, stream)
