"""Exchanges arrays with large libraries that are installed, on the current backend; run by hand.

    .venv/bin/python tests/exchange/run.py [--require LIBRARY ...]

Each line is an exchange that docs/exchange.md describes: in place, which the address shows, as a
requested copy, or refused. Any other outcome makes the exit status 1. A library that is not
installed, or that cannot use the device, is reported and left out, unless it is required.
"""

from __future__ import annotations

import argparse
import importlib
import sys
import traceback
from collections.abc import Callable
from typing import Any

import numpy as np

import pygpu.autoinit  # noqa: F401
from pygpu import choose_backend, driver, gpuarray

BACKEND = choose_backend()
HOST = np.arange(24, dtype=np.float32).reshape(4, 6)


class Absent(Exception):
    """Raised with the reason why a library is left out."""


def equal(found: Any, expected: Any) -> None:
    """Asserts that an array, numpy's or a device's, has these elements."""
    found = found.get() if isinstance(found, gpuarray.GPUArray) else found
    np.testing.assert_array_equal(found, expected)


def refused(function: Callable[[], Any]) -> str:
    """Asserts that a call raises an error; returns its type and the first words of its message."""
    try:
        result = function()
    except (TypeError, BufferError, ValueError, RuntimeError) as error:
        return f"refused: {type(error).__name__}: {str(error).splitlines()[0]:.60}"
    raise AssertionError(f"not refused: {result!r:.80}")


def taken(export: Callable[[Any], Any], address: Callable[[Any], int], host: Any) -> str:
    """Passes an array, and a part of it, to a library that uses them in place."""
    array = gpuarray.to_gpu(HOST)
    there, part = export(array), export(array[1:3, ::2])
    driver.Context.synchronize()
    assert (address(there), address(part)) == (array.ptr, array.ptr + 24)
    equal(host(there), HOST)
    equal(host(part), HOST[1:3, ::2])
    # Work that is queued on this library's stream runs before the other library's work.
    stream = driver.Stream()
    for _ in range(20):
        array.fill(0, stream=stream)
    array.fill(7, stream=stream)
    equal(host(export(array)), np.full((4, 6), 7, "f4"))
    # The memory lives until its last user is gone.
    del array
    gpuarray.zeros((4, 6), "f4")
    equal(host(there), np.full((4, 6), 7, "f4"))
    return "in place"


def given(make: Callable[[], Any], address: Callable[[Any], int], read: Callable[..., Any]) -> str:
    """Uses a library's array in place, or a copy if it is in ordinary host memory."""
    theirs = make()
    array = read(theirs)
    equal(array, HOST)
    if array.ptr == address(theirs):
        del theirs
        equal(array * 2, HOST * 2)
        return "in place"
    assert BACKEND == "host"
    refused(lambda: read(theirs, copy=False))
    return "a copy; copy=False is refused"


# -- libraries -----------------------------------------------------------------------------------


def torch_exchanges() -> dict[str, Callable[[], str]]:
    """PyTorch."""
    torch = importlib.import_module("torch")
    device = "cpu" if BACKEND == "host" else "cuda"
    if device == "cuda" and not torch.cuda.is_available():
        raise Absent("it sees no GPU")

    def address(tensor: Any) -> int:
        return tensor.data_ptr()

    def host(tensor: Any) -> Any:
        return tensor.cpu().numpy()

    def make(**options: Any) -> Any:
        return torch.tensor(HOST, **{"device": device} | options)

    checks = {
        "torch.from_dlpack(array)": lambda: taken(torch.from_dlpack, address, host),
        "gpuarray.from_dlpack(tensor)": lambda: given(make, address, gpuarray.from_dlpack),
    }
    if device == "cuda":
        read = gpuarray.from_cuda_array_interface
        as_tensor = "torch.as_tensor(array, device='cuda')"
        checks |= {
            as_tensor: lambda: taken(lambda a: torch.as_tensor(a, device=device), address, host),
            "gpuarray.from_cuda_array_interface(tensor)": lambda: given(make, address, read),
            "gpuarray.from_dlpack(tensor of the host)": lambda: refused(
                lambda: gpuarray.from_dlpack(make(device="cpu"))
            ),
        }
    else:
        checks["torch.as_tensor(array)"] = lambda: refused(
            lambda: torch.as_tensor(gpuarray.to_gpu(HOST))
        )
    return checks


def cupy_exchanges() -> dict[str, Callable[[], str]]:
    """CuPy."""
    cupy = importlib.import_module("cupy")
    if BACKEND == "host":
        raise Absent("it needs a GPU")
    if not cupy.cuda.is_available():
        raise Absent("it sees no GPU")

    def address(array: Any) -> int:
        return array.data.ptr

    def make() -> Any:
        return cupy.asarray(HOST)

    read = gpuarray.from_cuda_array_interface
    return {
        "cupy.from_dlpack(array)": lambda: taken(cupy.from_dlpack, address, cupy.asnumpy),
        "cupy.asarray(array)": lambda: taken(cupy.asarray, address, cupy.asnumpy),
        "gpuarray.from_dlpack(cupy's)": lambda: given(make, address, gpuarray.from_dlpack),
        "gpuarray.from_cuda_array_interface(cupy's)": lambda: given(make, address, read),
    }


def jax_exchanges() -> dict[str, Callable[[], str]]:
    """JAX."""
    jax = importlib.import_module("jax")
    platform = "cpu" if BACKEND == "host" else "gpu"
    try:
        device = jax.devices(platform)[0]
    except RuntimeError as error:
        raise Absent(str(error).splitlines()[0]) from None

    def address(array: Any) -> int:
        return array.unsafe_buffer_pointer()

    def make() -> Any:
        return jax.device_put(HOST, device)

    def copied() -> str:
        theirs = make()
        array = gpuarray.from_dlpack(theirs, copy=True)
        equal(array, HOST)
        assert array.ptr != address(theirs)
        return "a copy, as asked"

    def whole() -> str:
        # JAX arrays are contiguous, and JAX treats an imported array as constant.
        array = gpuarray.to_gpu(HOST)
        there = jax.dlpack.from_dlpack(array)
        assert address(there) == array.ptr
        equal(np.asarray(there), HOST)
        return "in place"

    def as_array() -> str:
        if BACKEND != "cuda":
            return refused(lambda: jax.numpy.asarray(gpuarray.to_gpu(HOST)))
        # On a GPU, JAX reads the array interface.
        array = gpuarray.to_gpu(HOST)
        there = jax.numpy.asarray(array)
        assert next(iter(there.devices())).platform == "gpu"
        equal(np.asarray(there), HOST)
        return "in place" if address(there) == array.ptr else "a copy on the device"

    return {
        "jax.dlpack.from_dlpack(array)": whole,
        "jax.numpy.asarray(array)": as_array,
        "gpuarray.from_dlpack(jax's)": lambda: given(make, address, gpuarray.from_dlpack),
        "gpuarray.from_dlpack(jax's, copy=True)": copied,
    }


def numba_exchanges() -> dict[str, Callable[[], str]]:
    """numba-cuda."""
    cuda = importlib.import_module("numba.cuda")
    if BACKEND != "cuda":
        raise Absent("it needs CUDA")
    if not cuda.is_available():
        raise Absent("it sees no GPU")

    def address(array: Any) -> int:
        return array.device_ctypes_pointer.value

    def make() -> Any:
        return cuda.to_device(HOST)

    read = gpuarray.from_cuda_array_interface
    return {
        "numba.cuda.as_cuda_array(array)": lambda: taken(
            cuda.as_cuda_array, address, lambda a: a.copy_to_host()
        ),
        "gpuarray.from_cuda_array_interface(numba's)": lambda: given(make, address, read),
    }


LIBRARIES = {
    "torch": torch_exchanges,
    "cupy": cupy_exchanges,
    "jax": jax_exchanges,
    "numba": numba_exchanges,
}


def main() -> int:
    """Runs every exchange; returns the exit status."""
    parser = argparse.ArgumentParser(description="Exchanges arrays with other libraries.")
    parser.add_argument("--require", nargs="*", default=[], choices=LIBRARIES)
    required = parser.parse_args().require
    failures = 0
    print(f"backend {BACKEND}, {driver.Device(0).name()}")
    for library, exchanges in LIBRARIES.items():
        try:
            checks = exchanges()
        except (ImportError, Absent) as error:
            print(f"{library}: left out: {str(error).splitlines()[0]}")
            failures += library in required
            continue
        print(f"{library} {importlib.import_module(library).__version__}")
        for name, check in checks.items():
            try:
                print(f"    {name}: {check()}")
            except Exception:
                failures += 1
                print(f"    {name}: FAILED\n{traceback.format_exc()}")
    return int(failures > 0)


if __name__ == "__main__":
    sys.exit(main())
