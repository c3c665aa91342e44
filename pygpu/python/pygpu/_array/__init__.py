"""The functions of ``gpuarray`` and ``curandom``, and methods of the class of arrays."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from typing import Literal, Protocol, SupportsIndex, TypeAlias

    import numpy as np
    from numpy._globals import _NoValueType as Unset
    from numpy.typing import ArrayLike, DTypeLike

    from .._core import GPUArray

    Array: TypeAlias = GPUArray | ArrayLike

    class CudaStream(Protocol):
        def __cuda_stream__(self) -> tuple[int, int]: ...

    # A stream of this package or of another one, a handle, or None for the array's own.
    OnStream: TypeAlias = CudaStream | int | None
    Out: TypeAlias = GPUArray | None
    Arrays: TypeAlias = Iterable[Array]
    Number: TypeAlias = bool | int | float | complex | np.generic
    Operand: TypeAlias = GPUArray | Number | list[Any] | tuple[Any, ...] | range
    Mask: TypeAlias = GPUArray | bool | np.bool_ | list[Any] | tuple[Any, ...] | range | Unset
    Initial: TypeAlias = GPUArray | Number | Unset | None
    DType: TypeAlias = DTypeLike | None
    Shape: TypeAlias = SupportsIndex | Sequence[SupportsIndex]
    Axes: TypeAlias = int | Sequence[int]
    Axis: TypeAlias = Axes | None
    Sections: TypeAlias = SupportsIndex | Iterable[SupportsIndex]
    Order: TypeAlias = Literal["C", "F", "A", "K"] | None
    Casting: TypeAlias = Literal["no", "equiv", "safe", "same_kind", "unsafe"]
    # A function that takes a number of bytes and returns memory.
    Allocator: TypeAlias = Callable[[int], Any] | None
else:  # The names at run time. The types would take time to import.
    Array = Number = Operand = Mask = DType = Shape = Axis = Sections = Order = Casting = Any
    Initial = Allocator = Out = OnStream = Unset = Arrays = Axes = Any
