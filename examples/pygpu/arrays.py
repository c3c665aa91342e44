"""A PyGPU program of the high-level interface, as its README has it.

    python examples/pygpu/arrays.py

Runs on NVIDIA, on AMD and on no GPU at all; PYGPU_BACKEND chooses.
"""

import numpy as np

import PyGPU as gpuarray

# Send a numpy array to the device.
k = np.array([1, 2, 3, 4, 5, 6])
k_gpu = gpuarray.to_gpu(k)
print(f"k: {k_gpu.nbytes} bytes at {k_gpu.ptr:#x}, {k_gpu.last_status}")

# Allocate memory on the device; the host side is page-locked.
fk_gpu = gpuarray.GPUArray((3, 3, 3), dtype=complex)

# `get` returns the host side: change it, and send it to the device.
fk = fk_gpu.get()
fk[:] = np.arange(27).reshape(3, 3, 3) * 1j
fk_gpu.to_device()
fk[:] = 0
print(f"the last element of fk: {fk_gpu.get()[2, 2, 2]}")
assert fk_gpu.get()[2, 2, 2] == 26j

# A part is an array of its own.
row = k_gpu[1:3]
assert row.get().tolist() == [2, 3]

# A failure is a status, never an exception, unless PYGPU_STATUS asks for one.
status = k_gpu.set_val(100, 0)
assert not status
print(f"{status!r}: {status.name}, {status.message}")
