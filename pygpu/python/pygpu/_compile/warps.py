"""CUDA's functions of warps in programs for AMD's devices.

The header in front of such a program has them by the type of their mask. What has no mask,
``warpSize`` and ``__activemask``, is CUDA's in texts that are CUDA's alone, and the device's in all
others: a program for HIP keeps its meaning.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from . import headers
from .c_text import code_of
from .macros import NAMES_OF_HIP

if TYPE_CHECKING:
    from collections.abc import Sequence

HEADER = "pygpu-cuda-warps.hpp"
# The header of CUDA's groups, and the start of the names of those behind it. HIP's lies elsewhere.
_GROUPS = "cooperative_groups"

_FUNCTION = re.compile(
    r"\b__(?:(?:shfl(?:_up|_down|_xor)?|ballot|any|all|match_(?:any|all)"
    r"|reduce_(?:add|min|max|and|or|xor))_sync|syncwarp|activemask)\b"
)
_OWN_MACRO = re.compile(rf"#[ \t]*define[ \t]+(?:{_FUNCTION.pattern}|warpSize\b)")
_OWN_FUNCTION = re.compile(rf"({_FUNCTION.pattern})\s*\(([^;{{}}()]*)\)\s*\{{")
_VECTOR = re.compile(r"\b(?:u?(?:char|short|int|long|longlong)|float|double)[1-4]\b|[<:]")
_WITHOUT_MASK = re.compile(r"\b(?:warpSize|__activemask)\b")

# What only programs for HIP have: its names, functions of lanes without masks, and its width.
_OF_HIP = re.compile(
    rf"{NAMES_OF_HIP}"
    r"|\b__(?:shfl(?:_up|_down|_xor)?|ballot(?:64)?|any|all|match_(?:any|all)|lane_id"
    r"|lanemask_[lg]t)\s*\(|\bwarpSize\s*[=!<>]=?\s*64\b|\b64\s*[=!<>]=?\s*warpSize\b"
)

# The mask of a call; values and types of more than 32 bits; what counts bits of such.
_MASK = re.compile(r"\b__(?:\w+_sync|syncwarp)\s*\(\s*((?:[^,()]|\([^()]*\))+)")
_WIDE = re.compile(
    r"\b0[xX][\dA-Fa-f']{9,}|\b(?:0[xX][\dA-Fa-f']+|\d[\d']*)[uU]?[lL]"
    r"|\b(?:long|ulong|size_t|u?int64_t|u?intptr_t)\b"
)
_ACTIVE = re.compile(r"\b(\w+)\s*[=({]\s*__activemask\b")
_COUNTED = r"\b__(?:popc|ffs|clz|brev)ll\s*\(\s*"
_NAME = re.compile(r"\b[A-Za-z_]\w*")


def in_front(texts: Sequence[str]) -> str:
    """Returns the lines that a program for AMD's devices needs in front of it, if one of its texts
    has functions of warps.
    """
    code = "\n".join(code_of(text) for text in texts)
    names = [name for text in texts for name in headers.includes(text)]
    has_groups = any(name.startswith(_GROUPS) for name in names)
    if _FUNCTION.search(code) is None and not (has_groups and _WITHOUT_MASK.search(code)):
        return ""
    lines = f"#include <{HEADER}>\n"
    is_of_hip = any(map(_OF_HIP.search, names))
    if _WITHOUT_MASK.search(code) and not is_of_hip and _is_of_cuda(code, has_groups):
        lines = f"#define PYGPU_WARPS_OF_32\n{lines}"
    if _OWN_MACRO.search(code):
        lines += '#pragma clang diagnostic ignored "-Wmacro-redefined"\n'
    return lines + "".join(f"#undef {name}\n" for name in sorted(_own_functions(code)))


def _own_functions(code: str) -> set[str]:
    """Returns the names that a text has functions of its own for. One for a structure stands beside
    those for numbers.
    """
    own = set()
    for found in _OWN_FUNCTION.finditer(code):
        name, parameters = found.groups()
        before = code[max(code.rfind(it, 0, found.start()) for it in ";{}#") + 1 : found.start()]
        value = parameters.split(",")[1] if "," in parameters else ""
        types = "|".join(_NAME.findall(value)[:-1] or ["int"])
        head = rf"\b(?:struct|class|union)\b[\w\s(]*\b(?:{types})\b[\w\s)]*[:;{{]"
        structure = rf"{head}|\}}\s*(?:{types})\s*;"
        if "template" in before or not (_VECTOR.search(value) or re.search(structure, code)):
            own.add(name)
    return own


def _is_of_cuda(code: str, has_groups: bool) -> bool:
    """Whether a text is CUDA's alone: it has lanes by CUDA's functions or groups, nothing of HIP,
    and no mask of more than 32 bits.
    """
    if _OF_HIP.search(code):
        return False
    active = set(_ACTIVE.findall(code))
    if re.search(rf"{_COUNTED}(?:{'|'.join([*active, '__activemask'])})\b", code):
        return False
    masks = [mask for mask in _MASK.findall(code) if mask.strip()]
    if not masks and "__activemask" not in code:
        return has_groups
    names = active.union(*map(_NAME.findall, masks))
    return not any(map(_WIDE.search, masks)) and not any(_is_wide(code, name) for name in names)


def _is_wide(code: str, name: str) -> bool:
    """Whether a text gives a name a type or a value of more than 32 bits."""
    declared = rf"(?:{_WIDE.pattern})[\s\w&*]*?(?:\w+\s*(?:=[^;,]*)?,\s*)*\b{name}\b\s*[=;,){{(]"
    values = re.findall(rf"(?:#[ \t]*define[ \t]+{name}\b|\b{name}\s*[={{])([^;\n]*)", code)
    return re.search(declared, code) is not None or any(map(_WIDE.search, values))
