from typing import Any, Protocol

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

class _Unary(Protocol):
    def __call__(
        self,
        array: GPUArray,
        stream_or_out: Any = None,
        *,
        out: GPUArray | None = None,
        stream: Any = None,
    ) -> GPUArray: ...

acos: _Unary
asin: _Unary
atan: _Unary
ceil: _Unary
cos: _Unary
cosh: _Unary
exp: _Unary
fabs: _Unary
floor: _Unary
log: _Unary
log10: _Unary
sin: _Unary
sinh: _Unary
sqrt: _Unary
tan: _Unary
tanh: _Unary

def fmod(arg: Any, mod: Any, stream: Any = None, *, out: GPUArray | None = None) -> GPUArray: ...
def frexp(arg: GPUArray, stream: Any = None) -> tuple[GPUArray, GPUArray]: ...
def ldexp(
    significand: Any, exponent: Any, stream: Any = None, *, out: GPUArray | None = None
) -> GPUArray: ...
def modf(arg: GPUArray, stream: Any = None) -> tuple[GPUArray, GPUArray]: ...
