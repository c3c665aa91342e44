"""The compilation of CUDA C by the compiler that a program needs."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from .. import _arguments, _core, compiler, driver
from .._driver.device import Context
from .._errors import CompileError, Unsupported
from . import nvcc as _nvcc
from . import waiting as _waiting

if TYPE_CHECKING:
    from pathlib import Path


_FILE = "kernel.cu"


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

    Raises ``CompileError`` if the source is refused: its text has each error with the line, and
    ``stderr`` is the compiler's log.
    Raises ``Unsupported`` if there is no compiler for the backend, or if ``nvcc`` is needed and
    missing. Raises ``AssertionError`` for another ``target``.

    >>> code = compiler.compile("__global__ void nothing() {}")
    >>> driver.module_from_buffer(code).get_function("nothing")(block=(1, 1, 1))

    Parameters
    ----------
    source : str. The text.
    nvcc : str. For NVIDIA's devices, the path of a compiler that is run instead.
    options : sequence of str, optional. Options of the compiler; ``DEFAULT_NVCC_FLAGS`` by default.
        Options for a host compiler are ignored.
    keep : bool. Writes source and result to a new folder and prints its name; with ``-G`` on the
        host, a debugger shows that source.
    no_extern_c : bool. True to compile the source as it is, not inside ``extern "C" { ... }``.
    arch, code : str, optional. The architecture, for example ``sm_90``, and the kind of code, as in
        ``nvcc``; by default those of the device.
    cache_dir : str or bool, optional. Ignored; see `PYGPU_CACHE` and `PYGPU_CACHE_DIR`.
    include_dirs : sequence of str, optional. Folders of included files.
    target : {"cubin", "ptx", "fatbin"}. Code for the device, text for the vendor's other devices,
        or a fat binary, which only ``nvcc`` makes.
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
        with _waiting.told(source, kept=False):
            return _nvcc.compile(
                nvcc, source, flags, keep, no_extern_c, arch, code, folders, target
            )
    if target == "ptx" and backend != "cuda":
        raise Unsupported(
            f'target is "ptx", which the backend {backend} does not have; allowed is "cubin", '
            "which SourceModule loads"
        )
    if target == "fatbin":
        allowed = '"cubin" or "ptx"' if backend == "cuda" else '"cubin"'
        raise Unsupported(f"run-time compilers make no fat binaries; use target={allowed}")
    given = list(flags)
    folder = _kept(source) if keep else None
    file = _FILE
    if folder is not None and _core.runs_kernels_on_host():
        file = str(folder / _FILE)  # a debugger shows the lines of a file that exists
    if target == "ptx":
        arch = _virtual(arch or Context.get_device().architecture())
    elif code is not None:
        arch = code
    if arch is not None:
        flags.append(f"-arch={arch}")
    try:
        packages = list(filter(None, sys.path))
        program = (source, file, flags, folders, packages, not no_extern_c)
        # The code of a text that may include a program's own files is not kept.
        reads_files = bool(folders) or any(flag.startswith(("-I", "-isystem")) for flag in flags)
        with _waiting.told(source, kept=not reads_files):
            result, log = _core.compile_program(program)
    except CompileError as error:
        command = [f"--{target}", *given, _FILE]
        log = error.stderr or error.detail
        failure = CompileError(f"compilation of {_FILE} failed", command, stdout="", stderr=log)
        failure.status, failure.call, failure.detail = error.status, error.call, error.detail
        raise failure from None
    _nvcc.tell(log, stacklevel=4)
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

    ``options`` may include ``-arch``, ``-code`` and ``-I``. Without ``-arch`` the code is for the
    current device; nvcc would compile for its oldest one. Other arguments are as in
    :func:`compile`. Raises ``CompileError``, ``Unsupported`` and ``AssertionError`` as that does.

    >>> source = 'extern "C" __global__ void nothing() {}'
    >>> code = compiler.compile_plain(source, [], keep=False, nvcc="nvcc", cache_dir=None)
    """
    left: list[str] = []
    how: dict[str, Any] = {"cache_dir": cache_dir, "target": target}
    rest = iter(_texts("options", options))
    for option in rest:
        name, sign, value = option.partition("=")
        if name in ("-arch", "-code"):
            how[name[1:]] = value if sign else next(rest, None)
        else:
            left.append(option)
    return compile(source, nvcc, left, keep, no_extern_c=True, **how)


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
        raise Unsupported(f"arch is {arch!r}, which has no PTX; use one of NVIDIA's")
    return "compute_" + arch.removeprefix("sm_")


def _kept(source: str) -> Path:
    """Writes a source to a new folder, in which the code is kept also."""
    # Few programs need these.
    from pathlib import Path
    from tempfile import mkdtemp

    folder = Path(mkdtemp())
    (folder / _FILE).write_text(source)
    return folder
