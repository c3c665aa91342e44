"""Draws the Mandelbrot set.

    python examples/gallery/mandelbrot.py [FOLDER]

Shows the shortest way to a kernel: an ElementwiseKernel is a loop body over the elements, with
local variables and loops of its own.
"""

import numpy as np
from picture import heat_colours, save_png

import pygpu.autoinit  # noqa: F401
from pygpu import gpuarray
from pygpu.elementwise import ElementwiseKernel

ROWS, COLUMNS, LIMIT = 200, 300, 60

escape = ElementwiseKernel(
    "const double *re, const double *im, int *steps, int limit",
    """
    double x = 0, y = 0;
    int n = 0;
    while (n < limit && x * x + y * y <= 4) {
        double t = x * x - y * y + re[i];
        y = 2 * x * y + im[i];
        x = t;
        ++n;
    }
    steps[i] = n;
    """,
    "escape",
)


def expected(c):
    z, steps = np.zeros_like(c), np.zeros(c.shape, np.int32)
    alive = np.ones(c.shape, bool)
    for _ in range(LIMIT):
        alive &= z.real**2 + z.imag**2 <= 4
        z[alive] = z[alive] ** 2 + c[alive]
        steps += alive
    return steps


def main():
    im, re = np.meshgrid(
        np.linspace(-1.2, 1.2, ROWS), np.linspace(-2.3, 0.8, COLUMNS), indexing="ij"
    )
    steps = gpuarray.empty((ROWS, COLUMNS), np.int32)
    escape(gpuarray.to_gpu(re), gpuarray.to_gpu(im), steps, LIMIT)

    result = steps.get()
    # A compiler may round a product and a sum once in place of twice: points of the rim differ.
    different = np.count_nonzero(result != expected(re + 1j * im))
    assert different <= result.size // 1000, different
    print(f"{ROWS} x {COLUMNS} points; {(result == LIMIT).mean():.1%} never escaped")
    shade = np.where(result == LIMIT, 0, (result / LIMIT) ** 0.5)
    save_png("mandelbrot.png", heat_colours(shade))


if __name__ == "__main__":
    main()
