"""Properties of the current device, with the names of ``pycuda.characterize``.

Examples
--------
>>> platform_bits(), has_double_support(), has_stack()
(64, True, True)
"""

import sys

import numpy as np

from . import driver
from .tools import context_dependent_memoize

__all__ = ["context_dependent_memoize", "has_double_support", "has_stack", "platform_bits"]
__all__ += ["sizeof"]


def platform_bits() -> int:
    """Returns the number of bits of an address."""
    return 64 if sys.maxsize > 2**32 else 32


def has_double_support() -> bool:
    """Returns True: every device of every backend computes in 64-bit floating point."""
    return True


def has_stack() -> bool:
    """Returns True: every device of every backend can call functions."""
    return True


@context_dependent_memoize
def sizeof(type_name: str, preamble: str = "") -> int:
    """Returns the size in bytes of ``type_name``, a CUDA C type that ``preamble`` may declare.

    Raises ``CompileError`` for an unknown type, and ``Unsupported`` if the backend does not compile
    kernels.

    >>> sizeof("pair", "struct pair { char first; double second; };")
    16
    """
    # Few programs need it, and it takes a while to import.
    from ._kernels.snippets import module_of

    module = module_of(
        f"{preamble}\n"
        'extern "C" __global__ void write_size(unsigned long long *output)\n'
        f"{{ *output = sizeof({type_name}); }}\n"
    )
    result = np.zeros((), np.uint64)
    module.get_function("write_size")(driver.Out(result), block=(1, 1, 1), grid=(1, 1))
    return int(result)
