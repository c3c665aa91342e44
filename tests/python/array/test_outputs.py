"""`out` must have a dtype that holds the result, the right shape, and no partial overlap. An
output that is the input itself allocates no memory."""

from __future__ import annotations

import numpy as np
import pytest
from pairs import DTYPES, check, numbers, outcome
from processes import run_python
from tables import each_row

from pygpu import cumath, gpuarray

# Each function writes `out`. The result's dtype is the dtype of numpy's function for the same
# array, or the array's own dtype.
UNARY = {
    "exp": (cumath.exp, np.exp),
    "sqrt": (cumath.sqrt, np.sqrt),
    "fabs": (cumath.fabs, np.abs),
    "floor": (cumath.floor, np.floor),
    "conj": (lambda a, out: a.conj(out=out), None),
    "logical_not": (gpuarray.logical_not, np.logical_not),
    "minimum": (lambda a, out: gpuarray.minimum(a, a, out=out), None),
    "maximum": (lambda a, out: gpuarray.maximum(a, a, out=out), None),
    "logical_and": (lambda a, out: gpuarray.logical_and(a, a, out=out), np.logical_not),
    "where": (lambda a, out: gpuarray.where(a, a, a, out=out), None),
    "if_positive": (lambda a, out: gpuarray.if_positive(a, a, a, out=out), None),
    "take": (
        lambda a, out: gpuarray.take(a, gpuarray.arange(4, dtype=np.int32), out=out),
        None,
    ),
    "mul_add": (
        lambda a, out: a.mul_add(a.dtype.type(1), a, a.dtype.type(1), out=out),
        None,
    ),
}


@each_row("name", UNARY)
@each_row("dtype", DTYPES)
def test_an_output_that_cannot_hold_the_result_is_refused(name, dtype):
    function, reference = UNARY[name]
    a = np.ones(4, dtype)
    kind = dtype
    if reference is not None:
        result = outcome(reference, a)
        if isinstance(result, Exception):
            return
        kind = result.dtype
    a_gpu = gpuarray.to_gpu(a)
    for other in DTYPES:
        out = gpuarray.to_gpu(np.full(4, 1, other))
        result = outcome(lambda out: function(a_gpu, out=out), out)
        if np.can_cast(kind, other, "same_kind"):
            assert result is out, (name, dtype, other, result)
        elif isinstance(result, TypeError):
            assert str(kind) in str(result)
            assert str(other) in str(result)
            check(out, np.full(4, 1, other))
        else:
            raise AssertionError((name, dtype, other, result))


@pytest.mark.parametrize("name", UNARY)
def test_an_output_of_another_shape_is_refused(name):
    function, _ = UNARY[name]
    a_gpu = gpuarray.to_gpu(np.ones(4))
    for shape in ((5,), (3,), (), (0,), (4, 1)):
        out = gpuarray.zeros(shape)
        with pytest.raises(ValueError, match="shape"):
            function(a_gpu, out=out)
        check(out, np.zeros(shape))


@each_row("name", UNARY)
@each_row("out", [np.zeros(4), 3, "x", [0.0] * 4])
def test_an_output_that_is_no_device_array_is_named(name, out):
    function, _ = UNARY[name]
    with pytest.raises(TypeError, match=f"out.*{type(out).__name__}.*GPUArray"):
        function(gpuarray.to_gpu(np.ones(4)), out=out)


@pytest.mark.parametrize("name", [name for name in UNARY if name != "take"])
def test_an_output_that_overlaps_the_input(name):
    """As in numpy, the result is the same as if the input had been copied first."""
    function, _ = UNARY[name]
    a = np.arange(12.0)
    expected_gpu = function(gpuarray.to_gpu(a[:8].copy()), out=gpuarray.zeros(8))
    whole = gpuarray.to_gpu(a)
    function(whole[:8], out=whole[2:10])
    check(whole[2:10], expected_gpu.get())
    backwards = gpuarray.to_gpu(a)[:8]
    function(backwards, out=backwards[::-1])
    check(backwards[::-1], expected_gpu.get())


def test_take_into_what_it_reads_is_refused():
    a_gpu = gpuarray.to_gpu(np.arange(4.0))
    with pytest.raises(ValueError, match="overlaps"):
        gpuarray.take(a_gpu, gpuarray.arange(4, dtype=np.int32), out=a_gpu)


def test_an_output_may_be_the_input():
    a = numbers((3, 4), "f8", 7)
    a_gpu = gpuarray.to_gpu(a)
    for view in (a_gpu, a_gpu[:, 1:3], a_gpu.T, a_gpu[::-1]):
        kept = view.get()
        assert cumath.exp(view, out=view) is view
        np.testing.assert_allclose(view.get(), np.exp(kept), rtol=1e-14)
        gpuarray.where(view, view, 2.0, out=view)
        view.set(np.ascontiguousarray(kept))


def test_an_output_that_is_the_input_takes_no_memory():
    run_python(
        """
        import numpy as np
        import pygpu.autoinit
        from pygpu import cumath, driver, gpuarray
        # 48 of 64 MiB: no second array of the size fits.
        a = gpuarray.zeros((3, 2 << 20), np.float64)
        for _ in range(3):
            cumath.exp(a, out=a)
            cumath.sqrt(a[1], out=a[1])
            a.conj(out=a)
            gpuarray.where(a, a, 1.0, out=a)
            gpuarray.if_positive(a, a, 1.0, out=a)
            gpuarray.minimum(a, 1.0, out=a)
            gpuarray.logical_not(a, out=a)
            a.mul_add(1, a, 1, out=a)
            # The same elements, seen with an axis of extent 1 whose stride is another.
            cumath.exp(a[:1], out=a[:1, :])
        try:
            cumath.exp(a[0], out=a[0, ::-1])
            cumath.exp(a)
        except driver.MemoryError:
            pass
        else:
            raise AssertionError("64 MiB are not the limit")
        """,
        PYGPU_BACKEND="host",
        PYGPU_HOST_MEMORY="64M",
    )
