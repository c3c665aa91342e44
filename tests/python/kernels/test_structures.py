"""A numpy record has its fields at the offsets of the corresponding C struct."""

from __future__ import annotations

import numpy as np
import pytest

from pygpu import driver, gpuarray, tools
from pygpu.compiler import SourceModule

# The offsets and the size follow the C ABI: each field is at a multiple of its alignment, which is
# its size, and the total is rounded up to the largest alignment.
RECORDS = [
    ("plain", [("a", "i4"), ("b", "f4")], [0, 4], 8),
    ("padded", [("flag", "i1"), ("value", "f8"), ("count", "u2")], [0, 8, 16], 24),
    ("packed", [("a", "u1"), ("b", "u1"), ("c", "i2"), ("d", "i4")], [0, 1, 2, 4], 8),
    ("with_array", [("size", "u1"), ("items", "i2", (3,)), ("grid", "f4", (2, 2))], [0, 2, 8], 24),
    ("long_integers", [("a", "?"), ("b", "i8"), ("c", "i1"), ("d", "u8")], [0, 8, 16, 24], 32),
]


@pytest.mark.parametrize(("name", "fields", "offsets", "size"), RECORDS, ids=lambda x: str(x)[:12])
def test_fields_lie_where_the_device_has_them(name, fields, offsets, size):
    dtype, declaration = tools.match_dtype_to_c_struct(None, name, np.dtype(fields))
    assert [dtype.fields[field[0]][1] for field in fields] == offsets
    assert dtype.itemsize == size
    tools.get_or_register_dtype(name, dtype)
    assert tools.dtype_to_ctype(dtype) == name
    # The kernel copies each number of each field by the field's name.
    copies = ""
    for field in fields:
        ctype, count = tools.dtype_to_ctype(field[1]), int(np.prod(field[2:] or [1]))
        copies += (
            f"for (int k = 0; k < {count}; k++) "
            f"(({ctype} *) &to[i].{field[0]})[k] = ((const {ctype} *) &from[i].{field[0]})[k];\n"
        )
    module = SourceModule(
        f"{declaration} __global__ void copy(const {name} *from, {name} *to, int n)"
        f"{{ int i = threadIdx.x; if (i < n) {{ {copies} }} }}"
    )
    rng = np.random.default_rng(7)
    expected = np.zeros(20, dtype)
    for field in fields:
        part = expected[field[0]]
        part[...] = rng.integers(0, 2 if field[1] == "?" else 99, part.shape)
    found = gpuarray.zeros(20, dtype)
    module.get_function("copy")(
        gpuarray.to_gpu(expected), found, np.int32(20), block=(32, 1, 1), grid=(1, 1)
    )
    for field in fields:
        np.testing.assert_array_equal(found.get()[field[0]], expected[field[0]])


def test_a_structure_in_a_structure():
    inner, first = tools.match_dtype_to_c_struct(
        None, "inner_part", np.dtype([("a", "i1"), ("b", "f8")])
    )
    tools.get_or_register_dtype("inner_part", inner)
    outer, second = tools.match_dtype_to_c_struct(
        None,
        "outer_part",
        np.dtype([("n", "i1"), ("parts", inner, (2,)), ("v", gpuarray.vec.float4)]),
    )
    # Two inner structs of 16 bytes at offset 8; a float4 is aligned to 16 bytes.
    assert [outer.fields[name][1] for name in ("n", "parts", "v")] == [0, 8, 48]
    assert outer.itemsize == 64
    # Each declaration contains one struct, because programs concatenate all declarations before
    # their kernels.
    assert (first.count("typedef"), second.count("typedef")) == (1, 1)
    module = SourceModule(
        first + second + "__global__ void fill(outer_part *p, outer_part by_value) "
        "{ p->parts[1].b = by_value.parts[1].b * 2; p->v.w = by_value.v.w + 1; p->n = by_value.n; }"
    )
    value = np.zeros((), outer)
    value["n"], value["parts"]["b"], value["v"]["w"] = 3, [1.5, 2.5], 7
    result = np.zeros((), outer)
    module.get_function("fill")(driver.InOut(result), value, block=(1, 1, 1), grid=(1, 1))
    assert (result["n"], result["parts"][1]["b"], result["v"]["w"]) == (3, 5, 8)
    assert (result["parts"][0]["b"], result["v"]["x"]) == (0, 0)


def test_what_is_no_structure_is_refused():
    for name, dtype, error in (
        ("x", np.float32, TypeError),
        ("no name", [("a", "i4")], ValueError),
        ("x", [("no name", "i4")], ValueError),
        ("x", [("a", "S3")], ValueError),
        ("x", [("a", [("b", "i4"), ("c", "i1")])], ValueError),
    ):
        with pytest.raises(error):
            tools.match_dtype_to_c_struct(None, name, dtype)


@pytest.mark.parametrize("alignment", [16, 32, 64, 128])
def test_records_are_passed_at_any_alignment(alignment):
    module = SourceModule(
        f"""struct __align__({alignment}) Eight {{ double at[8]; }};
        __global__ void k(Eight *to, Eight first, char apart, Eight last) {{
            Eight sum;
            for (int i = 0; i < 8; i++) sum.at[i] = first.at[i] + last.at[i];
            to[threadIdx.x] = sum;
        }}"""
    )
    count = max(64, alignment) // 8
    record = np.dtype([("at", "f8", (8,)), ("rest", f"V{count * 8 - 64}")])
    first, last = np.zeros(2, record)
    first["at"], last["at"] = np.arange(8), np.arange(8) * 10
    to = gpuarray.zeros(3 * count, np.float64)
    function = module.get_function("k")
    function(to, first, np.int8(1), last, block=(3, 1, 1), grid=(1, 1))
    expected = np.tile(np.arange(8) * 11.0, (3, 1))
    np.testing.assert_array_equal(to.get().reshape(3, count)[:, :8], expected)
