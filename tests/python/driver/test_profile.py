"""Profiles: what is recorded, the lines that caused it, and the table, timeline and page."""

from __future__ import annotations

import itertools
import json
import re
import shutil
import subprocess
import sys
import threading
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest
from device import BACKEND
from processes import ROOT, run_python

import pygpu
from pygpu import driver, gpuarray, tools
from pygpu.compiler import SourceModule
from pygpu.elementwise import ElementwiseKernel
from pygpu.reduction import ReductionKernel

N = 1000
x = gpuarray.to_gpu(np.arange(N, dtype=np.float32))
y = gpuarray.zeros(N, np.float32)
stream = driver.Stream()
memory = driver.mem_alloc(4 * N)
pinned = driver.pagelocked_empty(N, np.float32)
axpy = ElementwiseKernel("float a, float *x, float *y", "y[i] += a * x[i]", "axpy")
dot = ReductionKernel(np.float32, "0", "a + b", "x[i] * y[i]", "float *x, float *y")
twice = SourceModule(
    "__global__ void twice(float *x, int n) { int i = threadIdx.x; if (i < n) x[i] *= 2; }"
).get_function("twice")


def row(recorded, kind, name=None):
    """Returns the only row of a kind, or of a kind and name."""
    found = [it for it in recorded.rows if it["kind"] == kind and name in (None, it["name"])]
    assert len(found) == 1, (kind, name, [(it["kind"], it["name"]) for it in recorded.rows])
    return found[0]


# A call, the kind and the name of its row, and its bytes.
CALLS = [
    (lambda: x + y, "operation", "add float32", 12 * N),
    (lambda: x + 1, "operation", "add float32", 8 * N),
    (lambda: np.sqrt(x), "operation", "sqrt float32", 8 * N),
    (lambda: x.sum(), "operation", "sum float32", 4 * N + 4),
    (lambda: np.sort(x), "operation", "sort float32", 8 * N),
    (lambda: x.fill(2), "operation", "copy float32", 4 * N),
    (lambda: y.__setitem__(slice(0, 10), 3), "operation", "copy float32", 40),
    (lambda: gpuarray.arange(N, dtype=np.float32), "operation", "arange float32", 4 * N),
    (lambda: axpy(2, x, y), "kernel", None, 8 * N),
    (lambda: twice(y, np.int32(9), block=(16, 1, 1)), "kernel", "twice", 4 * N),
    (lambda: gpuarray.to_gpu(pinned), "copy", "host to device", 4 * N),
    (lambda: x.set(pinned), "copy", "host to device", 4 * N),
    (lambda: x.get(), "copy", "device to host", 4 * N),
    (lambda: driver.memcpy_htod(memory, pinned), "copy", "host to device", 4 * N),
    (lambda: driver.memcpy_dtoh_async(pinned, memory, stream), "copy", "device to host", 4 * N),
    (lambda: driver.memcpy_dtod(memory, x.gpudata, 400), "copy", "device to device", 800),
    (lambda: driver.memset_d32(memory, 7, N), "fill", "fill", 4 * N),
    (lambda: gpuarray.empty(N, np.float64), "allocate", None, 8 * N),
    (lambda: driver.mem_alloc(777), "allocate", None, 777),
    # A pool's block of this size has 255 bytes more.
    (lambda: tools.DeviceMemoryPool().allocate(4096), "allocate", None, 4351),
    (lambda: stream.synchronize(), "wait", "stream", 0),
    (lambda: driver.Event().record().synchronize(), "wait", "event", 0),
    (lambda: driver.Context.synchronize(), "wait", "device", 0),
]


@pytest.mark.parametrize("number", range(len(CALLS)))
def test_each_call_has_a_row_with_its_line(number):
    call, kind, name, size = CALLS[number]
    call()
    driver.Context.synchronize()
    with pygpu.profile() as p:
        kept = call()
    found = row(p, kind, name)
    assert found["line"] == f"{__file__}:{call.__code__.co_firstlineno}"
    assert found["bytes"] == size
    assert found["seconds"] >= 0
    is_queued = kind in ("operation", "kernel", "copy", "fill")
    assert (found["device_seconds"] is not None) == is_queued
    assert (found["stream"] is not None) == is_queued
    del kept


def test_a_launch_has_its_grid_and_a_reduction_all_its_kernels():
    with pygpu.profile() as p:
        twice(y, np.int32(9), block=(16, 2, 1), grid=(3, 1), stream=stream)
        result = dot(x, y)
    found = row(p, "kernel", "twice")
    assert (found["grid"], found["block"]) == ((3, 1, 1), (16, 2, 1))
    kernels = [it for it in p.rows if it["kind"] == "kernel"]
    assert len(kernels) >= 2
    assert len({it["line"] for it in kernels}) == 2
    assert len({it["stream"] for it in kernels}) == 2
    del result


def test_the_line_is_the_programs_even_inside_the_package():
    with pygpu.profile() as p:
        gpuarray.to_gpu(np.arange(8.0)).std()
        here = sys._getframe().f_lineno - 1
    lines = {it["line"] for it in p.rows if it["kind"] == "operation"}
    assert lines == {f"{__file__}:{here}"}


def test_large_work_without_pythons_lock_has_its_line():
    large = gpuarray.zeros(3_000_000, np.float32)
    with pygpu.profile() as p:
        result = large + 1
        here = sys._getframe().f_lineno - 1
    assert row(p, "operation")["line"] == f"{__file__}:{here}"
    del result


def test_nested_blocks_have_what_they_saw():
    with pygpu.profile("outer") as outer:
        a = x + 1
        with pygpu.profile("inner") as inner:
            b = x * 2
        c = x - 1
    names = lambda p: [it["name"] for it in p.rows if it["kind"] == "operation"]  # noqa: E731
    assert names(inner) == ["multiply float32"]
    assert names(outer) == ["add float32", "multiply float32", "subtract float32"]
    del a, b, c


def test_an_exception_ends_the_recording():
    p = pygpu.profile("failing")
    with pytest.raises(ValueError, match="7"), p:
        (x + 1).reshape(7)
    assert row(p, "operation")["name"] == "add float32"
    with pytest.raises(RuntimeError, match="'failing'|\"failing\""), p:
        pass


def test_nothing_is_shown_before_the_end():
    p = pygpu.profile("early")
    assert "not begun" in repr(p)
    assert p._repr_html_() is None
    with pytest.raises(RuntimeError, match=r"leave its `with` block first"):
        p.table()


def test_work_of_threads_has_tracks_of_its_own(tmp_path):
    def work():
        with driver.Stream():
            (gpuarray.zeros(N, np.float32) + 1).get()

    with pygpu.profile() as p:
        threads = [threading.Thread(target=work) for _ in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    rows = [it for it in p.rows if it["name"] == "add float32"]
    assert len({it["thread"] for it in rows}) == 3
    assert len({it["line"] for it in rows}) == 1


def test_captured_work_has_no_device_time_and_its_graph_works():
    capturing = driver.Stream(1)
    a = gpuarray.ones(4, np.float32)
    driver.Context.synchronize()
    with pygpu.profile() as p:
        with capturing.capture() as graph:
            a.on(capturing).fill(5)
        graph.launch(capturing)
        capturing.synchronize()
    assert row(p, "operation")["device_seconds"] is None
    assert row(p, "graph")["device_seconds"] is not None
    assert a.get().tolist() == [5] * 4


def test_memory_in_use_follows_the_program():
    with pygpu.profile() as p:
        a = gpuarray.empty(50_000, np.uint8)
        b = gpuarray.empty(70_000, np.uint8)
        a.gpudata.free()
        b.gpudata.free()
    rows = [it for it in p.rows if it["kind"] in ("allocate", "free")]
    changes = np.diff([0, *(it["in_use"] for it in rows)]).tolist()
    assert changes == [50_000, 70_000, -50_000, -70_000]
    assert all(it["line"].startswith(__file__) for it in rows)


# ---- table, timeline, page -----------------------------------------------------------------------


def two_streams():
    other = driver.Stream()
    with pygpu.profile("two <streams>") as p:
        a = x + y
        twice(y, np.int32(9), block=(16, 1, 1), stream=other)
        other.synchronize()
        a.get()
    return p


def test_the_table_compares_with_the_device():
    p = two_streams()
    text = str(p)
    assert text.splitlines()[0].startswith("two <streams>: ")
    assert re.search(r"limit [\d.]+ GB/s, a copy inside the device, measured", text)
    (line,) = [it for it in text.splitlines() if "add float32" in it]
    assert re.search(r"operation +add float32 +1 .*\d% +\S*test_profile.py:\d+$", line)
    assert list(p.limits) == [f"{BACKEND}:0"]
    assert p.limits[f"{BACKEND}:0"] > 0
    assert "add float32" in p._repr_html_()


@pytest.mark.parametrize("sort", ["time", "bytes", "count", "bandwidth"])
def test_the_table_is_sorted(sort):
    lines = two_streams().table(sort).splitlines()
    header = next(place for place, line in enumerate(lines) if line.startswith("kind"))
    assert len(lines) > header + 3
    if sort == "bytes":
        assert "add float32" in lines[header + 1]


def test_a_wrong_order_or_file_is_refused(tmp_path):
    p = two_streams()
    with pytest.raises(driver.Error, match="allowed are time, bytes, count and bandwidth"):
        p.table("name")
    with pytest.raises(ValueError, match=r"must end in \.html, \.json or \.txt"):
        p.save(tmp_path / "run.png")
    assert list(tmp_path.iterdir()) == []


def test_the_timeline_is_chromes_trace_format(tmp_path):
    two_streams().save(tmp_path / "run.json")
    events = json.loads((tmp_path / "run.json").read_text())["traceEvents"]
    names = {
        (it["name"], it["pid"], it["tid"]): it["args"]["name"] for it in events if it["ph"] == "M"
    }
    spans = [it for it in events if it["ph"] == "X"]
    tracks = {(it["pid"], it["tid"]) for it in spans}
    assert len([pid for pid, _ in tracks if pid == 1]) == 2
    for pid, tid in tracks:
        assert ("process_name", pid, 0) in names
        assert names["thread_name", pid, tid].split()[0] == ("thread" if pid == 0 else "stream")
        own = sorted((it["ts"], it["dur"]) for it in spans if (it["pid"], it["tid"]) == (pid, tid))
        if pid:
            for (start, length), (following, _) in itertools.pairwise(own):
                assert start + length <= following + 0.002
    assert all(it["args"]["line"].startswith(__file__) for it in spans if it["cat"] != "free")
    (kernel,) = [it for it in spans if it["name"] == "twice" and it["pid"] == 1]
    assert kernel["args"]["block"] == [16, 1, 1]
    assert any(it["ph"] == "C" and it["args"]["bytes"] for it in events)


class Page(HTMLParser):
    """The texts of a page's cells and scripts, and the files that it refers to."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.cells: list[str] = []
        self.scripts: list[str] = []
        self.files: list[str] = []
        self.title = ""
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attributes):
        self.files += [value for name, value in attributes if name in ("src", "href")]
        if tag not in ("meta", "link", "br"):
            self.open.append(tag)
        if tag == "script":
            self.scripts.append("")
        if tag == "td":
            self.cells.append("")

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        tag = self.open[-1] if self.open else ""
        if tag == "script":
            self.scripts[-1] += data
        elif tag == "td":
            self.cells[-1] += data
        elif tag == "title":
            self.title += data


def test_the_page_needs_no_other_file(tmp_path):
    p = two_streams()
    p.save(tmp_path / "run.html")
    p.save(tmp_path / "run.json")
    text = (tmp_path / "run.html").read_text()
    page = Page(text)
    assert page.open == []
    assert page.files == []
    assert "url(" not in text
    assert "@import" not in text
    assert "://" not in text
    assert page.title == "two <streams>"
    assert "add float32" in page.cells
    assert "twice" in page.cells
    assert json.loads(page.scripts[0]) == json.loads((tmp_path / "run.json").read_text())


BROWSER = shutil.which("chromium") or shutil.which("google-chrome")


@pytest.mark.skipif(BROWSER is None, reason="no Chromium is installed")
@pytest.mark.parametrize("width", [1200, 420])
def test_a_browser_draws_the_page(tmp_path, width):
    two_streams().save(tmp_path / "run.html")
    command = [BROWSER, "--headless=new", "--no-sandbox", "--disable-gpu", "--dump-dom"]
    command += [f"--user-data-dir={tmp_path}/user", f"--window-size={width},800"]
    done = subprocess.run(
        [*command, f"file://{tmp_path}/run.html"],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    # A track for each of two streams and the thread; the script sets the heights last.
    heights = re.findall(r'<canvas id="(\w+)"[^>]*height: (\d+)px', done.stdout)
    assert heights == [("timeline", "98"), ("memory", "140")], done.stderr[-2000:]


# ---- programs ------------------------------------------------------------------------------------

PROGRAM = """\
import sys
import numpy as np
import pycuda.autoinit
from pycuda import gpuarray

a = gpuarray.to_gpu(np.arange(1000, dtype=np.float32))
leak = [gpuarray.zeros(500, np.float32) for _ in range(3)]
print(sys.argv[1:], (a + 1).get()[0])
sys.exit(5)
"""


def run_profile(*arguments, cwd=None):
    return subprocess.run(
        [sys.executable, "-m", "pygpu", "profile", *map(str, arguments)],
        capture_output=True,
        text=True,
        timeout=120,
        cwd=cwd,
        check=False,
    )


def test_a_program_is_profiled_and_keeps_its_output_and_status(tmp_path):
    script = tmp_path / "program.py"
    script.write_text(PROGRAM)
    files = [tmp_path / f"run.{ending}" for ending in ("html", "json", "txt")]
    options = [part for file in files for part in ("-o", file)]
    done = run_profile("--memory", "--sort=count", *options, script, "--memory", "7")
    assert (done.returncode, done.stdout) == (5, "['--memory', '7'] 1.0\n"), done.stderr
    assert re.search(rf"operation +add float32 .*{script}:8$", done.stderr, re.M)
    assert f"6000 bytes in 3 objects, made at {script}:7" in done.stderr
    assert re.search(r"at most \d+ bytes more than when recording began", done.stderr)
    assert "add float32" in Page(files[0].read_text()).cells
    assert json.loads(files[1].read_text())["traceEvents"]
    assert "add float32" in files[2].read_text()


def test_a_failing_program_is_profiled_too(tmp_path):
    done = run_profile("-c", "from pygpu import gpuarray; gpuarray.zeros(9, 'f4') + 1; 1 / 0")
    assert done.returncode == 1
    assert "ZeroDivisionError" in done.stderr
    assert "add float32" in done.stderr


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["-o", "run.png", "x.py"], "the output is 'run.png'; it must end in .html, .json, .txt"),
        (["-o", "none/run.html", "x.py"], "whose folder does not exist"),
        (["--sort", "name", "x.py"], "the order is 'name'; allowed are time, bytes, count"),
        (["--colour", "x.py"], "unknown option --colour"),
        (["--output"], "--output needs a value"),
        ([], "usage: pygpu profile"),
        (["--memory"], "usage: pygpu profile"),
    ],
)
def test_a_wrong_command_line_runs_nothing(arguments, said, tmp_path):
    (tmp_path / "x.py").write_text("print('ran')")
    done = run_profile(*arguments, cwd=tmp_path)
    assert "ran" not in done.stdout
    assert (done.returncode, said in done.stdout + done.stderr) == (2, True), done


def test_a_program_without_a_device_opens_none():
    done = run_profile("--memory", "-c", "print(1)")
    assert (done.returncode, done.stdout) == (0, "1\n")
    assert "0 calls" in done.stderr


@pytest.mark.skipif(BACKEND != "host", reason="GPU drivers do not work in a forked child")
def test_a_forked_child_records_for_itself():
    program = """
    import os, warnings
    warnings.simplefilter("ignore", DeprecationWarning)
    import pygpu
    from pygpu import driver, gpuarray
    driver.init()
    outer = pygpu.profile("parent")
    outer.__enter__()
    x = gpuarray.zeros(9, "f4")
    child = os.fork()
    a = gpuarray.ones(10, "f4") + 1
    if child == 0:
        with pygpu.profile("child") as own:
            b = gpuarray.ones(10, "f4") * 2
        assert "multiply float32" in str(own) and "add float32" not in str(own)
        outer.__exit__()
        assert outer.rows == []
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    outer.__exit__()
    assert "add float32" in str(outer) and "multiply" not in str(outer)
    """
    run_python(program, fresh=True)


@pytest.mark.skipif(BACKEND == "host", reason="the host has no resets")
def test_a_reset_during_a_recording():
    run_python(
        """
        import numpy as np, pygpu
        from pygpu import driver, gpuarray
        driver.init()
        device = driver.Device(0)
        with pygpu.profile() as p:
            context = device.make_context()
            a = gpuarray.zeros(10, "f4") + 1
            del a
            device.reset() if hasattr(device, "reset") else context.detach()
            context = device.make_context()
            b = gpuarray.zeros(10, "f4") * 2
            assert b.get().tolist() == [0] * 10
        rows = {row["name"]: row for row in p.rows}
        assert rows["multiply float32"]["device_seconds"] is not None
        assert "add float32" in rows
        context.pop()
        """,
        fresh=True,
    )


# ---- memory --------------------------------------------------------------------------------------


def test_the_memory_report_finds_a_leak():
    kept = []
    with pygpu.profile():
        kept += [gpuarray.empty(12_345, np.uint8) for _ in range(2)]
        here = sys._getframe().f_lineno - 1
        report = pygpu.memory_report()
    assert (f"{__file__}:{here}", 24_690, 2) in report.live
    assert f"24690 bytes in 2 objects, made at {__file__}:{here}" in str(report)
    assert report.peak >= 24_690
    assert 0 < report.free <= report.total
    del kept[:]
    after = pygpu.memory_report()
    assert all(line != f"{__file__}:{here}" for line, *_ in after.live)
    assert after.peak is None


def test_the_memory_report_knows_tracemallocs_lines_and_pools():
    text = run_python(
        """
        import tracemalloc, pygpu
        from pygpu import autoinit, gpuarray, tools
        pool = tools.DeviceMemoryPool()
        block = pool.allocate(4096)
        before = gpuarray.zeros(100, "f4")
        tracemalloc.start(8)
        after = gpuarray.zeros(200, "f4")
        print(pygpu.memory_report())
        """,
        fresh=True,
    ).stdout
    assert "800 bytes in 1 objects, made at <string>:8" in text
    assert "unknown line" in text
    assert re.search(r"a pool has 4351 bytes, 4096 of them in use", text)
    assert "lines are known in a profile" in text


# ---- notebooks and the benchmark -----------------------------------------------------------------


def test_arrays_and_devices_in_a_notebook():
    device = f"{BACKEND}:0 {driver.Device(0).name()}"
    text = gpuarray.to_gpu(np.arange(1000.0).reshape(10, 10, 10))._repr_html_()
    assert f"GPUArray (10, 10, 10) float64 on {device}" in text
    assert "105." in text
    assert "106." not in text
    assert "..." in text
    text = gpuarray.to_gpu(np.array([1, 2]))._repr_html_()
    assert "[1 2]" in text
    assert "..." not in text
    assert "GPUArray () int64" in gpuarray.zeros((), np.int64)._repr_html_()
    assert "GPUArray (0, 3)" in gpuarray.zeros((0, 3), np.int64)._repr_html_()
    text = driver.Device(0)._repr_html_()
    assert device in text
    assert "GiB" in text
    assert Page(text).open == []


def test_the_benchmark_measures_this_machine():
    command = [sys.executable, "-m", "pygpu", "bench", "--elements", "4096"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=240, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert re.search(r"^copy +[\d.,]+ GB/s +\d+%( #|$)", done.stdout, re.M)
    done = subprocess.run(
        [*command, "--json"], capture_output=True, text=True, timeout=240, check=False
    )
    results = json.loads(done.stdout)["results"]
    names = ["copy", "fill", "add", "sum", "host to device", "device to host", "matmul"]
    assert list(results) == names
    assert all(it["rate"] > 0 for it in results.values())


# ---- the library's own calls ---------------------------------------------------------------------

CALLS_THAT_QUEUE = (
    "execute transfer fill gather copy_array transfer_peer launch_raw launch_cooperative"
)
# Calls that are parts of a recorded one, or of none: definitions, decorators, the recorder itself.
INSIDE = ("hal/src/layers", "hal/src/stream", "hal/src/recording", "pygpu/src/texture.rs")


def test_each_call_that_queues_work_is_recorded():
    """Finds an unsafe call of a stream's or a kernel's trait outside `recording::queued`."""
    found, missing = 0, []
    for folder in ("hal/src", "hal/array/src", "pygpu/src"):
        for file in sorted(Path(ROOT / folder).rglob("*.rs")):
            name = file.relative_to(ROOT).as_posix()
            text = re.sub(r"^\s*//.*$", "", file.read_text(), flags=re.M)
            if name.startswith(INSIDE) or name.endswith("tests.rs"):
                continue
            for match in re.finditer(rf"\.({CALLS_THAT_QUEUE.replace(' ', '|')})\(", text):
                before = text[: match.start()]
                if not re.search(r"(stream\(?\)?|kernel)$", before.rstrip()):
                    continue
                found += 1
                if "queued(" not in text[match.start() - 400 : match.end() + 200]:
                    missing.append(f"{name}: {match[0]}")
    assert found >= 11, found
    assert missing == []
