"""Objects that represent arrays in calls of generated kernels."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

from pygpu import driver, gpuarray
from pygpu.elementwise import ElementwiseKernel
from pygpu.reduction import ReductionKernel

SELECT = ElementwiseKernel(
    "float *x, float least, float *found, unsigned *count",
    "if (x[i] > least) found[atomicAdd(count, 1)] = x[i]",
    "select_large",
)


def standing_for(array, **attributes):
    return SimpleNamespace(gpudata=array.ptr, flags=SimpleNamespace(forc=True), **attributes)


def test_objects_that_have_an_address_only():
    x = np.arange(100, dtype=np.float32)
    found, count = gpuarray.zeros(100, np.float32), gpuarray.zeros(1, np.uint32)
    SELECT(gpuarray.to_gpu(x), 59, standing_for(found), standing_for(count))
    assert count.get()[0] == 40
    np.testing.assert_array_equal(np.sort(found.get()[:40]), x[60:])


def test_objects_with_a_shape():
    x = gpuarray.arange(6, dtype=np.float32)
    total = ReductionKernel(np.float32, 0, "a+b", "x[i]", "float *x")
    assert total(standing_for(x, shape=(2, 3), dtype=x.dtype)).get() == 15
    double = ElementwiseKernel("float *x, float *z", "z[i] = 2 * x[i]")
    z = gpuarray.zeros(6, np.float32)
    double(standing_for(x, shape=(6,)), standing_for(z))
    np.testing.assert_array_equal(z.get(), 2 * x.get())


def test_an_array_that_is_accessed_elsewhere_may_be_longer():
    total = ElementwiseKernel("float *z, float *x", "z[i] = x[i] + x[i + n]")
    z, x = gpuarray.zeros(3, np.float32), gpuarray.arange(6, dtype=np.float32)
    total(z, x)
    np.testing.assert_array_equal(z.get(), [3, 5, 7])
    with pytest.raises(ValueError, match="array x of kernel kernel has size 2; array z has size 3"):
        total(z, x[:2])
    copy = ElementwiseKernel("float *z, float *x", "z[i] = x[i]")
    with pytest.raises(ValueError, match="has size 6"):
        copy(z, x)
    # Also the first argument: the call visits as many elements as the others have.
    steps = ElementwiseKernel("float *x, float *z", "z[i] = x[i + 1] - x[i]")
    squares, z = gpuarray.to_gpu(np.float32([0, 1, 4, 9, 16])), gpuarray.zeros(4, np.float32)
    steps(squares, z)
    np.testing.assert_array_equal(z.get(), [1, 3, 5, 7])
    with pytest.raises(ValueError, match="array z of kernel kernel has size 6; array x has size 5"):
        steps(squares, gpuarray.zeros(6, np.float32))
    with pytest.raises(ValueError, match="array y of kernel kernel has size 4; array z has size 3"):
        ElementwiseKernel("float *x, float *z, float *y", "z[i] = x[i + 1] - x[i] + y[i]")(
            squares, z[:3], z
        )


def test_objects_that_do_not_fit():
    double = ElementwiseKernel("float *x, float *z", "z[i] = 2 * x[i]")
    x = gpuarray.zeros(6, np.float32)
    gaps = standing_for(x)
    gaps.flags.forc = False
    with pytest.raises(RuntimeError, match="non-contiguous"):
        double(x, gaps)
    with pytest.raises(ValueError, match="has size 5"):
        double(x, standing_for(x, shape=(5,)))
    with pytest.raises(TypeError, match="dtype"):
        double(x, standing_for(x, dtype=np.dtype(np.int64), shape=(3,)))
    for other in (np.zeros(6, np.float32), None, 3, driver.mem_alloc(24)):
        with pytest.raises(TypeError, match="a GPUArray is needed"):
            double(x, other)
