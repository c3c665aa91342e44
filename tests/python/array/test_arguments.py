"""Wrong arguments, at every position of every public array function and method, raise an exception
that names the problem, and never `SystemError`."""

from __future__ import annotations

import inspect
import itertools
import re
import warnings

import numpy as np
import pytest
from pairs import check
from tables import each_row

from pygpu import cumath, curandom, driver, gpuarray
from pygpu._core import ArrayFlags

WRONG = [
    None,
    "x",
    b"x",
    3,
    -1,
    2.5,
    2j,
    2**70,
    float("nan"),
    object(),
    object,
    [],
    (),
    {},
    [1, 2],
    ("a",),
    np.zeros(3),
    np.float32(1),
    np.dtype("O"),
    len,
    Ellipsis,
    slice(None),
]
# The allowed exceptions; a program that catches numpy's exceptions catches these also. The
# exchange protocols raise `BufferError` for an array that they cannot export, and a number that
# cannot be a stream raises `LogicError`.
ALLOWED = (
    TypeError,
    ValueError,
    IndexError,
    OverflowError,
    MemoryError,
    AttributeError,
    BufferError,
    OSError,
    ZeroDivisionError,
    driver.LogicError,
)


def _array():
    return gpuarray.to_gpu(np.arange(6, dtype=np.float32).reshape(2, 3))


def _callables():
    for module in (gpuarray, cumath, curandom):
        names = getattr(module, "__all__", None) or [n for n in dir(module) if n[0] != "_"]
        for name in names:
            function = getattr(module, name)
            if inspect.isroutine(function) or function is gpuarray.GPUArray:
                yield pytest.param(function, id=f"{module.__name__.split('.')[-1]}.{name}")
    for name in dir(gpuarray.GPUArray):
        # Skip methods that object also has, and methods that set attributes.
        if hasattr(object, name) and name not in ("__eq__", "__lt__", "__init__", "__format__"):
            continue
        if callable(getattr(gpuarray.GPUArray, name)):
            yield pytest.param(
                lambda *args, name=name, **kwargs: getattr(_array(), name)(*args, **kwargs),
                id=f"GPUArray.{name}",
            )


def _attempt(function, *args, **kwargs):
    """Returns the message of an allowed exception; other exceptions propagate."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            function(*args, **kwargs)
        except ALLOWED as error:
            return str(error)
        except NotImplementedError:
            pass
        except RuntimeError as error:
            if "called a second time" not in str(error):
                raise
    return "no exception"


@each_row("function", list(_callables()))
def test_wrong_arguments_end_in_an_exception(function):
    a_gpu = _array()
    for count in range(9):
        assert _attempt(function, *[a_gpu] * count)
        assert _attempt(function, *[None] * count)
    for value in WRONG:
        assert _attempt(function, value)
        for place in range(1, 4):
            arguments = [a_gpu] * 4
            arguments[place] = value
            assert _attempt(function, *arguments[: place + 1])
            assert _attempt(function, *arguments)
    assert _attempt(function, nonsense=1)
    assert _attempt(function, a_gpu, out=3)
    assert _attempt(function, a_gpu, stream="x", dtype=None)


def test_pairs_of_wrong_arguments():
    for first, second in itertools.product(WRONG, repeat=2):
        for make in (gpuarray.empty, gpuarray.zeros, gpuarray.GPUArray, gpuarray.full):
            assert _attempt(make, first, second)


NAMED = [
    (lambda: gpuarray.sum(np.zeros(3)), "a is of type ndarray; a GPUArray is needed.*to_gpu"),
    (lambda: gpuarray.dot(_array(), 3), "b is of type int; a GPUArray is needed"),
    (lambda: gpuarray.take(_array(), [0]), "indices is of type list"),
    (lambda: gpuarray.where(None, 2, 3), "criterion is of type NoneType"),
    (lambda: gpuarray.where(_array(), "x", 3), "then_ is of type str; a GPUArray or a number"),
    (lambda: gpuarray.minimum(_array(), "x"), "b is of type str"),
    (lambda: gpuarray.concatenate([np.zeros(3)]), r"arrays\[0\] is of type ndarray"),
    (lambda: gpuarray.stack(_array().sum()), "arrays is of type GPUArray; a sequence"),
    (lambda: gpuarray.transpose(3), "a is of type int"),
    (lambda: gpuarray.empty_like(3), "other_ary is of type int"),
    (lambda: gpuarray.subset_sum([0], _array()), "subset is of type list"),
    (lambda: gpuarray.maximum(1, 2), "a and b are numbers; a GPUArray is needed"),
    (lambda: cumath.exp(3.0), "array is of type float; a GPUArray is needed"),
    (lambda: cumath.fmod("x", 1), "arg is of type str"),
    (lambda: _array().mul_add(1, 2, 3), "other is of type int"),
    (lambda: _array() << "x", None),
]


@pytest.mark.parametrize(("call", "words"), NAMED)
def test_an_error_names_the_argument_its_type_and_what_is_allowed(call, words):
    with pytest.raises(TypeError, match=words):
        call()


def test_a_size_is_told_in_elements_of_the_dtype():
    for make in (gpuarray.empty, gpuarray.zeros, gpuarray.GPUArray):
        with pytest.raises(ValueError, match="4-byte elements"):
            make((2**40, 2**40), np.float32)


# ---- dtype=None ---------------------------------------------------------------------------------


def test_no_dtype_is_float64():
    a = np.array([1, 0, 2], np.int8)
    a_gpu = gpuarray.to_gpu(a)
    check(gpuarray.zeros(3, None), np.zeros(3, None))
    check(gpuarray.ones(3, dtype=None), np.ones(3, None))
    check(gpuarray.full(3, 2, None), np.full(3, 2, None))
    check(gpuarray.arange(3, dtype=None), np.arange(3, dtype=None))
    check(a_gpu.astype(None), a.astype(None))
    for make in (gpuarray.empty, gpuarray.GPUArray):
        assert make(3, None).dtype == np.empty(3, None).dtype
        assert make((2, 3), dtype=None, order="F").dtype == np.float64
    # With an array argument, None means the array's dtype.
    assert gpuarray.empty_like(a_gpu, None).dtype == np.empty_like(a, None).dtype
    check(gpuarray.zeros_like(a_gpu, dtype=None), np.zeros_like(a))
    check(a_gpu.view(None), a)


# ---- help ---------------------------------------------------------------------------------------


def test_the_class_says_which_arguments_it_takes():
    assert str(inspect.signature(gpuarray.GPUArray)) == (
        "(shape, dtype=None, allocator=None, base=None, gpudata=None, strides=None, order='C')"
    )


def test_every_attribute_and_method_is_documented():
    for cls in (gpuarray.GPUArray, ArrayFlags):
        for name, value in vars(cls).items():
            if name.startswith("_"):
                continue
            lines = (inspect.getdoc(value) or "").splitlines()
            assert lines, f"{cls.__name__}.{name}"
            assert re.match(r"[A-Z].*", lines[0]), f"{cls.__name__}.{name}: {lines[0]}"
            if not callable(value):
                continue
            # Every argument is described by name, here or in numpy's documentation.
            if re.search(r"as (:func:`numpy\.|numpy's method)", lines[0]):
                continue
            parameters = [p.lstrip("*") for p in inspect.signature(value).parameters]
            for parameter in parameters[1:]:
                if name not in ("set_async", "get_async", "conjugate"):
                    assert any(parameter in line for line in lines), f"{name}: {parameter}"
