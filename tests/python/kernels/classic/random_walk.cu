// Random walks on a two-dimensional grid, each with its own generator.
__device__ unsigned int step(unsigned int &state) {
    state ^= state << 13;
    state ^= state >> 17;
    state ^= state << 5;
    return state;
}

__global__ void walk(int2 *positions, const unsigned int *seeds, int walkers, int steps) {
    const int i = blockDim.x * blockIdx.x + threadIdx.x;
    if (i >= walkers) return;
    unsigned int state = seeds[i];
    int2 p = positions[i];
    for (int s = 0; s < steps; ++s) {
        switch (step(state) >> 30) {
        case 0: ++p.x; break;
        case 1: --p.x; break;
        case 2: ++p.y; break;
        default: --p.y;
        }
    }
    positions[i] = p;
}
