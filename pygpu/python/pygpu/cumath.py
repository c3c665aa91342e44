"""Element-wise functions with PyCUDA's names, and further functions of numpy with numpy's names.

Integer arrays give floating-point results, as in numpy. ``out``, if given, receives the result. It
may be the argument itself. The argument must broadcast to its shape, and the result must be
castable to its dtype (numpy's rule ``same_kind``).
"""

from typing import TYPE_CHECKING

from . import _core

if TYPE_CHECKING:
    from ._array import OnStream, Operand, Out
    from ._core import GPUArray

    def _unary(
        array: GPUArray,
        stream_or_out: OnStream | GPUArray = None,
        *,
        out: Out = None,
        stream: OnStream = None,
    ) -> GPUArray: ...
    def _binary(
        x1: Operand, x2: Operand, stream: OnStream = None, *, out: Out = None
    ) -> GPUArray: ...
    def fmod(
        arg: Operand, mod: Operand, stream: OnStream = None, *, out: Out = None
    ) -> GPUArray: ...
    def frexp(arg: GPUArray, stream: OnStream = None) -> tuple[GPUArray, GPUArray]: ...
    def ldexp(
        significand: Operand, exponent: Operand, stream: OnStream = None, *, out: Out = None
    ) -> GPUArray: ...

    modf = frexp
    acos = arccosh = arcsinh = arctanh = asin = atan = cbrt = ceil = cos = cosh = deg2rad = _unary
    erf = erfc = exp = exp2 = expm1 = fabs = floor = gamma = isfinite = isinf = isnan = _unary
    lgamma = log = log10 = log1p = log2 = positive = rad2deg = reciprocal = rint = sign = _unary
    signbit = sin = sinh = sqrt = square = tan = tanh = trunc = _unary
    arctan2 = copysign = fmax = fmin = gcd = heaviside = hypot = lcm = left_shift = _binary
    logaddexp = logaddexp2 = logical_xor = nextafter = right_shift = _binary
else:
    _functions = _core.named_functions["cumath"]
    __all__ = sorted(_functions)
    globals().update(_functions)
