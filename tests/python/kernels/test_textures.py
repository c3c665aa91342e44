"""Textures and surfaces: what kernels read at which coordinates, against numpy."""

import threading

import numpy as np
import pytest
from texture_reference import BORDER, CLAMP, MIRROR, WRAP, sample

from pygpu import _core, choose_backend, driver, gpuarray
from pygpu.compiler import SourceModule
from pygpu.elementwise import ElementwiseKernel

pytestmark = pytest.mark.skipif(
    not _core.has_textures(), reason="the device has no arrays for textures"
)


@pytest.fixture
def rng():
    return np.random.default_rng(5)


MODES = [WRAP, CLAMP, MIRROR, BORDER]
# The extents for each number of axes; no power of two, so that nothing is exact by luck.
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


def values(rng, shape, format):
    kind = np.dtype(format)
    if kind.kind == "f":
        return rng.normal(size=shape).astype(kind)
    bounds = np.iinfo(kind)
    numbers = rng.integers(bounds.min, bounds.max, size=shape, dtype=kind, endpoint=True)
    # Both ends: the least negative number has no positive one.
    numbers.flat[:2] = bounds.min, bounds.max
    return numbers


def make_array(texels, axes, format, flags=0):
    """An array for textures with the elements of numpy's: its axes, then the channels."""
    descr = driver.ArrayDescriptor3D()
    extents = [*texels.shape[:axes][::-1], 0, 0]
    descr.width, descr.height, descr.depth = extents[:3]
    descr.format = (
        driver.array_format.HALF
        if format == "f2"
        else driver.dtype_to_array_format(np.dtype(format))
    )
    descr.num_channels, descr.flags = texels.shape[axes], flags
    array = driver.Array(descr)
    copy = driver.Memcpy3D()
    copy.set_src_host(np.ascontiguousarray(texels))
    copy.set_dst_array(array)
    copy.width_in_bytes = copy.src_pitch = texels.nbytes // int(np.prod(texels.shape[: axes - 1]))
    copy.height = copy.src_height = max(descr.height, 1)
    copy.depth = max(descr.depth, 1)
    copy()
    return array


def bound(array, **modes):
    """A texture object: the reference that keeps it."""
    reference = driver.TextureReference()
    reference.set_flags(modes.get("flags", driver.TRSF_READ_AS_INTEGER))
    for axis in range(3):
        reference.set_address_mode(axis, modes.get("mode", CLAMP))
    reference.set_array(array)
    reference.set_filter_mode(modes.get("filter", driver.filter_mode.POINT))
    return reference


OBJECTS = """
__global__ void read(%(type)s *out, cudaTextureObject_t texture, const float *at, int count) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count) out[i] = %(read)s;
}
"""
READS = {
    1: "tex1D<%s>(texture, at[3 * i])",
    2: "tex2D<%s>(texture, at[3 * i], at[3 * i + 1])",
    3: "tex3D<%s>(texture, at[3 * i], at[3 * i + 1], at[3 * i + 2])",
}


def read_at(reference, axes, type, dtype, channels, points, read=None):
    """What a kernel reads through an object at points, whose first coordinate is x."""
    read = (read or READS[axes]) % type if "%s" in (read or READS[axes]) else read
    module = SourceModule(OBJECTS % {"type": type, "read": read})
    out = gpuarray.zeros((len(points), channels), dtype)
    module.get_function("read")(
        out.gpudata,
        np.uint64(reference.object),
        gpuarray.to_gpu(np.ascontiguousarray(points, np.float32)).gpudata,
        np.int32(len(points)),
        block=(64, 1, 1),
        grid=(-(-len(points) // 64), 1),
    )
    return out.get()


def points_for(rng, axes, normalized):
    """Coordinates inside and outside, at texels' edges and centres, and far away."""
    extents = SHAPES[axes][::-1]
    points = np.zeros((160, 3), np.float32)
    for axis, extent in enumerate(extents):
        points[:, axis] = rng.uniform(-2.5 * extent, 3.5 * extent, len(points))
        points[:40, axis] = rng.integers(-extent, 2 * extent, 40) + 0.5
        # Edges between texels, of one axis at a time: what a GPU rounds there is open for linear.
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
    # The weights have 8 bits of fraction; how they are rounded, and in which order the products are
    # added up, is the device's.
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
        # As fractions: -1 to 1, of which the least number is no other than the one after it.
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
            # A negative number is a large one, for which the last layer is read.
            chosen = texels[layer if 0 <= layer < layers else layers - 1]
            expected, sure = sample(chosen, points[its, :axes], CLAMP, False, linear)
            tolerance = np.ptp(texels) * axes / 256 if linear else 0
            found = out[its]
            np.testing.assert_allclose(found[sure], expected[sure], rtol=0, atol=tolerance)


# The faces of a cube, by their numbers: the axis that a direction is longest along, its sign, and
# the axes and signs of the two coordinates on the face (CUDA C++ Programming Guide, "Cubemap
# Textures").
FACES = [
    (0, 1, (2, -1), (1, -1)),
    (0, -1, (2, 1), (1, -1)),
    (1, 1, (0, 1), (2, 1)),
    (1, -1, (0, 1), (2, -1)),
    (2, 1, (0, 1), (1, -1)),
    (2, -1, (0, -1), (1, -1)),
]


def cubemap(texels, cubes, flags=0):
    """An array of cubes, one without layers."""
    flags |= driver.array3d_flags.CUBEMAP
    flags |= driver.array3d_flags.ARRAY3D_LAYERED if cubes > 1 else 0
    return make_array(texels.reshape(-1, 5, 5, 1), 3, "f4", flags)


@pytest.mark.skipif(choose_backend() == "hip", reason="HIP has no cubemaps")
@pytest.mark.parametrize("cubes", [1, 2])
def test_faces_of_cubes(rng, cubes):
    texels = values(rng, (cubes, 6, 5, 5), "f4")
    reference = bound(cubemap(texels, cubes), filter=driver.filter_mode.POINT)
    points, expected = [], []
    for face, (axis, sign, s, t) in enumerate(FACES):
        for row, column in np.ndindex(5, 5):
            direction = np.zeros(3)
            direction[axis] = sign
            direction[s[0]] = s[1] * ((column + 0.5) / 5 * 2 - 1)
            direction[t[0]] = t[1] * ((row + 0.5) / 5 * 2 - 1)
            points.append(direction * rng.uniform(0.1, 10))
            expected.append(texels[-1, face, row, column])
    read = "texCubemap<%s>(texture, at[3 * i], at[3 * i + 1], at[3 * i + 2])"
    if cubes > 1:
        read = read.replace("Cubemap", "CubemapLayered").replace("2])", f"2], {cubes - 1})")
    out = read_at(reference, 3, "float", np.float32, 1, np.array(points), read)
    assert (out[:, 0] == expected).all()


@pytest.mark.skipif(choose_backend() == "hip", reason="HIP has no cubemaps")
def test_references_of_cubes(rng):
    module = SourceModule("""
    texture<float, cudaTextureTypeCubemap> sky;
    surface<void, cudaSurfaceTypeCubemap> faces;
    __global__ void read(float *out, const float *at) {
        surfCubemapwrite(5.0f, faces, 8, 2, 3);
        *out = texCubemap(sky, at[0], at[1], at[2]);
    }
    """)
    texels = values(rng, (1, 6, 5, 5), "f4")
    array = cubemap(texels, 1, driver.array3d_flags.SURFACE_LDST)
    module.get_texref("sky").set_array(array)
    module.get_surfref("faces").set_array(array)
    read, out = module.get_function("read"), gpuarray.zeros(1, np.float32)
    # The middle of the fourth face is written by the first launch, and read by the second.
    for direction, expected in [([1, 0, 0], texels[0, 0, 2, 2]), ([0, -3, 0], 5)]:
        read(out, gpuarray.to_gpu(np.array(direction, np.float32)), block=(1, 1, 1))
        assert out.get()[0] == expected


def test_cubes_that_are_none():
    if choose_backend() == "hip":
        with pytest.raises(driver.Unsupported, match="HIP has no cubemaps"):
            cubemap(np.zeros((1, 6, 5, 5), np.float32), 1)
    descr = driver.ArrayDescriptor3D()
    descr.format, descr.num_channels = driver.array_format.FLOAT, 1
    descr.flags = driver.array3d_flags.CUBEMAP
    for extents in [(5, 4, 6), (5, 5, 12), (5, 5, 0)]:
        descr.width, descr.height, descr.depth = extents
        with pytest.raises(driver.LogicError, match="cubemap"):
            driver.Array(descr)


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
    # What is outside is zero.
    assert (out[2:-2] == texels).all()
    assert not out[:2].any()
    assert not out[-2:].any()


def test_an_offset(rng):
    texels = rng.normal(size=100).astype(np.float32)
    part = gpuarray.to_gpu(texels)[3:90]
    reference = driver.TextureReference()
    with pytest.raises(driver.LogicError, match="allow_offset was false"):
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


# ---- references of modules ----------------------------------------------------------------------

REFERENCES = """
texture<uchar4, 2, cudaReadModeNormalizedFloat> colours;
texture<float> line(1, cudaFilterModeLinear, cudaAddressModeWrap);
static texture<int2, 1, cudaReadModeElementType> pairs;
__device__ int plain[16];

__global__ void colour(float4 *out, int width) {
    out[threadIdx.y * width + threadIdx.x] = tex2D(colours, threadIdx.x + 0.5f, threadIdx.y + 0.5f);
}
__global__ void along(float *out, int count) {
    out[threadIdx.x] = tex1D(line, (float)threadIdx.x / count);
}
__global__ void pair(int2 *out) { out[threadIdx.x] = tex1Dfetch(pairs, threadIdx.x); }
"""


@pytest.fixture(scope="module")
def references():
    return SourceModule(REFERENCES)


def test_fractions_by_a_reference(references, rng):
    texels = rng.integers(0, 256, (5, 7, 4), dtype=np.uint8)
    colours = references.get_texref("colours")
    assert colours.get_format() == (driver.array_format.UNSIGNED_INT8, 4)
    driver.bind_array_to_texref(driver.make_multichannel_2d_array(texels, "C"), colours)
    out = gpuarray.zeros((5, 7, 4), np.float32)
    colour = references.get_function("colour")
    colour(out.gpudata, np.int32(7), block=(7, 5, 1), texrefs=[colours])
    np.testing.assert_allclose(out.get(), texels / 255, rtol=0, atol=1e-6)


def test_what_a_reference_is_declared_with(references):
    line = references.get_texref("line")
    assert line.get_flags() == driver.TRSF_NORMALIZED_COORDINATES
    assert line.get_filter_mode() == driver.filter_mode.LINEAR
    assert [line.get_address_mode(axis) for axis in range(3)] == [WRAP] * 3
    texels = np.array([[1, 5, 2, 10]], np.float32)
    line.set_array(make_array(texels[0][:, None], 1, "f4"))
    out = gpuarray.zeros(4, np.float32)
    references.get_function("along")(out, np.int32(4), block=(4, 1, 1))
    # At the edges between texels, the first of which is that between the last and the first one.
    assert out.get().tolist() == [5.5, 3, 3.5, 6]


def test_a_static_reference_that_is_bound_again(references, rng):
    pairs = references.get_texref("pairs")
    out = gpuarray.zeros(16, np.float64)
    for _ in range(3):
        numbers = gpuarray.to_gpu(rng.normal(size=16))
        assert numbers.bind_to_texref_ext(pairs, allow_double_hack=True) == 0
        references.get_function("pair")(out, block=(16, 1, 1))
        assert (out.get() == numbers.get()).all()


def test_references_of_one_variable_are_one(references):
    first, second = references.get_texref("colours"), references.get_texref("colours")
    first.set_address_mode(1, MIRROR)
    assert second.get_address_mode(1) == MIRROR
    array = driver.make_multichannel_2d_array(np.zeros((2, 3, 4), np.uint8), "C")
    second.set_array(array)
    assert first.get_array() is array


def test_kernels_keep_what_is_bound(rng):
    module = SourceModule(REFERENCES)
    texels = np.array([1, 2, 4, 8], np.float32)
    module.get_texref("line").set_array(make_array(texels[:, None], 1, "f4"))
    along, out = module.get_function("along"), gpuarray.zeros(4, np.float32)
    del module
    # Memory that is free by now is used again, and written.
    others = [make_array(np.full((4, 1), 99, np.float32), 1, "f4") for _ in range(8)]
    along(out, np.int32(4), block=(4, 1, 1))
    assert out.get().tolist() == [4.5, 1.5, 3, 6]
    del others


def test_threads_bind_one_reference():
    module = SourceModule("""
    texture<float, 2> image;
    __global__ void read(float *out) {
        float texel = tex2D(image, threadIdx.x, 0);
        __syncthreads();
        out[threadIdx.x] = texel;
    }
    """)
    image, read = module.get_texref("image"), module.get_function("read")
    texels, failures = np.arange(1, 36, dtype=np.float32).reshape(5, 7), []

    def bind_and_read(number):
        try:
            for _ in range(200):
                array = driver.matrix_to_array(texels + 100 * number, "C")
                image.set_array(array)
                out = gpuarray.zeros(7, np.float32)
                read(out, block=(7, 1, 1))
                assert (out.get() % 100 == texels[0]).all()
        except Exception as failure:
            failures.append(failure)

    threads = [threading.Thread(target=bind_and_read, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures, failures[0]


def test_an_elementwise_kernel_has_no_references():
    kernel = ElementwiseKernel("float *x", "x[i] = tex1Dfetch(line, i)")
    with pytest.raises(driver.Unsupported, match="declare it in a SourceModule"):
        kernel.get_texref("line")


def test_what_is_no_reference(references):
    with pytest.raises(driver.LogicError, match="plain is no texture reference"):
        references.get_texref("plain")
    with pytest.raises(driver.LogicError, match="line is no surface reference"):
        references.get_surfref("line")
    with pytest.raises(driver.Error, match="no_such"):
        references.get_texref("no_such")
    with pytest.raises(TypeError, match="an entry of texrefs is of type int"):
        references.get_function("pair")(np.intp(0), block=(1, 1, 1), texrefs=[1])
    references.get_function("pair").param_set_texref(references.get_texref("line"))
    with pytest.raises(TypeError, match="texref is of type int"):
        references.get_function("pair").param_set_texref(1)


@pytest.mark.skipif(choose_backend() != "hip", reason="AMD's samplers have one mode for all axes")
def test_axes_of_several_modes_are_refused_when_they_are_read():
    module = SourceModule("""
    texture<float, 2> image;
    __global__ void read(float *out) { out[threadIdx.x] = tex2D(image, threadIdx.x, 0.5f); }
    """)
    image, read, out = (
        module.get_texref("image"),
        module.get_function("read"),
        gpuarray.zeros(3, "f4"),
    )
    driver.matrix_to_texref(np.array([[1, 2]], np.float32), image, order="C")
    image.set_address_mode(0, driver.address_mode.BORDER)
    with pytest.raises(
        driver.Unsupported, match=r"texture reference image: .*Border, Clamp.*one mode"
    ):
        read(out, block=(3, 1, 1))
    # The other axis follows; the third one is none of a matrix.
    image.set_address_mode(1, driver.address_mode.BORDER)
    read(out, block=(3, 1, 1))
    assert out.get().tolist() == [1, 2, 0]
    alone = driver.TextureReference()
    alone.set_array(image.get_array())
    alone.set_address_mode(1, driver.address_mode.BORDER)
    with pytest.raises(driver.Unsupported, match="one mode"):
        alone.object  # noqa: B018
    alone.set_address_mode(1, driver.address_mode.CLAMP)
    assert alone.object


# ---- surfaces -----------------------------------------------------------------------------------

SURFACES = """
surface<void, cudaSurfaceType3D> volume;
__global__ void add(int shift, int *out, int width, int height) {
    int x = threadIdx.x, y = threadIdx.y, z = threadIdx.z;
    int value;
    surf3Dread(&value, volume, (x + shift) * 4, y, z, cudaBoundaryModeZero);
    out[(z * height + y) * width + x] = value;
    surf3Dwrite(surf3Dread<int>(volume, x * 4, y, z) + 1, volume, x * 4, y, z);
}
"""


def test_a_surface(rng):
    shape = (2, 3, 4)
    numbers = rng.integers(0, 1000, shape, dtype=np.int32)
    module = SourceModule(SURFACES)
    volume = module.get_surfref("volume")
    array = driver.np_to_array(numbers, "C", allowSurfaceBind=True)
    volume.set_array(array)
    assert volume.get_array() is array
    out = gpuarray.zeros(shape, np.int32)
    add = module.get_function("add")
    add(np.int32(2), out, np.int32(4), np.int32(3), block=(4, 3, 2))
    assert (out.get()[..., :2] == numbers[..., 2:]).all()
    assert not out.get()[..., 2:].any()
    back, copy = np.empty(shape, np.int32), driver.Memcpy3D()
    copy.set_src_array(array)
    copy.set_dst_host(back)
    copy.width_in_bytes = copy.dst_pitch = 16
    copy.height = copy.dst_height = 3
    copy.depth = 2
    copy()
    assert (back == numbers + 1).all()
    with pytest.raises(driver.LogicError, match="SURFACE_LDST"):
        volume.set_array(driver.np_to_array(numbers, "C"))


@pytest.mark.skipif(choose_backend() == "hip", reason="AMD's surfaces have one boundary mode")
def test_a_surface_that_clamps():
    module = SourceModule("""
    surface<void, 2> image;
    __global__ void read(float *out) {
        surf2Dread(out + threadIdx.x, image, threadIdx.x * 4, 0, cudaBoundaryModeClamp);
    }
    """)
    array = driver.np_to_array(np.array([[1, 2, 3]], np.float32), "C", allowSurfaceBind=True)
    module.get_surfref("image").set_array(array)
    out = gpuarray.zeros(5, np.float32)
    module.get_function("read")(out, block=(5, 1, 1))
    assert out.get().tolist() == [1, 2, 3, 3, 3]


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
    with pytest.raises(driver.LogicError, match="texels of 4 bytes"):
        driver.memcpy_htoa(array, 2, np.zeros(1, np.float32))
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
    # Nothing has changed.
    reference.set_array(array)
    assert reference.get_array() is array
    array.free()
    with pytest.raises(driver.LogicError, match="freed already"):
        array.free()
    with pytest.raises(driver.LogicError, match="freed already"):
        driver.TextureReference().set_array(array)
    with pytest.raises(driver.LogicError, match="devptr has 16 bytes"):
        reference.set_address(gpuarray.zeros(4, np.float32).gpudata, 1 << 20)


@pytest.mark.skipif(choose_backend() != "host", reason="a GPU's context is lost by that")
def test_nothing_bound_is_an_error():
    module = SourceModule(REFERENCES)
    with pytest.raises(driver.LaunchError, match="to which nothing is bound in thread 0"):
        module.get_function("along")(gpuarray.zeros(1, np.float32), np.int32(1), block=(1, 1, 1))
    module = SourceModule(SURFACES)
    volume = driver.np_to_array(np.zeros((1, 1, 2), np.int32), "C", allowSurfaceBind=True)
    module.get_surfref("volume").set_array(volume)
    out = gpuarray.zeros(24, np.int32)
    add = module.get_function("add")
    with pytest.raises(driver.LaunchError, match="outside of its array"):
        add(np.int32(0), out, np.int32(1), np.int32(1), block=(3, 1, 1))
