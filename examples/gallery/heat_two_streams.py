"""Heat spreads over a plate whose halves belong to two streams.

    python examples/gallery/heat_two_streams.py [FOLDER]

Shows streams and events: each half advances on a stream of its own, and waits only for the row
that it takes from its neighbour. The same pattern works with one stream for each of two GPUs.
"""

import numpy as np
from picture import heat_colours, save_png

import pygpu.autoinit  # noqa: F401
from pygpu import driver, gpuarray
from pygpu.compiler import SourceModule

ROWS, COLUMNS, STEPS, K = 96, 128, 60, np.float32(0.2)

step = SourceModule("""
// One explicit step for the rows from `first` to `last`, without the columns at the edges.
__global__ void step(const float *from, float *to, int first, int last, int columns, float k) {
    int x = blockIdx.x * blockDim.x + threadIdx.x + 1;
    int y = blockIdx.y + first;
    if (x >= columns - 1 || y >= last) return;
    const float *cell = from + y * columns + x;
    to[y * columns + x] =
        *cell + k * (cell[-1] + cell[1] + cell[-columns] + cell[columns] - 4 * *cell);
}
""").get_function("step")


def expected(plate):
    plate = plate.astype(np.float64)
    for _ in range(STEPS):
        inner = plate[1:-1, 1:-1]
        sides = plate[1:-1, :-2] + plate[1:-1, 2:] + plate[:-2, 1:-1] + plate[2:, 1:-1]
        plate[1:-1, 1:-1] = inner + K * (sides - 4 * inner)
    return plate


def main():
    start = np.zeros((ROWS, COLUMNS), np.float32)
    start[30:66, 20:50] = 1
    start[10:20, 80:120] = 0.7

    before, after = gpuarray.to_gpu(start), gpuarray.to_gpu(start)
    streams = [driver.Stream(), driver.Stream()]
    halves = [(1, ROWS // 2), (ROWS // 2, ROWS - 1)]
    done = [None, None]
    for _ in range(STEPS):
        previous, done = done, [driver.Event(), driver.Event()]
        for half, (first, last) in enumerate(halves):
            # The neighbour's previous step wrote the row next to this half, and read the row that
            # this step overwrites.
            if previous[1 - half]:
                streams[half].wait_for_event(previous[1 - half])
            arguments = before, after, np.int32(first), np.int32(last), np.int32(COLUMNS), K
            grid = ((COLUMNS + 61) // 64, last - first)
            step(*arguments, block=(64, 1, 1), grid=grid, stream=streams[half])
            done[half].record(streams[half])
        before, after = after, before
    for stream in streams:
        stream.synchronize()

    result = before.get()
    np.testing.assert_allclose(result, expected(start), rtol=0, atol=1e-5)
    print(f"{STEPS} steps on two streams; the plate kept {result.sum() / start.sum():.1%} heat")
    save_png("heat_two_streams.png", heat_colours(np.hstack([start, result])))


if __name__ == "__main__":
    main()
