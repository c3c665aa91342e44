"""Heat spreads over a plate whose halves belong to two streams.

    python examples/gallery/heat_two_streams.py [FOLDER]

Shows streams and events: each half advances on a stream of its own. Before a step, it waits for the
event that the other half has recorded, and copies the neighbouring row from there. pygpu orders
work on arrays across streams by itself; work on addresses, as in PyCUDA, needs the events.
"""

import numpy as np
from picture import heat_colours, save_png

import pygpu.autoinit  # noqa: F401
from pygpu import driver, gpuarray
from pygpu.compiler import SourceModule

ROWS, COLUMNS, STEPS, K = 96, 128, 60, np.float32(0.2)

step = SourceModule("""
// One explicit step for the inner cells of a part of the plate.
__global__ void step(const float *from, float *to, int columns, float k) {
    int x = blockIdx.x * blockDim.x + threadIdx.x + 1;
    int y = blockIdx.y + 1;
    if (x >= columns - 1) return;
    const float *cell = from + y * columns + x;
    to[y * columns + x] =
        *cell + k * (cell[-1] + cell[1] + cell[-columns] + cell[columns] - 4 * *cell);
}
""").get_function("step")


class Half:
    """A part of the plate on a stream, with one row of the other half as its first or last."""

    def __init__(self, rows, own, copied):
        self.stream, self.done = driver.Stream(), driver.Event()
        self.before, self.after = gpuarray.to_gpu(rows), gpuarray.to_gpu(rows)
        self.own, self.copied = own, copied  # the row to send; the row to receive

    def exchange(self, other):
        self.stream.wait_for_event(other.done)
        target, source = self.before[self.copied], other.before[other.own]
        driver.memcpy_dtod_async(target.gpudata, source.gpudata, source.nbytes, self.stream)

    def advance(self):
        rows, columns = self.before.shape
        arguments = self.before, self.after, np.int32(columns), K
        grid = ((columns + 61) // 64, rows - 2)
        step(*arguments, block=(64, 1, 1), grid=grid, stream=self.stream)
        self.done.record(self.stream)
        self.before, self.after = self.after, self.before


def expected(plate):
    plate = plate.astype(np.float64)
    for _ in range(STEPS):
        sides = plate[1:-1, :-2] + plate[1:-1, 2:] + plate[:-2, 1:-1] + plate[2:, 1:-1]
        plate[1:-1, 1:-1] += K * (sides - 4 * plate[1:-1, 1:-1])
    return plate


def main():
    start = np.zeros((ROWS, COLUMNS), np.float32)
    start[30:66, 20:50], start[10:20, 80:120] = 1, 0.7
    upper, lower = Half(start[: ROWS // 2 + 1], -2, -1), Half(start[ROWS // 2 - 1 :], 1, 0)
    for _ in range(STEPS):
        upper.exchange(lower), lower.exchange(upper)
        upper.advance(), lower.advance()

    result = np.vstack([upper.before[:-1].get(), lower.before[1:].get()])
    np.testing.assert_allclose(result, expected(start), rtol=0, atol=1e-5)
    print(f"{STEPS} steps on two streams; the plate kept {result.sum() / start.sum():.1%} heat")
    save_png("heat_two_streams.png", heat_colours(np.hstack([start, result])))


if __name__ == "__main__":
    main()
