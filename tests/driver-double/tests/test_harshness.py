"""The handle of an object that is destroyed, or was never created, ends the process, because real
drivers dereference handles."""

import ctypes

from double import DriverTest, kernel, load, make, run_python

WILD = 0x123450


def graph_of(test):
    stream = test.stream()
    test.ok("cuStreamBeginCapture_v2", stream, 0)
    graph = ctypes.c_uint64()
    test.ok("cuStreamEndCapture", stream, graph)
    return graph.value


# For each kind of object: calls that create it, destroy it, and use its handle.
KINDS = {
    "stream": (
        lambda test: test.stream(),
        "cuStreamDestroy_v2",
        {
            "cuStreamQuery": (),
            "cuStreamSynchronize": (),
            "cuStreamGetFlags": (ctypes.c_uint(),),
            "cuStreamBeginCapture_v2": (0,),
            "cuStreamGetCaptureInfo": (ctypes.c_int(), ctypes.c_uint64()),
            "cuStreamDestroy_v2": (),
        },
    ),
    "event": (
        lambda test: test.event(),
        "cuEventDestroy_v2",
        {
            "cuEventQuery": (),
            "cuEventSynchronize": (),
            "cuEventRecord": (0,),
            "cuEventDestroy_v2": (),
        },
    ),
    "module": (
        lambda test: load('extern "C" __global__ void k() {}'),
        "cuModuleUnload",
        {"cuModuleUnload": ()},
    ),
    "graph": (graph_of, "cuGraphDestroy", {"cuGraphDestroy": ()}),
    "executable graph": (
        lambda test: make("cuGraphInstantiateWithFlags", graph_of(test), 0),
        "cuGraphExecDestroy",
        {"cuGraphLaunch": (0,), "cuGraphExecDestroy": ()},
    ),
}


class Harshness(DriverTest):
    def test_a_destroyed_object(self):
        for kind, (create, destroy, calls) in KINDS.items():
            handle = create(self)
            self.ok(destroy, handle)
            for name, arguments in calls.items():
                self.ends(kind, name, handle, *arguments)
                self.ends(kind, name, WILD, *arguments)

    def test_an_object_that_a_reset_took(self):
        for kind, (create, _, calls) in KINDS.items():
            handle = create(self)
            self.ok("cuDevicePrimaryCtxReset_v2", 0)
            assert make("cuDevicePrimaryCtxRetain", 0) == self.context
            for name, arguments in calls.items():
                self.ends(kind, name, handle, *arguments)

    def test_functions_go_with_their_module(self):
        module = load('extern "C" __global__ void k() {}')
        function = kernel(module, "k")
        self.ok("cuModuleUnload", module)
        launch = (1, 1, 1, 1, 1, 1, 0, 0, None, None)
        self.ends("function", "cuLaunchKernel", function, *launch)
        self.ends("function", "cuFuncSetCacheConfig", function, 0)

    def test_a_context_that_is_gone_is_refused_and_one_that_never_was_ends_the_process(self):
        context = make("cuCtxCreate_v2", 0, 0)
        self.ok("cuCtxDestroy_v2", context)
        self.fails(201, "cuCtxSetCurrent", context)
        self.fails(201, "cuCtxDestroy_v2", context)
        self.ends("context", "cuCtxSetCurrent", WILD)

    def test_a_thread_that_is_ending_may_still_call(self):
        # The destructor of another library's thread-local object runs after the fake driver's.
        run_python("""
            import threading, time
            assert driver.cuInit(0) == 0
            context = make("cuDevicePrimaryCtxRetain", 0)
            seen = []
            @ctypes.CFUNCTYPE(None, ctypes.c_void_p)
            def late(_):
                seen.append(driver.cuCtxSetCurrent(ctypes.c_uint64(context)))
                seen.append(driver.cuCtxSynchronize())
            libc, key = ctypes.CDLL(None), ctypes.c_uint()
            assert libc.pthread_key_create(ctypes.byref(key), late) == 0
            def work():
                assert libc.pthread_setspecific(key, ctypes.c_void_p(1)) == 0
                assert driver.cuCtxSetCurrent(ctypes.c_uint64(context)) == 0
            thread = threading.Thread(target=work)
            thread.start()
            thread.join()
            while len(seen) < 2:
                time.sleep(0.001)
            assert seen == [0, 0], seen
        """)
