"""PTX instructions with their results, written from the instruction set's documentation.

A case is an instruction, the constraints of its result and arguments, and a function of the
arguments' bits. It returns the result's bits, or None if the instruction set leaves it undefined.
"""

from __future__ import annotations

from collections.abc import Callable

Case = tuple[str, str, str, Callable[..., "int | None"]]

LETTERS = {16: "h", 32: "r", 64: "l"}
INTEGERS = [(sign, bits) for sign in "us" for bits in (16, 32, 64)]


def signed(value: int, bits: int) -> int:
    value &= (1 << bits) - 1
    return value - (1 << bits) if value >> (bits - 1) else value


def unsigned(value: int, bits: int) -> int:
    return value & ((1 << bits) - 1)


def reader(sign: str, bits: int) -> Callable[[int], int]:
    """Returns a function that reads bits as a number."""
    read = signed if sign == "s" else unsigned
    return lambda value: read(value, bits)


def clamp(value: int, sign: str, bits: int) -> int:
    highest = (1 << (bits - (sign == "s"))) - 1
    return max(-highest - 1 if sign == "s" else 0, min(value, highest))


def quotient(a: int, b: int) -> int | None:
    if b == 0:
        return None
    return abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)


def remainder(a: int, b: int) -> int | None:
    whole = quotient(a, b)
    return None if whole is None else a - b * whole


def of_type(sign: str, bits: int) -> list[Case]:
    """Returns the arithmetic cases of one integer type."""
    kind, letter, read = f"{sign}{bits}", LETTERS[bits], reader(sign, bits)

    def low(value: int | None, count: int = bits) -> int | None:
        return None if value is None else unsigned(value, count)

    functions: dict[str, Callable[..., int | None]] = {
        "add": lambda a, b: a + b,
        "sub": lambda a, b: a - b,
        "mul.lo": lambda a, b: a * b,
        "mul.hi": lambda a, b: a * b >> bits,
        "div": quotient,
        "rem": remainder,
        "min": min,
        "max": max,
        "mad.lo": lambda a, b, c: a * b + c,
        "mad.hi": lambda a, b, c: (a * b >> bits) + c,
        "sad": lambda a, b, c: c + abs(a - b),
    }
    if sign == "s":
        functions |= {"abs": abs, "neg": lambda a: -a}
    cases: list[Case] = []
    for name, function in functions.items():
        count = (
            function.__code__.co_argcount if hasattr(function, "__code__") else 1 + (name != "abs")
        )
        places = ", ".join(f"%{place}" for place in range(count + 1))
        cases.append(
            (
                f"{name}.{kind} {places};",
                letter,
                letter * count,
                lambda *x, function=function: low(function(*map(read, x))),
            )
        )
    if bits < 64:
        wide = LETTERS[2 * bits]
        cases += [
            (
                f"mul.wide.{kind} %0, %1, %2;",
                wide,
                letter * 2,
                lambda a, b: low(read(a) * read(b), 2 * bits),
            ),
            (
                f"mad.wide.{kind} %0, %1, %2, %3;",
                wide,
                letter * 2 + wide,
                lambda a, b, c: low(read(a) * read(b) + c, 2 * bits),
            ),
        ]
    comparisons = {
        "eq": lambda a, b: a == b,
        "ne": lambda a, b: a != b,
        "lt": lambda a, b: a < b,
        "le": lambda a, b: a <= b,
        "gt": lambda a, b: a > b,
        "ge": lambda a, b: a >= b,
    }
    for name, holds in comparisons.items():
        cases += [
            (
                f"{{ .reg .pred p; setp.{name}.{kind} p, %1, %2; selp.{kind} %0, 5, 3, p; }}",
                letter,
                letter * 2,
                lambda a, b, holds=holds: 5 if holds(read(a), read(b)) else 3,
            ),
            (
                f"set.{name}.u32.{kind} %0, %1, %2;",
                "r",
                letter * 2,
                lambda a, b, holds=holds: 0xFFFFFFFF if holds(read(a), read(b)) else 0,
            ),
        ]
    return cases


def of_words() -> list[Case]:
    def s32(value: int) -> int:
        return signed(value, 32)

    def saturated(value: int) -> int:
        return unsigned(clamp(value, "s", 32), 32)

    cases: list[Case] = [
        ("add.sat.s32 %0, %1, %2;", "r", "rr", lambda a, b: saturated(s32(a) + s32(b))),
        ("sub.sat.s32 %0, %1, %2;", "r", "rr", lambda a, b: saturated(s32(a) - s32(b))),
        (
            "mad.hi.sat.s32 %0, %1, %2, %3;",
            "r",
            "rrr",
            lambda a, b, c: saturated((s32(a) * s32(b) >> 32) + s32(c)),
        ),
        ("slct.u32.s32 %0, %1, %2, %3;", "r", "rrr", lambda a, b, c: a if s32(c) >= 0 else b),
    ]
    for sign in "us":
        read = reader(sign, 24)
        kind = f"{sign}32"
        cases += [
            (
                f"mul24.lo.{kind} %0, %1, %2;",
                "r",
                "rr",
                lambda a, b, read=read: unsigned(read(a) * read(b), 32),
            ),
            (
                f"mul24.hi.{kind} %0, %1, %2;",
                "r",
                "rr",
                lambda a, b, read=read: unsigned(read(a) * read(b) >> 16, 32),
            ),
            (
                f"mad24.lo.{kind} %0, %1, %2, %3;",
                "r",
                "rrr",
                lambda a, b, c, read=read: unsigned(read(a) * read(b) + c, 32),
            ),
        ]
        for other in "us":

            def dot(a: int, b: int, c: int, sign: str = sign, other: str = other) -> int:
                pairs = (
                    (reader(sign, 8)(a >> at), reader(other, 8)(b >> at)) for at in (0, 8, 16, 24)
                )
                return unsigned(c + sum(x * y for x, y in pairs), 32)

            def dot_of_two(a: int, b: int, c: int, sign: str = sign, other: str = other) -> int:
                pairs = (
                    (reader(sign, 16)(a >> 16 * i), reader(other, 8)(b >> 16 + 8 * i))
                    for i in (0, 1)
                )
                return unsigned(c + sum(x * y for x, y in pairs), 32)

            cases += [
                (f"dp4a.{kind}.{other}32 %0, %1, %2, %3;", "r", "rrr", dot),
                (f"dp2a.hi.{kind}.{other}32 %0, %1, %2, %3;", "r", "rrr", dot_of_two),
            ]
    return cases


def is_read_apart(bits: int, position: int, length: int) -> bool:
    """Returns true if NVIDIA's documentation uses the low bytes, but an H100 the whole numbers."""
    return bits == 64 and max(position, length) > 255


def field(sign: str, bits: int, a: int, position: int, length: int) -> int | None:
    """Returns the field that `bfe` extracts, bit by bit."""
    if is_read_apart(bits, position, length):
        return None
    position, length = position & 255, length & 255
    last = min(position + length - 1, bits - 1)
    fill = sign == "s" and length > 0 and a >> last & 1
    taken = (
        a >> (position + i) & 1 if i < length and position + i < bits else fill for i in range(bits)
    )
    return sum(bit << i for i, bit in enumerate(taken))


def inserted(bits: int, a: int, b: int, position: int, length: int) -> int | None:
    """Returns the number that `bfi` makes, bit by bit."""
    if is_read_apart(bits, position, length):
        return None
    position, length = position & 255, length & 255
    taken = (
        a >> (i - position) & 1 if position <= i < position + length else b >> i & 1
        for i in range(bits)
    )
    return sum(bit << i for i, bit in enumerate(taken))


def highest_bit(sign: str, bits: int, a: int) -> int:
    """Returns the position of the highest bit that differs from the sign, or -1."""
    if sign == "s" and a >> (bits - 1):
        a = ~a & ((1 << bits) - 1)
    return a.bit_length() - 1


def permuted(a: int, b: int, digits: list[int]) -> int:
    """Returns the bytes that `prmt` selects; the digits start at the lowest byte."""
    both = (b << 32 | a).to_bytes(8, "little")
    taken = (both[digit & 7] for digit in digits)
    spread = ((byte >> 7) * 255 if digit & 8 else byte for digit, byte in zip(digits, taken))
    return int.from_bytes(bytes(spread), "little")


def of_bits() -> list[Case]:
    cases: list[Case] = []
    for bits in (32, 64):
        letter, kind = LETTERS[bits], f"b{bits}"
        cases += [
            (f"popc.{kind} %0, %1;", "r", letter, lambda a: a.bit_count()),
            (f"clz.{kind} %0, %1;", "r", letter, lambda a, bits=bits: bits - a.bit_length()),
            (
                f"brev.{kind} %0, %1;",
                letter,
                letter,
                lambda a, bits=bits: int(f"{a:0{bits}b}"[::-1], 2),
            ),
            (
                f"bfi.{kind} %0, %1, %2, %3, %4;",
                letter,
                letter * 2 + "rr",
                lambda a, b, c, d, bits=bits: inserted(bits, a, b, c, d),
            ),
        ]
        for sign in "us":
            cases += [
                (
                    f"bfe.{sign}{bits} %0, %1, %2, %3;",
                    letter,
                    letter + "rr",
                    lambda a, b, c, sign=sign, bits=bits: field(sign, bits, a, b, c),
                ),
                (
                    f"bfind.{sign}{bits} %0, %1;",
                    "r",
                    letter,
                    lambda a, sign=sign, bits=bits: unsigned(highest_bit(sign, bits, a), 32),
                ),
                (
                    f"bfind.shiftamt.{sign}{bits} %0, %1;",
                    "r",
                    letter,
                    lambda a, sign=sign, bits=bits: (
                        0xFFFFFFFF if (at := highest_bit(sign, bits, a)) < 0 else bits - 1 - at
                    ),
                ),
            ]
    for bits, letter in LETTERS.items():
        cases += [
            (f"and.b{bits} %0, %1, %2;", letter, letter * 2, lambda a, b: a & b),
            (f"or.b{bits} %0, %1, %2;", letter, letter * 2, lambda a, b: a | b),
            (f"xor.b{bits} %0, %1, %2;", letter, letter * 2, lambda a, b: a ^ b),
            (f"not.b{bits} %0, %1;", letter, letter, lambda a, bits=bits: unsigned(~a, bits)),
            (f"cnot.b{bits} %0, %1;", letter, letter, lambda a: int(a == 0)),
            (
                f"shl.b{bits} %0, %1, %2;",
                letter,
                letter + "r",
                lambda a, by, bits=bits: unsigned(a << min(by, bits), bits),
            ),
        ]
        cases += [
            (
                f"shr.{sign}{bits} %0, %1, %2;",
                letter,
                letter + "r",
                lambda a, by, sign=sign, bits=bits: unsigned(
                    reader(sign, bits)(a) >> min(by, bits), bits
                ),
            )
            for sign in "us"
        ]
    for mode in ("wrap", "clamp"):
        limit = (lambda by: by % 32) if mode == "wrap" else (lambda by: min(by, 32))
        cases += [
            (
                f"shf.l.{mode}.b32 %0, %1, %2, %3;",
                "r",
                "rrr",
                lambda a, b, by, limit=limit: unsigned((b << 32 | a) << limit(by) >> 32, 32),
            ),
            (
                f"shf.r.{mode}.b32 %0, %1, %2, %3;",
                "r",
                "rrr",
                lambda a, b, by, limit=limit: unsigned((b << 32 | a) >> limit(by), 32),
            ),
        ]

        def mask(position: int, width: int, mode: str = mode) -> int:
            if mode == "wrap":
                position, width = position % 32, width % 32
            return sum(1 << i for i in range(32) if position <= i < position + width)

        cases.append((f"bmsk.{mode}.b32 %0, %1, %2;", "r", "rr", mask))
        for sign in "us":

            def extended(
                a: int, width: int, sign: str = sign, limit: Callable[[int], int] = limit
            ) -> int:
                width = limit(width)
                return unsigned(reader(sign, width)(a), 32) if width else 0

            cases.append((f"szext.{mode}.{sign}32 %0, %1, %2;", "r", "rr", extended))
    for table in (0x96, 0xCA, 0xE8, 0x1B):

        def looked_up(a: int, b: int, c: int, table: int = table) -> int:
            rows = ((a >> i & 1) << 2 | (b >> i & 1) << 1 | (c >> i & 1) for i in range(32))
            return sum((table >> row & 1) << i for i, row in enumerate(rows))

        cases.append((f"lop3.b32 %0, %1, %2, %3, {table};", "r", "rrr", looked_up))
    modes = {
        "": lambda c: [c >> 4 * i & 15 for i in range(4)],
        ".f4e": lambda c: [(c & 3) + i for i in range(4)],
        ".b4e": lambda c: [((c & 3) - i) % 8 for i in range(4)],
        ".rc8": lambda c: [c & 3] * 4,
        ".ecl": lambda c: [max(c & 3, i) for i in range(4)],
        ".ecr": lambda c: [min(c & 3, i) for i in range(4)],
        ".rc16": lambda c: [2 * (c & 1) + i % 2 for i in range(4)],
    }
    cases += [
        (
            f"prmt.b32{mode} %0, %1, %2, %3;",
            "r",
            "rrr",
            lambda a, b, c, digits=digits: permuted(a, b, digits(c)),
        )
        for mode, digits in modes.items()
    ]
    cases += [
        ("mov.b64 %0, {%1, %2};", "l", "rr", lambda a, b: b << 32 | a),
        ("mov.b32 %0, {%1, %2};", "r", "hh", lambda a, b: b << 16 | a),
        (
            "{ .reg .b32 a, b; mov.b64 {a, b}, %1; sub.u32 %0, b, a; }",
            "r",
            "l",
            lambda a: unsigned((a >> 32) - a, 32),
        ),
        (
            "{ .reg .pred p, q; setp.lt.s32 p|q, %1, %2; selp.u32 %0, 1, 0, p;"
            " @q add.u32 %0, %0, 2; }",
            "r",
            "rr",
            lambda a, b: 1 if signed(a, 32) < signed(b, 32) else 2,
        ),
        (
            "{ .reg .pred p, q; setp.ne.u32 q, %3, 0; setp.ge.xor.u32 p, %1, %2, !q;"
            " selp.u32 %0, 1, 0, p; }",
            "r",
            "rrr",
            lambda a, b, c: int((a >= b) != (c == 0)),
        ),
        (
            "{ .reg .pred p, q; setp.lt.u32 p, %1, 9; setp.eq.u32 q, %2, 1; xor.pred p, p, q;"
            " not.pred p, p; or.pred p, p, q; selp.u32 %0, 1, 0, p; }",
            "r",
            "rr",
            lambda a, b: int(b == 1 or (a < 9) == (b == 1)),
        ),
    ]
    return cases


def conversions() -> list[Case]:
    """Returns conversions between integers, in registers of at least 16 bits."""
    cases: list[Case] = []
    kinds = [(sign, bits) for sign in "us" for bits in (8, 16, 32, 64)]
    for to_sign, to in kinds:
        whole = max(to, 16)
        result = LETTERS[whole]
        for from_sign, bits in kinds:
            read = reader(from_sign, bits)
            argument = LETTERS[max(bits, 16)]

            def converted(a: int, read=read, to_sign=to_sign, to=to, whole=whole) -> int:
                return unsigned(reader(to_sign, to)(read(a)), whole)

            def limited(a: int, read=read, to_sign=to_sign, to=to, whole=whole) -> int:
                return unsigned(clamp(read(a), to_sign, to), whole)

            names = f"{to_sign}{to}.{from_sign}{bits}"
            cases.append((f"cvt.{names} %0, %1;", result, argument, converted))
            holds_all = to >= bits if to_sign == from_sign else to_sign == "s" and to > bits
            if not holds_all:
                cases.append((f"cvt.sat.{names} %0, %1;", result, argument, limited))
    return cases
