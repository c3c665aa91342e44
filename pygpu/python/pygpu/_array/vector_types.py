"""The vector types of CUDA C, as ``pycuda.gpuarray.vec`` has them."""

from collections.abc import Callable
from typing import Any

import numpy as np

from ..compyte.dtypes import get_or_register_dtype


class vec:
    """The vector types of CUDA C as numpy dtypes, each with a function that makes one.

    ``char1``, ``char2``, ..., ``double2`` are records with as many of the fields ``x``, ``y``,
    ``z`` and ``w`` as the type has. ``make_char1``, ... take a number for each field, and return a
    numpy array without axes.

    --------
    >>> array = gpuarray.zeros(2, gpuarray.vec.float4)
    >>> array[1] = gpuarray.vec.make_float4(1, 2, 3, 4)
    >>> array.get()["w"]
    array([0., 4.], dtype=float32)
    """


_MAKER = """Returns the numbers {fields} as a ``{name}``: a numpy array without axes.

>>> from pygpu import gpuarray
>>> gpuarray.vec.make_{name}({numbers})["x"].item() == 1
True
"""


def _maker(name: str, dtype: np.dtype) -> Callable[..., np.ndarray]:
    fields = dtype.names or ()

    def make(*parts: Any, **named: Any) -> np.ndarray:
        given = dict(zip(fields, parts, strict=False))
        if len(parts) > len(fields) or given.keys() & named.keys() or {*given, *named} != {*fields}:
            raise TypeError(
                f"make_{name} takes the numbers {', '.join(fields)}; the call has "
                f"{len(parts)} by position and {list(named)} by name"
            )
        given.update(named)
        return np.array(tuple(given[field] for field in fields), dtype=dtype)

    make.__name__ = f"make_{name}"
    make.__qualname__ = f"vec.make_{name}"
    numbers = ", ".join(str(number + 1) for number in range(len(fields)))
    make.__doc__ = _MAKER.format(
        name=name, fields=", ".join(f"``{it}``" for it in fields), numbers=numbers
    )
    return make


def _add_vector_types() -> None:
    bases = {"char": "i1", "short": "i2", "int": "i4", "long": "i8", "longlong": "i8"}
    bases |= {f"u{name}": code.replace("i", "u") for name, code in bases.items()}
    for base, code in (bases | {"float": "f4", "double": "f8"}).items():
        for count in range(1, 3 if base in ("longlong", "ulonglong", "double") else 5):
            dtype = np.dtype([(name, code) for name in "xyzw"[:count]])
            get_or_register_dtype(f"{base}{count}", dtype)
            setattr(vec, f"{base}{count}", dtype)
            setattr(vec, f"make_{base}{count}", staticmethod(_maker(f"{base}{count}", dtype)))


_add_vector_types()
