"""Contexts, caches and type names, with the names of ``pycuda.tools``."""

from __future__ import annotations

import functools
import os
from collections.abc import Callable
from typing import Any

import numpy as np

from . import driver

__all__ = [
    "bitlog2",
    "clear_context_caches",
    "context_dependent_memoize",
    "dtype_to_ctype",
    "get_default_device",
    "init_cuda_context_fixture",
    "make_default_context",
    "mark_cuda_test",
]


def bitlog2(n: int) -> int:
    """The position of the highest set bit."""
    if n < 1:
        raise ValueError(f"n is {n}; a number above 0 is needed")
    return int(n).bit_length() - 1


def get_default_device(default: int = 0) -> driver.Device:
    """The device that ``CUDA_DEVICE`` names by number, else ``default``."""
    text = os.environ.get("CUDA_DEVICE", "").strip()
    return driver.Device(int(text) if text else default)


def make_default_context(ctx_maker: Callable[[driver.Device], Any] | None = None) -> Any:
    """A context on the device that ``CUDA_DEVICE`` names, else on the first that gives one."""
    make = ctx_maker or (lambda device: device.make_context())
    if os.environ.get("CUDA_DEVICE", "").strip():
        return make(get_default_device())
    count = driver.Device.count()
    if count == 0:
        raise driver.RuntimeError("there is no device to make a context on")
    for ordinal in range(count):
        try:
            return make(driver.Device(ordinal))
        except driver.Error:
            if ordinal + 1 == count:
                raise
    raise AssertionError("unreachable")


_caches: list[dict[Any, Any]] = []


def context_dependent_memoize(func: Callable[..., Any]) -> Callable[..., Any]:
    """Remembers results by context and arguments until the context's caches are cleared."""
    cache: dict[Any, Any] = {}
    _caches.append(cache)

    @functools.wraps(func)
    def remembered(*args: Any, **kwargs: Any) -> Any:
        key = (driver.Context.get_current(), args, tuple(sorted(kwargs.items())))
        try:
            return cache[key]
        except KeyError:
            return cache.setdefault(key, func(*args, **kwargs))

    return remembered


def clear_context_caches() -> None:
    """Forgets what :func:`context_dependent_memoize` remembers."""
    for cache in _caches:
        cache.clear()


_CTYPES = {
    "bool": "bool",
    "int8": "signed char",
    "int16": "short",
    "int32": "int",
    "int64": "long",
    "uint8": "unsigned char",
    "uint16": "unsigned short",
    "uint32": "unsigned int",
    "uint64": "unsigned long",
    "float32": "float",
    "float64": "double",
    "complex64": "pycuda::complex<float>",
    "complex128": "pycuda::complex<double>",
}


def dtype_to_ctype(dtype: Any) -> str:
    """The name of a dtype in CUDA C."""
    name = np.dtype(dtype).name
    try:
        return _CTYPES[name]
    except KeyError:
        raise ValueError(f"dtype {name} has no name in CUDA C") from None


def init_cuda_context_fixture() -> Any:
    """The body of a pytest fixture: a context while a test runs."""
    driver.init()
    context = make_default_context()
    try:
        yield context
    finally:
        context.pop()
        clear_context_caches()


def mark_cuda_test(inner: Callable[..., Any]) -> Callable[..., Any]:
    """Makes a function a test that runs in a context of its own."""

    @functools.wraps(inner)
    def test(*args: Any, **kwargs: Any) -> Any:
        driver.init()
        context = make_default_context()
        try:
            return inner(*args, **kwargs)
        finally:
            context.pop()
            clear_context_caches()

    try:
        import pytest
    except ImportError:
        return test
    return pytest.mark.cuda(test)
