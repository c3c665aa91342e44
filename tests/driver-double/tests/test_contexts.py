"""Contexts, threads, processes, and the fake driver's controls."""

import ctypes
import threading
import unittest

from double import DriverTest, call, driver, make, read, rtc, run_python, write

UBYTE = ctypes.c_ubyte


class Starting(unittest.TestCase):
    def test_nothing_works_before_the_start(self):
        run_python(
            """
            names = ("cuDeviceGetCount", "cuCtxGetCurrent", "cuMemAlloc_v2", "cuStreamSynchronize")
            for name in names:
                assert call(name, ctypes.c_uint64(), 0) == 3, name
            version = ctypes.c_int()
            assert call("cuDriverGetVersion", version) == 0 and version.value == 12080
            assert driver.cuInit(1) == 1
            assert driver.cuInit(0) == 0
            assert call("cuCtxSynchronize") == 201
            assert call("cuMemAlloc_v2", ctypes.c_uint64(), 4) == 201
            assert call("cuMemFree_v2", 0) == 0
            assert call("cuStreamSynchronize", 0) == 201
            """
        )

    def test_functions_are_found_by_their_plain_names(self):
        run_python(
            """
            found, result = ctypes.c_void_p(), ctypes.c_int()
            for name, form in {"cuMemAlloc": "cuMemAlloc_v2", "cuInit": "cuInit"}.items():
                assert driver.cuGetProcAddress_v2(
                    name.encode(), ctypes.byref(found), 12080, ctypes.c_uint64(0), None) == 0
                assert found.value == ctypes.cast(driver[form], ctypes.c_void_p).value, name
            assert driver.cuGetProcAddress_v2(
                b"cuNoSuchCall", ctypes.byref(found), 12080, ctypes.c_uint64(0),
                ctypes.byref(result)) == 500
            assert (found.value, result.value) == (None, 1)
            """
        )

    def test_a_forked_child_is_not_initialised(self):
        run_python(
            """
            driver.cuInit(0)
            driver.cuCtxSetCurrent(ctypes.c_uint64(make("cuDevicePrimaryCtxRetain", 0)))
            memory = make("cuMemAlloc_v2", 4)
            child = os.fork()
            if child == 0:
                calls = (("cuInit", 0), ("cuMemFree_v2", memory), ("cuCtxSynchronize",))
                os._exit(0 if {call(*it) for it in calls} == {3} else 1)
            assert os.waitpid(child, 0)[1] == 0
            assert call("cuMemFree_v2", memory) == 0
            """
        )


class Contexts(DriverTest):
    def test_a_primary_context_is_counted(self):
        flags, active = ctypes.c_uint(), ctypes.c_int()
        assert make("cuDevicePrimaryCtxRetain", 0) == self.context
        self.ok("cuDevicePrimaryCtxRelease_v2", 0)
        self.ok("cuDevicePrimaryCtxRelease_v2", 0)
        self.fails(201, "cuDevicePrimaryCtxRelease_v2", 0)
        self.ok("cuDevicePrimaryCtxGetState", 0, flags, active)
        assert active.value == 0
        self.fails(709, "cuMemAlloc_v2", ctypes.c_uint64(), 4)

    def test_what_a_context_had_is_gone_with_it(self):
        context = make("cuCtxCreate_v2", 0, 0)
        stream, event, memory = self.stream(), self.event(), self.allocate(4)
        self.ok("cuMemsetD8Async", memory, 1, 4, stream)
        self.ok("cuCtxDestroy_v2", context)
        current = make("cuCtxGetCurrent")
        assert current == self.context
        self.ends("stream", "cuStreamQuery", stream)
        self.ends("event", "cuEventQuery", event)
        self.fails(1, "cuMemFree_v2", memory)
        self.fails(201, "cuCtxSetCurrent", context)

    def test_a_context_that_begins_anew_has_another_number(self):
        def number_of(context):
            number = ctypes.c_uint64()
            self.ok("cuCtxGetId", context, number)
            return number.value

        number = number_of(self.context)
        assert number_of(0) == number
        self.ok("cuDevicePrimaryCtxReset_v2", 0)
        self.fails(709, "cuCtxGetId", 0, ctypes.c_uint64())
        assert make("cuCtxGetCurrent") == self.context
        assert make("cuDevicePrimaryCtxRetain", 0) == self.context
        assert number_of(0) > number
        context = make("cuCtxCreate_v2", 0, 0)
        self.ok("cuCtxDestroy_v2", context)
        self.fails(709, "cuCtxGetId", context, ctypes.c_uint64())
        self.ok("cuCtxSetCurrent", None)
        self.fails(201, "cuCtxGetId", 0, ctypes.c_uint64())

    def test_a_reset_takes_the_pages_of_host_memory_and_leaves_registered_ones(self):
        # The process's memory map shows whether an address is mapped, as for a driver.
        def is_mapped(address):
            with open("/proc/self/maps") as maps:
                ranges = [line.split()[0].split("-") for line in maps if " rw" in line]
            return any(int(first, 16) <= address < int(last, 16) for first, last in ranges)

        taken = [self.pinned(100), make("cuMemAllocManaged", 100, 1)]
        kept = ctypes.create_string_buffer(4096)
        self.ok("cuMemHostRegister_v2", kept, 4096, 0)
        assert all(map(is_mapped, taken))
        self.ok("cuDevicePrimaryCtxReset_v2", 0)
        assert not any(map(is_mapped, taken))
        assert make("cuDevicePrimaryCtxRetain", 0) == self.context
        self.fails(713, "cuMemHostUnregister", kept)

    def test_objects_of_another_context(self):
        stream, event = self.stream(), self.event()
        context = make("cuCtxCreate_v2", 0, 0)
        self.fails(400, "cuEventRecord", event, 0)
        self.ok("cuEventRecord", event, stream)
        self.ok("cuStreamWaitEvent", 0, event, 0)
        self.ok("cuCtxDestroy_v2", context)

    def test_each_thread_has_a_stack(self):
        self.ok("cuCtxPushCurrent_v2", self.context)
        assert make("cuCtxPopCurrent_v2") == self.context
        assert make("cuCtxGetCurrent") == self.context
        seen = []
        thread = threading.Thread(target=lambda: seen.append(call("cuCtxSynchronize")))
        thread.start()
        thread.join()
        assert seen == [201]
        self.ok("cuCtxSetCurrent", 0)
        self.fails(201, "cuCtxPopCurrent_v2", ctypes.c_uint64())

    def test_two_devices(self):
        first = self.allocate(4)
        write(first, UBYTE, [1, 2, 3, 4])
        self.ok("cuCtxSynchronize")
        other = make("cuDevicePrimaryCtxRetain", 1)
        self.ok("cuCtxSetCurrent", other)
        second, device = self.allocate(4), ctypes.c_int()
        self.ok("cuMemcpyPeerAsync", second, other, first, self.context, 4, 0)
        assert read(second, UBYTE, 4) == [1, 2, 3, 4]
        self.ok("cuPointerGetAttribute", device, 9, second)
        assert device.value == 1
        self.ok("cuCtxEnablePeerAccess", self.context, 0)
        self.fails(704, "cuCtxEnablePeerAccess", self.context, 0)
        self.ok("cuCtxDisablePeerAccess", self.context)
        self.fails(705, "cuCtxDisablePeerAccess", self.context)
        self.ok("cuCtxSetCurrent", self.context)
        self.ok("cuDevicePrimaryCtxRelease_v2", 1)

    def test_devices_by_name_and_number(self):
        text, device = ctypes.create_string_buffer(32), ctypes.c_int()
        for number in (0, 1):
            self.ok("cuDeviceGetPCIBusId", text, 32, number)
            self.ok("cuDeviceGetByPCIBusId", device, text)
            assert device.value == number
        self.fails(101, "cuDeviceGet", device, 2)
        self.ok("cuDeviceGetAttribute", device, 75, 0)
        assert device.value == 9
        for number in (0, 5000, -1):
            self.fails(1, "cuDeviceGetAttribute", device, number, 0)

    def test_statuses_have_names(self):
        name = ctypes.c_char_p()
        assert driver.cuGetErrorName(700, ctypes.byref(name)) == 0
        assert name.value == b"CUDA_ERROR_ILLEGAL_ADDRESS"
        assert driver.cuGetErrorString(12345, ctypes.byref(name)) == 1
        assert name.value is None


class Controls(DriverTest):
    def test_calls_are_counted_and_logged(self):
        stream = self.stream()
        self.ok("cuStreamSynchronize", stream)
        self.ok("cuStreamSynchronize", stream)
        assert driver.double_calls(b"cuStreamSynchronize") == 2
        assert driver.double_calls(b"*") == 3
        text = ctypes.create_string_buffer(100)
        assert driver.double_log(text, ctypes.c_size_t(100)) > 100
        lines = text.value.decode().splitlines()
        assert lines[-1] == f"cuStreamSynchronize({stream:#x})"
        driver.double_reset_calls()
        assert driver.double_calls(b"*") == 0

    def test_calls_fail_as_asked(self):
        driver.double_fail(b"cuMemAlloc_v2", ctypes.c_uint64(1), 2, 1)
        self.allocate(4)
        self.fails(2, "cuMemAlloc_v2", ctypes.c_uint64(), 4)
        self.allocate(4)
        driver.double_fail(b"cuCtxSynchronize", ctypes.c_uint64(0), 999, 0)
        for _ in range(3):
            self.fails(999, "cuCtxSynchronize")
        driver.double_fail(b"cuCtxSynchronize", ctypes.c_uint64(0), 0, 0)
        self.ok("cuCtxSynchronize")
        driver.double_fail(b"*", ctypes.c_uint64(2), 999, 1)
        statuses = [call("cuCtxSynchronize") for _ in range(4)]
        assert statuses == [0, 0, 999, 0]

    def test_what_is_alive_is_counted(self):
        before = {kind: driver.double_live(kind) for kind in (b"streams", b"device_bytes")}
        stream, memory = self.stream(), self.allocate(1000)
        assert driver.double_live(b"streams") - before[b"streams"] == 1
        assert driver.double_live(b"device_bytes") - before[b"device_bytes"] == 1000
        self.ok("cuStreamDestroy_v2", stream)
        self.ok("cuMemFree_v2", memory)
        assert driver.double_live(b"streams") == before[b"streams"]
        assert driver.double_live(b"contexts") == 1

    def test_hidden_functions_are_not_supported(self):
        run_python(
            """
            driver.cuInit(0)
            driver.cuCtxSetCurrent(ctypes.c_uint64(make("cuDevicePrimaryCtxRetain", 0)))
            assert call("cuMemAllocAsync", ctypes.c_uint64(), 4, 0) == 801
            assert call("cuLaunchHostFunc", 0, None, None) == 801
            assert call("cuMemAlloc_v2", ctypes.c_uint64(), 4) == 0
            """,
            DOUBLE_HIDE="cuMemAllocAsync,cuLaunchHostFunc",
        )

    def test_the_compiler_has_controls_of_its_own(self):
        rtc.double_fail(b"nvrtcVersion", ctypes.c_uint64(0), 11, 1)
        major, minor = ctypes.c_int(), ctypes.c_int()
        assert call("nvrtcVersion", major, minor, library=rtc) == 11
        assert call("nvrtcVersion", major, minor, library=rtc) == 0
        assert rtc.double_calls(b"nvrtcVersion") >= 2
        assert driver.double_calls(b"nvrtcVersion") == 0


class Threads(DriverTest):
    def test_many_threads_at_once(self):
        failures = []

        def body():
            try:
                assert call("cuCtxSetCurrent", self.context) == 0
                for number in range(50):
                    stream = make("cuStreamCreate", 1)
                    memory = make("cuMemAllocAsync", 64, stream)
                    data = (UBYTE * 64)()
                    assert call("cuMemsetD8Async", memory, number, 64, stream) == 0
                    assert call("cuMemcpyDtoHAsync_v2", data, memory, 64, stream) == 0
                    assert call("cuMemFreeAsync", memory, stream) == 0
                    assert set(data) == {number}
                    assert call("cuStreamDestroy_v2", stream) == 0
            except AssertionError as error:
                failures.append(error)

        threads = [threading.Thread(target=body) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert failures == []
        self.ok("cuCtxSynchronize")
