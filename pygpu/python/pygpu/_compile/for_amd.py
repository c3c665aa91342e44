"""What CUDA C has in every program, and AMD's compilers lack: words, functions, and functions of
warps, which the header in front has by the type of their mask."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from .. import _core
from . import headers as _headers
from .c_text import code_of, declares_references
from .macros import NAMES_OF_HIP

if TYPE_CHECKING:
    from collections.abc import Sequence

# Words without which a program means the same, and one that AMD's compilers have another way.
_WORDS = {
    "__grid_constant__": "",
    "__nv_pure__": "",
    "__maxnreg__": "(count)",
    "__cluster_dims__": "(...)",
    "__block_size__": "(...)",
    "__inline_hint__": " inline",
    "__builtin_align__": "(bytes) __attribute__((aligned(bytes)))",
}
_WORD = re.compile(rf"\b(?:{'|'.join(_WORDS)})\b")
_FUNCTION = re.compile(
    r"\b(?:__(?:ldca|ldcg|ldcs|ldlu|ldcv|stwb|stcg|stcs|stwt|trap|brkpt|nanosleep|tanhf)|u(?:min|max)"
    r"|u?ll(?:min|max)|atomic(?:Add|Sub|Exch|Min|Max|And|Or|Xor|Inc|Dec|CAS)_block"
    r"|fdivide|atomic(?:Inc|Dec)_system)\b"
)
_PLACE = r"\b(?:threadIdx|blockIdx|blockDim|gridDim)\b"
# Functions with a stated rounding, which a program's macros may put together.
_ROUNDED = re.compile(
    r"\b__(?:[fd](?:add|sub|mul|div|rcp|sqrt)|fmaf?|fmaf_ieee|frsqrt|(?:double|u?int|u?ll)2float"
    r"|(?:uint|u?ll)2double|float2u?ll|double2u?(?:int|ll))_r[nduz]\b"
    r"|##\s*(?:\w*_)?r[nduz]\b|\b__\w*\s*##"
)
_HALF = r"(?:float|u?short|u?int|u?ll)2half_r[duz]|half2u?(?:short|int|ll)_r[nduz]|double2half"
_ROUNDED_HALF = re.compile(rf"\b__(?:{_HALF})\b")
# Several numbers in a word.
_PACKED = re.compile(r"\b__v\w+[24]\b")
_DOT = re.compile(r"\b__dp(?:4a|2a_(?:lo|hi))\b")
# What AMD's compilers have with another type of result, or not for all arguments.
_COUNTED = ("__popc", "__popcll", "__ffs", "__ffsll", "__fns", "__umul24")
_COUNTS = re.compile(rf"\b(?:{'|'.join(_COUNTED)})\b")
_OVERLOADED = re.compile(
    r"\b(?:min|max|fm(?:ax|in|od|a)|fdim|pow|atan2|hypot|nextafter|remainder|exp10|sincos(?:pi)?"
    r"|(?:sin|cos)pi|r(?:sqrt|cbrt)|[jy][01n]|erfc?inv|erfcx|normcdf(?:inv)?|cyl_bessel_i[01]"
    r"|atomic(?:Min|Max|CAS)(?:_system)?|__hadd)\s*\("
)
_OBJECT = re.compile(r"\b(?:new|delete|virtual)\b")
_OWN_MEMORY = re.compile(r"\boperator\s+(?:new|delete)\b")
# A function of a program's own that AMD's headers have, too, for types of which CUDA C has none.
_OWN = re.compile(
    r"[\w*&>]\s+[*&]?\s*(atomic(?:Add|Sub|Exch|Min|Max|CAS)|__lane_id|__lanemask_[lg][te])"
    r"\s*\((?:[^()]|\([^()]*\))*\)\s*(?:noexcept\s*)?(?:->\s*\w+\s*)?(?:\\\n\s*)?\{"
)
_VECTOR = re.compile(
    r"\b(?:make_)?(?:u?(?:char|short|int|long|longlong)|float|double)[1-4]\b"
    rf"|\bcu(?:Float|Double)?Complex\b|{_PLACE}\b(?!\s*\.)"
)
_WHOLE_PLACE = re.compile(rf"{_PLACE}(?!\s*\.)")
_DECLARED_PLACE = re.compile(rf"\b(?:u?int3|dim3)[\s&*]+(?:\w+\s*,\s*)*{_PLACE}")
# Headers of CUDA's in the text that they have on the host. A program's lines that include them find
# files without a text in the folder for AMD's compilers.
_OF_HOST = {
    f"{it}.h": f"{it}.h"
    for it in (
        "cuComplex",
        "curand_globals",
        "curand_kernel",
        "curand_mrg32k3a",
        "curand_normal",
        "curand_philox4x32_x",
        "curand_poisson",
        "curand_uniform",
    )
}
_OF_HOST |= dict.fromkeys(("cuda_bf16.h", "cuda_bf16.hpp"), "cuda_c/hip_bf16.h")
_FORWARDED = """extern "C++" template <class T, class U>
__device__ inline T pygpu_own_{name}(T* place, U value) {{ return {name}(place, (T)value); }}
"""
_FORWARDED_CAS = """extern "C++" template <class T, class U, class V>
__device__ inline T pygpu_own_{name}(T* place, U expected, V value) {{
    return {name}(place, (T)expected, (T)value);
}}
"""
_PATTERNS = (_WORD, _FUNCTION, _ROUNDED, _ROUNDED_HALF, _PACKED, _DOT, _COUNTS, _OVERLOADED)
_ANY = re.compile("|".join(it.pattern for it in (*_PATTERNS, _OBJECT, _OWN)))


def in_front(texts: Sequence[str]) -> str:
    """Returns the lines that define what a program's texts name."""
    included = {it for text in texts for it in _headers.includes(text)}
    headers = {_OF_HOST[name] for name in included & _OF_HOST.keys()}
    code = "\n".join(map(code_of, texts)) if any(map(_ANY.search, texts)) else ""
    if _PACKED.search(code):
        headers.add("cuda_c/simd.h")
    if _DOT.search(code):
        headers.add("cuda_c/dot_products.h")
    lines = [_text_of_host(name) for name in sorted(headers)]
    if _COUNTS.search(code):
        lines.append(_text_of_host("cuda_c/counts.h", _COUNTED))
    for name in sorted(set(_WORD.findall(code))):
        lines.append(f"#ifndef {name}\n#define {name}{_WORDS[name]}\n#endif\n")
    if _FUNCTION.search(code):
        lines.append("#include <pygpu-amd-functions.hpp>\n")
    if _OVERLOADED.search(code):
        lines.append("#include <pygpu-amd-overloads.hpp>\n")
    if _ROUNDED.search(code):
        lines.append("#include <pygpu-amd-rounding.hpp>\n")
    if _ROUNDED_HALF.search(code):
        lines.append("#include <pygpu-amd-half-rounding.hpp>\n")
    if _OBJECT.search(code) and not _OWN_MEMORY.search(code):
        lines.append("#include <pygpu-amd-objects.hpp>\n")
    lines += map(_beside_own, sorted(set(_OWN.findall(code))))
    return "".join(lines)


def _beside_own(name: str) -> str:
    """The lines that rename a program's own function, so that AMD's for other types stand beside
    it.
    """
    other = _FORWARDED_CAS if name == "atomicCAS" else _FORWARDED
    template = "" if name.startswith("__") else other
    return f"{template.format(name=name)}#define {name} pygpu_own_{name}\n"


def vectors(code: str) -> str:
    """Returns the lines that make a program's vector types plain structures, if it has any."""
    if not _VECTOR.search(code):
        return ""
    has_textures = declares_references(code) or _headers.names_textures(code)
    lines = f"#include <{_headers.TEXTURES}>\n" if has_textures else ""
    if _WHOLE_PLACE.search(code) and not _DECLARED_PLACE.search(code):
        lines += "#define PYGPU_WHOLE_PLACES\n"
    return f"{lines}#include <pygpu-cuda-vectors.hpp>\n"


def _text_of_host(name: str, renamed: Sequence[str] = ()) -> str:
    """The text that a header has on the host, whose functions without a qualifier are the device's,
    too. ``renamed`` stand beside AMD's functions of these names.
    """
    text = "".join(f"#define {it} pygpu{it}\n" for it in renamed)
    text += (
        "#pragma clang force_cuda_host_device begin\n"
        f"{_core.header_of_host(name)}#pragma clang force_cuda_host_device end\n"
    )
    is_there = name.startswith("cuda_c/")
    return f"#ifndef __GPUARRAY_HOST__\n{text}#endif\n" if is_there else text


# -- warps --------------------------------------------------------------------------------------

_WARPS = "pygpu-cuda-warps.hpp"
# The header of CUDA's groups, and the start of the names of those behind it. HIP's lies elsewhere.
_GROUPS = "cooperative_groups"

_WARP_FUNCTION = re.compile(
    r"\b__(?:(?:shfl(?:_up|_down|_xor)?|ballot|any|all|match_(?:any|all)"
    r"|reduce_(?:add|min|max|and|or|xor))_sync|syncwarp|activemask)\b"
)
_OWN_WARP_MACRO = re.compile(rf"#[ \t]*define[ \t]+(?:{_WARP_FUNCTION.pattern}|warpSize\b)")
_OWN_WARP_FUNCTION = re.compile(rf"({_WARP_FUNCTION.pattern})\s*\(([^;{{}}()]*)\)\s*\{{")
_VECTOR_VALUE = re.compile(r"\b(?:u?(?:char|short|int|long|longlong)|float|double)[1-4]\b|[<:]")
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
_COUNTED_BITS = r"\b__(?:popc|ffs|clz|brev)ll\s*\(\s*"
_NAME = re.compile(r"\b[A-Za-z_]\w*")


def warps_in_front(texts: Sequence[str]) -> str:
    """Returns the lines for functions of warps. ``warpSize`` and ``__activemask``, which have no
    mask, are CUDA's in texts that are CUDA's alone, else the device's: a program for HIP keeps its
    meaning.
    """
    code = "\n".join(code_of(text) for text in texts)
    names = [name for text in texts for name in _headers.includes(text)]
    has_groups = any(name.startswith(_GROUPS) for name in names)
    if _WARP_FUNCTION.search(code) is None and not (has_groups and _WITHOUT_MASK.search(code)):
        return ""
    lines = f"#include <{_WARPS}>\n"
    is_of_hip = any(map(_OF_HIP.search, names))
    if _WITHOUT_MASK.search(code) and not is_of_hip and _is_of_cuda(code, has_groups):
        lines = f"#define PYGPU_WARPS_OF_32\n{lines}"
    if _OWN_WARP_MACRO.search(code):
        lines += '#pragma clang diagnostic ignored "-Wmacro-redefined"\n'
    return lines + "".join(f"#undef {name}\n" for name in sorted(_own_functions(code)))


def _own_functions(code: str) -> set[str]:
    """The functions that a text defines itself, except those for structures."""
    own = set()
    for found in _OWN_WARP_FUNCTION.finditer(code):
        name, parameters = found.groups()
        before = code[max(code.rfind(it, 0, found.start()) for it in ";{}#") + 1 : found.start()]
        value = parameters.split(",")[1] if "," in parameters else ""
        types = "|".join(_NAME.findall(value)[:-1] or ["int"])
        head = rf"\b(?:struct|class|union)\b[\w\s(]*\b(?:{types})\b[\w\s)]*[:;{{]"
        structure = rf"{head}|\}}\s*(?:{types})\s*;"
        if "template" in before or not (_VECTOR_VALUE.search(value) or re.search(structure, code)):
            own.add(name)
    return own


def _is_of_cuda(code: str, has_groups: bool) -> bool:
    """Whether a text is CUDA's alone: it has lanes by CUDA's functions or groups, nothing of HIP,
    and no mask of more than 32 bits.
    """
    if _OF_HIP.search(code):
        return False
    active = set(_ACTIVE.findall(code))
    if re.search(rf"{_COUNTED_BITS}(?:{'|'.join([*active, '__activemask'])})\b", code):
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
