"""Element-wise kernels from a program's statements in C.

Examples
--------
>>> module, twice, arguments = get_elwise_kernel_and_types("float *x", "x[i] *= 2")
>>> x = gpuarray.arange(5, dtype=np.float32)
>>> twice.prepared_call(x._grid, x._block, x.gpudata, 5)
>>> bounds = [ScalarArg(np.intp, name) for name in ("start", "stop", "step")]
>>> module = get_elwise_range_module([arguments[0], *bounds], "x[i] = 7", "put")
>>> put, range_ = module.get_function("put"), map(np.intp, (1, 5, 2))
>>> put(x, *range_, block=x._block, grid=x._grid)
>>> x
array([0., 7., 4., 7., 8.], dtype=float32)
"""

from __future__ import annotations

from _thread import allocate_lock as _allocate_lock
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from .. import _core
from .._documentation import member
from .._errors import CompileError, Unsupported
from . import snippets
from .c_types import ScalarArg, dtype_to_ctype
from .snippets import Declared, Strides

if TYPE_CHECKING:
    from .._driver.textures import TextureReference
    from ..compiler import SourceModule

__all__ = ["ElementwiseKernel", "get_elwise_kernel", "get_elwise_kernel_and_types"]
__all__ += ["get_elwise_module", "get_elwise_range_module"]


FROM_RANGE = ("long start", "long stop", "long step")


def source_of(
    declared: Sequence[Declared],
    operation: str,
    name: str,
    preamble: str,
    loop_prep: str,
    after_loop: str,
    *,
    added: Sequence[str] = (),
    ranged: bool = False,
    strides: Strides = Strides(),  # noqa: B008
    packs: Mapping[str, tuple[bool, bool]] | None = None,
    packed: str = "",
    pack: int = 1,
) -> str:
    """Returns the source of a kernel.

    For arrays in ``packs``, a thread loads or stores ``pack`` neighbours in one access, and
    runs the statements ``packed`` for each neighbour.
    """
    where = f"operation of {name}"
    loop, head = "", "PYGPU_EACH_OF_RANGE" if ranged else "PYGPU_EACH"
    if packs:
        loop = _packed_loop(declared, snippets.part(where, packed), packs, pack)
        head = f"PYGPU_EACH_AFTER_PACKS({pack})"
    return f"""{snippets.headers(strides)}{snippets.part(f"preamble of {name}", preamble)}
{_core.header_text("pygpu-elements.hpp")}
extern "C" __global__ void {name}({snippets.parameters(declared, added, strides)})
{{
    const size_t tid = threadIdx.x;
    const size_t total_threads = (size_t)gridDim.x * blockDim.x;
    const size_t cta_start = (size_t)blockDim.x * blockIdx.x;
    {"long" if ranged else "size_t"} i;
    {snippets.strided_arrays(declared, strides)}
    {snippets.part(f"loop_prep of {name}", loop_prep)};
    {loop}
    {head} {{{snippets.part(where, operation)};
    }}
    {snippets.part(f"after_loop of {name}", after_loop)};
}}
"""


def _packed_loop(
    declared: Sequence[Declared], operation: str, packs: Mapping[str, tuple[bool, bool]], pack: int
) -> str:
    loads, stores = "", ""
    for it in declared:
        if it.name not in packs:
            continue
        load, store = packs[it.name]
        element = dtype_to_ctype(it.argument.dtype)
        local, address = f"pygpu_pack_{it.name}", f"{it.name} + {pack} * pygpu_turn"
        loads += f"        pygpu::Pack<{element}, {pack}> {local};\n"
        if load:
            loads += f"        {local} = *(const pygpu::Pack<{element}, {pack}> *)({address});\n"
        const = "" if store else "const "
        loads += f"        {const}{element} (&pygpu_{it.name})[{pack}] = {local}.items;\n"
        if store:
            stores += f"        *(pygpu::Pack<{element}, {pack}> *)({address}) = {local};\n"
    return f"""PYGPU_EACH_PACK({pack}) {{
{loads}
        const pygpu::NoIndex i = {{}};
        (void)i;
#pragma unroll
        for (int pygpu_item = 0; pygpu_item < {pack}; ++pygpu_item) {{{operation};
        }}
{stores}    }}"""


def _module(
    ranged: bool,
    arguments: str | Iterable[Any],
    operation: str,
    name: str = "kernel",
    keep: bool = False,
    options: Sequence[str] | None = None,
    preamble: str = "",
    loop_prep: str = "",
    after_loop: str = "",
) -> SourceModule:
    """Compiles a kernel whose arguments include ``n``, or the members of a range."""
    texts = preamble, loop_prep, after_loop
    declared = snippets.parse(arguments, operation, *texts)
    source = source_of(declared, operation, name, *texts, ranged=ranged)
    return snippets.module_of(source, options, keep)


_MODULE = """Compiles a kernel that runs statements for each ``i`` below its argument ``n``.

    Other arguments are as in :class:`pygpu.compiler.SourceModule`. Raises ``CompileError`` if the
    compiler refused the source.

    Parameters
    ----------
    arguments : sequence of VectorArg and ScalarArg. All arguments, with ``n`` among them.
    operation, preamble, loop_prep, after_loop : str. Statements for each element, declarations
        before the kernel, and statements of each thread before and after its elements.
    name : str. The kernel's name.
    """
get_elwise_module = member(_module, False, "get_elwise_module", _MODULE)
_RANGE = """Compiles a kernel that runs statements for each ``i`` in ``range(start, stop, step)``.

    ``arguments`` include ``start``, ``stop`` and ``step``. Other arguments are as in
    :func:`get_elwise_module`.
    """
get_elwise_range_module = member(_module, True, "get_elwise_range_module", _RANGE)


def get_elwise_kernel_and_types(
    arguments: str | Iterable[Any],
    operation: str,
    name: str = "kernel",
    keep: bool = False,
    options: Sequence[str] | None = None,
    use_range: bool = False,
    **kwargs: Any,
) -> tuple[SourceModule, _core.Function, list[Any]]:
    """Returns the module, the prepared kernel and the arguments of :func:`get_elwise_module`.

    The returned arguments are ``arguments``, a declaration or a sequence, and ``n``; if
    ``use_range`` is True, ``start``, ``stop`` and ``step``. ``**kwargs`` are ``preamble``,
    ``loop_prep`` and ``after_loop``. Other arguments are as in :func:`get_elwise_module`.
    """
    declared = snippets.parse(arguments, operation, *map(str, kwargs.values()))
    added = [(np.intp, it) for it in ("start", "stop", "step")] if use_range else [(np.uintp, "n")]
    declared += [Declared(ScalarArg(dtype, it), False) for dtype, it in added]
    make = get_elwise_range_module if use_range else get_elwise_module
    module = make(declared, operation, name, keep, options, **kwargs)
    function = module.get_function(name)
    function.prepare("".join(it.argument.struct_char for it in declared))
    return module, function, [it.argument for it in declared]


def get_elwise_kernel(
    arguments: str | Iterable[Any],
    operation: str,
    name: str = "kernel",
    keep: bool = False,
    options: Sequence[str] | None = None,
    **kwargs: Any,
) -> _core.Function:
    """Returns only the prepared kernel; its last argument is the number of elements.

    Arguments are as in :func:`get_elwise_kernel_and_types`.
    """
    return get_elwise_kernel_and_types(arguments, operation, name, keep, options, **kwargs)[1]


def textured_kernel(
    arguments: list[Any], operation: str, name: str, textures: dict[str, Any], loop_prep: str = ""
) -> tuple[_core.Function, list[TextureReference]]:
    """Returns a prepared kernel, and the texture references by which it reads elements."""
    if not _core.has_textures():
        raise Unsupported(f"{name}: its kernel reads through textures, which the device lacks")
    texels = {it: dtype_to_ctype(dtype, with_fp_tex_hack=True) for it, dtype in textures.items()}
    declare = "texture<{}, 1, cudaReadModeElementType> {};".format
    references = [declare(texel, it) for it, texel in texels.items()]
    arguments = [*arguments, ScalarArg(np.uintp, "n")]
    preamble = "\n".join(["#include <pycuda-helpers.hpp>", *references])
    module = get_elwise_module(arguments, operation, name, preamble=preamble, loop_prep=loop_prep)
    kernel = module.get_function(name)
    bound = [module.get_texref(reference) for reference in textures]
    kernel.prepare("".join(argument.struct_char for argument in arguments), texrefs=bound)
    return kernel, bound


class _Modules:
    """The modules of one source on one device, which a texture reference treats as one module.

    A binding of the reference is set in each module, also in those compiled later.
    """

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
        """Returns the address and size of the texture reference in one of the modules."""
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
    """The source of one kernel for each arrangement of its arrays in memory.

    The arguments are those that the kernel was made with: later changes of them have no effect.
    """

    def __init__(self, modules: dict[int, _Modules], given: Mapping[str, Any]) -> None:
        arguments, operation, name = given["arguments"], given["operation"], given["name"]
        texts = {it: given[it] for it in ("preamble", "loop_prep", "after_loop")}
        snippets.check_text(operation=operation, name=name, **texts)
        declared = snippets.parse(arguments, operation, *texts.values())
        if not any(it.is_vector for it in declared):
            raise AssertionError(
                "ElementwiseKernel can only be used with functions that have at least one vector "
                f"argument; arguments is {arguments!r}"
            )
        self._arguments = declared
        preamble, *beside = texts.values()
        usage = snippets.usage(declared, operation, preamble, beside, given["options"])
        launched, order_free, sequential, self._packs, self._packed = usage
        sizes = [it.argument.dtype.itemsize for it in declared if it.name in self._packs]
        fit = bool(sizes) and all(size in (1, 2, 4, 8) for size in sizes)
        self._pack = 16 // max(sizes) if fit else 1
        self._name, self._texts = name, (operation, name, *texts.values())
        self._keep, self._options = given["keep"], given["options"]
        self._modules = modules
        self._has_references = _core.declares_references(preamble)
        self.definition = self, name, launched, order_free, self._pack, sequential

    def _build(
        self, ranged: bool, packed: bool, wide: bool, ranks: tuple[int, ...]
    ) -> tuple[_core.Function]:

        def build(strides: Strides, packs: Any = None) -> tuple[_core.Function]:
            source = source_of(
                self._arguments,
                *self._texts,
                added=FROM_RANGE if ranged else ("size_t n",),
                ranged=ranged,
                strides=strides,
                packs=packs,
                packed=self._packed,
                pack=self._pack,
            )
            module = snippets.module_of(source, self._options, self._keep).module
            if self._has_references:
                self._modules.setdefault(_core.current_ordinal(), _Modules()).add(module)
            return (module.get_function(self._name),)

        if packed:
            try:
                return build(Strides(), self._packs)
            except CompileError:
                # Statements that need the elements in memory, or wrong ones. The plain source,
                # with an element per thread, has the better message.
                pass
        return snippets.build_strided(build, Strides(ranks, wide), self._name)


class ElementwiseKernel(_core.ElementwiseLauncher):
    """A kernel that runs a program's statements for each element of the kernel's arrays.

    Other arguments are as in :class:`pygpu.compiler.SourceModule`.

    >>> add = ElementwiseKernel("float a, float *x, float *z", "z[i] = a + x[i]")
    >>> x = gpuarray.arange(3, dtype=np.float32)
    >>> add(1, x, x)
    >>> x.get()
    array([1., 2., 3.], dtype=float32)

    Compilation happens at the first call, as in PyCUDA, so types can be registered until then.
    Errors in the source appear at each call. The source is compiled again for each new memory
    layout of the arrays.

    A call takes the arguments, ``stream``, and ``range`` or ``slice``: these choose the indices
    ``i``, which count the elements of the first array. Before anything runs, the call raises
    ``TypeError`` if an array has elements of another size. Elements of the same size are read as
    the declared type, as in PyCUDA. The call raises ``ValueError`` if arrays that are accessed as
    ``x[i]`` differ in length or lack elements of ``range``. Arrays that are also accessed at other
    indices may be longer. PyCUDA does not check this.

    Parameters
    ----------
    arguments : str or sequence of VectorArg and ScalarArg. The arguments as C declares them:
        ``"float a, float *x, const int *y"``. Work on other streams may read ``const`` arrays at
        the same time, unless the statements write them.
    operation : str. Statements for the element ``i``: ``"y[i] = a * x[i]"``. ``n`` is the number of
        elements.
    name : str. The kernel's name.
    preamble : str. Source before the kernel: functions, structures, ``#include`` lines.
    loop_prep, after_loop : str. Statements of each thread before and after its elements.
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
        """Returns the attributes without the modules, because a copy compiles its own modules."""
        return {name: value for name, value in self.__dict__.items() if name != "_modules"}

    def _define(self) -> tuple[_Generator, str, list[Any], bool, int, bool]:
        """Reads the declaration; the launcher calls this until it succeeds."""
        if not hasattr(self, "gen_kwargs"):
            raise RuntimeError("ElementwiseKernel.__init__ has not been called")
        modules = self.__dict__.setdefault("_modules", {})
        return _Generator(modules, self.gen_kwargs).definition

    def generate_stride_kernel_and_types(
        self, use_range: bool
    ) -> tuple[SourceModule, _core.Function, list[Any]]:
        """Returns :func:`get_elwise_kernel_and_types` of this kernel, with ``use_range`` or not.

        >>> add = ElementwiseKernel("float a, float *x", "x[i] += a")
        >>> module, function, arguments = add.generate_stride_kernel_and_types(False)
        >>> function.name
        'kernel'
        """
        self._define()
        return get_elwise_kernel_and_types(use_range=use_range, **self.gen_kwargs)

    def get_texref(self, name: str, use_range: bool = False) -> TextureReference:
        """Returns the texture reference ``name`` of the preamble, for the current device.

        A binding holds for all variants of the kernel, for any ``use_range``; in PyCUDA, the kernel
        for ``range`` has a reference of its own. Raises ``Unsupported`` if the device does not
        support textures, or the backend does not compile kernels.

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
