"""Cubemaps: the face and the position that a direction selects."""

import numpy as np
import pytest
from texture_kernels import bound, make_array, read_at, values

from pygpu import _core, choose_backend, driver, gpuarray
from pygpu.compiler import SourceModule

pytestmark = pytest.mark.skipif(
    not _core.has_textures(), reason="the device has no arrays for textures"
)


@pytest.fixture
def rng():
    return np.random.default_rng(5)


# The faces of a cube by number: the axis with the direction's largest component, its sign, and the
# axes and signs of the two coordinates on the face (CUDA C++ Programming Guide, "Cubemap
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
    """Returns an array of cubes; a single one if it is not layered."""
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
        out[0] = texCubemap(sky, at[0], at[1], at[2]);
        out[1] = texCubemapLod(sky, at[0], at[1], at[2], 0);
    }
    """)
    texels = values(rng, (1, 6, 5, 5), "f4")
    array = cubemap(texels, 1, driver.array3d_flags.SURFACE_LDST)
    module.get_texref("sky").set_array(array)
    module.get_surfref("faces").set_array(array)
    read, out = module.get_function("read"), gpuarray.zeros(2, np.float32)
    # The first launch writes the centre of the fourth face, and the second one reads it.
    for direction, expected in [([1, 0, 0], texels[0, 0, 2, 2]), ([0, -3, 0], 5)]:
        read(out, gpuarray.to_gpu(np.array(direction, np.float32)), block=(1, 1, 1))
        assert out.get().tolist() == [expected] * 2


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
