"""Kernel texts that nvcc accepts: macros with any name, and names from headers that nvcc includes
by itself."""

from __future__ import annotations

import string

import numpy as np
import pytest
from device import BACKEND, IS_DOUBLE

from pygpu import autoinit, characterize, choose_backend, curandom, driver, gpuarray  # noqa: F401
from pygpu.compiler import SourceModule

WORDS = ["SIZE", "BLOCK", "WARP", "TILE", "UP", "DOWN", "WIDTH", "MASK", "SCOPE", "RANK", "WIDE"]


def run(source, *out, **options):
    SourceModule(source, **options).get_function("k")(*map(driver.Out, out), block=(1, 1, 1))
    return out


@pytest.mark.parametrize("options", [["-DN=3"], ["-D", "N=3", "-DT=int", "-DNDEBUG"]])
def test_macros_of_the_command_line_meet_no_names_of_the_language(options):
    if "-DT=int" in options and BACKEND == "cuda" and not IS_DOUBLE:
        pytest.skip("it meets the names of templates in a header of NVIDIA's compiler")
    declared = "T" if "-DT=int" in options else "int"
    source = f"__global__ void k({declared} *p) {{ *p = N; }}"
    (a,) = run(source, np.zeros(1, np.int32), options=options)
    assert a == 3


@pytest.mark.parametrize(
    "options",
    [
        ["-Wno-deprecated-gpu-targets", "--expt-relaxed-constexpr", "--source-in-ptx"],
        ["--default-stream", "per-thread", "-allow-unsupported-compiler", "--extended-lambda"],
        ["-default-stream=legacy", "-Xcompiler", "-O3", "-lineinfo", "-O3"],
        ["-e", "k", "--entries=k", "-lcudart", "-L/usr/lib", "-Xcudafe", "--diag_suppress=2"],
        ["-isystem", "/usr/include"],
        ["-O4", "-O", "3", "--optimize=2", "-m", "64", "-pg", "-res-usage", "-save-temps"],
        ["-Werror", "all-warnings", "-Wreorder", "--Werror=reorder", "-std", "c++17"],
        ["-cudart=static", "--cudart", "shared", "-keep-dir", "/nowhere", "-time=x", "-clean"],
        ["-Xnvlink", "-v", "-forward-unknown-to-host-compiler", "--system-include=/usr/include"],
        # Options for one phase or one generation of NVIDIA's tools, accepted on every device.
        ["-Xptxas", "-O3", "-maxrregcount=32"],
        ["--ptxas-options=-O3", "--maxrregcount", "64"],
        ["-prec-div=false", "-prec-sqrt=true", "-restrict", "-diag-suppress=177", "-arch=native"],
    ],
)
def test_options_of_nvcc_that_change_no_code_of_a_device(options):
    assert run("__global__ void k(int *p) { *p = 4; }", np.zeros(1, "i4"), options=options)[0] == 4


@pytest.mark.skipif(BACKEND == "cuda", reason="the driver refuses code for another generation")
@pytest.mark.parametrize("named", [{"arch": "sm_60"}, {"options": ["-arch=sm_60"]}])
def test_an_architecture_of_nvidia_is_no_obstacle_elsewhere(named):
    assert run("__global__ void k(int *p) { *p = 4; }", np.zeros(1, "i4"), **named)[0] == 4


def test_headers_of_functions_that_a_host_calls():
    source = "#include <curand.h>\n#include <cuda_runtime.h>\n__global__ void k(int *p) { *p = 4; }"
    assert run(source, np.zeros(1, "i4"))[0] == 4


def test_macros_of_a_program_meet_no_names_of_headers():
    macros = [*string.ascii_uppercase, *WORDS]
    source = (
        "".join(f"#define {name} a macro of the program\n" for name in macros)
        + """
#include <pycuda-complex.hpp>
#include <pycuda-helpers.hpp>
#undef T
#define T float
__global__ void k(T *p) { *p = norm(pycuda::complex<T>(3, 4)); }
"""
    )
    assert run(source, np.zeros(1, np.float32))[0] == 25


def test_names_that_nvcc_has_unasked():
    source = """
__global__ void k(uint8_t *small, uint64_t *large, double_t *real) {
    *small = UINT8_MAX;
    *large = INT_MAX + (uint64_t)UINT_MAX;
    *real = M_PI + FLT_EPSILON + (isnan(NAN) && isinf(INFINITY)) + (small == NULL);
    assert(*small == 255);
}
"""
    small, large, real = run(source, np.zeros(1, "u1"), np.zeros(1, "u8"), np.zeros(1))
    assert (small, large, real) == (255, 2**31 + 2**32 - 2, np.pi + 2**-23 + 1)


@pytest.mark.skipif(BACKEND != "host", reason="GPUs' compilers make no constant of bits")
def test_what_nvcc_takes_in_headers_of_programs(tmp_path):
    # nvcc includes <cmath> and <stddef.h> by itself, and accepts bit casts of constants as
    # constants.
    (tmp_path / "own.h").write_text("""
#include <math_constants.h>
inline __device__ constexpr float largest(float) { return CUDART_INF_F; }
inline __device__ float root(float x) { return std::sqrt(x); }
inline __device__ float own(float x) { return x; }
inline __device__ constexpr float never_constant(float x) { return own(x); }
""")
    source = """
#include "own.h"
struct Pair { float first; double second; };
extern "C" __global__ void k(float *out) {
    out[0] = largest(0.f) > 1 ? root(never_constant(16.f)) : 0;
    out[1] = offsetof(struct Pair, second);
}
"""
    out = np.zeros(2, np.float32)
    module = SourceModule(source, include_dirs=[str(tmp_path)], no_extern_c=True)
    module.get_function("k")(driver.Out(out), block=(1, 1, 1))
    assert out.tolist() == [4, 8]


def test_kernels_draw_from_the_states_of_a_generator():
    generator = curandom.XORWOWRandomNumberGenerator()
    header = "#include <curand_kernel.h>\n"
    try:
        assert characterize.sizeof(generator.state_type, header) == 48
    except driver.CompileError as error:
        pytest.skip(str(error.stderr).splitlines()[-1])
    count = generator.generators_per_block
    a = gpuarray.zeros(count, np.float32)
    draw = SourceModule(
        header + 'extern "C" __global__ void k(curandStateXORWOW *states, float *a) {\n'
        "    a[threadIdx.x] = curand_uniform(&states[threadIdx.x]);\n}",
        no_extern_c=True,
    ).get_function("k")
    expected = gpuarray.empty(count, np.float32)
    same = curandom.XORWOWRandomNumberGenerator(curandom.seed_getter_uniform)
    same._states.set(generator._states.get())
    draw(generator.state, a, block=(count, 1, 1))
    same.fill_uniform(expected)
    np.testing.assert_array_equal(a.get(), expected.get())


def test_a_missing_name_is_an_error_of_the_program():
    module = SourceModule("__global__ void k() {}")
    for find in (module.get_function, module.get_global):
        with pytest.raises(driver.LogicError, match="no_such_name") as caught:
            find("no_such_name")
        assert caught.value.status == 500
    with pytest.raises(driver.RuntimeError, match=r"/no/such\.cubin") as caught:
        driver.module_from_file("/no/such.cubin")
    assert caught.value.status == 301


@pytest.mark.skipif(BACKEND != "host", reason="a GPU's context cannot be used afterwards")
def test_a_fault_of_a_kernel_is_what_pycuda_raises_too():
    store = SourceModule("__global__ void k(int *p) { *p = 1; }").get_function("k")
    with pytest.raises(driver.LogicError) as caught:
        store(np.uintp(64), block=(1, 1, 1))
    assert isinstance(caught.value, driver.LaunchError)


class Address:
    """Another library's device memory, as programs pass it to kernels."""

    def __init__(self, array):
        self.gpudata = array.ptr


class Holder(driver.PointerHolderBase):
    """A holder whose author never needed its method."""

    def __init__(self, array):
        super().__init__()
        self.gpudata = array.ptr

    def get_pointer():
        raise NotImplementedError


@pytest.mark.parametrize("kind", [Address, Holder])
def test_an_address_is_all_that_a_kernel_needs(kind):
    a = gpuarray.zeros(4, np.int32)
    add = SourceModule("__global__ void k(int *p) { p[threadIdx.x] += 1; }").get_function("k")
    add(kind(a), block=(4, 1, 1))
    assert (a.get() == 1).all()


def test_a_shared_pointer_that_one_thread_sets_is_set_in_all():
    if BACKEND != "host" and not IS_DOUBLE:
        pytest.skip("what the vendor's compiler takes for undefined is its own")
    kernel = SourceModule(
        """__global__ void f(int *o) {
            __shared__ int s;
            int *p;
            if (threadIdx.x == 1) { p = &s; s = 5; }
            __syncthreads();
            o[threadIdx.x] = atomicAdd(p, 0);
        }"""
    ).get_function("f")
    result = np.zeros(64, np.int32)
    kernel(driver.Out(result), block=(64, 1, 1))
    assert (result == 5).all()


@pytest.mark.skipif(BACKEND != "host", reason="the run-time compilers refuse exceptions")
def test_an_exception_in_an_included_file_ends_the_launch(tmp_path):
    halved = "__device__ int halved(int x) { if (x % 2) throw x; return x / 2; }\n"
    (tmp_path / "halved.cuh").write_text(halved)
    text = '#include "halved.cuh"\n__global__ void k(int *x) { *x = halved(*x); }'
    kernel = SourceModule(text, include_dirs=[str(tmp_path)]).get_function("k")
    x = np.array([6], np.int32)
    kernel(driver.InOut(x), block=(1, 1, 1))
    assert x[0] == 3
    with pytest.raises(driver.LaunchError, match=r"an exception.*halved.cuh:1"):
        kernel(driver.InOut(x), block=(1, 1, 1))


@pytest.mark.skipif(BACKEND != "host", reason="the header is NVIDIA's")
def test_barriers_in_memory_are_functions_of_c():
    source = """
    #include <cuda_awbarrier_primitives.h>
    __global__ void k(int *x) {
        __shared__ __mbarrier_t barrier;
        __shared__ int last;
        if (threadIdx.x == 0) __mbarrier_init(&barrier, blockDim.x);
        __syncthreads();
        if (threadIdx.x < 63) {
            __mbarrier_token_t token = __mbarrier_arrive(&barrier);
            while (!__mbarrier_test_wait(&barrier, token)) {}
        } else {
            last = 5;
            __mbarrier_token_t token = __mbarrier_arrive_and_drop(&barrier);
            x[64] = __mbarrier_token_pending_count(token) <= 64;
        }
        __syncthreads();
        if (threadIdx.x < 63) __mbarrier_arrive(&barrier);
        while (!__mbarrier_test_wait_parity(&barrier, 1)) {}
        x[threadIdx.x] = last;
    }
    """
    x = np.zeros(65, np.int32)
    kernel = SourceModule(source).get_function("k")
    kernel(driver.InOut(x), block=(64, 1, 1))
    assert x.tolist() == [*[5] * 64, 1]
