"""What the current device can do, with the names of ``pycuda.characterize``."""

from __future__ import annotations

import sys

import numpy as np

from . import driver
from .tools import context_dependent_memoize

__all__ = [
    "context_dependent_memoize",
    "has_double_support",
    "has_stack",
    "platform_bits",
    "sizeof",
]


def platform_bits() -> int:
    """Returns the bits of an address.

    >>> platform_bits()
    64
    """
    return 64 if sys.maxsize > 2**32 else 32


def has_double_support() -> bool:
    """Returns True: every device of every backend computes in 64-bit floating point.

    >>> gpuarray.has_double_support()
    True
    """
    return True


def has_stack() -> bool:
    """Returns True: every device of every backend can call functions.

    >>> has_stack()
    True
    """
    return True


@context_dependent_memoize
def sizeof(type_name: str, preamble: str = "") -> int:
    """Returns the bytes of ``type_name``, a type of CUDA C which ``preamble`` may declare, on the
    current device.

    Raises ``CompileError`` if there is no such type, and ``Unsupported`` if the backend compiles no
    kernels.

    >>> sizeof("pair", "struct pair { char first; double second; };")
    16
    """
    # What few programs need, and takes a while to import.
    from ._kernels.snippets import module_of

    module = module_of(
        f"{preamble}\n"
        'extern "C" __global__ void write_size(unsigned long long *output)\n'
        f"{{ *output = sizeof({type_name}); }}\n"
    )
    result = np.zeros((), np.uint64)
    module.get_function("write_size")(driver.Out(result), block=(1, 1, 1), grid=(1, 1))
    return int(result)
