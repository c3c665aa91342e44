"""Out-of-memory errors, on the host backend with a small capacity."""

from __future__ import annotations

import re

from processes import run_python

LIMITED = {"PYGPU_BACKEND": "host", "PYGPU_HOST_MEMORY": "64M"}


def test_out_of_memory_says_how_much():
    done = run_python(
        """
        import numpy as np, pygpu.autoinit
        from pygpu import driver, gpuarray
        held = gpuarray.zeros(5 << 20, np.float32)
        free, total = driver.mem_get_info()
        assert total == 64 << 20 and free == 44 << 20, (free, total)
        for fail in (
            lambda: gpuarray.empty(50 << 20, np.uint8),
            lambda: driver.mem_alloc(50 << 20),
            lambda: gpuarray.to_gpu(np.zeros(50 << 20, np.uint8)),
        ):
            try:
                fail()
            except MemoryError as error:
                assert isinstance(error, driver.MemoryError)
                print(error)
            else:
                raise AssertionError("no error")
            assert driver.mem_get_info() == (free, total)
        """,
        **LIMITED,
    )
    lines = done.stdout.splitlines()
    assert len(lines) == 3
    for line in lines:
        # Requested, used and available memory, in bytes or in larger units.
        asked, used, available = 50 << 20, 20 << 20, 44 << 20
        for number, mebibytes in ((asked, 50), (used, 20), (available, 44)):
            assert str(number) in line or re.search(rf"\b{mebibytes}(\.0+)? ?Mi?B", line), line


def test_an_operation_that_runs_out_changes_nothing():
    run_python(
        """
        import numpy as np, pygpu.autoinit
        from pygpu import driver, gpuarray
        a = gpuarray.ones(10 << 20, np.float32)
        before = driver.mem_get_info()
        for fail in (
            lambda: a + 1,
            lambda: a.copy(),
            lambda: a.astype(np.float64),
            lambda: gpuarray.concatenate([a, a]),
            lambda: a > 0,
            lambda: gpuarray.zeros_like(a),
        ):
            try:
                made = fail()
                del made
            except MemoryError:
                pass
            assert driver.mem_get_info() == before
        a += 1
        assert (a.get() == 2).all()
        """,
        **LIMITED,
    )


def test_memory_in_use_by_queued_work_is_waited_for():
    # Each array is dropped while its work may still be queued; its memory is freed when it is
    # needed.
    run_python(
        """
        import numpy as np, pygpu.autoinit
        from pygpu import driver, gpuarray
        stream = driver.Stream()
        for value in range(25):
            a = gpuarray.empty(6 << 20, np.float32)
            a.fill(value, stream)
            del a
        """,
        **LIMITED,
    )


def test_results_of_a_long_expression_are_given_back():
    run_python(
        """
        import numpy as np, pygpu.autoinit
        from pygpu import driver, gpuarray
        a = gpuarray.ones(2 << 20, np.float32)
        for _ in range(12):  # All of the memory is needed in less than ten.
            b = a * 2 + a / 3 - (a > 0) * a
        assert (b.get() == np.float32(1) * 2 + np.float32(1) / 3 - 1).all()
        """,
        **LIMITED,
    )


def test_an_unreadable_capacity_is_refused():
    done = run_python(
        "import pygpu.autoinit",
        check=False,
        PYGPU_BACKEND="host",
        PYGPU_HOST_MEMORY="plenty",
    )
    assert done.returncode == 1
    assert "PYGPU_HOST_MEMORY" in done.stderr.splitlines()[-1]
    assert "plenty" in done.stderr.splitlines()[-1]
