"""Draws three balls on a floor by walking along rays.

    python examples/gallery/ray_marcher.py [FOLDER]

Shows C++ in a kernel: a structure with operators, functions of the device, and an array in constant
memory. numpy computes where the same rays meet the balls and the floor.
"""

import numpy as np
from picture import save_png

import pygpu.autoinit  # noqa: F401
from pygpu import driver, gpuarray
from pygpu.compiler import SourceModule

ROWS, COLUMNS, FAR = 120, 180, 20.0
BALLS = np.array([[-1.3, 0.0, 5, 1], [1.0, -0.3, 4, 0.7], [0.4, 1.0, 6.5, 2]], np.float32)

module = SourceModule("""
struct vec { float x, y, z; };
__device__ vec operator+(vec a, vec b) { return {a.x + b.x, a.y + b.y, a.z + b.z}; }
__device__ vec operator*(vec a, float s) { return {a.x * s, a.y * s, a.z * s}; }
__device__ float dot(vec a, vec b) { return a.x * b.x + a.y * b.y + a.z * b.z; }
__device__ vec unit(vec a) { return a * rsqrtf(dot(a, a)); }

__constant__ float4 balls[3];

__device__ float distance_to_scene(vec p) {
    float least = p.y + 1;  // the floor
    for (float4 ball : balls) {
        vec d = p + vec{-ball.x, -ball.y, -ball.z};
        least = fminf(least, sqrtf(dot(d, d)) - ball.w);
    }
    return least;
}

__global__ void draw(float *depth, float *light, int rows, int columns, float far) {
    int x = threadIdx.x, y = blockIdx.y;
    vec ray = unit({(x - 0.5f * columns) / rows, (0.5f * rows - y) / rows, 1});
    float t = 0, distance = 1;
    for (int i = 0; i < 400 && t < far && distance > 1e-4f * t; ++i)
        t += distance = distance_to_scene(ray * t);
    t = fminf(t, far);
    // A surface faces the sun if the distance grows in the sun's direction.
    vec p = ray * t, sun = unit({-1, 2, -1.5f});
    float facing = (distance_to_scene(p + sun * 0.01f) - distance_to_scene(p)) / 0.01f;
    depth[y * columns + x] = t;
    light[y * columns + x] = t < far ? 0.15f + 0.85f * fmaxf(facing, 0) : 1;
}
""")


def expected_depth():
    y, x = np.mgrid[:ROWS, :COLUMNS]
    rays = np.stack([(x - COLUMNS / 2) / ROWS, (ROWS / 2 - y) / ROWS, np.ones(x.shape)], axis=-1)
    rays /= np.linalg.norm(rays, axis=-1, keepdims=True)
    depth = np.where(rays[..., 1] < 0, -1 / np.minimum(rays[..., 1], -1e-9), FAR)
    for *centre, radius in BALLS.astype(float):
        along = rays @ centre
        square = along**2 - np.dot(centre, centre) + radius**2
        depth = np.minimum(depth, np.where(square > 0, along - np.sqrt(np.abs(square)), FAR))
    return np.minimum(depth, FAR)


def main():
    driver.memcpy_htod(module.get_global("balls")[0], BALLS)
    depth = gpuarray.empty((ROWS, COLUMNS), np.float32)
    light = gpuarray.empty_like(depth)
    arguments = depth, light, np.int32(ROWS), np.int32(COLUMNS), np.float32(FAR)
    module.get_function("draw")(*arguments, block=(COLUMNS, 1, 1), grid=(1, ROWS))
    # A ray that only just misses a ball stops at its outline, so a few pixels differ.
    wrong = np.abs(depth.get() - expected_depth()) > 0.01 * expected_depth()
    assert wrong.mean() < 0.02, wrong.mean()
    print(f"{ROWS} x {COLUMNS} rays; {wrong.sum()} of them stop at an outline")
    save_png("ray_marcher.png", light.get())


if __name__ == "__main__":
    main()
