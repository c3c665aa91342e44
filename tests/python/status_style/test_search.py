"""Random programs of low-level arrays, compared with a model of their memory.

The model knows which memory is alive, the bytes that have been written, and which arrays point to
each memory. It predicts whether a call succeeds. Every call is made in every state: before and
after the allocation, with freed or replaced memory, and with wrong sizes.

A longer search: PYGPU_SEARCH_STEPS=1000000 pytest tests/python/status_style/test_search.py
"""

from __future__ import annotations

import gc
import math
import os
import random

import numpy as np
import pytest

import PyGPU as gpuarray

STEPS = int(os.environ.get("PYGPU_SEARCH_STEPS", "2000"))
PROGRAM = 60  # steps
DTYPES = [np.dtype(name) for name in gpuarray.SUPPORTED_DTYPES]
EXTENTS = (0, 1, 2, 3, 5)


class Memory:
    """A block: its bytes, which of them are known, and whether it can still be used."""

    def __init__(self, nbytes):
        self.bytes = np.zeros(nbytes, np.uint8)
        self.known = np.zeros(nbytes, bool)
        self.alive = True

    def write(self, start, data, known=True):
        stop = start + len(data)
        self.bytes[start:stop], self.known[start:stop] = data, known


class Array:
    """An array of the package, and the model's blocks with its bytes."""

    def __init__(self, made, dtype, shape, order, host, device=None, writable=True):
        self.made, self.dtype, self.shape, self.order = made, dtype, shape, order
        self.host, self.device, self.writable = host, device, writable
        self.nbytes = math.prod(shape) * dtype.itemsize

    @property
    def can_copy(self):
        memories = (self.host, self.device)
        return all(memory is not None and memory.alive for memory in memories)


class Program:
    def __init__(self, seed):
        self.random = random.Random(seed)
        self.numbers = np.random.default_rng(seed)
        # Pairs of an object of the package and the memory that it owns.
        self.pointers: list = []
        self.allocators: list = []
        self.arrays: list[Array] = []

    def data(self, nbytes):
        return self.numbers.integers(0, 256, nbytes, np.uint8)

    def shape(self):
        return [self.random.choice(EXTENTS) for _ in range(self.random.randrange(4))]

    def new(self, kind, dtype):
        return getattr(gpuarray, f"{kind}_{dtype.name}")

    # -- owners of memory ------------------------------------------------------------------------

    def create_pointer(self):
        if self.pointers and self.random.random() < 0.5:
            slot = self.random.choice(self.pointers)
            slot[1].alive = False
        else:
            dtype = self.random.choice(DTYPES)
            slot = [self.new("ptr_wrapper", dtype)(), None, dtype]
            self.pointers.append(slot)
        count = self.random.randrange(40)
        slot[0].create(count)
        slot[1] = Memory(count * slot[2].itemsize)
        assert slot[0].is_safe() == (int(slot[0]) != 0)

    def destroy_pointer(self):
        if self.pointers:
            pointer, memory, _ = self.random.choice(self.pointers)
            memory.alive = False
            pointer.destroy()
            assert pointer.get() == (None, False)

    def allocate_memory(self):
        if self.allocators and self.random.random() < 0.5:
            slot = self.random.choice(self.allocators)
            slot[1].alive = False
        else:
            dtype = self.random.choice(DTYPES)
            slot = [self.new("DeviceAllocator", dtype)(), None, dtype]
            self.allocators.append(slot)
        count = self.random.randrange(1, 40)
        assert slot[0].allocate(count)
        slot[1] = Memory(count * slot[2].itemsize)

    # -- the five constructors -------------------------------------------------------------------

    def finish(self, array, succeeds):
        status = array.made.last_status()
        assert bool(status) == succeeds, (status, array.shape, array.dtype)
        assert array.made.allocated() == (array.device is not None)
        if succeeds:
            assert array.made.shape() == list(array.shape)
            assert array.made.nbytes() == array.nbytes
        self.arrays.append(array)

    def make_own(self):
        dtype, shape, order = self.random.choice(DTYPES), self.shape(), self.random.choice("CF")
        if self.random.random() < 0.3:
            shape, order = [self.random.randrange(100)], "C"
            made = self.new("DeviceArray", dtype)(shape[0])
        else:
            made = self.new("DeviceArray", dtype)(shape, int(order == "C"))
        nbytes = math.prod(shape) * dtype.itemsize
        self.finish(Array(made, dtype, shape, order, Memory(nbytes)), succeeds=True)

    def make_over_buffer(self):
        dtype, given = self.random.choice(DTYPES), self.random.choice(DTYPES)
        shape, order = self.shape(), self.random.choice("CF")
        count = math.prod(shape)
        buffer = self.data(count * given.itemsize).view(given).reshape(shape, order=order)
        succeeds = dtype.itemsize <= given.itemsize or count == 0
        writable = self.random.random() < 0.8
        buffer.flags.writeable = writable
        order = "C" if buffer.flags.c_contiguous else "F"
        # The array's pointer covers its elements, not the rest of the buffer.
        nbytes = count * dtype.itemsize
        host = Memory(nbytes) if succeeds else None
        if host is not None:
            host.write(0, np.frombuffer(buffer.tobytes(order="A"), np.uint8)[:nbytes])
        made = self.new("DeviceArray", dtype)(buffer)
        self.finish(Array(made, dtype, shape, order, host, writable=writable), succeeds)

    def host_pointer(self, dtype):
        """Returns a pointer, its memory, and whether it is usable as host memory."""
        choice = self.random.random()
        if choice < 0.4 and self.pointers:
            pointer, memory, _ = self.random.choice(self.pointers)
            return pointer, memory, memory.alive
        if self.arrays and choice < 0.9:
            array = self.random.choice(self.arrays)
            if choice < 0.5:
                return array.made.device_data(), array.device, False
            live = array.host is not None and array.host.alive
            return array.made.host_data(), array.host, live
        return self.new("ptr_wrapper", dtype)(), None, False

    def make_at_pointer(self):
        dtype, shape, order = self.random.choice(DTYPES), self.shape(), self.random.choice("CF")
        pointer, memory, usable = self.host_pointer(dtype)
        made = self.new("DeviceArray", dtype)(pointer, shape, int(order == "C"))
        nbytes = math.prod(shape) * dtype.itemsize
        if memory is not None and len(memory.bytes) == 0 and usable and nbytes == 0:
            # For an empty array numpy may return an address or none; both are valid.
            return
        aligned = int(pointer) % dtype.alignment == 0
        fits = nbytes == 0 or (memory is not None and nbytes <= len(memory.bytes) and aligned)
        host = (memory if nbytes else Memory(0)) if usable and fits else None
        # The owner of the memory decides whether it is writable.
        self.finish(Array(made, dtype, shape, order, host, writable=None), usable and fits)

    def make_at_addresses(self):
        if not self.allocators:
            return self.allocate_memory()
        dtype, shape, order = self.random.choice(DTYPES), self.shape(), self.random.choice("CF")
        nbytes = math.prod(shape) * dtype.itemsize
        host, allocator = self.data(nbytes + 16), self.random.choice(self.allocators)
        pointer, memory = allocator[0].ptr(), allocator[1]
        place = -host.ctypes.data % 16 + (self.random.random() < 0.1)
        address = host.ctypes.data + place if self.random.random() < 0.95 else 0
        as_number = self.random.random() < 0.5
        device = int(pointer) if as_number else pointer
        aligned = address % dtype.alignment == 0 and address != 0
        known = as_number or nbytes <= len(memory.bytes)
        succeeds = nbytes == 0 or (aligned and known)
        made = self.new("DeviceArray", dtype)(address, device, shape, int(order == "C"))
        made.kept_by_the_test = host, allocator
        if as_number:
            # A number carries no size or lifetime, so only sizes that certainly fit are used.
            if nbytes > len(memory.bytes):
                return None
            memory_there = memory
        else:
            memory_there = memory
        source = Memory(nbytes)
        if nbytes:
            source.write(0, host[place : place + nbytes])
        array = Array(
            made,
            dtype,
            shape,
            order,
            source if succeeds else None,
            memory_there if succeeds else None,
        )
        self.finish(array, succeeds)
        if as_number and succeeds:
            # The caller must keep such memory alive; this program does not use the array
            # afterwards.
            self.exercise(array)
            self.arrays.remove(array)
        return None

    # -- the calls -------------------------------------------------------------------------------

    def allocate(self, array):
        succeeds = array.device is None and array.host is not None
        assert bool(array.made.allocate()) == succeeds
        if succeeds:
            array.device = Memory(array.nbytes)

    def to_device(self, array):
        succeeds = array.can_copy
        assert bool(array.made.to_device()) == succeeds
        if succeeds:
            n = array.nbytes
            array.device.write(0, array.host.bytes[:n], array.host.known[:n])

    def to_host(self, array):
        if array.writable is None:
            return
        succeeds = array.can_copy and (array.writable or array.nbytes == 0)
        assert bool(array.made.to_host()) == succeeds
        if succeeds:
            n = array.nbytes
            array.host.write(0, array.device.bytes[:n], array.device.known[:n])

    def set_val(self, array):
        size = math.prod(array.shape)
        index = self.random.randrange(-2, size + 2)
        succeeds = array.device is not None and array.device.alive and 0 <= index < size
        value = self.data(array.dtype.itemsize) % 100
        assert bool(array.made.set_val(index, value.view(array.dtype)[0])) == succeeds
        if succeeds:
            array.device.write(index * array.dtype.itemsize, value)

    def set(self, array):
        nbytes = max(0, array.nbytes + self.random.choice((0, 0, 0, -1, 1)))
        data = self.data(nbytes)
        live = array.device is not None and array.device.alive
        succeeds = live and nbytes == array.nbytes
        given = data if self.random.random() < 0.5 else data.tobytes()
        assert bool(array.made.set(given)) == succeeds
        if succeeds:
            array.device.write(0, data)

    def write_host(self, array):
        if array.host is None or not array.host.alive:
            with pytest.raises(BufferError):
                memoryview(array.made)
            return
        view = np.asarray(array.made)
        assert (view.shape, view.dtype) == (tuple(array.shape), array.dtype)
        seen = np.frombuffer(view.tobytes(order="A"), np.uint8)
        if view.size:
            known = array.host.known[: array.nbytes]
            np.testing.assert_array_equal(seen[known], array.host.bytes[: array.nbytes][known])
        if view.flags.writeable and view.size:
            data = self.data(array.nbytes)
            view[...] = data.view(array.dtype).reshape(array.shape, order=array.order)
            array.host.write(0, data)

    def drop(self):
        for owners in (self.arrays, self.pointers, self.allocators):
            if owners and self.random.random() < 0.3:
                owners.pop(self.random.randrange(len(owners)))

    def exercise(self, array):
        calls = (self.allocate, self.to_device, self.to_host, self.set_val, self.set)
        for call in self.random.sample(calls, 3):
            call(array)
        self.write_host(array)

    def step(self):
        make = (
            self.create_pointer,
            self.destroy_pointer,
            self.allocate_memory,
            self.make_own,
            self.make_over_buffer,
            self.make_at_pointer,
            self.make_at_addresses,
            self.drop,
        )
        if not self.arrays or self.random.random() < 0.35:
            self.random.choice(make)()
        else:
            self.exercise(self.random.choice(self.arrays))
        if self.random.random() < 0.01:
            gc.collect()


def test_random_programs_do_what_the_model_says():
    gpuarray.cudaGetLastError()
    for seed in range(max(1, STEPS // PROGRAM)):
        program = Program(seed)
        try:
            for _ in range(PROGRAM):
                program.step()
        except Exception as reason:
            reason.add_note(f"in the program of seed {seed}") if hasattr(
                reason, "add_note"
            ) else None
            raise
    assert gpuarray.cudaDeviceSynchronize()
