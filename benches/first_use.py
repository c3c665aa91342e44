"""The first use of operations without a compiler: times in new processes, and those that fail.

    python benches/first_use.py [--keep-compiler] [--over LIBRARY]

Run it on a machine with a GPU, with a wheel that embeds code (PYBIND_GPU_TARGET). The run-time
compiler is hidden (PYGPU_NVRTC and PYGPU_HIPRTC name a missing file), and both caches start empty:
pygpu's own and the driver's, which keeps the code that the driver compiles from PTX. Ten operations
run in one new process per kind of code: the best for the GPU, twice; then, for NVIDIA, PTX alone
(CUDA_FORCE_PTX_JIT=1 makes the driver refuse machine code), and PTX again from the driver's cache.
Times are in milliseconds, from the call until the device has finished; the last column has the
megabytes by which the first process grew. Then every function, reduction and scan runs once on
every dtype; those that need a compiler are listed.

`--over` needs no GPU: LIBRARY is a fake driver (`make double`; target/double/cuda/libcuda.so.1, or
target/double/hip7/libamdhip64.so.7 with DOUBLE_TARGET=gfx90a and the like), in front of which
`takes_code.c` accepts real code. Its kernels do nothing, so times are those of finding, unpacking
and passing code, and functions whose results decide about memory fail.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile

TEN = """
import json, resource, time
import numpy as np
import pygpu.autoinit
import pygpu.driver as driver
from pygpu import gpuarray

def memory():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3

x = gpuarray.to_gpu(np.linspace(0.5, 2.0, 1 << 16, dtype=np.float32))
y = gpuarray.to_gpu(np.linspace(1.0, 3.0, 1 << 16, dtype=np.float32))
n = gpuarray.to_gpu(np.arange(1 << 16, dtype=np.int32)[::-1].copy())
driver.Context.synchronize()
times, failed, grown = {}, {}, {}
for name, call in {
    "a + b": lambda: x + y,
    "2 * a": lambda: 2 * x,
    "a / b": lambda: x / y,
    "sum(a)": lambda: gpuarray.sum(x),
    "max(a)": lambda: gpuarray.max(x),
    "dot(a, b)": lambda: gpuarray.dot(x, y),
    "a.astype(f8)": lambda: x.astype(np.float64),
    "a > b": lambda: x > y,
    "take(a, n)": lambda: gpuarray.take(x, n),
    "a[::2] copied": lambda: x[::2].copy(),
}.items():
    before, start = memory(), time.perf_counter()
    try:
        call()
        driver.Context.synchronize()
    except Exception as error:
        failed[name] = str(error)[:300]
    times[name] = 1e3 * (time.perf_counter() - start)
    grown[name] = memory() - before
print(json.dumps([times, failed, grown]))
"""

SWEEP = """
import json, time
import numpy as np
import pygpu
import pygpu.autoinit
import pygpu.driver as driver
from pygpu import cumath, gpuarray

dtypes = "? i1 i2 i4 i8 u1 u2 u4 u8 f2 f4 f8 c8 c16".split()
slow, failed, ran = [], {}, 0

def run(name, call):
    global ran
    start = time.perf_counter()
    try:
        call()
        driver.Context.synchronize()
        ran += 1
    except (TypeError, ValueError, AttributeError, NotImplementedError):
        return
    except Exception as error:
        if "compile" in str(error):
            failed[name] = str(error)[:200]
        return
    spent = 1e3 * (time.perf_counter() - start)
    if spent > 100:
        slow.append([name, spent])

for code in dtypes:
    a = gpuarray.to_gpu(np.ones(1000, dtype=code))
    b = gpuarray.to_gpu(np.ones(1000, dtype=code))
    m = gpuarray.to_gpu(np.ones((30, 40), dtype=code))
    i = gpuarray.to_gpu(np.arange(100, dtype=np.int64))
    for symbol in "+ - * / // % ** & | ^ << >> == != < <= > >=".split():
        for text in (f"a {symbol} b", f"a {symbol} 2", f"2 {symbol} a", f"m {symbol} m[0]"):
            run(f"{code}: {text}", lambda: eval(text, {"a": a, "b": b, "m": m}))
    for symbol in ("-a", "abs(a)", "~a"):
        run(f"{code}: {symbol}", lambda: eval(symbol, {"a": a}))
    for name in cumath.__all__ if hasattr(cumath, "__all__") else dir(cumath):
        function = getattr(cumath, name)
        if not name.startswith("_") and callable(function):
            run(f"{code}: {name}(a)", lambda: function(a))
            run(f"{code}: {name}(a, b)", lambda: function(a, b))
    for name in ("sum", "max", "min", "dot", "any", "all", "mean", "minimum", "maximum"):
        for array in (gpuarray, pygpu):
            function = getattr(array, name, None)
            if function:
                run(f"{code}: {name}(a)", lambda: function(a))
                run(f"{code}: {name}(a, b)", lambda: function(a, b))
                run(f"{code}: {name}(m, axis=0)", lambda: function(m, axis=0))
                run(f"{code}: {name}(m, axis=1)", lambda: function(m, axis=1))
    for name in ("copy", "sort", "argsort", "cumsum", "nonzero", "ravel", "conj"):
        run(f"{code}: a.{name}()", lambda: getattr(a, name)())
    run(f"{code}: m.T.copy()", lambda: m.T.copy())
    run(f"{code}: a[::3].copy()", lambda: a[::3].copy())
    run(f"{code}: a[i]", lambda: a[i])
    run(f"{code}: take", lambda: gpuarray.take(a, i))
    run(f"{code}: fill", lambda: a.fill(1))
    run(f"{code}: m @ m.T", lambda: m @ m.T)
    for other in dtypes:
        c = gpuarray.to_gpu(np.ones(1000, dtype=other))
        run(f"{code}: astype({other})", lambda: a.astype(np.dtype(other)))
        run(f"{code}: a + {other}", lambda: a + c)
        run(f"{code}: where", lambda: gpuarray.if_positive(a, c, c))
print(json.dumps([ran, slow, failed]))
"""


def process(program: str, folder: str, **more: str) -> list:
    """What a program prints as JSON, run with empty caches in `folder`."""
    variables = {
        **os.environ,
        "PYGPU_CACHE_DIR": os.path.join(folder, "pygpu"),
        "CUDA_CACHE_PATH": os.path.join(folder, "driver"),
        "PYGPU_BACKEND": os.environ.get("PYGPU_BACKEND", "cuda"),
        **more,
    }
    done = subprocess.run(
        [sys.executable, "-c", program], env=variables, capture_output=True, text=True, check=False
    )
    if done.returncode:
        sys.exit(f"a process ended with {done.returncode}:\n{done.stderr[-3000:]}")
    return json.loads(done.stdout.strip().splitlines()[-1])


def with_code_taken(library: str, folder: str) -> dict[str, str]:
    """Compiles a driver in front of a fake one, and returns the variables that choose it."""
    fake = os.path.abspath(library)
    is_hip = "amdhip" in os.path.basename(fake)
    made = os.path.join(folder, "libtakes-code.so")
    source = os.path.join(os.path.dirname(os.path.abspath(__file__)), "takes_code.c")
    options = ["-O1", "-shared", "-fPIC", *(["-DHIP"] if is_hip else []), source, "-o", made]
    linked = ["-Wl,--no-as-needed", fake, f"-Wl,-rpath,{os.path.dirname(fake)}", "-ldl"]
    subprocess.run(["cc", *options, *linked], check=True)
    backend = "hip" if is_hip else "cuda"
    return {f"PYGPU_{backend.upper()}_LIBRARY": made, "PYGPU_BACKEND": backend}


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--keep-compiler", action="store_true", help="do not hide the compiler")
    parser.add_argument("--over", metavar="LIBRARY", help="a fake driver")
    options = parser.parse_args()
    variables = {}
    if not options.keep_compiler:
        variables = {"PYGPU_NVRTC": "/nowhere/libnvrtc.so", "PYGPU_HIPRTC": "/nowhere/libhiprtc.so"}
    with tempfile.TemporaryDirectory() as folder:
        if options.over:
            variables |= with_code_taken(options.over, folder)
        os.environ.update(variables)
        info = [sys.executable, "-m", "pygpu", "info"]
        print(subprocess.run(info, capture_output=True, text=True, check=False).stdout)
        runs: dict[str, dict[str, str]] = {"best": {}, "best again": {}}
        if os.environ.get("PYGPU_BACKEND", "cuda") == "cuda" and not options.over:
            ptx = {"CUDA_FORCE_PTX_JIT": "1"}
            runs |= {"PTX": ptx, "PTX again": ptx}
        columns = {name: process(TEN, folder, **more) for name, more in runs.items()}
        grown = columns["best"][2]
        print(f"{'milliseconds':<16}" + "".join(f"{name:>12}" for name in columns) + "   MB")
        for operation in grown:
            cells = (f"{times[operation]:>12.2f}" for times, *_ in columns.values())
            print(f"{operation:<16}" + "".join(cells) + f"{grown[operation]:>5.1f}")
        for name, (_, failed, _) in columns.items():
            for operation, why in failed.items():
                print(f"failed with {name}: {operation}: {why}")
        ran, slow, failed = process(SWEEP, folder)
        print(
            f"\n{ran} operations ran, {len(slow)} took more than 100 ms, "
            f"{len(failed)} found no code"
        )
        for name, spent in slow:
            print(f"  {name}: {spent:.0f} ms")
        for name, why in failed.items():
            print(f"  {name}: {why.split(' needs code')[0]}")


if __name__ == "__main__":
    main()
