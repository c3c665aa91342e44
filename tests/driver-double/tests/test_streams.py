"""Queued work runs when something waits for it, and only then."""

import ctypes
import threading
import time

from double import CALLBACK, HOST_FUNCTION, DriverTest, call, driver, make, read, run_python

NOT_READY = 600


class Lazy(DriverTest):
    def setUp(self):
        super().setUp()
        self.memory = self.allocate(64)
        self.ok("cuMemsetD8Async", self.memory, 1, 64, 0)
        self.ok("cuCtxSynchronize")
        self.host = self.pinned(64)
        self.seen = (ctypes.c_ubyte * 64).from_address(self.host)

    def copy_out(self, stream):
        self.ok("cuMemcpyDtoHAsync_v2", self.host, self.memory, 64, stream)

    def test_nothing_runs_before_a_wait(self):
        stream = self.stream()
        self.ok("cuMemsetD8Async", self.memory, 7, 64, stream)
        self.copy_out(stream)
        assert self.seen[0] == 205
        assert driver.double_live(b"queued") == 2
        self.ok("cuStreamSynchronize", stream)
        assert self.seen[0] == 7

    def test_a_query_runs_one_operation(self):
        stream = self.stream()
        for value in (2, 3, 4):
            self.ok("cuMemsetD8Async", self.memory, value, 64, stream)
        self.copy_out(stream)
        for _ in range(3):
            self.fails(NOT_READY, "cuStreamQuery", stream)
        assert self.seen[0] == 205
        self.ok("cuStreamQuery", stream)
        assert self.seen[0] == 4

    def test_streams_without_an_order_run_in_the_wrong_one(self):
        first, second = self.stream(), self.stream()
        self.ok("cuMemsetD8Async", self.memory, 9, 64, first)
        self.copy_out(second)
        self.ok("cuCtxSynchronize")
        assert self.seen[0] == 1

    def test_an_event_orders_streams(self):
        first, second, event = self.stream(), self.stream(), self.event()
        self.ok("cuMemsetD8Async", self.memory, 9, 64, first)
        self.ok("cuEventRecord", event, first)
        self.ok("cuStreamWaitEvent", second, event, 0)
        self.copy_out(second)
        # Recording the same event again does not change an earlier wait.
        self.ok("cuMemsetD8Async", self.memory, 10, 64, first)
        self.ok("cuEventRecord", event, first)
        self.ok("cuStreamSynchronize", second)
        assert self.seen[0] == 9
        self.fails(NOT_READY, "cuEventQuery", event)
        self.ok("cuEventSynchronize", event)

    def test_an_event_that_was_never_recorded_is_done(self):
        event = self.event()
        self.ok("cuEventQuery", event)
        self.ok("cuStreamWaitEvent", self.stream(), event, 0)

    def test_the_legacy_stream_waits_for_blocking_streams_and_they_for_it(self):
        blocking, other = self.stream(blocking=True), self.stream(blocking=True)
        self.ok("cuMemsetD8Async", self.memory, 5, 64, blocking)
        assert read(self.memory, ctypes.c_ubyte) == [5]
        self.ok("cuMemsetD8Async", self.memory, 6, 64, 0)
        self.copy_out(other)
        self.ok("cuStreamSynchronize", other)
        assert self.seen[0] == 6

    def test_non_blocking_streams_pass_the_legacy_stream_by(self):
        stream = self.stream()
        self.ok("cuMemsetD8Async", self.memory, 5, 64, stream)
        assert read(self.memory, ctypes.c_ubyte) == [1]
        self.ok("cuMemsetD8Async", self.memory, 6, 64, 0)
        self.copy_out(stream)
        self.ok("cuStreamSynchronize", stream)
        assert self.seen[0] == 5

    def test_a_destroyed_stream_runs_what_it_has(self):
        stream = self.stream()
        self.ok("cuMemsetD8Async", self.memory, 8, 64, stream)
        self.ok("cuStreamDestroy_v2", stream)
        self.ends("stream", "cuStreamQuery", stream)
        self.ok("cuCtxSynchronize")
        assert read(self.memory, ctypes.c_ubyte) == [8]

    def test_long_queues_need_no_deep_stack(self):
        stream = self.stream()
        for _ in range(1000):
            self.ok("cuMemsetD8Async", self.memory, 8, 1, stream)
        self.ok("cuStreamSynchronize", stream)
        for _ in range(3000):
            self.ok("cuMemsetD8Async", self.memory, 8, 1, stream)
        assert driver.double_live(b"queued") < 2000

    def test_pageable_sources_are_taken_at_once_and_pinned_ones_late(self):
        stream = self.stream()
        pageable = (ctypes.c_ubyte * 4)(1, 2, 3, 4)
        self.ok("cuMemcpyHtoDAsync_v2", self.memory, pageable, 4, stream)
        pageable[0] = 99
        self.seen[0] = 40
        self.ok("cuMemcpyHtoDAsync_v2", self.memory + 4, self.host, 1, stream)
        self.seen[0] = 41
        self.ok("cuStreamSynchronize", stream)
        assert read(self.memory, ctypes.c_ubyte, 5) == [1, 2, 3, 4, 41]

    def test_a_copy_to_pageable_memory_waits_for_its_stream(self):
        stream = self.stream()
        self.ok("cuMemsetD8Async", self.memory, 3, 64, stream)
        pageable = (ctypes.c_ubyte * 4)()
        self.ok("cuMemcpyDtoHAsync_v2", pageable, self.memory, 4, stream)
        assert list(pageable) == [3, 3, 3, 3]

    def test_a_blocking_copy_in_from_pageable_memory_may_arrive_later(self):
        stream = self.stream()
        pageable = (ctypes.c_ubyte * 4)(1, 2, 3, 4)
        self.ok("cuMemcpyHtoD_v2", self.memory, pageable, 4)
        self.copy_out(stream)  # not ordered with the default stream
        self.ok("cuStreamSynchronize", stream)
        assert self.seen[0] == 1
        assert read(self.memory, ctypes.c_ubyte, 4) == [1, 2, 3, 4]

    def test_times_between_events(self):
        stream, start, end = self.stream(), self.event(0), self.event(0)
        time_ = ctypes.c_float()
        self.fails(400, "cuEventElapsedTime", time_, start, end)
        self.ok("cuEventRecord", start, stream)
        self.ok("cuMemsetD8Async", self.memory, 3, 64, stream)
        self.ok("cuEventRecord", end, stream)
        self.fails(NOT_READY, "cuEventElapsedTime", time_, start, end)
        self.ok("cuEventSynchronize", end)
        self.ok("cuEventElapsedTime", time_, start, end)
        assert time_.value > 0

    def test_eager_streams(self):
        run_python(
            """
            driver.cuInit(0)
            driver.cuCtxSetCurrent(ctypes.c_uint64(make("cuDevicePrimaryCtxRetain", 0)))
            memory, host = make("cuMemAlloc_v2", 4), make("cuMemHostAlloc", 4, 0)
            call("cuMemsetD8Async", memory, 7, 4, 0)
            call("cuMemcpyDtoHAsync_v2", host, memory, 4, 0)
            assert ctypes.c_ubyte.from_address(host).value == 7
            """,
            DOUBLE_EAGER="1",
        )


class HostFunctions(DriverTest):
    def test_they_run_in_order_on_another_thread(self):
        stream, seen = self.stream(), []
        function = HOST_FUNCTION(lambda data: seen.append((data, threading.get_ident())))
        for number in (1, 2, 3):
            self.ok("cuLaunchHostFunc", stream, function, number)
        assert seen == []
        self.ok("cuStreamSynchronize", stream)
        assert [number for number, _ in seen] == [1, 2, 3]
        assert threading.get_ident() not in [thread for _, thread in seen]

    def test_they_may_not_call_the_driver(self):
        stream, seen = self.stream(), []
        function = HOST_FUNCTION(lambda _: seen.append(call("cuCtxSynchronize")))
        self.ok("cuLaunchHostFunc", stream, function, None)
        self.ok("cuStreamSynchronize", stream)
        assert seen == [800]

    def test_a_query_does_not_wait_for_them(self):
        stream, gate = self.stream(), threading.Event()
        function = HOST_FUNCTION(lambda _: gate.wait(10))
        self.ok("cuLaunchHostFunc", stream, function, None)
        self.fails(NOT_READY, "cuStreamQuery", stream)
        self.fails(NOT_READY, "cuStreamQuery", stream)
        memory = self.allocate(4)  # other calls pass in the meantime
        self.ok("cuMemsetD8Async", memory, 1, 4, self.stream())
        gate.set()
        self.ok("cuStreamSynchronize", stream)

    def test_they_run_without_any_wait_after_a_while(self):
        stream, done = self.stream(), threading.Event()
        function = HOST_FUNCTION(lambda _: done.set())
        self.ok("cuLaunchHostFunc", stream, function, None)
        time.sleep(0.01)
        assert not done.is_set()
        assert done.wait(10)

    def test_callbacks_get_the_stream(self):
        stream, seen = self.stream(), []
        function = CALLBACK(lambda *arguments: seen.append(arguments))
        self.ok("cuStreamAddCallback", stream, function, 5, 0)
        self.ok("cuStreamSynchronize", stream)
        assert seen == [(stream, 0, 5)]

    def test_two_threads_wait_for_one_stream(self):
        stream, seen = self.stream(), []
        function = HOST_FUNCTION(lambda _: (time.sleep(0.02), seen.append(1)))
        self.ok("cuLaunchHostFunc", stream, function, None)

        def wait():
            assert call("cuCtxSetCurrent", self.context) == 0
            assert call("cuStreamSynchronize", stream) == 0
            seen.append(2)

        threads = [threading.Thread(target=wait) for _ in range(2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert seen == [1, 2, 2]


class Properties(DriverTest):
    def test_flags_and_priorities(self):
        stream = make("cuStreamCreateWithPriority", 1, -100)
        flags, priority = ctypes.c_uint(), ctypes.c_int()
        self.ok("cuStreamGetFlags", stream, flags)
        self.ok("cuStreamGetPriority", stream, priority)
        assert (flags.value, priority.value) == (1, -5)
        self.fails(1, "cuStreamCreate", ctypes.c_uint64(), 8)

    def test_unknown_handles(self):
        for name in ("cuStreamQuery", "cuStreamSynchronize", "cuStreamDestroy_v2"):
            self.ends("stream", name, 0x123456789)
        for name in ("cuEventQuery", "cuEventSynchronize", "cuEventDestroy_v2"):
            self.ends("event", name, 0x123456789)
            self.fails(400, name, 0)
        self.fails(400, "cuStreamDestroy_v2", 0)
