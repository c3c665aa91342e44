"""Modules of compiled kernels, including modules that are linked from several sources."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from .. import _arguments, _core, compiler, driver
from .._core import Linker, module_from_buffer
from .._driver.device import Context
from .._errors import Unsupported

if TYPE_CHECKING:
    from .._driver.textures import SurfaceReference, TextureReference

# A launch of a kernel by another, or a call of a function that CUDA's runtime has for kernels.
_OF_RUNTIME = re.compile(r"<<<|\bcuda[A-Z]\w*\s*\(")


def _check_arch(arch: str | None) -> None:
    """Warns if the architecture is newer than the device's."""
    if arch is not None:
        _arguments.instance("arch", arch, str)
    digits = "".join(filter(str.isdigit, arch or ""))
    if digits and divmod(int(digits), 10) > Context.get_device().compute_capability():
        from warnings import warn  # few programs have warnings

        warn("trying to compile for a compute capability higher than selected GPU", stacklevel=3)


def _options(options: Sequence[str] | None) -> list[str]:
    """Returns all options of a compilation for which the program has passed ``options``."""
    return list(compiler.DEFAULT_NVCC_FLAGS if options is None else options)


def _unit(source: str, no_extern_c: bool) -> str:
    """Returns the source of a program as it is compiled."""
    return str(source) if no_extern_c else f'extern "C" {{\n{source}\n}}'


def _how(*values: Any) -> dict[str, Any]:
    """Returns the arguments of a compilation, apart from source and options, by their names."""
    names = ("nvcc", "keep", "no_extern_c", "arch", "code", "cache_dir", "include_dirs")
    return dict(zip(names, values))


class CudaModule:
    """The base of the classes of compiled modules: ``module`` is the loaded module, or None.

    >>> module = compiler.SourceModule("__global__ void nothing() {}")
    >>> isinstance(module, compiler.CudaModule)
    True
    >>> module.get_function("nothing")(block=(1, 1, 1))
    >>> unbound = driver.TextureReference()  # where the device has textures
    >>> module = compiler.SourceModule('''
    ... __constant__ int number;
    ... texture<float, 1> row;
    ... surface<void, 2> image;
    ... __global__ void use(float *x) {
    ...     *x = tex1Dfetch(row, number);
    ...     surf2Dwrite(*x, image, 0, 0);
    ... }''')
    >>> module.get_global("number")[1], module.get_texref("row").get_flags()
    (4, 0)
    >>> type(module.get_surfref("image")).__name__
    'SurfaceReference'
    """

    module: Any = None

    def get_function(self, name: str) -> _core.Function:
        """Returns the kernel ``name`` of the module."""
        return self.module.get_function(name)

    def get_global(self, name: str) -> tuple[int, int]:
        """Returns the address and the size in bytes of the module's variable ``name``."""
        return self.module.get_global(name)

    def get_texref(self, name: str) -> TextureReference:
        """Returns the texture reference that the module declares as ``texture<...>`` under
        ``name``. Raises ``Unsupported`` if the device does not support textures."""
        return self.module.get_texref(name)

    def get_surfref(self, name: str) -> SurfaceReference:
        """Returns the surface reference that the module declares as ``surface<...>`` under
        ``name``. Raises ``Unsupported`` if the device does not support surfaces."""
        return self.module.get_surfref(name)


def _compiled(*given: Any) -> _core.Module:
    """Returns the module of these arguments; copies and pickles of the module contain them."""
    source, _, options, _, no_extern_c = given[:5]
    module = module_from_buffer(compiler.compile(*given))
    module._describe(_unit(source, no_extern_c), _options(options))
    module._made = _compiled, given
    return module


class SourceModule(CudaModule):
    """A module compiled from CUDA C, ``source``, for the current device.

    Other arguments are as in :func:`pygpu.compiler.compile`. Raises ``CompileError`` if the source
    is refused; ``stderr`` is the compiler's log. Raises ``Unsupported`` without a compiler for the
    backend.

    >>> source = "__global__ void twice(float *x) { x[threadIdx.x] *= 2; }"
    >>> twice = compiler.SourceModule(source).get_function("twice")
    >>> a = gpuarray.to_gpu(np.ones(3, np.float32))
    >>> twice(a, block=(3, 1, 1))
    >>> a.get()
    array([2., 2., 2.], dtype=float32)
    """

    def __init__(
        self,
        source: str,
        nvcc: str = "nvcc",
        options: Sequence[str] | None = None,
        keep: bool = False,
        no_extern_c: bool = False,
        arch: str | None = None,
        code: str | None = None,
        cache_dir: str | bool | None = None,
        include_dirs: Sequence[str] | None = None,
    ) -> None:
        _check_arch(arch)
        how = nvcc, options, keep, no_extern_c, arch, code, cache_dir, include_dirs
        self.module = _compiled(source, *how)

    def __reduce__(self) -> tuple[Any, ...]:
        """Copies and pickles contain the source, and compile it for their own device."""
        return type(self), self.module._made[1]


class DynamicModule(CudaModule):
    """A module linked from several sources, files and libraries: add them, then call :meth:`link`.
    The methods return the module.

    ``link_options`` are pairs for the linker: a ``driver.jit_option`` and a value.
    ``message_handler`` is called with the outcome and the linker's log; ``log_verbose`` makes the
    log verbose. ``cuda_libdir`` is the folder for :meth:`add_stdlib`, the toolkits' by default.
    Other arguments are as in :func:`pygpu.compiler.compile`. Raises ``Unsupported`` if the backend
    does not link.

    >>> module = compiler.DynamicModule()
    >>> _ = module.add_source("__global__ void first() {}", name="first.ptx")
    >>> _ = module.add_source("__global__ void second() {}", name="second.ptx")
    >>> module.link().get_function("second")(block=(1, 1, 1))
    >>> import tempfile
    >>> code = compiler.compile("__global__ void third() {}", target="ptx")
    >>> kind, other = driver.jit_input_type.PTX, compiler.DynamicModule()
    >>> with tempfile.NamedTemporaryFile(suffix=".ptx") as file:
    ...     _ = file.write(code)
    ...     file.flush()
    ...     _ = other.add_file(file.name, kind)
    >>> source = "__global__ void fourth() {}"
    >>> _ = other.add_data(compiler.compile(source, target="ptx"), kind, "fourth.ptx")
    >>> other.link().get_function("third")(block=(1, 1, 1))
    """

    def __init__(
        self,
        nvcc: str = "nvcc",
        link_options: Any = None,
        keep: bool = False,
        no_extern_c: bool = False,
        arch: str | None = None,
        code: str | None = None,
        cache_dir: str | bool | None = None,
        include_dirs: Sequence[str] | None = None,
        message_handler: Any = None,
        log_verbose: bool = False,
        cuda_libdir: str | None = None,
    ) -> None:
        self.linker: Linker | None = Linker(message_handler, link_options, log_verbose)
        _check_arch(arch)
        self._how = _how(nvcc, keep, no_extern_c, arch, code, cache_dir, include_dirs)
        self.cuda_libdir = cuda_libdir
        self._texts: list[tuple[str, list[str]]] = []

    def _open_linker(self) -> Linker:
        if self.linker is None:
            raise ValueError("the module is linked already")
        return self.linker

    def add_source(
        self, source: str, nvcc_options: Sequence[str] | None = None, name: str = "kernel.ptx"
    ) -> DynamicModule:
        """Compiles ``source``, CUDA C, with ``nvcc_options`` (by default ``DEFAULT_NVCC_FLAGS``),
        and adds the code; messages call it ``name``. Libraries (``-lcudadevrt``) are left to
        :meth:`add_stdlib`.

        Raises ``CompileError`` if the source is refused, and ``Unsupported`` for devices that do
        not take PTX, all except NVIDIA's.
        """
        self._open_linker()
        if (backend := _core.choose_backend()) != "cuda":
            raise Unsupported(
                f"DynamicModule.add_source: the backend {backend} has no PTX to link; "
                "SourceModule and DynamicSourceModule compile one source there"
            )
        options = _options(nvcc_options)
        self._texts.append((_unit(source, self._how["no_extern_c"]), options))
        ptx = compiler.compile(source, options=options, target="ptx", **self._how)
        return self.add_data(ptx, driver.jit_input_type.PTX, name)

    def add_data(self, data: Any, input_type: int, name: str = "unknown") -> DynamicModule:
        """Adds code: ``data`` is bytes or a buffer, ``input_type`` the kind
        (``driver.jit_input_type``). Messages call the code ``name``.
        """
        self._open_linker().add_data(data, input_type, name)
        return self

    def add_file(self, filename: str, input_type: int) -> DynamicModule:
        """Adds code of the kind ``input_type`` (``driver.jit_input_type``) from the file
        ``filename``. Raises ``OSError`` if it cannot be read.
        """
        self._open_linker().add_file(filename, input_type)
        return self

    def add_stdlib(self, libname: str) -> DynamicModule:
        """Adds a library of the vendor's toolkit: ``libname`` is ``cudadevrt`` for kernels that
        launch others. Raises ``OSError`` if the library is not found.
        """
        return self.add_file(
            _find_library(libname, self.cuda_libdir), driver.jit_input_type.LIBRARY
        )

    def link(self) -> DynamicModule:
        """Links the added sources and code, and loads the result."""
        linker, self.linker = self._open_linker(), None
        self.module = linker.link_module()
        for text, options in self._texts:
            self.module._describe(text, options)
        return self


class DynamicSourceModule(DynamicModule):
    """A module compiled from ``source``, CUDA C; kernels in it can launch kernels. It is linked
    with ``cudadevrt`` of CUDA's toolkit; ``cuda_libdir`` may name the folder. A source that
    launches no kernels is compiled as by :class:`SourceModule`, on every backend.

    Other arguments are as in :func:`pygpu.compiler.compile`. Raises ``CompileError`` if the source
    is refused, and ``OSError`` if the library is missing. Raises ``Unsupported`` without a
    compiler, or if the source launches kernels and the device is not NVIDIA's.

    >>> module = compiler.DynamicSourceModule("__global__ void nothing() {}")
    >>> module.get_function("nothing")(block=(1, 1, 1))
    """

    def __init__(
        self,
        source: str,
        nvcc: str = "nvcc",
        options: Sequence[str] | None = None,
        keep: bool = False,
        no_extern_c: bool = False,
        arch: str | None = None,
        code: str | None = None,
        cache_dir: str | bool | None = None,
        include_dirs: Sequence[str] | None = None,
        cuda_libdir: str | None = None,
    ) -> None:
        how = _how(nvcc, keep, no_extern_c, arch, code, cache_dir, include_dirs)
        if not _OF_RUNTIME.search(_core.code_of(source)):
            self.linker = None
            self.module = SourceModule(source, options=options, **how).module
            return
        super().__init__(cuda_libdir=cuda_libdir, **how)
        if _core.choose_backend() != "cuda":
            raise Unsupported(
                "DynamicSourceModule: kernels that launch kernels need the backend cuda; this is "
                f"{_core.choose_backend()}"
            )
        options = _options(options)
        if "-rdc=true" not in options:
            options.append("-rdc=true")
        self.add_source(source, options)
        self.add_stdlib("cudadevrt")
        self.link()


def _find_library(name: str, folder: str | None) -> str:
    """A static library of the toolkit: in ``folder``, or where toolkits are installed."""
    from pathlib import Path  # few programs link

    if folder is not None:
        folders = [Path(folder)]
    else:
        folders = [root / "lib64" for root in map(Path, _core.toolkits())]
        folders += map(Path, filter(None, os.environ.get("LD_LIBRARY_PATH", "").split(":")))
        folders.append(Path("/usr/lib/x86_64-linux-gnu"))
    for candidate in folders:
        path = candidate / f"lib{name}.a"
        if path.is_file():
            return str(path)
    looked = ", ".join(map(str, folders))
    raise OSError(
        f'CUDA SDK library file "lib{name}.a" not found in {looked}; give its folder as cuda_libdir'
    )
