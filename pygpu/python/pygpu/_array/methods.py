"""Methods and attributes that the package adds to the extension module's class ``GPUArray``.

Some methods are functions of the package whose first argument is the array. The class has them
from the start; a function's module is imported when a program first asks for the method.

In PyCUDA every attribute can be set, and programs' subclasses of ``GPUArray`` set some: ``nbytes``
to the size of padded memory, ``base`` to the memory's owner. pygpu does not read these two, so an
object may have its own. ``shape``, ``dtype`` and ``strides`` cannot be set.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from .._core import GPUArray

if TYPE_CHECKING:
    from .._driver.device import Device

# Each method's module, and the function there.
_METHODS = {
    "__array_function__": (".numpy_functions", "array_function"),
    "__array_ufunc__": (".numpy_functions", "array_ufunc"),
    "__dlpack__": (".._exchange.protocols", "dlpack"),
    "__dlpack_device__": (".._exchange.protocols", "dlpack_device"),
    "_axpbyz": (".._kernels.elementwise_factories", "_axpbyz"),
    "_axpbz": (".._kernels.elementwise_factories", "_axpbz"),
    "_elwise_multiply": (".._kernels.elementwise_factories", "_elwise_multiply"),
    "__iter__": (".shapes", "iterate"),
    "_repr_html_": (".as_numpy.conversion", "array_html"),
    "argmax": (".reductions", "argmax"),
    "argmin": (".reductions", "argmin"),
    "argpartition": (".as_numpy.order", "argpartition"),
    "choose": (".as_numpy.numeric", "choose"),
    "clip": (".as_numpy.numeric", "clip"),
    "cumprod": (".reductions", "cumprod"),
    "cumsum": (".reductions", "cumsum"),
    "diagonal": (".shapes", "diagonal"),
    "dot": (".as_numpy.linear", "dot"),
    "flatten": (".as_numpy.shaping", "flatten"),
    "ipc_handle": ("..ipc", "export"),
    "partition": (".as_numpy.order", "partition_in_place"),
    "put": (".as_numpy.selection", "put"),
    "repeat": (".shapes", "repeat"),
    "searchsorted": (".as_numpy.order", "searchsorted"),
    "squeeze": (".as_numpy.shaping", "squeeze"),
    "swapaxes": (".shapes", "swapaxes"),
    "take": (".as_numpy.selection", "take"),
    "tobytes": (".as_numpy.conversion", "tobytes"),
    "trace": (".shapes", "trace"),
}


class _Method:
    """A method that is replaced by its function at its first use."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        module, name = _METHODS[self._name]
        function = getattr(import_module(module, __package__), name)
        setattr(GPUArray, self._name, function)
        return function.__get__(instance, owner)


for _name in _METHODS:
    setattr(GPUArray, _name, _Method(_name))
# The division of Python 2, which PyCUDA's programs call.
for _name in ("truediv", "rtruediv", "itruediv"):
    setattr(GPUArray, f"__{_name.replace('true', '')}__", getattr(GPUArray, f"__{_name}__"))

# No operation of this package reads these from an object.
_NAMES = ("nbytes", "mem_size", "base", "_grid", "_block")


class _Default:
    """An attribute of ``GPUArray`` without ``__set__``, so that an instance may have its own."""

    def __init__(self, inherited: Any) -> None:
        self._inherited = inherited
        self.__doc__ = inherited.__doc__

    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        return self if instance is None else self._inherited.__get__(instance, owner)


def _init_subclass(cls: type, **arguments: Any) -> None:
    super(GPUArray, cls).__init_subclass__(**arguments)  # type: ignore[misc]
    for name in _NAMES:
        inherited = GPUArray.__dict__[name]
        if getattr(cls, name, None) is inherited:
            setattr(cls, name, _Default(inherited))


def _matrix_transpose(array: GPUArray) -> GPUArray:
    """The view with the last two axes exchanged."""
    return import_module(".as_numpy.linear", __package__).matrix_transpose(array)


def _flat(array: GPUArray) -> Any:
    """The elements along one axis, in C order, as numpy's attribute."""
    return import_module(".as_numpy.selection", __package__).Flat(array)


def _device(array: GPUArray) -> Device:
    """The device that the elements are on."""
    # Most programs never ask for it, and need not import the module.
    return import_module(".._driver.device", __package__).Device(array._ordinal)


GPUArray.flat = property(_flat, lambda a, values: a.flat.__setitem__(..., values))  # type: ignore[misc]
GPUArray.mT = _Default(property(_matrix_transpose))  # type: ignore[misc, assignment]
GPUArray.device = _Default(property(_device))  # type: ignore[misc, assignment]
GPUArray.__init_subclass__ = classmethod(_init_subclass)  # type: ignore[method-assign, assignment]
