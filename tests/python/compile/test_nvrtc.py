"""Programs written for nvcc, compiled by the real NVRTC, whose package works without a GPU."""

from __future__ import annotations

import ctypes
import re
from importlib.util import find_spec
from pathlib import Path

import pytest
from device import BACKEND
from refused_programs import TEXTS as REFUSED
from refused_programs import check_text, marked

from pygpu import _core
from pygpu.compiler import SourceModule

KERNEL = "__global__ void k(int *x) { x[0] = 1; }"

# Texts that nvcc compiles because it includes headers by itself and accepts host functions.
TEXTS = {
    "host function": f"static int helper(int a) {{ return a + 1; }}\n{KERNEL}",
    "host variable": f"int counter = 3;\nint main() {{ return counter; }}\n{KERNEL}",
    "register": "__global__ void k(int *x) { register int a = 1; x[0] = a; }",
    "types": """
__global__ void k(u_int32_t *x, ssize_t n, u_char c, uint u, off_t o) { x[0] = n; }
""",
    "std": """
__global__ void k(float *x) { x[0] = std::sqrt(x[1]) + std::pow(x[0], 2) + std::abs(x[1]); }
""",
    "std of integers": """
#include <cstdint>
__global__ void k(std::uint32_t *x, std::size_t n) { x[0] = n; }
""",
    "cmath": """
#include <cmath>
__global__ void k(double *x) { x[0] = std::isnan(x[1]) + std::fma(x[0], x[1], 2.); }
""",
    "constants": "__global__ void k(float *x) { x[0] = CUDART_PI_F + CUDART_INF_F; }",
    "constants, included": """
#include <math_constants.h>
__global__ void k(double *x) { x[0] = CUDART_PI; }
""",
    "headers of the host": """
#include <iostream>
#include <vector>
#include <algorithm>
#include <sys/time.h>
__global__ void k(int *x) { x[0] = max(x[0], 2); }
""",
    "formats": """
#include <inttypes.h>
__global__ void k(uint64_t *x) { if (x[0] == 5) printf("%" PRIu64 "\\n", x[0]); }
""",
    "headers of C++": """
#include <array>
#include <functional>
#include <limits>
#include <tuple>
#include <type_traits>
__global__ void k(double *x) {
    x[0] = std::numeric_limits<float>::infinity() + std::plus<>()(x[1], 2);
    x[1] = std::get<0>(std::make_tuple(std::move(x[2]), 3)) + std::array<int, 2>{{4, 5}}[1];
    x[2] = std::is_same<int, std::decay_t<const int &>>::value;
}
""",
    "headers of C": """
#include <cassert>
#include <cfloat>
#include <cstdio>
#include <cstdlib>
#include <cstring>
__global__ void k(float *x) { assert(x[0] < FLT_MAX); std::memset(x, 0, 4); }
""",
}
VERSION = f"#include <cuda.h>\n#if CUDA_VERSION < 9000\n#error old\n#endif\n{KERNEL}"


@pytest.mark.filterwarnings("ignore:The CUDA compiler succeeded")
@pytest.mark.parametrize("name", TEXTS)
def test_a_text_for_nvcc(name):
    assert SourceModule(TEXTS[name]).get_function("k")


@pytest.mark.skipif(BACKEND == "hip", reason="CUDA's version")
def test_the_version():
    assert SourceModule(VERSION).get_function("k")


@pytest.fixture(scope="module")
def nvrtc():
    """Returns a function that compiles a text with NVRTC."""
    if BACKEND != "host":
        pytest.skip("the process has the backend's own NVRTC")
    try:
        spec = find_spec("nvidia.cuda_nvrtc")
    except ModuleNotFoundError:
        spec = None
    if spec is None or not spec.submodule_search_locations:
        pytest.skip("the package of NVRTC is not installed")
    (file,) = Path(spec.submodule_search_locations[0], "lib").glob("libnvrtc.so.*")
    library = ctypes.CDLL(str(file))

    def log_of(text, flags):
        program, size = ctypes.c_void_p(), ctypes.c_size_t()
        source = (text.encode(), b"kernel.cu")
        assert library.nvrtcCreateProgram(ctypes.byref(program), *source, 0, None, None) == 0
        options = [flag.encode() for flag in (*flags, "-arch=sm_80")]
        given = (ctypes.c_char_p * len(options))(*options)
        failed = library.nvrtcCompileProgram(program, len(options), given)
        library.nvrtcGetProgramLogSize(program, ctypes.byref(size))
        log = ctypes.create_string_buffer(size.value)
        library.nvrtcGetProgramLog(program, log)
        library.nvrtcDestroyProgram(ctypes.byref(program))
        return log.value.decode() if failed else None

    def compiled(text):
        """Returns the errors of a program for nvcc; None without any."""
        text, flags, _ = _core.adapted_program("cuda", False, (text, "kernel.cu", [], [], [], True))
        log = log_of(text, flags)
        # As for a device: functions for the host are compiled for the device.
        return log_of(text, [*flags, "-default-device"]) and log if log else None

    return compiled


@pytest.mark.parametrize("text", [*TEXTS.values(), VERSION], ids=[*TEXTS, "version"])
def test_what_nvrtc_makes_of_it(nvrtc, text):
    assert nvrtc(text) is None


def test_an_error_beside_functions_for_the_host_is_shown(nvrtc):
    log = nvrtc("int main() { return 0; }\n__global__ void k() { nothing_here(); }")
    assert re.search(r"kernel.cu\(2\): error: .*nothing_here", log)


@pytest.mark.parametrize("name", REFUSED)
def test_an_error_has_the_line_and_a_caret(nvrtc, name):
    text = f'extern "C++" {{\n{REFUSED[name]}\n}}' if "template" in name else REFUSED[name]
    plain = marked(text)[0]
    check_text(name, text, _core.diagnostics(nvrtc(plain), plain, "kernel.cu").splitlines())
