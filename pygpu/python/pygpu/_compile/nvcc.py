"""The compiler ``nvcc``, for programs that ask for it."""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING

from .. import _core
from .._driver.device import Context
from .._errors import CompileError, Unsupported
from . import headers as _headers

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Sequence

__all__ = ["get_nvcc_version", "preprocess_source"]


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


# Options that speak to the host's compiler or to nvcc's own work: code for a device is the same
# without them. These have a value; -e names kernels to make code for, which all are.
_WITH_VALUE = _words(
    """
    -Xcompiler --compiler-options -ccbin --compiler-bindir -Xlinker -default-stream --default-stream
    -Xcudafe -t --threads -e --entries -O --optimize -m --machine -Werror --Werror -cudart --cudart
    -time --time -keep-dir --keep-dir -Xnvlink --nvlink-options -Xarchive --archive-options
    """
)
# These have none; some are warnings of nvcc's front end.
_ALONE = _words(
    """
    -m64 -O0 -O1 -O2 -O3 -O4 -pg --profile -save-temps --save-temps -clean --clean-targets -g
    --debug -v --verbose -allow-unsupported-compiler --allow-unsupported-compiler
    -forward-unknown-to-host-compiler --forward-unknown-to-host-compiler -Wno-deprecated-gpu-targets
    -src-in-ptx --source-in-ptx -Wno-deprecated-declarations -Wreorder -Wdefault-stream-launch
    -Wmissing-launch-bounds -Wext-lambda-captures-this --keep -keep -cubin --cubin -shared -c
    -res-usage --resource-usage
    """
)
# What nvcc's front end refuses without them, and run-time compilers take or refuse with or without.
_ALONE |= _words(
    """
    -expt-relaxed-constexpr --expt-relaxed-constexpr -extended-lambda --extended-lambda
    -expt-extended-lambda --expt-extended-lambda
    """
)
# Architectures that stand for those of the devices at hand.
_ALONE |= {
    f"{name}={arch}"
    for name in ("-arch", "--gpu-architecture")
    for arch in ("native", "all", "all-major")
}
# Options of run-time compilers whose values look like options of the host.
_WITH_OPTIONS = ("-Xptxas", "--ptxas-options")

# A library, or a folder of libraries: only a linker reads those.
_LIBRARY = re.compile(r"-L.|-l(?!ineinfo$|ib$|ink$).")

# Options for which there is nothing in a run-time compiler: nvcc is run for them where it is there.
# Where it is not, code for the device at hand is what programs want of those that have a value.
_OF_NVCC_WITH_VALUE = ("-gencode", "--generate-code", "-code", "--gpu-code", "-x", "--x", "-odir")
_OF_NVCC = (*_OF_NVCC_WITH_VALUE, "-dryrun")

# Options whose value may be the next one, which run-time compilers want behind a sign.
_JOINED = {
    "-std": "-std=",
    "--std": "-std=",
    "-isystem": "-I",
    "--system-include": "-I",
}


def is_asked_for(nvcc: str, options: Sequence[str], target: str) -> bool:
    """Returns whether a compilation for NVIDIA's devices names ``nvcc`` or needs what only it has.
    A path of ``nvcc`` that does not exist is as good as the name.
    """
    if _core.choose_backend() != "cuda":
        return False
    if nvcc != "nvcc":
        return os.path.basename(nvcc) != "nvcc" or _headers.program(nvcc) is not None
    needed = target == "fatbin" or any(name in _OF_NVCC for name in map(_name, options))
    return needed and _headers.program(nvcc) is not None


_versions: dict[str, str] = {}


def get_nvcc_version(nvcc: str) -> str:
    """Returns what the program ``nvcc``, a name or path, prints as its version. It is run once for
    each.

    >>> import warnings
    >>> from pygpu import compiler
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("ignore")
    ...     "nvcc" in compiler.get_nvcc_version("nvcc")
    True
    """
    if nvcc not in _versions:
        program = _headers.program(nvcc)
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

    >>> from pygpu import compiler
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

    program = _found(nvcc)
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


def _found(nvcc: str) -> str:
    """The path of ``nvcc``. Without one the exception is of PyCUDA's class."""
    program = _headers.program(nvcc)
    if program is None:
        raise FileNotFoundError(f"nvcc is {nvcc!r}, and there is no such program to run")
    return program


def _run(command: Sequence[str]) -> subprocess.CompletedProcess[str]:
    import subprocess  # for few programs

    return subprocess.run(command, capture_output=True, text=True, errors="replace", check=False)


def _name(option: str) -> str:
    return option.split("=", 1)[0]


def without_host_options(options: Sequence[str]) -> list[str]:
    """Returns the options without those that make no difference to code for a device."""
    left = []
    rest = iter(options)
    for option in rest:
        name, sign, value = option.partition("=")
        if name in _WITH_VALUE or name in _OF_NVCC_WITH_VALUE:
            if not sign:
                next(rest, None)
        elif option in _WITH_OPTIONS:
            left += [option, *filter(None, [next(rest, None)])]
        elif name in _JOINED:
            left.append(_JOINED[name] + (value if sign else next(rest, "")))
        elif not (option in _ALONE or _LIBRARY.match(option)):
            left.append(option)
    return left


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
    """Compiles CUDA C with ``nvcc``; the arguments are those of :func:`pygpu.compiler.compile`."""
    # What few programs need, and takes a while to import.
    import subprocess
    import tempfile
    from pathlib import Path

    program = _headers.program(nvcc)
    if program is None:
        raise Unsupported(f"nvcc is {nvcc!r}, and there is no such program to run")
    name = "kernel.cu"
    if not no_extern_c:
        source = f'extern "C" {{\n#line 1 "{name}"\n{source}\n}}\n'
    command = [program, f"--{target}", *options]
    if not any(_name(option) in ("-arch", "--gpu-architecture", "-gencode") for option in options):
        command += ["-arch", arch or Context.get_device().architecture()]
    if code is not None:
        command += ["-code", code]
    # The own headers of C would hide those of the host's compiler.
    command += [f"-I{folder}" for folder in include_dirs]
    with tempfile.TemporaryDirectory() as folder:
        for header in _headers.FOLDER.glob("pycuda-*.hpp"):
            Path(folder, header.name).write_text(header.read_text())
        Path(folder, name).write_text(source)
        output = f"kernel.{target}"
        command += [f"-I{folder}", "-o", output, name]
        done = subprocess.run(
            command, cwd=folder, capture_output=True, text=True, errors="replace", check=False
        )
        path = Path(folder, output)
        if done.returncode != 0 or not path.is_file():
            raise CompileError(
                f"nvcc compilation of {name} failed",
                command,
                stdout=done.stdout,
                stderr=done.stderr,
            )
        result = path.read_bytes()
        if keep:
            kept = tempfile.mkdtemp()
            for file in os.listdir(folder):
                Path(kept, file).write_bytes(Path(folder, file).read_bytes())
            print(f"*** compiler output in {kept}")
    if done.stdout or done.stderr:
        from warnings import warn  # few programs have warnings

        log = done.stdout + done.stderr
        warn(f"The CUDA compiler succeeded, but said the following:\n{log}", stacklevel=4)
    return result
