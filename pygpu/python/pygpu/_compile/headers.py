"""Headers that kernels from source include. Those in the folder ``_kernel_headers`` take the place
of their ``#include`` lines; NVIDIA's own come from a toolkit or from packages on PyPI."""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from .. import _core
from .c_text import code_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

FOLDER = Path(__file__).parent.parent / "_kernel_headers"

# -- names of headers -------------------------------------------------------------------------


def _names(text: str) -> frozenset[str]:
    return frozenset(text.split())


# Headers of C++ that are those of C here.
OF_C = {
    "cassert": "assert.h",
    "cfloat": "float.h",
    "cinttypes": "inttypes.h",
    "climits": "limits.h",
    "ctime": "time.h",
}

# Headers of C++ that lie in the folder `std`. They are those of NVIDIA's package where it is there.
OF_STD_HERE = frozenset({"array", "functional", "limits", "tuple", "type_traits", "utility"})

# Headers of C++ that only NVIDIA's package has for kernels, in a namespace of its own.
OF_STD = frozenset({"initializer_list", "iterator", "numeric", "optional", "ratio", "variant"})
STD_TEXT = """#ifdef __HIP__
#error "the run-time compiler of HIP has no header {name}"
#else
#include <cuda/std/{name}>
namespace std {{
using namespace cuda::std;
}}
#endif
"""

# Headers of what kernels can't use or have unasked, which programs include for the host's functions
# or by habit.
OF_HOST = _names(
    """
    algorithm ctype.h cctype cerrno chrono deque cstdarg cstdbool errno.h exception fstream
    iomanip ios iostream istream list malloc.h map memory mutex new omp.h ostream pthread.h
    queue random set signal.h sstream stack stdarg.h stdbool.h stdexcept string sys/time.h
    thread typeinfo unistd.h unordered_map unordered_set values.h vector
    """
)

# What the run-time compilers have built in, for which programs include these out of habit.
BUILT_IN = _names(
    """
    cuda_runtime.h cuda_runtime_api.h device_functions.h device_launch_parameters.h
    driver_types.h math_functions.h surface_functions.h surface_types.h
    texture_fetch_functions.h texture_types.h vector_functions.h vector_types.h
    """
)

# The start of a header's name; the folder below `nvidia` and the package that hold it.
PACKAGES = (
    ("curand", "curand", "nvidia-curand-cu12"),
    ("cublas", "cublas", "nvidia-cublas-cu12"),
    ("cufft", "cufft", "nvidia-cufft-cu12"),
    ("cusparse", "cusparse", "nvidia-cusparse-cu12"),
    ("cusolver", "cusolver", "nvidia-cusolver-cu12"),
    ("cub/", "cuda_cccl", "nvidia-cuda-cccl-cu12"),
    ("thrust/", "cuda_cccl", "nvidia-cuda-cccl-cu12"),
    ("cuda/", "cuda_cccl", "nvidia-cuda-cccl-cu12"),
    ("nv/", "cuda_cccl", "nvidia-cuda-cccl-cu12"),
    ("crt/", "cuda_nvcc", "nvidia-cuda-nvcc-cu12"),
    ("", "cuda_runtime", "nvidia-cuda-runtime-cu12"),
)

# Starts of names that mean a header of NVIDIA's.
OF_NVIDIA: tuple[str, ...] = (
    "cu",
    "cooperative_groups",
    "crt/",
    "device_",
    "driver_",
    "math_",
    "mma.h",
    "nv/",
    "sm_",
)
OF_NVIDIA += ("surface_", "texture_", "thrust/", "vector_")

# Headers of the vendor's that only a compiler of whole programs takes: kernels have unasked what
# they can use of them.
OF_PROGRAMS = _names(
    """
    builtin_types.h channel_descriptor.h common_functions.h crt/device_double_functions.h
    crt/device_functions.h crt/host_config.h crt/host_defines.h crt/math_functions.h
    cuda_device_runtime_api.h cuda_profiler_api.h cuda_surface_types.h cuda_texture_types.h
    device_atomic_functions.h device_double_functions.h device_types.h host_config.h
    host_defines.h sm_20_atomic_functions.h sm_20_intrinsics.h sm_30_intrinsics.h
    sm_32_atomic_functions.h sm_32_intrinsics.h sm_35_atomic_functions.h sm_35_intrinsics.h
    sm_60_atomic_functions.h sm_61_intrinsics.h surface_indirect_functions.h
    texture_indirect_functions.h
    """
)

# A header that is in none of the packages.
OF_TOOLKITS = "nvfunctional"

# -- what texts have ---------------------------------------------------------------------------

# The header that texture and surface references are made of, and the one that has CUDA's names of
# textures for compilers that lack them.
REFERENCES = "pygpu-texture-references.hpp"
TEXTURES = "pygpu-cuda-textures.hpp"

_INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*([<"])([^>"\n]+)[>"]', re.MULTILINE)
_CONDITION = re.compile(r"^[ \t]*#[ \t]*(?:endif|else|elif)\b(?:[^\n]*\\\n)*[^\n]*$", re.MULTILINE)
_STATIC_REFERENCE = re.compile(r"\bstatic(?=\s+(?:texture|surface)\s*<)")
_TEXTURE = re.compile(
    r"\b(?:(?:tex|surf)[123]D|cuda(?:Texture|Surface|ReadMode|AddressMode|FilterMode|BoundaryMode))"
)
_ANY_INCLUDE = re.compile(r"#\s*include\b")

# Headers that nvcc includes in front of each program, and the names in them that run-time compilers
# do not have.
_UNASKED = {
    "stdint.h": r"u?int(?:8|16|32|64)_t|u?intptr_t|U?INT(?:8|16|32|64)_(?:MIN|MAX)",
    "limits.h": r"(?:CHAR|SCHAR|SHRT|INT|LONG|LLONG)_(?:MIN|MAX)|U(?:CHAR|SHRT|INT|LONG|LLONG)_MAX",
    "float.h": r"(?:FLT|DBL)_(?:EPSILON|MIN|MAX|DIG|MANT_DIG)",
    "math.h": r"M_(?:E|LOG2E|LOG10E|LN2|LN10|PI|PI_2|PI_4|1_PI|2_PI|2_SQRTPI|SQRT2|SQRT1_2)"
    r"|INFINITY|NAN|HUGE_VALF?|float_t|double_t",
    "assert.h": r"assert",
    "stddef.h": r"NULL|offsetof|ptrdiff_t",
    "math_constants.h": r"CUDART_\w+",
    "sys/types.h": r"u_(?:char|short|int|long|int(?:8|16|32|64)_t)|ssize_t|off_t",
}
# A macro of theirs that a program defines itself.
_REDEFINED = re.compile(
    rf"^[ \t]*#[ \t]*define[ \t]+({'|'.join(_UNASKED.values())})\b", re.MULTILINE
)
_STD = re.compile(r"\bstd\s*::")
# The headers of C++ that nvcc includes unasked.
_UNASKED_OF_STD = ["cmath", "cstddef", "cstdint", "cstdlib", "cstring"]
# A word that C++17 keeps and gives no meaning, and which compilers refuse.
_REGISTER = re.compile(r"\bregister\b")
_TYPEDEF = re.compile(r"\btypedef\s+([\w\s]+?)\s+(\w+)\s*;")

# Lines for AMD's compilers, which stay in a header for others; and a header's first ones, which
# include NVIDIA's in its place where they can.
_FOR_AMD = re.compile(r"#elif [^\n]*\n#include \"pygpu-hip-integers\.h\"\n")
_FOR_VENDORS = re.compile(
    r"(?:#define PYGPU_NVIDIAS_\w+ <[\w/]+>\n)?#if defined\(PYGPU_NVIDIAS_HEADERS\) && [^\n]*\n"
    r"#include [^\n]*\n(?:namespace std \{\n[^\n]*\n\}\n)?#el(?:se|if)( [^\n]*)?"
)

_MISSING = re.compile(
    r"""(?:open\ source\ file\ "([^"]+)"|fatal\ error:\ '([^']+)'\ file\ not\ found
    |fatal\ error:\ ([^\s:]+):\ No\ such\ file)""",
    re.VERBOSE,
)


def includes(source: str) -> list[str]:
    """Returns the names in the ``#include`` lines of a text."""
    return [found[2] for found in _INCLUDE.finditer(source)]


def own_texts(source: str, folders: Sequence[str]) -> Iterator[str]:
    """Yields a text and those of the program's own files that it includes, from ``folders``."""
    return _own_texts(source, folders, set())


def _own_texts(source: str, folders: Sequence[str], seen: set[str]) -> Iterator[str]:
    yield source
    for name in includes(source):
        paths = (os.path.join(folder, name) for folder in folders)
        path = next(filter(os.path.isfile, paths), None)
        if path is not None and path not in seen:
            seen.add(path)
            with open(path, encoding="utf-8", errors="replace") as file:
                yield from _own_texts(file.read(), [*folders, os.path.dirname(path)], seen)


def has_includes(source: str) -> bool:
    """Whether a text may include a file, by whatever spelling."""
    return _ANY_INCLUDE.search(source.replace("\\\n", "")) is not None


def names_textures(source: str) -> bool:
    """Whether a text may have one of CUDA's names of textures or surfaces."""
    return _TEXTURE.search(source) is not None


def with_visible_references(source: str) -> str:
    """Returns a text with spaces in place of ``static`` before references. AMD's runtime finds no
    such variable, and its compiler takes one that the text does not write for a constant.
    """
    code = code_of(source)
    for found in reversed(list(_STATIC_REFERENCE.finditer(code))):
        source = f"{source[: found.start()]}{' ' * len(found[0])}{source[found.end() :]}"
    return source


def of_std(source: str) -> list[str]:
    """Returns the headers of the C++ library that a source includes and that are this package's."""
    return [it for it in of_cpp(source) if it in OF_STD_HERE and not _is_of_vendor(it)]


def unasked(source: str, folders: Sequence[str]) -> str:
    """Returns what nvcc includes unasked, as far as a text may use it; its own headers in
    ``folders`` may use any of ``std``. A header is left out whose types the text defines otherwise.
    """
    code = code_of(source)
    own = dict(_types(code))
    headers = [it for it, names in _UNASKED.items() if re.search(rf"\b(?:{names})\b", code)]
    if folders or _STD.search(code):
        headers += _UNASKED_OF_STD
    lines = [
        f"#include <{header}>\n"
        for header in headers
        if all(own.get(name, words) == words for name, words in _types(_own(header) or ""))
    ]
    if _REGISTER.search(code):
        lines.append("#define register\n")
    return "".join(lines)


def _types(code: str) -> Iterator[tuple[str, list[str]]]:
    """Yields the names that a text declares as types, and the words of each type."""
    for words, name in _TYPEDEF.findall(code):
        # `long` and `int long` are one type.
        yield name, sorted(word for word in words.split() if word != "int")


_TEXTS: dict[str, str | None] = {}


def _own(name: str) -> str | None:
    """The text of a header of this package, with those in it that it includes."""
    if name in OF_HOST:
        return ""
    if name in OF_STD:
        return STD_TEXT.format(name=name)
    if name in OF_STD_HERE:
        return None if _is_of_vendor(name) else _file(FOLDER / "std", name)
    if name.startswith("thrust/") and _is_of_vendor(name):
        return None
    if name not in _TEXTS:
        on_amd = _core.choose_backend() == "hip"
        _TEXTS[name] = _file(FOLDER / "hip", name) if on_amd else None
        if _TEXTS[name] is None:
            _TEXTS[name] = _file(FOLDER, OF_C.get(name, name))
    return _TEXTS[name]


def _is_of_vendor(name: str) -> bool:
    """Whether a header of the C++ library, or of Thrust, is NVIDIA's."""
    if _core.choose_backend() != "cuda":
        return False
    if name.startswith("thrust/"):
        return vendor_folder(name) is not None
    return name in OF_STD_HERE and vendor_folder(f"cuda/std/{name}") is not None


def _file(folder: Path, name: str) -> str | None:
    path = folder / name
    is_own = ".." not in path.parts and path.is_relative_to(folder) and path.is_file()
    return _INCLUDE.sub(_nested, path.read_text()) if is_own else None


def _nested(found: re.Match[str]) -> str:
    own = _own(found[2])
    return found[0] if own is None else own


def insert(source: str, file: str, folders: Iterable[str]) -> str:
    """Returns a source with the headers of this package in it, except those in ``folders``, which
    are the program's own. Lines keep their numbers in the compiler's messages.
    """
    folders = list(folders)
    code = code_of(source)

    def text(found: re.Match[str]) -> str:
        name = found[2]
        if "#" not in code[found.start() : found.end()]:
            return found[0]
        if any(os.path.isfile(os.path.join(folder, name)) for folder in folders):
            return found[0]
        own = _own(name)
        if own is None:
            is_left_out = name in BUILT_IN and vendor_folder(name) is None
            return "" if is_left_out or name in OF_PROGRAMS else found[0]
        # What follows on the line, a comment perhaps, is part of a line of its own.
        line = source.count("\n", 0, found.end()) + 1
        return f'#line 1 "{name}"\n{own}#line {line} "{file}"\n'

    places = [(it, text(it)) for it in _INCLUDE.finditer(source)]
    return _replaced(source, code, file, [*places, *_redefined(source, code, file)])


def with_own_macros(source: str, file: str) -> str:
    """Returns a source in which definitions of macros that unasked headers have replace those."""
    code = code_of(source)
    return _replaced(source, code, file, list(_redefined(source, code, file)))


def _redefined(source: str, code: str, file: str) -> Iterator[tuple[re.Match[str], str]]:
    for found in _REDEFINED.finditer(code):
        line = source.count("\n", 0, found.start()) + 1
        yield found, f'#undef {found[1]}\n#line {line} "{file}"\n{found[0]}'


def _replaced(source: str, code: str, file: str, places: list[tuple[re.Match[str], str]]) -> str:
    """Returns a source with texts in place of some matches; its lines keep their numbers."""

    def counted(found: re.Match[str]) -> str:
        # The #line behind a header that was left out was left out, too.
        if code[found.start() : found.end()] != found[0]:
            return found[0]
        return f'{found[0]}\n#line {source.count(chr(10), 0, found.end()) + 2} "{file}"'

    inserted = [it.end() for it, new in places if new != it[0]]
    if inserted:
        later = _CONDITION.finditer(source, min(inserted))
        places += [(it, counted(it)) for it in later]
    for found, new in sorted(places, key=lambda place: place[0].start(), reverse=True):
        source = source[: found.start()] + new + source[found.end() :]
    return source


def closed(text: str) -> str:
    """Returns a text, which includes none of the vendors' headers, without what is for those. A
    text that reads no file is compiled once for all processes.
    """
    return _FOR_VENDORS.sub(lambda found: f"#if{found[1] or ' 1'}", _FOR_AMD.sub("", text))


def program(name: str) -> str | None:
    """Returns the path of a program of the system, or None."""
    # Its module takes a while to import, with all of its archives' formats.
    from shutil import which

    return which(name)


def toolkits() -> Iterator[Path]:
    """Yields the folders in which CUDA toolkits may be installed."""
    for variable in ("CUDA_ROOT", "CUDA_PATH", "CUDA_HOME"):
        if root := os.environ.get(variable):
            yield Path(root)
    if (nvcc := program("nvcc")) is not None:
        yield Path(nvcc).parent.parent
    yield Path("/usr/local/cuda")


def _candidates(name: str) -> Iterator[Path]:
    for root in toolkits():
        yield root / "include"
    component = next(folder for start, folder, _ in PACKAGES if name.startswith(start))
    for entry in filter(None, sys.path):
        packages = Path(entry) / "nvidia"
        yield packages / component / "include"
        yield packages / "cuda_nvcc" / "include"
        yield from sorted(packages.glob("cu[0-9]*/include"), reverse=True)


def vendor_folder(name: str) -> str | None:
    """Returns the folder in which a header of NVIDIA's lies, or None."""
    found = (folder for folder in _candidates(name) if (folder / name).is_file())
    folder = next(found, None)
    return None if folder is None else str(folder)


def of_vendor(source: str) -> list[str]:
    """Returns the headers that a source includes and that are NVIDIA's and here."""
    names = (name for name in includes(source) if name.startswith(OF_NVIDIA))
    return [name for name in dict.fromkeys(names) if vendor_folder(name) is not None]


def of_cpp(source: str) -> list[str]:
    """Returns the headers of the C++ library that a source includes."""
    return [name for name in dict.fromkeys(includes(source)) if name.isidentifier()]


def first(source: str) -> list[str]:
    """Returns those headers that a source for GPUs includes which come before `extern "C"`."""
    return of_vendor(source) + list(filter(_is_of_vendor, of_cpp(source)))


def vendor_folders(source: str) -> list[str]:
    """Returns the folders of NVIDIA's headers that a source includes, and of those behind them."""
    names = of_vendor(source)
    names += [f"cuda/std/{name}" for name in filter(_is_of_vendor, of_cpp(source))]
    if not names:
        return []
    # What NVIDIA's headers include lies in other packages.
    behind = ("cuda_runtime.h", "nv/target", "crt/host_defines.h")
    folders = map(vendor_folder, [*names, *behind])
    return list(dict.fromkeys(folder for folder in folders if folder is not None))


def advice(log: str, backend: str) -> str:
    """Returns a sentence for each header of NVIDIA's that a compiler has not found."""
    missing = dict.fromkeys(next(filter(None, found.groups())) for found in _MISSING.finditer(log))
    sentences = []
    for name in missing:
        if backend == "host" and name.startswith(OF_NVIDIA):
            sentences.append(f"{name} is for NVIDIA's compiler; kernels on the host do without it")
        elif name == OF_TOOLKITS:
            sentences.append(f"{name} comes with a CUDA toolkit, whose folder CUDA_HOME names")
        elif name.startswith(OF_NVIDIA):
            package = next(package for start, _, package in PACKAGES if name.startswith(start))
            sentences.append(
                f"{name} comes with the package {package} (pip install {package}), or with a CUDA "
                "toolkit, whose folder CUDA_HOME names"
                + ("; it may be for NVIDIA's compiler alone" if backend == "hip" else "")
            )
    return "\n".join(sentences)


def search_options(folders: Sequence[str], vendors: Sequence[str]) -> list[str]:
    """Returns the options that name folders of headers: a program's, the vendor's, and those of
    this package, of which those for AMD's compilers come before what NVIDIA's have.
    """
    own = [FOLDER / "hip"] if _core.choose_backend() == "hip" else []
    return [f"-I{folder}" for folder in (*folders, *own, *vendors, FOLDER, FOLDER / "std")]
