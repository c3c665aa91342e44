"""PTX instructions for floats with their results, computed by exact arithmetic."""

from __future__ import annotations

import math
import struct
from collections.abc import Callable
from fractions import Fraction

from ptx_instructions import INTEGERS, LETTERS, Case, clamp, reader, unsigned


def single(bits: int) -> float:
    return struct.unpack("<f", struct.pack("<I", bits))[0]


def bits_of(value: float) -> int:
    return struct.unpack("<I", struct.pack("<f", value))[0]


def rounded(exact: Fraction, how: str) -> float:
    """Returns the float next to an exact number in the range of normal numbers."""
    exponent = math.frexp(float(abs(exact)))[1] if exact else 0
    unit = Fraction(2) ** (exponent - 24)
    if abs(exact) < Fraction(2) ** (exponent - 1):
        unit /= 2
    count = exact / unit
    whole = {"rn": round, "rz": math.trunc, "rm": math.floor, "rp": math.ceil}[how](count)
    return float(whole * unit)


def is_plain(*values: float) -> bool:
    """Returns true for numbers whose sums and products are far from overflow and underflow."""
    return all(math.isfinite(it) and (it == 0 or 2.0**-50 < abs(it) < 2.0**50) for it in values)


def of_floats() -> list[Case]:
    """Returns cases of arithmetic, conversions and comparisons."""
    functions: dict[str, tuple[int, Callable[..., Fraction]]] = {
        "add": (2, lambda a, b: a + b),
        "sub": (2, lambda a, b: a - b),
        "mul": (2, lambda a, b: a * b),
        "fma": (3, lambda a, b, c: a * b + c),
    }
    cases: list[Case] = []
    for name, (count, function) in functions.items():
        for how in ("rn", "rz", "rm", "rp"):

            def computed(*x: int, function=function, how=how) -> int | None:
                values = [single(it) for it in x]
                if not is_plain(*values):
                    return None
                exact = function(*map(Fraction, values))
                # The rounding mode decides the sign of zero.
                return bits_of(rounded(exact, how)) if exact else None

            places = ", ".join(f"%{place}" for place in range(count + 1))
            cases.append((f"{name}.{how}.f32 {places};", "f", "f" * count, computed))
    roundings = {
        "rni": round,
        "rzi": math.trunc,
        "rmi": math.floor,
        "rpi": math.ceil,
    }
    for name, whole in roundings.items():
        for sign, bits in [*INTEGERS, ("s", 8), ("u", 8)]:

            def to_integer(a: int, whole=whole, sign=sign, bits=bits) -> int:
                value, register = single(a), max(bits, 16)
                if math.isnan(value):
                    return 1 << 63 if bits == 64 else 0
                if math.isinf(value):
                    return unsigned(clamp(int(math.copysign(1 << 70, value)), sign, bits), register)
                return unsigned(clamp(whole(value), sign, bits), register)

            cases.append(
                (f"cvt.{name}.{sign}{bits}.f32 %0, %1;", LETTERS[max(bits, 16)], "f", to_integer)
            )
    for how in ("rn", "rz", "rm", "rp"):
        for sign, bits in INTEGERS:
            read = reader(sign, bits)
            cases.append(
                (
                    f"cvt.{how}.f32.{sign}{bits} %0, %1;",
                    "f",
                    LETTERS[bits],
                    lambda a, read=read, how=how: bits_of(rounded(Fraction(read(a)), how)),
                )
            )

    def lesser(a: int, b: int) -> int | None:
        x, y = single(a), single(b)
        if math.isnan(x) or math.isnan(y):
            return b if math.isnan(x) else a
        return (a if a >> 31 else b) if x == y else (a if x < y else b)

    def sign_of(a: int, b: int) -> int:
        return a & 0x80000000 | b & 0x7FFFFFFF

    comparisons = {
        "lt": lambda x, y: x < y,
        "neu": lambda x, y: x != y,
        "geu": lambda x, y: not x < y,
        "num": lambda x, y: x == x and y == y,
        "nan": lambda x, y: x != x or y != y,
    }
    cases += [
        ("min.f32 %0, %1, %2;", "f", "ff", lesser),
        ("copysign.f32 %0, %1, %2;", "f", "ff", sign_of),
        ("abs.f32 %0, %1;", "f", "f", lambda a: a & 0x7FFFFFFF),
        ("add.sat.f32 %0, %1, 0f00000000;", "f", "f", saturated_float),
        (
            "add.ftz.f32 %0, %1, 0.0;",
            "f",
            "f",
            lambda a: a if (a & 0x7FFFFFFF) >= 0x00800000 else 0,
        ),
    ]
    cases += [
        (
            f"{{ .reg .pred p; setp.{name}.f32 p, %1, %2; selp.u32 %0, 1, 0, p; }}",
            "r",
            "ff",
            lambda a, b, holds=holds: int(holds(single(a), single(b))),
        )
        for name, holds in comparisons.items()
    ]
    return cases


def saturated_float(a: int) -> int:
    value = single(a)
    return bits_of(min(value, 1.0)) if value > 0 else 0
