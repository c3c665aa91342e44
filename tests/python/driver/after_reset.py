"""Programs that keep using objects from before a device reset. `test_after_reset.py` runs them; as
a script they take a way of resetting, a seed and a number of steps. An old object works or is
refused, the process survives, page-locked memory keeps its bytes, and new objects work."""

from __future__ import annotations

import ctypes
import gc
import os
import random
import sys
from collections.abc import Callable
from typing import Any

import numpy as np

from pygpu import cuda, driver, gpuarray, ipc
from pygpu.compiler import SourceModule

COUNT = 1000
SOURCE = """
__device__ int counter[4];
extern "C" __global__ void add(int *x, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) x[i] += 1;
}
"""


class Library:
    """CUDA's driver, as another library of the process uses it."""

    def __init__(self) -> None:
        self._driver = ctypes.CDLL(os.environ.get("PYGPU_CUDA_LIBRARY", "libcuda.so.1"))
        self._context = ctypes.c_void_p()

    def reset(self) -> None:
        assert self._driver.cuDevicePrimaryCtxReset_v2(0) == 0

    def reset_and_go_on(self) -> None:
        self.reset()
        assert self._driver.cuDevicePrimaryCtxRetain(ctypes.byref(self._context), 0) == 0

    def release_and_go_on(self) -> None:
        while self._driver.cuDevicePrimaryCtxRelease_v2(0) == 0:
            pass
        assert self._driver.cuDevicePrimaryCtxRetain(ctypes.byref(self._context), 0) == 0


RESETS: dict[str, Callable[[], Any]] = {
    "close": lambda: cuda.close(),
    "device": lambda: driver.Device(0).reset(),
    "numba": lambda: cuda.get_current_device().reset(),
}
OTHERS: dict[str, Callable[[], Any]] = {
    "other": lambda: Library().reset(),
    "other_goes_on": lambda: Library().reset_and_go_on(),
    "released": lambda: Library().release_and_go_on(),
}


class Number(int):
    """A stream's handle that keeps the stream alive: other numbers are not valid handles."""

    stream: Any


class World:
    """Objects from before and after resets, and the operations on them."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.objects: dict[str, list[Any]] = {}
        self.counts = {"done": 0, "refused": 0}

    def pick(self, kind: str) -> Any:
        known = self.objects.setdefault(kind, [])
        if not known or self.random.random() < 0.1:
            known.append(getattr(self, f"make_{kind}")())
        return self.random.choice(known)

    # ---- creating objects --------------------------------------------------------------------

    def make_stream(self) -> Any:
        stream = driver.Stream(self.random.choice([0, 1]))
        if self.random.random() < 0.3:
            stream.handle  # noqa: B018 - known outside from now on
        return stream

    def make_number(self) -> Any:
        stream = self.pick("stream")
        number = Number(stream.handle)
        number.stream = stream
        return number

    def make_numba_stream(self) -> Any:
        return cuda.stream()

    def make_event(self) -> Any:
        event = driver.Event()
        return event.record() if self.random.random() < 0.5 else event

    def make_array(self) -> Any:
        array = gpuarray.arange(COUNT, dtype=np.int32)
        return array.on(driver.Stream()) if self.random.random() < 0.5 else array

    def make_numba_array(self) -> Any:
        return cuda.to_device(np.arange(COUNT, dtype=np.int32))

    def make_allocation(self) -> Any:
        return driver.mem_alloc(4 * COUNT)

    def make_pinned(self) -> Any:
        size = self.random.choice([COUNT, COUNT, 300_000])
        flags = driver.host_alloc_flags.DEVICEMAP
        array = driver.pagelocked_empty(size, np.int32, mem_flags=flags)
        array[:] = np.arange(size)
        return array

    def make_mapped(self) -> Any:
        array = cuda.mapped_array(COUNT, np.int32)
        array[:] = np.arange(COUNT)
        return array

    def make_registered(self) -> Any:
        array = driver.aligned_empty(4096, np.int32)
        array[:] = np.arange(4096)
        return driver.register_host_memory(array)

    def make_managed(self) -> Any:
        size = self.random.choice([COUNT, COUNT, 300_000])
        array = driver.managed_empty(size, np.int32, mem_flags=driver.mem_attach_flags.GLOBAL)
        array[:] = np.arange(size)
        return array

    def make_module(self) -> Any:
        return SourceModule(SOURCE, no_extern_c=True)

    def make_kernel(self) -> Any:
        return self.pick("module").get_function("add")

    def make_graph(self) -> Any:
        stream, array = driver.Stream(), gpuarray.zeros(COUNT, np.int32)
        array = array.on(stream)
        stream.synchronize()
        with stream.capture() as graph:
            array += 1
        return graph

    def make_texture(self) -> Any:
        return driver.np_to_array(np.zeros((16, 16), np.float32), order="C")

    # ---- using objects -----------------------------------------------------------------------

    def uses(self) -> dict[str, Callable[[], Any]]:
        pick, host = self.pick, np.arange(COUNT, dtype=np.int32)
        return {
            "is_done": lambda: pick("stream").is_done(),
            "synchronize": lambda: pick("stream").synchronize(),
            "handle": lambda: pick("stream").handle,
            "repr": lambda: repr([pick("stream"), pick("numba_stream"), pick("event")]),
            "wait_for_event": lambda: pick("stream").wait_for_event(pick("event")),
            "by_number": lambda: driver.Stream.from_handle(pick("number")).synchronize(),
            "fill_by_number": lambda: pick("array").fill(1, pick("number")),
            "record": lambda: pick("event").record(pick("stream")),
            "query": lambda: pick("event").query(),
            "event_synchronize": lambda: pick("event").synchronize(),
            "event_handle": lambda: pick("event").handle,
            "time_till": lambda: pick("event").time_till(pick("event")),
            "add": lambda: pick("array") + pick("array"),
            "fill": lambda: pick("array").fill(1, pick("stream")),
            "get": lambda: pick("array").get(),
            "get_async": lambda: pick("array").get(
                pick("pinned")[:COUNT], async_=True, stream=pick("stream")
            ),
            "set_async": lambda: pick("array").set_async(pick("pinned")[:COUNT], pick("stream")),
            "on": lambda: pick("array").on(pick("stream")),
            "sum": lambda: pick("array").sum().get(),
            "sort": lambda: pick("array").sort(),
            "view": lambda: pick("array")[1:5].get(),
            "copy": lambda: pick("array").copy(),
            "address": lambda: int(pick("array").gpudata),
            "interface": lambda: pick("array").__cuda_array_interface__,
            "dlpack": lambda: pick("array").__dlpack__(),
            "ipc": lambda: ipc.share(pick("array")),
            "memcpy_htod": lambda: driver.memcpy_htod(pick("allocation"), host),
            "memcpy_dtoh": lambda: driver.memcpy_dtoh(np.empty_like(host), pick("allocation")),
            "memcpy_dtod_async": lambda: driver.memcpy_dtod_async(
                pick("allocation"), pick("allocation"), 400, pick("stream")
            ),
            "memcpy_from_pinned": lambda: driver.memcpy_htod_async(
                pick("allocation"), pick("pinned")[:COUNT], pick("stream")
            ),
            "memset": lambda: driver.memset_d32_async(pick("allocation"), 1, COUNT, pick("stream")),
            "raw_address": lambda: driver.memcpy_htod(int(pick("allocation")), host),
            "free": lambda: pick("allocation").free(),
            "pinned": lambda: pick("pinned").sum(),
            "pinned_address": lambda: pick("pinned").base.get_device_pointer(),
            "pinned_in_kernel": lambda: pick("kernel")(
                np.intp(pick("pinned").base.get_device_pointer()),
                np.int32(COUNT),
                block=(256, 1, 1),
                grid=(4, 1),
            ),
            "mapped": lambda: pick("mapped").sum(),
            "mapped_on_device": lambda: cuda.as_cuda_array(pick("mapped")).fill(3),
            "registered": lambda: pick("registered").sum(),
            "unregister": lambda: pick("registered").base.unregister(),
            "managed": lambda: pick("managed").sum(),
            "managed_on_device": lambda: driver.memset_d32(pick("managed").base, 2, 10),
            "managed_attach": lambda: pick("managed").base.attach(driver.mem_attach_flags.GLOBAL),
            "managed_attach_on": lambda: pick("managed").base.attach(
                driver.mem_attach_flags.SINGLE, pick("stream")
            ),
            "managed_as_source": lambda: gpuarray.to_gpu(np.asarray(pick("managed"))).get(),
            "get_function": lambda: pick("module").get_function("add"),
            "get_global": lambda: pick("module").get_global("counter"),
            "launch": lambda: pick("kernel")(
                pick("array"),
                np.int32(COUNT),
                block=(256, 1, 1),
                grid=(4, 1),
                stream=pick("stream"),
            ),
            "attribute": lambda: pick("kernel").num_regs,
            "graph": lambda: pick("graph").launch(pick("stream")),
            "texture": lambda: pick("texture").handle,
            "to_device": lambda: cuda.to_device(host, stream=pick("numba_stream")),
            "device_array": lambda: cuda.device_array(COUNT, stream=pick("numba_stream")),
            "copy_to_host": lambda: pick("numba_array").copy_to_host(stream=pick("numba_stream")),
            "copy_to_device": lambda: pick("numba_array").copy_to_device(
                host, stream=pick("numba_stream")
            ),
            "copy_on_device": lambda: pick("numba_array").copy_to_device(
                pick("numba_array"), stream=pick("numba_stream")
            ),
            "numba_interface": lambda: pick("numba_array").__cuda_array_interface__,
            "trim": lambda: driver.Context.trim_memory(),
            "settle": lambda: driver.Context.synchronize(),
            "forget": lambda: self.forget(),
        }

    def forget(self) -> None:
        known = self.objects.get(self.random.choice(sorted(self.objects)), [])
        if known:
            known.pop(self.random.randrange(len(known)))
            gc.collect()

    def attempt(self, use: Callable[[], Any]) -> None:
        try:
            use()
        except driver.Error:
            self.counts["refused"] += 1
        else:
            self.counts["done"] += 1

    def everything(self) -> None:
        """Creates one object of each kind, and uses them in every way."""
        for kind in [name[5:] for name in dir(self) if name.startswith("make_")]:
            self.attempt(lambda kind=kind: self.pick(kind))
        for use in self.uses().values():
            self.attempt(use)

    def reset(self, reset: Callable[[], Any]) -> None:
        """Resets the device; checks that host memory keeps its bytes and that new objects work."""
        driver.Context.synchronize()
        kinds = ["pinned", "mapped", "registered"]
        if reset in RESETS.values():
            kinds.append("managed")
        elif "managed" in self.objects:
            # The reset unmaps the pages, so no view of them may be used any longer.
            self.objects["managed"].clear()
        before = [(host, host.copy()) for kind in kinds for host in self.objects.get(kind, [])]
        reset()
        for host, bytes_before in before:
            assert (host == bytes_before).all(), type(host.base)
            host[:] = bytes_before
        self.check(may_refuse=reset in OTHERS.values())

    def check(self, may_refuse: bool = False) -> None:
        """Checks that new objects work. The first call may report another library's reset."""
        if may_refuse:
            told = ""
            try:
                gpuarray.zeros(1, np.int32)
            except driver.LogicError as error:
                told = str(error)
            assert not told or "reset by another library" in told, told
        stream = driver.Stream()
        array = gpuarray.to_gpu_async(np.arange(COUNT, dtype=np.int32), stream=stream)
        add = SourceModule(SOURCE, no_extern_c=True).get_function("add")
        add(array, np.int32(COUNT), block=(256, 1, 1), grid=(4, 1), stream=stream)
        assert ((array + 1).get() == np.arange(COUNT) + 2).all()
        assert (
            cuda.to_device(np.arange(3), stream=cuda.stream()).copy_to_host() == np.arange(3)
        ).all()


def search(name: str, seed: int, steps: int) -> World:
    """Makes random calls, with occasional resets."""
    world, reset = World(seed), (RESETS | OTHERS)[name]
    world.everything()
    world.reset(reset)
    world.everything()
    for _ in range(steps):
        if world.random.random() < 0.02:
            world.reset(reset)
        world.attempt(world.random.choice(list(world.uses().values())))
    world.reset(reset)
    return world


if __name__ == "__main__":
    made = search(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
    print(made.counts)
