"""A kernel that never ends can be interrupted, and so can a wait for it."""

from __future__ import annotations

import pytest
from device import BACKEND
from processes import run_python

from pygpu import driver

PROGRAM = """
    import os, signal, sys, threading
    import numpy as np
    import pygpu.autoinit
    from pygpu import driver
    from pygpu.compiler import SourceModule

    source = "__global__ void wait(volatile int *flag) { while (*flag == 0); }"
    wait = SourceModule(source).get_function("wait")
    flag = driver.pagelocked_zeros(1, np.int32, mem_flags=driver.host_alloc_flags.DEVICEMAP)
    stream = driver.Stream(1)
    address = np.uintp(flag.base.get_device_pointer())
    waits = {
        "stream": lambda event: stream.synchronize(),
        "event": lambda event: event.synchronize(),
        "context": lambda event: driver.Context.synchronize(),
    }
    for name, wait_for in waits.items():
        flag[0] = 0
        wait(address, block=(1, 1, 1), stream=stream)
        event = driver.Event().record(stream)
        threading.Timer(0.1, os.kill, (os.getpid(), signal.SIGINT)).start()
        try:
            wait_for(event)
        except KeyboardInterrupt:
            assert not stream.is_done(), name
            assert not event.query(), name
        else:
            raise AssertionError(f"the wait for the {name} came to an end")
        flag[0] = 1
        wait_for(event)
        assert event.query(), name
"""


@pytest.mark.skipif(
    driver.Device(0).name() == "Driver Double",
    reason="the driver double runs kernels on the thread that asks for their end",
)
def test_an_interrupt_ends_a_wait():
    run_python(PROGRAM)


# On the default stream the host runs kernels during the launch, so the signal interrupts the
# launch.
AT_ONCE = """
    import os, signal, sys, threading
    import numpy as np
    import pygpu.autoinit
    from pygpu import driver, gpuarray
    from pygpu.compiler import SourceModule
    from pygpu.elementwise import ElementwiseKernel

    module = SourceModule('''
    // What a function reads makes no loop one that lets other threads run.
    __device__ int read(volatile int *flag) { return *flag; }
    __global__ void spins(int *place) { while (read(place) == 0); }
    __global__ void waits_for_another(volatile int *flag) {
        __shared__ int written;
        if (threadIdx.x == 0) while (*(volatile int *)&written != 2);
        else written = 1;
    }
    __global__ void synchronizes(volatile int *flag) { while (*flag == 0) __syncthreads(); }
    __global__ void adds(int *a, int n) {
        for (int turn = 0; turn < n; ++turn) a[threadIdx.x] += turn % 3;
    }
    ''')
    flag = gpuarray.zeros(1, np.int32)
    elementwise = ElementwiseKernel("int *flag", "while (((volatile int *)flag)[i] == 0)")
    # It is compiled before it is interrupted.
    elementwise(flag.fill(1))
    flag.fill(0)
    prepared = module.get_function("spins").prepare("P")
    adds = module.get_function("adds")
    def of(name):
        return lambda: module.get_function(name)(flag, block=(64, 1, 1), grid=(5, 1))

    launches = {
        "spins": of("spins"),
        "waits_for_another": of("waits_for_another"),
        "synchronizes": of("synchronizes"),
        "elementwise": lambda: elementwise(flag),
        "prepared": lambda: prepared.prepared_call((9, 1), (3, 1, 1), flag.gpudata),
    }

    def interrupted(launch):
        threading.Timer(0.1, os.kill, (os.getpid(), signal.SIGINT)).start()
        try:
            launch()
        except KeyboardInterrupt:
            return True
        raise AssertionError("the launch came to an end")

    # Any handler runs, and the kernel goes on where it raises nothing.
    seen = []
    def handler(number, frame):
        seen.append(number)
        if len(seen) == 3:
            raise RuntimeError("enough")
        signal.setitimer(signal.ITIMER_REAL, 0.1)

    def check(launch):
        assert interrupted(launch)
        seen.clear()
        signal.signal(signal.SIGALRM, handler)
        signal.setitimer(signal.ITIMER_REAL, 0.1)
        try:
            launch()
        except RuntimeError as error:
            assert str(error) == "enough"
        assert seen == [signal.SIGALRM] * 3
        signal.signal(signal.SIGALRM, signal.SIG_DFL)

        # The stream and its threads work on.
        a = gpuarray.zeros(64, np.int32)
        adds(a, np.int32(300), block=(64, 1, 1))
        assert (a.get() == 300).all()
        child = os.fork()
        if child == 0:
            signal.alarm(60)
            try:
                assert interrupted(launch)
                os._exit(7)
            finally:
                os._exit(1)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7

    for name, launch in launches.items():
        try:
            check(launch)
        except BaseException as error:
            raise AssertionError(name) from error
"""


@pytest.mark.skipif(
    BACKEND != "host", reason="only the host runs kernels on the thread that launches"
)
def test_an_interrupt_ends_a_kernel():
    run_python(AT_ONCE)


# Calls in a handler would wait for the kernel, which waits for the handler.
WAITS = """
    import signal
    import numpy as np
    import pygpu.autoinit
    from pygpu import driver, gpuarray
    from pygpu.compiler import SourceModule

    module = SourceModule("__global__ void spins(volatile int *a) { while (a[0] == 0); }")
    spins = module.get_function("spins")
    a, other = gpuarray.zeros(4, np.int32), gpuarray.zeros(4, np.int32)
    stream = driver.Stream(1)
    waits = {
        "get": a.get,
        "get of another array": other.get,
        "set": lambda: a.set(np.ones(4, np.int32)),
        "fill on another stream": lambda: a.on(stream).fill(3),
        "launch on another stream": lambda: spins(a, block=(1, 1, 1), stream=stream),
        "free": a.gpudata.free,
        "context": driver.Context.synchronize,
        "capture": stream.begin_capture,
    }
    went, results = [], []

    class Enough(Exception):
        pass

    def handler(number, frame):
        for name, call in waits.items():
            try:
                call()
            except driver.LogicError as error:
                assert "a handler that interrupts a kernel" in str(error), error
            else:
                went.append(name)
        # What only queues is done behind the kernel.
        results.append(other + 1)
        raise Enough

    signal.signal(signal.SIGALRM, handler)
    for _ in range(2):
        signal.setitimer(signal.ITIMER_REAL, 0.1)
        try:
            spins(a, block=(1, 1, 1))
        except Enough:
            assert (results.pop().get() == 1).all()
        else:
            raise AssertionError("the launch came to an end")
    assert not went, went
    # Nothing was left half done.
    assert (a.get() == 0).all()
    a.set(np.ones(4, np.int32))
    spins(a, block=(1, 1, 1), stream=stream)
    stream.synchronize()
    stream.begin_capture()
    stream.end_capture()
    a.gpudata.free()
"""


@pytest.mark.skipif(
    BACKEND != "host", reason="only the host runs kernels on the thread that launches"
)
def test_a_handler_waits_for_no_kernel_that_it_interrupts():
    run_python(WAITS)


# Several streams use the interrupted kernel's memory, so the launch holds locks.
UNDER_LOCKS = """
    import gc, signal
    import numpy as np
    import pygpu.autoinit
    from pygpu import driver, gpuarray
    from pygpu.compiler import SourceModule

    module = SourceModule("__global__ void spins(volatile int *a) { while (a[0] == 0); }")
    spins = module.get_function("spins")
    stream, captures = driver.Stream(1), driver.Stream(1)

    def shared():
        array = gpuarray.zeros(4, np.int32)
        array.on(stream).fill(0)
        array += 0
        return array

    a, freed, others, own = shared(), shared(), [shared(), shared()], gpuarray.zeros(4, np.int32)
    driver.Context.synchronize()
    captures.begin_capture()
    results = []

    class Enough(Exception):
        pass

    def handler(number, frame):
        reads, writes = lambda: np.from_dlpack(a), lambda: a.on(stream).fill(1)
        shares = lambda: a.ipc_handle(copy=True)
        for call in (reads, shares, a.gpudata.free, writes):
            try:
                call()
            except driver.LogicError as error:
                assert "a handler that interrupts a kernel" in str(error), error
            else:
                raise AssertionError("nothing was refused")
        freed.gpudata.free()
        others.clear()
        gc.collect()
        results.append(own + 1)
        raise Enough

    signal.signal(signal.SIGALRM, handler)
    signal.setitimer(signal.ITIMER_REAL, 0.1)
    try:
        spins(a, block=(1, 1, 1))
    except Enough:
        pass
    captures.end_capture()
    assert (results[0].get() == 1).all()
    a += 1
    assert (a.get() == 1).all()
"""

# With checks, a launch on the default stream waits for its kernel, which waits for other work.
WAITING_WITH_CHECKS = """
    import signal
    import numpy as np
    import pygpu.autoinit
    from pygpu import driver, gpuarray
    from pygpu.compiler import SourceModule

    source = "__global__ void wait(volatile int *flag) { while (*flag == 0); }"
    wait = SourceModule(source).get_function("wait")
    add = SourceModule("__global__ void add(int *x) { x[threadIdx.x] += 1; }").get_function("add")
    flag = driver.pagelocked_zeros(1, np.int32, mem_flags=driver.host_alloc_flags.DEVICEMAP)
    address = np.uintp(flag.base.get_device_pointer())
    a, b = gpuarray.zeros(4, np.int32), gpuarray.zeros(4, np.int32)
    blocking, beside = driver.Stream(), driver.Stream(1)
    for array in (a, b):
        array.on(beside).fill(0)
    went = []

    def handler(number, frame):
        flag[0] = 1
        # The launch orders nothing any longer, so what waits for it comes to an end.
        for array in (a, b):
            array.on(beside).__iadd__(10)
            went.append(array.get()[0])
        # What the launch fails with is the launch's own to report.
        driver.Context.synchronize()

    with pygpu.checking():
        add(b, block=(4, 1, 1))
        wait(address, block=(1, 1, 1), stream=blocking)
        signal.signal(signal.SIGALRM, handler)
        signal.setitimer(signal.ITIMER_REAL, 0.1)
        add(a, block=(4, 1, 1))
        assert went == [11, 11], went
        assert (a.get() == 11).all()
        flag[0] = 0
        wait(address, block=(1, 1, 1), stream=blocking)
        signal.setitimer(signal.ITIMER_REAL, 0.1)
        try:
            add(b, block=(8, 1, 1))
        except driver.LaunchError as error:
            assert "outside any live allocation" in str(error), error
        else:
            raise AssertionError("the launch raised nothing")
    assert len(went) == 4
    driver.Context.synchronize()
"""

# Work that a handler queues is ordered after the interrupted kernel, even if only addresses
# identify the memory that the kernel uses.
BY_ADDRESS = """
    import signal
    import numpy as np
    import pygpu.autoinit
    from pygpu import driver, gpuarray
    from pygpu.compiler import SourceModule

    source = '''
    __global__ void spins(volatile int *flag, int *a, int *b) {
        while (flag[0] == 0);
        flag[1] = a[0] = b[0] = 7;
    }
    __global__ void copy(int *to, const int *from) { to[0] = from[1]; }
    '''
    module = SourceModule(source)
    spins, copy = module.get_function("spins"), module.get_function("copy")
    pinned = [driver.pagelocked_zeros(2, np.int32) for _ in range(3)]
    flag, *results = [np.uintp(it.ctypes.data) for it in pinned]
    memory, array = driver.mem_alloc(4096), gpuarray.empty(1000, np.int32)
    beside, blocking = driver.Stream(1), driver.Stream()
    events = [driver.Event(), driver.Event()]
    fresh = []

    def handler(which, frame):
        memory.free()
        array.gpudata.free()
        fresh.extend([driver.mem_alloc(4096), gpuarray.empty(1000, np.int32)])
        assert int(fresh[0]) != plain and fresh[1].ptr != ordered
        events[0].record()
        events[1].record(blocking)
        assert not any(event.query() for event in events)
        beside.wait_for_event(events[0])
        copy(results[0], flag, block=(1, 1, 1), stream=beside)
        copy(results[1], flag, block=(1, 1, 1), stream=blocking)
        pinned[0][0] = 1

    plain, ordered = int(memory), array.ptr
    signal.signal(signal.SIGALRM, handler)
    signal.setitimer(signal.ITIMER_REAL, 0.1)
    spins(flag, np.uintp(plain), np.uintp(ordered), block=(1, 1, 1))
    driver.Context.synchronize()
    assert [int(it[0]) for it in pinned[1:]] == [7, 7], pinned
    assert all(event.query() for event in events)
"""


@pytest.mark.skipif(
    BACKEND != "host", reason="only the host runs kernels on the thread that launches"
)
@pytest.mark.parametrize("program", [UNDER_LOCKS, WAITING_WITH_CHECKS, BY_ADDRESS])
def test_a_handler_inside_a_launch(program):
    run_python(program)


@pytest.mark.skipif(BACKEND != "host", reason="kernels of GPUs end with the process")
def test_a_program_ends_while_a_kernel_does_not():
    run_python("""
        import numpy as np
        import pygpu.autoinit
        from pygpu import driver, gpuarray, tools
        from pygpu.compiler import SourceModule

        source = "__global__ void spins(volatile int *a) { while (a[0] == 0); }"
        spins, stream = SourceModule(source).get_function("spins"), driver.Stream(1)
        # The end of each of these waits for the device, while the program goes on.
        memory, pitched = driver.mem_alloc(100), driver.mem_alloc_pitch(100, 100, 4)
        pool, pinned = tools.DeviceMemoryPool(), driver.pagelocked_zeros(4, np.int32)
        blocks = [pool.allocate(1000), pool.allocate(10)]
        array = gpuarray.zeros(4, np.int32)
        spins(array, block=(1, 1, 1), stream=stream)
    """)
