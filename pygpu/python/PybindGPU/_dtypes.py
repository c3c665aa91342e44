"""The ten element types, and the classes that there is one of for each."""

from __future__ import annotations

from enum import IntEnum
from typing import Any

import numpy as np

SUPPORTED_DTYPES = (
    "int16",
    "int32",
    "int64",
    "uint16",
    "uint32",
    "uint64",
    "float32",
    "float64",
    "complex64",
    "complex128",
)


class UnsupportedDataType(Exception):
    """The elements' type is none of the ten, or an argument is neither data nor a shape.

    Examples
    --------
    >>> import PybindGPU
    >>> PybindGPU.GPUArray((2,), dtype="float16")
    Traceback (most recent call last):
        ...
    PybindGPU._dtypes.UnsupportedDataType: Data type: float16 is not supported!
    """


class _Dtype(IntEnum):
    """An element type by number or by name.

    Attributes
    ----------
    int16, int32, int64, uint16, uint32, uint64, float32, float64, complex64, complex128 : dtype
        The ten types, numbered from 0; each also as ``int16_alias`` and so on.

    Examples
    --------
    >>> import PybindGPU
    >>> PybindGPU.dtype.float32, PybindGPU.dtype(6).name
    (<dtype.float32: 6>, 'float32')
    """

    def __str__(self) -> str:
        return f"dtype.{self.name}"


_numbers = {name: number for number, name in enumerate(SUPPORTED_DTYPES)}
_enumeration: Any = _Dtype
dtype: Any = _enumeration("dtype", _numbers | {f"{name}_alias": i for name, i in _numbers.items()})
# How many there are. No member, because Python keeps names of this form to itself.
_Size: Any = IntEnum("_Size", {"size": len(SUPPORTED_DTYPES)})
dtype.__size__ = _Size.size


def supported(value: Any) -> np.dtype[Any]:
    """The dtype that `value` stands for.

    Raises
    ------
    UnsupportedDataType
        If it is none of the ten.
    """
    try:
        found = np.dtype(value.name if isinstance(value, dtype) else value)
    except TypeError:
        raise UnsupportedDataType(f"Data type: {value} is not supported!") from None
    if found.name not in SUPPORTED_DTYPES or not found.isnative:
        raise UnsupportedDataType(f"Data type: {found.name} is not supported!")
    return found


def per_dtype(base: type) -> dict[str, Any]:
    """A subclass of `base` for each element type, by name: ``Base_int16`` and so on."""
    made: dict[str, Any] = {}
    first, _, rest = (base.__doc__ or "").partition("\n")
    for label in SUPPORTED_DTYPES:
        name = f"{base.__name__}_{label}"
        body = {
            "dtype": np.dtype(label),
            "__doc__": f"{first} The elements are {label}.\n{rest}",
            "__module__": "PybindGPU.backend",
            "__slots__": (),
        }
        made[name] = type(base)(name, (base,), body)
    return made
