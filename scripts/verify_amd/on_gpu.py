"""Programs that `verify-amd` runs on the GPU, each in its own process, with the Python of a
virtual environment that contains pygpu. The last line of each program's output is JSON.

    python on_gpu.py devices | first | operations FILE | compare FILE FILE | figures | peers | facts
"""

from __future__ import annotations

import ctypes
import json
import re
import statistics
import subprocess
import sys
import time
from pathlib import Path

import numpy as np

MILLI, MICRO, GIGA = 1e-3, 1e-6, 1e9
SMALL = 1024
LIBRARIES = re.compile(r"/lib(amdhip64|hiprtc|amd_comgr|hsa-runtime64)\.so")


def loaded_libraries() -> list[str]:
    """Returns the ROCm files that this process has mapped."""
    lines = Path("/proc/self/maps").read_text().splitlines()
    paths = {line[line.index("/") :] for line in lines if "/" in line}
    return sorted(path for path in paths if LIBRARIES.search(path))


def runtime() -> str:
    """Returns the file of the HIP runtime in use."""
    return next(path for path in loaded_libraries() if "libamdhip64" in path)


# ---- devices, first -----------------------------------------------------------------------------


def devices() -> dict:
    import pygpu.autoinit  # noqa: F401
    from pygpu import driver

    libraries = loaded_libraries()
    # Only the fake driver has this symbol.
    is_double = any(b"double_calls" in Path(path).read_bytes() for path in libraries)
    version = driver.get_driver_version()
    return {
        "runtime": f"{version // 1000}.{version % 1000 // 10}",
        "libraries": libraries,
        "is_double": is_double,
        "devices": [
            {
                "name": device.name(),
                "target": device.architecture(),
                "memory": device.total_memory(),
                "bus": device.pci_bus_id(),
                "wavefront": device.warp_size,
            }
            for device in map(driver.Device, range(driver.Device.count()))
        ],
    }


def first() -> dict:
    """Times the first operation of a process, after its context and its arrays exist."""
    import pygpu.autoinit  # noqa: F401
    from pygpu import driver, gpuarray

    numbers = np.arange(SMALL, dtype=np.float32)
    a, b = gpuarray.to_gpu(numbers), gpuarray.to_gpu(numbers)
    driver.Context.synchronize()
    start = time.perf_counter()
    result = a + b
    returned = time.perf_counter()
    driver.Context.synchronize()
    ended = time.perf_counter()
    assert np.array_equal(result.get(), numbers + numbers)
    return {"returned_ms": (returned - start) / MILLI, "ended_ms": (ended - start) / MILLI}


# ---- operations, compare ------------------------------------------------------------------------


def operations(path: str) -> dict:
    """Compares builtin operations of every kind with numpy; saves the results to a file."""
    import pygpu.autoinit  # noqa: F401
    from pygpu import cumath, gpuarray

    rng = np.random.default_rng(0)
    results, wrong = {}, []

    def check(name, ours, expected, tolerance=0.0):
        found = results[name] = np.asarray(ours.get() if hasattr(ours, "get") else ours)
        if not np.allclose(found, expected, rtol=tolerance, atol=tolerance):
            wrong.append(name)

    for code in ("f4", "f8", "i4", "i8", "c8"):
        kind = np.dtype(code).kind
        x, y = (rng.integers(1, 50, 5000).astype(code) for _ in range(2))
        if kind != "i":
            x, y = (it + rng.random(5000).astype(code) for it in (x, y))
        a, b = gpuarray.to_gpu(x), gpuarray.to_gpu(y)
        tolerance = {"i": 0, "f": 1e-5, "c": 1e-5}[kind]
        check(f"{code} a + b", a + b, x + y, tolerance)
        check(f"{code} a - b", a - b, x - y, tolerance)
        check(f"{code} a * b", a * b, x * y, tolerance)
        check(f"{code} a / b", a / b, x / y, 1e-5)
        check(f"{code} a == b", a == b, x == y)
        check(f"{code} -a", -a, -x)
        check(f"{code} sum", gpuarray.sum(a), x.sum(), 10 * tolerance)
        if kind == "c":
            check(f"{code} conj", a.conj(), x.conj())
            continue
        check(f"{code} a // b", a // b, x // y)
        check(f"{code} a < b", a < b, x < y)
        check(f"{code} minimum", gpuarray.minimum(a, b), np.minimum(x, y))
        check(f"{code} max", gpuarray.max(a), x.max())
        check(f"{code} min", gpuarray.min(a), x.min())
        indices = rng.integers(0, 5000, 700).astype(np.int32)
        check(f"{code} take", gpuarray.take(a, gpuarray.to_gpu(indices)), x[indices])
        if kind == "f":
            for function in ("exp", "log", "sin", "cos", "tanh", "sqrt", "floor"):
                ours = getattr(cumath, function)(a / 50)
                check(f"{code} {function}", ours, getattr(np, function)(x / 50), 1e-5)
            check(f"{code} as i4", a.astype(np.int32), x.astype(np.int32))
            check(f"{code} slices", a[1:] + b[:-1], x[1:] + y[:-1])
            m, n = a.reshape(50, 100), x.reshape(50, 100)
            check(f"{code} transposed", (m + m).T + m.T, (n + n).T + n.T, tolerance)
    np.savez(path, **results)
    assert not wrong, f"not as numpy has it: {', '.join(wrong)}"
    return {"operations": len(results)}


def compare(one: str, other: str) -> dict:
    """Compares the results of two runs of `operations` bit by bit."""
    first, second = np.load(one), np.load(other)
    assert set(first) == set(second), set(first) ^ set(second)
    different = [it for it in first if first[it].tobytes() != second[it].tobytes()]
    close = [np.allclose(first[it], second[it], rtol=1e-5, atol=1e-6) for it in different]
    assert all(close), f"not even close: {different}"
    return {"operations": len(first.files), "different": different}


# ---- figures, peers -----------------------------------------------------------------------------

AXPY = """extern "C" __global__ void axpy(float a, const float* x, float* y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = a * x[i] + y[i];
}"""


def latency(call, wait, batch=200, batches=15) -> str:
    """Returns the host microseconds of one call, without the wait for the device."""
    times = []
    for _ in range(batches + 1):
        start = time.perf_counter()
        for _ in range(batch):
            call()
        times.append((time.perf_counter() - start) / batch / MICRO)
        wait()
    return f"{statistics.median(times[1:]):.2f} us"


def bandwidth(call, wait, size, batch=10, batches=12) -> str:
    """Returns the bandwidth of calls that move `size` bytes each, with a wait for all of them."""
    rates = []
    for _ in range(batches + 1):
        start = time.perf_counter()
        for _ in range(batch):
            call()
        wait()
        rates.append(batch * size / (time.perf_counter() - start) / GIGA)
    return f"{statistics.median(rates[1:]):.1f} GB/s"


def figures() -> dict:
    """Returns medians; bandwidth counts the bytes read and written, of float32 arrays."""
    import pygpu.autoinit  # noqa: F401
    from pygpu import driver, gpuarray
    from pygpu.compiler import SourceModule

    wait = driver.Context.synchronize
    free, _ = driver.mem_get_info()
    # 64 Mi numbers, or fewer if three such arrays would not fit well.
    count = min(64 << 20, 1 << (free // 48).bit_length())
    side = int(count**0.5)
    numbers = np.random.default_rng(0).standard_normal(count, np.float32)
    a, b = (gpuarray.to_gpu(numbers[:SMALL]) for _ in range(2))
    axpy = SourceModule(AXPY, no_extern_c=True).get_function("axpy").prepare("fPPi")
    event, size = driver.Event(), 4 * count
    found = {
        "kernel launch": latency(
            lambda: axpy.prepared_call((8, 1), (128, 1, 1), 0, a.gpudata, b.gpudata, SMALL), wait
        ),
        "a + b, 1024": latency(lambda: a + b, wait),
        "a += b, 1024": latency(lambda: a.__iadd__(b), wait),
        "a * b + a * 2, 1024": latency(lambda: a * b + a * 2, wait),
        "sum, 1024": latency(lambda: gpuarray.sum(a), wait),
        "allocate and free 4 KiB": latency(lambda: gpuarray.empty(SMALL, np.float32), wait),
        "event record": latency(event.record, wait),
        "to the device, 4 KiB": latency(lambda: a.set(numbers[:SMALL]), wait),
        "to the host, 4 KiB": latency(a.get, wait),
    }
    x, y = gpuarray.to_gpu(numbers), gpuarray.to_gpu(numbers)
    m = x[: side * side].reshape(side, side)
    of = f", {size >> 20} MiB"
    found["a + b" + of] = bandwidth(lambda: x + y, wait, 3 * size)
    found["sum" + of] = bandwidth(lambda: gpuarray.sum(x), wait, size)
    found["m + m.T" + of] = bandwidth(lambda: m + m.T, wait, 3 * m.nbytes)
    host = driver.pagelocked_empty(count, np.float32)
    found["upload, ordinary memory"] = bandwidth(lambda: x.set(numbers), wait, size, 1, 7)
    found["download, fresh memory"] = bandwidth(x.get, wait, size, 1, 7)
    found["upload, pinned"] = bandwidth(lambda: x.set(host), wait, size, 1, 7)
    found["download, pinned"] = bandwidth(lambda: x.get(host), wait, size, 1, 7)
    return {"figures": found}


def peers() -> dict:
    """Copies from the first device to the second."""
    from pygpu import driver

    driver.init()
    size = 64 << 20
    contexts = [driver.Device(i).make_context() for i in range(2)]
    memory = []
    for context in contexts:
        context.push()
        memory.append(driver.mem_alloc(size))
        context.pop()
    source, target = memory
    here, there = contexts
    access = driver.Device(1).can_access_peer(driver.Device(0))

    def copy():
        driver.memcpy_peer(target, source, size, there, here)

    found = {
        "kernels may use the other device's memory": str(access),
        "copy from device 0 to device 1, 64 MiB": bandwidth(copy, there.synchronize, size),
    }
    return {"figures": found}


# ---- facts --------------------------------------------------------------------------------------

LANES = """extern "C" __global__ void lanes(int* out) {
    unsigned long long votes = __ballot(1);
    int count = 0;
    for (; votes; votes >>= 1) count += (int)(votes & 1);
    out[0] = count;
    out[1] = warpSize;
}"""

CHILD = """import sys, numpy as np, pygpu.autoinit
from pygpu import driver
memory = driver.IPCMemoryHandle(bytearray.fromhex(sys.argv[1]))
numbers = driver.from_device(memory, 64, np.int32)
driver.memcpy_htod(memory, numbers + 1)
driver.Context.synchronize()
memory.close()
"""


def attempt(call) -> str:
    """Returns the result of a call, or its error, as text."""
    from pygpu import driver

    try:
        return str(call())
    except driver.Error as error:
        return f"refused: {error}"


def facts() -> dict:
    """Returns facts in which AMD's runtimes and devices differ."""
    import pygpu.autoinit
    from pygpu import driver, gpuarray
    from pygpu.compiler import SourceModule

    device = pygpu.autoinit.device
    target = device.architecture()
    name, *features = target.split(":")
    wrong, found = [], {"target with features": target}

    def lanes():
        out = gpuarray.zeros(2, np.int32)
        SourceModule(LANES, no_extern_c=True).get_function("lanes")(out, block=(256, 1, 1))
        return " and ".join(map(str, out.get()))

    # gfx9 and older (GCN, CDNA) have wavefronts of 64; code for RDNA uses wavefronts of 32.
    expected = 64 if len(name) < 7 else 32
    found["wavefront: attribute"] = str(device.warp_size)
    found["wavefront: of the target"] = str(expected)
    found["wavefront: lanes that vote, and warpSize, in a kernel"] = attempt(lanes)
    seen = {device.warp_size, *map(int, re.findall(r"\d+", attempt(lanes))[:2])}
    if seen != {expected}:
        wrong.append(f"wavefronts of {sorted(seen)}, not of {expected}")

    for feature in features:
        other = f"{name}:{feature[:-1]}{'-' if feature[-1] == '+' else '+'}"
        options = [f"--offload-arch={other}"]
        refused = attempt(lambda it=options: SourceModule(LANES, no_extern_c=True, options=it))
        found[f"code for {other}"] = "loads" if "SourceModule" in refused else refused
        if "SourceModule" in refused:
            wrong.append(f"code for {other} loads on {target}")

    library = ctypes.CDLL(runtime())
    table = Path(__file__).parents[2] / "backend-hip/src/table.rs"
    symbols = sorted(set(re.findall(r"\b(hip[A-Z]\w*)\(", table.read_text())))
    absent = [symbol for symbol in symbols if not hasattr(library, symbol)]
    found[f"absent of {len(symbols)} symbols"] = ", ".join(absent) or "none"
    present = hasattr(library, "hipLaunchHostFunc")
    found["hipLaunchHostFunc"] = "present" if present else "absent"
    pools = driver.device_attribute.MEMORY_POOLS_SUPPORTED
    found["pools: attribute"] = attempt(lambda: device.get_attribute(pools))
    if hasattr(library, "hipMemPoolCreate"):
        # hipMemPoolProps: pinned memory, no handles, device 0; all other fields are zero.
        properties, pool = (ctypes.c_int * 64)(1, 0, 1, 0), ctypes.c_void_p()
        status = library.hipMemPoolCreate(ctypes.byref(pool), properties)
        found["pools: hipMemPoolCreate"] = f"status {status}"
        if status == 0:
            library.hipMemPoolDestroy(pool)
    memory = driver.mem_alloc(256)
    driver.memcpy_htod(memory, np.arange(64, dtype=np.int32))
    # The other process does not wait for the copy on its own.
    driver.Context.synchronize()
    handle = attempt(lambda: driver.mem_get_ipc_handle(memory).hex())
    if handle.startswith("refused"):
        found["IPC between two processes"] = handle
    else:
        child = [sys.executable, "-c", CHILD, handle]
        done = subprocess.run(child, capture_output=True, text=True, timeout=120, check=False)
        same = np.array_equal(driver.from_device(memory, 64, np.int32), np.arange(64) + 1)
        good = done.returncode == 0 and same
        found["IPC between two processes"] = "works" if good else "fails"
        if not good:
            wrong.append(f"IPC between two processes: {done.stderr.strip()[-500:]}")
    return {"figures": found, "wrong": wrong}


PROGRAMS = {it.__name__: it for it in (devices, first, operations, compare, figures, peers, facts)}

if __name__ == "__main__":
    _, program, *arguments = sys.argv
    print(json.dumps(PROGRAMS[program](*arguments)))
