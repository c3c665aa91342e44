"""Checks of kernels: each fault is found, and reported with the line that allocated its memory."""

from __future__ import annotations

import inspect
import re
import subprocess
import sys
import textwrap

import numpy as np
import pytest
from device import BACKEND
from processes import LIMIT, run_python

import pygpu
from pygpu import cumath, driver, gpuarray
from pygpu.compiler import SourceModule

pytestmark = pytest.mark.skipif(BACKEND != "host", reason="GPUs do not look for faults")

INT = np.int32
TEXT = """
__global__ void fill(int *a, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) a[i] = i;
}
__global__ void add(int *a, const int *b) {
    a[threadIdx.x] += b[threadIdx.x];
}
__device__ int total = 1;
__global__ void count(int *a) { atomicAdd(&total, a[threadIdx.x]); }
"""


def line() -> str:
    """Returns the caller's position in the form that reports use."""
    frame = inspect.stack()[1]
    return f"{frame.filename}:{frame.lineno}"


def refused(call, *texts):
    """Asserts that a call raises an error with these texts in its message."""
    with pytest.raises(driver.Error, match=re.escape(texts[0])) as caught:
        call()
    for text in texts:
        assert text in str(caught.value), (text, str(caught.value))


@pytest.fixture(params=["compiled before", "compiled with checks"])
def module(request):
    if request.param == "compiled before":
        module = SourceModule(TEXT)
        with pygpu.checking():
            yield module
    else:
        with pygpu.checking():
            yield SourceModule(TEXT)


def test_an_access_behind_an_array_names_its_shape_dtype_and_line(module):
    fill = module.get_function("fill")
    a, place = gpuarray.zeros((2, 10), INT), line()
    fill(a, INT(20), grid=(3, 1), block=(8, 1, 1))
    assert (a.get().ravel() == range(20)).all()
    refused(
        lambda: fill(a, INT(21), grid=(3, 1), block=(8, 1, 1)),
        "kernel fill failed in block (2, 0, 0): thread (4, 0, 0) writes 4 bytes outside any live "
        "allocation in kernel.cu:4: address",
        f"0 bytes behind the end of the 80 bytes at {a.ptr:#x}, array of shape (2, 10) and dtype "
        f"int32, allocated at {place}",
    )
    # The stream remains usable.
    fill(a, INT(20), grid=(3, 1), block=(8, 1, 1))
    driver.Context.synchronize()


def test_an_error_on_a_stream_is_raised_when_it_is_synchronized(module):
    fill, stream = module.get_function("fill"), driver.Stream()
    a, place = gpuarray.zeros(20, INT), line()
    driver.Context.synchronize()
    fill(a, INT(21), grid=(3, 1), block=(8, 1, 1), stream=stream)
    refused(stream.synchronize, "kernel.cu:4", "shape (20,) and dtype int32", place)
    stream.synchronize()


SPIN = """
__global__ void spin(long long ticks) {
    long long start = clock64();
    while (clock64() - start < ticks) {}
}
"""


def test_an_error_on_the_default_stream_is_raised_by_its_launch_behind_other_work(module):
    fill, stream = module.get_function("fill"), driver.Stream()
    spin = SourceModule(SPIN).get_function("spin")
    spin(np.int64(1), block=(1, 1, 1))
    a, place = gpuarray.zeros(20, INT), line()
    for _ in range(3):
        # The default stream waits for this one.
        spin(np.int64(1 << 26), block=(1, 1, 1), stream=stream)
        refused(
            lambda: fill(a, INT(21), grid=(3, 1), block=(8, 1, 1)),
            "kernel.cu:4",
            "shape (20,) and dtype int32",
            place,
        )
    stream.synchronize()


def test_freed_memory_is_named(module):
    add = module.get_function("add")
    a = gpuarray.zeros(8, INT)
    b, place = gpuarray.zeros(8, INT), line()
    pointer = b.ptr
    add(a, b, block=(8, 1, 1))
    del b
    more = [gpuarray.zeros(8, INT) for _ in range(10)]
    assert pointer not in [array.ptr for array in more]
    refused(
        lambda: add(a, np.intp(pointer), block=(8, 1, 1)),
        "thread (0, 0, 0) reads 4 bytes of freed memory in kernel.cu:7",
        f"offset 0 of the 32 bytes at {pointer:#x}, array of shape (8,) and dtype int32",
        place,
    )


def test_what_nothing_has_written_is_named(module):
    add = module.get_function("add")
    a = gpuarray.zeros(8, INT)
    b, place = gpuarray.empty((4, 2), INT), line()
    b[:3] = 1
    add(a, b, block=(6, 1, 1))
    refused(
        lambda: add(a, b, block=(8, 1, 1)),
        "thread (6, 0, 0) reads 4 bytes that nothing has written in kernel.cu:7: address",
        f"offset 24 of the 32 bytes at {b.ptr:#x}, array of shape (4, 2) and dtype int32",
        place,
    )
    # Copies, fills and operations initialise the memory.
    for write in (
        lambda b: b.set(np.ones((4, 2), INT)),
        lambda b: b.fill(1),
        lambda b: driver.memset_d32(b.gpudata, 1, 8),
        lambda b: cumath.fabs(gpuarray.zeros((4, 2), np.float32), out=b.view(np.float32)),
    ):
        b = gpuarray.empty((4, 2), INT)
        write(b)
        add(a, b, block=(8, 1, 1))


def test_memory_without_an_array_has_its_line(module):
    fill = module.get_function("fill")
    memory, place = driver.mem_alloc(40), line()
    fill(memory, INT(10), block=(16, 1, 1))
    refused(
        lambda: fill(memory, INT(11), block=(16, 1, 1)),
        f"the 40 bytes at {int(memory):#x}, memory, allocated at {place}",
    )


def test_variables_of_modules_keep_their_values(module):
    count = module.get_function("count")
    address, _ = module.get_global("total")
    a = gpuarray.to_gpu(np.arange(4, dtype=INT))
    driver.memcpy_htod(address, INT(100))
    count(a, block=(4, 1, 1))
    count(a, block=(4, 1, 1))
    assert driver.from_device(address, (), INT) == 112


SHARED = """
__global__ void reverse(int *a, int waits) {
    __shared__ int all[64];
    all[threadIdx.x] = a[threadIdx.x];
    if (waits) __syncthreads();
    a[threadIdx.x] = all[63 - threadIdx.x];
}
__global__ void neighbours(int *a, const int *b) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    a[i] = b[(i + 32) % 64];
}
__global__ void branches(int *a, int n) {
    if ((int)threadIdx.x < n) __syncthreads();
    else
        __syncthreads();
    a[0] = 1 / (n - 64);
}
"""


def test_races_name_both_accesses():
    with pygpu.checking("races"):
        module = SourceModule(SHARED)
        reverse, neighbours = module.get_function("reverse"), module.get_function("neighbours")
        a = gpuarray.arange(0, 64, 1, dtype=INT)
        reverse(a, INT(1), block=(64, 1, 1))
        assert (a.get() == np.arange(64)[::-1]).all()
        refused(
            lambda: reverse(a, INT(0), block=(64, 1, 1)),
            "thread (32, 0, 0) writes 4 bytes in kernel.cu:4, in a race with a read by thread "
            "(31, 0, 0) in kernel.cu:6: address",
            "offset 128 of the 256 bytes",
            "shared memory all",
        )
        a, place = gpuarray.zeros((8, 8), INT), line()
        neighbours(a, gpuarray.zeros((8, 8), INT), grid=(2, 1), block=(32, 1, 1))
        refused(
            lambda: neighbours(a, a, grid=(2, 1), block=(32, 1, 1)),
            "in block (1, 0, 0): thread (0, 0, 0)",
            "by thread (0, 0, 0) of block (0, 0, 0) in kernel.cu:10",
            "array of shape (8, 8) and dtype int32",
            place,
        )


COMPARED = """
__device__ double add(double *address, double value)
{
    unsigned long long *bits = (unsigned long long *)address, old = *bits, seen;
    do {
        seen = old;
        old = atomicCAS(bits, seen, __double_as_longlong(value + __longlong_as_double(seen)));
    } while (old != seen);
    return __longlong_as_double(old);
}
__global__ void sum(double *a) { add(a, threadIdx.x); }
__global__ void sum_shared(double *a)
{
    __shared__ double all;
    if (threadIdx.x == 0) all = 0;
    __syncthreads();
    add(&all, threadIdx.x);
    __syncthreads();
    if (threadIdx.x == 0) a[blockIdx.x] = all;
}
__global__ void ticket(int *a) { int mine = *a;
    atomicAdd(a, 1); a[1 + threadIdx.x] = mine; }
__global__ void other(int *a) { int seen = *a; atomicCAS(a + 1, seen, 1);
    if (threadIdx.x < 20) atomicAdd(a, 1); }
__global__ void last(int *a)
{
    if (threadIdx.x < 63) atomicAdd(a, 1);
    else if (*a == 99) a[1] = 1;
}
__global__ void before_a_barrier(int *a)
{
    if (threadIdx.x < 63) atomicAdd(a, 1);
    else if (*a == 99) a[1] = 1;
    __syncthreads();
    atomicCAS(a, 1, 1);
}
__global__ void behind_a_read(int *a)
{
    if (threadIdx.x == 0) { if (*a == 99) a[1] = 1; }
    else atomicAdd(a, 1);
}
"""


def test_a_read_of_what_is_then_compared_and_swapped_is_no_race():
    with pygpu.checking("races"):
        module = SourceModule(COMPARED)
        for name in ("sum", "sum_shared"):
            a = gpuarray.zeros(2, np.float64)
            module.get_function(name)(a, grid=(2, 1), block=(64, 1, 1))
            assert a.get()[0] == (4032 if name == "sum" else 2016)
        for name, thread in (("last", 63), ("before_a_barrier", 63)):
            refused(
                lambda name=name: module.get_function(name)(
                    gpuarray.zeros(2, INT), block=(64, 1, 1)
                ),
                f"thread ({thread}, 0, 0) reads 4 bytes in kernel.cu",
                "in a race with an atomic access by thread (62, 0, 0)",
            )
        refused(
            lambda: module.get_function("ticket")(gpuarray.zeros(65, INT), block=(64, 1, 1)),
            "thread (1, 0, 0) reads 4 bytes in kernel.cu:21, in a race with an atomic access by "
            "thread (0, 0, 0)",
        )
        refused(
            lambda: module.get_function("other")(gpuarray.zeros(2, INT), block=(64, 1, 1)),
            "reads 4 bytes in kernel.cu:23, in a race with an atomic access",
        )
        refused(
            lambda: module.get_function("behind_a_read")(gpuarray.zeros(2, INT), block=(64, 1, 1)),
            "by an atomic access in kernel.cu",
            "in a race with a read by thread (0, 0, 0)",
        )


def test_barriers_and_divisions_name_their_lines():
    with pygpu.checking("barriers", "arithmetic"):
        branches = SourceModule(SHARED).get_function("branches")
        a = gpuarray.zeros(1, INT)
        branches(a, INT(0), block=(64, 1, 1))
        refused(
            lambda: branches(a, INT(8), block=(64, 1, 1)),
            "thread (8, 0, 0) waits at the barrier in kernel.cu:15, thread (0, 0, 0) at that in "
            "kernel.cu:13",
        )
        refused(
            lambda: branches(a, INT(64), block=(64, 1, 1)),
            "thread (0, 0, 0) divides by zero, in kernel.cu:16",
        )


def test_kinds_are_chosen():
    with pygpu.checking("bounds"):
        module = SourceModule(TEXT)
        add, fill = module.get_function("add"), module.get_function("fill")
        a = gpuarray.empty(8, INT)
        add(a, a, block=(8, 1, 1))
        refused(lambda: fill(a, INT(9), block=(9, 1, 1)), "outside any live allocation")
    with pygpu.checking("uninitialised"), pygpu.checking("arithmetic"):
        add(gpuarray.empty(8, INT), a, block=(8, 1, 1))
    with pytest.raises(driver.LogicError, match="'bound'|\"bound\""), pygpu.checking("bound"):
        pass


def test_a_variable_switches_checks_on_for_a_program():
    program = """
        import numpy as np
        from pygpu import autoinit, driver, gpuarray
        from pygpu.compiler import SourceModule
        next = SourceModule("__global__ void next(int *a) { a[threadIdx.x + 1] = 0; }")
        a = gpuarray.zeros(4, np.int32)
        try:
            next.get_function("next")(a, block=(4, 1, 1))
        except driver.Error as error:
            print(error)
    """
    assert run_python(program, PYGPU_CHECK="0").stdout == ""
    found = run_python(program, PYGPU_CHECK="bounds").stdout
    assert "array of shape (4,) and dtype int32, allocated at <string>:6" in found
    refused = run_python(program, check=False, PYGPU_CHECK="maybe").stderr
    assert 'PYGPU_CHECK is "maybe"; allowed are bounds, uninitialised' in refused


def test_the_first_launches_of_each_kernel_alone_are_checked():
    program = """
        import numpy as np
        from pygpu import autoinit, driver, gpuarray
        from pygpu.compiler import SourceModule
        text = "__global__ void turn(int *a) { a[threadIdx.x] = a[(threadIdx.x + 1) % 4]; }"
        module = SourceModule(text + text.replace("turn", "again"))
        a = gpuarray.zeros(4, np.int32)
        for name in ("turn", "turn", "turn", "again"):
            try:
                module.get_function(name)(a, block=(4, 1, 1))
                print(name, "ran")
            except driver.Error as error:
                print(name, "race" if "in a race with" in str(error) else error)
    """
    expected = ["turn race", "turn race", "turn ran", "again race"]
    assert run_python(program, PYGPU_CHECK="first").stdout.splitlines() == expected
    assert run_python(program, PYGPU_CHECK="first,races").stdout.splitlines() == expected
    ran = [f"{it.split()[0]} ran" for it in expected]
    assert run_python(program, PYGPU_CHECK="first,arithmetic").stdout.splitlines() == ran
    assert run_python(program).stdout.splitlines() == ran
    command = [
        sys.executable,
        "-m",
        "pygpu",
        "run",
        "--check-first",
        "-c",
        textwrap.dedent(program),
    ]
    done = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT, check=True)
    assert done.stdout.splitlines() == expected


def test_a_crash_after_a_launch_names_the_checks():
    launch = """
        import os, sys
        import numpy as np
        from pygpu import autoinit, driver
        from pygpu.compiler import SourceModule
        text = "__global__ void one(int *a) { a[threadIdx.x] = 1; }"
        SourceModule(text).get_function("one")(driver.Out(np.zeros(4, "i4")), block=(4, 1, 1))
        if sys.argv[1] == "faulthandler":
            import faulthandler
            faulthandler.enable()
    """
    for end in ("os.abort()", "import ctypes; ctypes.string_at(8)"):
        for argument in ("faulthandler", "alone"):
            for check in ("0", "1"):
                program = textwrap.dedent(launch) + end
                done = run_python(program, argument, check=False, PYGPU_CHECK=check)
                assert done.returncode < 0
                assert ("PYGPU_CHECK=1" in done.stderr) == (check == "0"), done.stderr


def test_failures_of_kernels_name_the_checks():
    bad = SourceModule("__global__ void bad(int *a) { *(int *)8 = 1; }").get_function("bad")
    with pytest.raises(driver.LogicError, match="PYGPU_CHECK=1"):
        bad(np.uintp(0), block=(1, 1, 1))


def test_short_overruns_reach_no_other_memory():
    # 384 threads write beyond arrays of 4 numbers, and some of them before the start.
    over = SourceModule(
        "__global__ void over(int *a) { a[threadIdx.x] = 5; a[-(int)(threadIdx.x % 200)] = 5; }"
    ).get_function("over")
    others = [gpuarray.to_gpu(np.full(4, number, INT)) for number in range(50)]
    for _ in range(3):
        arrays = [gpuarray.zeros(4, INT) for _ in range(50)]
        for array in arrays:
            over(array, block=(384, 1, 1))
        del arrays
    assert [it.get().tolist() for it in others] == [[number] * 4 for number in range(50)]


def test_short_overruns_of_shared_memory_reach_no_other_memory():
    program = """
        import numpy as np
        from pygpu import autoinit, gpuarray
        from pygpu.compiler import SourceModule
        turn = "{ %s int t = threadIdx.x; s[t] = a[t]; __syncthreads(); a[t] = s[t] + 1; }"
        for before, inside in (
            ("", "__shared__ int s[4];"),
            ("__shared__ int s[4];", ""),
            ("", "__shared__ double other[2]; __shared__ int s[2]; other[blockIdx.x] = 1;"),
            ("", "extern __shared__ int s[];"),
        ):
            in_function = f"{before} __device__ void turn(int *a) {turn % inside}"
            in_function += "__global__ void over(int *a) { turn(a); }"
            in_kernel = f"{before} __global__ void over(int *a) {turn % inside}"
            for text in (in_function, in_kernel):
                over = SourceModule(text).get_function("over")
                a = gpuarray.to_gpu(np.arange(1024, dtype=np.int32))
                for _ in range(3):
                    over(a, block=(1024, 1, 1), shared=16)
                kept = [bytearray(1000) for _ in range(1000)]
                print((a.get() == np.arange(3, 1027)).all())
    """
    assert run_python(program).stdout.split() == ["True"] * 8


def test_launches_behind_the_checked_ones_name_the_checks():
    program = """
        import numpy as np
        from pygpu import autoinit, driver
        from pygpu.compiler import SourceModule
        bad = SourceModule("__global__ void bad(int *a) { *a = 1; }").get_function("bad")
        for _ in range(3):
            try:
                bad(np.uintp(8), block=(1, 1, 1))
            except driver.Error as error:
                print("PYGPU_CHECK=1" in str(error))
    """
    done = run_python(program, PYGPU_CHECK="first")
    assert done.stdout.split() == ["False", "False", "True"]


def test_texture_references_have_constructors_that_run_before_checks():
    texts = """
    texture<float, 2> image;
    surface<void, 2> plane;
    __global__ void read(float *out) { out[threadIdx.x] = tex2D(image, threadIdx.x, 1); }
    __global__ void write(int n) { surf2Dwrite((float)n, plane, 4 * threadIdx.x, 0); }
    """
    with pygpu.checking():
        textured, out = SourceModule(texts), gpuarray.empty(3, np.float32)
        texels = np.arange(6, dtype=np.float32).reshape(2, 3)
        textured.get_texref("image").set_array(driver.matrix_to_array(texels, "C"))
        textured.get_function("read")(out, block=(3, 1, 1))
        assert out.get().tolist() == [3, 4, 5]
        surface = driver.np_to_array(texels, "C", allowSurfaceBind=True)
        textured.get_surfref("plane").set_array(surface)
        write = textured.get_function("write")
        write(INT(7), block=(3, 1, 1))
        refused(lambda: write(INT(7), block=(4, 1, 1)), "outside of its array")


def test_destructors_of_variables_run_when_the_process_ends():
    program = """
        import numpy as np
        from pygpu import autoinit, gpuarray
        from pygpu.compiler import SourceModule
        module = SourceModule('''
        #include <curand_kernel.h>
        struct Table {
            int *rows;
            Table() : rows(new int[4]) {}
            ~Table() { rows[0] = 1; delete[] rows; free(malloc(8)); }
        };
        __device__ Table table;
        extern "C" __global__ void draw(float *a) {
            curandState state;
            curand_init(1, threadIdx.x, 0, &state);
            a[threadIdx.x] = curand_uniform(&state);
        }
        ''', no_extern_c=True)
        a = gpuarray.zeros(4, np.float32)
        module.get_function("draw")(a, block=(4, 1, 1))
        print((a.get() > 0).all())
    """
    ended = run_python(program, PYGPU_CHECK="1")
    assert (ended.stdout, ended.stderr) == ("True\n", "")


def test_shared_variables_with_constructors_are_memory_of_the_block():
    text = """
    #include <cuda_fp16.h>
    #include <pycuda-complex.hpp>
    struct Pair { int first; float second; __device__ Pair() {} };
    __global__ void turn(int *a, int n) {
        __shared__ Pair pairs[8];
        __shared__ __half halves[8];
        __shared__ pycuda::complex<float> numbers[8];
        int i = threadIdx.x;
        if (i < n) pairs[i].first = a[i];
        halves[i] = __int2half_rn(i);
        numbers[i] = pycuda::complex<float>(i, 1);
        __syncthreads();
        a[i] = pairs[7 - i].first + (int)__half2float(halves[7 - i]) + (int)numbers[7 - i].imag();
    }
    """
    with pygpu.checking():
        turn = SourceModule(text).get_function("turn")
        assert turn.shared_size_bytes == 8 * (8 + 2 + 8)
        a = gpuarray.to_gpu(np.arange(8, dtype=INT))
        turn(a, INT(8), grid=(1, 1), block=(8, 1, 1))
        assert a.get().tolist() == [15 - 2 * i for i in range(8)]
        refused(
            lambda: turn(a, INT(7), block=(8, 1, 1)),
            "thread (0, 0, 0) reads 4 bytes that nothing has written",
            "shared memory pairs",
        )


def test_writes_to_constants_are_named():
    text = """
    __constant__ int table[4];
    __constant__ dim3 block(4, 2, 1);
    __device__ const int numbers[3] = {1, 2, 3};
    __device__ const char *text = "abc";
    __global__ void constant(int i) {
        table[i] = 1;
    }
    __global__ void dimensions(int i) {
        block.x = i;
    }
    __global__ void number(int i) {
        ((int *)numbers)[i] += 1;
    }
    __global__ void letter(int i) {
        ((char *)text)[i] = 'd';
    }
    __global__ void literal(int) {
        volatile char *p = (char *)"hello";
        *p = 3;
    }
    __global__ void read(int *a) {
        int i = threadIdx.x;
        a[i] = table[i] + numbers[i] + text[i];
    }
    """
    with pygpu.checking():
        module = SourceModule(text)
        table, _ = module.get_global("table")
        driver.memcpy_htod(table, np.arange(4, dtype=INT))
        a = gpuarray.zeros(3, INT)
        module.get_function("read")(a, block=(3, 1, 1))
        assert a.get().tolist() == [ord("a") + 1, ord("b") + 3, ord("c") + 5]
        for name, *texts in (
            (
                "constant",
                "thread (0, 0, 0) writes 4 bytes of constant memory in kernel.cu:7",
                "table",
            ),
            (
                "dimensions",
                "thread (0, 0, 0) writes 4 bytes of constant memory in kernel.cu:10",
                "block",
            ),
            (
                "number",
                "thread (0, 0, 0) writes 4 bytes of constant memory in kernel.cu:13",
                "numbers",
            ),
            ("letter", "thread (0, 0, 0) writes 1 byte of constant memory in kernel.cu:16"),
            # The compiler inserts no check here, so the system's page protection reports the fault.
            ("literal", "in kernel.cu:20"),
        ):
            kernel = module.get_function(name)
            refused(lambda kernel=kernel: kernel(INT(1), block=(1, 1, 1)), *texts)
