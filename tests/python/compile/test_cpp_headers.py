"""C++ library headers in kernels: this package's, or NVIDIA's if its package is installed."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import numpy as np
import pytest
from device import BACKEND, TEST_ALL
from vendor_headers import adapted, includes

from pygpu import gpuarray
from pygpu.compiler import SourceModule


@pytest.fixture
def cccl(tmp_path, monkeypatch):
    """Returns a folder like NVIDIA's package with C++ headers, which is still empty."""
    for variable in ("CUDA_ROOT", "CUDA_PATH", "CUDA_HOME"):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.syspath_prepend(str(tmp_path))
    folder = tmp_path / "nvidia" / "cuda_cccl" / "include"
    (folder / "cuda" / "std").mkdir(parents=True)
    return folder


def test_headers_of_cpp_are_those_of_nvidias_package(cccl):
    (cccl / "cuda" / "std" / "ratio").write_text("")
    text, _, folders = adapted("#include <ratio>\nint x;\n")
    assert includes(text) == ["cuda/std/ratio"]
    assert "using namespace cuda::std;" in text
    assert str(cccl) in folders


@pytest.mark.parametrize("backend", ["cuda", "hip"])
def test_headers_of_cpp_that_are_here_give_way_to_nvidias_package(cccl, backend):
    source = "#include <limits>\nint x;\n"
    text, _, folders = adapted(source, backend)
    assert "numeric_limits" in text
    assert str(cccl) not in folders
    (cccl / "cuda" / "std" / "limits").write_text("")
    text, _, folders = adapted(source, backend)
    assert ("#include <limits>\nint x;" in text) == (backend == "cuda")
    assert (str(cccl) in folders) == (backend == "cuda")


OF_CPP = """
#include <array>
#include <functional>
#include <limits>
#include <tuple>
#include <type_traits>
#include <utility>

template <class T> __device__ std::enable_if_t<std::is_integral<T>::value, T> next(T x) {
    return x + 1;
}
template <class T> __device__ std::enable_if_t<!std::is_integral<T>::value, T> next(T x) {
    return x * 2;
}
__device__ int chosen(std::true_type) { return 10; }
__device__ int chosen(std::false_type) { return 20; }

extern "C" __global__ void use(double *out) {
    out[0] = next(4) + next(4.5);
    out[1] = chosen(std::is_pointer<int *>()) + chosen(std::is_same<int, float>());
    out[2] = std::numeric_limits<float>::max();
    out[3] = std::numeric_limits<double>::infinity();
    out[4] = std::numeric_limits<int>::min();
    out[5] = std::numeric_limits<double>::epsilon();
    std::array<int, 3> items = {{1, 2, 3}};
    for (int item : items) out[6] += item;
    std::pair<int, float> pair = std::make_pair(1, 2.5f);
    int x = 7;
    float y = 8;
    std::tie(x, y) = std::make_tuple(pair.first, pair.second);
    std::swap(out[0], out[1]);
    out[7] = x + y + std::plus<int>()(3, 4) + std::get<1>(pair);
    out[8] = std::move(x) + sizeof(std::conditional_t<true, char, double>);
}
"""


@pytest.mark.parametrize("is_in_a_header", [False, True])
def test_headers_of_cpp(is_in_a_header, tmp_path):
    text = OF_CPP
    if is_in_a_header:
        (tmp_path / "of_cpp.h").write_text(text)
        text = '#include "of_cpp.h"\n'
    out = gpuarray.zeros(9, np.float64)
    module = SourceModule(text, no_extern_c=True, include_dirs=[str(tmp_path)])
    module.get_function("use")(out, block=(1, 1, 1))
    limits = [float(np.finfo(np.float32).max), np.inf, -(2.0**31), np.finfo(np.float64).eps]
    assert out.get().tolist() == [30, 14, *limits, 6, 13, 2]


def test_headers_of_cpp_stand_outside_of_c():
    text = "#include <limits>\n#include <tuple>\n__global__ void use(int *out) {\n"
    text += "    *out = std::numeric_limits<int>::digits + std::get<0>(std::make_tuple(5));\n}\n"
    out = gpuarray.zeros((), np.int32)
    SourceModule(text).get_function("use")(out, block=(1, 1, 1))
    assert out.get() == 36


@pytest.mark.skipif(BACKEND != "host", reason="it is about the texts, which are one for all")
def test_headers_of_cpp_that_are_here_agree_with_the_library(tmp_path):
    # The compiler takes `std` for another name, in paths, too.
    (tmp_path / "headers").symlink_to(Path(__file__).parents[3] / "cuda-c/include/gpu/std")
    program = tmp_path / "program"
    compiler = os.environ.get("CXX", "c++").split()
    one_in = 1 if TEST_ALL else 7
    own = f"-DOWN(x)=<{tmp_path}/headers/x>"
    command = [*compiler, "-std=c++17", "-w", own, f"-DONE_IN={one_in}"]
    source = Path(__file__).with_name("std_headers.cpp")
    subprocess.run([*command, str(source), "-o", str(program)], check=True, timeout=300)
    done = subprocess.run([program], capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 0, done.stdout
    assert int(done.stdout.split()[0]) > (30_000 if TEST_ALL else 10_000)
