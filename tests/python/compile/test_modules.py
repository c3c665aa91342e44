"""Compiling, loading and linking."""

from __future__ import annotations

import os
import textwrap
import warnings
from shutil import which

import numpy as np
import pytest
from device import BACKEND, DEVICE, HAS_PTX, IS_DOUBLE, needs_ptx
from processes import run_python

from pygpu import compiler, driver
from pygpu.compiler import DynamicModule, DynamicSourceModule, SourceModule

FILL = "__global__ void fill(int *x, int value) { x[threadIdx.x] = value; }"

GLOBALS = """
__constant__ float table[32];
__device__ int counter = 3;
__global__ void copy_table(float *out) { out[threadIdx.x] = table[threadIdx.x]; }
__global__ void count(int *out) { *out = ++counter; }
"""


def run_fill(module, name="fill"):
    memory = driver.mem_alloc(32)
    module.get_function(name)(memory, np.int32(7), block=(8, 1, 1))
    return driver.from_device(memory, 8, np.int32).tolist() == [7] * 8


def test_a_function_outlives_its_module():
    function = SourceModule(FILL).get_function("fill")
    memory = driver.mem_alloc(32)
    function(memory, np.int32(7), block=(8, 1, 1))
    np.testing.assert_array_equal(driver.from_device(memory, 8, np.int32), [7] * 8)


def test_variables():
    module = SourceModule(GLOBALS)
    address, size = module.get_global("table")
    assert isinstance(address, int)
    assert size == 128
    table = np.arange(32, dtype=np.float32)
    driver.memcpy_htod(address, table)
    out = np.zeros(32, np.float32)
    module.get_function("copy_table")(driver.Out(out), block=(32, 1, 1))
    np.testing.assert_array_equal(out, table)
    address, size = module.get_global("counter")
    counter = np.zeros(1, np.int32)
    module.get_function("count")(driver.Out(counter), block=(1, 1, 1))
    driver.memcpy_dtoh(out[:1].view(np.int32), address)
    assert (counter[0], out.view(np.int32)[0], size) == (4, 4, 4)


def test_names_that_are_not_there():
    module = SourceModule(GLOBALS)
    with pytest.raises(driver.Error, match="no_such_kernel"):
        module.get_function("no_such_kernel")
    with pytest.raises(driver.Error, match="no_such_variable"):
        module.get_global("no_such_variable")
    for look in (module.get_texref, module.get_surfref):
        with pytest.raises((driver.LogicError, driver.Unsupported), match="texture|surface"):
            look("table")


@pytest.mark.skipif(BACKEND != "host", reason="drivers do not list the kernels of a module")
@pytest.mark.parametrize(
    ("count", "known"),
    [(0, "none"), (2, "k00, k01"), (16, r"k00, .*, k15"), (18, r"k00, .*, k15 and 2 more")],
)
def test_a_missing_kernel_is_told_with_those_that_are_there(count, known):
    kernels = [f'extern "C" __global__ void k{number:02}() {{}}' for number in range(count)]
    module = SourceModule("__device__ int a;\n" + "\n".join(kernels), no_extern_c=True)
    with pytest.raises(driver.LogicError, match=rf'no kernel named "k2"; it has {known}$'):
        module.get_function("k2")


def test_code_from_memory_and_from_a_file(tmp_path):
    code = compiler.compile(FILL)
    assert isinstance(code, bytes)
    assert run_fill(driver.module_from_buffer(code))
    assert run_fill(driver.module_from_buffer(bytearray(code)))
    path = tmp_path / "fill.cubin"
    path.write_bytes(code)
    assert run_fill(driver.module_from_file(str(path)))
    assert run_fill(driver.module_from_file(path))
    assert isinstance(driver.module_from_file(path), driver.Module)


@pytest.mark.skipif(BACKEND != "host", reason="drivers load what they are given")
def test_code_that_is_damaged():
    code = compiler.compile(FILL)
    for place in [*range(0, len(code), len(code) // 60), len(code) - 1]:
        damaged = bytearray(code)
        damaged[place] ^= 0x41
        with pytest.raises(driver.Error):
            driver.module_from_buffer(bytes(damaged))


@pytest.mark.skipif(BACKEND != "host", reason="others compile in the process")
def test_an_interrupt_of_the_program_and_its_compiler(tmp_path):
    script = tmp_path / "interrupted"
    script.write_text(
        f'#!/bin/sh\ncase " $* " in *" -c "*) kill -INT $PPID; kill -INT $$;; esac\n'
        f'exec {which("c++") or which("g++")} "$@"\n'
    )
    script.chmod(0o755)
    program = """
        import pygpu.autoinit
        from pygpu.compiler import SourceModule

        try:
            SourceModule("__global__ void interrupted() {}")
        except KeyboardInterrupt:
            pass
    """
    run_python(program, CXX=str(script), PYGPU_CACHE_DIR=str(tmp_path))


@pytest.mark.skipif(BACKEND != "host", reason="it is about the host's compiler")
@pytest.mark.parametrize(("level", "optimised"), [("", 1), (" -O1", 1), (" -O0", 0)])
def test_the_compilers_own_level_of_optimisation(level, optimised, tmp_path):
    program = """
        import sys
        import numpy as np
        import pygpu.autoinit
        from pygpu import driver
        from pygpu.compiler import SourceModule

        tell = SourceModule('''
        __global__ void tell(int* out) {
        #ifdef __OPTIMIZE__
            *out = 1;
        #else
            *out = 0;
        #endif
        }''').get_function("tell")
        told = np.full(1, 7, np.int32)
        tell(driver.Out(told), block=(1, 1, 1))
        assert told[0] == int(sys.argv[1]), told
    """
    words = f"{which('c++') or which('g++')}{level}"
    run_python(program, str(optimised), CXX=words, PYGPU_CACHE_DIR=str(tmp_path))


def test_code_from_a_pipe_is_refused(tmp_path):
    path = tmp_path / "pipe"
    os.mkfifo(path)
    program = """
        import sys
        import pygpu.autoinit
        from pygpu import driver

        def link(path):
            driver.Linker().add_file(path, driver.jit_input_type.CUBIN)

        for path in (sys.argv[1], "/dev/zero"):
            for load in (driver.module_from_file, link):
                try:
                    load(path)
                except (driver.LogicError, OSError) as error:
                    assert "it is not a regular file" in str(error), error
                else:
                    raise AssertionError(path)
    """
    # System device files may be endless, so memory is limited. A GPU driver needs more address
    # space.
    limit = "import resource; resource.setrlimit(resource.RLIMIT_AS, (1 << 33, 1 << 33))\n"
    limited = limit if BACKEND == "host" or IS_DOUBLE else ""
    run_python(limited + textwrap.dedent(program), str(path))


def test_code_that_is_none(tmp_path):
    for load in (
        lambda: driver.module_from_buffer(b"no code at all"),
        lambda: driver.module_from_buffer(b""),
        lambda: driver.module_from_file(tmp_path / "absent"),
    ):
        with pytest.raises(driver.Error):
            load()
    with pytest.raises(TypeError, match="buffer"):
        driver.module_from_buffer(3)


@needs_ptx
def test_options_of_loading():
    code, option = compiler.compile(FILL, target="ptx"), driver.jit_option
    calls = []
    pairs = [(option.MAX_REGISTERS, 32), (option.OPTIMIZATION_LEVEL, 2), (option.LOG_VERBOSE, 1)]
    module = driver.module_from_buffer(code, pairs, lambda *args: calls.append(args))
    assert run_fill(module)
    ((success, info, error),) = calls
    assert (success, error) == (True, "")
    assert isinstance(info, str)
    with pytest.raises(driver.Error):
        driver.module_from_buffer(b"no code", message_handler=lambda *args: calls.append(args))
    assert calls[-1][0] is False
    assert calls[-1][2]
    for pairs in ([(option.WALL_TIME, 1)], [(option.MAX_REGISTERS, -1)]):
        with pytest.raises(driver.LogicError, match="option"):
            driver.module_from_buffer(code, pairs)


# ---- the compiler -------------------------------------------------------------------------------


def test_names_are_those_of_c_unless_asked_for():
    assert run_fill(SourceModule(FILL))
    own = f'extern "C" {{ {FILL} }}'
    assert run_fill(SourceModule(own, no_extern_c=True))
    with pytest.raises(driver.Error, match="fill"):
        SourceModule(FILL, no_extern_c=True).get_function("fill")


def test_refused_source():
    with pytest.raises(driver.CompileError, match=r"kernel\.cu") as caught:
        SourceModule("__global__ void f() { no_such_thing(); }", options=["-DX=1"])
    error = caught.value
    assert "no_such_thing" in error.stderr
    assert error.msg
    assert error.stdout == ""
    assert "-DX=1" in error.command_line
    text = str(error)
    assert error.msg in text
    assert "-DX=1" not in text
    assert error.detail in text


def test_options_of_nvcc_are_refused():
    with pytest.raises(driver.CompileError, match="no-such-option"):
        SourceModule(FILL, options=["--no-such-option"])


def test_options_and_folders(tmp_path):
    (tmp_path / "seven.h").write_text("#define VALUE SEVEN\n")
    source = '#include "seven.h"\n__global__ void fill(int *x) { x[threadIdx.x] = VALUE; }'
    module = SourceModule(source, options=["-DSEVEN=7"], include_dirs=[str(tmp_path)])
    memory = driver.mem_alloc(32)
    module.get_function("fill")(memory, block=(8, 1, 1))
    np.testing.assert_array_equal(driver.from_device(memory, 8, np.int32), [7] * 8)


def test_the_architecture_of_the_device():
    assert run_fill(SourceModule(FILL, arch=DEVICE.architecture()))


@needs_ptx
def test_an_architecture_that_does_not_exist():
    with pytest.warns(UserWarning, match="higher than selected GPU"), pytest.raises(driver.Error):
        SourceModule(FILL, arch="sm_999")


@needs_ptx
def test_targets():
    text = compiler.compile(FILL, target="ptx")
    assert run_fill(driver.module_from_buffer(text))
    if which("nvcc") is None:
        with pytest.raises(driver.Unsupported, match="fat"):
            compiler.compile(FILL, target="fatbin")
    else:
        assert run_fill(driver.module_from_buffer(compiler.compile(FILL, target="fatbin")))
    with pytest.raises(AssertionError, match="elf"):
        compiler.compile(FILL, target="elf")


def test_keep(capsys):
    from pathlib import Path

    code = compiler.compile(FILL, keep=True)
    folder = Path(capsys.readouterr().out.split()[-1])
    assert FILL in (folder / "kernel.cu").read_text()
    assert (folder / "kernel.cubin").read_bytes() == code


def test_nothing_is_said_without_a_reason(capsys):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        SourceModule(FILL)
    assert capsys.readouterr() == ("", "")


# ---- linking ------------------------------------------------------------------------------------

OUTER = """
extern __device__ int seven();
__global__ void outer(int *x) { x[threadIdx.x] = seven(); }
"""
INNER = "__device__ int seven() { return 7; }"


def run_outer(module):
    memory = driver.mem_alloc(32)
    module.get_function("outer")(memory, block=(8, 1, 1))
    return driver.from_device(memory, 8, np.int32).tolist() == [7] * 8


@pytest.fixture
def links_several():
    if not HAS_PTX:
        pytest.skip("the backend links nothing")
    if IS_DOUBLE:
        pytest.skip("the driver double links one program only")


@needs_ptx
def test_one_piece():
    messages = []
    linker = driver.Linker(lambda *args: messages.append(args), None, True)
    linker.add_data(compiler.compile(FILL, target="ptx"), driver.jit_input_type.PTX, "fill")
    assert run_fill(linker.link_module())
    assert messages[0][0] is True
    assert run_fill(DynamicModule().add_source(FILL, ["-rdc=true", "-lcudadevrt"]).link())


@pytest.mark.usefixtures("links_several")
def test_linker():
    linker = driver.Linker()
    for name, source in (("outer", OUTER), ("inner", INNER)):
        text = compiler.compile(source, options=["-rdc=true"], target="ptx")
        linker.add_data(text, driver.jit_input_type.PTX, name)
    assert run_outer(linker.link_module())


@pytest.mark.usefixtures("links_several")
def test_dynamic_module():
    module = DynamicModule()
    options = ["-rdc=true", "-lcudadevrt"]
    assert module.add_source(OUTER, options) is module
    assert module.add_source(INNER, nvcc_options=options, name="inner.ptx") is module
    assert module.link() is module
    assert run_outer(module)


@pytest.mark.usefixtures("links_several")
def test_names_that_are_in_no_piece():
    module = DynamicModule().add_source(OUTER, ["-rdc=true"])
    with pytest.raises(driver.Error, match="seven"):
        module.link()


@needs_ptx
def test_a_linked_module_takes_no_more():
    module = DynamicModule().add_source(FILL, ["-rdc=true"]).link()
    with pytest.raises(ValueError, match="linked already"):
        module.add_source(INNER)


@needs_ptx
def test_files_to_link(tmp_path):
    path = tmp_path / "fill.ptx"
    path.write_bytes(compiler.compile(FILL, options=["-rdc=true"], target="ptx"))
    assert run_fill(DynamicModule().add_file(str(path), driver.jit_input_type.PTX).link())
    with pytest.raises(FileNotFoundError):
        DynamicModule().add_file(str(tmp_path / "absent"), driver.jit_input_type.PTX)
    with pytest.raises(driver.LogicError, match="9"):
        DynamicModule().add_data(b"", 9)
    with pytest.raises(OSError, match=r"libno_such_library\.a"):
        DynamicModule().add_stdlib("no_such_library")


def test_a_dynamic_source_without_launches_needs_no_library():
    # A launch inside a comment does not count.
    assert run_fill(DynamicSourceModule(f"// fill<<<1, 1>>>()\n{FILL}"))


def test_a_dynamic_source_with_launches():
    source = "__global__ void inner() {}\n__global__ void outer() { inner<<<1, 1>>>(); }"
    with pytest.raises((OSError, driver.Error)):
        DynamicSourceModule(source, cuda_libdir="/nowhere")


def test_pieces_that_are_refused():
    messages = []
    module = DynamicModule(message_handler=lambda *args: messages.append(args))
    module.add_data(b"no code at all", driver.jit_input_type.CUBIN)
    with pytest.raises(driver.Error):
        module.link()
    assert messages[0][0] is False
    with pytest.raises(driver.Error):
        driver.Linker().link_module()


def test_a_source_that_is_no_text_writes_itself():
    class Source:
        def __str__(self):
            return "__global__ void seven(uint *out) { *out = (ushort) 7 + (ulong) 0; }"

    result = np.zeros((), np.uint32)
    module = SourceModule(Source())
    module.get_function("seven")(driver.Out(result), block=(1, 1, 1), grid=(1, 1))
    assert result == 7


@pytest.mark.skipif(HAS_PTX, reason="the backend has PTX")
def test_text_of_devices_is_refused_by_backend():
    for call in (
        lambda: compiler.compile(FILL, target="ptx"),
        lambda: compiler.compile(FILL, target="ptx", arch="sm_90"),
    ):
        message = f'target is "ptx", which the backend {BACKEND} does not have; allowed is "cubin"'
        with pytest.raises(driver.Unsupported, match=message):
            call()
    with pytest.raises(driver.Unsupported, match='use target="cubin"$'):
        compiler.compile(FILL, target="fatbin")
    with pytest.raises(driver.Unsupported, match=f"add_source: the backend {BACKEND} has no PTX"):
        DynamicModule().add_source(FILL)
    # The functions that the messages recommend work.
    assert compiler.compile(FILL, target="cubin")
    assert run_fill(SourceModule(FILL))
    assert run_fill(DynamicSourceModule(FILL))


WHOLE = r"""
#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <vector>
#include <cuda_runtime.h>

#define COUNT 64
#define CHECK(call) check(call)

static inline float twice(float x) { return 2 * x; }
EXTERN __global__ void scale(float *x, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) x[i] = twice(x[i]) + __LINE__;
}
inline void check(cudaError_t error)
{
    if (error != cudaSuccess) { std::cerr << cudaGetErrorString(error); exit(1); }
}
void run(float *x, int n);
int main(int argc, char **argv)
{
    std::vector<float> numbers(COUNT, 1.0f);
    float *x;
    CHECK(cudaMalloc(&x, COUNT * sizeof(float)));
    CHECK(cudaMemcpy(x, numbers.data(), COUNT * sizeof(float), cudaMemcpyHostToDevice));
    run(x, COUNT);
    CHECK(cudaDeviceSynchronize());
    std::cout << "}" << numbers[0] << std::endl;
    return cudaFree(x) != cudaSuccess;
}
void run(float *x, int n)
{
    scale<<<(n + 31) / 32, 32>>>(x, n);
}
"""


@pytest.mark.parametrize("no_extern_c", [False, True])
def test_functions_of_the_host_are_left_out(no_extern_c):
    text = WHOLE.replace("EXTERN", 'extern "C"' if no_extern_c else "")
    x = np.arange(64, dtype=np.float32)
    module = SourceModule(text, no_extern_c=no_extern_c)
    module.get_function("scale")(driver.InOut(x), np.int32(64), block=(32, 1, 1), grid=(2, 1))
    np.testing.assert_array_equal(x, 2 * np.arange(64) + 14)
