"""The compiler ``nvcc``, for programs that ask for it."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from .. import _core
from .._driver.device import Context
from .._errors import CompileError, Unsupported

if TYPE_CHECKING:
    import subprocess

__all__ = ["get_nvcc_version", "preprocess_source"]


# Options that run-time compilers do not have. nvcc is run for them if it is installed. Otherwise
# those with a value are ignored, and the code is for the current device.
_OF_NVCC_WITH_VALUE = ("-gencode", "--generate-code", "-code", "--gpu-code", "-x", "--x", "-odir")
_OF_NVCC = (*_OF_NVCC_WITH_VALUE, "-dryrun")


def _path(name: str) -> str | None:
    """Returns the path of a program of the system, or None."""
    # shutil imports the modules of all archive formats.
    from shutil import which

    return which(name)


def is_asked_for(nvcc: str, options: Sequence[str], target: str) -> bool:
    """Returns whether a compilation for NVIDIA's devices names ``nvcc`` or needs what only it has.
    A path of ``nvcc`` that does not exist is as good as the name.
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
    """Returns CUDA C, ``source``, as the preprocessor of ``nvcc``, a name or path, leaves it with
    ``options``.

    Raises ``OSError`` if there is no such program, and ``CompileError`` if it refuses the source,
    or returns less than half of it.

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


def tell(log: str, stacklevel: int) -> None:
    """Warns of what a compiler has said, if anything."""
    if log:
        from warnings import warn  # few programs have warnings

        warn(f"The CUDA compiler succeeded, but said the following:\n{log}", stacklevel=stacklevel)


def _name(option: str) -> str:
    return option.split("=", 1)[0]


def compile(
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
    tell(done.stdout + done.stderr, stacklevel=5)
    return result
