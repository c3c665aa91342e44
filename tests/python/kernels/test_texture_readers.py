"""PyCUDA kernels that read arrays through textures."""

from __future__ import annotations

import numpy as np
import pytest

from pygpu import _core, driver, gpuarray
from pygpu.elementwise import (
    get_linear_combination_kernel,
    get_take_kernel,
    get_take_put_kernel,
)


def call(function, *arguments, length):
    function.prepared_call((3, 1), (64, 1, 1), *arguments, length)


@pytest.mark.parametrize("dtype", ["i4", "f4", "f8", "c8", "c16"])
def test_kernels_that_read_through_textures(dtype):
    dtype, index = np.dtype(dtype), np.dtype(np.int32)
    if not _core.has_textures():
        with pytest.raises(driver.Unsupported, match="take: its kernel reads through textures"):
            get_take_kernel(dtype, index)
        with pytest.raises(driver.Unsupported, match="linear_combination"):
            get_linear_combination_kernel(((True, dtype, dtype),), dtype)
        return
    hack = {"allow_double_hack": True, "allow_complex_hack": True}
    values = [
        (np.arange(50) * (k + 2 - (1j if dtype.kind == "c" else 0))).astype(dtype) for k in (0, 1)
    ]
    sources = [gpuarray.to_gpu(x) for x in values]
    here, there = (
        np.random.default_rng(seed).permutation(50)[:20].astype(index) for seed in (1, 2)
    )
    gpu_here, gpu_there = gpuarray.to_gpu(here), gpuarray.to_gpu(there)

    take, textures = get_take_kernel(dtype, index, 2)
    results = [gpuarray.zeros(20, dtype) for _ in sources]
    for source, texture in zip(sources, textures, strict=True):
        source.bind_to_texref_ext(texture, **hack)
    call(take, gpu_here.gpudata, *(x.gpudata for x in results), length=20)
    for result, x in zip(results, values, strict=True):
        assert (result.get() == x[here]).all()

    for offsets in ((), (7, -3)):
        place, textures = get_take_put_kernel(dtype, index, bool(offsets), 2)
        results = [gpuarray.zeros(50, dtype) for _ in sources]
        for source, texture in zip(sources, textures, strict=True):
            source.bind_to_texref_ext(texture, **hack)
        inside = gpuarray.to_gpu(here % 40 + 5)
        arguments = (gpu_there.gpudata, inside.gpudata, *(x.gpudata for x in results), *offsets)
        call(place, *arguments, length=20)
        for result, x, offset in zip(results, values, offsets or (0, 0), strict=True):
            expected = np.zeros(50, dtype)
            expected[there] = x[here % 40 + 5 + offset]
            assert (result.get() == expected).all()

    # One factor is in device memory, one on the host.
    descriptors = ((True, dtype, dtype), (False, dtype, dtype))
    combine, (texture,) = get_linear_combination_kernel(descriptors, dtype)
    factor, z = gpuarray.to_gpu(np.array([3], dtype)), gpuarray.zeros(50, dtype)
    factor.bind_to_texref_ext(texture, **hack)
    five = dtype.type(5)
    call(combine, sources[0].gpudata, five, sources[1].gpudata, z.gpudata, length=50)
    assert (z.get() == 3 * values[0] + 5 * values[1]).all()
