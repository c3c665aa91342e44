"""Module references through which kernels read textures and surfaces."""

import copy
import threading

import numpy as np
import pytest
from texture_kernels import make_array
from texture_reference import MIRROR, WRAP

from pygpu import _core, choose_backend, driver, gpuarray
from pygpu.compiler import SourceModule
from pygpu.elementwise import ElementwiseKernel

pytestmark = pytest.mark.skipif(
    not _core.has_textures(), reason="the device has no arrays for textures"
)


@pytest.fixture
def rng():
    return np.random.default_rng(5)


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
    # At the boundaries between texels; the first one is between the last and the first texel.
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
    # Memory that has been freed is reused and overwritten.
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


def looks_up():
    preamble = "texture<float, 1, cudaReadModeElementType> line;"
    return ElementwiseKernel("float *z", "z[i] = 2 * tex1Dfetch(line, i)", preamble=preamble)


@pytest.mark.parametrize("bound_before", [False, True])
def test_an_elementwise_kernel_reads_a_reference(bound_before):
    kernel, texels = looks_up(), gpuarray.arange(10, dtype=np.float32)
    wide, tall = gpuarray.zeros((10, 2), np.float32), gpuarray.zeros((5, 2), np.float32, order="F")
    if bound_before:
        gpuarray.zeros(10, np.float32).bind_to_texref_ext(kernel.get_texref("line"))
        kernel(wide[:, 0])
    line = kernel.get_texref("line")
    texels.bind_to_texref_ext(line)
    expected = 2 * texels.get()
    # Each output has another layout, and therefore another module.
    for out in (gpuarray.zeros(10, np.float32), wide[:, 0], tall):
        kernel(out)
        assert out.get().ravel(order="A").tolist() == expected.tolist()
    out = gpuarray.zeros(10, np.float32)
    kernel(out, range=slice(2, 10, 3))
    assert out.get().tolist() == [0, 0, 4, 0, 0, 10, 0, 0, 16, 0]
    (texels + 1).bind_to_texref_ext(kernel.get_texref("line"))
    kernel(out)
    assert out.get().tolist() == (expected + 2).tolist()
    assert line.get_format() == (driver.array_format.FLOAT, 1)


def test_copies_of_an_elementwise_kernel_have_references_of_their_own():
    kernel = looks_up()
    ones, out = gpuarray.zeros(4, np.float32) + 1, gpuarray.zeros(4, np.float32)
    ones.bind_to_texref_ext(kernel.get_texref("line"))
    copied = copy.copy(kernel)
    (ones + 1).bind_to_texref_ext(copied.get_texref("line"))
    for made, expected in ((kernel, 2), (copied, 4)):
        made(out)
        assert out.get().tolist() == [expected] * 4


def test_an_elementwise_kernel_without_references():
    kernel = ElementwiseKernel("float *x", "x[i] = 1")
    with pytest.raises(driver.Error, match="line"):
        kernel.get_texref("line")


def test_what_is_no_reference(references):
    with pytest.raises(driver.LogicError, match="plain is not a texture reference"):
        references.get_texref("plain")
    with pytest.raises(driver.LogicError, match="line is not a surface reference"):
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
    # The second axis must have the same mode; the third mode is ignored for a matrix.
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


LEVELS = """
texture<float> line;
texture<float, 2> image;
texture<uchar4, 2, cudaReadModeNormalizedFloat> colours;
texture<float, 3> volume;
texture<float, cudaTextureType1DLayered> lines;
texture<float, cudaTextureType2DLayered> images;

__global__ void read(float *out, float4 *gathered) {
    float2 none = make_float2(0, 0);
    float4 nothing = make_float4(0, 0, 0, 0);
    gathered[0] = tex2Dgather(image, 1, 1);
    gathered[1] = tex2Dgather(colours, 1, 1, 2);
    out[0] = tex1D(line, 1);
    out[1] = tex1DLod(line, 1, 0);
    out[2] = tex1DGrad(line, 1, 0, 0);
    out[3] = tex2D(image, 1, 2);
    out[4] = tex2DLod(image, 1, 2, 0);
    out[5] = tex2DGrad(image, 1, 2, none, none);
    out[6] = tex3D(volume, 1, 2, 1);
    out[7] = tex3DLod(volume, 1, 2, 1, 0);
    out[8] = tex3DGrad(volume, 1, 2, 1, nothing, nothing);
    out[9] = tex1DLayered(lines, 1, 1);
    out[10] = tex1DLayeredLod(lines, 1, 1, 0);
    out[11] = tex1DLayeredGrad(lines, 1, 1, 0, 0);
    out[12] = tex2DLayered(images, 1, 2, 1);
    out[13] = tex2DLayeredLod(images, 1, 2, 1, 0);
    out[14] = tex2DLayeredGrad(images, 1, 2, 1, none, none);
}
"""


def test_levels_of_detail_and_gathered_texels():
    module, texels = SourceModule(LEVELS), np.arange(1, 25, dtype=np.float32).reshape(2, 3, 4, 1)
    flags = driver.array3d_flags
    gather = flags.TEXTURE_GATHER
    colours = np.arange(64, dtype=np.uint8).reshape(4, 4, 4)
    for name, array in {
        "line": make_array(texels[0, 0], 1, "f4"),
        "image": make_array(texels[0], 2, "f4", gather),
        "colours": make_array(colours, 2, "u1", gather),
        "volume": make_array(texels, 3, "f4"),
        "lines": make_array(texels[:, 0], 2, "f4", flags.ARRAY3D_LAYERED),
        "images": make_array(texels, 3, "f4", flags.ARRAY3D_LAYERED),
    }.items():
        module.get_texref(name).set_array(array)
    out, gathered = gpuarray.zeros(15, np.float32), gpuarray.zeros((2, 4), np.float32)
    module.get_function("read")(out, gathered, block=(1, 1, 1))
    assert out.get().tolist() == np.repeat([2, 10, 22, 14, 22], 3).tolist()
    assert gathered.get()[0].tolist() == [5, 6, 2, 1]
    expected = np.array([18, 22, 6, 2], np.float32) / 255
    np.testing.assert_allclose(gathered.get()[1], expected, rtol=0, atol=1e-6)


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


def test_a_reference_in_a_header_of_the_programs(tmp_path):
    (tmp_path / "own.h").write_text("texture<float, 1> row;\n")
    text = '#include "own.h"\n__global__ void read(float *o) { *o = tex1Dfetch(row, 2); }'
    module = SourceModule(text, options=[f"-I{tmp_path}"])
    values = gpuarray.to_gpu(np.float32([1, 2, 3]))
    reference = module.get_texref("row")
    values.bind_to_texref(reference)
    out = gpuarray.zeros((), np.float32)
    module.get_function("read")(out, block=(1, 1, 1), texrefs=[reference])
    assert out.get() == 3
