"""What PyCUDA's factories of elementwise kernels share."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from .. import _core
from .._errors import Unsupported
from .c_types import ScalarArg, dtype_to_ctype
from .elementwise_source import get_elwise_kernel, get_elwise_module

if TYPE_CHECKING:
    from .._driver.textures import TextureReference


def typed(arguments: str, **types: Any) -> str:
    """Fills the C names of dtypes into a declaration."""
    return arguments.format(**{name: dtype_to_ctype(dtype) for name, dtype in types.items()})


def unary(value: str, dtype: Any, dtype_z: Any, name: str) -> _core.Function:
    arguments = typed("{y} *y, {z} *z", y=dtype, z=dtype_z)
    return get_elwise_kernel(arguments, f"z[i] = {value}", name)


def textured(
    arguments: list[Any], operation: str, name: str, textures: dict[str, Any], loop_prep: str = ""
) -> tuple[_core.Function, list[TextureReference]]:
    """Returns a prepared kernel that reads elements through texture references, which have the
    given names and dtypes, and the references. Its last argument is the number of elements.

    Raises ``Unsupported`` where the device has no textures.
    """
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
