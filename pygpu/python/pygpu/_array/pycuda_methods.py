"""Methods of PyCUDA's arrays that packages call although their names are private."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._core import GPUArray
from ..characterize import has_double_support
from ..compyte.array import get_common_dtype


def _get_common_dtype(obj1: Any, obj2: Any) -> np.dtype[Any]:
    return get_common_dtype(obj1, obj2, has_double_support())


def _check(out: GPUArray, *others: GPUArray) -> None:
    for array in (out, *others):
        if not array.flags.forc:
            raise RuntimeError("only contiguous arrays may be used as arguments to this operation")
        if array.shape not in ((), out.shape):
            raise ValueError(f"an argument has shape {array.shape}; the result has {out.shape}")


def _run(factory: str, dtypes: tuple[Any, ...], operands: tuple[Any, ...], stream: Any) -> None:
    """Queues a kernel of :mod:`pygpu.elementwise`, whose last operand is the result."""
    # Few programs call these methods; others need not import the kernel modules.
    from .. import elementwise

    out = operands[-1]
    addresses = (it.gpudata if isinstance(it, GPUArray) else it for it in operands)
    kernel = getattr(elementwise, factory)(*dtypes)
    kernel.prepared_async_call(out._grid, out._block, stream, *addresses, out.mem_size)


def _axpbyz(
    self: GPUArray, selffac: Any, other: GPUArray, otherfac: Any, out: GPUArray, stream: Any = None
) -> GPUArray:
    """Writes ``selffac * self + otherfac * other`` to ``out`` and returns that."""
    _check(out, self, other)
    dtypes = self.dtype, other.dtype, out.dtype, self.shape == (), other.shape == ()
    factors = self.dtype.type(selffac), other.dtype.type(otherfac)
    _run("get_axpbyz_kernel", dtypes, (factors[0], self, factors[1], other, out), stream)
    return out


def _axpbz(self: GPUArray, selffac: Any, other: Any, out: GPUArray, stream: Any = None) -> GPUArray:
    """Writes ``selffac * self`` plus a number to ``out`` and returns that."""
    _check(out, self)
    numbers = out.dtype.type(selffac), out.dtype.type(other)
    dtypes = self.dtype, out.dtype
    _run("get_axpbz_kernel", dtypes, (numbers[0], self, numbers[1], out), stream)
    return out


def _elwise_multiply(
    self: GPUArray, other: GPUArray, out: GPUArray, stream: Any = None
) -> GPUArray:
    """Writes the product of two arrays to ``out`` and returns that."""
    _check(out, self, other)
    dtypes = self.dtype, other.dtype, out.dtype, "*", self.shape == (), other.shape == ()
    _run("get_binary_op_kernel", dtypes, (self, other, out), stream)
    return out
