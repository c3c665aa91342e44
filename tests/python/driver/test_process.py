"""Interpreter exit, fork and threads: no hang, no crash, no output, correct results."""

from __future__ import annotations

import sys
import threading

import numpy as np
import pytest
from device import BACKEND, IS_DOUBLE, busy
from pairs import check, numbers
from processes import run_python

from pygpu import autoinit, driver, gpuarray

PREAMBLE = """
import os, sys, threading
import numpy as np
import pygpu.autoinit
from pygpu import driver, gpuarray
"""


# ---- exit ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "ending",
    [
        "",
        "del a, streams",
        "sys.exit(0)",
        "os._exit(0)",
        "import atexit; atexit.register(lambda: print(float(a[3].get())))",
        "a.cycle = None; b = [a]; b.append(b); del a, b",
        "threading.Thread(target=work).start()",
        "threading.Thread(target=work, daemon=True).start()",
    ],
)
def test_exit_with_work_in_flight(ending):
    if ending.startswith("a.cycle"):
        ending = "b = [a]; b.append(b); del a, b"
    run_python(
        f"""{PREAMBLE}
streams = [driver.Stream() for _ in range(4)]
a = gpuarray.zeros({busy(3_000_000)}, np.float32)
def work():
    for step in range(8):
        for stream in streams:
            a.fill(step, stream)
            a.mul_add(2, a, 1, stream=stream)
work()
{ending}
"""
    )


def test_exit_without_use():
    run_python("import pygpu.gpuarray, pygpu.driver")
    run_python("import pygpu.driver as drv; drv.init(); ctx = drv.Device(0).make_context()")


def test_unhandled_error_with_work_in_flight():
    done = run_python(
        f"{PREAMBLE}\na = gpuarray.zeros(3_000_000)\na.fill(1, driver.Stream())\n1 / 0",
        check=False,
    )
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1] == "ZeroDivisionError: division by zero"


# Standard modules that may be imported in addition to numpy's. Each one slows down every program.
LIGHT = {"__future__", "atexit"}
# Interfaces of other libraries, which few programs import, and the modules that each one adds.
FACES = {
    "PybindGPU": {"mmap", "threading"},
    "pygpu.arrow": {"threading"},
    "pygpu.cuda": set(),
    "pygpu.ipc": {"_json", "copy", "dataclasses", "inspect", "json", "pickletools"},
    "pygpu.numba": set(),
}
OF_PYCUDA = (
    *("autoinit", "characterize", "compiler", "cumath", "curandom", "driver", "elementwise"),
    *("gpuarray", "reduction", "scan", "tools"),
)
ADDED = """
    import os, sys
    import numpy
    before = set(sys.modules)
    for modules in sys.argv[1:]:
        child = os.fork()
        if child == 0:
            exec(f"import {modules}")
            print(*set(sys.modules) - before, flush=True)
            os._exit(0)
        assert os.waitpid(child, 0)[1] == 0, modules
"""


def added(*imports: str) -> list[set[str]]:
    """Returns the modules that each import adds to a process that has imported numpy alone."""
    lines = run_python(ADDED, *imports, fresh=True).stdout.splitlines()
    return [set(line.split()) for line in lines]


def test_an_import_brings_little_of_the_standard_library():
    modules = [*(f"pygpu.{name}" for name in OF_PYCUDA), *FACES]
    for module, found in zip(modules, added(*modules), strict=True):
        # Newer Python versions import parts of packages that are one module in older versions.
        names = {name.partition(".")[0] for name in found} & sys.stdlib_module_names
        assert names - {"importlib"} <= LIGHT | FACES.get(module, set()), module


def test_imports_leave_what_functions_need_for_later():
    modules = ", ".join(f"pygpu.{name}" for name in OF_PYCUDA if name != "curandom")
    (found,) = added(modules)
    private = {name for name in found if name.startswith("pygpu._")}
    assert private == {
        *(f"pygpu.{name}" for name in ("_arguments", "_core", "_errors", "_lazy")),
        *(f"pygpu.{name}" for name in ("_array", "_array.as_numpy", "_array.methods")),
        *(f"pygpu.{name}" for name in ("_driver", "_driver.device")),
    }
    # A module's names become available when a program uses them.
    run_python(
        f"""
        import {modules}, pygpu.curandom, pygpu.cuda
        for name in {OF_PYCUDA} + ("cuda",):
            module = getattr(pygpu, name)
            names = getattr(module, "__all__", ())
            assert set(names) <= set(dir(module)), name
            for each in names:
                getattr(module, each)
        """,
        fresh=True,
    )


def test_import_touches_no_device():
    run_python(
        "import pygpu, pygpu.gpuarray, pygpu.driver, pygpu.cumath",
        PYGPU_BACKEND="nonsense",
    )


# ---- fork ---------------------------------------------------------------------------------------

COUNT = busy(1_000_000)
FORK = f"""{PREAMBLE}
import signal, warnings
from pygpu import cumath
warnings.simplefilter("ignore")
a = gpuarray.to_gpu(np.arange({COUNT}, dtype=np.float32))
stream = driver.Stream()
for _ in range(4):
    (a * 2 + a).get()
    a.fill(3, stream)
total = float(gpuarray.sum(a + 0).get())
raw, kept = driver.mem_alloc(4096), a + 0
# Work that is still queued at the fork, and never runs in the child.
busy = gpuarray.zeros({COUNT}, np.float64)
for _ in range(30):
    cumath.sin(busy, out=busy, stream=stream)
pid = os.fork()
if pid == 0:
    signal.alarm(60)
    status = 1
    try:
        {{child}}
        status = 0
    except BaseException as error:
        print("child:", repr(error), file=sys.stderr, flush=True)
    finally:
        os._exit(status)
_, status = os.waitpid(pid, 0)
assert status == 0, status
stream.synchronize()
assert (a.get() == 3).all()
assert float(gpuarray.sum(a + 0).get()) == total
b = gpuarray.to_gpu(np.arange({COUNT}, dtype=np.float64))
assert float(gpuarray.sum(b * 2).get()) == {COUNT * (COUNT - 1)}
"""


on_the_host = pytest.mark.skipif(BACKEND != "host", reason="drivers do not survive a fork")


@on_the_host
@pytest.mark.parametrize(
    "child",
    [
        # New arrays, small and large: the parent's queues and worker threads do not exist in the
        # child.
        "assert ((gpuarray.zeros(10) + 1).get() == 1).all()",
        "b = gpuarray.to_gpu(np.arange(2_000_000.0)); assert (b + b).get()[-1] == 3999998",
        "b = gpuarray.zeros(1_000_000); b.fill(2, driver.Stream()); assert b.get().sum() == 2e6",
        # Using the parent's stream raises an error that says so.
        """try:
            gpuarray.zeros(10).fill(1, stream)
            raise AssertionError
        except driver.Error:
            pass""",
        # The parent's plain memory can only be freed.
        """read = lambda: driver.memcpy_dtoh(bytearray(8), raw)
        for use in (lambda: driver.memset_d8(raw, 1, 4096), lambda: raw.as_buffer(4096), read):
            try:
                use()
                raise AssertionError
            except driver.LogicError as error:
                assert "parent process" in str(error), error""",
        # The child has its own copy of these arrays.
        "kept.fill(7); assert (kept.get() == 7).all()",
        # The parent's arrays are dropped, or left until exit.
        "del a; driver.Context.synchronize()",
        "pass",
    ],
)
def test_fork(child):
    run_python(FORK.replace("{child}", child))


@on_the_host
def test_a_forked_child_writes_after_the_work_of_its_parents_block():
    run_python(
        f"""{PREAMBLE}
import warnings
warnings.simplefilter("ignore")
with pygpu.fused():
    a = gpuarray.zeros(10, np.float32)
    b = a + 3
    pid = os.fork()
    a.fill(7)
    is_right = (b.get() == 3).all() and (a.get() == 7).all()
    if pid == 0:
        os._exit(0 if is_right else 1)
assert is_right
_, status = os.waitpid(pid, 0)
assert status == 0, status
"""
    )


# Threads that are inside allocations, frees, pools and streams at the moment of the fork. For a
# long search set FORKS to some hundreds.
FORKS = f"""{PREAMBLE}
import signal, threading, warnings
from pygpu import tools
warnings.simplefilter("ignore")
pool, host_pool = tools.DeviceMemoryPool(), tools.PageLockedMemoryPool()
made = threading.Barrier(5)
over = threading.Event()

def repeat(step):
    step()
    made.wait()
    while not over.is_set():
        step()

def arrays():
    # Long enough that Python's lock is released; of many sizes, so that blocks come and go.
    for size in (1 << 15, 70_000, 300_000):
        gpuarray.zeros(size, np.float32) + 1

def queued(stream=driver.Stream()):
    x = gpuarray.zeros(1 << 15, np.float32)
    for _ in range(20):
        x.fill(1, stream)
    event = driver.Event().record(stream)
    event.query()

def pools():
    kept = [gpuarray.zeros(1 << 15, np.float32, pool.allocate) for _ in range(4)]
    kept.append(host_pool.allocate(5000, np.uint8))

def pinned():
    for _ in range(20):
        driver.pagelocked_empty(10_000, np.uint8)
    driver.Context.trim_memory(0)

steps = (arrays, queued, pools, pinned)
threads = [threading.Thread(target=repeat, args=(step,)) for step in steps]
for thread in threads:
    thread.start()
made.wait()
mine, of_pool = gpuarray.zeros(1 << 16, np.float32), gpuarray.zeros(100, np.float32, pool.allocate)
of_host = host_pool.allocate(100, np.uint8)
stream, event = driver.Stream(), driver.Event()
for number in range(int(os.environ.get('FORKS', 40))):
    pid = os.fork()
    if pid == 0:
        signal.alarm(60)
        status = 1
        try:
            x = gpuarray.to_gpu(np.arange(70_000, dtype=np.float32))
            assert (x + 1).get()[-1] == 70_000
            small = gpuarray.zeros(10, np.float32, pool.allocate)
            assert (small + 1).get().sum() == 10
            host_pool.allocate(5000, np.uint8)[:] = 1
            driver.pagelocked_empty(1000, np.uint8)[:] = 1
            x.fill(2, driver.Stream())
            assert x.get()[0] == 2
            for use in (lambda: x.fill(1, stream), lambda: event.record(stream), event.synchronize):
                try:
                    use()
                except driver.Error as error:
                    assert "parent" in str(error), error
                else:
                    raise AssertionError("an object of the parent was used")
            del mine, of_pool, of_host, x, small
            driver.Context.trim_memory(0)
            driver.Context.synchronize()
            status = 0
        except BaseException as error:
            print("child:", repr(error), file=sys.stderr, flush=True)
        finally:
            os._exit(status)
    _, status = os.waitpid(pid, 0)
    assert status == 0, (number, status)
over.set()
for thread in threads:
    thread.join()
"""


@on_the_host
def test_forks_while_threads_allocate():
    run_python(FORKS)


@pytest.mark.skipif(BACKEND == "host", reason="the host's device survives a fork")
@pytest.mark.parametrize(
    "child",
    [
        "gpuarray.zeros(10)",
        "a + 1",
        "a.fill(3, stream)",
        "stream.synchronize()",
        "a.get()",
        "driver.Context.synchronize()",
        "driver.mem_alloc(16)",
    ],
)
def test_a_forked_child_is_told(child):
    told = f"""try:
            {child}
            raise AssertionError
        except driver.LogicError as error:
            assert "fork" in str(error), error"""
    run_python(FORK.replace("{child}", told))


@pytest.mark.skipif(BACKEND == "host", reason="the host's device survives a fork")
@pytest.mark.parametrize("child", ["del a, stream", "pass"])
def test_a_forked_child_leaves_what_its_parent_has(child):
    run_python(FORK.replace("{child}", child))


@on_the_host
def test_fork_server_of_multiprocessing():
    done = run_python(
        f"""{PREAMBLE}
import multiprocessing, warnings
warnings.simplefilter("ignore")
def square(n):
    a = gpuarray.to_gpu(np.arange(n, dtype=np.float64))
    return float(gpuarray.sum(a * a).get())
square(100_000)
with multiprocessing.get_context("fork").Pool(2) as pool:
    print(pool.map_async(square, [10, 1000, 100_000]).get(timeout=60))
assert square(10) == 285
"""
    )
    assert (
        done.stdout.strip()
        == str([sum(i * i for i in range(n)) * 1.0 for n in (10, 1000)])[:-1]
        + f", {float(np.sum(np.arange(100_000.0) ** 2))}]"
    )


# ---- threads ------------------------------------------------------------------------------------


def in_threads(count, work):
    """Runs `work(number)` in `count` threads concurrently; raises the first error."""
    errors = []
    barrier = threading.Barrier(count)

    def body(number):
        try:
            autoinit.context.push()
            barrier.wait()
            work(number)
        except BaseException as error:
            errors.append(error)
        finally:
            driver.Context.pop()

    threads = [threading.Thread(target=body, args=(number,)) for number in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert not any(thread.is_alive() for thread in threads)
    if errors:
        raise errors[0]


def test_threads_with_arrays_and_streams_of_their_own():
    def work(number):
        stream = driver.Stream()
        for step in range(30):
            a = numbers(10_000, "f8", number * 100 + step)
            a_gpu = gpuarray.to_gpu_async(a, stream=stream)
            check((a_gpu * 2 + a_gpu) - 1, (a * 2 + a) - 1)
            a_gpu.fill(step, stream)
            np.testing.assert_array_equal(a_gpu.get_async(stream), step)

    in_threads(4, work)


def test_threads_reading_one_array():
    a = numbers(50_000, "f4", 96)
    a_gpu = gpuarray.to_gpu(a)
    expected = a * 3

    def work(number):
        for _ in range(20):
            check(a_gpu * 3, expected)
            check(a_gpu[number::7], a[number::7])

    in_threads(4, work)


def test_threads_writing_parts_of_one_array():
    a_gpu = gpuarray.zeros((4, 20_000), np.float32)

    def work(number):
        row = a_gpu[number]
        for step in range(25):
            row += number + 1
            assert float(row[step].get()) == (number + 1) * (step + 1)

    in_threads(4, work)
    check(a_gpu, np.repeat(np.arange(1, 5, dtype="f4")[:, None] * 25, 20_000, axis=1))


def test_a_thread_without_a_context_of_its_own():
    # PyCUDA's contexts belong to one thread; a primary context serves all threads.
    results = []

    def work():
        results.append((gpuarray.zeros(5) + 2).get())

    thread = threading.Thread(target=work)
    thread.start()
    thread.join(60)
    np.testing.assert_array_equal(results, [[2.0] * 5])


@pytest.mark.parametrize("name", ["add", "sum", "get", "to_gpu", "synchronize", "event", "setitem"])
def test_the_interpreter_is_free_while_the_device_works(name):
    if name == "add" and BACKEND != "host":
        pytest.skip("on a GPU the call only queues work, and waits for nothing")
    side = 2_000 if not IS_DOUBLE else 700
    a = np.ones(side * side)
    a_gpu = gpuarray.to_gpu(a)
    strided = gpuarray.zeros((side, side)).T
    stream = driver.Stream()

    def queue():
        for value in range(6):
            a_gpu.fill(value, stream)

    def event():
        queue()
        driver.Event().record(stream).synchronize()

    def synchronize():
        queue()
        stream.synchronize()

    def setitem():
        strided[...] = a.reshape(side, side)

    operations = {
        "add": lambda: a_gpu + a_gpu,
        "sum": lambda: gpuarray.sum(a_gpu).get(),
        "get": a_gpu.get,
        "to_gpu": lambda: gpuarray.to_gpu(a),
        "synchronize": synchronize,
        "event": event,
        "setitem": setitem,
    }
    operation = operations[name]
    operation()
    started, finished = threading.Event(), []

    rounds = 6 if BACKEND == "host" else 100

    def work():
        started.set()
        for _ in range(rounds):
            operation()
        finished.append(True)

    # With this long interval another thread runs only if the worker releases the lock itself.
    interval = sys.getswitchinterval()
    worker = threading.Thread(target=work)
    try:
        sys.setswitchinterval(1000)
        worker.start()
        started.wait()
        free = not finished
    finally:
        sys.setswitchinterval(interval)
    worker.join(60)
    assert finished
    assert free
