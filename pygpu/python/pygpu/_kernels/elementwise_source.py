"""The source of kernels of elements, and PyCUDA's functions that compile it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from .. import _core
from .._errors import Unsupported
from . import snippets
from .c_types import ScalarArg, dtype_to_ctype
from .snippets import Declared, Strides

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from .._driver.textures import TextureReference
    from ..compiler import SourceModule

__all__ = [
    "get_elwise_kernel",
    "get_elwise_kernel_and_types",
    "get_elwise_module",
    "get_elwise_range_module",
]

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
    pack: int = 1,
) -> str:
    """Returns the source of a kernel; ``packs`` says which arrays a thread loads and stores
    ``pack`` neighbours of at once."""
    where = f"operation of {name}"
    if ranged:
        # The last index may be so near to the last number that the next would be none.
        index = "long i;"
        loop = f"""
    const unsigned long pygpu_count =
        step > 0 ? (start < stop ? ((unsigned long)stop - start - 1) / step + 1 : 0)
                 : (start > stop ? ((unsigned long)start - stop - 1) / (0ul - step) + 1 : 0);
    PYGPU_PART(pygpu_count);
    for (unsigned long pygpu_turn = pygpu_first; pygpu_turn < pygpu_end;
         pygpu_turn += pygpu_step) {{
        i = (long)((unsigned long)start + pygpu_turn * step);{snippets.part(where, operation)};
    }}"""
    else:
        index = "size_t i;"
        if packs:
            loop = _packed_loop(declared, where, operation, packs, pack)
            rest = f"i = n / {pack} * {pack} + cta_start + tid; i < n; i += total_threads"
        else:
            loop = """
    PYGPU_PART(n);"""
            rest = "i = pygpu_first; i < pygpu_end; i += pygpu_step"
        loop += f"""
    for ({rest}) {{{snippets.part(where, operation)};
    }}"""
    return f"""{snippets.headers(strides)}{snippets.part(f"preamble of {name}", preamble)}
{_PACK if packs else _PART}
extern "C" __global__ void {name}({snippets.parameters(declared, added, strides)})
{{
    const size_t tid = threadIdx.x;
    const size_t total_threads = (size_t)gridDim.x * blockDim.x;
    const size_t cta_start = (size_t)blockDim.x * blockIdx.x;
    {index}
    {snippets.strided_arrays(declared, strides)}
    {snippets.part(f"loop_prep of {name}", loop_prep)};
    {loop}
    {snippets.part(f"after_loop of {name}", after_loop)};
}}
"""


# The elements of a thread: every so many on a GPU, whose threads access neighbours together;
# neighbours on a processor, whose vector units take them at once.
_PART = """
#ifdef __GPUARRAY_HOST__
#define PYGPU_PART(count) \\
    const size_t pygpu_part = ((count) + total_threads - 1) / total_threads; \\
    const size_t pygpu_begin = (cta_start + tid) * pygpu_part; \\
    const size_t pygpu_first = pygpu_begin < (count) ? pygpu_begin : (count); \\
    const size_t pygpu_left = (count) - pygpu_first; \\
    const size_t pygpu_end = pygpu_first + (pygpu_left < pygpu_part ? pygpu_left : pygpu_part); \\
    const size_t pygpu_step = 1
#else
#define PYGPU_PART(count) \\
    const size_t pygpu_first = cta_start + tid, pygpu_end = (count), pygpu_step = total_threads
#endif
"""


# Neighbours that one access moves, and what ``i`` is meanwhile: nothing that a macro could use.
_PACK = """
namespace pygpu {
struct NoIndex {};
template <class T, int COUNT>
struct alignas(sizeof(T) * COUNT < 16 ? sizeof(T) * COUNT : 16) Pack {
    T items[COUNT];
};
}
"""


def _packed_loop(
    declared: Sequence[Declared],
    where: str,
    operation: str,
    packs: Mapping[str, tuple[bool, bool]],
    pack: int,
) -> str:
    loads, stores = "", ""
    items = {name: f"pygpu_{name}[pygpu_item]" for name in packs}
    operation = snippets.part(where, snippets.with_elements(operation, items))
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
    return f"""
    for (size_t pygpu_turn = cta_start + tid; pygpu_turn < n / {pack};
         pygpu_turn += total_threads) {{
{loads}
        const pygpu::NoIndex i = {{}};
        (void)i;
#pragma unroll
        for (int pygpu_item = 0; pygpu_item < {pack}; ++pygpu_item) {{{operation};
        }}
{stores}    }}"""


def get_elwise_module(
    arguments: str | Iterable[Any],
    operation: str,
    name: str = "kernel",
    keep: bool = False,
    options: Sequence[str] | None = None,
    preamble: str = "",
    loop_prep: str = "",
    after_loop: str = "",
) -> SourceModule:
    """Compiles a kernel that runs statements for each ``i`` below its argument ``n``.

    Other arguments are as in :class:`pygpu.compiler.SourceModule`. Raises ``CompileError`` if the
    compiler refused the source.

    Parameters
    ----------
    arguments : sequence of VectorArg and ScalarArg. All arguments, with ``n`` among them.
    operation, preamble, loop_prep, after_loop : str. Statements for each element, declarations
        before the kernel, and statements of each thread before and after its elements.
    name : str. The kernel's name.

    Examples
    --------
    >>> from pygpu.elementwise import VectorArg
    >>> arguments = [VectorArg(np.float32, "x"), ScalarArg(np.uintp, "n")]
    >>> twice = get_elwise_module(arguments, "x[i] *= 2", "twice").get_function("twice")
    >>> x = gpuarray.arange(3, dtype=np.float32)
    >>> twice(x, np.uintp(3), block=x._block, grid=x._grid)
    >>> x
    array([0., 2., 4.], dtype=float32)
    """
    texts = preamble, loop_prep, after_loop
    source = source_of(snippets.parse(arguments, operation, *texts), operation, name, *texts)
    return snippets.module_of(source, options, keep)


def get_elwise_range_module(
    arguments: str | Iterable[Any],
    operation: str,
    name: str = "kernel",
    keep: bool = False,
    options: Sequence[str] | None = None,
    preamble: str = "",
    loop_prep: str = "",
    after_loop: str = "",
) -> SourceModule:
    """Compiles a kernel that runs statements for each ``i`` from its argument ``start`` to
    ``stop``, ``step`` apart, all three of type ``long``.

    Other arguments are as in :func:`get_elwise_module`.

    Parameters
    ----------
    arguments : sequence of VectorArg and ScalarArg. All arguments, with ``start``, ``stop`` and
        ``step`` among them.

    Examples
    --------
    >>> from pygpu.elementwise import VectorArg
    >>> bounds = [ScalarArg(np.intp, name) for name in ("start", "stop", "step")]
    >>> module = get_elwise_range_module([VectorArg(np.float32, "x"), *bounds], "x[i] = 7", "put")
    >>> x, range_ = gpuarray.zeros(5, np.float32), map(np.intp, (1, 5, 2))
    >>> module.get_function("put")(x, *range_, block=x._block, grid=x._grid)
    >>> x
    array([0., 7., 0., 7., 0.], dtype=float32)
    """
    texts = preamble, loop_prep, after_loop
    declared = snippets.parse(arguments, operation, *texts)
    source = source_of(declared, operation, name, *texts, ranged=True)
    return snippets.module_of(source, options, keep)


def get_elwise_kernel_and_types(
    arguments: str | Iterable[Any],
    operation: str,
    name: str = "kernel",
    keep: bool = False,
    options: Sequence[str] | None = None,
    use_range: bool = False,
    **kwargs: Any,
) -> tuple[SourceModule, _core.Function, list[Any]]:
    """Returns the module, the prepared kernel and the arguments of a kernel that runs statements
    for each element: those of the program and ``n``, the number of elements; with ``use_range``
    those of the program and ``start``, ``stop`` and ``step``.

    Other arguments are as in :func:`get_elwise_module`.

    Parameters
    ----------
    arguments : str or sequence of VectorArg and ScalarArg. The arguments of the program.
    use_range : bool. Whether ``i`` runs through a range; see :func:`get_elwise_range_module`.
    **kwargs : str. ``preamble``, ``loop_prep`` and ``after_loop`` of :func:`get_elwise_module`.

    Examples
    --------
    >>> _, twice, arguments = get_elwise_kernel_and_types("float *x", "x[i] *= 2")
    >>> [argument.name for argument in arguments]
    ['x', 'n']
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
    """Returns a prepared kernel that runs statements for each element. Its last argument is the
    number of elements.

    Arguments are as in :func:`get_elwise_kernel_and_types`.

    >>> twice = get_elwise_kernel("float *x", "x[i] *= 2")
    >>> x = gpuarray.arange(3, dtype=np.float32)
    >>> twice.prepared_call(x._grid, x._block, x.gpudata, 3)
    >>> x
    array([0., 2., 4.], dtype=float32)
    """
    return get_elwise_kernel_and_types(arguments, operation, name, keep, options, **kwargs)[1]


def textured_kernel(
    arguments: list[Any], operation: str, name: str, textures: dict[str, Any], loop_prep: str = ""
) -> tuple[_core.Function, list[TextureReference]]:
    """Returns a prepared kernel that reads elements through texture references, which have the
    given names and dtypes, and the references."""
    if not _core.has_textures():
        raise Unsupported(f"{name}: its kernel reads through textures, which the device has not")
    texels = {it: dtype_to_ctype(dtype, with_fp_tex_hack=True) for it, dtype in textures.items()}
    references = [
        f"texture<{texel}, 1, cudaReadModeElementType> {it};" for it, texel in texels.items()
    ]
    arguments = [*arguments, ScalarArg(np.uintp, "n")]
    preamble = "\n".join(["#include <pycuda-helpers.hpp>", *references])
    module = get_elwise_module(arguments, operation, name, preamble=preamble, loop_prep=loop_prep)
    kernel = module.get_function(name)
    bound = [module.get_texref(reference) for reference in textures]
    kernel.prepare("".join(argument.struct_char for argument in arguments), texrefs=bound)
    return kernel, bound
