"""A kernel that never ends by itself: waiting for it can be interrupted."""

from __future__ import annotations

import pytest
from processes import run_python

from pygpu import driver

PROGRAM = """
    import os, signal, sys, threading
    import numpy as np
    import pygpu.autoinit
    from pygpu import driver
    from pygpu.compiler import SourceModule

    source = "__global__ void wait(volatile int *flag) { while (*flag == 0); }"
    wait = SourceModule(source).get_function("wait")
    flag = driver.pagelocked_zeros(1, np.int32, mem_flags=driver.host_alloc_flags.DEVICEMAP)
    stream = driver.Stream(1)
    address = np.uintp(flag.base.get_device_pointer())
    wait(address, block=(1, 1, 1), stream=stream)
    event = driver.Event().record(stream)
    waits = {
        "stream": stream.synchronize,
        "event": event.synchronize,
        "context": driver.Context.synchronize,
    }
    threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGINT)).start()
    try:
        waits[sys.argv[1]]()
    except KeyboardInterrupt:
        assert not stream.is_done()
        assert not event.query()
    else:
        raise AssertionError("the wait came to an end")
    flag[0] = 1
    waits[sys.argv[1]]()
    assert event.query()
"""


@pytest.mark.skipif(
    driver.Device(0).name() == "Driver Double",
    reason="the driver double runs kernels on the thread that asks for their end",
)
@pytest.mark.parametrize("what", ["stream", "event", "context"])
def test_an_interrupt_ends_a_wait(what):
    run_python(PROGRAM, what)
