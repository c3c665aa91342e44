"""Devices, streams, events, statuses, and the management library."""

from __future__ import annotations

import copy
import ctypes
import ctypes.util
import pickle
import shutil
import subprocess
import threading

import numpy as np
import pytest
from device import BACKEND, DEVICE
from processes import run_python

import PybindGPU._management as management
import PyGPU as gpuarray
from pygpu import driver

cudaError_t = gpuarray.cudaError_t
nvmlReturn_t = gpuarray.nvmlReturn_t
INVALID_VALUE, INVALID_DEVICE, INVALID_HANDLE = 1, 101, 400
RUNTIME = "hip" if BACKEND == "hip" else "cuda"


# -- statuses -----------------------------------------------------------------------------------


def test_a_status_is_its_number():
    status = cudaError_t(101)
    assert (status.as_int(), int(status), status.code) == (101, 101, 101)
    assert status == cudaError_t(101) == 101
    assert status != cudaError_t(0)
    assert {status: "there"}[101] == "there"
    assert not status
    assert cudaError_t(0)
    assert repr(status) == "<CudaError: 'code=101'>"
    assert repr(nvmlReturn_t(0)) == "<NvmlReturn: 'code=0'>"
    for same in (copy.copy(status), pickle.loads(pickle.dumps(status))):
        assert (type(same), same) == (cudaError_t, 101)
    with pytest.raises(TypeError, match="code is of type str"):
        cudaError_t("1")


def test_names_are_those_of_the_vendors_runtime_library():
    assert gpuarray.cudaGetErrorName(cudaError_t(0)) == f"{RUNTIME}Success"
    assert gpuarray.cudaGetErrorName(cudaError_t(101)) == f"{RUNTIME}ErrorInvalidDevice"
    assert gpuarray.cudaGetErrorString(cudaError_t(0)) == "no error"
    assert "device" in gpuarray.cudaGetErrorString(cudaError_t(101))
    with pytest.raises(TypeError, match="error is of type int"):
        gpuarray.cudaGetErrorName(101)


def test_numbers_that_nobody_has_named_are_kept():
    status = cudaError_t(12345)
    assert (status.name, int(status)) == ("status 12345", 12345)
    assert gpuarray.cudaGetErrorString(status)
    with pytest.raises(driver.Error, match="12345") as raised:
        status.raise_for_status()
    assert raised.value.status == 12345


def test_raise_for_status():
    cudaError_t(0).raise_for_status()
    nvmlReturn_t(0).raise_for_status()
    for code, kind in ((1, ValueError), (2, MemoryError), (801, NotImplementedError)):
        with pytest.raises(kind) as raised:
            cudaError_t(code).raise_for_status()
        assert raised.value.status == code
    with pytest.raises(driver.LogicError, match="NVML_ERROR_UNINITIALIZED") as raised:
        nvmlReturn_t(1).raise_for_status()
    assert raised.value.status == 1


def test_the_last_error_is_told_once_and_to_its_thread():
    gpuarray.cudaGetLastError()
    assert gpuarray.cudaGetLastError() == 0
    assert gpuarray.cudaSetDevice(99) == INVALID_DEVICE
    assert gpuarray.cudaGetDevice()[1] == 0
    seen = []
    thread = threading.Thread(target=lambda: seen.append(gpuarray.cudaGetLastError()))
    thread.start()
    thread.join()
    assert seen == [0]
    assert gpuarray.cudaGetLastError() == INVALID_DEVICE
    assert gpuarray.cudaGetLastError() == 0


def test_a_failure_can_be_made_loud(monkeypatch):
    array = gpuarray.DeviceArray_int64(np.arange(6))
    monkeypatch.setenv("PYGPU_STATUS", "raise")
    with pytest.raises(driver.LogicError, match="call allocate"):
        array.to_device()
    assert array.last_status() == INVALID_VALUE
    with pytest.raises(driver.Error):
        gpuarray.cudaSetDevice(99)
    monkeypatch.setenv("PYGPU_STATUS", "warn")
    with pytest.warns(gpuarray.StatusWarning, match="call allocate"):
        assert array.to_device() == INVALID_VALUE
    monkeypatch.setenv("PYGPU_STATUS", "quiet")
    assert array.to_device() == INVALID_VALUE
    monkeypatch.setenv("PYGPU_STATUS", "raise")
    assert array.allocate()
    assert array.to_device()


def test_other_modes_are_refused_at_once():
    done = run_python("import PyGPU", check=False, PYGPU_STATUS="loud")
    assert done.returncode == 1
    assert "PYGPU_STATUS is 'loud'; allowed are quiet, warn, raise" in done.stderr


def test_without_a_backend_every_call_says_so():
    code = """
        import PyGPU as gpu
        assert gpu.cudaGetDeviceCount() == (0, 100), gpu.cudaGetDeviceCount()
        assert gpu.cudaSetDevice(0) == 100
        da = gpu.DeviceArray_float32([3])
        assert da.last_status() == 100 and da.allocate() == 1
        assert gpu.GPUArray((3,)).last_status == 100
        event, stream = gpu.cudaEvent_t(), gpu.cudaStream_t()
        assert event.last_status() == stream.last_status() == 100
        assert gpu.cudaEventRecord(event, stream) == 400
        assert gpu.cudaDeviceProp(0).name() == "" and not gpu.use_hip
    """
    missing = {"PYGPU_CUDA_LIBRARY": "/nonexistent/libcuda.so.1", "PYGPU_BACKEND": "cuda"}
    run_python(code, **missing)


def test_the_runtime_librarys_own_names():
    """The table's names agree with NVIDIA's library, if it is installed."""
    found = ctypes.util.find_library("cudart")
    if found is None:
        pytest.skip("no libcudart here to compare with")
    library = ctypes.CDLL(found)
    library.cudaGetErrorName.restype = ctypes.c_char_p
    from pygpu import _core

    for code in range(1100):
        name = library.cudaGetErrorName(code).decode()
        if name != "unrecognized error code":
            assert _core.status_names("cuda", code)[1] == name


# -- devices ------------------------------------------------------------------------------------


def test_devices_are_counted_and_chosen():
    count, status = gpuarray.cudaGetDeviceCount()
    assert status
    assert count == driver.Device.count()
    device, status = gpuarray.cudaGetDevice()
    assert (device, status) == (0, 0)
    for wrong in (count, -1, 10**6, -(2**40)):
        assert gpuarray.cudaSetDevice(wrong) == INVALID_DEVICE, wrong
    for number in range(count):
        assert gpuarray.cudaSetDevice(number)
        assert gpuarray.cudaGetDevice() == (number, 0)
        array = gpuarray.to_gpu(np.arange(3))
        np.testing.assert_array_equal(array.get(), np.arange(3))
    assert gpuarray.cudaSetDevice(0)
    assert gpuarray.cudaDeviceSynchronize()


def test_device_properties_are_the_devices():
    properties = gpuarray.cudaDeviceProp(0)
    assert properties.last_status()
    assert properties.name() == DEVICE.name()
    domain, bus, device = DEVICE.pci_bus_id().split(".")[0].split(":")
    assert properties.pciDomainID() == int(domain, 16)
    assert properties.pciBusID() == int(bus, 16)
    assert properties.pciDeviceID() == int(device, 16)
    if BACKEND != "host":
        assert len(bytes.fromhex(properties.uuid())) == 16
    missing = gpuarray.cudaDeviceProp(99)
    assert missing.last_status() == INVALID_DEVICE
    assert (missing.name(), missing.pciBusID()) == ("", 0)
    assert gpuarray.cudaDeviceProp(-1).last_status() == INVALID_DEVICE


def test_the_host_has_nothing_to_reset():
    if BACKEND != "host":
        pytest.skip("a GPU is reset: see below")
    array = gpuarray.to_gpu(np.arange(3))
    assert gpuarray.cudaDeviceReset() == 801
    assert array.to_host()


@pytest.mark.skipif(BACKEND == "host", reason="the host has nothing to reset: see above")
def test_a_reset_ends_what_was_made_before():
    code = """
        import gc
        import numpy as np
        import PyGPU as gpu

        old, event = gpu.to_gpu(np.arange(6)), gpu.cudaEvent_t()
        memory = gpu.DeviceAllocator_int64()
        memory.allocate(6)
        raw = gpu.DeviceArray_int64(np.zeros(6, np.int64).ctypes.data, int(memory.ptr()), [6])
        assert gpu.cudaDeviceReset()
        for call in (old.to_device, old.to_host, lambda: old.set_val(0, 1)):
            assert not call(), call
        assert not gpu.cudaEventRecord(event)
        del old, event, memory, raw
        gc.collect()
        new = gpu.to_gpu(np.arange(6))
        assert new.last_status and new.get().tolist() == [0, 1, 2, 3, 4, 5]
        assert gpu.cudaEventRecord(gpu.cudaEvent_t())
    """
    run_python(code)


# -- streams and events -------------------------------------------------------------------------


@pytest.mark.parametrize("flags", [(), (0,), (1,)])
def test_events_time_what_runs_between_them(flags):
    start, end = gpuarray.cudaEvent_t(*flags), gpuarray.cudaEvent_t(*flags)
    stream = gpuarray.cudaStream_t()
    assert start.last_status()
    assert stream.last_status()
    for on in ((), (stream,)):
        assert gpuarray.cudaEventRecord(start, *on)
        assert gpuarray.cudaEventRecord(end, *on)
        assert gpuarray.cudaEventSynchronize(end)
        milliseconds, status = gpuarray.cudaEventElapsedTime(start, end)
        assert status
        assert milliseconds >= 0


def test_events_that_cannot_be_timed():
    start, end = gpuarray.cudaEvent_t(), gpuarray.cudaEvent_t()
    assert gpuarray.cudaEventElapsedTime(start, end) == (0.0, INVALID_HANDLE)
    assert end.last_status() == INVALID_HANDLE
    quick = gpuarray.cudaEvent_t(2)
    assert gpuarray.cudaEventRecord(quick)
    assert gpuarray.cudaEventSynchronize(quick)
    assert gpuarray.cudaEventElapsedTime(quick, quick)[1] == INVALID_HANDLE


def test_handles_are_the_drivers():
    event, stream = gpuarray.cudaEvent_t(), gpuarray.cudaStream_t(1, 0)
    assert int(event.get()) != 0
    assert int(stream.get()) != 0
    assert not stream.get().is_safe()
    assert driver.Stream.from_handle(int(stream.get())).handle == int(stream.get())


def test_flags_that_are_none():
    for broken in (gpuarray.cudaEvent_t(64), gpuarray.cudaStream_t(8), gpuarray.cudaEvent_t(-1)):
        assert broken.last_status() == INVALID_VALUE
        assert int(broken.get()) == 0
    event, broken = gpuarray.cudaEvent_t(), gpuarray.cudaEvent_t(64)
    assert gpuarray.cudaEventRecord(broken) == INVALID_HANDLE
    assert gpuarray.cudaEventRecord(event, gpuarray.cudaStream_t(8)) == INVALID_HANDLE
    assert gpuarray.cudaEventSynchronize(broken) == INVALID_HANDLE
    assert gpuarray.cudaEventElapsedTime(event, broken) == (0.0, INVALID_HANDLE)


def test_arguments_of_other_classes():
    event, stream = gpuarray.cudaEvent_t(), gpuarray.cudaStream_t()
    with pytest.raises(TypeError, match="event is of type cudaStream_t"):
        gpuarray.cudaEventRecord(stream)
    with pytest.raises(TypeError, match="stream is of type cudaEvent_t"):
        gpuarray.cudaEventRecord(event, event)
    with pytest.raises(TypeError):
        gpuarray.cudaSetDevice("0")
    with pytest.raises(TypeError):
        gpuarray.cudaStream_t("0")


# -- the management library -----------------------------------------------------------------------

NVML = """
#include <stddef.h>
typedef struct { unsigned gpu, memory; } Rates;
typedef struct { unsigned long long total, free, used; } Memory;
static int opened;
int nvmlInit_v2(void) { ++opened; return 0; }
int nvmlShutdown(void) { return opened-- > 0 ? 0 : 1; }
const char *nvmlErrorString(int code) { return code == 2 ? "Invalid Argument" : "Other"; }
int nvmlDeviceGetHandleByIndex_v2(unsigned index, void **device) {
    *device = &opened;
    return index < 1 ? 0 : 2;
}
int nvmlDeviceGetUtilizationRates(void *device, Rates *rates) {
    rates->gpu = 12, rates->memory = 34;
    return device == &opened ? 0 : 999;
}
int nvmlDeviceGetMemoryInfo(void *device, Memory *memory) {
    memory->total = 1000, memory->free = 600, memory->used = 400;
    return device == &opened ? 0 : 999;
}
"""
ROCM = """
typedef unsigned long long u64;
int rsmi_init(u64 flags) { return flags ? 1 : 0; }
int rsmi_shut_down(void) { return 0; }
int rsmi_dev_busy_percent_get(unsigned i, unsigned *p) { *p = 12; return i ? 7 : 0; }
int rsmi_dev_memory_busy_percent_get(unsigned i, unsigned *p) { *p = 34; return i ? 7 : 0; }
int rsmi_dev_memory_total_get(unsigned i, int kind, u64 *b) { *b = 1000; return i || kind ? 7 : 0; }
int rsmi_dev_memory_usage_get(unsigned i, int kind, u64 *b) { *b = 400; return i || kind ? 7 : 0; }
"""
AMD = """
typedef unsigned long long u64;
typedef struct { unsigned graphics, memory, media, reserved[13]; } Activity;
static int one, two;
int amdsmi_init(u64 flags) { return flags == 2 ? 0 : 1; }
int amdsmi_shut_down(void) { return 0; }
int amdsmi_get_socket_handles(unsigned *n, void **h) { *n = 1; if (h) h[0] = &one; return 0; }
int amdsmi_get_processor_handles(void *s, unsigned *n, void **h) {
    *n = 1;
    if (h) h[0] = &two;
    return s == &one ? 0 : 1;
}
int amdsmi_get_gpu_activity(void *d, Activity *a) {
    *a = (Activity){12, 34, 56, {0}};
    return d == &two ? 0 : 1;
}
int amdsmi_get_gpu_memory_total(void *d, int kind, u64 *b) { *b = 1000; return d != &two || kind; }
int amdsmi_get_gpu_memory_usage(void *d, int kind, u64 *b) { *b = 400; return d != &two || kind; }
"""
KINDS = {"nvml": (NVML, management._Nvml), "rocm": (ROCM, management._Rocm)}
KINDS["amd"] = (AMD, management._Amd)


@pytest.fixture
def nothing_open(monkeypatch):
    monkeypatch.setattr(management, "_library", None)
    monkeypatch.setattr(management, "_opened", 0)


@pytest.mark.usefixtures("nothing_open")
@pytest.mark.parametrize("name", KINDS)
def test_each_vendors_library_is_read(name, monkeypatch, tmp_path):
    source, kind = KINDS[name]
    compiler = shutil.which("cc") or pytest.skip("no C compiler")
    library = tmp_path / f"lib{name}.so"
    (tmp_path / "library.c").write_text(source)
    command = [compiler, "-shared", "-fPIC", "-o", library, tmp_path / "library.c"]
    subprocess.run(command, check=True)
    monkeypatch.setattr(kind, "files", (str(library),))
    monkeypatch.setitem(management.LIBRARIES, BACKEND, (kind,))
    assert gpuarray.nvmlInit() == 0
    assert gpuarray.nvmlInit() == 0
    device = gpuarray.nvmlDevice(0)
    assert device.last_status()
    assert device.utilization_rates() == (12, 34)
    assert device.memory_info() == (600, 1000, 400)
    assert device.last_status()
    missing = gpuarray.nvmlDevice(3)
    assert missing.last_status() == 2
    assert missing.memory_info() == (0, 0, 0)
    assert gpuarray.nvmlDevice(-1).last_status() == 2
    if name == "nvml":
        assert missing.last_status().message == "Invalid Argument"
    assert gpuarray.nvmlShutdown() == 0
    assert device.utilization_rates() == (12, 34)
    assert gpuarray.nvmlShutdown() == 0
    assert device.utilization_rates() == (0, 0)
    assert device.last_status() == 1
    assert gpuarray.nvmlShutdown() == 1


@pytest.mark.usefixtures("nothing_open")
def test_without_a_library_the_status_says_so(monkeypatch):
    for kind in (management._Nvml, management._Rocm, management._Amd):
        monkeypatch.setattr(kind, "files", ("libof.nothing.so.1",))
    status = gpuarray.nvmlInit()
    assert (status, status.name) == (12, "NVML_ERROR_LIBRARY_NOT_FOUND")
    assert status.message == "library not found"
    assert gpuarray.nvmlDevice(0).memory_info() == (0, 0, 0)
    assert gpuarray.nvmlShutdown().name == "NVML_ERROR_UNINITIALIZED"


@pytest.mark.usefixtures("nothing_open")
def test_a_library_that_lacks_a_function(monkeypatch):
    monkeypatch.setattr(management, "_load", lambda name: ctypes.CDLL(None))
    assert gpuarray.nvmlInit().name == "NVML_ERROR_FUNCTION_NOT_FOUND"


def test_the_library_of_this_machine():
    status = gpuarray.nvmlInit()
    if not status:
        pytest.skip(f"no management library here: {status.name}")
    try:
        device = gpuarray.nvmlDevice(0)
        assert device.last_status()
        free, total, used = device.memory_info()
        assert 0 < free <= total
        assert 0 <= used <= total
        assert all(0 <= rate <= 100 for rate in device.utilization_rates())
    finally:
        assert gpuarray.nvmlShutdown()
