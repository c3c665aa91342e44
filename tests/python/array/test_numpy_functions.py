"""numpy's functions called with a GPUArray run on the device, or raise a clear error."""

from __future__ import annotations

import inspect
import warnings

import numpy as np
import pytest
from pairs import check
from tables import each_row

from pygpu import gpuarray

# These functions look at the object, not at its elements.
OF_ANY_OBJECT = {
    "isdtype",
    "isfortran",  # reads `a.flags`
    "isscalar",
    "issubdtype",
    "iterable",
    "mintypecode",
    "typename",
}
# These write text, change numpy's settings or wait for a program; `from_dlpack` is exchange.
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
# These return uninitialised elements, vectors that are unique up to a factor, or any order.
UNDEFINED = {"empty", "empty_like", "svd", "unique_values"}
# These accept calls that numpy refuses: a single bound, or an array in place of a dtype.
LENIENT = {"clip", "full_like"}
# The number of leading arguments for which arrays are tried.
PLACES = 4


def _functions():
    for module in (np, np.linalg, np.fft, np.char, np.lib.scimath):
        for name in sorted(getattr(module, "__all__", dir(module))):
            if name.startswith("_") or name in NOT_OF_ARRAYS:
                continue
            with warnings.catch_warnings():
                # numpy 2.5 already warns when a deprecated name is accessed.
                warnings.simplefilter("ignore", DeprecationWarning)
                function = getattr(module, name, None)
            if callable(function) and not inspect.isclass(function):
                yield pytest.param(function, name, id=f"{module.__name__}.{name}")


def _calls(function):
    """Yields arguments with a numpy array at each of the first positions, and flags for those
    that are to be device arrays."""
    if isinstance(function, np.ufunc):
        counts = range(function.nin, function.nin + 1)
    else:
        counts = range(1, PLACES + 1)
    for count in counts:
        for place in range(count):
            for shape in ((3,), (2, 2), ()):
                arguments = [np.ones(3)] * count
                arguments[place] = np.full(shape, 2, np.float32)
                yield arguments, {place}
    two = np.arange(1, 5, dtype=np.int32).reshape(2, 2)
    for count in range(1, PLACES):
        yield [two] * count, set(range(count))
        yield [two, *[1] * (count - 1)], {0}
    yield [[np.zeros(3, np.float32), np.ones(3, np.float32)]], {0}
    yield [two, (4,)], {0}


def _copy(value):
    if isinstance(value, list):
        return [_copy(item) for item in value]
    return value.copy() if isinstance(value, np.ndarray) else value


def _on_device(value):
    if isinstance(value, list):
        return [_on_device(item) for item in value]
    return gpuarray.to_gpu(value) if isinstance(value, np.ndarray) else value


def _on_host(value):
    if isinstance(value, tuple | list):
        return (list if isinstance(value, list) else tuple)(map(_on_host, value))
    return value.get() if isinstance(value, gpuarray.GPUArray) else value


def _has_device(value):
    if isinstance(value, tuple | list):
        return any(map(_has_device, value))
    return isinstance(value, gpuarray.GPUArray)


def _agrees(name, result, expected):
    """Returns true if the device's result, or its answer without elements, agrees with numpy's."""
    if isinstance(expected, tuple | list):
        same = isinstance(result, tuple | list) and len(result) == len(expected)
        return same and all(_agrees(name, *pair) for pair in zip(result, expected, strict=True))
    if not _has_device(result):
        return type(result) is type(expected) and repr(result) == repr(expected)
    result, expected = result.get(), np.asarray(expected)
    if result.dtype != expected.dtype or result.shape != expected.shape:
        return False
    return name in UNDEFINED or np.allclose(result, expected, 1e-5, 1e-6, equal_nan=True)


def _is_a_setting(function, arguments, result):
    """Returns true if the array was used only for its dtype or as Python numbers (flag, bounds)."""
    ways = [
        (meaning, kept)
        for meaning in (lambda a: a.dtype, lambda a: a.item(), lambda a: a.tolist())
        for kept in (0, 1)
    ]
    for meaning, kept in ways:
        try:
            plain = [_on_host(a) for a in arguments[:kept]]
            is_array = [isinstance(a, gpuarray.GPUArray) for a in arguments]
            pairs = zip(arguments[kept:], is_array[kept:], strict=True)
            plain += [meaning(a) if device else a for a, device in pairs]
            # The elements of `empty` are undefined.
            if "empty" in function.__name__ or repr(_on_host(result)) == repr(function(*plain)):
                return True
        except (TypeError, ValueError, IndexError, AttributeError):
            continue
    return False


@each_row(("function", "name"), list(_functions()))
def test_a_numpy_function_works_on_the_device_or_refuses_in_words(
    function, name, tmp_path, monkeypatch
):
    if name in OF_ANY_OBJECT:
        pytest.skip("looks at the object, not at an array")
    # Files that a function writes stay in this folder.
    monkeypatch.chdir(tmp_path)
    warnings.simplefilter("ignore")  # pytest restores the filters after each test
    answered = refused = 0
    for host, places in _calls(function):
        device = [
            _on_device(value) if place in places else value for place, value in enumerate(host)
        ]
        try:
            result = function(*device)
        except TypeError:
            refused += 1
            continue
        except (ValueError, AttributeError, OSError, IndexError, np.linalg.LinAlgError):
            # The call was refused for another argument before it looked at the array.
            continue
        try:
            expected = function(*map(_copy, host))
        except Exception:
            expected = None
        answered += 1
        if expected is None and name in LENIENT:
            continue
        assert (expected is not None and _agrees(name, result, expected)) or _is_a_setting(
            function, device, result
        ), f"np.{name}{host} returns {_on_host(result)!r}, not {expected!r}"
    assert answered or refused or not inspect.signature(function).parameters


ON_DEVICE = [
    "abs",
    "absolute",
    "add",
    "all",
    "allclose",
    "amax",
    "amin",
    "any",
    "arccos",
    "arccosh",
    "arcsin",
    "arcsinh",
    "arctan",
    "arctan2",
    "arctanh",
    "argmax",
    "argmin",
    "argsort",
    "around",
    "array_equal",
    "array_split",
    "bitwise_and",
    "bitwise_or",
    "bitwise_xor",
    "broadcast_arrays",
    "broadcast_to",
    "cbrt",
    "ceil",
    "clip",
    "concatenate",
    "conj",
    "conjugate",
    "copy",
    "copysign",
    "cos",
    "cosh",
    "count_nonzero",
    "cumprod",
    "cumsum",
    "deg2rad",
    "degrees",
    "diagonal",
    "diff",
    "divide",
    "divmod",
    "empty_like",
    "equal",
    "exp",
    "exp2",
    "expand_dims",
    "expm1",
    "flatnonzero",
    "flip",
    "fliplr",
    "flipud",
    "floor",
    "floor_divide",
    "fmax",
    "fmin",
    "fmod",
    "full_like",
    "gcd",
    "greater",
    "greater_equal",
    "heaviside",
    "hstack",
    "hypot",
    "imag",
    "invert",
    "isclose",
    "isfinite",
    "isinf",
    "isnan",
    "lcm",
    "ldexp",
    "left_shift",
    "less",
    "less_equal",
    "log",
    "log10",
    "log1p",
    "log2",
    "logaddexp",
    "logaddexp2",
    "logical_and",
    "logical_not",
    "logical_or",
    "logical_xor",
    "max",
    "maximum",
    "mean",
    "min",
    "minimum",
    "mod",
    "modf",
    "moveaxis",
    "multiply",
    "nan_to_num",
    "nanprod",
    "nansum",
    "negative",
    "nextafter",
    "nonzero",
    "not_equal",
    "ones_like",
    "positive",
    "power",
    "prod",
    "ptp",
    "rad2deg",
    "radians",
    "ravel",
    "real",
    "reciprocal",
    "remainder",
    "repeat",
    "reshape",
    "right_shift",
    "rint",
    "roll",
    "round",
    "sign",
    "signbit",
    "sin",
    "sinh",
    "sort",
    "split",
    "sqrt",
    "square",
    "squeeze",
    "stack",
    "std",
    "subtract",
    "sum",
    "swapaxes",
    "tan",
    "tanh",
    "tile",
    "trace",
    "transpose",
    "tril",
    "triu",
    "true_divide",
    "trunc",
    "var",
    "vstack",
    "where",
    "zeros_like",
]


@each_row("name", ON_DEVICE)
def test_a_function_of_numpy_that_works_on_the_device(name):
    """Each function works for some arguments, with numpy's values and dtypes."""
    function = getattr(np, name)
    two = np.arange(1, 5, dtype=np.int32).reshape(2, 2)
    half = two.astype(np.float32) / 8
    ways = [
        arguments
        for a in (two, half)
        for arguments in ((a,), (a, a), (a, 1), (a, 0, 1), ([a, a],), (a > 1, a, a), (a, (1, 4)))
    ] + [(half[:1], (2, 2))]
    found = 0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for arguments in ways:
            try:
                expected = function(*map(_copy, arguments))
                result = function(*map(_on_device, arguments))
            except (TypeError, ValueError, ZeroDivisionError):
                continue
            assert _agrees(name, result, expected), (arguments, _on_host(result), expected)
            found += 1
    assert found


@pytest.mark.parametrize(
    "call",
    [
        lambda a: np.sum(a),
        lambda a: np.sum(a, None),
        lambda a: np.sum(a=a),
        lambda a: np.sum(a, keepdims=True),
        lambda a: np.sum(a, None, "i2"),
        lambda a: np.sum(axis=1, a=a),
    ],
)
def test_sums_have_numpys_dtype_however_they_are_called(call):
    a = np.full((2, 3), 100, np.int8)
    check(call(gpuarray.to_gpu(a)), call(a))


def test_where_of_a_condition_alone_names_the_true_elements():
    a = np.arange(6).reshape(2, 3) % 4
    for found, expected in zip(np.where(gpuarray.to_gpu(a) > 1), np.where(a > 1), strict=True):
        check(found, expected)


def test_keywords_of_numpys_functions_are_taken_or_refused_by_name():
    a = np.arange(12, dtype=np.int16).reshape(3, 4)
    a_gpu = gpuarray.to_gpu(a)
    check(np.sum(a_gpu), np.sum(a))
    check(np.sum(a_gpu, axis=(0, -1), keepdims=True), np.sum(a, axis=(0, -1), keepdims=True))
    check(np.mean(a_gpu, 0, dtype="f4"), np.mean(a, 0, dtype="f4"))
    check(np.var(a_gpu, axis=1, ddof=1), np.var(a, axis=1, ddof=1), rtol=1e-12)
    out = gpuarray.empty(4, np.int64)
    assert np.sum(a_gpu, axis=0, out=out) is out
    check(out, a.sum(0))
    check(np.sum(a_gpu, where=a_gpu > 3, initial=5), np.sum(a, where=a > 3, initial=5))
    check(np.max(a_gpu, axis=1, initial=9), np.max(a, axis=1, initial=9))
    check(np.min(a_gpu[:0], axis=0, initial=3), np.min(a[:0], axis=0, initial=3))
    small = gpuarray.empty((3, 4), np.int8)
    assert np.multiply(a_gpu, 30, out=small, casting="unsafe") is small
    check(small, np.multiply(a, 30).astype(np.int8))
    with pytest.raises(ValueError, match="initial"):
        np.max(a_gpu, where=a_gpu > 3)
    with pytest.raises(TypeError, match="safe"):
        np.add(a_gpu, 1, out=small, casting="safe")
    with pytest.raises(TypeError, match="casting"):
        np.add(a_gpu, 1, casting="no")


def test_universal_functions_write_to_an_output_and_under_a_mask():
    a = np.arange(6, dtype=np.float32).reshape(2, 3)
    a_gpu = gpuarray.to_gpu(a)
    out = gpuarray.zeros((2, 3), np.float64)
    assert np.multiply(a_gpu, 2, out=out) is out
    check(out, (a * 2).astype("f8"))
    result = np.full((2, 3), -1, np.float32)
    np.add(a, 1, out=result, where=a > 2)
    out = gpuarray.to_gpu(np.full((2, 3), -1, np.float32))
    np.add(a_gpu, 1, out=out, where=a_gpu > 2)
    check(out, result)
    with pytest.raises(TypeError, match="where"):
        np.add(a_gpu, 1, where=a > 2)
    # By numpy's "same_kind" rule uint64 can be cast to int8, although their common dtype is
    # neither.
    result, mask = np.full((2, 3), -1, np.int8), np.array([True, False, True])
    out = gpuarray.to_gpu(result)
    whole, mask_gpu = a.astype(np.uint64), gpuarray.to_gpu(mask)
    whole_gpu = gpuarray.to_gpu(whole)
    np.add(whole, whole, out=result, where=mask)
    np.add(whole_gpu, whole_gpu, out=out, where=mask_gpu)
    check(out, result)
    with pytest.raises(TypeError, match="same_kind"):
        np.add(whole_gpu, 0.5, out=out, where=mask_gpu)


@pytest.mark.parametrize("ufunc", [np.add, np.multiply, np.maximum, np.minimum])
@pytest.mark.parametrize("dtype", ["?", "i1", "u2", "f4"])
def test_universal_functions_reduce_and_accumulate(ufunc, dtype):
    a = (np.arange(24).reshape(2, 3, 4) % 3).astype(dtype)
    a_gpu = gpuarray.to_gpu(a)
    check(ufunc.reduce(a_gpu), ufunc.reduce(a))
    check(ufunc.reduce(a_gpu, axis=(0, 2)), ufunc.reduce(a, axis=(0, 2)))
    check(ufunc.reduce(a_gpu, axis=None), ufunc.reduce(a, axis=None))
    check(ufunc.reduce(a_gpu, axis=1, keepdims=True), ufunc.reduce(a, axis=1, keepdims=True))
    if dtype != "?":
        check(ufunc.accumulate(a_gpu, axis=1), ufunc.accumulate(a, axis=1))
    check(ufunc.outer(a_gpu, a_gpu[0, 0]), ufunc.outer(a, a[0, 0]))
    check(ufunc.reduce(a_gpu, initial=1), ufunc.reduce(a, initial=1))


AT = [np.add, np.subtract, np.multiply, np.divide, np.maximum, np.fmin, np.logical_or]
AT += [np.bitwise_xor, np.logical_and]


@pytest.mark.parametrize("ufunc", AT)
@pytest.mark.parametrize("dtype", ["?", "i1", "u2", "i8", "f4", "c16"])
@pytest.mark.parametrize(
    ("indices", "shape"),
    [
        ([0, 2, 0, 0, -1], (5, 4)),
        (([0, 1, 0, 1, 0, 0], [3, 3, 3, 2, 3, 0]), (6,)),
        (slice(1, 3), (4,)),
        ((Ellipsis, [1, 1, 1]), (3, 3)),
        ([], (4,)),
        ([[0, 0], [2, 0]], (2, 2, 4)),
    ],
)
def test_at_applies_a_function_each_time_that_an_index_occurs(ufunc, dtype, indices, shape):
    random = np.random.default_rng(3)
    a = random.integers(0, 5, (3, 4)).astype(dtype)
    for b in (random.integers(1, 3, shape).astype(dtype), True if dtype == "?" else 2):
        a_gpu, expected = gpuarray.to_gpu(a), a.copy()
        b_gpu = gpuarray.to_gpu(b) if isinstance(b, np.ndarray) else b
        try:
            ufunc.at(expected, indices, b)
            if ufunc is np.divide and a.dtype.kind in "biu":
                raise TypeError("numpy truncates each quotient")
        except TypeError:
            if indices != []:
                with pytest.raises(TypeError):
                    ufunc.at(a_gpu, indices, b_gpu)
            continue
        ufunc.at(a_gpu, indices, b_gpu)
        check(a_gpu, expected, 1e-6 if a.dtype.kind in "fc" else 0)


@pytest.mark.parametrize("dtype", ["i1", "u1", "?", "f2"])
def test_at_adds_narrower_values_in_the_arrays_dtype(dtype):
    expected, b = (
        np.zeros(2, "f4" if dtype == "f2" else "i8"),
        np.array([100, 100, 100]).astype(dtype),
    )
    a_gpu = gpuarray.to_gpu(expected)
    np.add.at(expected, [0, 0, 0], b)
    np.add.at(a_gpu, [0, 0, 0], gpuarray.to_gpu(b))
    check(a_gpu, expected)


def test_at_holds_only_results_of_the_arrays_kind():
    a_gpu = gpuarray.zeros(3, np.int32)
    with pytest.raises(TypeError, match="float64"):
        np.add.at(a_gpu, [0], 1.5)
    with pytest.raises(OverflowError):
        np.add.at(a_gpu, [0], 2**40)
    with pytest.raises(TypeError, match="hypot"):
        np.hypot.at(a_gpu, [0], 1)


@pytest.mark.parametrize("ufunc", [np.add, np.multiply, np.maximum, np.logical_or])
def test_methods_of_ufuncs_that_are_refused(ufunc):
    a_gpu = gpuarray.zeros(3)
    with pytest.raises(TypeError):
        ufunc.reduceat(a_gpu, [0])
    with pytest.raises(TypeError, match="reduce"):
        np.arctan2.reduce(a_gpu)


def test_a_refusal_says_what_to_call():
    a_gpu = gpuarray.zeros((2, 3))
    for function, words in (
        (np.linalg.eigh, r"a.get\(\)"),
        (np.asarray, r"a.get\(\)"),
        (np.array_repr, r"repr\(a\)"),
        (np.fft.fft, r"a.get\(\)"),
    ):
        with pytest.raises(TypeError, match=words):
            function(a_gpu)
    with pytest.raises(TypeError, match="to_gpu"):
        np.add(a_gpu, np.ones(3))
    with pytest.raises(TypeError, match="to_gpu"):
        np.ones(3) - a_gpu


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
    assert (a == 1).all()


def test_numpy_makes_arrays_like_a_device_array():
    a_gpu = gpuarray.zeros(3)
    check(np.zeros(3, like=a_gpu), np.zeros(3))
    check(np.full((2, 2), 7, dtype="f4", like=a_gpu), np.full((2, 2), 7, "f4"))
    check(np.eye(3, k=1, like=a_gpu), np.eye(3, k=1))


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
