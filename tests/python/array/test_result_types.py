"""Results of numpy's universal functions on the device have numpy's dtypes, for every pair of
dtypes, and calls that numpy refuses are refused. The arrays are empty, so that no kernel is
compiled."""

from __future__ import annotations

import numpy as np
import pytest
from tables import each_row

from pygpu import _core, cumath, gpuarray

CODES = "?bBhHiIqQefdFD"
# Only since numpy 2 do Python numbers adopt the array's dtype.
NUMBERS = [True, 1, 1.5, 1 + 0j] if np.lib.NumpyVersion(np.__version__) >= "2.0.0" else []
FUNCTIONS = sorted(
    name for name in _core.universal_functions if isinstance(getattr(np, name), np.ufunc)
)


def outcome(function, *operands):
    """Returns the result's dtype, or None if the call is refused."""
    try:
        with np.errstate(all="ignore"):
            return function(*operands).dtype
    except TypeError:
        return None


def is_left_out(name, operands):
    """Returns true for deliberate differences from numpy."""
    dtypes = [getattr(operand, "dtype", None) for operand in operands]
    # numpy 1 and 2 disagree about signs of complex numbers, which pygpu refuses.
    is_sign = name == "sign" and dtypes[0].kind == "c"
    # For numpy, a Python integer may be half precision, which is too narrow for most exponents.
    return is_sign or (name == "ldexp" and dtypes[0] is None)


def pairs_of_operands():
    for code in CODES:
        a = np.empty(0, code)
        yield from ((a, np.empty(0, other)) for other in CODES)
        for number in NUMBERS:
            yield from ((a, number), (number, a))


@each_row("name", FUNCTIONS)
def test_result_types_are_numpys(name):
    function = getattr(np, name)
    if function.nin == 1:
        every = [(np.empty(0, code),) for code in CODES]
    else:
        every = list(pairs_of_operands())
    different = []
    for operands in every:
        moved = [gpuarray.to_gpu(it) if isinstance(it, np.ndarray) else it for it in operands]
        expected, found = outcome(function, *operands), outcome(function, *moved)
        if expected != found and not is_left_out(name, operands):
            kinds = [getattr(operand, "dtype", operand) for operand in operands]
            different.append(f"{kinds}: {found}, not {expected}")
    assert different == []


def test_functions_are_found():
    assert {"arctan2", "copysign", "hypot", "ldexp", "add", "sin"} <= set(FUNCTIONS)


@pytest.mark.parametrize("dtype", ["Q", "e", "f", "d"])
def test_exponents_that_numpy_refuses(dtype):
    a, b = np.array([1.0, -3.0], "f8"), np.array([2, 5], dtype)
    with pytest.raises(TypeError, match=f"x2 has dtype {b.dtype}.*cumath.ldexp"):
        np.ldexp(gpuarray.to_gpu(a), gpuarray.to_gpu(b))
    with pytest.raises(TypeError, match=f"x2 has dtype {b.dtype}"):
        np.ldexp(gpuarray.to_gpu(a), b[0])
    # PyCUDA's function accepts these operands.
    scaled = cumath.ldexp(gpuarray.to_gpu(a), gpuarray.to_gpu(b))
    np.testing.assert_array_equal(scaled.get(), [4.0, -96.0])


def test_truth_values_have_conjugates_of_their_own_type_as_a_method_only():
    a = np.array([True, False])
    a_gpu = gpuarray.to_gpu(a)
    assert np.conjugate(a_gpu).dtype == np.conjugate(a).dtype == np.int8
    assert a_gpu.conj() is a_gpu
    out = gpuarray.empty(2, np.bool_)
    assert a_gpu.conj(out) is out
    np.testing.assert_array_equal(out.get(), a)
