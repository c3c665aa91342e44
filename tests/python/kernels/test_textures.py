"""Textures and surfaces: the values that kernels read at coordinates, compared with numpy."""

import numpy as np
import pytest
from texture_kernels import bound, make_array, read_at, values
from texture_reference import BORDER, CLAMP, MIRROR, WRAP, sample

from pygpu import _core, choose_backend, driver, gpuarray

pytestmark = pytest.mark.skipif(
    not _core.has_textures(), reason="the device has no arrays for textures"
)


@pytest.fixture
def rng():
    return np.random.default_rng(5)


MODES = [WRAP, CLAMP, MIRROR, BORDER]
# The extents for each number of axes; not powers of two, so that no result is exact by accident.
SHAPES = {1: (7,), 2: (5, 7), 3: (3, 5, 7)}
FORMATS = ["u1", "u2", "u4", "i1", "i2", "i4", "f2", "f4"]
NAMES = {
    "u1": "uchar",
    "u2": "ushort",
    "u4": "uint",
    "i1": "char",
    "i2": "short",
    "i4": "int",
    "f2": "float",
    "f4": "float",
}


def texel_type(format: str, channels: int) -> str:
    return f"{NAMES[format]}{channels}"


def points_for(rng, axes, normalized):
    """Returns coordinates inside and outside, at edges and centres of texels, and far away."""
    extents = SHAPES[axes][::-1]
    points = np.zeros((160, 3), np.float32)
    for axis, extent in enumerate(extents):
        points[:, axis] = rng.uniform(-2.5 * extent, 3.5 * extent, len(points))
        points[:40, axis] = rng.integers(-extent, 2 * extent, 40) + 0.5
        # Boundaries between texels, one axis at a time: with linear filtering, a GPU's rounding
        # there is undefined.
        points[150:, axis] = rng.choice([-1e7, 1e7, 0.25, extent - 0.25], 10)
        if normalized:
            points[:, axis] /= extent
    return points


@pytest.mark.parametrize("axes", [1, 2, 3])
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("normalized", [False, True])
@pytest.mark.parametrize("linear", [False, True])
def test_coordinates(rng, axes, mode, normalized, linear):
    if (axes, mode, linear) == (1, BORDER, True) and choose_backend() != "host":
        pytest.skip("GPUs read an array with one axis as a row with a row of border beside it")
    texels = values(rng, (*SHAPES[axes], 1), "f4")
    flags = driver.TRSF_NORMALIZED_COORDINATES if normalized else 0
    filter = driver.filter_mode.LINEAR if linear else driver.filter_mode.POINT
    reference = bound(make_array(texels, axes, "f4"), mode=mode, flags=flags, filter=filter)
    points = points_for(rng, axes, normalized)
    out = read_at(reference, axes, "float", np.float32, 1, points)
    expected, sure = sample(texels, points[:, :axes], mode, normalized, linear)
    # The weights have 8 fractional bits. Their rounding, and the order in which the products are
    # added, depend on the device.
    bound_ = np.ptp(texels) * axes / 256 if linear else 0
    np.testing.assert_allclose(out[sure], expected[sure], rtol=0, atol=bound_)


@pytest.mark.parametrize("channels", [1, 2, 4])
@pytest.mark.parametrize("format", FORMATS)
def test_formats(rng, format, channels):
    texels = values(rng, (5, 7, channels), format)
    points = np.stack(np.meshgrid(np.arange(7), np.arange(5), [0]), -1).reshape(-1, 3) + 0.5
    array = make_array(texels, 2, format)
    expected = texels.reshape(-1, channels)
    dtype = np.float32 if format == "f2" else np.dtype(format)
    type = texel_type(format, channels)
    out = read_at(bound(array), 2, type, dtype, channels, points)
    assert (out == expected.astype(dtype)).all()
    if np.dtype(format).itemsize < 4 and format != "f2":
        # As fractions from -1 to 1; the least integer and its successor both map to -1.
        most = np.iinfo(format).max
        fractions = np.maximum(expected.astype(np.float64) / most, -1)
        out = read_at(bound(array, flags=0), 2, f"float{channels}", np.float32, channels, points)
        np.testing.assert_allclose(out, fractions, rtol=0, atol=1e-6)


def test_fractions_are_interpolated(rng):
    texels = values(rng, (5, 7, 4), "u1")
    filter = driver.filter_mode.LINEAR
    reference = bound(make_array(texels, 2, "u1"), flags=0, filter=filter)
    points = points_for(rng, 2, False)
    out = read_at(reference, 2, "float4", np.float32, 4, points)
    expected, _ = sample(texels / np.float32(255), points[:, :2], CLAMP, False, True)
    np.testing.assert_allclose(out, expected, rtol=0, atol=2 / 256)


@pytest.mark.parametrize("axes", [1, 2])
def test_layers(rng, axes):
    layers = 4
    texels = values(rng, (layers, *SHAPES[axes], 1), "f4")
    descr_axes = texels if axes == 2 else texels[:, None]
    flags = driver.array3d_flags.ARRAY3D_LAYERED
    descr = driver.ArrayDescriptor3D()
    descr.width, descr.height = SHAPES[axes][-1], SHAPES[axes][0] if axes == 2 else 0
    descr.depth, descr.flags, descr.num_channels = layers, flags, 1
    descr.format = driver.array_format.FLOAT
    array = driver.Array(descr)
    copy = driver.Memcpy3D()
    copy.set_src_host(np.ascontiguousarray(descr_axes))
    copy.set_dst_array(array)
    copy.width_in_bytes = copy.src_pitch = 4 * descr.width
    copy.height, copy.depth = max(descr.height, 1), layers
    copy.src_height = copy.height
    copy()
    points = points_for(rng, axes, False)
    points[:, 2] = rng.integers(-2, layers + 2, len(points))
    reads = {
        1: "tex1DLayered<%s>(texture, at[3 * i], (int)at[3 * i + 2])",
        2: "tex2DLayered<%s>(texture, at[3 * i], at[3 * i + 1], (int)at[3 * i + 2])",
    }
    for linear in (False, True):
        reference = bound(array, filter=int(linear))
        out = read_at(reference, axes, "float", np.float32, 1, points, reads[axes])
        for layer in range(-2, layers + 2):
            its = points[:, 2] == layer
            # A negative number becomes a large one, for which the last layer is read.
            chosen = texels[layer if 0 <= layer < layers else layers - 1]
            expected, sure = sample(chosen, points[its, :axes], CLAMP, False, linear)
            tolerance = np.ptp(texels) * axes / 256 if linear else 0
            found = out[its]
            np.testing.assert_allclose(found[sure], expected[sure], rtol=0, atol=tolerance)


def test_gathered_channels(rng):
    texels = values(rng, (5, 7, 4), "i4")
    array = make_array(texels, 2, "i4", driver.array3d_flags.TEXTURE_GATHER)
    xs, ys = np.meshgrid(np.arange(1, 7), np.arange(1, 5))
    points = np.stack([xs, ys, 0 * xs], -1).reshape(-1, 3)
    read = "tex2Dgather<%s>(texture, at[3 * i], at[3 * i + 1], 2)"
    out = read_at(bound(array), 2, "int4", np.int32, 4, points, read)
    x, y = points[:, 0], points[:, 1]
    corners = [texels[y, x - 1, 2], texels[y, x, 2], texels[y - 1, x, 2], texels[y - 1, x - 1, 2]]
    assert (out == np.stack(corners, -1)).all()


# ---- memory -------------------------------------------------------------------------------------


@pytest.mark.parametrize("channels", [1, 2, 4])
@pytest.mark.parametrize("format", ["u1", "i2", "f4"])
def test_linear_memory(rng, format, channels):
    texels = values(rng, (100, channels), format)
    memory = gpuarray.to_gpu(texels)
    reference = driver.TextureReference()
    reference.set_flags(driver.TRSF_READ_AS_INTEGER)
    reference.set_format(driver.dtype_to_array_format(np.dtype(format)), channels)
    assert reference.set_address(memory.gpudata, memory.nbytes) == 0
    assert reference.get_address() == memory.ptr
    points = np.zeros((104, 3))
    points[:, 0] = np.arange(-2, 102)
    read = "tex1Dfetch<%s>(texture, (int)at[3 * i])"
    type = texel_type(format, channels)
    out = read_at(reference, 1, type, np.dtype(format), channels, points, read)
    # Texels outside are zero.
    assert (out[2:-2] == texels).all()
    assert not out[:2].any()
    assert not out[-2:].any()


def test_an_offset(rng):
    texels = rng.normal(size=100).astype(np.float32)
    part = gpuarray.to_gpu(texels)[3:90]
    reference = driver.TextureReference()
    with pytest.raises(driver.LogicError, match="without allow_offset"):
        part.bind_to_texref_ext(reference)
    offset = part.bind_to_texref_ext(reference, allow_offset=True)
    assert offset == 3
    points = np.zeros((87, 3))
    points[:, 0] = np.arange(87) + offset
    read = "tex1Dfetch<%s>(texture, (int)at[3 * i])"
    out = read_at(reference, 1, "float", np.float32, 1, points, read)
    assert (out[:, 0] == texels[3:90]).all()


def test_rows_with_a_pitch(rng):
    texels = values(rng, (5, 7, 1), "f4")
    memory, pitch = driver.mem_alloc_pitch(7 * 4, 5, 4)
    copy = driver.Memcpy2D()
    copy.set_src_host(texels)
    copy.set_dst_device(memory)
    copy.width_in_bytes = copy.src_pitch = 28
    copy.dst_pitch, copy.height = pitch, 5
    copy(aligned=True)
    descr = driver.ArrayDescriptor()
    descr.width, descr.height, descr.num_channels = 7, 5, 1
    descr.format = driver.array_format.FLOAT
    reference = driver.TextureReference()
    reference.set_address_2d(memory, descr, pitch)
    points = points_for(rng, 2, False)
    for linear in (False, True):
        reference.set_filter_mode(int(linear))
        out = read_at(reference, 2, "float", np.float32, 1, points)
        expected, sure = sample(texels, points[:, :2], CLAMP, False, linear)
        tolerance = np.ptp(texels) * 2 / 256 if linear else 0
        np.testing.assert_allclose(out[sure], expected[sure], rtol=0, atol=tolerance)


# ---- arrays and bad input -----------------------------------------------------------------------


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("on_device", [False, True])
def test_copies_of_arrays(rng, order, on_device):
    for shape in ((5, 7), (2, 5, 7)):
        for dtype in (np.float32, np.float64, np.complex128):
            numbers = np.asarray(rng.normal(size=shape).astype(dtype), order=order)
            source = gpuarray.to_gpu(numbers) if on_device else numbers
            make = driver.gpuarray_to_array if on_device else driver.np_to_array
            array = make(source, order)
            descr = array.get_descriptor_3d()
            in_memory = numbers if order == "C" else numbers.T
            extents = (descr.depth, descr.height, descr.width)[-len(shape) :]
            assert extents == in_memory.shape
            back, copy = np.empty(in_memory.shape, dtype), driver.Memcpy3D()
            copy.set_src_array(array)
            copy.set_dst_host(back)
            copy.width_in_bytes = copy.dst_pitch = descr.width * back.itemsize
            copy.height = copy.dst_height = descr.height
            copy.depth = max(descr.depth, 1)
            copy()
            assert (back == in_memory).all()


def test_bad_input(rng):
    array = driver.matrix_to_array(np.zeros((2, 3), np.float32), "C")
    with pytest.raises(driver.LogicError, match="dst holds 12 bytes of a row"):
        driver.memcpy_htoa(array, 4, np.zeros(3, np.float32))
    with pytest.raises(driver.LogicError, match="texels of size 4"):
        driver.memcpy_htoa(array, 2, np.zeros(1, np.float32))
    copy = driver.Memcpy2D()
    copy.set_src_array(array)
    copy.width_in_bytes, copy.height = 4, 1
    copy.set_dst_array(driver.matrix_to_array(np.zeros((2, 8), np.uint8), "C"))
    with pytest.raises(driver.LogicError, match="src has texels of size 4 and dst of 1"):
        copy(True)
    for shape in ((0, 3), (3, 0)):
        for make in (driver.np_to_array, driver.matrix_to_array):
            with pytest.raises(driver.LogicError, match="textures have no empty axes"):
                make(np.zeros(shape, np.float32), "C")
    descr = driver.ArrayDescriptor()
    descr.width, descr.num_channels = 4, 3
    with pytest.raises(driver.LogicError, match="num_channels is 3"):
        driver.Array(descr)
    descr.num_channels, descr.width = 1, 0
    with pytest.raises(driver.LogicError, match="width must be at least 1"):
        driver.Array(descr)
    with pytest.raises(driver.LogicError, match="not contiguous in the order F"):
        driver.gpuarray_to_array(gpuarray.zeros((3, 4), np.float32), "F")
    reference = driver.TextureReference()
    with pytest.raises(driver.LogicError, match="nothing of that kind is bound"):
        reference.get_array()
    with pytest.raises(driver.LogicError, match="dim is 3"):
        reference.set_address_mode(3, CLAMP)
    with pytest.raises(driver.LogicError, match="am is 4"):
        reference.set_address_mode(0, 4)
    with pytest.raises(driver.LogicError, match="flags is 16"):
        reference.set_flags(16)
    integers = driver.matrix_to_array(np.zeros((2, 3), np.int32), "C")
    reference.set_filter_mode(driver.filter_mode.LINEAR)
    with pytest.raises(driver.LogicError, match="Int32 that are read as integers"):
        reference.set_array(integers)
    # The refused call has not changed the reference.
    reference.set_array(array)
    assert reference.get_array() is array
    array.free()
    with pytest.raises(driver.LogicError, match="freed already"):
        array.free()
    with pytest.raises(driver.LogicError, match="freed already"):
        driver.TextureReference().set_array(array)
    with pytest.raises(driver.LogicError, match="size of devptr is 16"):
        reference.set_address(gpuarray.zeros(4, np.float32).gpudata, 1 << 20)


def test_rows_from_and_to_arrays_with_gaps():
    array = driver.matrix_to_array(np.zeros((1, 4), np.float32), "C")
    host = np.arange(8, dtype=np.float32)
    with pytest.raises(ValueError, match="src is not contiguous"):
        driver.memcpy_htoa(array, 0, host[::2])
    with pytest.raises(ValueError, match="dest is not contiguous"):
        driver.memcpy_atoh(host[::2], array, 0)
    np.testing.assert_array_equal(host, np.arange(8))
    row = np.ones(4, np.float32)
    driver.memcpy_atoh(row, array, 0)
    np.testing.assert_array_equal(row, 0)
