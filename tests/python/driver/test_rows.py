"""Copies of rows and slices, fills of rows, and copies between contexts."""

from __future__ import annotations

import numpy as np
import pytest

from pygpu import driver, gpuarray


def copy2d(**settings):
    copy = driver.Memcpy2D()
    for name, value in settings.items():
        setattr(copy, name, value)
    return copy


# ---- Memcpy2D -----------------------------------------------------------------------------------


@pytest.mark.parametrize("how", ["aligned", "unaligned", "stream"])
def test_rows_to_the_device_and_back(how):
    a = np.arange(60, dtype=np.int32).reshape(6, 10)
    memory, pitch = driver.mem_alloc_pitch(40, 6, 4)
    assert pitch >= 40
    up, down = driver.Memcpy2D(), driver.Memcpy2D()
    b = driver.pagelocked_zeros((6, 10), np.int32)
    up.set_src_host(a)
    up.set_dst_device(memory)
    down.set_src_device(memory)
    down.set_dst_host(b)
    up.src_pitch = down.dst_pitch = 40
    up.dst_pitch = down.src_pitch = pitch
    for copy in (up, down):
        copy.width_in_bytes, copy.height = 40, 6
    stream = driver.Stream()
    for copy in (up, down):
        if how == "stream":
            copy(stream)
        else:
            copy(aligned=how == "aligned")
    stream.synchronize()
    np.testing.assert_array_equal(a, b)


def test_a_part_of_each():
    a = np.arange(60, dtype=np.int16).reshape(6, 10)
    a_gpu = gpuarray.zeros((8, 20), np.int16)
    copy = copy2d(width_in_bytes=6, height=4, src_pitch=20, dst_pitch=40)
    copy.src_x_in_bytes, copy.src_y = 4, 1
    copy.dst_x_in_bytes, copy.dst_y = 10, 2
    copy.set_src_host(a)
    copy.set_dst_device(a_gpu)
    copy(True)
    expected = np.zeros((8, 20), np.int16)
    expected[2:6, 5:8] = a[1:5, 2:5]
    np.testing.assert_array_equal(a_gpu.get(), expected)


def test_inside_the_device():
    a = np.arange(30, dtype=np.uint8).reshape(5, 6)
    a_gpu, b_gpu = gpuarray.to_gpu(a), gpuarray.zeros((5, 10), np.uint8)
    copy = copy2d(width_in_bytes=6, height=5, src_pitch=6, dst_pitch=10, dst_x_in_bytes=2)
    copy.set_src_device(a_gpu.gpudata)
    copy.set_dst_device(int(b_gpu.gpudata))
    copy(False)
    np.testing.assert_array_equal(b_gpu.get()[:, 2:8], a)
    assert b_gpu.get()[:, [0, 1, 8, 9]].sum() == 0


def test_arrays_with_gaps():
    # The pitch is the array's row stride, as PyCUDA programs read it from `strides`.
    whole = np.arange(120, dtype=np.float64).reshape(10, 12)
    part = whole[2:8, 3:9]
    a_gpu = gpuarray.empty((6, 6), np.float64)
    copy = copy2d(width_in_bytes=48, height=6, src_pitch=part.strides[0], dst_pitch=48)
    copy.set_src_host(part)
    copy.set_dst_device(a_gpu.gpudata)
    copy(True)
    np.testing.assert_array_equal(a_gpu.get(), part)
    back = np.zeros_like(whole)
    copy = copy2d(width_in_bytes=48, height=6, src_pitch=48, dst_pitch=part.strides[0])
    copy.set_src_device(a_gpu)
    copy.set_dst_host(back[2:8, 3:9])
    copy(True)
    np.testing.assert_array_equal(back[2:8, 3:9], part)
    assert back.sum() == part.sum()


def test_one_row_needs_no_pitch():
    a_gpu = gpuarray.zeros(10, np.uint8)
    copy = copy2d(width_in_bytes=4, height=1, dst_x_in_bytes=3)
    copy.set_src_host(b"abcd")
    copy.set_dst_device(a_gpu.gpudata)
    copy(True)
    assert a_gpu.get().tobytes() == b"\0\0\0abcd\0\0\0"
    copy2d().set_src_host(b"")


def test_nothing_is_copied_without_an_extent():
    copy = copy2d()
    copy.set_src_host(np.ones(4))
    copy.set_dst_device(driver.mem_alloc(4))
    copy(True)


@pytest.mark.parametrize(
    ("settings", "text"),
    [
        ({"height": 3, "src_pitch": 3, "dst_pitch": 8}, "src_pitch is 3"),
        ({"height": 2, "src_pitch": 7, "dst_pitch": 8}, "src_pitch is 7"),
        ({"height": 2, "src_pitch": 8, "dst_pitch": 8, "dst_x_in_bytes": 1}, "dst_pitch is 8"),
        ({"height": 5, "src_y": 5, "src_pitch": 8, "dst_pitch": 8}, "size of src is 64"),
        ({"height": 5, "src_pitch": 8, "dst_pitch": 8, "dst_y": 1}, "size of dst is 40"),
        ({"height": 1, "dst_x_in_bytes": 2**64 - 1}, "outside the address space"),
    ],
)
def test_what_does_not_fit(settings, text):
    copy = copy2d(width_in_bytes=8, **settings)
    copy.set_src_host(np.zeros(16, np.int32))
    copy.set_dst_device(driver.mem_alloc(40))
    with pytest.raises(driver.LogicError, match=text):
        copy(True)


def test_what_is_no_memory():
    copy = copy2d(width_in_bytes=8, height=1)
    copy.set_dst_device(driver.mem_alloc(8))
    with pytest.raises(driver.LogicError, match="set_src_host"):
        copy(True)
    copy.set_src_host(np.zeros(8, np.uint8))
    read_only = np.zeros(8, np.uint8)
    read_only.flags.writeable = False
    for memory, error in (
        (read_only, ValueError),
        (b"12345678", ValueError),
        (np.zeros(8)[::-1], ValueError),
    ):
        copy.set_dst_host(memory)
        copy.set_src_device(driver.mem_alloc(8))
        with pytest.raises(error):
            copy(True)
    copy.set_src_host(np.zeros(8, np.uint8))
    copy.set_dst_host(np.zeros(8, np.uint8))
    with pytest.raises(driver.Unsupported, match="numpy"):
        copy(True)
    of_host = (copy.set_src_host, copy.set_dst_host, copy.set_src_unified, copy.set_dst_unified)
    for call in of_host:
        with pytest.raises(TypeError, match="buf_py is of type int; a numpy array or an object"):
            call(3)
    for call in (copy.set_src_array, copy.set_dst_array):
        with pytest.raises(TypeError, match="ary is of type NoneType; an Array is needed"):
            call(None)
    with pytest.raises(TypeError, match="stream"):
        copy("stream")


# ---- Memcpy3D -----------------------------------------------------------------------------------


@pytest.mark.parametrize("stream", [None, 0, "own"])
def test_slices(stream):
    stream = driver.Stream() if stream == "own" else stream
    a = driver.pagelocked_empty((4, 5, 6), np.float32)
    a[:] = np.random.default_rng(1).random(a.shape)
    a_gpu = gpuarray.zeros((5, 7, 8), np.float32)
    copy = driver.Memcpy3D()
    copy.set_src_host(a)
    copy.set_dst_device(a_gpu.gpudata)
    copy.width_in_bytes, copy.height, copy.depth = 16, 3, 2
    copy.src_pitch, copy.src_height = 24, 5
    copy.dst_pitch, copy.dst_height = 32, 7
    copy.src_x_in_bytes, copy.src_y, copy.src_z = 4, 1, 2
    copy.dst_x_in_bytes, copy.dst_y, copy.dst_z = 8, 3, 1
    copy(stream)
    driver.Context.synchronize()
    expected = np.zeros((5, 7, 8), np.float32)
    expected[1:3, 3:6, 2:6] = a[2:4, 1:4, 1:5]
    np.testing.assert_array_equal(a_gpu.get(), expected)


def test_the_height_of_slices():
    copy = driver.Memcpy3D()
    copy.set_src_host(np.zeros(1000, np.uint8))
    copy.set_dst_device(driver.mem_alloc(1000))
    copy.width_in_bytes, copy.height, copy.depth = 4, 3, 2
    copy.src_pitch = copy.dst_pitch = 4
    copy.dst_height, copy.src_height = 3, 2
    with pytest.raises(driver.LogicError, match="src_height is 2"):
        copy()


# ---- fills --------------------------------------------------------------------------------------


@pytest.mark.parametrize("bits", [8, 16, 32])
@pytest.mark.parametrize("as_address", [False, True])
@pytest.mark.parametrize("asynchronous", [False, True])
def test_fills_of_rows(bits, as_address, asynchronous):
    dtype = np.dtype(f"u{bits // 8}")
    rows = np.arange(7 * 16, dtype=dtype).reshape(7, 16)
    memory = driver.to_device(rows)
    dest = int(memory) + 2 * dtype.itemsize if as_address else memory
    pitch = rows.strides[0]
    value = 0xDEADBEEF % (1 << bits)
    if asynchronous:
        stream = driver.Stream()
        getattr(driver, f"memset_d2d{bits}_async")(dest, pitch, value, 9, 5, stream)
        stream.synchronize()
    else:
        getattr(driver, f"memset_d2d{bits}")(dest, pitch, value, 9, 5)
    start = 2 if as_address else 0
    rows[:5, start : start + 9] = value
    np.testing.assert_array_equal(driver.from_device(memory, rows.shape, dtype), rows)


def test_fills_of_nothing_and_of_whole_rows():
    memory = driver.to_device(np.zeros(64, np.uint8))
    driver.memset_d2d8(memory, 16, 1, 0, 4)
    driver.memset_d2d8(memory, 16, 1, 4, 0)
    assert driver.from_device(memory, 64, np.uint8).sum() == 0
    driver.memset_d2d8(memory, 16, 1, 16, 4)
    assert driver.from_device(memory, 64, np.uint8).sum() == 64
    driver.memset_d2d8(memory, 0, 2, 16, 1)
    assert driver.from_device(memory, 64, np.uint8).sum() == 80


def test_fills_that_do_not_fit():
    memory = driver.mem_alloc(64)
    for arguments, text in [
        ((memory, 8, 0, 9, 2), "pitch is 8"),
        ((memory, 16, 0, 16, 5), "dest is 64"),
        ((memory, 16, 0, -1, 5), "width is -1"),
        ((memory, 16, 0, 1, -5), "height is -5"),
        ((memory, 2**62, 0, 1, 2**40), "height is"),
    ]:
        with pytest.raises(driver.LogicError, match=text):
            driver.memset_d2d8(*arguments)
    with pytest.raises(OverflowError, match="256"):
        driver.memset_d2d8(memory, 16, 256, 1, 1)


# ---- between contexts ---------------------------------------------------------------------------


def test_copies_between_contexts_of_a_device():
    context = driver.Context.get_current()
    a = np.arange(100, dtype=np.float32)
    source, target = driver.to_device(a), driver.mem_alloc(a.nbytes)
    driver.memcpy_peer(target, source, a.nbytes)
    np.testing.assert_array_equal(driver.from_device_like(target, a), a)
    stream = driver.Stream()
    driver.memcpy_htod(source, -a)
    driver.memcpy_peer_async(target, source, a.nbytes, context, context, stream)
    stream.synchronize()
    np.testing.assert_array_equal(driver.from_device_like(target, a), -a)
    with pytest.raises(driver.LogicError, match="400"):
        driver.memcpy_peer(target, source, 401)


def test_peers():
    device = driver.Context.get_device()
    assert device.can_access_peer(device) is False
    context = driver.Context.get_current()
    for call in (driver.Context.enable_peer_access, driver.Context.disable_peer_access):
        with pytest.raises(driver.Error):
            call(context)
    with pytest.raises(driver.LogicError, match="flags"):
        driver.Context.enable_peer_access(context, 1)


@pytest.mark.parametrize("slices", [1, 3])
@pytest.mark.parametrize("side", ["src", "dst", "both"])
def test_a_pitch_or_height_of_zero_means_no_gaps(side, slices):
    # The pitch is x + width bytes and the height y + height rows, as in CUDA's driver.
    rng = np.random.default_rng(5)
    host = rng.integers(0, 256, 400, np.uint8)
    memory = driver.mem_alloc(400)
    driver.memset_d8(memory, 0, 400)
    copy = driver.Memcpy3D()
    copy.set_src_host(host)
    copy.set_dst_device(memory)
    copy.width_in_bytes, copy.height, copy.depth, copy.src_x_in_bytes = 5, 4, slices, 3
    expected = np.zeros(400, np.uint8)
    pitches = {it: (0, 0) if side in (it, "both") else (11, 6) for it in ("src", "dst")}
    for it, (pitch, height) in pitches.items():
        setattr(copy, f"{it}_pitch", pitch)
        setattr(copy, f"{it}_height", height)
    copy()
    (src, src_rows), (dst, dst_rows) = (
        (pitch or least, rows or 4)
        for (pitch, rows), least in zip(pitches.values(), (8, 5), strict=True)
    )
    for z in range(slices):
        for y in range(4):
            row = (z * src_rows + y) * src + 3
            to = (z * dst_rows + y) * dst
            expected[to : to + 5] = host[row : row + 5]
    np.testing.assert_array_equal(driver.from_device(memory, 400, np.uint8), expected)


@pytest.mark.parametrize("side", ["src", "dst"])
@pytest.mark.parametrize("slices", [15, 2**26])
def test_slices_do_not_begin_again_behind_the_last(side, slices):
    # z + depth overflows 64 bits, so that the last slice would be before the first.
    host, memory = np.arange(64, dtype=np.uint8), driver.mem_alloc(64)
    driver.memset_d8(memory, 255, 64)
    copy = driver.Memcpy3D()
    copy.set_src_host(host[32:])
    copy.set_dst_device(memory)
    copy.width_in_bytes = copy.height = 1
    copy.src_pitch = copy.src_height = copy.dst_pitch = copy.dst_height = 1
    copy.depth = slices + 1
    setattr(copy, f"{side}_z", 2**64 - slices)
    with pytest.raises(driver.LogicError, match=f"{side}_position"):
        copy()
    assert (driver.from_device(memory, 64, np.uint8) == 255).all()


# ---- between devices ----------------------------------------------------------------------------


@pytest.fixture
def peers():
    """The contexts of two devices, the first of which is current."""
    if driver.Device.count() < 2:
        pytest.skip("there is one device")
    first = driver.Context.get_current()
    second = driver.Device(1).make_context()
    driver.Context.pop()
    return first, second


def in_context(context, function, *arguments):
    context.push()
    try:
        return function(*arguments)
    finally:
        driver.Context.pop()


def peer_copy(source, target, contexts):
    copy = driver.Memcpy3DPeer()
    copy.set_src_device(source)
    copy.set_dst_device(target)
    copy.set_src_context(contexts[0])
    copy.set_dst_context(contexts[1])
    return copy


def test_rows_between_devices(peers):
    # Compared with copies in numpy, with gaps and offsets of all sizes; some do not fit.
    rng = np.random.default_rng(11)
    size, refused = 300, 0
    source = driver.mem_alloc(size)
    target = in_context(peers[1], driver.mem_alloc, size)
    for _ in range(150):
        copy = peer_copy(source, target, peers)
        extent = depth, height, width = tuple(rng.integers(1, (4, 5, 9)).tolist())
        copy.width_in_bytes, copy.height, copy.depth = width, height, depth
        spans = []
        for name in ("src", "dst"):
            z, y, x = (int(it) for it in rng.integers(0, 3, 3))
            dense = rng.integers(2)
            pitch = x + width + (0 if dense else int(rng.integers(4)))
            rows = y + height + (0 if dense else int(rng.integers(3)))
            for part, value in zip(("x_in_bytes", "y", "z"), (x, y, z), strict=True):
                setattr(copy, f"{name}_{part}", value)
            zero = rng.integers(4) == 0
            is_least = (pitch, rows) == (x + width, y + height)
            setattr(copy, f"{name}_pitch", 0 if zero and is_least else pitch)
            setattr(copy, f"{name}_height", 0 if zero and is_least else rows)
            places = np.indices(extent).reshape(3, -1) + np.array([[z], [y], [x]])
            spans.append((places[0] * rows + places[1]) * pitch + places[2])
        values = rng.integers(0, 255, size, np.uint8)
        driver.memcpy_htod(source, values)
        in_context(peers[1], driver.memset_d8, target, 255, size)
        expected = np.full(size, 255, np.uint8)
        if max(span.max() for span in spans) < size:
            expected[spans[1]] = values[spans[0]]
            copy() if rng.integers(2) else copy(driver.Stream())
        else:
            refused += 1
            with pytest.raises(driver.LogicError, match="the size of"):
                copy()
        result = in_context(peers[1], driver.from_device, target, size, np.uint8)
        np.testing.assert_array_equal(result, expected)
    assert 0 < refused < 75


@pytest.mark.parametrize(
    ("settings", "text"),
    [
        ({"src_pitch": 2}, "src_pitch is 2"),
        ({"dst_height": 1}, "dst_height is 1"),
        ({"src_x_in_bytes": 13, "src_pitch": 17}, "size of src is 16"),
        ({"dst_z": 2**64 - 1}, "outside the address space"),
    ],
)
def test_what_does_not_fit_between_devices(peers, settings, text):
    source = driver.mem_alloc(16)
    copy = peer_copy(source, in_context(peers[1], driver.mem_alloc, 16), peers)
    copy.width_in_bytes, copy.height, copy.depth = 4, 2, 2
    copy.src_pitch = copy.dst_pitch = 4
    copy.src_height = copy.dst_height = 2
    for name, value in settings.items():
        setattr(copy, name, value)
    with pytest.raises(driver.LogicError, match=text):
        copy()


def test_no_rows_between_devices(peers):
    copy = peer_copy(driver.mem_alloc(4), in_context(peers[1], driver.mem_alloc, 4), peers)
    copy.width_in_bytes, copy.height, copy.depth = 0, 2**40, 1
    copy()


def test_rows_of_another_device(peers):
    # The second device is not current.
    host, back = np.arange(24, dtype=np.uint8), np.zeros(24, np.uint8)
    memory, other = (in_context(peers[1], driver.mem_alloc, 24) for _ in range(2))
    up, within = peer_copy(0, memory, peers), peer_copy(memory, other, (peers[1], peers[1]))
    down = peer_copy(other, 0, (peers[1], peers[0]))
    up.set_src_host(host)
    down.set_dst_host(back)
    for copy in (up, within, down):
        copy.width_in_bytes, copy.height, copy.depth = 5, 4, 1
        copy.src_pitch = copy.dst_pitch = 6
        copy()
    np.testing.assert_array_equal(back.reshape(4, 6)[:, :5], host.reshape(4, 6)[:, :5])
    assert not back.reshape(4, 6)[:, 5].any()
    assert driver.Context.get_current() is peers[0]


def test_memory_goes_back_to_the_device_that_it_is_of(peers):
    # The memory was last used on a stream of the other device.
    source = gpuarray.to_gpu(np.arange(64, dtype=np.uint8))
    target = in_context(peers[1], gpuarray.empty, 64, np.uint8)
    address = target.ptr
    driver.memcpy_peer_async(target, source, 64, peers[1], peers[0])
    np.testing.assert_array_equal(in_context(peers[1], target.get), np.arange(64))
    driver.memcpy_peer_async(target, source, 64, peers[1], peers[0])
    del target
    here = [gpuarray.empty(64, np.uint8) for _ in range(8)]
    assert address not in {array.ptr for array in here}
    there = [in_context(peers[1], gpuarray.empty, 64, np.uint8) for _ in range(8)]
    assert address in {array.ptr for array in there}


@pytest.mark.parametrize("seed", range(4))
def test_programs_on_two_devices(peers, seed):
    # Uploads, fills, sums and copies on streams of both devices without waits, compared with
    # numpy.
    rng = np.random.default_rng(seed)
    count, size = 6, 64
    homes = [peers[i % 2] for i in range(count)]
    streams = [(peer, in_context(peer, driver.Stream)) for peer in peers for _ in range(2)]
    values = [rng.integers(0, 256, size, np.uint8) for _ in range(count)]
    arrays = [
        in_context(home, gpuarray.to_gpu, value) for home, value in zip(homes, values, strict=True)
    ]
    for _ in range(120):
        to, from_ = (int(it) for it in rng.choice(count, 2, replace=False))
        peer, stream = streams[rng.integers(len(streams))]
        if rng.integers(3) == 0:
            stream = None
        kind = rng.choice(["copy", "rows", "fill", "add", "set"])
        if kind == "copy":
            start, length = int(rng.integers(0, 32)), int(rng.integers(1, 32))
            in_context(
                peer,
                driver.memcpy_peer_async,
                arrays[to][start:],
                arrays[from_][start:],
                length,
                homes[to],
                homes[from_],
                stream,
            )
            values[to][start : start + length] = values[from_][start : start + length]
        elif kind == "rows":
            copy = peer_copy(arrays[from_], arrays[to], (homes[from_], homes[to]))
            copy.width_in_bytes, copy.height, copy.depth = 5, 8, 1
            copy.src_pitch, copy.dst_pitch = 8, 8
            in_context(peer, copy, *([] if stream is None else [stream]))
            rows = values[from_].reshape(8, 8)[:, :5].copy()
            values[to].reshape(8, 8)[:, :5] = rows
        else:
            other = values[to].copy()
            own = [it for place, it in streams if place is homes[to]][int(rng.integers(2))]
            if kind == "fill":
                in_context(homes[to], arrays[to].fill, 7, own)
                values[to][:] = 7
            elif kind == "add":
                on_own = arrays[to].on(own)
                in_context(homes[to], on_own.__iadd__, on_own)
                values[to] += other
            else:
                values[to] = rng.integers(0, 256, size, np.uint8)
                in_context(homes[to], arrays[to].set_async, values[to].copy(), own)
    for home, array, value in zip(homes, arrays, values, strict=True):
        np.testing.assert_array_equal(in_context(home, array.get), value)
