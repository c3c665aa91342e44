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
arccosh: _Unary
arcsinh: _Unary
arctanh: _Unary
asin: _Unary
atan: _Unary
cbrt: _Unary
ceil: _Unary
cos: _Unary
cosh: _Unary
deg2rad: _Unary
erf: _Unary
erfc: _Unary
exp: _Unary
exp2: _Unary
expm1: _Unary
fabs: _Unary
floor: _Unary
gamma: _Unary
isfinite: _Unary
isinf: _Unary
isnan: _Unary
lgamma: _Unary
log: _Unary
log10: _Unary
log1p: _Unary
log2: _Unary
positive: _Unary
rad2deg: _Unary
reciprocal: _Unary
rint: _Unary
sign: _Unary
signbit: _Unary
sin: _Unary
sinh: _Unary
sqrt: _Unary
square: _Unary
tan: _Unary
tanh: _Unary
trunc: _Unary

arctan2: _Binary
copysign: _Binary
fmax: _Binary
fmin: _Binary
gcd: _Binary
heaviside: _Binary
hypot: _Binary
lcm: _Binary
left_shift: _Binary
logaddexp: _Binary
logaddexp2: _Binary
logical_xor: _Binary
nextafter: _Binary
right_shift: _Binary

def fmod(arg: Any, mod: Any, stream: Any = None, *, out: GPUArray | None = None) -> GPUArray: ...
def frexp(arg: GPUArray, stream: Any = None) -> tuple[GPUArray, GPUArray]: ...
def ldexp(
    significand: Any, exponent: Any, stream: Any = None, *, out: GPUArray | None = None
) -> GPUArray: ...
def modf(arg: GPUArray, stream: Any = None) -> tuple[GPUArray, GPUArray]: ...
