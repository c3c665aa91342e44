"""Code of the program that runs during a call: methods of arguments, allocators, callbacks of
weak references. It may change objects that the call has already checked."""

from __future__ import annotations

import numpy as np
import pytest
from processes import run_python

from pygpu import driver, gpuarray

COUNT = 1000


def shrink(array):
    """Frees an array's memory; the array then has a single element."""
    array.__setstate__((1, (1,) * array.ndim, array.dtype, False, bytes(array.itemsize)))


class Address:
    """An address whose conversion calls a function."""

    def __init__(self, address, function):
        self.address, self.function = int(address), function

    def __index__(self):
        self.function()
        return self.address


class External:
    """A default stream whose conversion calls a function."""

    def __init__(self, function):
        self.function = function

    def __cuda_stream__(self):
        self.function()
        return 0, 0


def host():
    return np.ones(COUNT)


def allocator(hooks):
    """Returns an allocator that calls the functions in a list."""

    def allocate(size):
        for hook in hooks:
            hook()
        return driver.mem_alloc(size)

    return allocate


def every_second(hooks):
    """Returns an array with gaps: copies from and to it allocate memory with the allocator."""
    return gpuarray.GPUArray((2 * COUNT,), np.float64, allocator=allocator(hooks))[::2]


def copy_to_new(array):
    gpuarray.to_gpu(array, allocator=allocator([lambda: shrink(array)]))


def copy_to_strided(array):
    hooks = []
    target = every_second(hooks)
    hooks.append(lambda: shrink(array))
    target.set(array)


def copy_from_strided(array):
    hooks = []
    source = every_second(hooks)
    hooks.append(lambda: shrink(array))
    source.get(array)


def copy_other_elements(array):
    """Changes the element's bytes in an array without axes, whose strides cannot differ."""
    array = np.ones(())
    small = (1, (), np.dtype("u1"), False, bytes(1))
    gpuarray.to_gpu(array, allocator=allocator([lambda: array.__setstate__(small)]))


def copy_to_address(array):
    memory = driver.mem_alloc(array.nbytes)
    driver.memcpy_htod(Address(memory, lambda: shrink(array)), array)


def copy_from_address(array):
    memory = driver.mem_alloc(array.nbytes)
    driver.memcpy_dtoh(array, Address(memory, lambda: shrink(array)))


def copy_on_a_stream(array):
    memory = driver.mem_alloc(array.nbytes)
    driver.memcpy_htod_async(memory, array, External(lambda: shrink(array)))


def copy_rows(array):
    memory = driver.mem_alloc(array.nbytes)
    copy = driver.Memcpy2D()
    copy.set_dst_host(array)
    copy.set_src_device(Address(memory, lambda: shrink(array)))
    copy.width_in_bytes, copy.height = array.nbytes // 10, 10
    copy(aligned=True)


@pytest.mark.parametrize(
    "copy",
    [
        copy_to_new,
        copy_to_strided,
        copy_from_strided,
        copy_other_elements,
        copy_to_address,
        copy_from_address,
        copy_on_a_stream,
        copy_rows,
    ],
)
def test_a_host_array_that_has_other_memory_by_now_is_not_copied(copy):
    with pytest.raises(RuntimeError, match="changed by code that ran during the copy"):
        copy(host())


def test_a_host_array_that_has_the_same_memory_is_copied():
    array, memory = np.arange(COUNT), driver.mem_alloc(8 * COUNT)
    driver.memcpy_htod(Address(memory, lambda: array.sum()), array)
    assert (driver.from_device(memory, COUNT, array.dtype) == array).all()


def test_an_argument_of_a_kernel_is_kept_though_another_one_drops_it():
    run_python(
        """
        import numpy as np
        from pygpu import autoinit, compiler, driver

        source = "__global__ void store(double *x, size_t y) { x[0] = y; }"
        store = compiler.SourceModule(source).get_function("store").prepare("PP")
        managed = driver.managed_zeros(1000, np.float64)

        class Dropping:
            def __index__(self):
                managed.__setstate__((1, (1,), managed.dtype, False, bytes(8)))
                # In place of the object that had the memory.
                self.overwritten = [b"\\xff" * size for size in range(16, 400) for _ in range(50)]
                return 5

        store.prepared_call((1, 1), (1, 1, 1), managed, Dropping())
        driver.Context.synchronize()
        """
    )


def test_an_address_is_asked_for_once():
    memory = driver.mem_alloc(4096)
    asked = []
    address = Address(memory, lambda: asked.append(1))
    assert gpuarray.GPUArray((4,), np.float32, gpudata=address).ptr == int(memory)
    assert len(asked) == 1


def test_a_lender_of_itself_is_refused():
    run_python(
        """
        from pygpu import _core

        class Own(_core.BufferExporter):
            @property
            def _host(self):
                return self

        try:
            memoryview(Own())
        except RecursionError:
            pass
        else:
            raise AssertionError
        """
    )


def test_a_capture_may_be_used_while_its_last_graph_goes():
    done = run_python(
        """
        import weakref
        from pygpu import autoinit, driver

        stream = driver.Stream()
        capture = stream.capture()
        graph = capture.__enter__()
        gone = weakref.ref(graph, lambda _: capture.__exit__(None, None, None))
        del graph
        stream.end_capture()
        capture.__enter__()
        print(stream.is_capturing())
        """
    )
    assert done.stdout == "False\n"


# Expressions for the next array of a chain.
CHAINS = {
    "views": "array[:]",
    "base": "gpuarray.GPUArray(4, 'f4', base=array, gpudata=memory)",
    "vacant": "gpuarray.GPUArray(4, 'f4', base=array, gpudata=0)",
    "exchanged": "gpuarray.from_dlpack(array)",
    "views of a subclass": "Own(4, 'f4', base=array, gpudata=memory)",
    "moved": "moved(array)",
}


@pytest.mark.parametrize("following", CHAINS.values(), ids=CHAINS)
def test_a_long_chain_of_arrays_is_dropped(following):
    run_python(
        f"""
        import threading
        from pygpu import autoinit, driver, gpuarray

        class Own(gpuarray.GPUArray):
            pass

        def moved(base):
            array = gpuarray.GPUArray(4, 'f4', base=base, gpudata=memory)
            array.gpudata = other
            return array

        def run():
            array = gpuarray.zeros(4, 'f4')
            for _ in range(5000):
                array = {following}

        memory, other = driver.mem_alloc(64), driver.mem_alloc(64)
        threading.stack_size(1 << 19)
        thread = threading.Thread(target=run)
        thread.start()
        thread.join()
        """
    )


def test_an_array_that_was_moved_often_is_dropped():
    run_python(
        """
        import threading
        from pygpu import autoinit, driver, gpuarray

        def run():
            array = gpuarray.zeros(4)
            for number in range(2500):
                array.allocator = lambda size, number=number: driver.mem_alloc(size)

        threading.stack_size(1 << 17)
        thread = threading.Thread(target=run)
        thread.start()
        thread.join()
        """
    )
