"""PyCUDA's factories of kernels: each kernel computes what the page of its factory says."""

from __future__ import annotations

import numpy as np
from tables import each_row

from pygpu import elementwise, gpuarray, reduction

F, N, C = np.float32, np.int32, np.complex64
X, Z = np.arange(3, dtype=F), np.zeros(3, F)
TWO = np.array([-2.25, 3], F)
SUMMAND = (False, F, F)

# The factory, its arguments, the kernel's without the number of elements, and what some of these,
# by their places, hold afterwards.
ELEMENTWISE = [
    ("linear_combination", ((SUMMAND, SUMMAND), F), (2, X, 10, X, Z), {4: [0, 12, 24]}),
    ("axpbyz", (F, F, F), (2, X, 5, X, Z), {4: [0, 7, 14]}),
    ("axpbz", (F, F), (2, X, 1, Z), {3: [1, 3, 5]}),
    ("binary_op", (F, F, F, "*"), (X, X, Z), {2: [0, 1, 4]}),
    ("rdivide_elwise", (F, F), (X + 1, 6, Z), {2: [6, 3, 2]}),
    ("scalar_op", (N, N, N, "-"), (X.astype(N), 1, Z.astype(N)), {2: [-1, 0, 1]}),
    ("binary_func", ("fmaxf", F, F, F), (X, X[::-1], Z), {2: [2, 1, 2]}),
    ("binary_func_scalar", ("powf", F, F, F), (X, 2, Z), {2: [0, 1, 4]}),
    ("binary_minmax", ("min", N, N, N, True), (X.astype(N), 1, Z.astype(N)), {2: [0, 1, 1]}),
    ("pow_array", (F, F, F, True, False), (X, 2, Z), {2: [0, 1, 4]}),
    ("fmod", (), (TWO, 2 * np.ones(2, F), Z[:2]), {2: [-0.25, 1]}),
    ("modf", (), (TWO, Z[:2], Z[:2]), {1: [-2, 3], 2: [-0.25, 0]}),
    ("frexp", (), (TWO, Z[:2], Z[:2]), {1: [-0.5625, 0.75], 2: [2, 2]}),
    ("ldexp", (), (TWO, np.array([1, 2], F), Z[:2]), {2: [-4.5, 12]}),
    ("unary_func", ("sqrtf", F), (X * X, Z), {1: [0, 1, 2]}),
    ("if_positive", (N, F), (np.array([-1, 0, 1], N), X, X + 7, Z), {3: [7, 8, 2]}),
    ("where", (N, F), (np.array([-1, 0, 1], N), X, X + 7, Z), {3: [0, 8, 2]}),
    ("logical_not", (F, np.int8), (X, Z.astype(np.int8)), {1: [1, 0, 0]}),
    ("copy", (N, F), (Z.astype(N), X), {0: [0, 1, 2]}),
    ("fill", (F,), (7, Z), {1: [7, 7, 7]}),
    ("reverse", (F,), (X, Z), {1: [2, 1, 0]}),
    ("real", (C, F), (np.array([1 + 2j], C), Z[:1]), {1: [1]}),
    ("imag", (C, F), (np.array([1 + 2j], C), Z[:1]), {1: [2]}),
    ("conj", (C, C), (np.array([1 + 2j], C), np.zeros(1, C)), {1: [1 - 2j]}),
    ("arange", (F,), (Z, 1, 0.5), {0: [1, 1.5, 2]}),
]

# The factory, its arguments, the reduction's, and the result.
INDICES = np.array([1, 2], N)
REDUCTIONS = [
    ("sum", (None, F), (X,), 3),
    ("any", (np.int8, F), (X,), 1),
    ("all", (np.int8, F), (X,), 0),
    ("subset_sum", (None, N, F), (INDICES, X + 7), 17),
    ("dot", (F, F, F), (X, X), 5),
    ("subset_dot", (F, N), (INDICES, X, X), 5),
    ("minmax", ("max", F), (X,), 2),
    ("subset_minmax", ("min", F, N), (INDICES, X), 1),
]


def on_device(values):
    return [gpuarray.to_gpu(it.copy()) if isinstance(it, np.ndarray) else it for it in values]


@each_row(("name", "given", "arguments", "expected"), ELEMENTWISE)
def test_kernels_of_elements(name, given, arguments, expected):
    kernel = getattr(elementwise, f"get_{name}_kernel")(*given)
    kernel = kernel[0] if isinstance(kernel, tuple) else kernel
    arguments = on_device(arguments)
    array = next(it for it in arguments if isinstance(it, gpuarray.GPUArray))
    raw = [getattr(it, "gpudata", it) for it in arguments]
    kernel.prepared_call(array._grid, array._block, *raw, array.size)
    for place, values in expected.items():
        np.testing.assert_array_equal(arguments[place].get(), values)


@each_row(("name", "given", "arguments", "expected"), REDUCTIONS)
def test_reductions(name, given, arguments, expected):
    reduce = getattr(reduction, f"get_{name}_kernel")(*given)
    assert reduce(*on_device(arguments)).get() == expected
