"""HIP: the differences of its generations, its compiler, and forwarding."""

import ctypes
import os
import pathlib
import subprocess
import sys
import textwrap
import unittest

from double import call

FOLDER = pathlib.Path(os.environ["DOUBLE"])
SIZE = ctypes.c_uint64


class Pointer(ctypes.Structure):
    """hipPointerAttribute_t."""

    _fields_ = [
        ("type", ctypes.c_uint),
        ("device", ctypes.c_int),
        ("device_pointer", SIZE),
        ("host_pointer", SIZE),
        ("is_managed", ctypes.c_int),
        ("flags", ctypes.c_uint),
    ]


class Hip:
    """One generation's runtime and compiler."""

    def __init__(self, generation):
        folder = FOLDER / f"hip{generation}"
        self.generation = generation
        self.driver = ctypes.CDLL(str(folder / f"libamdhip64.so.{generation}"))
        inside = folder / f"libhiprtc.so.{generation}"
        self.rtc = ctypes.CDLL(str(inside)) if inside.exists() else self.driver
        for library in (self.driver, self.rtc):
            library.double_calls.restype = SIZE
            library.double_live.restype = SIZE
        self.rtc.hiprtcGetErrorString.restype = ctypes.c_char_p
        self.driver.hipGetErrorName.restype = ctypes.c_char_p
        self.driver.hipGetErrorString.restype = ctypes.c_char_p

    def __call__(self, name, *arguments):
        return call(name, *arguments, library=self.driver)

    def make(self, name, *arguments, kind=SIZE):
        value = kind()
        status = self(name, value, *arguments)
        assert status == 0, f"{name}: {status}"
        return value.value

    def compile(self, source, *options):
        """Returns status, log and code."""
        program = SIZE()
        rtc, text = self.rtc, textwrap.dedent(source).encode()
        assert rtc.hiprtcCreateProgram(ctypes.byref(program), text, b"k.hip", 0, None, None) == 0
        options = [option.encode() for option in options]
        array = (ctypes.c_char_p * max(len(options), 1))(*options)
        status = rtc.hiprtcCompileProgram(program, len(options), array)
        outputs = []
        for what in ("ProgramLog", "Code") if status == 0 else ("ProgramLog",):
            size = SIZE()
            assert getattr(rtc, f"hiprtcGet{what}Size")(program, ctypes.byref(size)) == 0
            text = ctypes.create_string_buffer(size.value)
            assert getattr(rtc, f"hiprtcGet{what}")(program, text) == 0
            outputs.append(text)
        assert rtc.hiprtcDestroyProgram(ctypes.byref(program)) == 0
        return status, outputs[0].value.decode(), outputs[-1].raw

    def launch(self, code, name, *arguments, block=1):
        module = self.make("hipModuleLoadDataEx", code, 0, None, None)
        function = self.make("hipModuleGetFunction", module, name)
        values = [ctypes.c_uint64(it) for it in arguments]
        pointers = (ctypes.c_void_p * max(len(values), 1))(*map(ctypes.addressof, values))
        grid = (1, 1, 1, block, 1, 1)
        status = self("hipModuleLaunchKernel", function, *grid, 0, 0, pointers, None)
        if status == 0:
            status = self("hipDeviceSynchronize")
        assert self("hipModuleUnload", module) == 0
        return status

    def read(self, address, kind=ctypes.c_int):
        value = kind()
        assert self("hipMemcpyDtoH", value, address, ctypes.sizeof(value)) == 0
        return value.value


ALL = tuple(Hip(generation) for generation in (5, 6, 7))
TARGET = "--offload-arch=gfx90a:sramecc+:xnack-"
BALLOT = """
    extern "C" __global__ void vote(unsigned long long* out, int* width) {
        const unsigned long long all = __ballot(threadIdx.x % 3 == 0);
        if (threadIdx.x == 40) *out = all;
        if (threadIdx.x == 0) *width = warpSize;
    }
"""


class Generations(unittest.TestCase):
    def tearDown(self):
        for hip in ALL:
            hip.driver.double_fail(None, SIZE(0), 0, 0)
            assert hip("hipDeviceReset") == 0
            for kind in (b"modules", b"streams", b"events", b"device_bytes", b"queued"):
                assert hip.driver.double_live(kind) == 0, (hip.generation, kind)

    def test_a_thread_needs_no_context(self):
        for hip in ALL:
            address = hip.make("hipMalloc", 64)
            assert hip("hipMemsetD32Async", address, 7, 16, 0) == 0
            assert hip.read(address) == 7
            assert hip("hipFree", address) == 0

    def test_nothing_is_allocated_and_freed(self):
        for hip in ALL:
            for allocate, free in (("hipMalloc", "hipFree"), ("hipHostMalloc", "hipHostFree")):
                address = SIZE(1)
                assert hip(allocate, address, 0, 0) == 0
                assert address.value == 0
                assert hip(free, None) == 0

    def test_versions(self):
        versions = [hip.make("hipRuntimeGetVersion", kind=ctypes.c_int) for hip in ALL]
        assert [version // 10_000_000 for version in versions] == [5, 6, 7]

    def test_what_a_generation_lacks(self):
        for name in ("hipLaunchHostFunc", "hipGetDevicePropertiesR0600", "hipDeviceSetLimit"):
            assert [hasattr(hip.driver, name) for hip in ALL] == [False, True, True], name
        assert [hasattr(hip.driver, "hiprtcVersion") for hip in ALL] == [True, False, False]

    def test_how_long_a_failure_is_remembered(self):
        for hip in ALL:
            assert hip("hipSetDevice", 99) == 101
            assert hip("hipSetDevice", 0) == 0
            assert hip("hipGetLastError") == (101 if hip.generation == 7 else 0)
            assert hip("hipGetLastError") == 0

    def test_pointers(self):
        types = {5: (1, 0), 6: (2, 1), 7: (2, 1)}  # of device and host memory
        for hip in ALL:
            device, host = hip.make("hipMalloc", 64), hip.make("hipHostMalloc", 64, 0)
            found = Pointer()
            for address, kind in zip((device, host), types[hip.generation], strict=True):
                assert hip("hipPointerGetAttributes", found, address + 8) == 0
                assert (found.type, found.device_pointer) == (kind, address + 8)
            assert hip("hipFree", device) == 0
            assert hip("hipHostFree", host) == 0
            unknown = hip("hipPointerGetAttributes", found, device)
            assert unknown == (0 if hip.generation == 7 else 1)
            assert found.device_pointer == 0

    def test_flags_of_shared_memory(self):
        handle = ctypes.c_char * 64
        for hip in ALL:
            wrong = 0 if hip.generation > 5 else 1
            shared = handle()
            memory = hip.make("hipMalloc", 64)
            assert hip("hipIpcGetMemHandle", shared, memory) == 0

            class Handle(ctypes.Structure):
                _fields_ = [("bytes", handle)]

            opened = hip.driver.hipIpcOpenMemHandle(
                ctypes.byref(SIZE()), Handle(shared.raw), ctypes.c_uint(wrong)
            )
            assert opened == 1
            assert hip("hipFree", memory) == 0

    def test_names_of_failures(self):
        for hip in ALL:
            assert hip.driver.hipGetErrorName(2) == b"hipErrorOutOfMemory"
            assert hip.driver.hipGetErrorName(12345) == b"hipErrorUnknown"
            assert hip.driver.hipGetErrorString(12345) == b"unknown error"
            assert hip.rtc.hiprtcGetErrorString(6) == b"HIPRTC_ERROR_COMPILATION"

    def test_too_many_threads(self):
        for hip in ALL:
            code = hip.compile('extern "C" __global__ void f() {}', TARGET)[2]
            expected = 9 if hip.generation == 7 else 1
            assert hip.launch(code, b"f", block=1025) == expected

    def test_failures_on_request_and_counts(self):
        for hip in ALL:
            hip.driver.double_reset_calls()
            hip.driver.double_fail(b"hipMalloc", SIZE(1), 2, 1)
            assert hip("hipFree", hip.make("hipMalloc", 64)) == 0
            assert hip("hipMalloc", SIZE(), 64) == 2
            assert hip("hipFree", hip.make("hipMalloc", 64)) == 0
            assert hip.driver.double_calls(b"hipMalloc") == 3
            assert hip.driver.double_calls(b"*") == 5


class Compiling(unittest.TestCase):
    def test_wavefronts(self):
        for hip in ALL:
            status, log, code = hip.compile(BALLOT, TARGET)
            assert status == 0, log
            out, width = hip.make("hipMalloc", 8), hip.make("hipMalloc", 4)
            assert hip.launch(code, b"vote", out, width, block=64) == 0
            assert hip.read(width) == 64
            assert hip.read(out, SIZE) == sum(1 << lane for lane in range(0, 64, 3))
            assert hip("hipFree", out) == 0
            assert hip("hipFree", width) == 0

    def test_targets(self):
        hip, source = ALL[1], 'extern "C" __global__ void f() {}'
        assert hip.compile(source)[:2] == (6, "")  # like hipRTC without a target
        for target in ("gfx90a", "gfx90a:xnack-", "gfx90a:sramecc+:xnack-"):
            assert hip.launch(hip.compile(source, f"--offload-arch={target}")[2], b"f") == 0
        for target in ("gfx1030", "gfx90a:xnack+"):
            code = hip.compile(source, f"--offload-arch={target}")[2]
            assert hip("hipModuleLoadDataEx", SIZE(), code, 0, None, None) == 209, target
        for target in ("sm_90", "gfx", "gfx90a:fast+"):
            status, log, _ = hip.compile(source, f"--offload-arch={target}")
            assert status == 6
            assert target in log

    def test_logs(self):
        for hip in ALL:
            status, log, _ = hip.compile("\nint x = y;\n", TARGET)
            assert status == 6
            assert "CompileSource:2: error: 'y'" in log, log
            status, log, _ = hip.compile("", TARGET, "--nonsense")
            assert status == 6
            assert "unknown argument: '--nonsense'" in log

    def test_macros(self):
        source = """
            #include <hip/hip_runtime.h>
            #if !defined(__HIP__) || !defined(__HIPCC_RTC__) || defined(__CUDACC__)
            #error
            #endif
            #ifndef __device__
            #error
            #endif
        """
        for hip in ALL:
            status, log, _ = hip.compile(source, TARGET, "-O3", "-ffp-contract=off", "-std=c++17")
            assert status == 0, log


class Forwarding(unittest.TestCase):
    """Forwarding to the fake libcuda and NVRTC, which stand for real ones."""

    def test_work_is_done_beneath(self):
        code = """
            import test_hip
            hip = test_hip.ALL[1]
            source = 'extern "C" __global__ void f(int* p) { *p = __CUDA_ARCH__ + warpSize; }'
            properties = (test_hip.ctypes.c_char * 1472)()
            assert hip("hipGetDevicePropertiesR0600", properties, 0) == 0
            target = properties[1160:1180].split(b"\\0")[0].decode()
            assert target == "gfx-sm90", target
            status, log, code = hip.compile(source, f"--offload-arch={target}")
            assert status == 0, log
            memory = hip.make("hipMalloc", 4)
            assert hip.launch(code, b"f", memory) == 0
            assert hip.read(memory) == 932
            cuda = test_hip.ctypes.CDLL(test_hip.os.environ["DOUBLE_FORWARD"])
            assert cuda.double_calls(b"cuMemAlloc_v2") == 1
            assert cuda.double_calls(b"cuLaunchKernel") == 1
        """
        cuda = FOLDER / "cuda"
        done = subprocess.run(
            [sys.executable, "-c", textwrap.dedent(code)],
            env={
                **os.environ,
                "PYTHONPATH": str(pathlib.Path(__file__).parent),
                "DOUBLE_FORWARD": str(cuda / "libcuda.so.1"),
                "DOUBLE_NVRTC": str(cuda / "libnvrtc.so.12"),
            },
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr
