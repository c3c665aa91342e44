"""Memory pools, contexts, caches and type names, with the names of ``pycuda.tools``."""

from __future__ import annotations

import functools
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypeVar, overload

from . import driver
from ._lazy import exports as _exports

if TYPE_CHECKING:
    from ._core import DeviceMemoryPool as DeviceMemoryPool
    from ._core import PageLockedAllocator as PageLockedAllocator
    from ._core import PageLockedMemoryPool as PageLockedMemoryPool
    from ._core import PooledDeviceAllocation as PooledDeviceAllocation
    from ._core import PooledHostAllocation as PooledHostAllocation
    from ._core import bitlog2 as bitlog2
    from ._driver.memory import DebugMemoryPool as DebugMemoryPool
    from ._kernels.c_types import *  # noqa: F403
else:
    __getattr__, __dir__, __all__ = _exports(
        __name__,
        {
            "._core": """
                DeviceMemoryPool PageLockedAllocator PageLockedMemoryPool PooledDeviceAllocation
                PooledHostAllocation bitlog2""",
            "._driver.memory": "DebugMemoryPool",
            "._kernels.c_types": """
                Argument ScalarArg VectorArg base_dtype_to_ctype dtype_to_ctype get_arg_type
                get_or_register_dtype match_dtype_to_c_struct parse_c_arg register_dtype""",
        },
    )
    __all__ += ["DeviceData", "OccupancyRecord", "clear_context_caches", "get_default_device"]
    __all__ += ["context_dependent_memoize", "context_dependent_memoized_functions"]
    __all__ += ["init_cuda_context_fixture", "make_default_context", "mark_cuda_test"]


_T = TypeVar("_T")


def get_default_device(default: int = 0) -> driver.Device:
    """Returns the device with the number in ``CUDA_DEVICE``, by default ``default``.

    >>> isinstance(get_default_device(), driver.Device)
    True
    """
    text = os.environ.get("CUDA_DEVICE", "").strip()
    return driver.Device(int(text) if text else default)


@overload
def make_default_context(ctx_maker: None = None) -> driver.Context: ...
@overload
def make_default_context(ctx_maker: Callable[[driver.Device], _T]) -> _T: ...
def make_default_context(ctx_maker: Callable[[driver.Device], Any] | None = None) -> Any:
    """Makes a context, by ``ctx_maker`` or ``Device.make_context``, on a device.

    The device is the one in ``CUDA_DEVICE``, or else the first on which a context can be made.
    Raises ``RuntimeError`` if there is no device.

    >>> context = make_default_context()
    >>> context.pop()
    """
    make = ctx_maker or (lambda device: device.make_context())
    if os.environ.get("CUDA_DEVICE", "").strip():
        return make(get_default_device())
    count = driver.Device.count()
    if count == 0:
        raise driver.RuntimeError("no device is available to make a context on")
    for ordinal in range(count - 1):
        try:
            return make(driver.Device(ordinal))
        except driver.Error:
            continue
    return make(driver.Device(count - 1))


def _round_up(value: int, multiple: int) -> int:
    return -(-value // multiple) * multiple


class DeviceData:
    """The properties of a device for occupancy and alignment: of ``dev``, or the current device.

    >>> data = DeviceData()
    >>> data.align(10), data.align_dtype(10, 4), data.align_words(8), data.coalesce(10)
    (64, 16, 16, 16)
    >>> data.align_bytes(), DeviceData.make_valid_tex_channel_count(3)
    (64, 4)
    """

    def __init__(self, dev: driver.Device | None = None) -> None:
        dev = driver.Context.get_device() if dev is None else dev
        capability = dev.compute_capability()
        self.max_threads = dev.max_threads_per_block
        self.warp_size = dev.warp_size
        warps = (((3, 0), 64), ((2, 0), 48), ((1, 2), 32))
        self.warps_per_mp = next((n for least, n in warps if capability >= least), 24)
        self.thread_blocks_per_mp = 8
        self.registers = dev.max_registers_per_block
        self.shared_memory = dev.max_shared_memory_per_block
        modern = capability >= (2, 0)
        self.smem_alloc_granularity = 128 if modern else 512
        self.smem_granularity = 32 if modern else 16
        self.register_allocation_unit = "warp" if modern else "block"

    def align(self, bytes: int, word_size: int = 4) -> int:
        """Returns ``bytes``, rounded up to the bytes that a half warp reads (:meth:`align_bytes`).

        Each thread reads a word of ``word_size`` bytes.
        """
        return _round_up(bytes, self.align_bytes(word_size))

    def align_dtype(self, elements: int, dtype_size: int) -> int:
        """Returns ``elements``, of ``dtype_size`` bytes, rounded up to :meth:`align_words`."""
        return _round_up(elements, self.align_words(dtype_size))

    def align_words(self, word_size: int) -> int:
        """Returns how many words of ``word_size`` bytes, 4, 8 or 16, a half warp reads."""
        return self.align_bytes(word_size) // word_size

    def align_bytes(self, word_size: int = 4) -> int:
        """Returns the bytes that a half warp reads in words of ``word_size`` (4, 8 or 16) bytes."""
        if word_size == 4:
            return 64
        if word_size in (8, 16):
            return 128
        raise ValueError(f"no alignment possible for fetches of size {word_size}")

    def coalesce(self, thread_count: int) -> int:
        """Returns ``thread_count``, rounded up to a multiple of 16, a half warp."""
        return _round_up(thread_count, 16)

    @staticmethod
    def make_valid_tex_channel_count(size: int) -> int:
        """Returns the smallest number of texture channels for ``size`` numbers: 1, 2 or 4."""
        for count in (1, 2, 4):
            if size <= count:
                return count
        raise ValueError("could not enlarge argument to valid channel count")


class OccupancyRecord:
    """The number of blocks that a multiprocessor of ``devdata`` runs at a time, by PyCUDA's rule.

    A block has ``threads`` threads and ``shared_mem`` bytes of shared memory. A thread uses
    ``registers`` registers.

    >>> 0 < OccupancyRecord(DeviceData(), 128).occupancy <= 1
    True
    """

    def __init__(
        self, devdata: DeviceData, threads: int, shared_mem: int = 0, registers: int = 0
    ) -> None:
        if threads > devdata.max_threads:
            raise ValueError("too many threads")
        warps = -(-threads // devdata.warp_size)
        shared = _round_up(shared_mem, devdata.smem_alloc_granularity)
        if devdata.register_allocation_unit == "warp":
            used = warps * 32 * registers
        else:
            used = _round_up(warps * 2, 4) * 16 * registers
        if used > devdata.registers:
            raise ValueError("too many registers")
        if shared > devdata.shared_memory:
            raise ValueError("too much smem")
        self.tb_per_mp_limits = [
            (devdata.thread_blocks_per_mp, "device"),
            (devdata.warps_per_mp // warps, "warps"),
        ]
        if registers > 0:
            self.tb_per_mp_limits.append((devdata.registers // used, "regs"))
        if shared_mem > 0:
            self.tb_per_mp_limits.append((devdata.shared_memory // shared, "smem"))
        self.tb_per_mp, self.limited_by = min(self.tb_per_mp_limits)
        self.warps_per_mp = self.tb_per_mp * warps
        self.occupancy = self.warps_per_mp / devdata.warps_per_mp


context_dependent_memoized_functions: list[Callable[..., Any]] = []
"""The functions whose caches :func:`clear_context_caches` clears."""


def context_dependent_memoize(func: Callable[..., Any]) -> Callable[..., Any]:
    """Returns ``func`` with a cache of results, by context and hashable arguments.

    >>> @context_dependent_memoize
    ... def square(x):
    ...     print("computed")
    ...     return x * x
    >>> square(3), square(3)
    computed
    (9, 9)
    """
    # PyCUDA keeps the results under this name, and programs clear them there.
    cache: dict[Any, dict[Any, Any]] = {}
    func._pycuda_ctx_dep_memoize_dic = cache  # type: ignore[attr-defined]
    context_dependent_memoized_functions.append(func)

    @functools.wraps(func)
    def remembered(*args: Any, **kwargs: Any) -> Any:
        key = (args, frozenset(kwargs.items()))
        results = cache.setdefault(driver.Context.get_current(), {})
        try:
            return results[key]
        except KeyError:
            return results.setdefault(key, func(*args, **kwargs))

    return remembered


def clear_context_caches() -> None:
    """Clears the caches of functions made by :func:`context_dependent_memoize`.

    >>> clear_context_caches()
    """
    for func in context_dependent_memoized_functions:
        func._pycuda_ctx_dep_memoize_dic.clear()  # type: ignore[attr-defined]


def init_cuda_context_fixture() -> Iterator[driver.Context]:
    """The body of a pytest fixture: yields a context that is current while a test runs.

    Raises ``RuntimeError`` if there is no device.

    >>> import pytest
    >>> @pytest.fixture
    ... def context():
    ...     yield from init_cuda_context_fixture()
    """
    driver.init()
    context = make_default_context()
    try:
        yield context
    finally:
        context.pop()
        clear_context_caches()


def mark_cuda_test(inner_f: Callable[..., Any]) -> Callable[..., Any]:
    """Returns ``inner_f`` as a test with a context of its own, marked ``cuda`` for pytest.

    >>> @mark_cuda_test
    ... def test_sum():
    ...     return gpuarray.sum(gpuarray.arange(4)).get()
    >>> test_sum()
    array(6)
    """

    @functools.wraps(inner_f)
    def test(*args: Any, **kwargs: Any) -> Any:
        with contextmanager(init_cuda_context_fixture)():
            return inner_f(*args, **kwargs)

    try:
        import pytest  # which programs other than tests may lack
    except ImportError:
        return test
    return pytest.mark.cuda(test)
