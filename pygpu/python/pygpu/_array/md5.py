"""The text of ``curandom.md5_code``: what PyCUDA's ``rand`` hashes the place of a thread by.

The algorithm is that of R. Rivest, "The MD5 Message-Digest Algorithm" (RFC 1321), of one block of
64 bytes without padding.
"""

from __future__ import annotations

import math

# The words of the block, as PyCUDA has them; the program declares `seed`, `i` and `n`.
_WORDS = (
    *(f"{name}.{axis}" for name in ("threadIdx", "blockIdx") for axis in "xyz"),
    *("seed", "i", "n"),
    *(f"{name}.{axis}" for name in ("blockDim", "gridDim") for axis in "xyz"),
    "0",
)
_START = {"a": 0x67452301, "b": 0xEFCDAB89, "c": 0x98BADCFE, "d": 0x10325476}
# Of each round: the function; the first word, and the step to the next one; the rotations.
_ROUNDS = (
    ("({b} & {c} | ~{b} & {d})", 0, 1, (7, 12, 17, 22)),
    ("({b} & {d} | {c} & ~{d})", 1, 5, (5, 9, 14, 20)),
    ("({b} ^ {c} ^ {d})", 5, 3, (4, 11, 16, 23)),
    ("({c} ^ ({b} | ~{d}))", 0, 7, (6, 10, 15, 21)),
)


def code() -> str:
    """Returns statements that declare ``a``, ``b``, ``c`` and ``d``, and hash into them."""
    lines = [f"unsigned int {name} = {start:#x}u;" for name, start in _START.items()]
    for number, (function, first, step, rotations) in enumerate(_ROUNDS):
        for place in range(16):
            names = dict(zip("abcd", "abcd"[-place % 4 :] + "abcd"[: -place % 4], strict=True))
            a, b, s = names["a"], names["b"], rotations[place % 4]
            word = _WORDS[(first + step * place) % 16]
            constant = int(abs(math.sin(16 * number + place + 1)) * 2**32)
            lines += [
                f"{a} += {function.format(**names)} + (unsigned int)({word}) + {constant:#x}u;",
                f"{a} = ({a} << {s} | {a} >> {32 - s}) + {b};",
            ]
    lines += [f"{name} += {start:#x}u;" for name, start in _START.items()]
    return "\n".join(["", *lines, ""])
