"""Groups points by the k-means method.

    python examples/gallery/kmeans.py [FOLDER]

Shows atomic additions: each thread finds the centre nearest to a point and adds the point to that
centre's sums. Array operations divide the sums by the counts, without a copy to the host.
"""

import numpy as np
from picture import save_png

import pygpu.autoinit  # noqa: F401
from pygpu import gpuarray
from pygpu.compiler import SourceModule

POINTS, CENTRES, ROUNDS = 6000, 4, 8

assign = SourceModule("""
__global__ void assign(const float2 *points, const float2 *centres, int *label,
                       float2 *sums, int *counts, int n, int k) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float2 p = points[i];
    int best = 0;
    float least = INFINITY;
    for (int c = 0; c < k; ++c) {
        float dx = p.x - centres[c].x, dy = p.y - centres[c].y;
        float distance = dx * dx + dy * dy;
        if (distance < least) { least = distance; best = c; }
    }
    label[i] = best;
    atomicAdd(&sums[best].x, p.x), atomicAdd(&sums[best].y, p.y);
    atomicAdd(&counts[best], 1);
}
""").get_function("assign")


def expected(points, centres):
    for _ in range(ROUNDS):
        distances = ((points[:, None] - centres) ** 2).sum(axis=2)
        labels = distances.argmin(axis=1)
        centres = np.array([points[labels == c].mean(axis=0) for c in range(CENTRES)])
    return labels, centres


def main():
    rng = np.random.default_rng(3)
    middles = np.array([[0.3, 0.3], [0.7, 0.25], [0.65, 0.7], [0.25, 0.75]])
    points = middles[rng.integers(0, CENTRES, POINTS)] + rng.normal(0, 0.07, (POINTS, 2))
    points = points.astype(np.float32)
    # The first centres are the points nearest to the corners.
    sums, differences = points.sum(axis=1), points[:, 0] - points[:, 1]
    start = points[[f(x) for f in (np.argmin, np.argmax) for x in (sums, differences)]]

    on_device, centres = gpuarray.to_gpu(points), gpuarray.to_gpu(start)
    label = gpuarray.empty(POINTS, np.int32)
    for _ in range(ROUNDS):
        sums = gpuarray.zeros((CENTRES, 2), np.float32)
        counts = gpuarray.zeros(CENTRES, np.int32)
        arguments = on_device, centres, label, sums, counts, np.int32(POINTS), np.int32(CENTRES)
        assign(*arguments, block=(128, 1, 1), grid=((POINTS + 127) // 128, 1))
        centres = (sums / counts[:, None]).astype(np.float32)

    labels, means = expected(points.astype(np.float64), start.astype(np.float64))
    np.testing.assert_allclose(centres.get(), means, atol=1e-3)
    different = np.count_nonzero(labels != label.get())  # points between two centres
    assert different <= POINTS // 1000, different
    print("centres:", *centres.get().round(2))
    colours = np.array([[0.8, 0.2, 0.2], [0.2, 0.5, 0.8], [0.2, 0.6, 0.3], [0.8, 0.6, 0.1]])
    picture = np.ones((200, 200, 3))
    column, row = np.clip(points * 200, 0, 199).astype(int).T
    picture[row, column] = colours[label.get()]
    save_png("kmeans.png", picture)


if __name__ == "__main__":
    main()
