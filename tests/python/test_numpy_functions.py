"""numpy's own functions given a GPUArray: refused in words, or right without the elements."""

from __future__ import annotations

import inspect
import warnings

import numpy as np
import pytest
from pairs import check

from pygpu import gpuarray

# They need shape and dtype only, so they answer.
WITHOUT_ELEMENTS = {
    "can_cast",
    "common_type",
    "iscomplexobj",
    "isrealobj",
    "ndim",
    "result_type",
    "shape",
    "size",
}
# They look at the object, not at an array in it.
OF_ANY_OBJECT = {
    "isdtype",
    "isfortran",  # reads `a.flags`
    "isscalar",
    "issubdtype",
    "iterable",
    "mintypecode",
    "typename",
}
# They write text, change numpy's settings or wait for a program; one is exchange by its own name.
NOT_OF_ARRAYS = {
    "from_dlpack",
    "get_include",
    "info",
    "printoptions",
    "set_printoptions",
    "setbufsize",
    "seterr",
    "seterrcall",
    "show_config",
    "show_runtime",
    "test",
}
# Arrays are tried in so many of the first places.
PLACES = 4


def _functions():
    for module in (np, np.linalg, np.fft, np.char, np.lib.scimath):
        for name in sorted(getattr(module, "__all__", dir(module))):
            if name.startswith("_") or name in NOT_OF_ARRAYS:
                continue
            with warnings.catch_warnings():
                # numpy 2.5 warns where a name that goes is only looked at.
                warnings.simplefilter("ignore", DeprecationWarning)
                function = getattr(module, name, None)
            if callable(function) and not inspect.isclass(function):
                yield pytest.param(function, name, id=f"{module.__name__}.{name}")


def _calls(function):
    """The function called with an array in each of its first places, numbers in the others."""
    if isinstance(function, np.ufunc):
        counts = range(function.nin, function.nin + 1)
    else:
        counts = range(1, PLACES + 1)
    for count in counts:
        for place in range(count):
            for shape in ((3,), (2, 2), ()):
                arguments = [np.ones(3)] * count
                arguments[place] = gpuarray.zeros(shape, np.float32)
                yield arguments
    yield [[gpuarray.zeros(3, np.float32), gpuarray.zeros(3, np.float32)]]
    yield [gpuarray.zeros((2, 2), np.int32)] * (counts[-1] if counts else 1)


def _is_a_setting(function, arguments, result):
    """Whether the array stood for its dtype, or for Python's numbers: a flag, a count, bounds."""
    for meaning in (lambda a: a.dtype, lambda a: a.item(), lambda a: a.tolist()):
        try:
            plain = [meaning(a) if isinstance(a, gpuarray.GPUArray) else a for a in arguments]
            # The elements of `empty` are not said.
            if "empty" in function.__name__ or repr(result) == repr(function(*plain)):
                return True
        except (TypeError, ValueError):
            continue
    return False


@pytest.mark.parametrize(("function", "name"), list(_functions()))
def test_a_numpy_function_refuses_a_device_array_in_every_place(
    function, name, tmp_path, monkeypatch
):
    if name in WITHOUT_ELEMENTS | OF_ANY_OBJECT:
        pytest.skip("has an answer without the elements, tested below")
    # Nothing that a function writes goes anywhere else.
    monkeypatch.chdir(tmp_path)
    warnings.simplefilter("ignore")  # pytest restores the filters after each test
    refused = 0
    for arguments in _calls(function):
        try:
            result = function(*arguments)
        except TypeError:
            refused += 1
            continue
        except (ValueError, AttributeError, OSError, IndexError, np.linalg.LinAlgError):
            # Refused for another argument before the array was looked at.
            continue
        assert _is_a_setting(function, arguments, result), (
            f"np.{name}{tuple(map(type, arguments))} returns {result!r}"
        )
    assert refused or not inspect.signature(function).parameters, "no call was refused with words"


@pytest.mark.parametrize("method", ["reduce", "accumulate", "outer", "at", "reduceat"])
@pytest.mark.parametrize("ufunc", [np.add, np.multiply, np.maximum, np.logical_or])
def test_methods_of_ufuncs_refuse_a_device_array(ufunc, method):
    a_gpu = gpuarray.zeros(3)
    arguments = {"at": (a_gpu, [0], 1), "reduceat": (a_gpu, [0]), "outer": (a_gpu, np.ones(2))}
    with pytest.raises(TypeError):
        getattr(ufunc, method)(*arguments.get(method, (a_gpu,)))


def test_a_refusal_says_what_to_call():
    a_gpu = gpuarray.zeros((2, 3))
    for function, words in (
        (np.sum, "gpuarray.sum"),
        (np.dot, "gpuarray.dot"),
        (np.concatenate, "gpuarray.concatenate"),
        (np.array_equal, r"\(a == b\).all"),
        (np.ravel, r"a.ravel\(\)"),
        (np.mean, r"a.get\(\)"),
        (np.asarray, r"a.get\(\)"),
        (np.exp, "cumath"),
        (np.add, r"a \+ b"),
    ):
        arguments = ([a_gpu, a_gpu],) if function is np.concatenate else (a_gpu, a_gpu)
        with pytest.raises(TypeError, match=words):
            function(*arguments[: 1 if function in (np.asarray, np.exp, np.mean) else 2])


def test_a_numpy_array_takes_no_device_array():
    a_gpu, a = gpuarray.zeros(3), np.ones(3)
    with pytest.raises(TypeError, match="get"):
        a[...] = a_gpu
    with pytest.raises(TypeError, match="to_gpu"):
        a += a_gpu
    with pytest.raises(TypeError, match="get"):
        np.array([a_gpu, a_gpu])
    with pytest.raises(TypeError):
        np.add(a, a, out=a_gpu)
    with pytest.raises(TypeError):
        np.sum(a, out=a_gpu)
    with pytest.raises(TypeError):
        np.zeros(3, like=a_gpu)
    assert (a == 1).all()


def test_shape_and_dtype_are_answered():
    for a in (np.zeros((2, 3), "c8"), np.ones((), "i1"), np.zeros((0, 2), "f4")):
        a_gpu = gpuarray.to_gpu(a)
        assert (np.shape(a_gpu), np.ndim(a_gpu), np.size(a_gpu)) == (a.shape, a.ndim, a.size)
        assert np.result_type(a_gpu, np.float16) == np.result_type(a, np.float16)
        assert np.result_type(a_gpu, a_gpu) == a.dtype
        assert np.can_cast(a_gpu, np.float64) == np.can_cast(a.dtype, np.float64)
        assert np.iscomplexobj(a_gpu) == np.iscomplexobj(a)
        assert np.isrealobj(a_gpu) == np.isrealobj(a)
        assert np.common_type(a_gpu) == np.common_type(a)
    assert np.size(gpuarray.zeros((2, 3)), 1) == 3


def test_objects_with_a_protocol_of_their_own_are_asked():
    class Other:
        def __array_function__(self, function, types, args, kwargs):
            return "mine"

    assert np.concatenate([gpuarray.zeros(3), Other()]) == "mine"


SCALARS = [np.float32(3), np.int64(3), np.uint8(3), np.complex64(2j), np.bool_(True), np.float16(3)]


@pytest.mark.parametrize("scalar", SCALARS)
def test_operators_of_numpys_scalars_work_on_the_device(scalar):
    a = np.arange(1, 7, dtype=np.float32).reshape(2, 3)
    a_gpu = gpuarray.to_gpu(a)
    check(scalar * a_gpu, scalar * a, rtol=1e-6)
    check(scalar + a_gpu, scalar + a, rtol=1e-6)
    check(scalar - a_gpu, scalar - a, rtol=1e-6)
    check(scalar / a_gpu, scalar / a, rtol=1e-6)
    check(scalar == a_gpu, scalar == a)
    if not np.iscomplexobj(scalar):
        check(scalar < a_gpu, scalar < a)
        for got, expected in zip(divmod(scalar, a_gpu), divmod(scalar, a), strict=True):
            check(got, expected)
