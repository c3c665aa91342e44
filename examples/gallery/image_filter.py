"""Removes specks from a picture with a median filter that reads through a texture.

    python examples/gallery/image_filter.py [FOLDER]

Shows a texture reference: reads beyond the edge return the nearest pixel, which saves the kernel a
special case for borders.
"""

import numpy as np
from picture import save_png

import pygpu.autoinit  # noqa: F401
from pygpu import driver, gpuarray
from pygpu.compiler import SourceModule

ROWS, COLUMNS = 120, 160

module = SourceModule("""
texture<float, cudaTextureType2D> picture;

__device__ void order(float &a, float &b) {
    float smaller = fminf(a, b);
    b = fmaxf(a, b);
    a = smaller;
}

__global__ void median(float *out, int rows, int columns) {
    int x = blockIdx.x * blockDim.x + threadIdx.x;
    int y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x >= columns || y >= rows) return;
    float v[9];
    for (int i = 0; i < 9; ++i)
        v[i] = tex2D(picture, x + i % 3 - 1 + 0.5f, y + i / 3 - 1 + 0.5f);
    // A part of a sort: five passes move the five largest values to the end.
    for (int pass = 0; pass < 5; ++pass)
        for (int i = 0; i < 8 - pass; ++i)
            order(v[i], v[i + 1]);
    out[y * columns + x] = v[4];
}
""")


def specked_picture(rng):
    """Rings, with one pixel in ten black or white."""
    y, x = np.mgrid[:ROWS, :COLUMNS]
    rings = 0.5 + 0.3 * np.sin(np.hypot(x - COLUMNS / 2, y - ROWS / 2) / 5)
    noise = rng.random((ROWS, COLUMNS))
    rings[noise < 0.05] = 0
    rings[noise > 0.95] = 1
    return rings.astype(np.float32)


def expected(picture):
    windows = np.lib.stride_tricks.sliding_window_view(np.pad(picture, 1, mode="edge"), (3, 3))
    return np.median(windows, axis=(2, 3))


def main():
    picture = specked_picture(np.random.default_rng(1))
    reference = module.get_texref("picture")
    driver.matrix_to_texref(picture, reference, order="C")
    for axis in (0, 1):
        reference.set_address_mode(axis, driver.address_mode.CLAMP)

    clean = gpuarray.empty((ROWS, COLUMNS), np.float32)
    shape = {"block": (16, 16, 1), "grid": ((COLUMNS + 15) // 16, (ROWS + 15) // 16)}
    median = module.get_function("median")
    median(clean, np.int32(ROWS), np.int32(COLUMNS), texrefs=[reference], **shape)

    np.testing.assert_array_equal(clean.get(), expected(picture))
    print(f"{ROWS} x {COLUMNS} pixels, the same as numpy's median")
    save_png("image_filter.png", np.hstack([picture, clean.get()]))


if __name__ == "__main__":
    main()
