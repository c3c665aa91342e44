"""Spreads the grey levels of a dull picture over the whole range.

    python examples/gallery/equalise.py [FOLDER]

Shows a histogram with atomic operations in shared memory, and an array of indices: the cumulative
histogram is a table in which every pixel looks up its new grey level.
"""

import numpy as np
from picture import save_png

import pygpu.autoinit  # noqa: F401
from pygpu import gpuarray
from pygpu.compiler import SourceModule

ROWS, COLUMNS = 150, 200

histogram = SourceModule("""
__global__ void histogram(const unsigned char *pixels, unsigned *counts, int n) {
    __shared__ unsigned own[256];
    own[threadIdx.x] = 0;
    __syncthreads();
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
        atomicAdd(&own[pixels[i]], 1);
    __syncthreads();
    atomicAdd(&counts[threadIdx.x], own[threadIdx.x]);
}
""").get_function("histogram")


def dull_picture():
    y, x = np.mgrid[:ROWS, :COLUMNS]
    hills = np.sin(x / 17) * np.cos(y / 23) + 0.4 * np.sin((x + 2 * y) / 9)
    return (120 + 12 * hills).astype(np.uint8)


def main():
    picture = dull_picture()
    pixels = gpuarray.to_gpu(picture)
    counts = gpuarray.zeros(256, np.uint32)
    histogram(pixels, counts, np.int32(pixels.size), block=(256, 1, 1), grid=(8, 1))

    share = counts.cumsum(dtype=np.float64) / pixels.size
    table = (share * 255).astype(np.uint8)
    equal = table[pixels.astype(np.int64)]

    expected_counts = np.bincount(picture.ravel(), minlength=256)
    np.testing.assert_array_equal(counts.get(), expected_counts)
    expected_table = (np.cumsum(expected_counts) / picture.size * 255).astype(np.uint8)
    np.testing.assert_array_equal(equal.get(), expected_table[picture])
    print(f"grey levels {picture.min()} to {picture.max()} became {equal.get().min()} to 255")
    save_png("equalise.png", np.hstack([picture, equal.get()]))


if __name__ == "__main__":
    main()
