"""The names that the lines of a case use: modules, and functions that make arrays and memory.

A reproducer is this file's text followed by the case's lines, so it runs without the search.
"""

import ctypes

import numpy as np

import pygpu.autoinit
from pygpu import compiler, driver, gpuarray, ipc, tools

ga, drv = gpuarray, driver
context = pygpu.autoinit.context
kept, kept_stream = drv.mem_alloc(4096), drv.Stream()
shared = ipc.empty(7, "f4")
RECORD = np.dtype([("x", "f4"), ("y", "i2")])
NESTED = np.dtype([("p", "f4", (2,)), ("q", RECORD)])
WITH_OBJECT = np.dtype([("x", "f4"), ("o", object)])

NUMBERS = np.array([0, 1, -1, 2, 3, -0.0, 0.5, 127, -128, 255, 65504, 1e-3, 3e4, -7])
SPECIAL = np.array([np.nan, np.inf, -np.inf, -0.0, 1e-45, 1.0, 3.4e38, -1e300])


def host(dtype, shape, values=NUMBERS):
    """Returns a numpy array of any dtype."""
    dtype = np.dtype(dtype)
    if dtype.kind in "biufc":
        with np.errstate(all="ignore"):
            return np.resize(values, shape).astype(dtype)
    if dtype.hasobject:
        return np.full(shape, fill_value=None, dtype=dtype)
    return np.zeros(shape, dtype)


def gpu(dtype, shape, values=NUMBERS):
    """Returns an array on the device."""
    return ga.to_gpu(host(dtype, shape, values))


def read_only(array):
    """Returns the array after making it read-only."""
    array.flags.writeable = False
    return array


def misaligned(dtype, count):
    """Returns a numpy array whose elements start at an odd address."""
    dtype = np.dtype(dtype)
    return np.zeros(count * dtype.itemsize + 1, np.uint8)[1:].view(dtype)


def freed(memory):
    """Returns the allocation after freeing it."""
    memory.free()
    return memory


def zeroed(array):
    """Returns the array with all bytes zero. numpy cannot read uninitialised memory as text,
    because some numbers are not characters.
    """
    ctypes.memset(array.ctypes.data, 0, array.nbytes)
    return array


def freed_base(array):
    """Returns the host array after freeing its page-locked memory."""
    array.base.free()
    return array


def over(memory, *arguments, **more):
    """Returns an array over an allocation."""
    return ga.GPUArray(*arguments, gpudata=memory, **more)


def dead(*arguments):
    """Returns an array whose memory is freed."""
    memory = drv.mem_alloc(256)
    array = over(memory, *arguments)
    memory.free()
    return array


def raising(*arguments, **more):
    """Raises an error."""
    raise KeyError("raised by the program's own function")


def capturing():
    """Returns a stream that captures."""
    stream = drv.Stream()
    stream.begin_capture()
    return stream


def graph():
    """Returns a captured graph."""
    stream, array = drv.Stream(), gpu("f4", 8)
    stream.synchronize()
    stream.begin_capture()
    array.fill(1, stream)
    return stream.end_capture()


def recorded(stream=None):
    """Returns an event that was recorded."""
    return drv.Event().record(stream)


def function():
    """Returns a kernel that ignores its arguments; requires a compiler.

    Only CUDA's driver reports the number of parameters; elsewhere too few arguments are undefined.
    """
    parameters = "float *x, int n" if pygpu.choose_backend() == "cuda" else ""
    source = f"__global__ void idle({parameters}) {{ }}"
    return compiler.SourceModule(source).get_function("idle")


class SubArray(ga.GPUArray):
    """A subclass without own attributes."""


class SubAllocation(drv.DeviceAllocation):
    """A subclass of an allocation, which programs cannot create."""


class SubPool(tools.DeviceMemoryPool):
    """A pool with its own `allocate`."""

    def allocate(self, size):
        """Allocates twice the size."""
        return super().allocate(size * 2)


class Holder(drv.PointerHolderBase):
    """An object that represents an address, or an invalid value."""

    def __init__(self, pointer):
        self.pointer = pointer

    def get_pointer(self):
        """Returns the pointer, or calls the function in its place."""
        return self.pointer() if callable(self.pointer) else self.pointer


class Liar:
    """An object that answers every protocol with invalid values."""

    def __index__(self):
        return "no number"

    __int__ = __float__ = __len__ = __bool__ = __index__
    __array_interface__ = __cuda_array_interface__ = property(lambda self: {"shape": "x"})
    __cuda_stream__ = "no function"


class Thrower:
    """An object that answers every protocol with an exception."""

    __int__ = __index__ = __float__ = __len__ = __bool__ = raising
    __iter__ = __getitem__ = __array__ = __call__ = __hash__ = raising
    __cuda_stream__ = __eq__ = __repr__ = raising


class Sequence:
    """A sequence of three entries that reports another length, or fails at an entry."""

    def __init__(self, length, entries=(1, 2, 3), fails_at=None):
        self.length, self.entries, self.fails_at = length, entries, fails_at

    def __len__(self):
        return self.length

    def __length_hint__(self):
        return self.length

    def __getitem__(self, index):
        if index == self.fails_at:
            raise KeyError("raised by the program's own sequence")
        return self.entries[index]


class LongList(list):
    """A list that reports the largest possible length."""

    def __len__(self):
        return 2**63 - 1


class LongTuple(tuple):
    """A tuple that reports the largest possible length."""

    __slots__ = ()

    def __len__(self):
        return 2**63 - 1


class Hinted:
    """An iterator whose length hint is the largest possible length."""

    def __init__(self, entries=(1, 2, 3)):
        self.rest = iter(entries)

    def __iter__(self):
        return self

    def __next__(self):
        return next(self.rest)

    def __length_hint__(self):
        return 2**63 - 1


class Index:
    """An object that represents an integer, a different one each time."""

    def __init__(self, *numbers):
        self.numbers = list(numbers)

    def __index__(self):
        number = self.numbers.pop(0) if len(self.numbers) > 1 else self.numbers[0]
        return number() if callable(number) else number


class Interface:
    """An object with the array interfaces, of which some parts may be wrong."""

    def __init__(self, **parts):
        right = {"shape": (3,), "typestr": "<f4", "data": (int(kept), False), "version": 3}
        self.__cuda_array_interface__ = {**right, **parts}
        self.__array_interface__ = {**right, "data": None, **parts}


class Streamlike:
    """Another library's object that represents a stream."""

    def __init__(self, *answer):
        self.answer = answer

    def __cuda_stream__(self):
        return self.answer
