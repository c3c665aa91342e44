"""dtypes and their C names, declarations of arguments, and strides: compyte and tools."""

from __future__ import annotations

import io

import numpy as np
import pytest

from pygpu import driver, gpuarray, tools
from pygpu.compyte import array, dtypes


@pytest.mark.parametrize(
    ("dtype", "name"),
    [
        (np.bool_, "bool"),
        (np.int8, "signed char"),
        (np.uint8, "unsigned char"),
        (np.int16, "short"),
        (np.uint16, "unsigned short"),
        (np.int32, "int"),
        (np.uint32, "unsigned"),
        (np.int64, "long"),
        (np.uint64, "unsigned long"),
        (np.float32, "float"),
        (np.float64, "double"),
        (np.complex64, "pycuda::complex<float>"),
        (np.complex128, "pycuda::complex<double>"),
        (gpuarray.vec.float4, "float4"),
        (gpuarray.vec.uchar2, "uchar2"),
    ],
)
def test_names_in_c(dtype, name):
    assert tools.dtype_to_ctype(dtype) == name
    assert tools.parse_c_arg(f"{name} x").dtype == dtype


def test_names_for_textures():
    names = [
        tools.dtype_to_ctype(code, with_fp_tex_hack=True)
        for code in ("f4", "f8", "c8", "c16", "i4")
    ]
    assert names == ["fp_tex_float", "fp_tex_double", "fp_tex_cfloat", "fp_tex_cdouble", "int"]


def test_dtypes_without_a_name():
    for dtype in (None, "S3", np.dtype([("unnamed", "i4")])):
        with pytest.raises(ValueError, match=r"unable to map|may not be None"):
            tools.dtype_to_ctype(dtype)


@pytest.mark.parametrize(
    ("text", "kind", "name", "dtype", "code"),
    [
        ("float *x", tools.VectorArg, "x", "f4", "P"),
        ("const float* __restrict__ x", tools.VectorArg, "x", "f4", "P"),
        ("volatile unsigned int y", tools.ScalarArg, "y", "u4", "I"),
        ("double a[3]", tools.VectorArg, "a", "f8", "P"),
        ("  signed   char c ", tools.ScalarArg, "c", "i1", "b"),
        ("pycuda::complex<double> *z", tools.VectorArg, "z", "c16", "P"),
        ("int constant", tools.ScalarArg, "constant", "i4", "i"),
        ("float4 v", tools.ScalarArg, "v", gpuarray.vec.float4, "16s"),
    ],
)
def test_declarations(text, kind, name, dtype, code):
    argument = tools.parse_c_arg(text)
    assert (type(argument), argument.name, argument.dtype) == (kind, name, np.dtype(dtype))
    assert tools.get_arg_type(text) == argument.struct_char == code
    star = "*" if kind is tools.VectorArg else ""
    assert argument.declarator() == f"{tools.dtype_to_ctype(dtype)} {star}{name}"


def test_what_declares_no_argument():
    for text in ("", "float *", "quaternion q", "float x, float y", "int (*f)()"):
        with pytest.raises(ValueError, match=r"couldn't parse|unknown type"):
            tools.parse_c_arg(text)


def test_registration():
    registry = dtypes.DTypeRegistry()
    dtypes.fill_registry_with_c99_stdint_types(registry)
    assert registry.dtype_to_ctype("u2") == "uint16_t"
    assert registry.get_or_register_dtype("int64_t") == np.int64
    pair = np.dtype([("a", "i4"), ("b", "f4")])
    assert registry.get_or_register_dtype(["pair", "struct pair"], pair) == pair
    assert registry.get_or_register_dtype("couple", pair) == pair
    assert registry.dtype_to_ctype(pair) == "pair"
    assert dtypes.parse_c_arg_backend("couple *x", lambda *x: x, lambda *x: x, registry) == (
        pair,
        "x",
    )
    # The first name is free and the second is taken, so neither is registered.
    with pytest.raises(RuntimeError, match="'float' already registered"):
        registry.get_or_register_dtype(["unknown", "float"], pair)
    for error in (dtypes.TypeNameNotKnown, KeyError, RuntimeError):
        with pytest.raises(error, match="unknown"):
            registry.get_or_register_dtype("unknown")


def test_the_old_registration():
    record = np.dtype([("old", "i4")])
    with pytest.warns(DeprecationWarning, match="get_or_register_dtype"):
        tools.register_dtype(record, "old_record")
    with (
        pytest.warns(DeprecationWarning, match="Use"),
        pytest.raises(RuntimeError, match="already registered"),
    ):
        tools.register_dtype(record, ["second_name"])
    with pytest.warns(DeprecationWarning, match="Use"):
        tools.register_dtype(record, ["second_name"], alias_ok=True)
    assert tools.dtype_to_ctype(record) == "old_record"
    assert tools.parse_c_arg("second_name r").dtype == record


def test_registries_of_other_dialects():
    opencl, c, c99 = (dtypes.DTypeRegistry() for _ in range(3))
    dtypes.fill_registry_with_opencl_c_types(opencl)
    dtypes.fill_registry_with_c_types(c, respect_windows=False, include_bool=False)
    dtypes.fill_registry_with_c99_complex_types(c99)
    assert [opencl.dtype_to_ctype(code) for code in ("i1", "u4", "u8")] == ["char", "uint", "ulong"]
    assert "bool" not in c.name_to_dtype
    assert c.get_or_register_dtype(["long", "long signed int"]) == np.int64
    assert c99.dtype_to_ctype(np.complex64) == "float complex"


@pytest.mark.parametrize("shape", [(), (3,), (2, 3), (4, 1, 5), (3, 0, 2)])
@pytest.mark.parametrize("dtype", ["u1", "f8"])
def test_strides(shape, dtype):
    for order, strides, is_contiguous in (
        ("C", array.c_contiguous_strides, array.is_c_contiguous_strides),
        ("F", array.f_contiguous_strides, array.is_f_contiguous_strides),
    ):
        there = np.empty(shape, dtype, order)
        size = there.dtype.itemsize
        if there.size:
            assert strides(size, shape) == there.strides
        assert is_contiguous(there.strides, size, shape)
        for other in (there, there[..., ::2] if shape else there, there.T):
            flags = array.ArrayFlags(other)
            assert flags.c_contiguous == other.flags.c_contiguous
            assert flags.f_contiguous == other.flags.f_contiguous
            assert flags.forc == other.flags.forc


def test_common_dtypes():
    a, b = np.ones(2, "f4"), np.ones(2, "f8")
    assert array.get_common_dtype(a, b, True) == np.float64
    assert array.get_common_dtype(a, b, False) == np.float32
    assert array.get_common_dtype(a, 1j, True) == np.complex64
    assert array.get_common_dtype(b, 1j, False) == np.complex64


class Region:
    def __init__(self, address, shape, strides):
        self.bytes, self.shape, self.strides = address, shape, strides


def test_overlap():
    a = Region(1000, (4, 3), (-40, 8))
    assert array.bound(a) == (1000 - 120, 1000 + 16)
    assert array.may_share_memory(a, a)
    assert array.may_share_memory(a, Region(880, (), ()))
    assert not array.may_share_memory(a, Region(1024, (2,), (8,)))
    assert not array.may_share_memory(a, object())


def test_the_pool_that_reports():
    report = io.StringIO()
    pool = tools.DebugMemoryPool(interactive=False, logfile=report)
    assert isinstance(pool, driver.DeviceMemoryPool)

    def allocate_here():
        return pool.allocate(1000)

    kept = allocate_here()
    a = gpuarray.zeros(10, np.float32, allocator=pool.allocate)
    assert (a + 1).get().tolist() == [1] * 10
    text = report.getvalue()
    assert "Allocation of size 1000" in text
    assert "allocate_here" in text
    assert "(1000 bytes): 1x" in text
    assert sorted(size for size, _ in pool.blocks.values())[-1] == 1000
    kept.free()
    assert pool.active_blocks >= 1


def test_the_pool_that_asks(monkeypatch):
    answers = iter(["", "where it begins", "", ""])
    monkeypatch.setattr("builtins.input", lambda prompt: next(answers))
    report = io.StringIO()
    pool = tools.DebugMemoryPool(logfile=report)
    for _ in range(2):
        pool.allocate(8)
    # The program asks for the name once, after a traceback, and waits for Enter twice.
    assert report.getvalue().count("at: where it begins") == 2
    assert next(answers, "none left") == "none left"
