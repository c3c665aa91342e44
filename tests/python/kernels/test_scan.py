"""Scans with a program's own expressions."""

from __future__ import annotations

import numpy as np
import pytest
from device import BACKEND, IS_DOUBLE, TEST_ALL, compiled_examples
from hypothesis import given
from hypothesis import strategies as st
from processes import run_python

from pygpu import _core, checking, driver, gpuarray, tools
from pygpu._kernels.scan_kernel import PART
from pygpu.scan import ExclusiveScanKernel, InclusiveScanKernel


def tile_of(code):
    """Returns the elements of a tile: some bytes for each of 256 threads, at least four
    elements."""
    size = np.dtype(code).itemsize
    return 256 * ((64 if size > 8 else 112 if size in (4, 8) else 96) // max(size, 4))


TILE = tile_of(np.int32)
# Lengths around the ends of tiles, and of the parts that four host threads process concurrently.
PARTS = [PART, PART + 1, 4 * PART + 1, 5 * PART, 9 * PART + 7] if BACKEND == "host" else []
LENGTHS = [0, 1, 2, 255, TILE, TILE + 1, 4 * TILE, 4 * TILE + 1, 70_000, 300_007, *PARTS]
SUM = InclusiveScanKernel(np.int32, "a+b")
BEFORE = ExclusiveScanKernel(np.int32, "a+b", 0)


@pytest.mark.parametrize("length", LENGTHS)
def test_sums(length):
    x = np.random.default_rng(length).integers(-9, 9, length, np.int32)
    expected = np.cumsum(x, dtype=np.int32)
    device = gpuarray.to_gpu(x)
    new = SUM(device, "new")
    assert (new.get() == expected).all()
    assert (device.get() == x).all()
    assert (InclusiveScanKernel(np.int32, "a+b", "0")(device, "new").get() == expected).all()
    other = gpuarray.zeros(length, np.int32)
    assert BEFORE(device, other) is other
    assert (other.get() == expected - x).all()
    assert SUM(device) is device
    assert (device.get() == expected).all()
    assert BEFORE(other) is other


def test_a_stream_and_an_allocator():
    x = np.arange(100_000, dtype=np.int32) % 5
    pool = tools.DeviceMemoryPool()
    result = SUM(gpuarray.to_gpu(x), "new", allocator=pool.allocate, stream=driver.Stream())
    assert result.allocator == pool.allocate
    assert (result.get() == np.cumsum(x)).all()


@pytest.mark.parametrize("length", [1, 100, 50_000, *PARTS])
def test_operators_that_are_not_commutative(length):
    # The operator returns the later one of two values that is not zero.
    last = InclusiveScanKernel(np.int64, "b != 0 ? b : a")
    rng = np.random.default_rng(length)
    x = np.where(rng.random(length) < 0.01, rng.integers(1, 99, length), 0)
    places = np.maximum.accumulate(np.where(x != 0, np.arange(length), 0))
    assert (last(gpuarray.to_gpu(x), "new").get() == x[places]).all()

    # Compositions of maps t -> scale * t + shift modulo 251.
    linear = np.dtype([("scale", np.uint32), ("shift", np.uint32)])
    tools.get_or_register_dtype("scan_linear", linear)
    compose = """
    struct scan_linear {
        unsigned scale, shift;
        __device__ scan_linear() : scale(1), shift(0) {}
        __device__ scan_linear(unsigned s, unsigned t) : scale(s), shift(t) {}
    };
    __device__ scan_linear then(scan_linear a, scan_linear b) {
        return scan_linear(a.scale * b.scale % 251, (b.scale * a.shift + b.shift) % 251);
    }
    """
    maps = np.zeros(length, linear)
    maps["scale"], maps["shift"] = rng.integers(0, 251, (2, length))
    expected = maps.copy()
    for k in range(1, length):
        scale, shift = int(maps[k]["scale"]), int(maps[k]["shift"])
        before = expected[k - 1]
        expected[k] = (
            int(before["scale"]) * scale % 251,
            (scale * int(before["shift"]) + shift) % 251,
        )
    device = gpuarray.to_gpu(maps)
    inclusive = InclusiveScanKernel(linear, "then(a, b)", preamble=compose, name_prefix="compose")
    assert (inclusive(device, "new").get() == expected).all()
    exclusive = ExclusiveScanKernel(linear, "then(a, b)", "scan_linear()", preamble=compose)
    shifted = np.roll(expected, 1)
    shifted[0] = (1, 0)
    assert (exclusive(device).get() == shifted).all()


@pytest.mark.skipif(BACKEND != "host", reason="checks are the host's")
def test_a_block_of_many_tiles_has_no_races(monkeypatch):
    # As on a GPU, lanes exchange values, and a block keeps a tile while it reads the next one.
    scan = InclusiveScanKernel(np.int32, "a + b", options=["-D__GPUARRAY_DOUBLE__"])
    x = np.arange(6 * TILE + 5, dtype=np.int32) % 7
    plan = _core.scan_plan(4, len(x))
    monkeypatch.setattr(_core, "runs_kernels_on_host", lambda: False)
    for blocks in (7, 2, 1):
        monkeypatch.setattr(_core, "scan_plan", lambda *_, blocks=blocks: (*plan[:3], blocks))
        with checking():
            assert (scan(gpuarray.to_gpu(x), "new").get() == np.cumsum(x)).all()


@pytest.mark.parametrize("code", ["i1", "i8", "c16"])
def test_several_teams_of_tiles(code):
    # A team consists of 256 tiles.
    length = 2 * 256 * tile_of(code) + 777
    if IS_DOUBLE:
        length //= 2
    x = (np.arange(length) * 7 % 11 - 5).astype(code)
    kernel = InclusiveScanKernel(code, "a + b")
    assert (kernel(gpuarray.to_gpu(x), "new").get() == np.cumsum(x, dtype=code)).all()
    before = ExclusiveScanKernel(code, "a + b", 3)
    expected = np.cumsum(x, dtype=code) - x + np.array(3, code)
    assert (before(gpuarray.to_gpu(x)).get() == expected).all()


def last_nonzero(x):
    places = np.maximum.accumulate(np.where(x != 0, np.arange(len(x)), 0))
    return x[places]


# Returns the later one of two values that is not zero: an operator that is not commutative.
LAST = "b != 0 ? b : a"


@compiled_examples
@given(
    st.sampled_from(["i1", "u2", "i4", "i8", "f8"] if TEST_ALL else ["u2", "f8"]),
    # A block scans up to four tiles, a team has 256, and memory is prefetched 128 tiles ahead.
    st.sampled_from([0, 1, 3, 4, 5, 127, 128, 129, 130, 255, 256, 257, 258, 511, 512, 513]),
    st.integers(-3, 3),
    st.booleans(),
    st.integers(0, 2**32 - 1),
)
def test_lengths_at_the_edges_of_tiles_and_teams(code, tiles, more, exclusive, seed):
    length = max(tiles * tile_of(code) + more, 0)
    rng = np.random.default_rng(seed)
    x = np.zeros(length, code)
    # Only a few elements are nonzero, so that many tiles do not contain any.
    for place in rng.integers(0, max(length, 1), min(length, tiles)):
        x[place] = rng.integers(1, 100)
    key = (code, exclusive, LAST)
    if key not in KERNELS:
        make = ExclusiveScanKernel if exclusive else InclusiveScanKernel
        KERNELS[key] = make(code, LAST, 0)
    found = KERNELS[key](gpuarray.to_gpu(x), "new").get()
    expected = last_nonzero(x) if length else x
    if exclusive:
        expected = np.concatenate([np.zeros(1, code), expected])[:length]
    assert (found == expected).all()


@pytest.mark.skipif(not IS_DOUBLE, reason="a device starts blocks in an order of its own")
def test_blocks_that_start_from_the_last_to_the_first():
    command = ["-q", "-p", "no:cacheprovider", __file__, "-k", "edges or teams or repeat"]
    run_python(f"import pytest; raise SystemExit(pytest.main({command!r}))", DOUBLE_REVERSED="1")


def test_sums_of_floating_point_numbers_repeat():
    # Many tiles, which a fake driver runs one after the other.
    length = 1 << 18 if IS_DOUBLE else 1 << 20
    x = np.random.default_rng(5).normal(size=length).astype(np.float32)
    kernel = InclusiveScanKernel(np.float32, "a + b")
    device = gpuarray.to_gpu(x)
    first = kernel(device, "new").get()
    np.testing.assert_allclose(first, np.cumsum(x, dtype=np.float64), rtol=1e-3, atol=0.01)
    for _ in range(3):
        assert (kernel(device, "new").get() == first).all()
    # Nor do they depend on whether memory is accessed in packs.
    room = gpuarray.zeros(3 * x.size + 1, np.float32)
    for view in (room[1 : x.size + 1], room[::3][: x.size]):
        view[:] = device
        assert (kernel(view).get() == first).all()


def test_complex_numbers():
    kernel = InclusiveScanKernel(np.complex128, "a+b")
    x = np.arange(5000) * (1 + 2j)
    np.testing.assert_allclose(kernel(gpuarray.to_gpu(x)).get(), np.cumsum(x))


@compiled_examples
@given(
    st.integers(0, 20_000),
    st.sampled_from([1, 2, -1, -3]),
    st.sampled_from([1, 3, -2]),
    st.sampled_from(["i1", "u2", "i8"] if TEST_ALL else ["i1", "i8"]),
    st.booleans(),
)
def test_random_strides(length, step, target, code, exclusive):
    rng = np.random.default_rng(length)
    x = rng.integers(0, 100, length * abs(step)).astype(code)
    key = (code, exclusive)
    if key not in KERNELS:
        make = ExclusiveScanKernel if exclusive else InclusiveScanKernel
        KERNELS[key] = make(code, "max(a, b)", np.iinfo(code).min + 1)
    view = x[::step]
    out = gpuarray.zeros(length * abs(target), code)[::target]
    KERNELS[key](gpuarray.to_gpu(x)[::step], out)
    expected = np.maximum.accumulate(view)
    if exclusive:
        expected = np.concatenate([[np.iinfo(code).min + 1], expected])[:length]
        expected = np.maximum(expected, np.iinfo(code).min + 1)
    assert (out.get() == expected).all()


KERNELS: dict[tuple[object, ...], InclusiveScanKernel | ExclusiveScanKernel] = {}


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda x: ExclusiveScanKernel(np.int32, "a+b"), ValueError, "neutral"),
        (lambda x: InclusiveScanKernel(np.int32, None), TypeError, "scan_expr"),
        (lambda x: InclusiveScanKernel("V3", "a"), ValueError, "V3|void"),
        (lambda x: SUM(x.get()), TypeError, "input_ary is of type ndarray"),
        (lambda x: SUM(x.astype(np.int64)), TypeError, "int64"),
        (lambda x: SUM(x.reshape(2, 2)), ValueError, "2 axes"),
        (lambda x: SUM(x, x[:3]), ValueError, "same shape"),
        (lambda x: SUM(x, "old"), TypeError, "output_ary is of type str"),
        (lambda x: SUM(x, x.astype(np.uint8)), TypeError, "uint8"),
    ],
)
def test_bad_calls_are_refused(call, error, text):
    x = gpuarray.to_gpu(np.arange(4, dtype=np.int32))
    with pytest.raises(error, match=text):
        call(x)
    assert (x.get() == np.arange(4)).all()


@pytest.mark.skipif(not IS_DOUBLE, reason="a GPU is not reset while other tests use it")
def test_kernels_are_compiled_again_after_a_reset():
    add = InclusiveScanKernel(np.int32, "a + b", name_prefix="reset")
    for _ in range(2):
        np.testing.assert_array_equal(add(gpuarray.to_gpu(np.int32([1, 2, 3]))).get(), [1, 3, 6])
        driver.Device(0).reset()


@pytest.mark.parametrize("length", [50, 40_000])
@pytest.mark.parametrize(
    ("source", "target"),
    [
        (np.s_[:-1], np.s_[1:]),
        (np.s_[1:], np.s_[:-1]),
        (np.s_[:], np.s_[::-1]),
        (np.s_[:-3:2], np.s_[2::2]),
        (np.s_[::2], np.s_[1::2]),
    ],
)
def test_results_that_lie_among_the_elements(length, source, target):
    x = np.arange(length, dtype=np.int32) % 7
    device = gpuarray.to_gpu(x)
    SUM(device[source], device[target], stream=driver.Stream())
    x[target] = np.cumsum(x[source], dtype=np.int32)
    assert (device.get() == x).all()


def test_elements_of_another_dtype_and_the_same_size_are_read_as_the_scans():
    x = np.random.default_rng(8).normal(size=1000).astype(np.float32)
    found = SUM(gpuarray.to_gpu(x), "new")
    assert (found.get() == np.cumsum(x.view(np.int32), dtype=np.int32)).all()
    # The bits are also copied if the results overlap the elements.
    device = gpuarray.to_gpu(x)
    SUM(device[:-1], device[1:])
    assert (device.get()[1:].view(np.int32) == found.get()[:-1]).all()
    words = gpuarray.zeros(4, np.dtype([("mark", "i1"), ("word", "V4")]))["word"]
    with pytest.raises(TypeError, match="need an alignment of 4"):
        SUM(words, "new")
