"""Plays Conway's Game of Life.

    python examples/gallery/game_of_life.py [FOLDER]

Shows arrays without any kernel of the program's own: views, numpy's functions on device arrays,
comparisons and masks. On the host it runs without a compiler.
"""

import numpy as np
from picture import save_png

import pygpu.autoinit  # noqa: F401
from pygpu import gpuarray

SIDE, GENERATIONS = 100, 50


def generation(xp, cells):
    """Returns the next generation; `xp` is numpy, and `cells` an array of either library."""
    neighbours = sum(
        xp.roll(cells, (rows, columns), axis=(0, 1))
        for rows in (-1, 0, 1)
        for columns in (-1, 0, 1)
        if (rows, columns) != (0, 0)
    )
    return ((neighbours == 3) | ((cells == 1) & (neighbours == 2))).astype(np.uint8)


def main():
    start = (np.random.default_rng(5).random((SIDE, SIDE)) < 0.3).astype(np.uint8)
    start[:3, :3] = [[0, 1, 0], [0, 0, 1], [1, 1, 1]]  # a glider

    host, device = start, gpuarray.to_gpu(start)
    for _ in range(GENERATIONS):
        host, device = generation(np, host), generation(np, device)

    assert isinstance(device, gpuarray.GPUArray)
    np.testing.assert_array_equal(device.get(), host)
    alive = int(device.sum(dtype=np.int64))
    print(f"{alive} of {SIDE * SIDE} cells live after {GENERATIONS} generations")
    pictures = np.hstack([start, np.ones((SIDE, 4), np.uint8), device.get()])
    save_png("game_of_life.png", np.kron(1.0 - pictures, np.ones((3, 3))))


if __name__ == "__main__":
    main()
