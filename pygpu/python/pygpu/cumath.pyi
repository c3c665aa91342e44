from typing import Any, Protocol

from ._core import GPUArray

class _Unary(Protocol):
    def __call__(
        self,
        array: GPUArray,
        stream_or_out: Any = None,
        *,
        out: GPUArray | None = None,
        stream: Any = None,
    ) -> GPUArray: ...

class _Binary(Protocol):
    def __call__(
        self, x1: Any, x2: Any, stream: Any = None, *, out: GPUArray | None = None
    ) -> GPUArray: ...

acos: _Unary
arccosh = arcsinh = arctanh = asin = atan = cbrt = ceil = cos = cosh = deg2rad = erf = erfc = acos
exp = exp2 = expm1 = fabs = floor = gamma = isfinite = isinf = isnan = lgamma = log = log10 = acos
log1p = log2 = positive = rad2deg = reciprocal = rint = sign = signbit = sin = sinh = sqrt = acos
square = tan = tanh = trunc = acos

arctan2: _Binary
copysign = fmax = fmin = gcd = heaviside = hypot = lcm = left_shift = logaddexp = arctan2
logaddexp2 = logical_xor = nextafter = right_shift = arctan2

def fmod(arg: Any, mod: Any, stream: Any = None, *, out: GPUArray | None = None) -> GPUArray: ...
def frexp(arg: GPUArray, stream: Any = None) -> tuple[GPUArray, GPUArray]: ...
def ldexp(
    significand: Any, exponent: Any, stream: Any = None, *, out: GPUArray | None = None
) -> GPUArray: ...
def modf(arg: GPUArray, stream: Any = None) -> tuple[GPUArray, GPUArray]: ...
