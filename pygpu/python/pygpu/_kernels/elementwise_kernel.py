"""The class of kernels of elements around a program's statements."""

from __future__ import annotations

from _thread import allocate_lock as _allocate_lock
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from .. import _core
from .._errors import CompileError
from . import snippets as _snippets
from .elementwise_source import FROM_RANGE, get_elwise_kernel_and_types, source_of
from .snippets import Strides

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from .._driver.textures import TextureReference
    from ..compiler import SourceModule

__all__ = ["ElementwiseKernel"]


class _Modules:
    """The modules of one source on one device, as one module to a texture reference: what is bound
    to a reference is bound in each, also in those that are compiled later."""

    def __init__(self) -> None:
        self._lock = _allocate_lock()
        self._modules: list[Any] = []
        self._bound: dict[str, tuple[str, Any]] = {}

    def __bool__(self) -> bool:
        return bool(self._modules)

    def add(self, module: Any) -> None:
        """Adds a module, before its kernels are launched."""
        with self._lock:
            for name, (call, value) in self._bound.items():
                getattr(module, call)(name, value)
            self._modules.append(module)

    def get_global(self, name: str) -> tuple[int, int]:
        """The reference in one of them."""
        return self._modules[0].get_global(name)

    def _bind(self, name: str, made: Any) -> None:
        self._in_each("_bind", name, made)

    def _refuse(self, name: str, detail: str) -> None:
        self._in_each("_refuse", name, detail)

    def _in_each(self, call: str, name: str, value: Any) -> None:
        with self._lock:
            for module in self._modules:
                getattr(module, call)(name, value)
            self._bound[name] = (call, value)


class _Generator:
    """The source of one kernel in each arrangement of its arrays; takes what the kernel was made
    with, and keeps it: a kernel that runs is not changed by what its object gets later."""

    def __init__(
        self,
        modules: dict[int, _Modules],
        arguments: str | Iterable[Any],
        operation: str,
        name: str,
        keep: bool,
        options: Sequence[str] | None,
        preamble: str,
        loop_prep: str,
        after_loop: str,
    ) -> None:
        texts = {"preamble": preamble, "loop_prep": loop_prep, "after_loop": after_loop}
        _snippets.check_text(operation=operation, name=name, **texts)
        declared = _snippets.parse(arguments, operation, *texts.values())
        if not any(it.is_vector for it in declared):
            raise AssertionError(
                "ElementwiseKernel can only be used with functions that have at least one vector "
                f"argument; arguments is {arguments!r}"
            )
        self._arguments = declared
        self._usage = _snippets.Usage(
            declared, operation, preamble, [loop_prep, after_loop], options
        )
        self._packs = self._usage.in_packs()
        sizes = [it.argument.dtype.itemsize for it in declared if it.name in self._packs]
        fit = bool(sizes) and all(size in (1, 2, 4, 8) for size in sizes)
        self._pack = 16 // max(sizes) if fit else 1
        self._name, self._texts = name, (operation, name, *texts.values())
        self._keep, self._options = keep, options
        self._modules = modules
        self._has_references = _core.declares_references(preamble)

    def definition(self) -> tuple[_Generator, str, list[Any], bool, int, bool]:
        """Returns what the launcher has to know."""
        declaration = _snippets.declaration(self._arguments, self._usage)
        sequential = self._usage.is_sequence(self._packs)
        return self, self._name, declaration, self._usage.order_free, self._pack, sequential

    def _build(
        self, ranged: bool, packed: bool, wide: bool, ranks: tuple[int, ...]
    ) -> tuple[_core.Function]:
        """Compiles a variant, for the launcher."""

        def build(strides: Strides, packs: Any = None) -> tuple[_core.Function]:
            source = source_of(
                self._arguments,
                *self._texts,
                added=FROM_RANGE if ranged else ("size_t n",),
                ranged=ranged,
                strides=strides,
                packs=packs,
                pack=self._pack,
            )
            module = _snippets.module_of(source, self._options, self._keep).module
            if self._has_references:
                self._modules.setdefault(_core.current_ordinal(), _Modules()).add(module)
            return (module.get_function(self._name),)

        if packed:
            try:
                return build(Strides(), self._packs)
            except CompileError:
                # Statements that need the elements where they lie in memory; or that are wrong,
                # which the plain source says better. It serves each element with a thread.
                pass
        return _snippets.build_strided(build, Strides(ranks, wide), self._name)


class ElementwiseKernel(_core.ElementwiseLauncher):
    """A kernel that runs a program's statements for each element of its arrays.

    Other arguments are as in :class:`pygpu.compiler.SourceModule`.

    Parameters
    ----------
    arguments : str or sequence of VectorArg and ScalarArg. The arguments as C declares them:
        ``"float a, float *x, const int *y"``. Work on other streams may read what is declared
        ``const`` at the same time, unless the statements write it all the same.
    operation : str. Statements for the element ``i``: ``"y[i] = a * x[i]"``. ``n`` is the number of
        elements.
    name : str. The kernel's name.
    preamble : str. Source before the kernel: functions, structures, ``#include`` lines.
    loop_prep, after_loop : str. Statements of each thread before and after its elements.

    Notes
    -----
    Nothing is read or compiled before the first call, as in PyCUDA, so that an object can be made
    before its types are registered. Errors in its source appear at each call. The source is
    compiled once more for each other way in which arrays lie in memory.

    A call takes the arguments, ``range`` or ``slice`` (the indices ``i``, which count the elements
    of the first array) and ``stream``. It raises, before anything runs, ``TypeError`` for elements
    of another size (those of one size are read as the declared type, as in PyCUDA) and
    ``ValueError`` if arrays that are accessed as ``x[i]`` differ in length or lack elements of
    ``range``; those that are accessed at other indices, too, may be longer. PyCUDA checks none of
    these.

    Examples
    --------
    >>> add = ElementwiseKernel("float a, float *x, float *z", "z[i] = a + x[i]")
    >>> x = gpuarray.arange(3, dtype=np.float32)
    >>> add(1, x, x)
    >>> x.get()
    array([1., 2., 3.], dtype=float32)
    """

    def __init__(
        self,
        arguments: str | Iterable[Any],
        operation: str,
        name: str = "kernel",
        keep: bool = False,
        options: Sequence[str] | None = None,
        preamble: str = "",
        loop_prep: str = "",
        after_loop: str = "",
    ) -> None:
        if isinstance(arguments, Iterator):
            arguments = list(arguments)
        self.gen_kwargs: dict[str, Any] = {
            "arguments": arguments,
            "operation": operation,
            "name": name,
            "keep": keep,
            "options": options,
            "preamble": preamble,
            "loop_prep": loop_prep,
            "after_loop": after_loop,
        }

    def __getstate__(self) -> dict[str, Any]:
        """What copies are made of, which read and compile it themselves."""
        return {name: value for name, value in self.__dict__.items() if name != "_modules"}

    def _define(self) -> tuple[_Generator, str, list[Any], bool, int, bool]:
        """Reads the declaration, for the launcher, which takes the first result that it gets."""
        if not hasattr(self, "gen_kwargs"):
            raise RuntimeError("ElementwiseKernel.__init__ has not been called")
        modules = self.__dict__.setdefault("_modules", {})
        return _Generator(modules, **self.gen_kwargs).definition()

    def generate_stride_kernel_and_types(
        self, use_range: bool
    ) -> tuple[SourceModule, _core.Function, list[Any]]:
        """Returns the result of :func:`get_elwise_kernel_and_types` for this kernel, which takes
        ``range`` or ``slice`` if ``use_range`` is True.

        >>> add = ElementwiseKernel("float a, float *x", "x[i] += a")
        >>> module, function, arguments = add.generate_stride_kernel_and_types(False)
        >>> function.name
        'kernel'
        """
        self._define()
        return get_elwise_kernel_and_types(use_range=use_range, **self.gen_kwargs)

    def get_texref(self, name: str, use_range: bool = False) -> TextureReference:
        """Returns the texture reference that the preamble declares as ``texture<...>`` under
        ``name``, for the current device.

        The statements are compiled for each arrangement of the arrays; what is bound to the
        reference is bound for all, whatever ``use_range`` says: in PyCUDA the kernel for ``range``
        has a reference of its own. Raises ``Unsupported`` if the device has no textures, or the
        backend compiles no kernels.

        >>> twice = ElementwiseKernel(
        ...     "float *x",
        ...     "x[i] = 2 * tex1Dfetch(line, i)",
        ...     preamble="texture<float, 1, cudaReadModeElementType> line;",
        ... )
        >>> line, x = gpuarray.arange(3, dtype=np.float32), gpuarray.empty(3, np.float32)
        >>> _ = line.bind_to_texref_ext(twice.get_texref("line"))
        >>> twice(x)
        >>> x
        array([0., 2., 4.], dtype=float32)
        """
        # Few programs have texture references.
        from .._driver.textures import TextureReference, check_textures

        check_textures("get_texref")
        every = self.__dict__.setdefault("_modules", {})
        modules = every.setdefault(_core.current_ordinal(), _Modules())
        if not modules:
            modules.add(self.generate_stride_kernel_and_types(use_range)[0].module)
        return TextureReference._of_module(modules, name)
