"""Declares arguments and structures of kernels in CUDA C; translates between C types and dtypes."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from .. import _arguments, driver
from ..compyte.dtypes import (
    _fill_dtype_registry,
    get_or_register_dtype,
    parse_c_arg_backend,
    register_dtype,
)
from ..compyte.dtypes import dtype_to_ctype as base_dtype_to_ctype

if TYPE_CHECKING:
    from .._driver.device import Device

__all__ = ["Argument", "ScalarArg", "VectorArg", "base_dtype_to_ctype", "dtype_to_ctype"]
__all__ += ["get_arg_type", "get_or_register_dtype", "match_dtype_to_c_struct", "parse_c_arg"]
__all__ += ["register_dtype"]

_fill_dtype_registry(respect_windows=True)
get_or_register_dtype("pycuda::complex<float>", np.complex64)
get_or_register_dtype("pycuda::complex<double>", np.complex128)

# The types of texture elements of floating-point numbers; see pycuda-helpers.hpp.
_TEXELS = ("float", "double", "cfloat", "cdouble")
_TEXTURE_TYPES = {np.dtype(code): f"fp_tex_{name}" for code, name in zip("fdFD", _TEXELS)}


def dtype_to_ctype(dtype: Any, with_fp_tex_hack: bool = False) -> str:
    """Returns the name in CUDA C of ``dtype``: numeric, of :class:`pygpu.gpuarray.vec`, or
    registered by :func:`get_or_register_dtype`.

    With ``with_fp_tex_hack`` floating-point and complex dtypes get the names that
    ``pycuda-helpers.hpp`` has for texture elements.

    >>> dtype_to_ctype(np.uint8), dtype_to_ctype(np.complex64)
    ('unsigned char', 'pycuda::complex<float>')
    """
    if dtype is None:
        raise ValueError("dtype may not be None")
    dtype = np.dtype(dtype)
    is_texture = with_fp_tex_hack and dtype in _TEXTURE_TYPES
    return _TEXTURE_TYPES[dtype] if is_texture else base_dtype_to_ctype(dtype)


class Argument:
    """An argument ``name`` of ``dtype``: the base of :class:`VectorArg` and :class:`ScalarArg`.

    >>> ScalarArg(np.int32, "n").dtype, VectorArg(np.float32, "x").name
    (dtype('int32'), 'x')
    """

    def __init__(self, dtype: Any, name: str) -> None:
        self.dtype = np.dtype(dtype)
        self.name = name

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.name!r}, {self.dtype})"


class VectorArg(Argument):
    """An array argument ``name`` with elements of ``dtype``, as for an ElementwiseKernel.

    >>> VectorArg(np.float32, "x").declarator()
    'float *x'
    """

    struct_char = "P"
    """The format code of a pointer."""

    def declarator(self) -> str:
        """Returns the argument's declaration in CUDA C."""
        return f"{dtype_to_ctype(self.dtype)} *{self.name}"


class ScalarArg(Argument):
    """A number or structure ``name`` of ``dtype`` as an argument, as for an ElementwiseKernel.

    >>> ScalarArg(np.int32, "n").declarator(), ScalarArg(np.int32, "n").struct_char
    ('int n', 'i')
    """

    def declarator(self) -> str:
        """Returns the argument's declaration in CUDA C."""
        return f"{dtype_to_ctype(self.dtype)} {self.name}"

    @property
    def struct_char(self) -> str:
        """The format code of the dtype; ``"<n>s"`` for a structure of n bytes."""
        code = self.dtype.char
        return f"{self.dtype.itemsize}s" if code == "V" else code


def parse_c_arg(c_arg: str) -> Argument:
    """Reads one declaration in CUDA C, ``c_arg``, as a VectorArg (pointer, array) or a ScalarArg.

    >>> parse_c_arg("const unsigned char *pixels")
    VectorArg('pixels', uint8)
    """
    return parse_c_arg_backend(c_arg, ScalarArg, VectorArg)


def get_arg_type(c_arg: str) -> str:
    """Returns the format code of the argument declared by ``c_arg``: ``"P"`` for an array.

    >>> get_arg_type("double *x"), get_arg_type("double x")
    ('P', 'd')
    """
    return parse_c_arg(c_arg).struct_char  # type: ignore[attr-defined]


class _Field(NamedTuple):
    name: str
    # The dtype of one element, and the extents of an array of them.
    dtype: np.dtype[Any]
    shape: tuple[int, ...]


# The declarations of structures from match_dtype_to_c_struct, by name, after those they contain.
_declarations: dict[str, list[str]] = {}


def match_dtype_to_c_struct(
    device: Device | None, name: str, dtype: Any
) -> tuple[np.dtype[Any], str]:
    """Returns a record dtype with the layout of a C structure, and the structure's declaration.

    The offsets and the size are read from a kernel. Inner structures are not declared.
    :func:`get_or_register_dtype` takes the returned dtype. PyOpenCL has this function too.
    Raises ``Unsupported`` if the backend does not compile kernels.

    ``device`` may be None: the current device. ``name`` is the structure's name in CUDA C.
    ``dtype`` is a record; of its offsets, only the order matters. A field may be an array, or a
    record that :func:`get_or_register_dtype` has registered before.

    >>> pair = np.dtype([("flag", np.int8), ("value", np.float64)])
    >>> pair, declaration = match_dtype_to_c_struct(None, "pair", pair)
    >>> pair.itemsize, pair.fields["value"][1]
    (16, 8)
    >>> " ".join(declaration.split())
    'typedef struct { signed char flag; double value; } pair;'
    """
    if device is not None:
        current = driver.Context.get_device()
        if _arguments.instance("device", device, driver.Device) != current:
            raise ValueError(f"device is {device!r}; the current context is on {current!r}")
    dtype = np.dtype(dtype)
    entries = dtype.fields
    if entries is None:
        raise TypeError(f"dtype is {dtype}; a record (a dtype with fields) is needed")
    types = {it: entries[it][0] for it in sorted(dtype.names or (), key=lambda it: entries[it][1])}
    fields = [_Field(it, *(type.subdtype or (type, ()))) for it, type in types.items()]
    for what in (name, *(field.name for field in fields)):
        if not (what.isidentifier() and what.isascii()):
            raise ValueError(f"{what!r} is not a name in C")
    lines = []
    declarations: list[str] = []
    for field in fields:
        type_name = base_dtype_to_ctype(field.dtype)
        axes = "".join(f"[{extent}]" for extent in field.shape)
        lines.append(f"    {type_name} {field.name}{axes};\n")
        inner = _declarations.get(type_name, [])
        declarations += [text for text in inner if text not in declarations]
    c_decl = f"typedef struct {{\n{''.join(lines)}}} {name};\n"
    declarations.append(c_decl)
    offsets, size = _offsets("".join(declarations), name, [field.name for field in fields])
    formats = [(field.dtype, field.shape) if field.shape else field.dtype for field in fields]
    names = [field.name for field in fields]
    layout: Any = {"names": names, "formats": formats, "offsets": offsets, "itemsize": size}
    result = np.dtype(layout)
    _declarations[name] = declarations
    return result, c_decl


def _offsets(declaration: str, name: str, fields: list[str]) -> tuple[list[int], int]:
    """Returns the offsets of a structure's fields and its size, in bytes, from the device."""
    # The compiler's modules are imported by the first program that compiles.
    from ..compiler import SourceModule

    body = "".join(
        f"    offsets[{position}] = (char *) &object.{field} - (char *) &object;\n"
        for position, field in enumerate(fields)
    )
    complex_types = "#include <pycuda-complex.hpp>\n" if "pycuda::" in declaration else ""
    module = SourceModule(
        f"{complex_types}{declaration}"
        f'extern "C" __global__ void write_offsets(unsigned long long *offsets)\n{{\n'
        f"    __shared__ {name} object;\n{body}"
        f"    offsets[{len(fields)}] = sizeof({name});\n}}\n",
        no_extern_c=True,
    )
    numbers = np.zeros(len(fields) + 1, np.uint64)
    module.get_function("write_offsets")(driver.Out(numbers), block=(1, 1, 1), grid=(1, 1))
    *offsets, size = numbers.tolist()
    return offsets, size


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
