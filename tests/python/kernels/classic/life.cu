// A generation of Conway's game of life on a torus.
__global__ void life(const unsigned char *now, unsigned char *then, int width, int height) {
    const int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x >= width || y >= height) return;
    int alive = 0;
    for (int dy = -1; dy <= 1; ++dy) {
        for (int dx = -1; dx <= 1; ++dx) {
            if (dx == 0 && dy == 0) continue;
            alive += now[(y + dy + height) % height * width + (x + dx + width) % width];
        }
    }
    const int i = y * width + x;
    then[i] = alive == 3 || (alive == 2 && now[i]);
}
