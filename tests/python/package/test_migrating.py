"""Runs this library's call in each row of the tables in docs/migrating."""

from __future__ import annotations

import json
import pickle
import re
from pathlib import Path

import numpy as np
import pytest
from tables import each_row

import PyGPU as gpu
import pygpu
from pygpu import (
    arrow,
    compiler,
    cuda,
    cumath,
    driver,
    elementwise,
    gpuarray,
    ipc,
    reduction,
    scan,
    tools,
)

PAGES = Path(__file__).parents[3] / "docs" / "migrating"
ROW = re.compile(r"\| (?P<there>.+) \| `(?P<here>[^|]+)` \|")


def rows(path):
    """The calls of this library in the page's table, whose head ends with `here`."""
    in_table = False
    for line in path.read_text().splitlines():
        in_table = line.endswith("| here |") or (in_table and line.startswith("|"))
        if in_table and line.startswith("| ") and not line.endswith("| here |"):
            found = ROW.fullmatch(line)
            assert found, line
            yield pytest.param(found["here"], id=f"{path.stem}-{found['here']}")


def test_each_page_has_its_table():
    counts = {path.stem: len(list(rows(path))) for path in PAGES.glob("*.md")}
    assert set(counts) == {"pygpu", "pycuda", "numba", "cupy", "pyarrow", "node-rapids"}
    assert min(counts.values()) > 9, counts


@each_row("call", [row for path in sorted(PAGES.glob("*.md")) for row in rows(path)])
def test_each_call_is_there(call):
    h = np.arange(6, dtype=np.float32).reshape(2, 3)
    x = np.arange(6)
    names = {
        "np": np,
        "pygpu": pygpu,
        "gpu": gpu,
        "gpuarray": gpuarray,
        "driver": driver,
        "cuda": cuda,
        "d": cuda.to_device(h),
        "d1": cuda.to_device(h.ravel()),
        "s": cuda.stream(),
        "cumath": cumath,
        "tools": tools,
        "compiler": compiler,
        "elementwise": elementwise,
        "reduction": reduction,
        "scan": scan,
        "h": h,
        "x": x,
        "a": gpuarray.to_gpu(h),
        "b": gpuarray.to_gpu(h + 1),
        "g": gpu.to_gpu(x),
        "arrow": arrow,
        "ctx": arrow.Context(0),
        "buf": arrow.Context(0).buffer_from_data(h),
        "da": gpu.DeviceArray_int64(x),
        "m": driver.mem_alloc(h.nbytes),
    }
    if "batch" in call or call == "buf.copy_to_host()":
        pa = pytest.importorskip("pyarrow", reason="pyarrow is not installed")
        names["batch"] = pa.record_batch({"x": h[0], "y": ["a", None, "b"]})
    with ipc.empty(6, np.float32).ipc_handle() as descriptor:
        shared, mask = ipc.empty(6, np.float32), ipc.empty(1, np.uint8)
        with ipc.export_column(shared, mask) as column:
            node = json.dumps(descriptor.to_node())
            names |= {"ipc": ipc, "pickle": pickle, "shared": shared, "mask": mask}
            names |= {"descriptor": descriptor, "column": column, "node": node}
            result = eval(call, names)
    if isinstance(result, gpu.cudaError_t):
        assert result
    if isinstance(result, ipc.Descriptor):
        result.close()
