"""Arrays in MPI: mpi4py with Debian's MPICH transfers the host device's memory directly."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys

import pytest
from device import BACKEND
from processes import LIMIT, fetched

pytestmark = [
    pytest.mark.skipif(
        importlib.util.find_spec("mpi4py") is None, reason="mpi4py is not installed"
    ),
    pytest.mark.skipif(
        BACKEND != "host", reason="Debian's MPI knows no GPU: it would read device memory itself"
    ),
]

# Every process runs the same program; `rank` is its number, and `size` the number of
# processes.
HEAD = """
import numpy as np
import pygpu.autoinit
from mpi4py import MPI
from pygpu import driver, gpuarray

world = MPI.COMM_WORLD
rank, size = world.rank, world.size
assert size == 3

def refuses(function, *arguments, **options):
    try:
        function(*arguments, **options)
    except BufferError as error:
        return str(error)
    raise AssertionError("nothing was raised")

def same(array, expected):
    expected = np.asarray(expected)
    assert (array.shape, array.dtype) == (expected.shape, expected.dtype), array
    np.testing.assert_array_equal(array.get(), expected)
"""


PROGRAMS = {
    "messages_between_two": """
        to, source = (rank + 1) % size, (rank - 1) % size
        for dtype in ("i1", "u2", "i4", "u8", "f4", "f8", "c8", "c16", "?"):
            for shape in ((7,), (2, 3), (), (0,), (3, 0), (1 << 16,)):
                host = np.arange(np.prod(shape)).reshape(shape) + 1
                sent = gpuarray.to_gpu((host * (rank + 1)).astype(dtype))
                got = gpuarray.zeros(shape, dtype)
                address = got.ptr
                # What MPI reads and writes is the array's own memory.
                assert sent.size == 0 or MPI.Get_address(sent) == sent.ptr
                world.Sendrecv(sent, to, recvbuf=got, source=source)
                same(got, (host * (source + 1)).astype(dtype))
                assert got.ptr == address
        # Objects are pickled, and arrive on the receiver's device.
        found = world.sendrecv({"a": gpuarray.arange(3) * rank}, to, source=source)
        same(found["a"], np.arange(3) * source)
    """,
    "what_is_queued_before_a_message_is_in_it": """
        count = 1 << 20
        if rank == 0:
            streams = [driver.Stream() for _ in range(4)]
            for k in range(20):
                array = gpuarray.zeros(count, "f4")
                for stream in streams:
                    array.fill(-1, stream=stream)
                array.fill(k, stream=streams[k % 4])
                world.Send(array, dest=1, tag=k)
        elif rank == 1:
            got = gpuarray.empty(count, "f4")
            for k in range(20):
                request = world.Irecv(got, source=0, tag=k)
                request.Wait()
                # Work after the message reads what it brought.
                low, high = gpuarray.min(got), gpuarray.max(got * 2)
                assert (low.get(), high.get()) == (k, 2 * k), k
    """,
    "collective_operations": """
        shared = gpuarray.arange(10, dtype="f8") if rank == 1 else gpuarray.zeros(10, "f8")
        world.Bcast(shared, root=1)
        same(shared, np.arange(10.0))

        own = gpuarray.arange(5, dtype="i8") * (rank + 1)
        total, most = gpuarray.zeros(5, "i8"), gpuarray.zeros(5, "i8")
        world.Allreduce(own, total)
        world.Allreduce(own, most, op=MPI.MAX)
        same(total, np.arange(5) * 6)
        same(most, np.arange(5) * 3)
        world.Allreduce(MPI.IN_PLACE, own, op=MPI.SUM)
        same(own, np.arange(5) * 6)

        row = gpuarray.zeros(4, "f4") + rank
        rows = gpuarray.zeros((3, 4), "f4") if rank == 0 else None
        world.Gather(row, rows, root=0)
        if rank == 0:
            same(rows, np.repeat(np.arange(3, dtype="f4")[:, None], 4, 1))
        back = gpuarray.zeros(4, "f4")
        world.Scatter(rows, back, root=0)
        same(back, np.full(4, rank, "f4"))
        everything = gpuarray.zeros((3, 4), "f4")
        world.Allgather(row, everything)
        same(everything, np.repeat(np.arange(3, dtype="f4")[:, None], 4, 1))
        turned = gpuarray.zeros(3, "i4")
        world.Alltoall(gpuarray.arange(3, dtype="i4") + 10 * rank, turned)
        same(turned, np.arange(3, dtype="i4") * 10 + rank)
        # numpy's arrays and the device's meet in one call.
        host = np.zeros(5, "i8")
        world.Allreduce(gpuarray.arange(5, dtype="i8"), host)
        np.testing.assert_array_equal(host, np.arange(5) * 3)
    """,
    "slices": """
        whole = gpuarray.arange(24, dtype="i4").reshape(4, 6)
        if rank == 0:
            world.Send(whole[1:3], dest=1)
            world.Send(whole[3, 2:5], dest=1)
            # In Fortran's order the memory has no gaps, and travels in its own order.
            world.Send(whole.T, dest=1)
        elif rank == 1:
            target = gpuarray.zeros((4, 6), "i4")
            world.Recv(target[2:], source=0)
            expected = np.zeros((4, 6), "i4")
            expected[2:] = np.arange(24).reshape(4, 6)[1:3]
            same(target, expected)
            world.Recv(target[0, :3], source=0)
            expected[0, :3] = [20, 21, 22]
            same(target, expected)
            world.Recv(target, source=0)
            same(target, np.arange(24, dtype="i4").reshape(4, 6))
    """,
    "what_is_refused": """
        whole = gpuarray.arange(24, dtype="f4").reshape(4, 6)
        for view in (whole[:, ::2], whole[:, 1:], gpuarray.broadcast_to(whole[0], (2, 6))):
            assert "not contiguous" in refuses(world.Send, view, dest=rank)
            assert "not contiguous" in refuses(world.Recv, view, source=rank)
            assert "not contiguous" in refuses(world.Bcast, view)
            assert "not contiguous" in refuses(world.Allreduce, view, view.copy())
        assert "negative" in refuses(world.Send, whole[::-1], dest=rank)
        record = gpuarray.zeros(3, [("a", "i4"), ("b", "f4")])
        assert "DLPack does not support" in refuses(world.Send, record, dest=rank)
        # As bytes a record travels.
        request = world.Isend(record.view("u1"), dest=rank)
        world.Recv(record.view("u1"), source=rank)
        request.Wait()
        # Nothing of what was refused is on its way.
        assert not world.Iprobe()
        same(whole, np.arange(24, dtype="f4").reshape(4, 6))
    """,
}


def test_programs_in_three_processes():
    folder = fetched("mpi", "mpi")
    environment = os.environ | {
        "LD_LIBRARY_PATH": str(folder / "lib"),
        "MPI4PY_MPIABI": "mpich",
        "UCX_LOG_LEVEL": "error",
    }
    # All programs in one start; tracebacks name the program.
    texts = [f"def {name}():{text}\n{name}()\n" for name, text in PROGRAMS.items()]
    command = [folder / "bin/mpiexec", "-launcher", "fork", "-n", "3", sys.executable, "-c"]
    done = subprocess.run(
        [*command, HEAD + "".join(texts) + "print('ended')\n"],
        capture_output=True,
        text=True,
        timeout=LIMIT,
        env=environment,
        check=False,
    )
    assert (done.returncode, done.stdout.count("ended")) == (0, 3), done.stderr[-3000:]
