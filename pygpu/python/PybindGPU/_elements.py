"""The ten element types, pointers to elements, and allocators of memory for elements."""

from __future__ import annotations

from enum import IntEnum
from typing import Any

import numpy as np

from pygpu import _core
from pygpu._arguments import whole

from ._status import Keeper, attempt, cudaError_t

_CODES = ("i2", "i4", "i8", "u2", "u4", "u8", "f4", "f8", "c8", "c16")
SUPPORTED_DTYPES = tuple(np.dtype(code).name for code in _CODES)


class UnsupportedDataType(Exception):
    """An element type is not one of the ten, or an argument is neither data nor a shape.

    >>> import PybindGPU
    >>> PybindGPU.GPUArray((2,), dtype="float16")
    Traceback (most recent call last):
        ...
    PybindGPU._elements.UnsupportedDataType: Data type: float16 is not supported!
    """


class _Dtype(IntEnum):
    """An element type by number or by name; each has an alias, such as ``int16_alias``.

    >>> import PybindGPU
    >>> PybindGPU.dtype.float32, PybindGPU.dtype(6).name
    (<dtype.float32: 6>, 'float32')
    """

    def __str__(self) -> str:
        return f"dtype.{self.name}"


_numbers = {name: number for number, name in enumerate(SUPPORTED_DTYPES)}
_enumeration: Any = _Dtype
dtype: Any = _enumeration("dtype", _numbers | {f"{name}_alias": i for name, i in _numbers.items()})
# Their number. Not a member: Python reserves names of this form.
_Size: Any = IntEnum("_Size", {"size": len(SUPPORTED_DTYPES)})
dtype.__size__ = _Size.size


def supported(value: Any) -> np.dtype[Any]:
    """Returns the value as one of the ten dtypes. Raises ``UnsupportedDataType`` for others."""
    try:
        found = np.dtype(value.name if isinstance(value, dtype) else value)
    except TypeError:
        raise UnsupportedDataType(f"Data type: {value} is not supported!") from None
    if found.name not in SUPPORTED_DTYPES or not found.isnative:
        raise UnsupportedDataType(f"Data type: {found.name} is not supported!")
    return found


def per_dtype(base: type) -> dict[str, Any]:
    """Returns a subclass of ``base`` for each element type, by name: ``Base_int16`` and so on."""
    made: dict[str, Any] = {}
    first, _, rest = (base.__doc__ or "").partition("\n")
    for label in SUPPORTED_DTYPES:
        name = f"{base.__name__}_{label}"
        doc = f"{first} The elements are {label}.\n{rest}"
        body = {"dtype": np.dtype(label), "__doc__": doc, "__slots__": ()}
        made[name] = type(base)(name, (base,), body | {"__module__": "PybindGPU.backend"})
    return made


class Block:
    """Memory that may be freed while its address is still in use."""

    __slots__ = ("address", "alive", "memory", "nbytes")

    def __init__(self, memory: Any, address: int, nbytes: int) -> None:
        self.memory, self.address, self.nbytes, self.alive = memory, address, nbytes, True

    @classmethod
    def on_host(cls, elements: int, dtype: np.dtype[Any]) -> Block:
        """Returns ordinary host memory."""
        try:
            return cls.of_array(np.empty(elements, dtype))
        except ValueError:
            raise MemoryError(f"size is {elements}; its bytes exceed the address space") from None

    @classmethod
    def of_array(cls, array: np.ndarray) -> Block:
        return cls(array, array.ctypes.data, array.nbytes)

    def end(self) -> None:
        """Releases the memory; existing views keep it alive until they are gone."""
        self.alive, self.memory = False, None


def count(name: str, value: Any) -> int:
    """Returns a number of elements."""
    number = whole(name, value)
    if number < 0:
        raise TypeError(f"{name} is {number}; it must not be negative")
    return number


class ptr_wrapper:
    """A pointer to elements, in host memory or in device memory.

    A pointer to host memory that Python manages is *safe*: :meth:`get` returns only safe pointers.
    A wrapper keeps its memory alive; the plain number that ``int()`` returns does not.

    >>> from PybindGPU import backend
    >>> pointer = backend.ptr_wrapper_int64()
    >>> pointer.print_address(), pointer.is_safe(), pointer.get()
    0
    (None, False, (None, False))
    >>> pointer.create(10)
    >>> address, is_safe = pointer.get()
    >>> is_safe, address == pointer.unsafe_get() == int(pointer)
    (True, True)
    >>> pointer.destroy()
    """

    __slots__ = ("__weakref__", "_address", "_block", "_keep", "_safe")

    dtype: np.dtype[Any]

    def __init__(self) -> None:
        self._address = 0
        self._safe = False
        self._block: Block | None = None
        self._keep: Any = None

    @classmethod
    def _to(
        cls, address: int, safe: bool, block: Block | None = None, keep: Any = None
    ) -> ptr_wrapper:
        pointer = cls()
        pointer._address, pointer._safe = address, safe and address != 0
        pointer._block, pointer._keep = block, keep
        return pointer

    def create(self, N: int) -> None:
        """Allocates host memory for ``N`` undefined elements, and points to it from now on."""
        block = Block.on_host(count("N", N), self.dtype)
        self.destroy()
        self._block = block
        self._address, self._safe = block.address, True

    def destroy(self) -> None:
        """Frees the memory of :meth:`create`; the pointer becomes null, and arrays over it fail."""
        if self._block is not None and self._keep is None:
            self._block.end()
        self._address, self._safe, self._block, self._keep = 0, False, None, None

    def is_safe(self) -> bool:
        """Returns True if the pointer is to host memory that Python manages."""
        return self._safe and (self._block is None or self._block.alive)

    def get(self) -> tuple[int | None, bool]:
        """Returns the address and True if the pointer is safe, else None and False."""
        return (self._address, True) if self.is_safe() else (None, False)

    def unsafe_get(self) -> int:
        """Returns the address, safe or not; 0 for a null pointer."""
        return self._address

    def __int__(self) -> int:
        return self._address

    def print_address(self) -> None:
        """Prints the address."""
        print(f"{self._address:#x}" if self._address else "0")

    def __repr__(self) -> str:
        return f"<{self._label()}, is_safe={int(self.is_safe())}, addr={self._address}>"

    def _label(self) -> str:
        return f"ptr_wrapper<{self.dtype.name}>"


class handle_wrapper(ptr_wrapper):
    """The handle of an event or a stream."""

    __slots__ = ("_kind",)

    def __init__(self, kind: str = "handle", handle: int = 0, keep: Any = None) -> None:
        super().__init__()
        self._kind, self._address, self._keep = kind, handle, keep

    def _label(self) -> str:
        return f"ptr_wrapper<{self._kind}>"


POINTERS = per_dtype(ptr_wrapper)


def pointer_class(dtype: np.dtype[Any]) -> type[ptr_wrapper]:
    """Returns the class of pointers to elements of a dtype."""
    return POINTERS[f"ptr_wrapper_{dtype.name}"]


class _Allocator(Keeper):
    """The base of the allocators: a block, and the pointer to it."""

    dtype: np.dtype[Any]
    _on_host = True

    def __init__(self) -> None:
        self._block: Block | None = None
        self._status = None

    def _make(self, elements: int) -> Block:
        raise NotImplementedError

    def allocate(self, n: int) -> cudaError_t:
        """Allocates ``n`` undefined elements in place of the old ones; returns the status."""
        elements = count("n", n)
        if self._block is not None:
            self._block.end()
            self._block = None
        self._block, status = attempt(self._make, elements, keeper=self)
        return status

    def ptr(self) -> ptr_wrapper:
        """Returns the pointer to the memory; a null pointer before it is allocated."""
        block = self._block
        address = 0 if block is None else block.address
        return pointer_class(self.dtype)._to(address, self._on_host, block, keep=self)


class HostAllocator(_Allocator):
    """Owns ordinary host memory.

    >>> from PybindGPU import backend
    >>> memory = backend.HostAllocator_float32()
    >>> memory.allocate(10)
    >>> memory.ptr().is_safe(), bool(memory.last_status())
    (True, True)
    """

    def _make(self, elements: int) -> Block:
        return Block.on_host(elements, self.dtype)

    def allocate(self, n: int) -> None:  # type: ignore[override]
        """Allocates ``n`` undefined elements in place of the old ones."""
        super().allocate(n)


class PagelockedAllocator(_Allocator):
    """Owns page-locked host memory, which devices can also access.

    >>> from PybindGPU import backend
    >>> memory = backend.PagelockedAllocator_float32()
    >>> bool(memory.allocate(10)), memory.ptr().is_safe()
    (True, True)
    """

    def _make(self, elements: int) -> Block:
        return Block.of_array(_core.pagelocked_empty((elements,), self.dtype))


class DeviceAllocator(_Allocator):
    """Owns device memory.

    >>> from PybindGPU import backend
    >>> memory = backend.DeviceAllocator_float32()
    >>> bool(memory.allocate(10)), memory.ptr().is_safe(), bool(memory.last_status())
    (True, False, True)
    """

    _on_host = False

    def _make(self, elements: int) -> Block:
        nbytes = elements * self.dtype.itemsize
        memory = _core.mem_alloc(nbytes) if nbytes else 0
        return Block(memory, int(memory), nbytes)
