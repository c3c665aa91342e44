"""Statuses of arrays, streams and events, as objects."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from device import BACKEND

from pygpu import Status, driver, gpuarray

OUT_OF_MEMORY = {
    "host": "OutOfMemory",
    "cuda": "CUDA_ERROR_OUT_OF_MEMORY",
    "hip": "hipErrorOutOfMemory",
    "nvrtc": "NVRTC_ERROR_PROGRAM_CREATION_FAILURE",
    "hiprtc": "HIPRTC_ERROR_PROGRAM_CREATION_FAILURE",
}


@pytest.mark.parametrize("api", OUT_OF_MEMORY)
def test_each_interface_names_its_numbers(api):
    status = Status(2, api)
    assert (status.code, status.api, status.name) == (2, api, OUT_OF_MEMORY[api])
    assert repr(status) == f"<Status: '{OUT_OF_MEMORY[api]} (2)'>"
    assert not status
    assert Status(0, api)
    assert status == 2 == int(status)
    assert hash(status) == hash(2)
    assert [10, 11, 12][status] == 12
    assert pickle.loads(pickle.dumps(status)).api == api
    assert Status(4321, api).name == "status 4321"


def test_the_interface_is_the_backends_unless_said():
    assert Status(2).api == BACKEND
    with pytest.raises(ValueError, match="api is 'opencl'; allowed are"):
        Status(2, "opencl")


def test_the_numbers_range():
    assert Status(-(2**31)).code == -(2**31)
    with pytest.raises(OverflowError, match="a status has 32 bits"):
        Status(2**31)
    with pytest.raises(TypeError, match="code is of type float"):
        Status(1.0)


def test_a_status_raises_what_a_call_would():
    Status(0).raise_for_status()
    for code, kind in ((1, ValueError), (2, MemoryError), (400, driver.LogicError)):
        with pytest.raises(kind) as raised:
            Status(code).raise_for_status()
        assert isinstance(raised.value, driver.Error)
        assert raised.value.status == code


def pycudas_class(code):
    """Returns the exception that PyCUDA raises for a driver's number."""
    if code in (701, 702, 703, 719):
        return driver.LaunchError
    if code in (100, 209, 214, 301, 600):
        return driver.RuntimeError
    return {2: driver.MemoryError, 999: driver.Error}.get(code, driver.LogicError)


def test_every_status_raises_what_it_does_in_pycuda():
    known = [code for code in range(1, 1000) if Status(code, "cuda").name != f"status {code}"]
    assert len(known) > 80
    others = {driver.MemoryError, driver.LaunchError}
    for code in known:
        with pytest.raises(pycudas_class(code)) as raised:
            Status(code, "cuda").raise_for_status()
        assert raised.value.status == code
        # A kernel failure counts as a launch error in PyCUDA.
        if code not in range(700, 722):
            assert not isinstance(raised.value, tuple(others - {pycudas_class(code)})), code
    for code in (100, 209, 301, 999):
        with pytest.raises(driver.Error) as raised:
            Status(code).raise_for_status()
        assert not isinstance(raised.value, driver.LogicError)


def test_arrays_keep_the_status_of_their_last_operation():
    array = gpuarray.to_gpu(np.arange(3.0))
    assert array.last_status
    with pytest.raises(ValueError, match="shape"):
        array + gpuarray.to_gpu(np.arange(4.0))
    assert array.last_status == 1
    assert array.last_status.name == "InvalidValue"  # this library's own check
    _ = array + 1
    assert array.last_status == 0


def test_streams_and_events_keep_the_status_of_their_last_call():
    start, end, stream = driver.Event(), driver.Event(), driver.Stream()
    assert start.last_status
    assert stream.last_status
    with pytest.raises(driver.LogicError):
        end.time_since(start)
    assert end.last_status == 400
    assert end.record(stream).synchronize().last_status
