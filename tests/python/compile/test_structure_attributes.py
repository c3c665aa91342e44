"""Attributes after a struct definition, which NVRTC and clang parse differently from nvcc."""

from __future__ import annotations

import ctypes

import numpy as np

from pygpu import gpuarray
from pygpu.compiler import SourceModule


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
