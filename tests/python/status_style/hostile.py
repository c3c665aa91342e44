"""Calls every public name of PyGPU with arguments that are likely to cause faults.

    python tests/python/status_style/hostile.py SEED STEPS

A call that returns a status may raise only TypeError, as for an argument of a wrong
type. The few callables that return something else are listed with the other exceptions
that they raise. All created objects are used further. A crash ends the process;
anything unexpected is printed, and the exit status is 1.
"""

from __future__ import annotations

import ctypes
import faulthandler
import mmap
import random
import sys

import numpy as np

import PyGPU as gpu
from pygpu import driver

faulthandler.enable()
hole = mmap.mmap(-1, mmap.PAGESIZE)
HOLE = ctypes.addressof(ctypes.c_char.from_buffer(hole))
hole.close()
released = memoryview(b"released")
released.release()

ALWAYS = (TypeError, gpu.UnsupportedDataType)
REFUSALS = (ValueError, OverflowError, MemoryError, driver.Error)
# Callables that do not return a status.
RAISES = {
    "GPUArray": (*REFUSALS, RuntimeError),  # an allocator and a shape
    "Allocator": REFUSALS,
    "HostAllocator": REFUSALS,
    "PagelockedAllocator": REFUSALS,
    "cudaError_t": (OverflowError,),
    "nvmlReturn_t": (OverflowError,),
    "create": (MemoryError,),
    "get": REFUSALS,
    "raise_for_status": REFUSALS,
    "set": (AssertionError,),
    "__getitem__": (*REFUSALS, IndexError),
}
SIMPLE = [
    *(None, True, -1, 0, 1, 3, 8, 2**31, 2**63, 2**64, 2**70, -(2**63), HOLE, HOLE + 1),
    *(1.5, float("nan"), 1j, "", "abc", "float32", "C", "F", b"", b"12345678" * 4, bytearray(64)),
    *([], [2, 3], (2, 3), [2, -3], [2**40, 2**40], [[1]], [None], {}, object(), released),
    *(np.int64(3), np.float32(2), np.array(5), np.arange(6), np.arange(6.0)[::2]),
    *(
        np.zeros((2, 3), order="F"),
        np.zeros((0, 3)),
        np.array([object()] * 3),
        np.zeros((2, 3), ">f4"),
    ),
    *(np.zeros(3, "M8[s]"), np.zeros(2, [("a", "i4"), ("b", "f8")]), complex, float, int, type),
    *(np.float64, np.dtype("int16"), slice(None), Ellipsis, np.array([True, False] * 3)),
]
KEYWORDS = ("shape", "dtype", "order", "copy", "allocator", "flag_c_contiguous", "flags")


class Described:
    """Another library's array with a faulty description."""

    def __init__(self, choose):
        good = {"shape": (2, 3), "typestr": "<f4", "data": (HOLE, False), "version": 3}
        bad = (None, 5, "x", (1, 2), (-1, 3), (2**62, 8), (0, False), -1, [], "|O", "<f2", {})
        self.__cuda_array_interface__ = good | {choose(list(good)): choose(bad)}


class Hostile:
    def __init__(self, seed):
        self.random = random.Random(seed)
        self.choose = self.random.choice
        self.unexpected = []
        python = ("StatusWarning", "UnsupportedDataType", "dtype")  # Python's own constructors
        self.names = [n for n in gpu.__all__ if callable(getattr(gpu, n)) and n not in python]
        self.makers = (
            self.pointer,
            self.array,
            self.device_array,
            lambda: Described(self.choose),
            gpu.cudaEvent_t,
            gpu.cudaStream_t,
            lambda: gpu.cudaError_t(1),
            lambda: gpu.Allocator(gpu.to_gpu(np.arange(6))),
            lambda: gpu.PagelockedAllocator((2,), float),
            lambda: self.device_array().device_data(),
            lambda: self.device_array().host_data(),
        )

    def pointer(self):
        pointer = getattr(gpu, f"ptr_wrapper_{self.choose(gpu.SUPPORTED_DTYPES)}")()
        for act in self.choose(((), ("create",), ("create",), ("create", "destroy"))):
            getattr(pointer, act)(*([self.random.randrange(10)] if act == "create" else []))
        return pointer

    def array(self):
        return gpu.GPUArray(self.choose((np.arange(6), (2, 3), np.zeros((2, 3), "f4"), [0], [-1])))

    def device_array(self):
        kind = getattr(gpu, f"DeviceArray_{self.choose(gpu.SUPPORTED_DTYPES)}")
        return kind(self.choose((3, [2, 2], np.arange(4.0), b"12345678" * 4, [2, -1], 0)))

    def value(self):
        return self.choose(self.makers)() if self.random.random() < 0.4 else self.choose(SIMPLE)

    def call(self, name, function):
        args = [self.value() for _ in range(self.choose((0, 1, 1, 1, 2, 2, 3, 4)))]
        keywords = {self.choose(KEYWORDS): self.value()} if self.random.random() < 0.1 else {}
        try:
            return function(*args, **keywords)
        except (*ALWAYS, *RAISES.get(name, ())):
            return None
        except Exception as reason:
            self.unexpected.append(f"{name}{tuple(args)} {keywords}: {reason!r}")
            return None

    def step(self):
        name = self.choose(self.names)
        made = self.call(name, getattr(gpu, name))
        if made is None or isinstance(made, tuple | str):
            return
        members = [name for name in dir(made) if not name.startswith("_")]
        for member in [self.choose(members) for _ in range(3)] + ["__getitem__"]:
            found = getattr(made, member, None)
            if callable(found) and member != "print_address":
                self.call(member, found)
        repr(made)


if __name__ == "__main__":
    hostile = Hostile(int(sys.argv[1]))
    for _ in range(int(sys.argv[2])):
        hostile.step()
    print("\n".join(sorted(set(hostile.unexpected))))
    sys.exit(bool(hostile.unexpected))
