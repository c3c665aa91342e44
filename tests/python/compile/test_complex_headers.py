"""Complex numbers in kernels: the headers of PyCUDA and of Thrust, against numpy."""

from __future__ import annotations

import numpy as np
import pytest
from pairs import numbers

from pygpu import driver, gpuarray
from pygpu.compiler import SourceModule
from pygpu.elementwise import ElementwiseKernel

CTYPES = {"c8": "pycuda::complex<float>", "c16": "pycuda::complex<double>"}
REAL = {"c8": "float", "c16": "double"}


def z_values(code):
    z = numbers(200, code, 3)
    z[:3] = [0, 2, -3]
    return z


COMPLEX_VALUES = {
    "z[i] + w[i]": lambda z, w: z + w,
    "z[i] - w[i]": lambda z, w: z - w,
    "z[i] * w[i]": lambda z, w: z * w,
    "z[i] / (w[i] + 20)": lambda z, w: z / (w + 20),
    "2 * z[i] - w[i] * 3 + 1": lambda z, w: 2 * z - 3 * w + 1,
    "1 / (z[i] + 30) - (5 - w[i]) / 4": lambda z, w: 1 / (z + 30) - (5 - w) / 4,
    "-z[i] + +w[i]": lambda z, w: w - z,
    "conj(z[i]) * pycuda::conj(w[i])": lambda z, w: (z * w).conj(),
    "sqrt(z[i])": lambda z, w: np.sqrt(z),
    "exp(z[i])": lambda z, w: np.exp(z),
    "log(z[i] + 40)": lambda z, w: np.log(z + 40),
    "log10(z[i] + 40)": lambda z, w: np.log10(z + 40),
    "sin(z[i])": lambda z, w: np.sin(z),
    "cos(z[i])": lambda z, w: np.cos(z),
    "tan(z[i])": lambda z, w: np.tan(z),
    "sinh(z[i])": lambda z, w: np.sinh(z),
    "cosh(z[i])": lambda z, w: np.cosh(z),
    "tanh(z[i])": lambda z, w: np.tanh(z),
    "pow(z[i], 3)": lambda z, w: z**3,
    "pow(z[i] + 20, w[i] / 8)": lambda z, w: (z + 20) ** (w / 8),
    "pycuda::polar(abs(z[i]), arg(z[i]))": lambda z, w: z,
}
REAL_VALUES = {
    "real(z[i]) + z[i].real()": lambda z, w: 2 * z.real,
    "imag(z[i]) + z[i].imag()": lambda z, w: 2 * z.imag,
    "abs(z[i])": lambda z, w: np.abs(z),
    "arg(z[i])": lambda z, w: np.angle(z),
    "norm(z[i])": lambda z, w: (z * z.conj()).real,
}


@pytest.mark.parametrize("values", [COMPLEX_VALUES, REAL_VALUES], ids=["complex", "real"])
@pytest.mark.parametrize("code", CTYPES)
def test_complex_numbers_are_numpys(code, values):
    # One kernel for all values, because each kernel is a run of the compiler.
    z, w = z_values(code), z_values(code)[::-1].copy()
    result_type, dtype = (CTYPES[code], np.dtype(code))
    if values is REAL_VALUES:
        result_type, dtype = REAL[code], np.zeros(1, code).real.dtype
    kernel = ElementwiseKernel(
        f"const {CTYPES[code]} *z, const {CTYPES[code]} *w, {result_type} *out",
        "\n".join(f"out[{k} * n + i] = {text};" for k, text in enumerate(values)),
    )
    found = gpuarray.empty((len(values), len(z)), dtype)
    kernel(gpuarray.to_gpu(z), gpuarray.to_gpu(w), found)
    tolerance = 2e-4 if code == "c8" else 1e-11
    for text, expected, line in zip(values, values.values(), found.get(), strict=True):
        wanted = expected(z, w).astype(dtype)
        np.testing.assert_allclose(line, wanted, rtol=tolerance, atol=tolerance, err_msg=text)


def test_comparisons_and_assignments():
    z = z_values("c8")
    compare = ElementwiseKernel(
        "const pycuda::complex<float> *z, const pycuda::complex<float> *w, unsigned char *out",
        "out[i] = (z[i] == w[i]) + 2 * (z[i] != w[i]) + 4 * (z[i] == 2)",
    )
    equal = gpuarray.empty(z.shape, np.uint8)
    compare(gpuarray.to_gpu(z), gpuarray.to_gpu(z), equal)
    assert (equal.get() == 1 + 4 * (z == 2)).all()
    kernel = ElementwiseKernel(
        "pycuda::complex<double> *z, pycuda::complex<float> *w",
        "z[i] += 1; z[i] *= w[i]; z[i] -= z[i] / 4; w[i] = z[i]; w[i]._M_re = 3; w[i].imag(2)",
    )
    narrow, wide = gpuarray.to_gpu(z), gpuarray.to_gpu(z.astype(np.complex128))
    kernel(wide, narrow)
    np.testing.assert_allclose(wide.get(), (z + 1.0) * z * 0.75, rtol=1e-6)
    assert (narrow.get() == 3 + 2j).all()


THRUST = """
#include <thrust/complex.h>
using thrust::complex;

template <class T> __device__ complex<T> all(const complex<T>& z, const complex<T>& w, int which)
{
    switch (which) {
        case 0: return 2 * z - w * 3.0f + 1;
        case 1: return 1 / (z + T(30)) - (5 - w) / 4;
        case 2: return thrust::conj(z) * w / (w + 20) + thrust::norm(z) + abs(w);
        case 3: return thrust::exp(z / 2) + thrust::log(z + T(40)) * log10(z + T(40));
        case 4: return thrust::sqrt(z) + sin(z) * cos(w) + tan(w);
        case 5: return sinh(z) + cosh(w) * tanh(z);
        case 6: return pow(z, 3) + pow(z + T(20), w / 8) + thrust::pow(T(2), w);
        case 7: return thrust::polar(abs(z), arg(z)) + thrust::proj(w);
        case 8: return thrust::asin(z) + acos(w);
        case 9: return atan(z) + asinh(w);
        case 10: return acosh(z) + atanh(w);
        case 11: return complex<T>(z == w, z != w) + T(z == z.real());
        case 12: { complex<T> r = z; r += w; r *= 2; r -= complex<float>(1, 2); r /= 4; return r; }
        default: { complex<T> r; r = T(3); r.imag(w.real()); return r; }
    }
}

extern "C" __global__ void functions(
    const complex<float> *z, const complex<float> *w, complex<float> *out,
    complex<double> *wide, complex<double> by_value)
{
    __shared__ complex<float> tile[64];
    static_assert(sizeof(tile[0]) == 8 && alignof(complex<double>) == 16, "as CUDA's vectors");
    const int i = threadIdx.x, which = blockIdx.x;
    tile[i] = z[i];
    __syncthreads();
    out[which * 64 + i] = all(tile[i], w[i], which);
    wide[which * 64 + i] = all(complex<double>(z[i]), complex<double>(w[i]), which) * by_value;
}
"""
OF_THRUST = [
    lambda z, w: 2 * z - w * 3 + 1,
    lambda z, w: 1 / (z + 30) - (5 - w) / 4,
    lambda z, w: z.conj() * w / (w + 20) + np.abs(z) ** 2 + np.abs(w),
    lambda z, w: np.exp(z / 2) + np.log(z + 40) * np.log10(z + 40),
    lambda z, w: np.sqrt(z) + np.sin(z) * np.cos(w) + np.tan(w),
    lambda z, w: np.sinh(z) + np.cosh(w) * np.tanh(z),
    lambda z, w: z**3 + (z + 20) ** (w / 8) + 2**w,
    lambda z, w: z + w,
    lambda z, w: np.arcsin(z) + np.arccos(w),
    lambda z, w: np.arctan(z) + np.arcsinh(w),
    lambda z, w: np.arccosh(z) + np.arctanh(w),
    lambda z, w: (z == w) + 1j * (z != w) + (z == z.real),
    lambda z, w: ((z + w) * 2 - (1 + 2j)) / 4,
    lambda z, w: 3 + 1j * w.real,
]


def test_complex_numbers_of_thrust_are_numpys():
    z = z_values("c8")[:64]
    w = z[::-1].copy()
    w[7] = z[7]
    shape = (len(OF_THRUST), 64)
    out, wide = np.empty(shape, np.complex64), np.empty(shape, np.complex128)
    kernel = SourceModule(THRUST, no_extern_c=True).get_function("functions")
    arguments = driver.In(z), driver.In(w), driver.Out(out), driver.Out(wide), np.complex128(2j)
    kernel(*arguments, block=(64, 1, 1), grid=(len(OF_THRUST), 1))
    for number, function in enumerate(OF_THRUST):
        expected = function(z.astype(np.complex128), w.astype(np.complex128))
        np.testing.assert_allclose(out[number], expected, rtol=5e-4, atol=5e-4, err_msg=str(number))
        np.testing.assert_allclose(wide[number], expected * 2j, rtol=1e-9, atol=1e-9)
