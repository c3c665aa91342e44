"""What the lines of a case can name: the modules, and makers of arrays and memory.

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
    """A numpy array of any dtype."""
    dtype = np.dtype(dtype)
    if dtype.kind in "biufc":
        with np.errstate(all="ignore"):
            return np.resize(values, shape).astype(dtype)
    if dtype.hasobject:
        return np.full(shape, fill_value=None, dtype=dtype)
    return np.zeros(shape, dtype)


def gpu(dtype, shape, values=NUMBERS):
    """An array on the device."""
    return ga.to_gpu(host(dtype, shape, values))


def read_only(array):
    """The array, no longer writable."""
    array.flags.writeable = False
    return array


def misaligned(dtype, count):
    """A numpy array whose elements start at an odd address."""
    dtype = np.dtype(dtype)
    return np.zeros(count * dtype.itemsize + 1, np.uint8)[1:].view(dtype)


def freed(memory):
    """The allocation, freed."""
    memory.free()
    return memory


def zeroed(array):
    """The array, its bytes zero: numpy's own reading of what lies in fresh memory fails for text,
    since not every number is a character.
    """
    ctypes.memset(array.ctypes.data, 0, array.nbytes)
    return array


def freed_base(array):
    """The host array, its page-locked memory freed."""
    array.base.free()
    return array


def over(memory, *arguments, **more):
    """An array over an allocation."""
    return ga.GPUArray(*arguments, gpudata=memory, **more)


def dead(*arguments):
    """An array whose memory is freed."""
    memory = drv.mem_alloc(256)
    array = over(memory, *arguments)
    memory.free()
    return array


def raising(*arguments, **more):
    """A function that fails."""
    raise KeyError("raised by the program's own function")


def capturing():
    """A stream that captures."""
    stream = drv.Stream()
    stream.begin_capture()
    return stream


def graph():
    """A captured graph."""
    stream, array = drv.Stream(), gpu("f4", 8)
    stream.synchronize()
    stream.begin_capture()
    array.fill(1, stream)
    return stream.end_capture()


def recorded(stream=None):
    """An event that was recorded."""
    return drv.Event().record(stream)


def function():
    """A kernel that does nothing with its arguments; only where there is a compiler.

    Only CUDA's driver can tell how many there must be; elsewhere too few are undefined.
    """
    parameters = "float *x, int n" if pygpu.choose_backend() == "cuda" else ""
    source = f"__global__ void idle({parameters}) {{ }}"
    return compiler.SourceModule(source).get_function("idle")


class SubArray(ga.GPUArray):
    """A subclass that says nothing of its own."""


class SubAllocation(drv.DeviceAllocation):
    """A subclass of an allocation, which nobody can make."""


class SubPool(tools.DeviceMemoryPool):
    """A pool with an allocation of its own."""

    def allocate(self, size):
        """Allocates twice as much."""
        return super().allocate(size * 2)


class Holder(drv.PointerHolderBase):
    """Stands for an address, or for nonsense."""

    def __init__(self, pointer):
        self.pointer = pointer

    def get_pointer(self):
        """The pointer, or what the function instead of it does."""
        return self.pointer() if callable(self.pointer) else self.pointer


class Liar:
    """Answers every protocol with nonsense."""

    def __index__(self):
        return "no number"

    __int__ = __float__ = __len__ = __bool__ = __index__
    __array_interface__ = __cuda_array_interface__ = property(lambda self: {"shape": "x"})
    __cuda_stream__ = "no function"


class Thrower:
    """Answers every protocol with an exception."""

    __int__ = __index__ = __float__ = __len__ = __bool__ = raising
    __iter__ = __getitem__ = __array__ = __call__ = __hash__ = raising
    __cuda_stream__ = __eq__ = __repr__ = raising


class Sequence:
    """A sequence of three entries that says another length, or fails at an entry."""

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
    """A list that says that it is as long as any."""

    def __len__(self):
        return 2**63 - 1


class LongTuple(tuple):
    """A tuple that says that it is as long as any."""

    __slots__ = ()

    def __len__(self):
        return 2**63 - 1


class Hinted:
    """An iterator that says that it has as many entries as any."""

    def __init__(self, entries=(1, 2, 3)):
        self.rest = iter(entries)

    def __iter__(self):
        return self

    def __next__(self):
        return next(self.rest)

    def __length_hint__(self):
        return 2**63 - 1


class Index:
    """Stands for a whole number, another one each time."""

    def __init__(self, *numbers):
        self.numbers = list(numbers)

    def __index__(self):
        number = self.numbers.pop(0) if len(self.numbers) > 1 else self.numbers[0]
        return number() if callable(number) else number


class Interface:
    """Says of itself what arrays say, all but one part of it right."""

    def __init__(self, **parts):
        right = {"shape": (3,), "typestr": "<f4", "data": (int(kept), False), "version": 3}
        self.__cuda_array_interface__ = {**right, **parts}
        self.__array_interface__ = {**right, "data": None, **parts}


class Streamlike:
    """An object of another library that says which stream it is."""

    def __init__(self, *answer):
        self.answer = answer

    def __cuda_stream__(self):
        return self.answer
