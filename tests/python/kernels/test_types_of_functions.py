"""The return types of CUDA's functions agree with NVRTC, for each type of each argument.

The functions are those in `signatures.cu`. A program stores a table of the types in a variable; the
tables of NVRTC, the backend and the real hipRTC are compared. Nothing runs on a GPU.
"""

from __future__ import annotations

import ctypes
import itertools
import re
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest
from device import BACKEND
from processes import ROOT
from rocm_compilers import COMPILERS, compiled, symbols

from pygpu import driver
from pygpu.compiler import SourceModule

pytestmark = pytest.mark.skipif(
    BACKEND == "cuda", reason="the process has the backend's own NVRTC, which says the same"
)

SIGNATURES = (ROOT / "backend-host/executor/tests/kernels/headers/signatures.cu").read_text()
SMALL = ["bool", "char", "short", "unsigned short"]
NUMBERS = ["int", "unsigned int", "long", "unsigned long", "long long", "unsigned long long"]
NUMBERS += ["float", "double"]
OF_VECTORS = ["char", "uchar", "short", "ushort", "int", "long", "ulong", "longlong", "ulonglong"]
VECTORS = [f"{of}{n}" for of in (*OF_VECTORS, "float", "double") for n in (1, 2, 3, 4)]
VECTORS += ["uint1", "uint2", "uint3", "uint4", "dim3"]
NAMES = ["void", *SMALL, *NUMBERS, *VECTORS]
# The arguments in `signatures.cu` that any number may replace.
NUMBER = re.compile(r"(?:i|u|l|ul|ll|ull|us|f|d|[\d.]+[fu]*)")
# The types for one, two, or more arguments; for all arguments of a function without overloads.
COMBINED = {1: [*SMALL, *NUMBERS], 2: ["short", *NUMBERS]}
COMBINED |= {3: ["int", "unsigned int", "float", "double"], 4: ["int", "float"]}
ALIKE = ["short", *NUMBERS]

START = """
template <class T> struct number_of { enum { value = 255 }; };
#define NAMED(type, number) template <> struct number_of<type> { enum { value = number }; };
struct nothing {};
template <class T> struct bare { typedef T type; };
template <class T> struct bare<const T> { typedef T type; };
template <class T> struct bare<T &> { typedef typename bare<T>::type type; };
template <class T> __host__ __device__ T any();
#define TYPE(...) (unsigned char)number_of<typename bare<decltype(__VA_ARGS__)>::type>::value,
#define PLACE(T, name) extern __device__ T name;
PLACE(int, *pi) PLACE(unsigned int, *pu) PLACE(long long, *pll) PLACE(unsigned long long, *pull)
PLACE(unsigned short, *pus) PLACE(float, *pf) PLACE(double, *pd) PLACE(bool, *pb) PLACE(void, *pv)
PLACE(char4, c4) PLACE(uchar4, uc4) PLACE(short2, s2) PLACE(float2, f2) PLACE(float2, *pf2)
PLACE(float4, f4) PLACE(float4, *pf4)
"""


def calls():
    """Returns function names with their arguments; None stands for any number."""
    seen = set()
    for line in re.findall(r"^IS\((.*)\);$", SIGNATURES, re.MULTILINE):
        found = re.fullmatch(r"[\w ]+, (\w+)\((.+)\)", line)
        if found is None or found[1] == "sizeof":
            continue
        arguments = re.split(r", (?![^()]*\))", found[2])
        call = (found[1], *(None if NUMBER.fullmatch(it) else it for it in arguments))
        if None in call and call not in seen:
            seen.add(call)
            yield call


def types(call):
    """Returns a macro's name, and the combinations of types that it covers."""
    name, count = call[0], call.count(None)
    is_overloaded = not name.startswith("__") or name.endswith("_sync")
    # ROCm 6 and 7 have ill-formed templates for this function.
    if count == 1 or (is_overloaded and name != "remquo"):
        return f"COMBINED{count}", list(itertools.product(COMBINED[count], repeat=count))
    return f"ALIKE{count}", [(it,) * count for it in ALIKE]


def program():
    """Returns the text, and the call and types of each element of its table."""
    named = [f"NAMED({name}, {i + 1})" for i, name in enumerate(NAMES)]
    lines = [START, "NAMED(nothing, 0)", *named]
    rows, cells, macros = [], [], {}
    for i, call in enumerate(calls()):
        macro, combinations = types(call)
        letters = "ABCD"[: call.count(None)]
        given = iter(letters)
        arguments = (f"any<{next(given)}>()" if it is None else it for it in call[1:])
        head = f"template <{', '.join(f'class {it}' for it in letters)}> __host__ __device__"
        lines.append(f"{head} auto call{i}(int) -> decltype({call[0]}({', '.join(arguments)}));")
        lines.append(f"{head} nothing call{i}(long);")
        of = [f"TYPE(name<{', '.join(it)}>(0))" for it in combinations]
        macros[macro] = f"#define {macro}(name) {' '.join(of)}"
        rows.append(f"{macro}(call{i})")
        cells += ((call, it) for it in combinations)
    # HIP's templates must be instantiated outside of device functions.
    lines.append("#if defined(__HIP__) && !defined(__GPUARRAY_HOST__)")
    numbers = [*SMALL, *NUMBERS]
    lines += (f"typedef __hip::__promote<{it}>::type of{i};" for i, it in enumerate(numbers))
    lines += ("#endif", *macros.values(), 'extern "C" { extern __device__ unsigned char table[]; }')
    table = "\n".join(rows)
    return "\n".join([*lines, f"__device__ unsigned char table[] = {{\n{table}\n}};"]), cells


PROGRAM, CELLS = program()


def of_nvrtc():
    """Returns the table in NVRTC's code, for which a GPU is not needed."""
    spec = find_spec("nvidia.cuda_nvrtc")
    if spec is None or spec.submodule_search_locations is None:
        pytest.skip("the package of NVRTC is not installed")
    (folder,) = spec.submodule_search_locations
    nvrtc = ctypes.CDLL(str(Path(folder) / "lib/libnvrtc.so.12"))
    made = ctypes.c_void_p()
    text = PROGRAM.encode()
    assert nvrtc.nvrtcCreateProgram(ctypes.byref(made), text, b"kernel.cu", 0, None, None) == 0
    options = (ctypes.c_char_p * 2)(b"-arch=sm_90", b"-std=c++17")
    status, size = nvrtc.nvrtcCompileProgram(made, 2, options), ctypes.c_size_t()
    kind = "CUBIN" if status == 0 else "ProgramLog"
    getattr(nvrtc, f"nvrtcGet{kind}Size")(made, ctypes.byref(size))
    code = ctypes.create_string_buffer(size.value)
    getattr(nvrtc, f"nvrtcGet{kind}")(made, code)
    assert status == 0, code.value.decode()
    return symbols(code.raw)["table"]


def differences(table):
    """Returns the calls that CUDA C supports and whose result types differ, with both types."""
    expected = of_nvrtc()
    assert len(expected) == len(table) == len(CELLS)
    assert sum(map(bool, expected)) > 9000
    names = dict(enumerate(["nothing", *NAMES]))
    return [
        (call, types, names[ours], names[theirs])
        for (call, types), ours, theirs in zip(CELLS, table, expected, strict=True)
        if theirs and ours != theirs
    ]


@pytest.mark.filterwarnings("ignore:The CUDA compiler succeeded")
def test_results_have_the_types_of_cuda():
    module = SourceModule(PROGRAM, no_extern_c=True)
    address, size = module.get_global("table")
    table = np.empty(size, np.uint8)
    driver.memcpy_dtoh(table, address)
    assert [it for it in differences(table.tobytes()) if not is_of_hip(*it)] == []


def is_of_hip(call, types, ours, theirs):
    """Returns true if AMD's devices have another type on purpose: masks of whole wavefronts, or a
    bool that nvcc also returns."""
    of_mask = call[0].endswith("_sync") and types[0] in [*NUMBERS[2:6], "double"]
    return BACKEND == "hip" and (of_mask or (ours, theirs) == ("bool", "int"))


EXACT = """
template <class T, class U> struct same { enum { value = 0 }; };
template <class T> struct same<T, T> { enum { value = 1 }; };
#define IS(T, expected, ...)                                                                    \\
    static_assert((__VA_ARGS__) == expected, #__VA_ARGS__);                                     \\
    static_assert(same<decltype(__VA_ARGS__), T>::value, #__VA_ARGS__);
IS(unsigned int, 4294967295u, max(-1, 3u))
IS(unsigned int, 3u, min(3u, -1))
IS(int, -1, min((short)-1, (unsigned char)3))
IS(unsigned int, 5u, min('\\7', 5u))
IS(unsigned long, 9007199254740993ul, min(9007199254740993l, 9007199254740995ul))
IS(unsigned long, 18446744073709551615ul, max(-1l, 9007199254740995ul))
IS(unsigned long long, 9007199254740995ull, max(9007199254740993ll, 9007199254740995ull))
enum colour { red, green };
__global__ void use(int *x, unsigned n, unsigned long many, float f) {
    const unsigned char byte = x[1];
    x[min(threadIdx.x, n - 1)] = max(blockDim.x, x[0]) % 7 + (min(green, n) & 3);
    x[max(n, threadIdx.x)] = 2.0f * (__popc(n) - 3) < 0 ? min(byte, n) << 1 : (max(x[3], byte) | 4);
    x[5] = min(1.5f, f) + min(2.5, f) + __ffs(many) + __ffsll(x[2]) + __popcll(many) - 64;
    x[6] = atan2(n, f) + pow(x[7], f) + fmax(f, many) + fma(n, f, x[4]) + fma(f, n, many);
    x[6] += fma(f, f, n);
    x[7] = __hadd(x[1], x[2]) + __fns(n, 0, 3) + __umul24(n, 7) + jn(x[6], f) + exp10(f) + rsqrt(f);
    sincos(f, &f, &f);
    atomicMin((long long *)x, (long long)n);
    atomicMax((long long *)x, -1LL);
    atomicCAS((unsigned short *)x + 1, n, byte);
}
"""


@pytest.mark.skipif(BACKEND != "hip", reason="devices of HIP are needed to ask its compiler")
@pytest.mark.parametrize(("generation", "target"), COMPILERS)
def test_results_have_the_types_of_cuda_on_amd(tmp_path, generation, target):
    code = compiled(generation, target, tmp_path, PROGRAM, no_extern_c=True)
    found = [it for it in differences(symbols(code)["table"]) if not is_of_hip(*it)]
    assert found == []
    compiled(generation, target, tmp_path, EXACT, no_extern_c=True)


def test_extremes_of_mixed_integers_are_exact():
    SourceModule(EXACT, no_extern_c=True)
