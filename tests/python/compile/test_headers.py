"""Headers that kernels include: this package's, the vendor's, the program's."""

from __future__ import annotations

import os
import re
import stat
from pathlib import Path

import numpy as np
import pytest
from device import BACKEND, TEST_ALL
from vendor_headers import adapted, vendor_folder

from pygpu import driver, gpuarray
from pygpu.compiler import SourceModule, compile

OWN_MACROS = """
#ifndef FLT_MAX
#define FLT_MAX 1.5f
#endif
#define FLT_EPSILON 0.25f
#if 0
#  define M_PI 3
#else
#  define M_PI 4.0  /* for some reason */
#endif
/*
#define INT_MAX 7
*/
#define NULL 0
__global__ void f(double *x) {
    x[0] = FLT_MAX; x[1] = FLT_EPSILON; x[2] = M_PI; x[3] = INT_MAX; x[4] = NULL; x[5] = __LINE__;
}
"""


@pytest.mark.parametrize("no_extern_c", [False, True])
def test_a_program_defines_macros_of_unasked_headers(no_extern_c):
    # In this test warnings are errors.
    source = (
        OWN_MACROS.replace("__global__", 'extern "C" __global__') if no_extern_c else OWN_MACROS
    )
    x = np.zeros(6)
    module = SourceModule(source, no_extern_c=no_extern_c)
    module.get_function("f")(driver.Out(x), block=(1, 1, 1))
    assert x[1:].tolist() == [0.25, 4, 2**31 - 1, 0, 16]
    assert x[0] in (1.5, np.finfo(np.float32).max)


C_HEADERS = """
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <math.h>
#include <assert.h>
# include <stdint.h>
#include <stddef.h>
#include <float.h>
#include <limits.h>
#include <cmath>
#include <cstdint>
#include <ctime>
#include <time.h>
#include "cuda_runtime.h"
#include <pycuda-helpers.hpp>

__global__ void values(double *out, const int8_t *bytes)
{
    assert(out != NULL);
    out[0] = M_PI;
    out[1] = INT_MAX;
    out[2] = FLT_MAX;
    out[3] = DBL_EPSILON;
    out[4] = sizeof(uint64_t) + offsetof(int2, y);
    out[5] = INFINITY;
    out[6] = INT64_MAX == LLONG_MAX;
    out[7] = bytes[0] + abs(-3) + fabs(-0.5);
    if (out[7] > 1e9) printf("%d\\n", 5);
}
"""


def test_the_headers_of_c():
    out = gpuarray.zeros(8, np.float64)
    kernel = SourceModule(C_HEADERS).get_function("values")
    kernel(out, gpuarray.to_gpu(np.int8([-7])), block=(1, 1, 1), grid=(1, 1))
    limits = np.finfo(np.float32).max, np.finfo(np.float64).eps
    expected = [np.pi, 2**31 - 1, *limits, 8 + 4, np.inf, 1, -7 + 3 + 0.5]
    assert out.get().tolist() == expected


def test_headers_in_headers_of_the_program(tmp_path):
    (tmp_path / "outer.h").write_text("#include <float.h>\n#include <inner.h>\n")
    (tmp_path / "inner.h").write_text("#define LIMIT FLT_MAX\n")
    source = "#include <outer.h>\n__global__ void f(float *x) { *x = LIMIT; }"
    x = gpuarray.zeros((), np.float32)
    module = SourceModule(source, include_dirs=[str(tmp_path)])
    module.get_function("f")(x, block=(1, 1, 1), grid=(1, 1))
    assert x.get() == np.finfo(np.float32).max


# Like `nvcc`, the GPU compilers warn about the second definition.
@pytest.mark.filterwarnings("ignore:The CUDA compiler succeeded")
def test_a_header_of_the_program_comes_first(tmp_path):
    (tmp_path / "math.h").write_text("#define M_PI 3\n")
    source = "#include <math.h>\n__global__ void f(float *x) { *x = M_PI; }"
    x = gpuarray.zeros((), np.float32)
    module = SourceModule(source, include_dirs=[str(tmp_path)])
    module.get_function("f")(x, block=(1, 1, 1), grid=(1, 1))
    assert x.get() == 3


@pytest.mark.parametrize("no_extern_c", [False, True])
def test_messages_count_the_lines_of_the_source(no_extern_c):
    source = "#include <math.h>\n#include <pycuda-helpers.hpp>\n\n__device__ int x = nowhere;\n"
    with pytest.raises(driver.CompileError, match=r"kernel\.cu[(:]4\b.*nowhere"):
        SourceModule(source, no_extern_c=no_extern_c)


@pytest.mark.skipif(
    BACKEND == "host" or vendor_folder("cublas_v2.h") is not None,
    reason="the header is here",
)
def test_a_header_that_is_missing_is_named_with_its_package():
    with pytest.raises(driver.CompileError) as caught:
        compile("#include <cublas_v2.h>")
    assert "pip install nvidia-cublas-cu12" in caught.value.stderr
    with pytest.raises(driver.CompileError, match=r"nothing_like_this\.h") as caught:
        compile("#include <nothing_like_this.h>")
    assert "pip install" not in caught.value.stderr


@pytest.mark.skipif(BACKEND == "host", reason="the host has headers of its own")
def test_headers_of_the_vendor_are_found_in_packages(tmp_path, monkeypatch):
    # Header names that no compiler provides itself.
    headers = {
        "cuda_runtime/include/cuda_runtime.h": "",
        "cuda_runtime/include/cuda_of_test.h": "#define BEHIND 1\n",
        "curand/include/curand_of_test.h": (
            "#ifndef CURAND_OF_TEST_H\n#define CURAND_OF_TEST_H\n#include <cuda_of_test.h>\n"
            "template <class T> __device__ T forty() { return 40; }\n"
            "#define VALUE (forty<float>() + BEHIND)\n#endif\n"
        ),
    }
    for name, text in headers.items():
        path = tmp_path / "nvidia" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    monkeypatch.setattr("sys.path", [str(tmp_path)])
    source = "#include <curand_of_test.h>\n__global__ void f(float *x) { *x = VALUE; }"
    x = gpuarray.zeros((), np.float32)
    SourceModule(source).get_function("f")(x, block=(1, 1, 1), grid=(1, 1))
    assert x.get() == 41


@pytest.fixture
def toolkit(tmp_path):
    """Returns a folder laid out like a toolkit's headers."""
    for name in ("cuda_runtime_api.h", "cuda_fp16.h", "curand.h", "pycuda-complex.hpp"):
        (tmp_path / name).write_text("#error this is for NVIDIA's compiler\n")
    (tmp_path / "only_there.h").write_text("#define ONE 1\n")
    return tmp_path


NAMES_OF_A_TOOLKIT = """
#include <cuda_runtime_api.h>
#include "cuda_fp16.h"
#include <curand.h>
#include <pycuda-complex.hpp>
#include <only_there.h>
extern "C" __global__ void f(float *x) { *x = __half2float(__float2half(ONE)); }
"""


def result_of_f(text, **arguments):
    x = np.zeros(1, np.float32)
    kernel = SourceModule(text, no_extern_c=True, **arguments).get_function("f")
    kernel(driver.Out(x), block=(1, 1, 1))
    return x[0]


@pytest.mark.skipif(BACKEND != "host", reason="NVIDIA's compiler reads NVIDIA's headers")
@pytest.mark.parametrize("option", [[], ["-I"], ["-isystem"], ["--include-path"]])
def test_a_toolkits_folder_comes_after_the_headers_of_the_host(toolkit, option):
    folder = {"options": [*option, str(toolkit)]} if option else {"include_dirs": [str(toolkit)]}
    assert result_of_f(NAMES_OF_A_TOOLKIT, **folder) == 1


@pytest.mark.skipif(BACKEND != "host", reason="NVIDIA's compiler reads NVIDIA's headers")
def test_a_toolkits_folder_in_the_environment(toolkit, tmp_path_factory, monkeypatch):
    own = tmp_path_factory.mktemp("own")
    (own / "own.h").write_text("#define ONE 1\n")
    text = NAMES_OF_A_TOOLKIT.replace("only_there.h", "own.h")
    monkeypatch.setenv("CPATH", f"{toolkit}{os.pathsep}{own}")
    assert result_of_f(text) == 1
    monkeypatch.setenv("CPATH", str(toolkit))
    assert result_of_f(text, include_dirs=[str(own)]) == 1


NVCC = """#!/bin/sh
echo "$@" > "{log}"
for argument; do last=$argument; done
grep -q refused "$last" && {{ echo "kernel.cu(1): error: refused" >&2; exit 1; }}
while [ "$1" != "-o" ]; do shift; done
cp "$last" "$2"
"""


@pytest.fixture
def nvcc(tmp_path, monkeypatch):
    """Installs a program in place of nvcc; returns the file in which it logs its calls."""
    log, nvcc = tmp_path / "log", tmp_path / "nvcc"
    nvcc.write_text(NVCC.format(log=log))
    nvcc.chmod(nvcc.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    return nvcc, log


@pytest.mark.skipif(BACKEND != "cuda", reason="nvcc's code is for NVIDIA's devices")
def test_nvcc_runs_when_it_is_asked_for(nvcc):
    nvcc, log = nvcc
    text = "__global__ void f() {}"
    assert text.encode() in compile(text, nvcc=str(nvcc), options=["-Xptxas", "-v"], arch="sm_90")
    assert "--cubin -Xptxas -v -arch sm_90" in log.read_text()
    with pytest.raises(driver.CompileError, match=r"kernel\.cu:1: error: refused"):
        compile("refused", nvcc=str(nvcc), arch="sm_90")
    assert text.encode() in compile(text, options=["-gencode", "arch=compute_90,code=sm_90"])
    assert text.encode() in compile(text, target="fatbin", arch="sm_90")
    log.unlink()
    compile(text)
    assert not log.exists()
    with pytest.raises(driver.Unsupported, match="a program that can be run"):
        compile(text, nvcc=str(nvcc.with_name("nowhere")))


@pytest.mark.skipif(BACKEND == "cuda", reason="the device runs nvcc's code")
def test_nvcc_does_not_run_for_devices_of_others(nvcc):
    nvcc, log = nvcc
    text = "__global__ void f() {}"
    for options in ({"nvcc": str(nvcc)}, {"options": ["-gencode", "arch=compute_90,code=sm_90"]}):
        SourceModule(text, **options).get_function("f")(block=(1, 1, 1))
    assert not log.exists()


def test_a_path_of_nvcc_where_there_is_none(tmp_path):
    kernel = SourceModule("__global__ void f() {}", nvcc=str(tmp_path / "nvcc")).get_function("f")
    kernel(block=(1, 1, 1))


def test_options_for_the_hosts_compiler_make_no_difference():
    options = ["-O3", "-m64", "-Xcompiler", "-Wall", "--compiler-options=-fPIC", "-ccbin", "gcc"]
    assert compile("__global__ void f() {}", options=options)
    with pytest.raises(TypeError, match="options"):
        compile("", options="-O3")


@pytest.mark.skipif(BACKEND != "cuda", reason="the backend has no virtual architectures")
def test_code_for_an_architecture():
    assert compile("__global__ void f() {}", arch="compute_80", code="sm_90")


@pytest.mark.parametrize(
    "lines",
    [
        "#include <math.h> /* a comment\nthat goes on */",
        "/*\n#include <math.h>\n#include <pycuda-complex.hpp>\n*/",
        "//#include <math.h>",
        "#include \\\n<math.h>",
        "#define HEADER <math.h>\n#include HEADER",
        '__device__ const char *text = "\\\n#include <math.h>\\\n";',
        "#if 0\n#include <nothing.h>\n#include <math.h>\n#endif",
        "#include <math.h>\n#include <cmath>\n#include <math.h>",
        "#include <math.h>\r",
    ],
)
def test_how_a_header_is_included(lines):
    text = f"{lines}\n__global__ void three(int *x) {{ x[0] = 3; }}\n"
    result = np.zeros(1, np.int32)
    SourceModule(text).get_function("three")(driver.Out(result), block=(1, 1, 1))
    assert result == 3
    line = text.count("\n") + 1
    with pytest.raises(driver.CompileError, match=rf"kernel.cu[(:]{line}\b.*nothing_here"):
        SourceModule(f"{text}int none = nothing_here;\n")


def test_headers_whose_functions_are_there_already():
    text = "#include <common_functions.h>\n#include <channel_descriptor.h>\n"
    SourceModule(f"{text}__global__ void nothing() {{}}").get_function("nothing")(block=(1, 1, 1))


@pytest.mark.skipif(BACKEND != "host", reason="the header comes with a CUDA toolkit")
def test_functions_are_values():
    text = """
    #include <nvfunctional>
    __device__ int call(nvstd::function<int(int)> f) { return f(3); }
    extern "C" __global__ void add(int *a, int n) { *a = call([n](int x) { return x + n; }); }
    """
    a = gpuarray.zeros((), np.int32)
    SourceModule(text, no_extern_c=True).get_function("add")(a, np.int32(4), block=(1, 1, 1))
    assert a.get() == 7


@pytest.mark.parametrize("no_extern_c", [False, True])
def test_a_mark_of_byte_order_is_no_part_of_a_source(no_extern_c):
    text = '\ufeff#define C extern "C"\nC __global__ void three(int *x) { x[0] = 3; }\n'
    result = np.zeros(1, np.int32)
    three = SourceModule(text, no_extern_c=no_extern_c).get_function("three")
    three(driver.Out(result), block=(1, 1, 1))
    assert result == 3


@pytest.mark.parametrize("name", ["options", "include_dirs"])
@pytest.mark.parametrize("value", ["/tmp", [5], [None], 5])
def test_sequences_of_texts(name, value):
    with pytest.raises(TypeError, match=f"{name} is"):
        SourceModule("", **{name: value})


@pytest.mark.parametrize("name", ["nvcc", "arch", "code"])
def test_texts(name):
    with pytest.raises(TypeError, match=f"{name} is of type int"):
        SourceModule("", **{name: 90})


CLOSED = [
    "__global__ void k(uint32_t *x) { *x = INT_MAX; }",
    "#include <stdint.h>\n#include <climits>\n__global__ void k(uint64_t *x) { *x = CHAR_BIT; }",
    "__global__ void k(float *x) { *x = std::sqrt(*x) + M_PI; }",
    "__global__ void k(float *x) { *x = __shfl_sync(0xffffffff, *x, 1) + __ldcg(x); }",
    "__global__ void k(unsigned *x) { *x = __vadd4(*x, __dp4a(1, 2, 3)); }",
    "#include <limits>\n#include <tuple>\n__global__ void k(int *x) {}",
    "#include <pycuda-complex.hpp>\n#include <stdio.h>\n__global__ void k(float *x) {}",
    "texture<float, 1> t;\n__global__ void k(float *x) { *x = tex1Dfetch(t, 1); }",
]


@pytest.mark.parametrize("backend", ["cuda", "hip"])
@pytest.mark.parametrize("text", CLOSED)
def test_what_reads_no_files_of_others_is_kept_for_other_processes(text, backend):
    assert "include" not in adapted(text, backend)[0]


MACROS = ["T=float", "U", "y=out", "value=3", "type=int", "n=7", "size=(2)", "width=4", "f(a)=a"]


@pytest.mark.parametrize("form", ["-D{}", "-D {}", "--define-macro={}"])
def test_macros_of_options_are_the_programs_alone(form):
    options = [part for macro in MACROS for part in form.format(macro).split(" ")]
    text = """
    #include <limits>
    __global__ void set(T *out) {
        type sum = f(value) + n + size + width + U;
        y[threadIdx.x] = __shfl_sync(0xffffffff, (T)sum, 0) + std::numeric_limits<type>::digits;
    }"""
    out = gpuarray.zeros(32, np.float32)
    SourceModule(text, options=options).get_function("set")(out, block=(32, 1, 1))
    assert out.get().tolist() == [3 + 7 + 2 + 4 + 1 + 31] * 32
    with pytest.raises(driver.CompileError, match=r"kernel.cu[(:]2\b") as error:
        SourceModule("\nint none = nothing_here;", options=options)
    assert options[0] in error.value.command_line


def test_macros_in_front_of_headers_are_the_programs_alone():
    text = "#define T int\n#define U 5\n#define x out\n#include <tuple>\n#include <limits>\n"
    text += "__global__ void set(T *out) { *x = std::get<0>(std::make_tuple(U)); }"
    out = gpuarray.zeros((), np.int32)
    SourceModule(text).get_function("set")(out, block=(1, 1, 1))
    assert out.get() == 5


@pytest.mark.parametrize("form", ["-I{}", "-I {}", "--include-path={}"])
def test_folders_of_options_are_the_programs(form, tmp_path):
    (tmp_path / "own.h").write_text("""
    #ifndef __CUDACC__
    #error a program for CUDA
    #endif
    static __device__ float area(float r) { return (float)M_PI * r * r; }
    extern "C++" __device__ float atomicMax(float *place, float value) {
        const float before = *place;
        *place = fmaxf(before, value);
        return before;
    }
    """)
    text = '#include "own.h"\n__global__ void set(float *o) { *o = area(2); atomicMax(o, 13.0f); }'
    out = gpuarray.zeros((), np.float32)
    options = form.format(tmp_path).split(" ")
    SourceModule(text, options=options).get_function("set")(out, block=(1, 1, 1))
    assert out.get() == 13


def test_a_programs_own_conditions_about_headers_are_kept(tmp_path):
    (tmp_path / "own.h").write_text("#define N 7\n")
    text = """
    #if __has_include(<own.h>)
    #include <own.h>
    #else
    #define N 1
    #endif
    __global__ void set(int *out) { out[0] = N; out[1] = __LINE__; }
    """
    out = gpuarray.zeros(2, np.int32)
    module = SourceModule(text, include_dirs=[str(tmp_path)])
    module.get_function("set")(out, block=(1, 1, 1))
    assert out.get().tolist() == [7, 7]


HEADERS_RS = Path(__file__).parents[3] / "cuda-c/src/headers.rs"
UNASKED = re.search(r'OF_PROGRAMS: &str = "(.*?)"', HEADERS_RS.read_text(), re.DOTALL)[1].split()
# Each alone, or in a few programs; the first of a program is alone before the others.
GROUPS = [[name] for name in UNASKED] if TEST_ALL else [UNASKED[k::6] for k in range(6)]


@pytest.mark.parametrize("names", GROUPS, ids=lambda names: names[0])
def test_headers_whose_names_are_there_unasked(names):
    text = "".join(f"#include <{name}>\n" for name in names)
    text += "__global__ void store(float *x) { *x = rsqrtf(*x); }"
    x = gpuarray.to_gpu(np.float32([0.25]))
    SourceModule(text).get_function("store")(x, block=(1, 1, 1))
    assert x.get() == 2


ASKS = """
#ifdef __CUDACC__
#define BOTH __host__ __device__
#else
static inline float rsqrtf(float x) { return 1 / x; }
#define BOTH
#endif
BOTH inline float twice(float x) { return 2 * x; }
__global__ void asks(float *x) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 600 && CUDART_VERSION >= 9000
    x[0] = twice(3);
#endif
#if defined(__CUDACC_VER_MAJOR__) && __CUDACC_VER_MAJOR__ >= 9
    x[1] = 1;
#endif
#ifdef __NVCC__
    x[2] = 1;
#endif
}
"""


def asked(source, **options):
    x = gpuarray.zeros(3, np.float32)
    SourceModule(source, **options).get_function("asks")(x, block=(1, 1, 1))
    return x.get().tolist()


def test_a_program_for_cuda_sees_that_it_is_compiled_as_one(tmp_path):
    assert asked(ASKS) == [6, 1, 1]
    (tmp_path / "asks.h").write_text(ASKS)
    assert asked('#include "asks.h"', include_dirs=[str(tmp_path)]) == [6, 1, 1]
    # Macros that the program's options define take precedence.
    assert asked(ASKS, options=["-D__NVCC__=7"]) == [6, 1, 1]


def test_a_program_that_knows_of_hip_decides_by_that():
    text = "#ifdef __HIPCC__\n#define ASK 2\n#elif defined(__CUDACC__)\n#define ASK 1\n#endif\n"
    text += "__global__ void asks(float *x) { x[0] = ASK; }"
    assert asked(text)[0] == (2 if BACKEND == "hip" else 1)


LIBRARY = """
#if !defined(__NVCC__) || !defined(__CUDACC__)
#error not nvcc
#endif
#include <math.h>
namespace library {
using ::nexttoward;
using ::sqrtl;
template <int N> struct Row { float x[N]; };
template <int N> struct Matrix {
    using Row = library::Row<N>;
    Row rows[N];
};
template <class K> int doit(K k, dim3 grid, int n) {
    k<<<grid, dim3(n > 3 ? 1 : 2), (size_t)0>>>(n);
    return 0;
}
__device__ inline float twice(float x) {
    float y;
    asm("add.f32 %0, %1, %1;" : "=f"(y) : "f"(x));
    return y;
}
__device__ inline void leave() { asm volatile("exit;"); }
}
"""


@pytest.mark.skipif(BACKEND != "host", reason="a GPU's compiler has all instructions")
def test_of_a_librarys_header_only_what_is_used_must_work_on_the_host(tmp_path):
    (tmp_path / "library.h").write_text(LIBRARY)
    # The pragma of a library that does not want warnings.
    (tmp_path / "quiet.h").write_text("#pragma GCC system_header\n" + LIBRARY)
    text = """
    #include "library.h"
    extern "C" __global__ void f(float *x) {
        library::Matrix<2> m = {{{{1, 2}}, {{3, 4}}}};
        *x = library::twice(m.rows[1].x[0]);
    }
    """
    for source in (text, text.replace("library.h", "quiet.h")):
        x = np.zeros(1, np.float32)
        # Warnings are errors in this test.
        module = SourceModule(source, no_extern_c=True, include_dirs=[str(tmp_path)])
        module.get_function("f")(driver.InOut(x), block=(1, 1, 1))
        assert x[0] == 6
        used = source.replace("*x =", "library::leave(); *x =")
        with pytest.raises(driver.CompileError) as refused:
            SourceModule(used, no_extern_c=True, include_dirs=[str(tmp_path)])
        name = "quiet.h:24" if "quiet" in source else "library.h:23"
        assert re.search(rf"{name}(:\d+)?: error: inline PTX: 'exit'", refused.value.stderr)
    wrong = text.replace("*x =", "int *p = 1; *x =")
    with pytest.raises(driver.CompileError, match=r"error: invalid conversion") as refused:
        SourceModule(wrong, no_extern_c=True, include_dirs=[str(tmp_path)])
    assert "permissive" not in str(refused.value)
    assert "changes meaning" not in str(refused.value)
