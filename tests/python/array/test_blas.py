"""Matrix products through the vendor's linear algebra library, on the fake drivers.

The library is also fake: it computes with the arguments that it receives. numpy gives
the expected values.
"""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest
from device import BACKEND, IS_DOUBLE
from processes import run_python

pytestmark = pytest.mark.skipif(not IS_DOUBLE, reason="the fake library works with the doubles")

VARIABLE = {"cuda": "PYGPU_CUBLAS", "hip": "PYGPU_ROCBLAS"}.get(BACKEND, "")

PRELUDE = """
import ctypes, os, sys
import numpy as np
from pygpu import driver, gpuarray
import pygpu.autoinit
library = ctypes.CDLL(sys.argv[1])

def whole(*shape, dtype="f8", seed=0):
    # Products and sums of these are exact in single precision.
    rng = np.random.default_rng(seed)
    real = rng.integers(-4, 5, shape)
    return (real + 1j * rng.integers(-4, 5, shape) if dtype[0] == "c" else real).astype(dtype)

def check(found, expected, asked):
    before, products = products_so_far.pop(), library.fake_products()
    assert products - before == asked, (products - before, asked)
    products_so_far.append(products)
    assert found.dtype == expected.dtype, found.dtype
    np.testing.assert_array_equal(found.get(), expected)

products_so_far = [0]
"""


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    """Compiles the fake library."""
    file = tmp_path_factory.mktemp("blas") / "libfake.so"
    source = Path(__file__).with_name("fake_blas.cpp")
    compiler = os.environ.get("CXX", "c++")
    options = ["-std=c++17", "-O1", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC"]
    subprocess.run([compiler, *options, source, "-o", file, "-ldl"], check=True, timeout=120)
    return str(file)


def run(library: str, code: str, **environment: str):
    return run_python(PRELUDE + code, library, **{VARIABLE: library, **environment})


def test_dtypes_and_orders(library):
    run(
        library,
        """
for dtype in ("f4", "f8", "c8", "c16"):
    a, b = whole(97, 110, dtype=dtype), whole(110, 103, dtype=dtype, seed=1)
    x, y = gpuarray.to_gpu(a), gpuarray.to_gpu(b)
    check(x @ y, a @ b, 1)
a, b = whole(103, 2 * 110), whole(110, 103, seed=1)
x, y = gpuarray.to_gpu(a), gpuarray.to_gpu(b)
check(x.T @ y.T, a.T @ b.T, 1)
check(x[:, :110].T @ x, a[:, :110].T @ a, 1)
check(x[:, 110:] @ y, a[:, 110:] @ b, 1)
check(y.T @ x[:, 5:115].T, b.T @ a[:, 5:115].T, 1)
for order in "CF":
    out = gpuarray.zeros((103, 103), "f8", order=order)
    gpuarray.matmul(x[:, :110], y, out=out)
    check(out, a[:, :110] @ b, 1)
""",
    )


def test_batches(library):
    run(
        library,
        """
a, b = whole(8, 64, 70, dtype="f4"), whole(8, 70, 64, dtype="f4", seed=1)
x, y = gpuarray.to_gpu(a), gpuarray.to_gpu(b)
check(x @ y, a @ b, 1)
check(x @ y[0], a @ b[0], 1)
check(x[::2] @ y[::2], a[::2] @ b[::2], 1)
check(x @ x.transpose(0, 2, 1), a @ a.transpose(0, 2, 1), 1)
# Batches that one stride does not name are computed by kernels.
check(x[:2, None] @ y[None, :2], a[:2, None] @ b[None, :2], 0)
""",
    )


def test_what_the_library_does_not_take(library):
    run(
        library,
        """
a, b = whole(101, 102), whole(102, 103, seed=1)
x, y = gpuarray.to_gpu(a), gpuarray.to_gpu(b)
check(x[:, ::-1] @ y, a[:, ::-1] @ b, 0)
check(x @ y.astype("f4"), a @ b.astype("f4"), 0)
check(x.astype("i4") @ y.astype("i4"), a.astype("i4") @ b.astype("i4"), 0)
# The fake has no products of half precision.
check(x.astype("f2") @ y.astype("f2"), a.astype("f2") @ b.astype("f2"), 0)
check(x[:20] @ y[:, :20], a[:20] @ b[:, :20], 0)
""",
    )


def test_streams_and_captures(library):
    run(
        library,
        """
a, b = whole(128, 128), whole(128, 128, seed=1)
x, y, out = gpuarray.to_gpu(a), gpuarray.to_gpu(b), gpuarray.zeros((128, 128), "f8")
stream = driver.Stream()
x.fill(2)
check(gpuarray.matmul(x, y, stream=stream), np.full_like(a, 2) @ b, 1)
with stream.capture() as graph:
    gpuarray.matmul(x, y, out=out, stream=stream)
products_so_far = [library.fake_products()]
for value in (1, 3):
    x.fill(value)
    graph.launch(stream)
    stream.synchronize()
    check(out, np.full_like(a, value) @ b, 0)
""",
    )


def test_a_named_library_has_to_be_there(library):
    code = "a = gpuarray.zeros((128, 128), 'f4')\nb = a @ a\n"
    run(library, code + "assert library.fake_products() == 0", **{VARIABLE: "off"})
    done = run_python(PRELUDE + code, library, check=False, **{VARIABLE: "/none/libblas.so"})
    assert done.returncode == 1
    assert f'{VARIABLE} is "/none/libblas.so"' in done.stderr
