"""Conversions and shifts that C++ leaves undefined: kernels have a GPU's results."""

import numpy as np
import pytest

import pygpu.driver as cuda
from pygpu import gpuarray
from pygpu.compiler import SourceModule
from pygpu.elementwise import ElementwiseKernel

NUMBERS = [0.0, 1.9, -0.5, -1.5, 255.0, 256.5, 300.0, -300.0, 70000.0, -3e9, -np.inf, np.nan]

CONVERSIONS = {
    "assignment": "o[i] = 2 * x[i] - x[i];",
    "cast": "o[i] = (T)x[i];",
    "cast_of_sum": "o[i] = 1 + (T)(x[i] + 0.0f) - 1;",
    "static_cast": "o[i] = static_cast<T>(x[i]);",
    "initialiser": "T a = 0, b = x[i]; o[i] = a + b;",
    "condition": "o[i] = i >= 0 ? x[i] : 0.0f;",
    "member": "P p; p.r = x[i]; o[i] = p.r;",
    "component": "%(vector)s v; v.x = v.y = x[i]; o[i] = v.x;",
    "vector": "%(vector)s v = make_%(vector)s(x[i], 2 * x[i]); o[i] = v.x;",
    "shared": "__shared__ T s[32]; s[i] = x[i]; __syncthreads(); o[i] = s[i];",
}

TEXT = """
typedef %(type)s T;
struct P { %(type)s r; };
"""
KERNEL = """
extern "C" __global__ void %(case)s(%(type)s *o, const %(real)s *x) {
    int i = threadIdx.x;
    %(body)s
}
"""


@pytest.mark.parametrize("real", ["float", "double"])
@pytest.mark.parametrize(
    ("name", "vector", "bits"),
    [
        ("unsigned char", "uchar2", 8),
        ("unsigned short", "ushort2", 16),
    ],
)
def test_negative_numbers_become_zero_in_small_unsigned_integers(name, vector, bits, real):
    words = {"type": name, "vector": vector, "real": real}
    text = TEXT % words
    for case, body in CONVERSIONS.items():
        text += KERNEL % {**words, "case": f"k_{case}", "body": body % words}
    module = SourceModule(text, no_extern_c=True)
    count = len(NUMBERS)
    x = np.array(NUMBERS[:count], "f4" if real == "float" else "f8")
    expected = [int(v) % 2**bits if v > 0 else 0 for v in x]
    for case in CONVERSIONS:
        result = np.full(count, 7, f"u{bits // 8}")
        kernel = module.get_function(f"k_{case}")
        kernel(cuda.Out(result), cuda.In(x), block=(count, 1, 1))
        assert result.tolist() == expected, case


def test_shifts_by_the_width_shift_out_all_bits():
    kernel = SourceModule("""
        __global__ void shifts(unsigned int *o, int n, unsigned int b) {
            o[0] = (1u << n) - 1;
            o[1] = ~0u >> n;
            o[2] = b << (32 - n);
            o[3] = b >> 32 - n;
            o[4] = 0xffffffff >> (32 - n);
            o[5] = (1ull << (n + 32)) >> 32;
            o[6] = -1 >> n;
            o[7] = 1 << n << 1;
            o[8] = (b << n) | (b >> (32 - n));
            unsigned int high = b;
            if (n < 32) high = high >> (31 - n);
            o[9] = high;
        }""").get_function("shifts")
    b, most = 0x9E3779B9, 2**32 - 1
    for n in (0, 5, 32):
        expected = [
            2**n - 1,
            most >> n,
            b << 32 - n & most,
            b >> 32 - n,
            most >> 32 - n,
            2**n & most,
            most,
            2 << n & most,
            (b << n | b >> 32 - n) & most if n < 32 else b,
            b >> 31 - n if n < 32 else b,
        ]
        result = np.zeros(10, np.uint32)
        kernel(cuda.Out(result), np.int32(n), np.uint32(b), block=(1, 1, 1))
        assert result.tolist() == expected, n


def test_elements_of_strided_arrays_become_zero():
    x = gpuarray.to_gpu(np.array([[-3.7, 0, 2.5], [300, 0, -0.2]], np.float32))[:, ::2]
    result = gpuarray.zeros((2, 3), np.uint8)[:, ::2]
    ElementwiseKernel("unsigned char *z, const float *x", "z[i] = x[i]")(result, x)
    assert result.get().tolist() == [[0, 2], [44, 0]]


def test_values_of_other_types_stay():
    """Names and operators that a program also uses for something else than numbers."""
    text = """
    struct Bits { unsigned bits; };
    __device__ Bits operator<<(Bits a, int n) { return Bits{a.bits * 100u + n}; }
    __global__ void other(unsigned char *t) { t[0] = 1.0f; }
    struct Number {
        float n;
        __device__ Number(float n) : n(n) {}
        template <class T> __device__ Number(const T &) : n(-1) {}
    };
    __device__ unsigned char of_lambda(const float *x, int i) {
        auto at = [&](int j) -> const float & { return x[j]; };
        const float &found = at(i);
        return found * 2;
    }
    extern "C" __global__ void k(float *o, const float *x, int n) {
        auto t = x[0] * 2.5f;
        o[0] = t / 2;
        Number h = x[0] * 2.0f;
        o[1] = h.n;
        o[2] = (Bits{3} << (9 - n)).bits;
        o[3] = of_lambda(x, 0);
    }
    """
    o, x = np.zeros(4, np.float32), np.array([1.5], np.float32)
    kernel = SourceModule(text, no_extern_c=True).get_function("k")
    kernel(cuda.Out(o), cuda.In(x), np.int32(4), block=(1, 1, 1))
    assert o.tolist() == [1.875, 3, 305, 3]
