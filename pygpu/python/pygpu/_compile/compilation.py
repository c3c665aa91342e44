"""The compilation of CUDA C, by a run-time compiler or by ``nvcc`` for programs that ask for it."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from .. import _arguments, _core, compiler, driver
from .._driver.device import Context
from .._errors import CompileError, Unsupported

if TYPE_CHECKING:
    import subprocess
    from pathlib import Path


__all__ = ["compile", "compile_plain", "get_nvcc_version", "preprocess_source"]

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

    Raises ``CompileError`` if the source has errors: the exception's text has each error with the
    line, and ``stderr`` is the compiler's log. Raises ``Unsupported`` if the backend does not have
    a compiler, or if ``nvcc`` is needed and missing, and ``AssertionError`` for another ``target``.

    >>> code = compiler.compile("__global__ void nothing() {}")
    >>> driver.module_from_buffer(code).get_function("nothing")(block=(1, 1, 1))

    Parameters
    ----------
    source : str. The text.
    nvcc : str. For NVIDIA's devices, the path of a compiler to run instead of NVRTC.
    options : sequence of str, optional. Options of the compiler; ``DEFAULT_NVCC_FLAGS`` by default.
        Options for a host compiler are ignored.
    keep : bool. Writes source and result to a new folder and prints its name; with ``-G`` on the
        host, a debugger shows that source.
    no_extern_c : bool. True to compile the source as it is, not inside ``extern "C" { ... }``.
    arch, code : str, optional. The architecture, for example ``sm_90``, and the kind of code, as in
        ``nvcc``; by default those of the device.
    cache_dir : str or bool, optional. Ignored; see `PYGPU_CACHE` and `PYGPU_CACHE_DIR`.
    include_dirs : sequence of str, optional. Folders of included files.
    target : {"cubin", "ptx", "fatbin"}. Code for the device, PTX for NVIDIA's other devices,
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
        # As in PyCUDA, the source may be any object whose str() is CUDA C, such as a template's.
        source = str(source)
    _arguments.instance("source", source, str)
    # Some editors begin a text with a byte-order mark; the compiler would refuse the mark.
    source = source.removeprefix("\ufeff")
    backend = _core.choose_backend()
    if _is_asked_for(nvcc, flags, target):
        with _told(source, kept=False):
            return _by_nvcc(nvcc, source, flags, keep, no_extern_c, arch, code, folders, target)
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
        with _told(source, kept=not reads_files):
            result, log = _core.compile_program(program)
    except CompileError as error:
        command = [f"--{target}", *given, _FILE]
        log = error.stderr or error.detail
        failure = CompileError(f"compilation of {_FILE} failed", command, stdout="", stderr=log)
        failure.status, failure.call, failure.detail = error.status, error.call, error.detail
        raise failure from None
    _tell(log, stacklevel=4)
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
    current device; nvcc would compile for an old device. Other arguments are as in :func:`compile`.
    Raises ``CompileError``, ``Unsupported`` and ``AssertionError`` as :func:`compile` does.

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
    """Returns the architecture of PTX, ``compute_90``, for one of machine code, ``sm_90``."""
    if arch.startswith("compute_"):
        return arch
    if not arch.startswith("sm_"):
        raise Unsupported(f"arch is {arch!r}, which has no PTX; use NVIDIA's, such as sm_90")
    return "compute_" + arch.removeprefix("sm_")


def _kept(source: str) -> Path:
    """Writes a source to a new folder, in which the compiled code is also stored."""
    # Few programs need these.
    from pathlib import Path
    from tempfile import mkdtemp

    folder = Path(mkdtemp())
    (folder / _FILE).write_text(source)
    return folder


# Seconds after which a user wonders what the program does.
_PATIENCE = 0.5
_OFF = ("0", "off", "false", "no")


def _is_watched() -> bool:
    """Returns true if a person sees what goes to stderr: on a terminal or in a notebook."""
    if os.environ.get("PYGPU_PROGRESS", "").strip().lower() in _OFF or sys.stderr is None:
        return False
    # A program may have put a stream of its own there, or closed it.
    try:
        return "ipykernel" in sys.modules or sys.stderr.isatty()
    except (AttributeError, ValueError):
        return False


@contextmanager
def _told(source: str, kept: bool) -> Iterator[None]:
    """If a compilation takes half a second, says on stderr which kernels are compiled, and whether
    the cache keeps the code."""
    if not _is_watched():
        yield
        return

    def tell() -> None:
        names = _core.kernel_names(source) or ["a module"]
        more = f" and {len(names) - 3} more" if len(names) > 3 else ""
        is_kept = kept and _core.code_cache() is not None
        later = "; the code is kept for later runs" if is_kept else ""
        print(f"pygpu: compiling {', '.join(names[:3])}{more}{later}", file=sys.stderr)

    import threading  # few programs are watched

    timer = threading.Timer(_PATIENCE, tell)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


# Options that run-time compilers do not have. nvcc is run for them if it is installed. Otherwise
# those with a value are ignored, and the code is for the current device.
_OF_NVCC_WITH_VALUE = ("-gencode", "--generate-code", "-code", "--gpu-code", "-x", "--x", "-odir")
_OF_NVCC = (*_OF_NVCC_WITH_VALUE, "-dryrun")


def _path(name: str) -> str | None:
    """Returns the path of a program of the system, or None."""
    # shutil imports the modules of all archive formats.
    from shutil import which

    return which(name)


def _is_asked_for(nvcc: str, options: Sequence[str], target: str) -> bool:
    """Returns True if a compilation names the path of ``nvcc``, or needs a feature only it has.
    A path that does not exist counts as the name ``nvcc``.
    """
    if _core.choose_backend() != "cuda":
        return False
    if nvcc != "nvcc":
        return os.path.basename(nvcc) != "nvcc" or _path(nvcc) is not None
    needed = target == "fatbin" or any(name in _OF_NVCC for name in map(_name, options))
    return needed and _path(nvcc) is not None


_versions: dict[str, str] = {}


def get_nvcc_version(nvcc: str) -> str:
    """Returns the version that ``nvcc``, a name or path, prints. Each program is run once.

    >>> import warnings
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("ignore")
    ...     "nvcc" in compiler.get_nvcc_version("nvcc")
    True
    """
    if nvcc not in _versions:
        program = _path(nvcc)
        done = None if program is None else _run([program, "--version"])
        known = done is not None and done.returncode == 0 and done.stdout
        if not known:
            from warnings import warn  # few programs have warnings

            warn("NVCC version could not be determined.", stacklevel=2)
        _versions[nvcc] = known or "nvcc unknown version"
    return _versions[nvcc]


def preprocess_source(source: str, options: Sequence[str], nvcc: str) -> str:
    """Returns ``source``, CUDA C, preprocessed with ``options`` by ``nvcc`` (a name or path).

    Raises ``OSError`` if that program does not exist, and ``CompileError`` if it refuses the
    source, or returns less than half of it.

    >>> try:
    ...     text = compiler.preprocess_source("int n = N;", ["-DN=3"], "nvcc")
    ... except OSError:
    ...     text = "int n = 3;"
    >>> text.strip().splitlines()[-1]
    'int n = 3;'
    """
    # For few programs.
    import tempfile
    from pathlib import Path

    program = _found(nvcc, FileNotFoundError)  # of PyCUDA's class
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "kernel.cu")
        path.write_text(source)
        command = [program, "--preprocess", *options, str(path), "--compiler-options", "-P"]
        done = _run(command)
        text = done.stdout.replace(str(path), "").replace(path.name, "")
    reason = None
    if done.returncode != 0:
        reason = "failed"
    elif len(text) < 0.5 * len(source):
        reason = "returned less than half of it: this may be no preprocessor"
    if reason is not None:
        what = f"nvcc preprocessing of {path.name} {reason}"
        raise CompileError(what, command, stderr=done.stderr)
    return text


def _found(nvcc: str, error: type[Exception]) -> str:
    """Returns the path of ``nvcc``. Raises the error if it is missing."""
    program = _path(nvcc)
    if program is None:
        raise error(f"nvcc is {nvcc!r}; a program that can be run is needed")
    return program


def _run(command: Sequence[str], cwd: str | None = None) -> subprocess.CompletedProcess[str]:
    import subprocess  # for few programs

    how: dict[str, Any] = {"capture_output": True, "text": True, "errors": "replace"}
    return subprocess.run(command, cwd=cwd, check=False, **how)


def _tell(log: str, stacklevel: int) -> None:
    """Shows the messages of a compiler as a warning, if there are any."""
    if log:
        from warnings import warn  # few programs have warnings

        warn(f"The CUDA compiler succeeded, but said the following:\n{log}", stacklevel=stacklevel)


def _name(option: str) -> str:
    return option.split("=", 1)[0]


def _by_nvcc(
    nvcc: str,
    source: str,
    options: Sequence[str],
    keep: bool,
    no_extern_c: bool,
    arch: str | None,
    code: str | None,
    include_dirs: Sequence[str],
    target: str,
) -> bytes:
    """Compiles CUDA C with ``nvcc``. The arguments are as in :func:`pygpu.compiler.compile`."""
    # Few programs need these, and they are slow to import.
    import tempfile
    from pathlib import Path

    program = _found(nvcc, Unsupported)
    name, text = "kernel.cu", source
    if not no_extern_c:
        source = f'extern "C" {{\n#line 1 "{name}"\n{source}\n}}\n'
    command = [program, f"--{target}", *options]
    if not any(_name(option) in ("-arch", "--gpu-architecture", "-gencode") for option in options):
        command += ["-arch", arch or Context.get_device().architecture()]
    if code is not None:
        command += ["-code", code]
    # This package's headers of C would hide the headers of the host's compiler.
    command += [f"-I{folder}" for folder in include_dirs]
    with tempfile.TemporaryDirectory() as folder:
        for header in ("pycuda-complex.hpp", "pycuda-helpers.hpp"):
            Path(folder, header).write_text(_core.header_text(header) or "")
        Path(folder, name).write_text(source)
        output = f"kernel.{target}"
        command += [f"-I{folder}", "-o", output, name]
        done = _run(command, folder)
        path = Path(folder, output)
        if done.returncode != 0 or not path.is_file():
            what = f"nvcc compilation of {name} failed"
            failure = CompileError(what, command, stdout=done.stdout, stderr=done.stderr)
            failure.detail = _core.diagnostics(done.stderr + done.stdout, text, name)
            raise failure
        result = path.read_bytes()
        if keep:
            kept = tempfile.mkdtemp()
            for file in os.listdir(folder):
                Path(kept, file).write_bytes(Path(folder, file).read_bytes())
            print(f"*** compiler output in {kept}")
    _tell(done.stdout + done.stderr, stacklevel=5)
    return result
