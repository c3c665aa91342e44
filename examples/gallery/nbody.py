"""Follows bodies that attract each other.

    python examples/gallery/nbody.py [FOLDER]

Shows shared memory: a block loads one tile of positions after the other, and all of its threads
read the tile between two barriers. Energy is conserved, and numpy has the same accelerations.
"""

import numpy as np
from picture import heat_colours, save_png

import pygpu.autoinit  # noqa: F401
from pygpu import gpuarray
from pygpu.compiler import SourceModule

BODIES, TILE, STEPS, DT, SOFTENING = 400, 64, 30, np.float32(0.01), np.float32(0.05)

source = """
__global__ void attract(const float4 *bodies, float4 *pull, int n, float softening) {
    __shared__ float4 tile[TILE];
    int i = blockIdx.x * TILE + threadIdx.x;
    float4 me = bodies[min(i, n - 1)], sum = make_float4(0, 0, 0, 0);
    for (int first = 0; first < n; first += TILE) {
        int j = first + threadIdx.x;
        tile[threadIdx.x] = j < n ? bodies[j] : make_float4(0, 0, 0, 0);  // w is the mass
        __syncthreads();
        for (int k = 0; k < TILE; ++k) {
            float4 other = tile[k];
            float dx = other.x - me.x, dy = other.y - me.y, dz = other.z - me.z;
            float inverse = rsqrtf(dx * dx + dy * dy + dz * dz + softening * softening);
            float weight = other.w * inverse * inverse * inverse;
            sum.x += weight * dx, sum.y += weight * dy, sum.z += weight * dz;
            sum.w -= other.w * inverse;  // the potential
        }
        __syncthreads();
    }
    if (i < n) pull[i] = sum;
}
"""
attract = SourceModule(source, options=[f"-DTILE={TILE}"]).get_function("attract")


def expected(bodies):
    place, mass = bodies[:, :3].astype(np.float64), bodies[:, 3]
    apart = place[None] - place[:, None]
    inverse = ((apart**2).sum(axis=2) + float(SOFTENING) ** 2) ** -0.5
    return (apart * (mass * inverse**3)[:, :, None]).sum(axis=1)


def main():
    rng = np.random.default_rng(11)
    bodies = rng.normal(0, 0.5, (BODIES, 4)).astype(np.float32)
    bodies[:, 3] = 1 / BODIES
    place, pull = gpuarray.to_gpu(bodies), gpuarray.empty((BODIES, 4), np.float32)
    velocity = gpuarray.to_gpu(np.cross(bodies[:, :3], [0, 0, 0.8]).astype(np.float32))
    shape = {"block": (TILE, 1, 1), "grid": ((BODIES + TILE - 1) // TILE, 1)}

    def update():
        attract(place, pull, np.int32(BODIES), SOFTENING, **shape)

    def energy():
        return float((((velocity**2).sum(axis=1) + pull[:, 3]) / 2 * place[:, 3]).sum())

    update()
    np.testing.assert_allclose(pull.get()[:, :3], expected(bodies), rtol=1e-3, atol=1e-4)
    before = energy()
    for _ in range(STEPS):  # leapfrog: half a kick, a drift, half a kick
        velocity += pull[:, :3] * (DT / 2)
        place[:, :3] += velocity * DT
        update()
        velocity += pull[:, :3] * (DT / 2)
    assert abs(energy() - before) < 0.01 * abs(before)
    print(f"{BODIES} bodies, {STEPS} steps: energy {before:.4f}, then {energy():.4f}")
    density = np.histogram2d(*place.get().T[1::-1], bins=80, range=[[-1.6, 1.6]] * 2)[0]
    save_png("nbody.png", np.kron(heat_colours(np.minimum(density / 4, 1)), np.ones((3, 3, 1))))


if __name__ == "__main__":
    main()
