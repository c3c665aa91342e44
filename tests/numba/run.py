"""Runs numba-cuda's own memory tests, unmodified, with pygpu.cuda as `numba.cuda`.

    .venv/bin/python tests/numba/run.py [--wheel FILE] [PART ...]

pip downloads numba-cuda's wheel, whose test files are read and never kept here; numba itself is not
needed. Tests that compile kernels or use numba's own types are skipped. Tests that cannot pass are
in `expected.toml` with the reason, and must fail. A PART selects tests by name. The exit status is
1 after a failure that is not listed, or if a listed test does not fail.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import subprocess
import sys
import tempfile
import types
import unittest
import zipfile
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
import pytest

from pygpu import cuda

try:
    import tomllib
except ImportError:
    import tomli as tomllib  # type: ignore[no-redef]

HERE = Path(__file__).parent
TESTS = "numba_cuda/numba/cuda/tests/"
FILES = [
    "cudadrv/test_array_attr.py",
    "cudadrv/test_context_stack.py",
    "cudadrv/test_cuda_array_slicing.py",
    "cudadrv/test_cuda_auto_context.py",
    "cudadrv/test_cuda_devicerecord.py",
    "cudadrv/test_cuda_memory.py",
    "cudadrv/test_cuda_ndarray.py",
    "cudadrv/test_deallocations.py",
    "cudadrv/test_events.py",
    "cudadrv/test_host_alloc.py",
    "cudadrv/test_managed_alloc.py",
    "cudadrv/test_pinned.py",
    "cudadrv/test_profiler.py",
    "cudadrv/test_reset_device.py",
    "cudadrv/test_select_device.py",
    "cudadrv/test_streams.py",
    "cudapy/test_cuda_array_interface.py",
    "cudapy/test_ipc.py",
    "cudapy/test_multigpu.py",
    "cudapy/test_stream_api.py",
]


# -- names that the tests import -------------------------------------------------------------


def needs_kernels(*_args: Any, **_kwargs: Any) -> NoReturn:
    """Replaces functions that compile kernels: skips the test."""
    raise unittest.SkipTest("compiles a kernel")


class Kernels:
    """Skips a test that uses a name which does not concern memory."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return needs_kernels


class CUDATestCase(unittest.TestCase):
    """The assertions that the tests use in addition to unittest's."""

    def assertPreciseEqual(self, first: Any, second: Any) -> None:
        assert (first.dtype, first.shape) == (second.dtype, second.shape)
        np.testing.assert_array_equal(first, second)


class ForeignArray:
    """Another library's array."""

    def __init__(self, array: Any) -> None:
        self.__cuda_array_interface__ = array.__cuda_array_interface__
        self._array = array


def keep(_reason: str) -> Any:
    """Returns a decorator that changes nothing."""
    return lambda item: item


@contextlib.contextmanager
def captured(name: str) -> Any:
    """Collects the output that is written to a stream."""
    redirect = {"stdout": contextlib.redirect_stdout, "stderr": contextlib.redirect_stderr}[name]
    with redirect(io.StringIO()) as text:
        yield text


def module(name: str, **names: Any) -> types.ModuleType:
    """Creates a module that `import` finds."""
    result = types.ModuleType(name)
    result.__dict__.update(names)
    result.__path__ = []
    sys.modules[name] = result
    parent, _, last = name.rpartition(".")
    if parent:
        setattr(sys.modules[parent], last, result)
    return result


def install() -> None:
    """Installs pygpu.cuda as `numba.cuda`, with the parts of numba that only tests use."""
    module("numba", **dict.fromkeys(("vectorize", "guvectorize"), needs_kernels))
    sys.modules["numba"].cuda = sys.modules["numba.cuda"] = front = module("numba.cuda")
    front.__dict__.update({name: getattr(cuda, name) for name in cuda.__all__})
    front.__getattr__ = Kernels().__getattr__  # type: ignore[method-assign]
    # unittest skips only for its own exception.
    pytest.importorskip = needs_kernels  # type: ignore[assignment]
    for part in ("devicearray", "devices", "driver", "error"):
        sys.modules[f"numba.cuda.cudadrv.{part}"] = getattr(cuda.cudadrv, part)
    sys.modules["numba.cuda.cudadrv"] = cuda.cudadrv
    config = types.SimpleNamespace(ENABLE_CUDASIM=False, CUDA_DEALLOCS_COUNT=10)
    skips = ["skip_on_cudasim", "skip_on_arm", "skip_on_wsl2", "skip_under_cuda_memcheck"]
    module("cuda")
    module("cuda.core", **dict.fromkeys(("Buffer", "Device"), needs_kernels))
    module("cuda.core.utils", StridedMemoryView=needs_kernels)
    module(
        "numba.cuda.testing",
        unittest=unittest,
        CUDATestCase=CUDATestCase,
        ForeignArray=ForeignArray,
        skip_if_external_memmgr=unittest.skip,
        skip_unless_cudasim=unittest.skip,
        **dict.fromkeys(skips, keep),
    )
    module("numba.cuda.core", config=config)
    module("numba.cuda.np", numpy_support=Kernels())
    module("numba.cuda.tests")
    module(
        "numba.cuda.tests.support",
        IS_NUMPY_2=np.lib.NumpyVersion(np.__version__) >= "2.0.0",
        linux_only=unittest.skipUnless(sys.platform == "linux", "Linux only"),
        windows_only=unittest.skipUnless(sys.platform == "win32", "Windows only"),
        captured_stdout=lambda: captured("stdout"),
        captured_stderr=lambda: captured("stderr"),
        override_config=needs_kernels,
    )


# -- the run ---------------------------------------------------------------------------------


def fetch(folder: Path) -> Path:
    """Downloads numba-cuda's wheel."""
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "-d", str(folder)]
    subprocess.run([*command, "numba-cuda"], check=True)
    return next(folder.glob("numba_cuda-*.whl"))


def load(wheel: Path, folder: Path) -> unittest.TestSuite:
    """Imports the test files, and returns their tests."""
    suite = unittest.TestSuite()
    sys.path.insert(0, str(folder))
    with zipfile.ZipFile(wheel) as package:
        for file in FILES:
            name = Path(file).stem
            (folder / f"{name}.py").write_bytes(package.read(TESTS + file))
            try:
                suite.addTests(unittest.defaultTestLoader.loadTestsFromName(name))
            except unittest.SkipTest as reason:
                print(f"{name}: left out, {reason}")
    return suite


def each(suite: Any) -> Any:
    """Yields the tests of a suite."""
    for entry in suite:
        if isinstance(entry, unittest.TestSuite):
            yield from each(entry)
        else:
            yield entry


def main() -> int:
    """Runs the tests, and compares the outcome with the list."""
    parser = argparse.ArgumentParser(description="Runs numba-cuda's tests of memory over pygpu.")
    parser.add_argument("parts", nargs="*", metavar="PART")
    parser.add_argument("--wheel", type=Path, help="numba-cuda's wheel, if it is there already")
    options = parser.parse_args()
    from pygpu import choose_backend

    expected = {}
    for entry in tomllib.loads((HERE / "expected.toml").read_text())["failure"]:
        if choose_backend() in entry.get("backends", [choose_backend()]):
            expected.update(dict.fromkeys(entry["tests"], entry["reason"]))
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        suite = load(options.wheel or fetch(folder), folder)
        # The start-up time of a process must not cause a failure here.
        sys.modules["test_ipc"].FUTURE_TIMEOUT = 120  # type: ignore[attr-defined]
        tests = [
            test
            for test in each(suite)
            if not options.parts or any(part in test.id() for part in options.parts)
        ]
        result = unittest.TextTestRunner(verbosity=0).run(unittest.TestSuite(tests))
    failed = set()
    for test, _ in result.failures + result.errors:
        failed.add(getattr(test, "test_case", test).id())
    run = {test.id() for test in tests} - {test.id() for test, _ in result.skipped}
    unlisted = sorted(failed - expected.keys())
    passed = sorted((expected.keys() & run) - failed)
    print(
        f"backend {choose_backend()}: {len(tests)} tests, {len(result.skipped)} skipped, ", end=""
    )
    print(f"{len(run - failed)} passed, {len(failed & expected.keys())} failed as listed")
    for name in unlisted:
        print(f"failed: {name}")
    for name in passed:
        print(f"listed, but passed: {name}")
    return int(bool(unlisted or passed))


# Processes that the tests start import this file as well, and then the test files.
if __name__ in ("__main__", "__mp_main__"):
    install()

if __name__ == "__main__":
    sys.exit(main())
