"""Capture and graphs."""

import ctypes
import threading

from double import DriverTest, call, kernel, launch, load, make, read, write

INT = ctypes.c_int
GLOBAL, THREAD_LOCAL, RELAXED = 0, 1, 2
UNSUPPORTED, INVALIDATED, UNMATCHED, UNJOINED, ISOLATION, IMPLICIT, CAPTURED = (
    900, 901, 903, 904, 905, 906, 907,
)  # fmt: skip


class Graphs(DriverTest):
    def setUp(self):
        super().setUp()
        self.module = load('extern "C" __global__ void add(int* p, int x) { *p = *p * 10 + x; }')
        self.add = kernel(self.module, "add")
        self.memory = self.allocate(4)
        write(self.memory, INT, [0])
        self.ok("cuCtxSynchronize")

    def digit(self, number, stream):
        assert launch(self.add, self.memory, INT(number), stream=stream) == 0

    def end_capture(self, stream):
        graph = ctypes.c_uint64()
        self.ok("cuStreamEndCapture", stream, graph)
        return graph.value

    def test_a_captured_stream_runs_nothing_and_a_graph_runs_it_often(self):
        stream = self.stream()
        self.ok("cuStreamBeginCapture_v2", stream, GLOBAL)
        self.digit(1, stream)
        self.digit(2, stream)
        graph = self.end_capture(stream)
        count = ctypes.c_size_t()
        self.ok("cuGraphGetNodes", graph, None, count)
        assert count.value == 2
        self.ok("cuCtxSynchronize")
        assert read(self.memory, INT) == [0]
        exec_ = make("cuGraphInstantiateWithFlags", graph, 0)
        self.ok("cuGraphDestroy", graph)
        self.ok("cuGraphLaunch", exec_, stream)
        self.digit(3, stream)
        self.ok("cuGraphLaunch", exec_, stream)
        self.ok("cuStreamSynchronize", stream)
        assert read(self.memory, INT) == [12312]
        self.ok("cuGraphExecDestroy", exec_)
        self.ends("executable graph", "cuGraphLaunch", exec_, stream)

    def test_what_a_graph_keeps_ends_with_the_last_executable_one(self):
        ended = []
        destroy = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(ended.append)
        stream = self.stream()
        self.ok("cuStreamBeginCapture_v2", stream, GLOBAL)
        self.digit(1, stream)
        state, number, capturing = INT(), ctypes.c_uint64(), ctypes.c_uint64()
        self.ok("cuStreamGetCaptureInfo_v2", stream, state, number, capturing, None, None)
        assert state.value == 1
        for data in (5, 6):
            kept = make("cuUserObjectCreate", data, destroy, 1, 1)
            self.ok("cuGraphRetainUserObject", capturing.value, kept, 1, 1)
            self.ends("user object", "cuUserObjectRelease", kept, 1)
        graph = self.end_capture(stream)
        assert graph == capturing.value
        exec_ = make("cuGraphInstantiateWithFlags", graph, 0)
        self.ok("cuGraphDestroy", graph)
        assert ended == []
        self.ok("cuGraphExecDestroy", exec_)
        assert sorted(ended) == [5, 6]
        self.ok("cuStreamBeginCapture_v2", stream, GLOBAL)
        again = ctypes.c_uint64()
        self.ok("cuStreamGetCaptureInfo_v2", stream, state, again, capturing, None, None)
        assert again.value != number.value, "a capture's number is its own"
        self.end_capture(stream)

    def test_what_a_capture_keeps_ends_with_it_however_it_ends(self):
        ended = []
        destroy = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(ended.append)

        def destroyed(stream, other):
            self.ok("cuStreamDestroy_v2", stream)
            assert ended == [5]
            self.ok("cuStreamSynchronize", other)

        def destroyed_after_what_joined(stream, other):
            self.ok("cuStreamDestroy_v2", other)
            assert ended == []
            self.ok("cuStreamDestroy_v2", stream)

        def invalid(stream, other):
            self.fails(UNSUPPORTED, "cuStreamSynchronize", stream)
            self.fails(INVALIDATED, "cuStreamEndCapture", stream, ctypes.c_uint64())

        def not_joined(stream, other):
            self.fails(UNJOINED, "cuStreamEndCapture", stream, ctypes.c_uint64())

        def reset(stream, other):
            self.ok("cuDevicePrimaryCtxReset_v2", 0)

        for end in (destroyed, destroyed_after_what_joined, invalid, not_joined, reset):
            stream, other, fork = self.stream(), self.stream(), self.event()
            self.ok("cuStreamBeginCapture_v2", stream, GLOBAL)
            self.digit(1, stream)
            make_allocation = make("cuMemAllocAsync", 4, stream)
            self.digit(2, stream)
            self.ok("cuMemFreeAsync", make_allocation, stream)
            self.ok("cuEventRecord", fork, stream)
            self.ok("cuStreamWaitEvent", other, fork, 0)
            self.digit(3, other)
            state, capturing = INT(), ctypes.c_uint64()
            self.ok("cuStreamGetCaptureInfo_v2", other, state, None, capturing, None, None)
            kept = make("cuUserObjectCreate", 5, destroy, 1, 1)
            self.ok("cuGraphRetainUserObject", capturing.value, kept, 1, 1)
            assert ended == []
            end(stream, other)
            assert ended == [5], end.__name__
            ended.clear()
            self.ends("graph", "cuGraphDestroy", capturing.value)

    def test_another_stream_joins_through_events(self):
        stream, other = self.stream(), self.stream()
        fork, join = self.event(), self.event()
        self.ok("cuStreamBeginCapture_v2", stream, GLOBAL)
        self.digit(1, stream)
        self.ok("cuEventRecord", fork, stream)
        self.ok("cuStreamWaitEvent", other, fork, 0)
        self.digit(2, other)
        self.ok("cuEventRecord", join, other)
        self.ok("cuStreamWaitEvent", stream, join, 0)
        self.digit(3, stream)
        graph = self.end_capture(stream)
        exec_ = make("cuGraphInstantiateWithFlags", graph, 0)
        self.ok("cuGraphLaunch", exec_, 0)
        assert read(self.memory, INT) == [123]
        self.fails(1, "cuEventQuery", fork)
        self.ok("cuGraphDestroy", graph)
        self.ok("cuGraphExecDestroy", exec_)

    def test_work_that_is_not_joined(self):
        stream, other, fork = self.stream(), self.stream(), self.event()
        self.ok("cuStreamBeginCapture_v2", stream, GLOBAL)
        self.ok("cuEventRecord", fork, stream)
        self.ok("cuStreamWaitEvent", other, fork, 0)
        self.digit(2, other)
        self.fails(UNMATCHED, "cuStreamEndCapture", other, ctypes.c_uint64())
        self.fails(INVALIDATED, "cuStreamEndCapture", stream, ctypes.c_uint64())
        self.ok("cuStreamBeginCapture_v2", stream, GLOBAL)
        self.ok("cuEventRecord", fork, stream)
        self.ok("cuStreamWaitEvent", other, fork, 0)
        self.digit(2, other)
        self.fails(UNJOINED, "cuStreamEndCapture", stream, ctypes.c_uint64())
        self.digit(4, stream)  # captures no more
        self.ok("cuStreamSynchronize", stream)

    def captured(self, mode, name, *arguments, status, spoils=True):
        stream = self.stream()
        self.ok("cuStreamBeginCapture_v2", stream, mode)
        arguments = [stream if it == "stream" else it for it in arguments]
        self.fails(status, name, *arguments)
        state = INT()
        self.ok("cuStreamIsCapturing", stream, state)
        assert state.value == (2 if spoils else 1), name
        expected = INVALIDATED if spoils else 0
        graph = ctypes.c_uint64()
        self.fails(expected, "cuStreamEndCapture", stream, graph)
        if graph.value:
            self.ok("cuGraphDestroy", graph.value)

    def test_what_a_capture_refuses(self):
        event, recorded, other = self.event(), self.event(), self.stream()
        self.ok("cuEventRecord", recorded, 0)
        for mode in (GLOBAL, THREAD_LOCAL):
            for name, *arguments in (
                ("cuMemAlloc_v2", ctypes.c_uint64(), 4),
                ("cuMemFree_v2", self.memory),
                ("cuMemHostAlloc", ctypes.c_uint64(), 4, 0),
                ("cuStreamSynchronize", other),
                ("cuStreamQuery", 0),
                ("cuEventSynchronize", recorded),
                ("cuMemAllocAsync", ctypes.c_uint64(), 4, other),
                ("cuModuleUnload", self.module),
            ):
                self.captured(mode, name, *arguments, status=UNSUPPORTED)
        for mode in (GLOBAL, THREAD_LOCAL, RELAXED):
            for name, *arguments in (
                ("cuStreamSynchronize", "stream"),
                ("cuStreamQuery", "stream"),
                ("cuCtxSynchronize",),
                ("cuStreamGetFlags", "stream", ctypes.c_uint()),
            ):
                self.captured(mode, name, *arguments, status=UNSUPPORTED)
            self.captured(mode, "cuStreamWaitEvent", "stream", recorded, 0, status=ISOLATION)
            self.captured(mode, "cuStreamBeginCapture_v2", "stream", 0, status=401, spoils=False)
            self.captured(mode, "cuStreamWaitEvent", "stream", event, 0, status=0, spoils=False)
        self.captured(RELAXED, "cuMemHostAlloc", ctypes.c_uint64(), 4, 0, status=0, spoils=False)
        self.captured(RELAXED, "cuStreamQuery", other, status=0, spoils=False)

    def test_a_captured_event_cannot_be_asked(self):
        stream, event = self.stream(), self.event()
        self.ok("cuStreamBeginCapture_v2", stream, RELAXED)
        self.ok("cuEventRecord", event, stream)
        self.fails(CAPTURED, "cuEventQuery", event)
        self.fails(INVALIDATED, "cuStreamEndCapture", stream, ctypes.c_uint64())

    def test_the_legacy_stream_beside_a_blocking_one(self):
        stream = self.stream(blocking=True)
        self.fails(UNSUPPORTED, "cuStreamBeginCapture_v2", 0, GLOBAL)
        self.ok("cuStreamBeginCapture_v2", stream, RELAXED)
        self.fails(IMPLICIT, "cuMemsetD8Async", self.memory, 0, 4, 0)
        self.fails(INVALIDATED, "cuStreamEndCapture", stream, ctypes.c_uint64())
        self.ok("cuMemsetD8Async", self.memory, 0, 4, 0)

    def test_modes_and_threads(self):
        def on_another_thread(name, *arguments):
            seen = []

            def body():
                assert call("cuCtxSetCurrent", self.context) == 0
                seen.append(call(name, *arguments))

            thread = threading.Thread(target=body)
            thread.start()
            thread.join()
            return seen[0]

        for mode, status in ((GLOBAL, UNSUPPORTED), (THREAD_LOCAL, 0), (RELAXED, 0)):
            stream = self.stream()
            self.ok("cuStreamBeginCapture_v2", stream, mode)
            memory = ctypes.c_uint64()
            assert on_another_thread("cuMemAlloc_v2", memory, 4) == status
            graph = ctypes.c_uint64()
            call("cuStreamEndCapture", stream, graph)
            call("cuGraphDestroy", graph.value)
        stream = self.stream()
        self.ok("cuStreamBeginCapture_v2", stream, GLOBAL)
        status = on_another_thread("cuStreamEndCapture", stream, ctypes.c_uint64())
        assert status == 908
        mode = INT(RELAXED)
        self.ok("cuThreadExchangeStreamCaptureMode", mode)
        assert mode.value == GLOBAL
        stream = self.stream()
        self.ok("cuStreamBeginCapture_v2", stream, GLOBAL)
        self.allocate(4)
        self.ok("cuGraphDestroy", self.end_capture(stream))
        self.ok("cuThreadExchangeStreamCaptureMode", mode)

    def test_memory_of_a_graph(self):
        stream = self.stream()
        self.ok("cuStreamBeginCapture_v2", stream, GLOBAL)
        memory = make("cuMemAllocAsync", 4, stream)
        self.ok("cuMemsetD8Async", memory, 0, 4, stream)
        assert launch(self.add, memory, INT(7), stream=stream) == 0
        graph = self.end_capture(stream)
        exec_ = make("cuGraphInstantiateWithFlags", graph, 0)
        self.fails(1, "cuMemsetD8Async", memory, 1, 4, stream)
        self.ok("cuGraphLaunch", exec_, stream)
        self.fails(1, "cuGraphLaunch", exec_, stream)
        self.ok("cuStreamSynchronize", stream)
        assert read(memory, INT) == [7]
        self.ok("cuMemFreeAsync", memory, stream)
        self.ok("cuGraphLaunch", exec_, stream)
        self.ok("cuStreamSynchronize", stream)
        assert read(memory, INT) == [7]
        self.ok("cuGraphDestroy", graph)
        self.ok("cuGraphExecDestroy", exec_)
