"""A PyGPU program of the low-level interface: pointers, statuses, and a function of C.

    python examples/pygpu/device_arrays.py

The function is compiled for the processor with `cc`, so this runs on the host backend; on a GPU
the library would be one that nvcc or hipcc has made, called in the same way.
"""

import ctypes
import os
import subprocess
import tempfile
from pathlib import Path

os.environ["PYGPU_BACKEND"] = "host"

import numpy

from PyGPU import (
    DeviceArray_int64,
    cudaEvent_t,
    cudaEventElapsedTime,
    cudaEventRecord,
    cudaEventSynchronize,
    cudaGetDevice,
    cudaGetDeviceCount,
    cudaSetDevice,
)

SQUARE = "void square(long long *x, int n) { for (int i = 0; i < n; ++i) x[i] *= x[i]; }"

with tempfile.TemporaryDirectory() as folder:
    source, library = Path(folder, "square.c"), Path(folder, "libsquare.so")
    source.write_text(SQUARE)
    subprocess.run(["cc", "-shared", "-fPIC", "-o", library, source], check=True)
    square = ctypes.CDLL(str(library)).square
square.argtypes = [ctypes.c_void_p, ctypes.c_int]

count, status = cudaGetDeviceCount()
print(f"{count} device(s), {status}; {cudaSetDevice(0)}; now {cudaGetDevice()}")

A = numpy.array([1, 2, 3, 4, 5, 6])
da = DeviceArray_int64(A)  # Point host_data() to the data of A
da.allocate()  # Allocate memory on the device
da.to_device()  # Copy the data to the device

start, end = cudaEvent_t(), cudaEvent_t()
cudaEventRecord(start)
square(int(da.device_data()), da.size())  # Apply a function to the data on the device
cudaEventRecord(end)
cudaEventSynchronize(end)

da.to_host()  # Copy the data back into A
print(f"{A}, {da.last_status()}")
assert A.tolist() == [1, 4, 9, 16, 25, 36]

milliseconds, status = cudaEventElapsedTime(start, end)
print(f"{milliseconds:.3f} ms, {status}; host {da.host_data()}, device {da.device_data()}")
