"""The fake drivers through ctypes, for their own tests."""

from __future__ import annotations

import ctypes
import os
import pathlib
import signal
import subprocess
import sys
import textwrap
import unittest

FOLDER = pathlib.Path(os.environ["DOUBLE"]) / "cuda"
driver = ctypes.CDLL(str(FOLDER / "libcuda.so.1"))
rtc = ctypes.CDLL(str(FOLDER / "libnvrtc.so"))
for library in (driver, rtc):
    library.double_calls.restype = ctypes.c_uint64
    library.double_live.restype = ctypes.c_uint64
    library.double_log.restype = ctypes.c_size_t

HOST_FUNCTION = ctypes.CFUNCTYPE(None, ctypes.c_void_p)
CALLBACK = ctypes.CFUNCTYPE(None, ctypes.c_uint64, ctypes.c_int, ctypes.c_void_p)


def out(kind=ctypes.c_uint64, value=0):
    return kind(value)


def call(name, *arguments, library=driver):
    """Returns the status of a call; passes integers in 64 bits, and ctypes objects by reference."""
    converted = []
    for argument in arguments:
        if isinstance(argument, int):
            argument = ctypes.c_int64(argument)
        elif isinstance(argument, (ctypes._SimpleCData, ctypes.Structure)) and not isinstance(
            argument, (ctypes.c_char_p, ctypes.c_void_p)
        ):
            argument = ctypes.byref(argument)
        converted.append(argument)
    return getattr(library, name)(*converted)


def make(name, *arguments, kind=ctypes.c_uint64, library=driver):
    """Returns the first output of a call that must succeed."""
    value = kind()
    status = call(name, value, *arguments, library=library)
    assert status == 0, f"{name}: {status}"
    return value.value


def compile_program(source, options=(), names=(), headers=()):
    """Compiles a program with nvrtcCompileProgram; returns handle, status and log."""
    count = len(headers)
    texts = (ctypes.c_char_p * max(count, 1))(*[text.encode() for _, text in headers])
    titles = (ctypes.c_char_p * max(count, 1))(*[name.encode() for name, _ in headers])
    program = ctypes.c_uint64()
    source = textwrap.dedent(source).encode()
    call("nvrtcCreateProgram", program, source, b"test.cu", count, texts, titles, library=rtc)
    for name in names:
        assert rtc.nvrtcAddNameExpression(program, name.encode()) == 0
    options = [option.encode() for option in options or ("-arch=sm_90",)]
    array = (ctypes.c_char_p * len(options))(*options)
    status = rtc.nvrtcCompileProgram(program, len(options), array)
    size = ctypes.c_size_t()
    rtc.nvrtcGetProgramLogSize(program, ctypes.byref(size))
    log = ctypes.create_string_buffer(size.value)
    rtc.nvrtcGetProgramLog(program, log)
    return program, status, log.value.decode()


def output(program, what="CUBIN"):
    size = ctypes.c_size_t()
    getattr(rtc, f"nvrtcGet{what}Size")(program, ctypes.byref(size))
    data = ctypes.create_string_buffer(size.value)
    getattr(rtc, f"nvrtcGet{what}")(program, data)
    return data.raw


def load(source, **keywords):
    program, status, log = compile_program(source, **keywords)
    assert status == 0, log
    module = make("cuModuleLoadData", output(program))
    rtc.nvrtcDestroyProgram(ctypes.byref(program))
    return module


def kernel(module, name):
    return make("cuModuleGetFunction", module, name.encode())


def launch(function, *arguments, grid=(1, 1, 1), block=(1, 1, 1), shared=0, stream=0):
    """Launches a kernel with arguments that are ctypes objects; integers are addresses."""
    values = [ctypes.c_uint64(it) if isinstance(it, int) else it for it in arguments]
    pointers = (ctypes.c_void_p * max(len(values), 1))(*[ctypes.addressof(it) for it in values])
    return call("cuLaunchKernel", function, *grid, *block, shared, stream, pointers, None)


def read(address, kind, count=1):
    """Returns the elements at a device address, after the legacy stream's work."""
    array = (kind * count)()
    status = call("cuMemcpyDtoH_v2", array, address, ctypes.sizeof(array))
    assert status == 0, status
    return list(array)


def write(address, kind, values):
    array = (kind * len(values))(*values)
    status = call("cuMemcpyHtoD_v2", address, array, ctypes.sizeof(array))
    assert status == 0, status


def run_python(code, **environment):
    """Runs code in a separate process, with all names of this module."""
    code = "from double import *\n" + textwrap.dedent(code)
    here = str(pathlib.Path(__file__).parent)
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "PYTHONPATH": here, **environment},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


class DriverTest(unittest.TestCase):
    """Runs each test in a fresh primary context, and checks that nothing of it is left."""

    def setUp(self):
        driver.double_fail(None, ctypes.c_uint64(0), 0, 0)
        assert driver.cuInit(0) == 0
        self.context = make("cuDevicePrimaryCtxRetain", 0)
        self.ok("cuCtxSetCurrent", self.context)
        driver.double_reset_calls()

    def tearDown(self):
        driver.double_fail(None, ctypes.c_uint64(0), 0, 0)
        driver.cuCtxSetCurrent(None)
        while driver.cuDevicePrimaryCtxRelease_v2(0) == 0:
            pass
        driver.cuDevicePrimaryCtxReset_v2(0)
        for kind in (b"streams", b"events", b"modules", b"graphs", b"graph_execs", b"queued"):
            assert driver.double_live(kind) == 0, kind

    def ok(self, name, *arguments):
        self.fails(0, name, *arguments)

    def fails(self, status, name, *arguments):
        assert call(name, *arguments) == status, name

    def ends(self, kind, name, *arguments):
        """Checks that the call ends the process with a message about the kind of handle. It
        runs in a clone that the fake driver takes for this process, so no fork handler
        runs."""
        reader, writer = os.pipe()
        clone = {"x86_64": 56}.get(os.uname().machine, 220)
        child = ctypes.CDLL(None).syscall(
            clone, ctypes.c_long(signal.SIGCHLD), None, None, None, None
        )
        if child == 0:
            os.dup2(writer, 2)
            call(name, *arguments)
            os._exit(0)
        os.close(writer)
        with os.fdopen(reader) as said:
            text = said.read()
        ended = os.waitpid(child, 0)[1]
        assert os.WIFSIGNALED(ended), (name, ended, text)
        assert os.WTERMSIG(ended) == signal.SIGABRT, (name, ended, text)
        assert f"{name}: {kind} " in text, text

    def allocate(self, size):
        return make("cuMemAlloc_v2", size)

    def stream(self, blocking=False):
        return make("cuStreamCreate", 0 if blocking else 1)

    def event(self, flags=2):
        return make("cuEventCreate", flags)

    def pinned(self, size):
        return make("cuMemHostAlloc", size, 0)
