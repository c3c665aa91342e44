"""Attributes behind structures, which NVRTC and clang read otherwise than nvcc."""

from __future__ import annotations

import ctypes
import re

import numpy as np
from tables import each_row

from pygpu import gpuarray
from pygpu._compile.c_text import with_attributes_in_front
from pygpu.compiler import SourceModule

# A text, and what becomes of it; the same where it says nothing else.
TEXTS = [
    (
        "typedef struct { int a; } __align__(16) pair;",
        "typedef struct __align__(16) { int a; } pair;",
    ),
    (
        "struct pair { int a; } __attribute__((packed)) __align__(8);",
        "struct __attribute__((packed)) __align__(8) pair { int a; } ;",
    ),
    (
        "#define ALIGN(n) __align__(n)\n#define WIDE ALIGN(32)\ntypedef union u { int a; } WIDE v;",
        "#define ALIGN(n) __align__(n)\n#define WIDE ALIGN(32)\ntypedef union WIDE u { int a; } v;",
    ),
    (
        "typedef struct { struct { int a; } __align__(8) b; /* } */ } __align__(16) c;",
        "typedef struct __align__(16) { struct __align__(8) { int a; } b; /* } */ } c;",
    ),
    (
        "template <class T> struct s : base<T> { T a; } __align__(8);",
        "template <class T> struct __align__(8) s : base<T> { T a; } ;",
    ),
    ("struct __align__(8) pair { int a; };", None),
    ("__device__ int f() { return 1; }\n__attribute__((noinline)) __device__ int g();", None),
    ("// struct { int a; } __align__(8) b;", None),
    ("int a[] = {1, 2}; __align__(8) int b;", None),
    ("} __align__(8) x; {", None),
    ("struct { int a; } b; // __align__", None),
    ("struct s { int a; } __constant__ c;", None),
]
OF_VARIABLES = [
    ("struct s { int a; } __constant__ c;", "__constant__ struct s { int a; } c;"),
    (
        "static struct { int a; } __device__ d = {7};",
        "static __device__ struct { int a; } d = {7};",
    ),
    (
        "#define FAST __constant__\nunion u { int a; } FAST c[3];",
        "#define FAST __constant__\nFAST union u { int a; } c[3];",
    ),
    (
        "__global__ void k() { struct : base { int a; } __shared__ s; }",
        "__global__ void k() { __shared__ struct : base { int a; } s; }",
    ),
    ("struct s { int a; __device__ int f() { return a; } __device__ int g(); };", None),
    ("struct s { int a; }; __constant__ s c;", None),
    ("template <class T> __global__ void g(T *p) { } __device__ int v;", None),
    ("namespace n { int a; } __device__ int v;", None),
    ("typedef struct { int a; } __align__(16) pair;", None),
]


@each_row(
    ("backend", "text", "expected"),
    [("cuda", *it) for it in TEXTS] + [("hip", *it) for it in OF_VARIABLES],
)
def test_attributes_come_first(backend, text, expected):
    found = with_attributes_in_front(text, backend)

    def words(text: str) -> list[str]:
        return re.findall(r"\w+|\S", text)

    assert words(found) == words(text if expected is None else expected)
    assert found.count("\n") == text.count("\n")


def test_lines_keep_their_numbers():
    text = "typedef struct\n{\n  int a;\n}\n__attribute__((\n  aligned(16)))\nb;\nint c;"
    found = with_attributes_in_front(text, "cuda")
    assert found.splitlines()[6:] == ["b;", "int c;"]
    assert found.splitlines()[0].split() == [
        "typedef",
        "struct",
        "__attribute__((",
        "aligned(16)))",
    ]


def test_many_braces_take_no_time():
    text = "struct { int a; } __align__(8) b;\n" * 2000
    assert with_attributes_in_front(text, "cuda").count("struct __align__(8) {") == 2000


def test_members_lie_where_other_compilers_put_them():
    module = SourceModule("""
        #define ALIGNED(n) __align__(n)
        typedef struct { int a; short b; } ALIGNED(32) wide;
        typedef struct { char a; int b; } __attribute__((packed)) tight;
        typedef struct { char a; wide b; tight c; char d; } outer;
        __global__ void places(int *out) {
            outer v;
            out[0] = sizeof(wide); out[1] = sizeof(tight); out[2] = sizeof(outer);
            out[3] = (char *)&v.b - (char *)&v;
            out[4] = (char *)&v.c - (char *)&v;
            out[5] = (char *)&v.d - (char *)&v;
        }
    """)
    out = gpuarray.zeros(6, np.int32)
    module.get_function("places")(out, block=(1, 1, 1), grid=(1, 1))

    class Tight(ctypes.Structure):
        _pack_ = 1
        _fields_ = (("a", ctypes.c_char), ("b", ctypes.c_int))

    assert ctypes.sizeof(Tight) == 5
    assert out.get().tolist() == [32, 5, 96, 32, 64, 69]
