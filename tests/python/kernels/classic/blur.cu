// A box blur of 4-byte pixels.
__global__ void blur(const uchar4 *in, uchar4 *out, int width, int height, int radius) {
    const int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x >= width || y >= height) return;
    int4 sum = make_int4(0, 0, 0, 0);
    int count = 0;
    for (int v = max(0, y - radius); v <= min(height - 1, y + radius); ++v) {
        for (int u = max(0, x - radius); u <= min(width - 1, x + radius); ++u) {
            const uchar4 pixel = in[v * width + u];
            sum.x += pixel.x;
            sum.y += pixel.y;
            sum.z += pixel.z;
            sum.w += pixel.w;
            ++count;
        }
    }
    out[y * width + x] = make_uchar4(sum.x / count, sum.y / count, sum.z / count, sum.w / count);
}
