"""Error messages for invalid texts point to the program's own line."""

from __future__ import annotations

import numpy as np
import pytest
from device import BACKEND, TEST_ALL

from pygpu import driver, gpuarray
from pygpu.compiler import SourceModule

REFUSED = {
    "__global__ int k(int *a) { return 1; }": "kernel.cu:2: error: kernel k returns a value",
    "__global__ void k(int *a) { if (*a) { *a = 1; }": "kernel.cu:2: error: this '{' has no '}'",
    "__global__ void k(int *a) { *a = 1; } }": "kernel.cu:2: error: this '}' has no '{'",
    "__global__ void k(int *a, strange b) {}": "strange",
    "__global__ void k(int *a) { __shared__ int s = 3; }": "error: a __shared__ variable",
    "__global__ void k(int *a) { threadIdx.x = 3; }": "threadIdx, blockIdx, blockDim",
    "__global__ void k() {} __global__ void l() { k<<<1, 1>>>(); }": "a kernel cannot launch",
    "__global__ void __launch_bounds__(n) k(int *a) {}": "kernel.cu:2: error: kernel k: ",
    "__global__ void __launch_bounds__(1, 2, 3, 4) k(int *a) {}": "kernel k: __launch_bounds__",
    "__global__ void k(int *a, ...) {}": "kernel.cu:2: error: kernel k: a kernel has as many",
    "__global__ void k(int &&a) {}": "kernel.cu:2: error: kernel k: a parameter cannot be",
    "__global__ void k(auto a) {}": "kernel.cu:2: error: ",
    "__device__ int f(int); __global__ void k(int *a) { *a = f(1); }": "kernel.cu:2: error: undef",
    "extern __device__ int v; __global__ void k(int *a) { *a = v; }": "kernel.cu:2: error: undef",
    "__global__ void l() { strange(); } __global__ voidv k(int *a) {}": "'voidv'",
}


@pytest.mark.skipif(BACKEND != "host", reason="the messages are those of the host's compiler")
@pytest.mark.parametrize("no_extern_c", [False, True])
@pytest.mark.parametrize("text", REFUSED)
def test_a_message_is_about_the_line_of_the_program(text, no_extern_c):
    with pytest.raises(driver.CompileError) as caught:
        SourceModule(f"\n{text}\n", no_extern_c=no_extern_c)
    lines = caught.value.stderr.splitlines()
    assert REFUSED[text] in caught.value.stderr
    assert [line for line in lines if "error:" in line and "kernel.cu:2:" not in line] == []
    assert "gpuarray_abi" not in caught.value.stderr


CLOSED_TWICE = "__global__ void k(int *a) {\n *a = 1;\n}\n}\n__global__ void l() {}\n"
OPEN = "__global__ void k(int *a) {\n if (*a) {\n *a = 1;\n}\n__device__ int f() { return 1; }\n"
IN_ASM = '__global__ void k(int *a) {\n asm("mov.u32 %0, 3;" : "=r"(*a));\n}\n}\n'
IN_BLOCK = 'extern "C" {\n__global__ void k(int *a) {\n  if (*a) {\n    *a = 1;\n}\n}\n'
BRACES = {
    IN_BLOCK: "kernel.cu:3: error: this '{' has no '}'",
    CLOSED_TWICE: "kernel.cu:4: error: this '}' has no '{'",
    f"#include <cuda_fp16.h>\n{CLOSED_TWICE}": "kernel.cu:5: error: this '}' has no '{'",
    f"#include <stdint.h>\n#include <stdio.h>\n{CLOSED_TWICE}": "kernel.cu:6: error: this '}'",
    IN_ASM: "kernel.cu:4: error: this '}' has no '{'",
    f'extern "C" {{\nint f(int);\n}}\n{CLOSED_TWICE}': "kernel.cu:7: error: this '}' has no '{'",
    OPEN: "kernel.cu:1: error: this '{' has no '}'",
    f"#include <cuda_fp16.h>\n{OPEN}": "kernel.cu:2: error: this '{' has no '}'",
    f'extern "C" {{\n{OPEN}}}\n': "kernel.cu:2: error: this '{' has no '}'",
    f"__global__ void l() {{}}\nnamespace n {{\n{OPEN}}}\n": "kernel.cu:3: error: this '{' has",
}


@pytest.mark.skipif(BACKEND != "host", reason="the messages are those of the host's compiler")
@pytest.mark.parametrize(
    ("text", "no_extern_c", "cache"),
    [
        (text, no_extern_c, cache)
        for number, text in enumerate(BRACES)
        for no_extern_c in (False, True)
        for cache in ("", "off")
        # Every pair of two of these settings occurs.
        if TEST_ALL or (number + no_extern_c + (cache == "off")) % 2 == 0
    ],
)
def test_a_wrong_brace_is_one_of_the_program(text, no_extern_c, cache, monkeypatch):
    if cache:
        monkeypatch.setenv("PYGPU_CACHE", cache)
    with pytest.raises(driver.CompileError) as caught:
        SourceModule(text, no_extern_c=no_extern_c)
    lines = caught.value.stderr.splitlines()
    assert [line for line in lines if line.startswith(BRACES[text])] != []
    assert [line for line in lines if "has no" in line and not line.startswith("kernel.cu")] == []
    assert [line for line in lines if line.startswith(("kernel k", "gpuarray"))] == []


@pytest.mark.filterwarnings("error")
def test_attributes_of_kernels_give_no_warnings():
    a = gpuarray.zeros(2, np.int32)
    module = SourceModule("""
    [[deprecated]] __global__ void first(int *a) { a[0] = 1; }
    [[deprecated("too old")]] __global__ void second(int *a) { a[1] = 2; }
    """)
    for name in ("first", "second"):
        module.get_function(name)(a, block=(1, 1, 1))
    assert a.get().tolist() == [1, 2]


@pytest.mark.filterwarnings("error")
def test_variables_beside_their_class_give_no_warnings():
    a = gpuarray.zeros(2, np.int32)
    module = SourceModule("""
    struct S { int q; } __constant__ c;
    static struct { int q; } __device__ d = {7};
    __global__ void k(int *a) { a[0] = c.q; a[1] = d.q; }
    """)
    address, size = module.get_global("c")
    assert size == 4
    driver.memcpy_htod(address, np.int32([3]))
    module.get_function("k")(a, block=(1, 1, 1))
    assert a.get().tolist() == [3, 7]


def test_a_reference_is_passed_as_an_address():
    set_to = SourceModule("__global__ void set(int &a, int value) { a = value; }").get_function(
        "set"
    )
    a = gpuarray.zeros(1, np.int32)
    set_to(a, np.int32(7), block=(1, 1, 1))
    assert a.get() == 7
