"""Elementwise kernels parse their declaration at the first call."""

from __future__ import annotations

import copy
import pickle
import tempfile
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from pygpu import compiler, driver, gpuarray
from pygpu.compiler import SourceModule
from pygpu.elementwise import ElementwiseKernel
from pygpu.reduction import ReductionKernel
from pygpu.scan import InclusiveScanKernel
from pygpu.tools import VectorArg, get_or_register_dtype


@pytest.mark.parametrize(
    ("arguments", "operation", "more", "error", "text"),
    [
        ("float a", "a", {}, AssertionError, "vector argument.*'float a'"),
        ("flot *a", "a[i] = 1", {}, ValueError, "flot"),
        ("float *", "a", {}, ValueError, "declarator|argument"),
        ("float *a float *b", "a", {}, ValueError, r"float \*a float"),
        ("float *a, int a", "a", {}, ValueError, "twice"),
        (["float *a"], "a", {}, TypeError, "VectorArg"),
        (None, "a", {}, TypeError, "arguments is None; a declaration in C"),
        ("float *a", None, {}, TypeError, "operation"),
        ("float *a", "a", {"preamble": 3}, TypeError, "preamble"),
        ("float *a", "a", {"name": "my kernel"}, ValueError, "not a name in C"),
    ],
)
def test_what_is_wrong_with_a_kernel_is_said_by_each_call(arguments, operation, more, error, text):
    kernel = ElementwiseKernel(arguments, operation, **more)
    x = gpuarray.zeros(5, np.float32)
    for _ in range(2):
        with pytest.raises(error, match=text):
            kernel(x)
        with pytest.raises(error, match=text):
            kernel(x, slice=slice(0, 2))
        with pytest.raises(error, match=text):
            kernel.generate_stride_kernel_and_types(False)
    assert not x.get().any()


def test_a_type_may_be_registered_behind_the_first_call():
    pair = np.dtype([("u", np.int32), ("v", np.int32)])
    text = "struct late_pair { int u, v; };"
    kernel = ElementwiseKernel("late_pair *x", "x[i].v = x[i].u", preamble=text)
    x = gpuarray.to_gpu(np.array([(1, 0), (2, 0)], pair))
    with pytest.raises(ValueError, match="late_pair"):
        kernel(x)
    get_or_register_dtype("late_pair", pair)
    kernel(x)
    assert x.get()["v"].tolist() == [1, 2]


def test_arguments_are_kept_for_the_first_call():
    seen = []
    kernel = ElementwiseKernel((seen.append(it) or it for it in [VectorArg(np.int32, "x")]), "f(")
    assert len(seen) == 1
    x = gpuarray.zeros(3, np.int32)
    kernel.gen_kwargs["operation"] = "x[i] = i + 1"
    kernel(x)
    assert x.get().tolist() == [1, 2, 3]


def test_a_second_declaration_counts_until_the_first_call():
    kernel = ElementwiseKernel("float *x", "x[i] = 1")
    kernel.__init__("float *x", "x[i] = 2")
    x = gpuarray.zeros(6, np.float32)
    kernel(x)
    kernel.__init__("float *x, float *y", "y[i] = 3")
    kernel(x[::2])
    kernel(x, slice=slice(0, 1))
    assert (x.get() == 2).all()


def test_a_kernel_whose_class_skips_the_constructor_is_refused():
    class Empty(ElementwiseKernel):
        def __init__(self):
            pass

    with pytest.raises(RuntimeError, match="__init__ has not been called"):
        Empty()(gpuarray.zeros(1, np.float32))


@pytest.mark.parametrize("called", [False, True])
@pytest.mark.parametrize(
    "make", [copy.copy, copy.deepcopy, lambda it: pickle.loads(pickle.dumps(it))]
)
def test_copies_of_a_kernel_are_kernels(make, called):
    add = ElementwiseKernel("int a, int *x", "x[i] += a")
    x = gpuarray.zeros(3, np.int32)
    if called:
        add(1, x)
    make(add)(2, x)
    assert x.get().tolist() == [2 + called] * 3


def _sum(x):
    return ReductionKernel(np.int32, 0, "a + b", arguments="const int *in"), lambda it: it(x).get()


def _scan(x):
    scan = InclusiveScanKernel(np.int32, "a + b")
    return scan, lambda it: it(x, "new").get()[-1]


TOTAL = "__global__ void total(int *x, int *out) { *out = x[0] + x[1] + x[2]; }"


def _called(function, x):
    out = gpuarray.zeros(1, np.int32)
    function(x, out, block=(1, 1, 1))
    return out.get()[0]


def _module(x):
    return SourceModule(TOTAL), lambda it: _called(it.get_function("total"), x)


def _function(x):
    return SourceModule(TOTAL).get_function("total"), lambda it: _called(it, x)


def _prepared(x):
    def call(function):
        out = gpuarray.zeros(1, np.int32)
        function.prepared_call((1, 1), (1, 1, 1), x.gpudata, out.gpudata)
        return out.get()[0]

    return SourceModule(TOTAL).get_function("total").prepare("PP"), call


def _module_of_bytes(x):
    return driver.module_from_buffer(compiler.compile(TOTAL)), _module(x)[1]


def _function_of_a_file(x):
    with tempfile.NamedTemporaryFile() as file:
        file.write(compiler.compile(TOTAL))
        file.flush()
        module = driver.module_from_file(file.name)
    # The file does not exist any longer.
    return module.get_function("total"), lambda it: _called(it, x)


KINDS = [_sum, _scan, _module, _function, _prepared, _module_of_bytes, _function_of_a_file]


@pytest.mark.parametrize("called", [False, True])
@pytest.mark.parametrize("kind", KINDS)
def test_pickles_of_compiled_objects_are_compiled_again(kind, called):
    made, call = kind(gpuarray.to_gpu(np.array([3, 1, 2], np.int32)))
    if called:
        assert call(made) == 6
    assert call(pickle.loads(pickle.dumps(made))) == 6
    assert call(copy.copy(made)) == 6


def test_a_pickled_function_converts_numbers_as_its_source_declares():
    function = SourceModule("__global__ void fill(float *x, float a) { *x = a; }").get_function(
        "fill"
    )
    x = gpuarray.zeros(1, np.float32)
    pickle.loads(pickle.dumps(function))(x, 3, block=(1, 1, 1))
    assert x.get()[0] == 3.0


def test_a_linker_says_what_to_pickle():
    with pytest.raises(TypeError, match="pickle the module of link_module"):
        pickle.dumps(driver.Linker())


def test_first_calls_of_threads_may_meet():
    start = threading.Barrier(4)

    def work(kernel, x):
        start.wait()
        kernel(x, 3)
        return x.get()

    with ThreadPoolExecutor(4) as pool:
        for _ in range(20):
            kernel = ElementwiseKernel("int *x, int a", "x[i] = a * i")
            arrays = [gpuarray.zeros(4, np.int32) for _ in range(4)]
            for result in pool.map(work, [kernel] * 4, arrays):
                assert result.tolist() == [0, 3, 6, 9]
