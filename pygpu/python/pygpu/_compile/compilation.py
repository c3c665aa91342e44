"""The compilation of CUDA C: what is put in front of a program, and the compiler that it needs."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from .. import _arguments, _core, compiler, driver
from .._driver.device import Context
from .._errors import CompileError, Unsupported
from . import headers as _headers
from . import macros as _macros
from . import nvcc as _nvcc
from .c_text import declares_references, with_attributes_in_front

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

__all__ = ["compile", "compile_plain"]

_FILE = "kernel.cu"

# What nvcc takes from the host's sys/types.h without being asked.
_UNASKED = (
    "typedef unsigned int uint;\ntypedef unsigned short ushort;\ntypedef unsigned long ulong;\n"
)


def compile(
    source: str,
    nvcc: str = "nvcc",
    options: Sequence[str] | None = None,
    keep: bool = False,
    no_extern_c: bool = False,
    arch: str | None = None,
    code: str | None = None,
    cache_dir: str | bool | None = None,
    include_dirs: Sequence[str] | None = None,
    target: str = "cubin",
) -> bytes:
    """Compiles CUDA C for the current device, by NVRTC, hipRTC or the host's C++ compiler.

    Raises ``CompileError`` if the source is refused; ``stderr`` is the compiler's log.
    Raises ``Unsupported`` if the backend has no compiler, or ``nvcc`` is needed and missing, and
    ``AssertionError`` for another ``target``.

    Parameters
    ----------
    source : str. The text.
    nvcc : str. A path to a compiler in place of this name has that compiler run, for NVIDIA's
        devices.
    options : sequence of str, optional. Options of the compiler; ``DEFAULT_NVCC_FLAGS`` by default.
        Those for a host compiler have no effect.
    keep : bool. Writes source and result to a new folder and prints its name; with ``-G`` on the
        host, a debugger shows that source.
    no_extern_c : bool. Whether the source is compiled as it is, not inside ``extern "C" { ... }``.
    arch, code : str, optional. The architecture, ``sm_90`` for example, and the code to make for
        it, as ``nvcc`` has them; the device's by default.
    cache_dir : str or bool, optional. Has no effect; see `PYGPU_CACHE` and `PYGPU_CACHE_DIR`.
    include_dirs : sequence of str, optional. Folders of included files.
    target : {"cubin", "ptx", "fatbin"}. Code for the device, text for the vendor's other devices,
        or what only ``nvcc`` makes.

    Examples
    --------
    >>> from pygpu import compiler
    >>> code = compiler.compile("__global__ void nothing() {}")
    >>> driver.module_from_buffer(code).get_function("nothing")(block=(1, 1, 1))
    """
    if target not in ("cubin", "ptx", "fatbin"):
        raise AssertionError(f'target is {target!r}; allowed are "cubin", "ptx" and "fatbin"')
    flags = _texts("options", compiler.DEFAULT_NVCC_FLAGS if options is None else options)
    for name, value in (("nvcc", nvcc), ("arch", arch), ("code", code), ("target", target)):
        if value is not None:
            _arguments.instance(name, value, str)
    if driver.CUDA_DEBUGGING:
        keep = True
        flags.append("-G")
    folders = _texts("include_dirs", include_dirs or ())
    if isinstance(source, bytes | bytearray):
        kind = type(source).__name__
        raise TypeError(f"source is of type {kind}; a str is needed, such as source.decode()")
    if not no_extern_c:
        # PyCUDA formats it into the wrapper: programs hand over what writes itself as source.
        source = str(source)
    _arguments.instance("source", source, str)
    # A mark of byte order, as editors of some systems write it, is none in the middle of a text.
    source = source.removeprefix("\ufeff")
    backend = _core.choose_backend()
    if _nvcc.is_asked_for(nvcc, flags, target):
        return _nvcc.compile(nvcc, source, flags, keep, no_extern_c, arch, code, folders, target)
    if target == "ptx" and backend != "cuda":
        raise Unsupported(
            f'target is "ptx", which the backend {backend} does not have; allowed is "cubin", and '
            "SourceModule loads what is compiled"
        )
    if target == "fatbin":
        allowed = '"cubin" or "ptx"' if backend == "cuda" else '"cubin"'
        raise Unsupported(f"run-time compilers make no fat binaries; use target={allowed}")
    flags = _nvcc.without_host_options(flags)
    folders = [*_macros.folders_of_options(flags), *folders]
    on_host = _core.runs_kernels_on_host()
    unasked = _headers.unasked(source, folders)
    texts = list(_headers.own_texts(source, folders))
    given, text, asked, defined = flags, source, "", ""
    if not on_host:
        flags, asked, defined = _macros.of_options(flags, backend)
        # A program's macros in front of its lines are none of these headers'.
        unasked += "".join(f"#include <{name}>\n" for name in _headers.of_std(source))
        text = _headers.insert(source, _FILE, folders)
        unasked = _headers.insert(unasked, _FILE, ())
        text = with_attributes_in_front(text, backend)
    wrapper = ("", "")
    if not no_extern_c:
        # Headers with templates come first, and their own lines add nothing.
        first = _headers.of_cpp(text) if on_host else _headers.first(text)
        included = "".join(f"#include <{name}>\n" for name in first)
        wrapper = (f'{included}extern "C" {{\n', "\n}\n")
    references = ""
    if any(map(declares_references, texts)) and _core.has_textures():
        references = f"#include <{_headers.REFERENCES}>\n"
        # Such variables are written without a qualifier, and belong to the device.
        flags.append("-default-device")
        if backend == "hip":
            text = _headers.with_visible_references(text)
    elif backend == "hip" and any(map(_headers.names_textures, texts)):
        references = f"#include <{_headers.TEXTURES}>\n"
    if backend == "hip":
        from .for_amd import warps_in_front  # what other devices do not need

        references += asked + warps_in_front(texts)
    references += _macros.in_front(texts, backend)
    vendors = () if on_host or not _headers.has_includes(text) else _headers.vendor_folders(text)
    if vendors:
        unasked = f"#define PYGPU_NVIDIAS_HEADERS\n{unasked}"
    folder = _kept(source) if keep else None
    # A debugger shows the lines of a file that is there.
    file = folder / _FILE if folder is not None and on_host else _FILE
    if on_host:
        text = _headers.with_own_macros(text, str(file))
    before = _UNASKED + unasked
    if not on_host:
        references = _headers.insert(references, _FILE, ())
    text = f'{references}{defined}{wrapper[0]}#line 1 "{file}"\n{text}{wrapper[1]}'
    if not on_host and not vendors:
        before, text = map(_headers.closed, (before, text))
    if target == "ptx":
        arch = _virtual(arch or Context.get_device().architecture())
    elif code is not None:
        arch = code
    if arch is not None:
        flags.append(f"-arch={arch}")
    if on_host:
        flags += [*(f"-I{folder}" for folder in folders), f"-idirafter{_headers.FOLDER}"]
    elif folders or _headers.has_includes(before + text):
        flags += _headers.search_options(folders, vendors)
    try:
        if backend == "hip":
            search = _headers.search_options(folders, vendors)
            result, log = _compiled_for_amd(before, text, flags, search, texts)
        else:
            result, log = _compiled(before + text, flags)
    except CompileError as error:
        command = [f"--{target}", *given, *(it for it in flags if it not in given), _FILE]
        log = "\n".join(filter(None, (error.detail, _headers.advice(error.detail, backend))))
        failure = CompileError(f"compilation of {_FILE} failed", command, stdout="", stderr=log)
        failure.status, failure.call, failure.detail = error.status, error.call, error.detail
        raise failure from None
    if log:
        from warnings import warn  # few programs have warnings

        warn(f"The CUDA compiler succeeded, but said the following:\n{log}", stacklevel=3)
    if folder is not None:
        (folder / f"kernel.{target}").write_bytes(result)
        print(f"*** compiler output in {folder}")
    return result


def compile_plain(
    source: str,
    options: Sequence[str],
    keep: bool,
    nvcc: str,
    cache_dir: str | bool | None,
    target: str = "cubin",
) -> bytes:
    """Compiles CUDA C as it is: :func:`compile` with ``no_extern_c``.

    Other arguments are as in :func:`compile`. Raises ``CompileError``, ``Unsupported`` and
    ``AssertionError`` as that does.

    Parameters
    ----------
    source : str. The text.
    options : sequence of str. Options of the compiler, also ``-arch``, ``-code`` and ``-I``.
        Without ``-arch`` the code is for the current device; nvcc's would be for its oldest one.

    Examples
    --------
    >>> from pygpu import compiler
    >>> source = 'extern "C" __global__ void nothing() {}'
    >>> code = compiler.compile_plain(source, [], keep=False, nvcc="nvcc", cache_dir=None)
    """
    left: list[str] = []
    words: dict[str, str | None] = {"-arch": None, "-code": None}
    rest = iter(_texts("options", options))
    for option in rest:
        name, sign, value = option.partition("=")
        if name in words:
            words[name] = value if sign else next(rest, None)
        else:
            left.append(option)
    return compile(
        source,
        nvcc,
        left,
        keep,
        no_extern_c=True,
        arch=words["-arch"],
        code=words["-code"],
        cache_dir=cache_dir,
        target=target,
    )


def _compiled(text: str, flags: list[str]) -> tuple[bytes, str]:
    """Compiles a text. Functions and variables for the host that NVIDIA's compiler refuses, and
    nvcc leaves out, are compiled for the device.
    """
    for_device = "-default-device"
    try:
        return _core.compile_source(text, _FILE, flags)
    except CompileError as error:
        if for_device not in (error.detail or "") or for_device in flags:
            raise
        try:
            return _core.compile_source(text, _FILE, [*flags, for_device])
        except CompileError:
            raise error from None


def _compiled_for_amd(
    before: str, text: str, flags: list[str], search: list[str], texts: list[str]
) -> tuple[bytes, str]:
    """Compiles a text after another one; with plain vector types if AMD's compiler refuses it."""
    try:
        return _compiled(before + text, flags)
    except CompileError as error:
        vectors = _headers.insert(_macros.vectors(texts), _FILE, ())
        if not vectors:
            raise
        try:
            return _compiled(before + vectors + text, [*flags, *search])
        except CompileError:
            raise error from None


def _texts(name: str, values: Any) -> list[str]:
    """Returns the entries of a sequence of texts or paths."""
    if isinstance(values, str):
        raise TypeError(f"{name} is the text {values!r}; a sequence of texts is needed")
    try:
        return [os.fsdecode(value) for value in values]
    except TypeError as error:
        raise TypeError(f"{name} is {values!r}; a sequence of texts is needed") from error


def _virtual(arch: str) -> str:
    """The architecture of PTX for an architecture of code."""
    if arch.startswith("compute_"):
        return arch
    if not arch.startswith("sm_"):
        raise Unsupported(f"there is no PTX for the architecture {arch!r}")
    return "compute_" + arch.removeprefix("sm_")


def _kept(source: str) -> Path:
    """Writes a source to a new folder, where its code is kept, too."""
    # For few programs.
    from pathlib import Path
    from tempfile import mkdtemp

    folder = Path(mkdtemp())
    (folder / _FILE).write_text(source)
    return folder
